"""Check text files: name faulty lines with their numbers, all at once, or drop and list them."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.line_ids import LineIds
from st_xling.utils.text import (
    LONGEST_LINE_BYTES,
    UTF8_MARK,
    ParallelTextError,
    check_head,
    decode_line,
    line_too_long,
    open_bytes,
)

logger = logging.getLogger(__name__)

SHOWN = 20
"""Number of faults that a message lists; the rest are only counted."""

ADVICE = {
    "wrong column count": "To pick two of more columns, pass columns=(i, j), counted from 0.",
    "unclosed quote": 'A CSV field cannot span lines; a field that holds a quote is written "like ""this""".',
    "invalid UTF-8": "Convert the file first: iconv -f <its encoding> -t utf-8; Western European text is often latin1.",
    "missing key": 'Name the two columns, e.g. columns=("de", "en").',
    "unknown label": "Which rows are pairs is unknown; to read all of them, name the columns: ?columns=source,target.",
    "numbers": "Name the columns of the sentences, e.g. ?columns=3,4, counted from 0.",
    "ids": "Name the columns of the sentences, e.g. ?columns=1,2, counted from 0, or cut the ids off.",
    "unequal line counts": "Which lines belong together is unknown, so no line can be skipped: align the files again.",
}

LEAST_NUMBERS = 10
"""Fewer rows of numbers may be sentences."""

_COMPARED_FOR_IDS = 1000
_BLOCK_BYTES = 1 << 21
_SURROGATE = re.compile("[\ud800-\udfff]")
# Letters, marks, numbers, punctuation and symbols, but for those that nobody sees: fillers and variation selectors.
_VISIBLE = "[^\\pZ\\p{Cc}\\p{Cf}\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f]"
_NUMBER = r"^[+-]?[0-9]+(?:[.,][0-9]+)*(?:[eE][+-]?[0-9]+)?$"
_HUNALIGN_JOINT = " ~~~ "
_BIBLE_RANGE = "<range>"  # In Bible corpora: the verse is part of the one before.


class Fault(NamedTuple):
    """Fault of a file.

    Attributes:
        path: The file, as the caller named it.
        line: Line or row, counted from 1; ``None`` for the file as a whole.
        kind: Kind of the fault, the same for all readers, e.g. ``"empty side"``.
        detail: What was expected and what arrived; may be empty.
    """

    path: str
    line: int | None
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{where}: {self.kind}{detail}"


