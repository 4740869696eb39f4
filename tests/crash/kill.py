"""A command that is killed before one of its changes to the file system.

Python tells an audit hook of every file that is opened for writing, renamed, removed, and so on, before it happens.
The file that was written last since the change before, by Python or by a library in Rust or C++, is cut in half, as a
kill between two writes may leave it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.training.children import Outcome, st_xling

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link"}
WRITES = os.O_WRONLY | os.O_RDWR
POINTS = 6


class Change(NamedTuple):
    """What was about to happen, and the file of the folder that was written since the change before, or ``""``."""

    event: str
    written: str

    def __str__(self) -> str:
        return f"killed before {self.event}, after writing {self.written or 'nothing'}"


def run(words: Sequence[str], folder: Path, at: int | None = None) -> tuple[Outcome, list[Change]]:
    """Run ``st-xling`` in a folder, next to which its streams and temporary files are kept.

    Args:
        words: The command.
        folder: Where it runs, and whose changes count.
        at: Number of the change before which it is killed, from 1; by default it is not.

    Returns:
        How it ended, and its changes up to there.
    """
    record = folder.with_name("changes.txt")
    record.write_bytes(b"")
    ended = st_xling(words, folder.with_name("streams"), before=partial(_watch, folder.resolve(), record, at))
    return ended, [Change(*line.split("\t")) for line in record.read_text(encoding="utf-8").splitlines()]


def spread(changes: Sequence[Change]) -> list[int]:
    """Numbers of the first change, of the last, and of some between, if possible of those that follow a write."""
    between = range(2, len(changes))
    written = [number for number in between if changes[number - 1].written]
    chosen = written if len(written) >= POINTS - 2 else list(between)
    steps = [round(part * (len(chosen) - 1) / (POINTS - 3)) for part in range(POINTS - 2)] if chosen else []
    return sorted({1, *(chosen[step] for step in steps), len(changes)})


def _watch(folder: Path, record: Path, at: int | None) -> None:
    """Install the hook; the process is the command's own."""
    os.chdir(folder)
    temporary = folder.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    journal = os.open(record, os.O_WRONLY)
    files, number, busy = _files(folder), 0, False

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal files, number, busy
        opened = event == "open" and isinstance(values[2], int) and values[2] & WRITES
        if busy or not (opened or event in CHANGES):
            return
        paths = values[:2] if event in ("os.rename", "os.link") else values[:1]
        # A path that is relative to a descriptor belongs to a folder that is being removed.
        named = [os.fsdecode(path) for path in paths if not isinstance(path, int)]
        inside = [path for path in named if (folder / path).is_relative_to(folder)]
        if not inside:
            return
        busy, number, before = True, number + 1, files
        files = _files(folder)
        changed = {key: file for key, file in files.items() if file[0] and file[:2] != before.get(key, (0, 0))[:2]}
        key = max(changed, key=lambda key: changed[key][1], default=None)
        size, _, path = changed.get(key, (0, 0, ""))
        os.write(journal, f"{event} {inside[0]}\t{path and os.path.relpath(path, folder)}\n".encode())
        if number == at:
            if path:
                old = before.get(key, (0, 0))[0]
                os.truncate(path, ((old if old < size else 0) + size) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        busy = False

    sys.addaudithook(hook)


def _files(folder: Path) -> dict[int, tuple[int, int, str]]:
    """Inode → size, time of the last change, path."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                status = (path := Path(root, name)).lstat()
            except FileNotFoundError:
                continue
            found[status.st_ino] = (status.st_size, status.st_mtime_ns, str(path))
    return found
