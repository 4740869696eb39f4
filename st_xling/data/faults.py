"""Faults of input files: gathered over the whole file, reported together; in a stream, raised when they are reached."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from st_xling.utils.text import ParallelTextError, decode_line, raw_lines

logger = logging.getLogger(__name__)

SHOWN = 20
"""How many faults an error message lists; the rest are only counted."""

ADVICE = {
    "wrong column count": "To pick two of more columns, pass columns=(i, j), counted from 0.",
    "unclosed quote": 'A CSV field cannot span lines; a field that holds a quote is written "like ""this""".',
    "invalid UTF-8": "Convert the file first: iconv -f <its encoding> -t utf-8.",
    "missing key": 'Name the two columns, e.g. columns=("de", "en").',
    "unequal line counts": "Which lines belong together is unknown, so no line can be skipped: align the files again.",
}


class Fault(NamedTuple):
    """One thing wrong with one place of one file.

    Attributes:
        path: The file, as the caller named it.
        line: Line or row, counted from 1; ``None`` for the file as a whole.
        kind: What is wrong, in the words shared by all readers, e.g. ``"empty side"``.
        detail: What was expected and what arrived; may be empty.
    """

    path: str
    line: int | None
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.kind}" + (f" ({self.detail})" if self.detail else "")


class FaultLog:
    """Gathers the faults of one reading, then raises them all at once or warns of what was dropped.

    Args:
        skip_bad_lines: Warn instead of raising; the reader then leaves the faulty lines out.
        can_skip: Whether the reader has such an option at all, so that the message may offer it.
        what: What is read, for the message.

    Attributes:
        advice: Kind of fault → what to do about it, for the message.
        or_more: Whether the reader stopped before the end, so that there may be more faults.
    """

    advice: Mapping[str, str] = ADVICE

    def __init__(self, *, skip_bad_lines: bool = False, can_skip: bool = True, what: str = "parallel text") -> None:
        self.skip_bad_lines = skip_bad_lines
        self.can_skip = can_skip
        self.what = what
        self.faults: list[Fault] = []
        self.beyond_repair: list[Fault] = []
        self.or_more = False

    def add(self, path: str | Path, line: int, kind: str, detail: str = "") -> None:
        """Note a fault of one line or row, counted from 1."""
        self.faults.append(Fault(str(path), line, kind, detail))

    def add_beyond_repair(self, path: str | Path, kind: str, detail: str = "") -> None:
        """Note a fault of a file as a whole, which leaving lines out cannot mend."""
        self.beyond_repair.append(Fault(str(path), None, kind, detail))

    def finalize(self) -> None:
        """Call once, after the last line.

        Raises:
            ParallelTextError: If there were faults, and they were not to be skipped or cannot be.
        """
        if self.beyond_repair or (self.faults and not self.skip_bad_lines):
            raise ParallelTextError(self._message(), self.beyond_repair + self.faults)
        if self.faults:
            kinds = Counter(fault.kind for fault in self.faults)
            logger.warning(
                "%s: dropped for faults in %d lines: %s",
                ", ".join(dict.fromkeys(fault.path for fault in self.faults)),
                len({(fault.path, fault.line) for fault in self.faults}),
                ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
            )

    def _message(self) -> str:
        faults = self.beyond_repair + self.faults
        more = "or more " if self.or_more else ""
        lines = [f"expected {self.what} without faults, got {len(faults)} {more}fault{'s'[: len(faults) > 1]}:"]
        lines += [f"  {fault}" for fault in faults[:SHOWN]]
        if len(faults) > SHOWN:
            lines.append(f"  ... and {len(faults) - SHOWN} more")
        kinds = {fault.kind for fault in faults}
        advice = [remedy for kind, remedy in self.advice.items() if kind in kinds]
        lines += advice
        if self.can_skip and not self.beyond_repair:
            lines.append("Mend them, or pass skip_bad_lines=True / --skip-bad-lines to drop these lines.")
        elif not advice:
            lines.append("Mend the file: skipping lines is no remedy here.")
        return "\n".join(lines)


class StreamFaultLog(FaultLog):
    """The same for a stream, which may have no end: a fault is raised at once, or its line counted.

    The first line that is dropped is logged at once, since the end of the pass and its total may never come.
    """

    def __init__(self, *, skip_bad_lines: bool = False) -> None:
        super().__init__(skip_bad_lines=skip_bad_lines)
        self.dropped = 0

    def add(self, path: str | Path, line: int, kind: str, detail: str = "") -> None:
        if not self.skip_bad_lines:
            super().add(path, line, kind, detail)
            self.finalize()
        # Faults come in the order of lines, so the last one alone says whether this line is counted already.
        self.dropped += not self.faults or self.faults[-1].line != line
        fault = Fault(str(path), line, kind, detail)
        if not self.faults:
            logger.warning("dropping the faulty lines of a stream, from the first: %s", fault)
        self.faults = [fault]

    def finalize(self) -> None:
        if self.beyond_repair or not self.skip_bad_lines:
            super().finalize()
        elif self.dropped:
            logger.warning("dropped %s faulty lines in this pass over the stream", f"{self.dropped:,}")


def iter_lines(path: str | Path, faults: FaultLog) -> Iterator[str | None]:
    """Each line of a text file, as :func:`~st_xling.utils.text.raw_lines` ends them; ``None`` where it is not UTF-8.

    Args:
        path: A UTF-8 text file, plain or packed.
        faults: Where lines that are not UTF-8 are noted.
    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: If a packed file is broken, since what follows the break is unknown.
    """
    for number, raw in enumerate(raw_lines(path, any_length=True), 1):
        line, fault = decode_line(raw)
        if fault:
            faults.add(path, number, "invalid UTF-8", fault)
        yield line


def numbered_lines(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, str]]:
    """The lines that are UTF-8, with their numbers, counted from 1; as :func:`iter_lines`."""
    return ((number, line) for number, line in enumerate(iter_lines(path, faults), 1) if line is not None)
