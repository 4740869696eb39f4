"""Every shipped recipe trains on the phrasebook: its loss falls and retrieval beats the untrained encoder's."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import TatoebaEvaluator
from st_xling.models import VocabularyHead, backbone, load_encoder, tiny_encoder
from st_xling.training import load_recipe, recipe_names, train

ABLATION = {
    "amber: MLM": {"losses.tlm.weight": 0, "losses.word_alignment.weight": 0, "losses.translation_ranking.weight": 0},
    "amber: MLM+TLM": {"losses.word_alignment.weight": 0, "losses.translation_ranking.weight": 0},
    "amber: MLM+TLM+WA": {"losses.translation_ranking.weight": 0},
    "dap: cached": {"arguments.mini_batch_size": 16},
    "dap: cached by tokens": {"arguments.mini_batch_num_tokens": 400},
}
# The rate of the recipe static is for a table of vectors, far too high for the layers here.
RUNS = {**{name: {} for name in recipe_names() if name != "static"}, **ABLATION}
WITHOUT_RETRIEVAL = {"amber: MLM", "amber: MLM+TLM", "amber: MLM+TLM+WA", "langcl"}
"""Runs without a term that draws translations together: in so few steps their retrieval need not improve."""


@pytest.fixture(scope="module")
def phrases() -> dict[str, Any]:
    return {
        split: {language: parallel_phrases(language, "en", split=split, size=size) for language in ("de", "zh")}
        for split, size in (("train", 240), ("test", 60))
    }


EVERYDAY = {"dap", "semacl-langcl"}
NAMES = [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_falls_and_retrieval_improves(name: str, phrases: dict[str, Any], tmp_path: Path) -> None:
    steps = {"max_steps": 40, "per_device_train_batch_size": 32, "logging_steps": 5, "eval_steps": 40}
    changes = {f"arguments.{key}": value for key, value in steps.items()} | RUNS[name]
    recipe = load_recipe(name.split(":")[0], tiny=True, overrides=changes)
    data = phrases["train"]
    texts = [text for part in data.values() for side in ("source", "target") for text in part[side][:]]
    model = tiny_encoder(texts, vocabulary=600, hidden_size=32, layers=2, dropout=0.0)
    evaluator = TatoebaEvaluator(phrases["test"], name="test")
    before = evaluator(model)["test_mean_accuracy"]
    options: dict[str, Any] = {}
    if recipe.taught:
        teacher = tiny_encoder(texts, vocabulary=600, hidden_size=32, layers=2, seed=1)
        options = {"teacher": teacher, "cache": tmp_path / "cache"}
    result = train(recipe, data, tmp_path / "run", model=model, **options)
    logged = [entry["loss"] for entry in result.history if "loss" in entry]
    components = next(entry for entry in result.history if "loss" in entry)
    assert set(recipe.losses) <= set(components)
    assert logged[-1] < logged[0]
    if name not in WITHOUT_RETRIEVAL:
        assert evaluator(result.model)["test_mean_accuracy"] > before


def test_the_next_run_starts_from_a_saved_vocabulary_head(phrases: dict[str, Any], tmp_path: Path) -> None:
    steps = {"arguments.max_steps": 2, "arguments.save_vocabulary_head": True}
    tiny = {"vocabulary": 600, "hidden_size": 32, "layers": 2}
    with pytest.raises(ValueError, match="save_vocabulary_head takes the loss mlm or tlm"):
        train(load_recipe("tr", overrides=steps), phrases["train"], tmp_path / "tr", model="tiny", tiny=tiny)
    mlm = load_recipe("amber", tiny=True, overrides={**steps, **ABLATION["amber: MLM"]})
    train(mlm, phrases["train"], tmp_path / "mlm", model="tiny", tiny=tiny)
    head = VocabularyHead(backbone(load_encoder(str(tmp_path / "mlm"))))
    assert head.origin.startswith("from") and head.bias.abs().sum() > 0  # trained: new ones are zero
    reloaded, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "mlm", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert torch.equal(reloaded.get_output_embeddings().bias, head.bias)
