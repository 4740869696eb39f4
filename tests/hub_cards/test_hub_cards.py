"""What lies in ``hub_cards/`` is what the commands give: golden, with figures masked."""

from __future__ import annotations

import re

import pytest
from huggingface_hub import ModelCard

from tests.hub_cards.listing import listing
from tests.hub_cards.making import CARDS, as_committed
from tests.hub_cards.masking import masked
from tests.hub_cards.runs import RUNS, all_recipes

NAMES = [run.name for run in RUNS]
AGAIN = "make hub_cards/ again: python -m tests.hub_cards.make"


def committed(name: str) -> str:
    return (CARDS / f"{name}.md").read_text(encoding="utf-8")


def test_every_recipe_has_a_card():
    assert set(all_recipes()) == {run.recipe for run in RUNS} == {run.name for run in RUNS if run.name == run.recipe}
    assert sorted(path.stem for path in CARDS.glob("*.md")) == sorted([*NAMES, "README"]), AGAIN


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_what_its_commands_give(name, made):
    assert masked(committed(name)) == masked(as_committed(name, made[name])), AGAIN


def test_the_list_is_of_these_runs():
    assert (CARDS / "README.md").read_text(encoding="utf-8") == listing(RUNS), AGAIN


@pytest.mark.parametrize("run", RUNS, ids=NAMES)
def test_a_card_names_its_commands_and_is_one_that_the_hub_reads(run):
    text = committed(run.name)
    for command in run.commands:
        assert f"\n{command.removesuffix(' --keep')}\n" in text
    assert ModelCard(text, ignore_metadata_errors=False).data.eval_results


def test_pictures_are_there_where_a_card_shows_them_and_named_where_not():
    for name in NAMES:
        for link in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", committed(name)):
            assert name == "dap" and (CARDS / link).read_bytes().startswith(b"\x89PNG")
    assert len(re.findall(r"!\[", committed("dap"))) == len(list((CARDS / "pictures").iterdir())) == 3
    assert "*Token states of parallel sentences, before and after training: `pictures/" in committed("tr")


def test_cards_tell_nothing_of_the_machine_that_made_them():
    for name in NAMES:
        cost = committed(name).partition("### Cost")[2].partition("\n## ")[0]
        assert not re.search(r"\| (time.*|machine) \| [^…]", cost)
        assert not re.search(r"(?<![\w:/])/(tmp|home|root|Users|work)/", committed(name))
