"""Hard negatives that are mined from a run's own text before training: ranks, prompts, draws by seed, and resuming."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file

from st_xling.training import load_recipe, train
from st_xling.training.mixture import mine_negatives
from st_xling.training.trainer import CrossLingualTrainer
from tests.training.children import stop_at

STEPS = {"training.num_train_epochs": 2, "training.per_device_train_batch_size": 8, "training.eval_steps": 2}


def test_negatives_are_near_and_never_a_translation(make_model: Any, data: Any) -> None:
    """Ranks 2 and later by cosine of the prompted texts, among the targets that are not the source's own."""
    model, pairs = make_model(), data["vi-en"]
    second = {"source": pairs["source"][:4], "target": pairs["target"][4:8]}  # four sources have two targets
    twice = Dataset.from_dict({name: [*pairs[name][:], *second[name]] for name in second})
    columns = mine_negatives(twice, model, 3, prompts={"source": "query: ", "target": "text: "})
    assert list(columns) == ["negative_1", "negative_2", "negative_3"]
    own = defaultdict(set)
    for source, target in zip(twice["source"], twice["target"]):
        own[source].add(target)
    targets = list(dict.fromkeys(twice["target"]))
    vectors = dict(zip(targets, model.encode(targets, prompt="text: ", normalize_embeddings=True)))
    for source, *negatives in zip(twice["source"], *columns.values()):
        assert len(set(negatives)) == 3 and not set(negatives) & own[source] and set(negatives) <= {*targets}
        asked = model.encode(source, prompt="query: ", normalize_embeddings=True)
        nearest = max((text for text in targets if text not in own[source]), key=lambda text: asked @ vectors[text])
        assert nearest not in negatives
    first, again, other = (mine_negatives(pairs, model, 1, prompts={}, seed=seed) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.slow
def test_a_resumed_run_has_the_negatives_of_its_start(
    data: Any, make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not those that the model of the checkpoint would find."""
    changes = {**STEPS, "negatives.count": 2, "training.learning_rate": 1e-2}
    recipe = load_recipe("tr", tiny=True, overrides=changes)
    whole = train(recipe, data, tmp_path / "whole", model=make_model())
    assert whole.steps == 6
    with monkeypatch.context() as patch:
        stop_at(patch, CrossLingualTrainer, 3)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, data, tmp_path / "run", model=make_model())
    train(recipe, data, tmp_path / "run", model=make_model(), resume=True)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("run", "whole")]
    torch.testing.assert_close(*weights, rtol=0, atol=0)
    negatives = Dataset.from_parquet(str(tmp_path / "run" / "training" / "negatives.parquet"))
    assert negatives.column_names == ["negative_1", "negative_2"] and len(negatives) == 24
    assert whole.history[0]["loss"] > np.log(8)  # eight targets and sixteen negatives


@pytest.mark.parametrize("count", [-1, 32])
def test_a_count_that_the_ranks_do_not_hold(count: int) -> None:
    """-1 ended in an error of sentence-transformers, and 32 in advice to add text, both after the data were read."""
    with pytest.raises(ValueError, match=f"negatives.count must be from 0 to 31: got {count}"):
        load_recipe("tr", overrides={"negatives.count": count})
    assert load_recipe("tr", overrides={"negatives.count": 31}).negatives.count == 31


def test_damaged_negatives_are_named(data: Any, make_model: Any, tmp_path: Path) -> None:
    """A run was resumed with other negatives in silence; of an empty file the error did not say which it was."""
    recipe = load_recipe("tr", tiny=True, overrides={**STEPS, "negatives.count": 2, "training.max_steps": 2})
    train(recipe, data, tmp_path / "run", model=make_model())
    path = tmp_path / "run" / "training" / "negatives.parquet"
    written = path.read_bytes()
    columns = Dataset.from_parquet(str(path)).to_dict()
    Dataset.from_dict({name: texts[::-1] for name, texts in columns.items()}).to_parquet(str(path))
    changed = path.read_bytes()
    for content in (changed, written[: len(written) // 2], b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"negatives\.parquet is not as it was written.* --overwrite"):
            train(recipe, data, tmp_path / "run", model=make_model(), resume=True)
    path.write_bytes(written)
    assert train(recipe, data, tmp_path / "run", model=make_model(), resume=True).steps == 2


def test_data_that_do_not_fit(data: Any, make_model: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mined for transl.* koleo"):
        losses = {"losses.translation_ranking.weight": 0, "losses.koleo.weight": 1}
        load_recipe("tr", overrides={"negatives.count": 1, **losses})
    recipe = load_recipe("tr", overrides={**STEPS, "negatives.count": 30})
    with pytest.raises(ValueError, match=r"negatives\.count must be below .* got 30.* for 24 sources"):
        train(recipe, data, tmp_path / "run", model=make_model())
    with pytest.raises(ValueError, match="got a stream"):
        streamed = load_recipe("tr", overrides={**STEPS, "negatives.count": 1, "training.max_steps": 2})
        train(streamed, {"vi-en": data["vi-en"].to_iterable_dataset()}, tmp_path / "run", model=make_model())
