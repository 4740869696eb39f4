"""One look through a text before it is embedded: all its faults at once, its rows and its hash."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.data.faults import SHOWN, Fault, ParallelTextError
from st_xling.mining.text.mining_text import Files, Row, file_list, read_rows

#: What to do with lines without a sentence.
BLANKS = ("error", "keep")

_ENOUGH_FAULTS = 1000

_ADVICE = {
    "invalid UTF-8": "Convert the file (iconv -f <encoding> -t utf-8), or pass errors='replace' / --errors replace.",
    "blank line": "Remove these lines from the text, or pass blank='keep' / --blank-lines keep to embed them as empty.",
    "no tab": "For one sentence a line without ids, pass format='lines' / --format lines.",
}


@dataclass(frozen=True)
class TextSurvey:
    """What a text holds.

    Attributes:
        files: Names of the files, without folders.
        format: How they were read.
        errors: How they were read.
        rows: Sentences.
        sha256: Hash of the sentences, each ended as by :func:`hash_sentence`; ids and compression do not enter.
        blank_rows: Rows whose sentence is empty or white space, counted from 0.
        replaced_lines: Lines with U+FFFD in place of bytes that were not UTF-8.
    """

    files: tuple[str, ...]
    format: str
    errors: str
    rows: int
    sha256: str
    blank_rows: tuple[int, ...] = ()
    replaced_lines: int = 0


def hash_sentence(digest: Any, sentence: str) -> None:
    """Feed a sentence: its length in bytes, 8 bytes little-endian, then its UTF-8."""
    data = sentence.encode("utf-8")
    digest.update(len(data).to_bytes(8, "little") + data)


def survey_text(
    files: Files, *, format: str = "lines", errors: str = "strict", blank: str = "error", progress: bool = False
) -> TextSurvey:
    """Read the text once, in memory for the faults only (and 8 bytes an id).

    An empty sentence has no meaning to embed. By default it is an error, because what an encoder makes of it is near
    every short sentence; with ``blank="keep"`` it keeps its row, so that rows and lines still agree, and its row number
    is noted for the miner to leave out.

    Args:
        files: As :func:`~st_xling.mining.text.mining_text.read_rows`.
        format: As :func:`~st_xling.mining.text.mining_text.read_rows`.
        errors: As :func:`~st_xling.mining.text.mining_text.read_rows`.
        blank: ``"error"`` or ``"keep"``.
        progress: Show a bar on stderr.
    Raises:
        ParallelTextError: For faulty lines, together: not UTF-8, without id, blank, an id twice; or without any lines.
        FileNotFoundError: For a missing file.
    """
    if blank not in BLANKS:
        raise ValueError(f"blank must be one of {', '.join(BLANKS)}: got {blank!r}.")
    digest, faults, blanks, ids = hashlib.sha256(), [], array("q"), array("Q")
    rows = replaced = 0
    stream = read_rows(files, format=format, errors=errors)
    for row in tqdm(stream, desc="reading", unit=" lines", disable=not progress):
        fault = row.fault
        if fault is None and not row.sentence.strip():
            blanks.append(rows)
            fault = ("blank line", "") if blank == "error" else None
        if fault is not None:
            faults.append(Fault(row.path, row.line, *fault))
            if len(faults) == _ENOUGH_FAULTS:
                break
        else:
            hash_sentence(digest, row.sentence)
            if format != "lines":
                ids.append(_short_hash(_name(row, rows)))
        replaced += row.replaced
        rows += 1
    if not faults and format != "lines":
        faults = _repeated_ids(ids, files, format, errors)
    if faults:
        raise ParallelTextError(_message(faults), faults)
    names = file_list(files)
    if not rows:
        raise ParallelTextError(f"expected at least one sentence, got none in {', '.join(names)}; check the file.")
    short = tuple(Path(name).name for name in names)
    return TextSurvey(short, format, errors, rows, digest.hexdigest(), tuple(blanks), replaced)


def _name(row: Row, number: int) -> str:
    return str(number + 1) if row.id is None else row.id


def _short_hash(identifier: str) -> int:
    return int.from_bytes(hashlib.blake2b(identifier.encode("utf-8"), digest_size=8).digest(), "little")


def _repeated_ids(ids: array[int], files: Files, format: str, errors: str) -> list[Fault]:
    """Ids that occur twice. Equal short hashes only raise the suspicion; the ids themselves are then compared."""
    hashes = np.frombuffer(ids, dtype=np.uint64) if ids else np.empty(0, np.uint64)
    values, counts = np.unique(hashes, return_counts=True)
    suspects = np.flatnonzero(np.isin(hashes, values[counts > 1])).tolist()
    if not suspects:
        return []
    wanted, faults = set(suspects), []
    seen: dict[str, str] = {}
    for number, row in enumerate(islice(read_rows(files, format=format, errors=errors), suspects[-1] + 1)):
        if number not in wanted:
            continue
        name = _name(row, number)
        if name in seen:
            faults.append(Fault(row.path, row.line, "duplicate id", f"{name}, as in {seen[name]}"))
        seen.setdefault(name, f"{row.path}:{row.line}")
    return faults


def _message(faults: list[Fault]) -> str:
    more = "or more " if len(faults) == _ENOUGH_FAULTS else ""
    lines = [f"expected sentences without faults, got {len(faults)} {more}fault{'s'[: len(faults) > 1]}:"]
    lines += [f"  {fault}" for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        lines.append(f"  ... and {len(faults) - SHOWN} more")
    kinds = {fault.kind for fault in faults}
    lines += [advice for kind, advice in _ADVICE.items() if kind in kinds] or ["Mend the file."]
    return "\n".join(lines)