class FaultLog:
    """Gather the faults of one reading, then raise them all at once, or warn of the dropped lines.

    Args:
        skip_bad_lines: Warn instead of raising; the reader then drops the faulty lines.
        can_skip: Whether the reader has such an option at all, so that the message may offer it.
        what: What is read, for the message.

    Attributes:
        notes: What was not read and is no fault, a line each, for a warning.
        skipped: File and reason of rows that are no fault either → their number.
        or_more: Whether the reader stopped before the end, so that there may be more faults.
        advice: Kind of fault → what to do about it.
    """

    advice: Mapping[str, str] = ADVICE

    def __init__(self, *, skip_bad_lines: bool = False, can_skip: bool = True, what: str = "parallel text") -> None:
        self.skip_bad_lines = skip_bad_lines
        self.can_skip = can_skip
        self.what = what
        self.faults: list[Fault] = []
        self.beyond_repair: list[Fault] = []
        self.notes: list[str] = []
        self.skipped: Counter[tuple[str, str]] = Counter()
        self.or_more = False

    def add(self, path: str | Path, line: int, kind: str, detail: str = "") -> None:
        """Add a fault of one line or row, counted from 1."""
        self.faults.append(Fault(str(path), line, kind, detail))

    def add_beyond_repair(self, path: str | Path, kind: str, detail: str = "") -> None:
        """Add a fault of a file as a whole, which skipping lines cannot fix."""
        self.beyond_repair.append(Fault(str(path), None, kind, detail))

    def note(self, text: str) -> None:
        """Add a line on what was not read, though nothing is wrong with it."""
        self.notes.append(text)

    def skip(self, path: str | Path, reason: str) -> None:
        """Count a row that is left out, though nothing is wrong with it."""
        self.skipped[str(path), reason] += 1

    def check(self) -> None:
        """Raise ``ParallelTextError`` if there are faults that must not or cannot be skipped."""
        paths = list(dict.fromkeys(fault.path for fault in self.faults))
        self.faults.sort(key=lambda fault: (paths.index(fault.path), fault.line))
        if self.beyond_repair or (self.faults and not self.skip_bad_lines):
            raise ParallelTextError(self._error_message(), self.beyond_repair + self.faults)

    def finalize(self) -> None:
        """Raise as :meth:`check`, or warn of the dropped lines. Call it after the last line."""
        self.check()
        if warning := self.warning():
            logger.warning("%s", warning)

    def flush(self) -> None:
        """Raise as :meth:`check`, or warn of the lines dropped so far, and forget them."""
        self.check()
        if self.faults:
            logger.warning("%s", self._describe_dropped())
        self.faults.clear()

    def warning(self) -> str:
        """Return the dropped lines, the notes and the rows left out; empty if there are none."""
        skipped = []
        for (path, reason), rows in self.skipped.items():
            noun = "row" if rows == 1 else "rows"
            skipped.append(f"{path}: {rows:,} {noun} with {reason} left out")
        return "\n".join(filter(None, [self._describe_dropped(), *self.notes, *skipped]))

    def _describe_dropped(self) -> str:
        """Describe the dropped lines: their number by kind of fault, and the first of them; empty if there are none."""
        if not self.faults:
            return ""
        kinds = Counter(fault.kind for fault in self.faults)
        paths = ", ".join(dict.fromkeys(fault.path for fault in self.faults))
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        lines = len({(fault.path, fault.line) for fault in self.faults})
        return "\n".join([f"{paths}: dropped for faults in {lines} lines: {counts}", *_list_faults(self.faults)])

    def _error_message(self) -> str:
        faults = self.beyond_repair + self.faults
        noun = "faults" if len(faults) > 1 else "fault"
        at_least = "or more " if self.or_more else ""
        summary = f"expected {self.what} without faults, got {len(faults)} {at_least}{noun}:"
        kinds = {fault.kind for fault in faults}
        advice = [remedy for kind, remedy in self.advice.items() if kind in kinds]
        if self.can_skip and not self.beyond_repair:
            advice.append("Fix them, or pass skip_bad_lines=True / --skip-bad-lines to drop these lines.")
        return "\n".join([summary, *_list_faults(faults), *advice])


