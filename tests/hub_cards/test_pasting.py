"""A stranger reproduces a card's table by pasting its commands."""

from __future__ import annotations

import re

import pytest

from tests.hub_cards.making import CARDS, run_command

FIGURE = re.compile(r"-?\d+\.\d+")
# Name of the card → its evaluations → rows of figures. (A table of the terminal has columns in another order.)
ROWS = {"tr": {"tatoeba": 2, "bucc": 1}, "ir": {"retrieval": 2}}


def commands(text: str, start: str) -> list[str]:
    """Lines of the card's blocks of shell that begin so."""
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith(start)]


def card_tables(text: str) -> list[dict[str, list[str]]]:
    """The tables of the results that a command follows: label → figures, as printed there."""
    found = []
    for part in text.partition("## Results\n")[2].partition("\n## ")[0].split("### ")[1:]:
        if "To get it again" in part:
            rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
            found.append(
                {label.strip("*"): [cell for cell in cells if FIGURE.fullmatch(cell)] for label, *cells in rows[2:]}
            )
    return found


@pytest.mark.parametrize("name", ROWS)
def test_the_pasted_commands_give_the_figures_of_the_card(name, made, tmp_path, capsys):
    text = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    [train] = commands(text, "st-xling train")
    evaluations = commands(text, "st-xling evaluate")
    assert [command.split()[2] for command in evaluations] == list(ROWS[name])
    run_command(train, tmp_path)
    tables = card_tables(made[name])
    assert len(tables) == len(evaluations)
    for command, table in zip(evaluations, tables):
        capsys.readouterr()
        run_command(command, tmp_path)
        printed = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert len(table) == ROWS[name][command.split()[2]]
        for label, figures in table.items():
            [line] = [words for words in printed if words[:1] == [label]]
            assert figures and sorted(word for word in line if FIGURE.fullmatch(word)) == sorted(figures)
