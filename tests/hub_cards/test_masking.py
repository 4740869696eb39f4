"""What masking hides, and that it hides nothing else."""

from __future__ import annotations

import difflib

import pytest

from tests.hub_cards.making import CARDS
from tests.hub_cards.masking import masked

HIDDEN = [
    ("value: 0.8", "value: 0.1"),
    ("threshold: 1.", "threshold: 2.7"),
    ("|st-xling:0.", "|st-xling:3."),
    ("| **all** | ", "| **all** | 9"),
    ("| de-en | 1.", "| de-en | 2."),
    ("| best development score | ", "| best development score | 1"),
    ("'sentence-transformers>=", "'sentence-transformers>=7"),
    ("torch 2.", "torch 9."),
    ("Card by st-xling 0.", "Card by st-xling 4."),
]
SEEN = [
    (
        "<code>losses.translation_ranking.weight</code> | <code>1.0",
        "<code>losses.translation_ranking.weight</code> | <code>2.0",
    ),
    ("training.seed</code> | <code>0", "training.seed</code> | <code>1"),
    ("--max-steps 70", "--max-steps 71"),
    ("?size=60'", "?size=61'"),
    ("### Leak check\n", ""),
    ("## Limits\n", ""),
    ("| fra | ", "| spa | "),
    ("| to English |", "| into English |"),
    ("| 40 |\n", "| 41 |\n"),
    ("| steps | 70 |", "| steps | 69 |"),
    ("threshold:dev", "threshold:tune"),
    ("|k:4|", "|k:5|"),
    ("data:phrasebook-test@", "data:phrasebook-dev@"),
    ("apache-2.0", "apache-2.1"),
    ("dataset_size:", "dataset_size:1"),
    ("- type: f1\n", "- type: f2\n"),
    ("0 of 984 training rows", "1 of 984 training rows"),
    ("year = {2023}", "year = {2024}"),
    ("`mining.json`", "`mined.json`"),
    ("(pictures/token_states.png)", "(pictures/states.png)"),
    ("layers 2", "layers 3"),
]


@pytest.fixture(scope="module")
def card() -> str:
    return (CARDS / "dap.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("before", "after"), HIDDEN, ids=[before for before, _ in HIDDEN])
def test_figures_and_versions_are_hidden(before, after, card):
    changed = card.replace(before, after)
    assert changed != card and masked(changed) == masked(card)
    assert masked(changed, figures=False) != masked(card, figures=False)


@pytest.mark.parametrize(("before", "after"), SEEN, ids=[before for before, _ in SEEN])
def test_all_else_stays_seen(before, after, card):
    changed = card.replace(before, after, 1)
    assert changed != card and masked(changed) != masked(card)


def test_rows_columns_and_tables_that_go_are_seen(card):
    lines = masked(card).splitlines()
    tables = [line for line in card.splitlines() if line.startswith("| ")]
    for line in dict.fromkeys(tables):
        if "machine" not in line:
            fewer = masked(card.replace(line + "\n", "", 1)).splitlines()
            assert any(mark in "+-" for mark, *_ in difflib.ndiff(lines, fewer)), line


def test_a_second_machine_reads_as_the_first():
    cost = "### Cost\n\n|  |  |\n| :--- | :--- |\n| time | {} |\n| steps | 50 |\n{}\n\nBy.\n"
    one = cost.format(
        "27 s", "| processor | AMD EPYC (2 cores, 1 threads used) |\n| memory | 23.5 GiB |\n| system | Linux |"
    )
    other = cost.format("1 min 3 s", "| accelerators | H100 |\n| processor | Xeon |\n| system | Linux |")
    assert masked(one, figures=False) == masked(other, figures=False) == cost.format("…", "| machine | … |")
    assert masked(one.replace("| steps | 50 |\n", ""), figures=False) != masked(other, figures=False)


def test_a_value_that_is_not_there_stays_seen():
    rows = "| de-en | {} | 40 |\n| a → b | 1.5 (0.1–2.0) | – |\n"
    table = f"## Results\n\n|  | threshold | gold |\n| :--- | ---: | ---: |\n{rows}"
    assert masked(table.format("1.25")) == masked(table.format("0.9")) == masked(table.format("-1,234"))
    assert masked(table.format("–")) != masked(table.format("0.9"))
    assert "| a → b | … (…–…) | – |" in masked(table.format("1.25"))


def test_what_is_masked_stays_as_it_is(card):
    assert masked(masked(card)) == masked(card)
    assert masked(card, figures=False) == card  # as it is committed
