"""Runs of retrievers: gradients together or one by one, one encoder or two, all recipes, resuming."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.data.retrieval import read_retrieval_set
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.losses import InBatchRankingLoss, LanguageContrastiveLoss, SemanticContrastiveLoss
from st_xling.training import TrainingResult
from st_xling.training.retriever import (
    RetrievalSources,
    TermByTermLoss,
    join_sources,
    load_retrieval_recipe,
    retrieval_recipe_names,
    separate_encoders,
    train_retrieval,
)
from tests.retrieval_files import beir
from tests.training.retriever.phrases import phrase_sources, phrases, small_encoder

STEPS = {"training.max_steps": 30, "training.batch_size": 24, "training.log_steps": 5, "training.eval_steps": 30}
TINY = {"vocabulary": 600, "hidden_size": 32, "layers": 2, "dropout": 0.0, "max_length": 64}


def run(name: str, out: Path, sources: Any, **changes: Any) -> TrainingResult:
    options = {key.replace("__", "."): value for key, value in changes.items()}
    recipe = load_retrieval_recipe(name, tiny=True, overrides={**STEPS, **options})
    return train_retrieval(recipe, sources, out, tiny=TINY)


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def features(model: Any, rows: list[dict[str, str]], *, routed: bool = False) -> list[dict[str, Any]]:
    names = list(rows[0])
    tasks = {name: ("query" if name == "query" else "document") if routed else None for name in names}
    return [model.preprocess([row[name] for row in rows], task=tasks[name]) for name in names]


def losses(model: Any, kind: type | None = None) -> Any:
    total = (
        InBatchRankingLoss(model).on(0, 1)
        + 0.5 * SemanticContrastiveLoss(model).on(2, 3)
        + 0.25 * LanguageContrastiveLoss(model).on(4, 5, 6)
    )
    return total if kind is None else kind(model, total.term_list())


def gradients(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    recipe = load_retrieval_recipe("ir-semacl-langcl", overrides={"training.batch_size": 12})
    return list(itertools.islice(join_sources(phrase_sources(), recipe), 12))


def test_terms_one_by_one_have_the_gradient_of_the_sum(rows: list[dict[str, str]]) -> None:
    model = small_encoder(phrase_sources()).double()
    whole = losses(model)(features(model, rows))
    sum(whole.values()).backward()
    expected = gradients(model)
    for one_by_one in (False, True):
        model.zero_grad()
        own = losses(model, TermByTermLoss)
        values: dict[str, torch.Tensor] = {}
        for name in own.names if one_by_one else [None]:
            own.only = name
            found = own(features(model, rows))
            sum(found.values()).backward()
            values |= found
        assert list(values) == list(whole)
        for name, value in values.items():
            assert value.item() == pytest.approx(whole[name].item(), rel=1e-9)
        for name, gradient in gradients(model).items():
            torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12)


def test_contrastive_terms_teach_the_passage_encoder_alone(rows: list[dict[str, str]]) -> None:
    model = separate_encoders(small_encoder(phrase_sources()))
    own = losses(model, TermByTermLoss)
    for name, taught in (("in_batch_ranking", {"query", "document"}), ("semantic_contrastive", {"document"}),
                         ("language_contrastive", {"document"})):  # fmt: skip
        model.zero_grad()
        own.only = name
        sum(own(features(model, rows, routed=True)).values()).backward()
        moved = {key.split(".")[2] for key, gradient in gradients(model).items() if gradient.abs().sum() > 0}
        assert moved == taught


def test_steps_are_the_same_together_and_one_by_one(tmp_path: Path) -> None:
    """AdamW divides by the gradient's size, so that rounding shows: few steps, and no equality to the last bit."""
    sources, few = phrase_sources(), {"training__max_steps": 4, "training__log_steps": 1, "training__eval_steps": 4}
    results = {
        way: run("ir-semacl-langcl", tmp_path / way, sources, retrieval__gradients=way, **few)
        for way in ("one_by_one", "together")
    }
    first, second = (weights(result.model) for result in results.values())
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], rtol=1e-3, atol=1e-4)
    logs = [[entry for entry in result.history if "loss" in entry] for result in results.values()]
    for left, right in zip(*logs, strict=True):
        names = ("loss", "in_batch_ranking", "semantic_contrastive", "language_contrastive")
        for name in names:
            assert left[name] == pytest.approx(right[name], rel=2e-3)
        assert left["loss"] == pytest.approx(sum(left[name] for name in names[1:]), rel=1e-3)


@pytest.mark.parametrize("name", retrieval_recipe_names())
def test_every_recipe_trains_on_the_phrasebook(name: str, tmp_path: Path) -> None:
    sources = phrase_sources(parallel=160 if name != "ir" else 0, others=70 if "langcl" in name else 0)
    result = run(name, tmp_path / "run", sources)
    logged = [entry for entry in result.history if "loss" in entry]
    assert result.steps == 30 and logged[-1]["loss"] < 0.7 * logged[0]["loss"]
    assert set(load_retrieval_recipe(name).losses) <= set(logged[0])
    again = SentenceTransformer(str(result.folder), device="cpu").encode("Das Haus.", convert_to_tensor=True)
    assert torch.equal(again, result.model.cpu().encode("Das Haus.", convert_to_tensor=True))


