"""Moses pairs of files, side by side or in a zip archive: line ``i`` of one translates line ``i`` of the other."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from st_xling.data.faults import FaultLog, ParallelTextError, iter_lines
from st_xling.data.pairs import PairRow
from st_xling.data.tables import Languages
from st_xling.utils.languages import UNKNOWN, canonical_language, is_code, match_language, pair_in_name
from st_xling.utils.text import unpacked_name

NOT_LANGUAGES = {"tsv", "csv", "txt", "log", "zip", "tar", "bz", "xz", "md", "py", "sh", "xml", "ids"}
"""File endings that look like language codes beside a prefix, and are not."""

_ENDED = "\n"  # no line holds it


def moses_rows(faults: FaultLog, source_path: str, target_path: str, languages: Languages) -> Iterator[PairRow]:
    """The pairs of two line-aligned files, as ``read_moses`` says."""
    source_language, target_language = (code or UNKNOWN for code in languages)
    sources, targets = iter_lines(source_path, faults), iter_lines(target_path, faults)
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=_ENDED), 1):
        if _ENDED in (source, target):
            rest = number + sum(1 for _ in (targets if source == _ENDED else sources))
            counts = (number - 1, rest) if source == _ENDED else (rest, number - 1)
            detail = f"{counts[0]} lines, but {target_path} has {counts[1]}"
            faults.add_beyond_repair(source_path, "unequal line counts", detail)
            return
        empty = False
        for path, line in ((source_path, source), (target_path, target)):
            if line is not None and not line.strip():
                empty = True
                faults.add(path, number, "empty side")
        if source is not None and target is not None and not empty:
            yield source, target, source_language, target_language


def find_moses(
    prefix: str | Path, source_language: str | None = None, target_language: str | None = None
) -> tuple[Path, Path] | None:
    """The two files ``PREFIX.xx`` and ``PREFIX.yy``, plain or packed, or ``None`` if there are no two such files.

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
        if code and unpacked_name(path) == f"{prefix.name}.{code}" and path.is_file():
            found.setdefault(code, path)
    return _choose(found, prefix, source_language, target_language) if len(found) > 1 else None


def zipped_moses(
    path: str | Path, source_language: str | None = None, target_language: str | None = None
) -> tuple[Path, Path]:
    """The two files of a zip archive as OPUS publishes it, chosen as by :func:`find_moses`; they are read unpacked.

    Of ``de-en.txt.zip`` with ``TED2020.de-en.de`` and ``TED2020.de-en.en`` in it these are
    ``de-en.txt.zip/TED2020.de-en.de`` and the other one, as :func:`~st_xling.utils.text.open_bytes` takes them.

    Raises:
        ParallelTextError: No archive, or none with two such files, or with several pairs.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise ParallelTextError(f"{path}: expected a zip archive, got: {error}; fetch it again") from error
    pairs: dict[str, dict[str, Path]] = {}
    for name in sorted(names):
        if code := language_ending(name):
            pairs.setdefault(name[: -len(code)], {})[code] = Path(path) / name
    whole = [(stem, found) for stem, found in pairs.items() if len(found) > 1]
    if len(whole) != 1:
        raise ParallelTextError(
            f"{path}: expected one pair of files such as NAME.de-en.de and NAME.de-en.en in it, got {len(whole)} among "
            f"{', '.join(names[:8])}; unpack it, and name the files"
        )
    return _choose(whole[0][1], Path(path) / whole[0][0].rstrip("."), source_language, target_language)


def _choose(
    found: dict[str, Path], prefix: Path, source_language: str | None, target_language: str | None
) -> tuple[Path, Path]:
    source_language, target_language = (_spelled(code, found) for code in (source_language, target_language))
    named = pair_in_name(prefix)
    source = source_language or (named[0] if target_language in (None, named[1]) else None)
    target = target_language or (named[1] if source in (None, named[0]) else None)
    if source in found and target in found:
        return found[source], found[target]
    if len(found) > 2 or {source_language, target_language} - {None} - found.keys():
        raise ValueError(
            f"{prefix}: expected two files, or source_language and target_language to choose two; got "
            f"{source_language}-{target_language} for the endings {', '.join(found)}"
        )
    first, second = sorted(found, key=lambda code: (canonical_language(code) == "eng", code))
    if source_language == second or target_language == first:
        first, second = second, first
    return found[first], found[second]


def _spelled(language: str | None, endings: Iterable[str]) -> str | None:
    """Return the ending of this language, such as ``zh_CN`` for ``zh``; the language itself if there is none."""
    return (language and match_language(language, endings)) or language


def language_ending(path: str | Path) -> str | None:
    """Return ``de`` for ``corpus.de`` and ``corpus.de.gz``; ``None`` if the ending is no language code."""
    ending = Path(unpacked_name(path)).suffix.removeprefix(".")
    return ending if is_code(ending) and ending not in NOT_LANGUAGES else None
