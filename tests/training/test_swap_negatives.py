"""Near-translations as negatives: which rows have one, streams, and the loss that reads them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from st_xling.training import add_swap_negatives, load_recipe, train

ENGLISH = ["There are 17 old books.", "She never lies 🙂", "Grüße.", "It is late because of rain."]
GERMAN = ["Es gibt 17 alte Bücher.", "Sie lügt nie 🙂", "Grüße.", "Es ist wegen des Regens spät."]


def pairs(**columns: list[str]) -> Dataset:
    return Dataset.from_dict({"source": GERMAN, "target": ENGLISH, **columns})


def test_english_targets_get_a_near_translation_and_others_themselves() -> None:
    """A row without a change has its own target, which the loss masks: never a paraphrase, never an empty text."""
    negatives = add_swap_negatives(pairs())["negative_1"][:]
    changed = [text != target for text, target in zip(negatives, ENGLISH)]
    assert changed == [True, True, False, True]
    assert negatives[0].startswith("There are ") and negatives[2] == "Grüße."
    languages = ["en", "de", "en", "eng"]
    of_languages = add_swap_negatives(pairs(target_language=languages))["negative_1"][:]
    assert of_languages == [negatives[0], ENGLISH[1], negatives[2], negatives[3]]
    numbers = add_swap_negatives(pairs(), categories=["number"])["negative_1"][:]
    assert numbers[0] != ENGLISH[0] and "17" not in numbers[0] and numbers[1:] == ENGLISH[1:]


def test_a_negative_depends_on_its_text_and_the_seed_alone() -> None:
    """A stream, which has no length, and a resumed run have the negatives that a run in one piece has."""
    negatives = add_swap_negatives(pairs())["negative_1"][:]
    stream = add_swap_negatives(pairs().to_iterable_dataset())
    assert [row["negative_1"] for row in stream] == negatives
    reverse = add_swap_negatives(pairs().select([3, 2, 1, 0]))["negative_1"][:]
    assert reverse[::-1] == negatives
    others = [add_swap_negatives(pairs(), seed=seed)["negative_1"][:] for seed in range(1, 6)]
    assert any(other != negatives for other in others)


def test_a_recipe_ranks_them(data: Any, make_model: Any, tmp_path: Path) -> None:
    """Targets of other pairs and the near-translations of all: the loss of a model that knows nothing is higher."""
    changes: dict[str, Any] = {
        "data.hard_swaps": ["number", "causality", "entity"],
        "arguments.per_device_train_batch_size": 8,
        "arguments.max_steps": 1,
        "arguments.logging_steps": 1,
    }
    english = [f"There are {number} old books." for number in range(30, 46)]
    german = [f"Es gibt {number} alte Bücher." for number in range(30, 46)]
    books = Dataset.from_dict({"source": german, "target": english})
    result = train(load_recipe("tr", tiny=True, overrides=changes), {"de-en": books}, tmp_path, model=make_model())
    assert result.history[0]["loss"] > np.log(8)
    assert "hard_swaps" not in load_recipe("tr").as_dict()["data"]


@pytest.mark.parametrize(
    ("recipe", "changes", "error"),
    [
        ("tr", {"data.hard_swaps": ["numbers"]}, "data.hard_swaps must be out of causality, entity, number: got 'numb"),
        ("tr", {"data.hard_swaps": ["number", "number"]}, "each kind once"),
        ("tr", {"data.hard_swaps": 4}, "kinds of changes out of causality, entity, number: got 4"),
        ("semacl", {"data.hard_swaps": ["number"]}, "negatives of translation_ranking"),
        ("tr", {"data.hard_swaps": ["number"], "data.hard_negatives.num_negatives": 1}, "take one of the two"),
    ],
)
def test_what_a_recipe_refuses(recipe: str, changes: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        load_recipe(recipe, overrides=changes)


def test_text_without_english_targets_is_refused(make_model: Any, tmp_path: Path) -> None:
    """Training would have gone on without a single negative."""
    recipe = load_recipe("tr", tiny=True, overrides={"data.hard_swaps": ["number"]})
    german = Dataset.from_dict({"source": GERMAN, "target": GERMAN})
    with pytest.raises(ValueError, match="made of English targets: got fr"):
        train(recipe, {"de-fr": german}, tmp_path / "run", model=make_model())
    with pytest.raises(ValueError, match="column target: got text"):
        add_swap_negatives(Dataset.from_dict({"text": GERMAN}))
    with pytest.raises(ValueError, match="negatives already"):
        add_swap_negatives(add_swap_negatives(pairs()))
