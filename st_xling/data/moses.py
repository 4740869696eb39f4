"""Moses pairs of files: line ``i`` of one translates line ``i`` of the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog
from st_xling.data.lines import read_lines
from st_xling.data.pairs import PairCollector
from st_xling.utils.languages import is_code, pair_in_name

if TYPE_CHECKING:
    from datasets import Dataset

NOT_LANGUAGES = {"tsv", "csv", "txt", "log", "zip", "tar", "bz", "xz", "md", "py", "sh"}
"""File endings that look like language codes beside a prefix, and are not."""


def read_moses(
    source_path: str | Path,
    target_path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of two line-aligned files, plain or gzipped; quotes and tabs are text.

    Args:
        source_path: The source sentences, one a line.
        target_path: Their translations, one a line.
        source_language: Language of the source side; else the ending of its file, as in ``corpus.de``; else ``"und"``.
        target_language: The same, of the target side.
        skip_bad_lines: Drop pairs with a faulty side, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together; if no pair is left; if the files differ in their number of
            lines, whatever ``skip_bad_lines`` says, since the alignment is then unknown.
        FileNotFoundError: If a file is missing.
        ValueError: If the endings are the languages asked for, the other way round.
    """
    endings = (language_ending(source_path), language_ending(target_path))
    asked = (source_language, target_language)
    if endings[0] != endings[1] and None not in endings and (asked[0] == endings[1] or asked[1] == endings[0]):
        raise ValueError(
            f"expected source {endings[0]} and target {endings[1]}, as {source_path} and {target_path} end, got "
            f"{asked[0]}-{asked[1]}; swap the languages or the files"
        )
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    pairs = collect_moses(
        source_path, target_path, faults, source_language or endings[0], target_language or endings[1]
    )
    return pairs.dataset()


def collect_moses(
    source_path: str | Path,
    target_path: str | Path,
    faults: FaultLog,
    source_language: str | None,
    target_language: str | None,
) -> PairCollector:
    """The pairs of two line-aligned files, with their faults noted but not yet raised."""
    source_lines, target_lines = read_lines(source_path, faults), read_lines(target_path, faults)
    pairs = PairCollector(f"{source_path} and {target_path}", faults, source_language, target_language)
    if len(source_lines) != len(target_lines) and not faults.beyond_repair:
        counts = f"{len(source_lines)} lines, but {target_path} has {len(target_lines)}"
        faults.add_beyond_repair(source_path, "unequal line counts", counts)
    collect_aligned(source_path, target_path, source_lines, target_lines, pairs)
    return pairs


def collect_aligned(
    source_path: str | Path,
    target_path: str | Path,
    source_lines: Sequence[str | None],
    target_lines: Sequence[str | None],
    pairs: PairCollector,
    *,
    first_line: int = 1,
) -> None:
    """Add line-aligned sentences to ``pairs``, and note an empty side by its own file."""
    for number, (source, target) in enumerate(zip(source_lines, target_lines), first_line):
        empty = [
            path
            for path, line in ((source_path, source), (target_path, target))
            if line is not None and not line.strip()
        ]
        for path in empty:
            pairs.faults.add(path, number, "empty side")
        if not empty and source is not None and target is not None:
            pairs.add(number, source, target)


def find_moses(
    prefix: str | Path, source_language: str | None = None, target_language: str | None = None
) -> tuple[Path, Path] | None:
    """The two files ``PREFIX.xx`` and ``PREFIX.yy``, plain or ``.gz``, or ``None`` if there are no two such files.

    Of more than two files the languages must choose. The source is the language asked for, else the first of a pair in
    the prefix (``data/de-en`` with ``de-en.de`` and ``de-en.en``), else the one that is not English, else the first in
    the alphabet.

    Raises:
        ValueError: If there are three or more files and the languages do not choose two.
    """
    prefix = Path(prefix)
    if not prefix.parent.is_dir() or not prefix.name:
        return None
    found: dict[str, Path] = {}
    for path in sorted(prefix.parent.iterdir()):
        code = language_ending(path)
        if code and path.name.removesuffix(".gz") == f"{prefix.name}.{code}" and path.is_file():
            found.setdefault(code, path)
    if len(found) < 2:
        return None
    named = pair_in_name(prefix)
    source = source_language or (named[0] if target_language in (None, named[1]) else None)
    target = target_language or (named[1] if source in (None, named[0]) else None)
    if source in found and target in found:
        return found[source], found[target]
    if len(found) > 2 or any(asked is not None and asked not in found for asked in (source_language, target_language)):
        raise ValueError(
            f"{prefix}: expected two files, or source_language and target_language to choose two; got "
            f"{source_language}-{target_language} for the endings {', '.join(found)}"
        )
    first, second = sorted(found, key=lambda code: (code in ("en", "eng"), code))
    if source_language == second or target_language == first:
        first, second = second, first
    return found[first], found[second]


def language_ending(path: str | Path) -> str | None:
    """``de`` for ``corpus.de`` and ``corpus.de.gz``; ``None`` where the ending is no language code."""
    ending = Path(str(path).removesuffix(".gz")).suffix.removeprefix(".")
    return ending if is_code(ending) and ending not in NOT_LANGUAGES else None
