"""Losses of sentence-transformers in recipes, by name, and the hard negatives that some objectives read."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import Dataset

from st_xling.hub.card import _losses
from st_xling.training import CrossLingualTrainer, build_loss, load_recipe, train
from st_xling.training.run_folder import RunFolder
from tests.conftest import PAIRS

MNRL = "MultipleNegativesRankingLoss"


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    def load(losses: Any, **training: Any) -> Any:
        content = {"losses": losses, "arguments": {"max_steps": 2, "per_device_train_batch_size": 4, **training}}
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return load_recipe(str(path))

    return load


def rows(negatives: int = 0) -> Dataset:
    sources, targets = zip(*PAIRS)
    columns = {"source": sources, "target": targets, "source_language": ["xx"] * 8, "target_language": ["en"] * 8}
    columns |= {f"negative_{n}": [*targets[n:], *targets[:n]] for n in range(1, negatives + 1)}
    return Dataset.from_dict(columns)


@pytest.mark.parametrize(
    ("losses", "components"),
    [
        ({MNRL: {"scale": 30.0}}, {MNRL}),
        ({MNRL: None, "translation_ranking": {"weight": 0.5}}, {MNRL, "translation_ranking"}),
        ({"MatryoshkaLoss": {"matryoshka_dims": [16, 8], "loss": {"translation_ranking": {"margin": 0.1}}}}, None),
        ({"CachedMultipleNegativesRankingLoss": {"mini_batch_size": 2}}, {"CachedMultipleNegativesRankingLoss"}),
    ],
    ids=["alone", "in a sum", "around ours", "cached"],
)
def test_they_train(losses: Any, components: Any, recipe: Any, make_model: Any, tmp_path: Path) -> None:
    made = recipe(losses)
    result = train(made, {"xx-en": rows()}, tmp_path / "run", model=make_model())
    logged = next(entry for entry in result.history if "loss" in entry)
    assert result.steps == 2 and 0 < logged["loss"] < 100
    assert components is None or components <= logged.keys()
    assert RunFolder(tmp_path / "run").read_manifest()["recipe"]["losses"] == made.losses
    if MNRL in (components or ()):
        citations = [loss.citation for loss in _losses(made.as_dict())]
        assert len(citations) == len(made.losses) and all("@" in citation for citation in citations)
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(made.as_dict()), encoding="utf-8")
    assert load_recipe(str(again)) == made


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ({"MultipleNegativeRankingLoss": {}}, f"no key 'MultipleNegativeRankingLoss'; did you mean '{MNRL}'"),
        ({MNRL: {"scal": 1}}, f"losses.{MNRL} has no key 'scal'; did you mean 'scale'"),
        ({MNRL: {"scale": "high"}}, f"losses.{MNRL} .*'str'"),
        ({"MatryoshkaLoss": {"matryoshka_dims": [8]}}, "at least one loss under 'losses.MatryoshkaLoss.loss'"),
        ({"MatryoshkaLoss": {"loss": {MNRL: {}}}}, "losses.MatryoshkaLoss .*matryoshka_dims"),
    ],
)
def test_faults(losses: Any, message: str, recipe: Any, make_model: Any) -> None:
    with pytest.raises(ValueError, match=message):
        build_loss(recipe(losses), make_model(), token_ids=[set(), set()])


def test_hard_negatives(recipe: Any, make_model: Any, tmp_path: Path, logged: Any) -> None:
    """An objective that knows them reads all columns, the others the pair; where none does, a warning says so."""
    both = {MNRL: {}, "translation_ranking": {}}
    pair = {"translation_ranking": {}}
    train(recipe(both), {"a": rows(2)}, tmp_path / "both", model=make_model())
    manifest = RunFolder(tmp_path / "both").read_manifest()
    losses = manifest["recipe"]["losses"]
    assert losses["translation_ranking"]["columns"] == [0, 1] and "columns" not in losses[MNRL]
    assert "hard negatives" not in logged()
    train(recipe(both), {"a": rows()}, tmp_path / "none", model=make_model())
    assert RunFolder(tmp_path / "none").read_manifest()["data"] != manifest["data"]  # the fingerprint has them
    train(recipe(pair), {"a": rows(1)}, tmp_path / "pair", model=make_model())
    assert "a: hard negatives ignored (negative_1): no objective" in logged()


def test_hard_negatives_have_the_prompt_of_the_target(
    recipe: Any, make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, a negative was known by its beginning."""
    seen: list[Any] = []
    original = CrossLingualTrainer.__init__

    def begin(self: Any, **options: Any) -> None:
        seen.append(options["args"])
        original(self, **options)

    monkeypatch.setattr(CrossLingualTrainer, "__init__", begin)
    made = recipe({MNRL: {}}, prompts={"source": "one: ", "target": "two: "})
    train(made, {"a": rows(1)}, tmp_path / "run", model=make_model())
    assert seen[0].prompts == {"source": "one: ", "target": "two: ", "negative_1": "two: "}


@pytest.mark.parametrize(
    "losses",
    [{"in_batch_ranking": {}}, {"translation_ranking": {"hard_negatives": True, "bidirectional": False}}],
    ids=lambda losses: next(iter(losses)),
)
def test_hard_negatives_are_candidates(losses: Any, recipe: Any, make_model: Any, tmp_path: Path) -> None:
    """Negatives that are the targets once more double the candidates: the first loss grows by ln 2."""
    first_losses = []
    for name, data in {"without": rows(), "with": rows().add_column("negative_1", rows()["target"][:])}.items():
        made = recipe(losses, max_steps=1, logging_steps=1)
        first_losses.append(train(made, {"xx-en": data}, tmp_path / name, model=make_model()).history[0]["loss"])
    assert first_losses[1] - first_losses[0] == pytest.approx(math.log(2), abs=0.2)
