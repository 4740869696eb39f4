"""Tatoeba test sets as LASER lays them out: ``tatoeba.deu-eng.deu`` beside ``tatoeba.deu-eng.eng``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog
from st_xling.data.moses import moses_rows
from st_xling.data.pairs import pair_dataset, require_rows
from st_xling.utils.text import unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset

_FILE = re.compile(r"tatoeba\.([a-z]{3})-eng\.([a-z]{3})")


def read_tatoeba(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, Dataset]:
    """The Tatoeba v1 test sets of a folder.

    Args:
        folder: Where the files ``tatoeba.{code}-eng.{code}`` and ``tatoeba.{code}-eng.eng`` are.
        languages: Three-letter codes to read, in this order; else all that are there, in the alphabet's.
    Returns:
        A dataset for each code, with that language as source and English (``"eng"``) as target.
    Raises:
        FileNotFoundError: If there is no such folder, or it has no such file.
        ParallelTextError: For one-sided languages, unequal line counts and faulty lines of all languages together.
            There is no skipping: a test set with lines left out is another test set.
        ValueError: If ``languages`` holds one that is not there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of tatoeba.xxx-eng.xxx files, but {folder} is none; check the path")
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(unpacked_name(path))
        if match and match[2] in (match[1], "eng"):
            found.setdefault(match[1], {}).setdefault(match[2], path)
    if not found:
        raise FileNotFoundError(f"expected tatoeba.xxx-eng.xxx files in {folder}, got none; check the path")
    languages = [languages] if isinstance(languages, str) else languages
    wanted = list(found) if languages is None else list(dict.fromkeys(languages))
    absent = [code for code in wanted if code not in found]
    if absent or not wanted:
        raise ValueError(
            f"expected three-letter codes out of {', '.join(found)}, got {', '.join(absent) or 'none'}; "
            f"add the files to {folder} or leave these out"
        )

    faults = FaultLog(can_skip=False)
    rows = {}
    for code in wanted:
        sides = found[code]
        for missing in {code, "eng"} - sides.keys():
            path = folder / f"tatoeba.{code}-eng.{missing}"
            faults.add_beyond_repair(next(iter(sides.values())), "one-sided", f"{path} is missing")
        if len(sides) == 2:
            rows[code] = list(moses_rows(faults, str(sides[code]), str(sides["eng"]), (code, "eng")))
    faults.finalize()
    return {code: require_rows(pair_dataset(pairs), f"{found[code][code]}") for code, pairs in rows.items()}