def test_separate_encoders_are_stock_and_resume(tmp_path: Path) -> None:
    """A run that is stopped half-way and goes on ends with the weights of one that was not; a plain model is saved."""
    sources = phrase_sources()
    options: dict[str, Any] = {"training__max_steps": 6, "training__eval_steps": 3}
    options |= {"training__log_steps": 3, "training__keep_checkpoints": 2}
    whole = run("ir-semacl-langcl", tmp_path / "whole", sources, **options)
    loaded = SentenceTransformer(str(whole.folder), device="cpu")
    assert isinstance(loaded[0], Router)
    text = "The house is old."
    assert not torch.allclose(
        loaded.encode_query(text, convert_to_tensor=True), loaded.encode_document(text, convert_to_tensor=True)
    )
    recipe = load_retrieval_recipe(
        "ir-semacl-langcl", tiny=True, overrides={**STEPS, **{key.replace("__", "."): v for key, v in options.items()}}
    )
    stopped = tmp_path / "stopped"
    run("ir-semacl-langcl", stopped, sources, **options)
    manifest = stopped / "training" / "run.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"finished": true', '"finished": false'), "utf-8")
    shutil.rmtree(stopped / "training" / "checkpoint-6")
    resumed = train_retrieval(recipe, sources, stopped, tiny=TINY, resume=True)
    for name, value in weights(whole.model).items():
        torch.testing.assert_close(value.cpu(), weights(resumed.model)[name].cpu(), rtol=0, atol=0)


def test_batches_of_unequal_size_and_hard_negatives(tmp_path: Path) -> None:
    """What the loss sees of a step: 8 queries, 8 passages, 8 negatives; 20 pairs of parallel text."""
    sources = phrase_sources()
    asked = sources.queries["en"].add_column(
        "negative_1", [f"Nicht: {text}" for text in sources.queries["en"]["target"]]
    )
    sources = RetrievalSources({"en": asked}, sources.parallel, sources.others)
    seen: dict[str, set[tuple[int, ...]]] = {}
    rows: Any = lambda self, batch, labels: seen.setdefault(type(self).__name__, set()).add(  # noqa: E731
        tuple(len(column["sentence_embedding"]) for column in batch)
    )
    with pytest.MonkeyPatch.context() as patch:
        for kind in (InBatchRankingLoss, SemanticContrastiveLoss, LanguageContrastiveLoss):
            own = kind.compute_loss
            patch.setattr(kind, "compute_loss", lambda *given, own=own: (rows(*given), own(*given))[1])
        result = run(
            "ir-semacl-langcl", tmp_path / "run", sources, training__max_steps=3, training__batch_size=8,
            retrieval__parallel_batch_size=20,
        )  # fmt: skip
    assert result.steps == 3
    assert seen == {
        "InBatchRankingLoss": {(8, 8, 8)},
        "SemanticContrastiveLoss": {(20, 20)},
        "LanguageContrastiveLoss": {(20, 20, 20)},
    }


def test_the_best_checkpoint_by_retrieval(tmp_path: Path) -> None:
    held = phrases("de", 40, split="dev")
    passages = {f"p{row}": text for row, text in enumerate(held["source"][:])}
    asked = {f"q{row}": text for row, text in enumerate(held["target"][:])}
    folder = beir(tmp_path / "dev", passages, {"en": asked}, [(f"q{row}", f"p{row}", 1) for row in range(40)])
    evaluator = RetrievalEvaluator([read_retrieval_set(folder, language="de")], name="dev", write_csv=False)
    sources = phrase_sources(parallel=0, others=0)
    before = evaluator(small_encoder(sources))["dev_mean_MRR@100"]
    recipe = load_retrieval_recipe("ir", tiny=True, overrides={**STEPS, "training.eval_steps": 15})
    result = train_retrieval(recipe, sources, tmp_path / "run", model=small_encoder(sources), evaluator=evaluator)
    assert result.best is not None and result.best > before
    assert evaluator(result.model)["dev_mean_MRR@100"] == pytest.approx(result.best)


def test_what_is_refused(tmp_path: Path) -> None:
    sources, recipe = phrase_sources(), load_retrieval_recipe("ir-semacl-langcl", overrides=STEPS)
    with pytest.raises(ValueError, match="tiny options shape the model 'tiny' only"):
        train_retrieval(recipe, sources, tmp_path / "a", model="some/model", tiny=TINY)
    shared = load_retrieval_recipe("ir-semacl-langcl", overrides={**STEPS, "retrieval.encoders": "shared"})
    with pytest.raises(ValueError, match="this model has separate encoders"):
        train_retrieval(shared, sources, tmp_path / "b", model=separate_encoders(small_encoder(sources)))
    assert not (tmp_path / "b").exists()


def test_separate_encoders_keep_the_prompts(make_model: Any) -> None:
    model = make_model()
    model.prompts |= {"query": "q: ", "document": "d: ", "other": "o: "}
    model.default_prompt_name = "other"
    both = separate_encoders(model)
    assert both.prompts == model.prompts and both.default_prompt_name == "other"
