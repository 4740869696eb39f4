"""A command that is killed after one of its steps: before the file of the next one gets its name."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.training.children import Outcome, st_xling

POINTS = 4


def run(words: Sequence[str], folder: Path, at: int | None = None) -> tuple[Outcome, list[str]]:
    """Run ``st-xling`` in a folder, next to which its streams and temporary files are kept.

    Args:
        words: The command.
        folder: Where it runs, and whose files count.
        at: Number of the renaming before which it is killed, from 1; by default it is not.

    Returns:
        How it ended, and the files that were renamed up to there.
    """
    record = folder.with_name("steps.txt")
    record.write_bytes(b"")
    ended = st_xling(words, folder.with_name("streams"), before=partial(_watch, folder.resolve(), record, at))
    return ended, record.read_text(encoding="utf-8").splitlines()


def spread(steps: Sequence[str]) -> list[int]:
    """Numbers of the first step, of the last, and of some between."""
    return sorted({1 + round(part * (len(steps) - 1) / (POINTS - 1)) for part in range(POINTS)})


def _watch(folder: Path, record: Path, at: int | None) -> None:
    """Install the hook, which Python calls before every renaming; the process is the command's own."""
    os.chdir(folder)
    temporary = folder.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    journal, number = os.open(record, os.O_WRONLY), 0

    def hook(event: str, values: tuple[Any, ...]) -> None:
        nonlocal number
        if event == "os.rename" and (folder / (name := os.fsdecode(values[1]))).is_relative_to(folder):
            number += 1
            os.write(journal, f"{os.path.relpath(folder / name, folder)}\n".encode())
            if number == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
