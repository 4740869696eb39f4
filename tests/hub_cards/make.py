"""``python -m tests.hub_cards.make``: write the cards of ``hub_cards/`` and those of recorded runs again."""

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.hub_cards.golden import KINDS, golden_card, recorded

CARDS = Path(__file__).resolve().parents[2] / "hub_cards"


def main() -> None:
    """Make the runs in a temporary folder, then put cards and pictures in place."""
    import torch

    from st_xling.hub import card_text
    from st_xling.utils.io import write_atomic

    parser = argparse.ArgumentParser(prog="python -m tests.hub_cards.make", description=__doc__)
    parser.add_argument("--recorded", action="store_true", help="only the cards of recorded runs, in a second")
    only_recorded = parser.parse_args().recorded
    with tempfile.TemporaryDirectory(prefix="st-xling-") as made:
        for kind in KINDS:
            write_atomic(golden_card(kind), card_text(recorded(kind, Path(made))).encode("utf-8"))
        if only_recorded:
            return
        torch.set_num_threads(1)  # as equal bytes need it
        texts = {f"{name}.md": as_committed(name, card) for name, card in make_models(Path(made)).items()}
        for old in {*CARDS.glob("*.md")} - {CARDS / "README.md"}:
            old.unlink()
        texts["README.md"] = with_headlines((CARDS / "README.md").read_text(encoding="utf-8"), texts)
        for name, text in texts.items():
            write_atomic(CARDS / name, text.encode("utf-8"))
        shutil.rmtree(CARDS / "pictures", ignore_errors=True)
        for name in listed_runs():
            shutil.copytree(Path(made) / f"my-{name}" / "pictures", CARDS / "pictures" / name)


def listed_runs() -> dict[str, list[str]]:
    """Name of each card → the commands that give it, as ``hub_cards/README.md`` has them, in its order."""
    text = (CARDS / "README.md").read_text(encoding="utf-8")
    runs = re.findall(r"(?ms)^### (\S+)$.*?^```bash\n(.*?)\n```$", text)
    return {name: block.splitlines() for name, block in runs}


def headline(card: str) -> str:
    """The sentence with the one figure, without its data."""
    return re.findall(r"(?m)^It (.*\*\*[\d.]+ %\*\*.*?) \(", card)[0]


def with_headlines(index: str, cards: Mapping[str, str]) -> str:
    """The index, with the headline of each card in its row."""
    row = re.compile(r"(?m)^(\| \[.+?\]\((.+?\.md)\) \| .+? \| ).+?( \| \[`st-xling .+)$")
    return row.sub(lambda match: f"{match[1]}{headline(cards[match[2]])}{match[3]}", index)


def make_models(folder: Path) -> dict[str, str]:
    """Run the commands in a folder; name → card, to the letter."""
    cards = {}
    for name, commands in listed_runs().items():
        for command in commands:
            run_command(command, folder)
        cards[name] = (folder / f"my-{name}" / "README.md").read_text(encoding="utf-8")
    return cards


def run_command(command: str, folder: Path) -> None:
    """As typed in a folder, in this process; vectors that ``sf`` keeps stay in that folder, too.

    Raises:
        RuntimeError: If it fails; it has said why on stderr.
    """
    from st_xling.cli import main as st_xling

    _, *words = shlex.split(command)
    cache = ["--cache", "vectors"] if words[:2] == ["train", "sf"] else []
    print(f"$ {command}", file=sys.stderr)
    with inside(folder):
        if st_xling([*words, *cache]) != 0:
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
    """A card without time and machine."""
    head, heading, tail = card.partition("### Cost\n")
    head = re.sub(r"(?m)^(\| (?:time, s|memory, GB) \| \|) .*\|$", r"\1 … |", head)

    # The lines that describe the machine become one.
    lines = tail.splitlines(keepends=True)
    machine = [line for line in lines if re.match(r"\| (accelerators|processor|memory|system) \|", line)]
    if machine:
        lines[lines.index(machine[0])] = "| machine | … |\n"
    tail = "".join(line for line in lines if line not in machine)
    tail = re.sub(r"(?m)^(\| time[^|]*\|) .*\|$", r"\1 … |", tail)

    # The pictures of each card have a folder in ``hub_cards/pictures``.
    return re.sub(r"!\[([^\]]*)\]\(pictures/([^)]*)\)", rf"![\1](pictures/{name}/\2)", head + heading + tail)


def masked(card: str) -> str:
    """A card without what machines and versions of libraries may disagree about: measured numbers and versions.

    Rows and columns, recipe, commands, data with row counts and fingerprints, leak check, signatures, files, text and
    citations stay as they are.
    """
    lines = []
    chapter = ""
    for line in card.splitlines():
        if line.startswith(("# ", "## ", "<summary>")):
            chapter = line
        if chapter == "" or line.startswith("| best development"):  # the metadata
            line = re.sub(r"(value|threshold|score \|): ?.*", r"\1 …", line)
        elif chapter.startswith("# "):
            line = re.sub(r"[\d.,]+(?= %\*\*| to| tokens)", "…", line)
        elif line.startswith("| ") and re.match("(## |<summary>)(Results|All results|Cut vocabulary)", chapter):
            label, *cells = line.split(" | ")
            line = " | ".join([label, *(re.sub(r"\d[\d.,]*", "…", cell) for cell in cells)])
        elif line.startswith(("Trained with ", "Card by ")):
            line = re.sub(r"\d[\w.+]*", "…", line)
        lines.append(re.sub(r"^(pip install .*>=)[\d.]+", r"\1…", line))
    return re.sub(r"(\| best development score \|).*", r"\1 … |", "\n".join(lines))


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