def _list_faults(faults: Sequence[Fault]) -> list[str]:
    """Return a line for each of the first :data:`SHOWN` faults, and one with the number of the others."""
    lines = [f"  {fault}" for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        lines.append(f"  ... and {len(faults) - SHOWN} more")
    return lines


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: JSON can spell half of a surrogate pair."""
    return text.isascii() or not _SURROGATE.search(text)


def broken_text(texts: Mapping[str, Any]) -> str | None:
    """Return the name of the first text that cannot be encoded, or ``None``; see :func:`is_unicode`."""
    for name, text in texts.items():
        if isinstance(text, str) and not is_unicode(text):
            return name
    return None


def iter_lines(path: str | Path, faults: FaultLog) -> Iterator[str | None]:
    r"""Read the lines of a text file; ``None`` for each that is not UTF-8, which is a fault.

    A line ends at ``\n``, ``\r\n`` or ``\r\r\n``. Byte order marks at the beginning of lines, where files were joined,
    are dropped.

    Args:
        path: A UTF-8 text file, plain or packed.
        faults: Where lines that are not UTF-8 are noted.

    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: If a packed file is broken, or the file is XML, or its lines end only in ``\r``; for a line
            of more than 16 MiB.
    """
    number = 1  # of the next line
    unfinished = b""  # beginning of a line that goes on in the next block
    with open_bytes(path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            if number == 1 and not unfinished:
                check_head(path, block)
            # Only the line that began in an earlier block can be longer than a block.
            bytes_to_line_end = block.find(b"\n") if b"\n" in block else len(block)
            if len(unfinished) + bytes_to_line_end > LONGEST_LINE_BYTES:
                raise line_too_long(path, number)
            complete, line_feed, unfinished = (unfinished + block).rpartition(b"\n")
            if line_feed:
                lines = _split_lines(path, complete, number, faults)
                yield from lines
                number += len(lines)
    if unfinished:
        yield from _split_lines(path, unfinished, number, faults)


def numbered_lines(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, str]]:
    """Read the lines that are UTF-8, with their numbers, counted from 1; see :func:`iter_lines`."""
    return ((number, line) for number, line in enumerate(iter_lines(path, faults), 1) if line is not None)


def _split_lines(path: str | Path, block: bytes, first_number: int, faults: FaultLog) -> list[str | None]:
    """Return the lines of a block, without their ends and byte order marks; ``None`` for those that are not UTF-8.

    Args:
        path: The file, for faults.
        block: Bytes of complete lines, without the end of the last.
        first_number: Number of the first line.
        faults: Where lines that are not UTF-8 are noted.
    """
    if b"\r" in block:
        block = re.sub(rb"\r+(?=\n|\Z)", b"", block)
    if UTF8_MARK in block:
        block = re.sub(rb"(?m:^)" + UTF8_MARK, b"", block)
    try:
        return list(block.decode("utf-8").split("\n"))
    except UnicodeDecodeError:
        lines = []
        for number, line in enumerate(block.split(b"\n"), first_number):
            text, fault = decode_line(line)
            if fault:
                faults.add(path, number, "invalid UTF-8", fault)
            lines.append(text)
        return lines


def check_sentences(
    table: Any, names: Sequence[str], where: Sequence[str], faults: FaultLog, *, is_first: bool = False
) -> Any:
    """Return the rows of an Arrow table whose sentences are not empty; note the others.

    A sentence of white space, of invisible characters, or of ``<range>``, as in Bible corpora, counts as empty.

    Args:
        table: With a column ``line`` and the columns ``names``, all strings.
        names: The columns of sentences.
        where: The file of each column.
        faults: Where faults are noted.
        is_first: Whether these are the first rows, which must not all be numbers, or begin with ids.
    """
    import pyarrow.compute as pc

    lines = table["line"]
    is_sound = pc.is_valid(lines)
    for name, path in zip(names, where):
        cells = table[name]
        is_filled = pc.and_(pc.match_substring_regex(cells, _VISIBLE), pc.not_equal(cells, _BIBLE_RANGE))
        if not pc.all(is_filled).as_py():
            for line in lines.filter(pc.invert(is_filled)).to_pylist():
                faults.add(path, line, "empty side", name)
            is_sound = pc.and_(is_sound, is_filled)
        is_joined = pc.match_substring(cells, _HUNALIGN_JOINT)
        if pc.any(is_joined).as_py():
            for line in lines.filter(is_joined).to_pylist():
                faults.add(path, line, "joined sentences", f"{name} has hunalign's ~~~; sed 's/ ~~~ / /g' joins them")
            is_sound = pc.and_(is_sound, pc.invert(is_joined))
        if is_first:
            _check_are_sentences(cells, name, path, faults)
    return table.filter(is_sound)


def _check_are_sentences(cells: Any, name: str, path: str, faults: FaultLog) -> None:
    """Note a fault beyond repair if the first cells of a column are all numbers, or nearly all begin with ids."""
    import pyarrow.compute as pc

    if len(cells) >= LEAST_NUMBERS and pc.all(pc.match_substring_regex(cells, _NUMBER)).as_py():
        faults.add_beyond_repair(path, "numbers", f"expected sentences, got {name} {cells[0].as_py()} and the like")
        return
    example = _example_of_ids(cells)
    if example is not None:
        faults.add_beyond_repair(path, "ids", f"expected sentences, got {name}s that are or begin with ids: {example}")


def _example_of_ids(cells: Any) -> str | None:
    """Return the first of the ids that nearly all of the first texts are or begin with; ``None`` if they do not."""
    ids = LineIds()
    for text in cells.slice(0, _COMPARED_FOR_IDS).to_pylist():
        if text is not None:
            ids.add(text)
    return ids.example if ids.lines >= LEAST_NUMBERS else None
