"""Lines of text files, with what is not UTF-8 noted as a fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from st_xling.data.faults import FaultLog
from st_xling.utils.text import decode_line, raw_lines


def iter_lines(path: str | Path, faults: FaultLog) -> Iterator[str | None]:
    """Each line of a text file, as :func:`~st_xling.utils.text.raw_lines` ends them; ``None`` where it is not UTF-8.

    Args:
        path: A UTF-8 text file, plain or packed.
        faults: Where lines that are not UTF-8 are noted.
    Raises:
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ParallelTextError: If a packed file is broken, since what follows the break is unknown.
    """
    for number, raw in enumerate(raw_lines(path), 1):
        line, fault = decode_line(raw)
        if fault:
            faults.add(path, number, "invalid UTF-8", fault)
        yield line


def read_lines(path: str | Path, faults: FaultLog) -> list[str | None]:
    """All of :func:`iter_lines`: line ``i`` of the file at index ``i - 1``."""
    return list(iter_lines(path, faults))
