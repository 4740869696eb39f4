"""The runs made, and their cards as they are committed."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hub_cards.masking import masked
from tests.hub_cards.runs import RUNS, CardRun

CARDS = Path(__file__).resolve().parents[2] / "hub_cards"
WITH_PICTURES = "dap"
"""The one card whose pictures are committed with it."""

_PICTURE = re.compile(r"!\[([^\]]*)\]\((pictures/[^)]*)\)")


def make_models(folder: Path, runs: Iterable[CardRun] = RUNS) -> dict[str, str]:
    """Run the commands in a folder; name → card, to the letter."""
    cards = {}
    for run in runs:
        for command in run.commands:
            run_command(command, folder)
        cards[run.name] = (folder / run.folder / "README.md").read_text(encoding="utf-8")
    return cards


def run_command(command: str, folder: Path) -> None:
    """As typed in a folder, in this process.

    Vectors that ``sf`` keeps stay in that folder, too: the card does not tell of ``--cache``.

    Raises:
        RuntimeError: If it fails; it has said why on stderr.
    """
    from st_xling.cli import main

    program, *words = shlex.split(command)
    assert program == "st-xling"
    cache = ["--cache", "vectors"] if words[:2] == ["train", "sf"] else []
    print(f"$ {command}", file=sys.stderr)
    with inside(folder):
        if main([*words, *cache]) != 0:
            raise RuntimeError(f"expected a command that succeeds: got a failure of {command}")


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """The working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def as_committed(name: str, card: str) -> str:
    """A card without time and machine; one whose pictures are not committed says so in their place."""
    shown = masked(card, figures=False)
    if name == WITH_PICTURES:
        return shown
    return _PICTURE.sub(lambda found: f"*{found[1]}: `{found[2]}` of the model's folder.*", shown)
