"""What of a card may differ between machines and versions of libraries, blanked out."""

from __future__ import annotations

import re

BLANK = "…"

_FIGURE_SECTIONS = ("## Results", "## Cut vocabulary")
_COUNTS = ("gold", "texts")  # columns that tell of data
_MACHINE = ("accelerators", "processor", "memory", "system")
_VERSION = r"\d+(?:\.\d+)+(?:[\w.+-]*\w)?"
_FIGURE = re.compile(r"\*{0,2}-?\d[\d.,() –-]*\*{0,2}")


def masked(text: str, *, figures: bool = True) -> str:
    """A card without what two runs of one command may disagree about; all else is left as it stands.

    Blanked out always, since two runs on one machine do not agree about it: how long training took; and what machine it
    was (one row, however many the card has).

    Blanked out with ``figures``: numbers in the tables of results and of a cut vocabulary, save counts of data; values
    and thresholds in the metadata; the best development score; versions of libraries, also at the end of signatures.

    So rows and columns, recipe, commands, data with their row counts and fingerprints, leak check, signatures with
    their fields, files, text and citations are compared to the letter.

    Args:
        text: Of the card, metadata included.
        figures: Whether figures and versions are blanked out too, as a golden test wants it; a card that is shown has
            them.
    """
    lines, section, head = [], "", []
    for line in text.splitlines():
        section = line if line.startswith("#") else section
        if not line.startswith("|"):
            head = []
        elif not head:
            head = _cells(line)
        elif section == "### Cost":
            line = _cost(line, figures=figures)
            if line in lines[-1:]:
                continue
        elif figures and _holds_figures(section, lines):
            line = _row(head, line)
        lines.append(_outside_tables(line, section) if figures else line)
    return "\n".join(lines) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _holds_figures(section: str, lines: list[str]) -> bool:
    """Whether the section, or that which it is a part of, tells figures."""
    chapter = next((line for line in reversed([*lines, section]) if line.startswith("## ")), "")
    return chapter in _FIGURE_SECTIONS


def _row(head: list[str], line: str) -> str:
    if line.startswith(("| :-", "|:-")):
        return line
    label, *cells = _cells(line)
    shown = [
        re.sub(r"-?\d[\d,.]*", BLANK, cell) if _FIGURE.fullmatch(cell) and name not in _COUNTS else cell
        for name, cell in zip(head[1:], cells)
    ]
    return "| " + " | ".join([label, *shown]) + " |"


def _cost(line: str, *, figures: bool) -> str:
    label = _cells(line)[0]
    if label in _MACHINE:
        return f"| machine | {BLANK} |"
    timed = label == "time" or label.startswith("time of ")
    return f"| {label} | {BLANK} |" if timed or (figures and label == "best development score") else line


def _outside_tables(line: str, section: str) -> str:
    line = re.sub(r"^( +(?:value|threshold): ).*", rf"\g<1>{BLANK}", line) if not section else line
    line = re.sub(rf"\bst-xling:{_VERSION}", f"st-xling:{BLANK}", line)
    line = re.sub(rf"^(pip install .*>=){_VERSION}", rf"\g<1>{BLANK}", line)
    return re.sub(rf"\b{_VERSION}", BLANK, line) if section == "## Versions" else line
