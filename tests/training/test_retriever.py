"""Retrievers: recipes, sources as one stream, runs with gradients together or one by one, resuming."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainingArguments
from sentence_transformers.base.evaluation import SequentialEvaluator
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.data.retrieval import load_retrieval_specs
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.losses import InBatchRankingLoss, LanguageContrastiveLoss, SemanticContrastiveLoss, Term
from st_xling.models import tiny_encoder
from st_xling.training import CrossLingualTrainer, retriever
from st_xling.training.recipe_files import recipe_kind, recipe_names
from tests.retrieval_files import ENGLISH, beir, translated
from tests.training.phrases import phrase_sources, small_encoder

NAMES = ["ir", "ir-langcl", "ir-semacl", "ir-semacl-langcl"]


def test_the_papers_weights() -> None:
    assert recipe_names("retriever") == NAMES
    weights = {"in_batch_ranking": 1.0, "semantic_contrastive": 0.01, "language_contrastive": 0.001}
    for name in NAMES:
        recipe = retriever.load_retrieval_recipe(name)
        assert len(recipe.losses) == 1 + name.count("-")
        assert all(options["weight"] == weights[loss] for loss, options in recipe.losses.items())
        arguments = recipe.arguments
        assert (arguments.per_device_train_batch_size, arguments.learning_rate, arguments.weight_decay) == (
            48,
            1e-5,
            0.01,
        )
        assert recipe.retrieval.encoders == "separate"


def test_recipes_that_are_refused() -> None:
    for key, value, message in (
        ("retrieval.encoders", "two", "retrieval.encoders .*'two'"),
        ("losses.translation_ranking.weight", 1, "losses of a retriever"),
        ("losses.MSELoss.weight", 1, "losses of a retriever has no key 'MSELoss'"),
        ("data.hard_negatives.num_negatives", 1, "negatives"),
        ("data.teacher.model", "some/encoder", "teacher"),
        ("arguments.lora.rank", 4, "no key 'lora' for retrievers"),
    ):
        with pytest.raises(ValueError, match=message):
            retriever.load_retrieval_recipe("ir-semacl", overrides={key: value})


RECIPE = retriever.load_retrieval_recipe("ir-semacl-langcl", overrides={"arguments.per_device_train_batch_size": 16})


def test_each_source_is_cycled() -> None:
    sources = phrase_sources(queries=48, parallel=64, others=40)
    stream = retriever.join_sources(sources, RECIPE)
    assert list(stream.features) == [
        "query", "passage", "semantic_source", "semantic_target", "language_source", "language_target", "other"
    ]  # fmt: skip
    rows = list(itertools.islice(stream, 16 * 60))
    for data, *columns in (
        (sources.queries, "query", "passage"),
        (sources.parallel, "semantic_source", "semantic_target"),
        (sources.parallel, "language_source", "language_target"),
        (sources.others, "other", "other"),
    ):
        expected = {pair for part in data.values() for pair in zip(part["source"][:], part["target"][:])}
        assert {tuple(row[name] for name in columns) for row in rows} == expected
    times = Counter(row["query"] for row in rows)
    assert max(times.values()) - min(times.values()) <= 8  # 20 each, but for what does not fill the last batch
    assert rows == list(itertools.islice(retriever.join_sources(sources, RECIPE), 16 * 60))
    assert "other" not in retriever.join_sources(phrase_sources(others=0), RECIPE).features


def with_negatives(sources: retriever.RetrievalSources, count: int = 2) -> retriever.RetrievalSources:
    """Passages of other queries, none of which is asked for, as negatives."""
    queries = sources.queries["en"]
    for number in range(1, count + 1):
        queries = queries.add_column(f"negative_{number}", [f"{number}: {text}" for text in queries["target"]])
    return retriever.RetrievalSources({"en": queries}, sources.parallel, sources.others)


def test_sources_that_do_not_fit_the_recipe() -> None:
    everything = phrase_sources()
    with_one, with_two = (with_negatives(everything, count).queries["en"] for count in (1, 2))
    for sources, name, message in (
        (phrase_sources(parallel=0, others=0), "ir-semacl", "learns from parallel text too"),
        (phrase_sources(others=0), "ir", "has no use for parallel text"),
        (everything, "ir-semacl", "has no use for other text"),
        (retriever.RetrievalSources({"en": with_one, "fi": with_two}), "ir", "got en 1, fi 2"),
    ):
        with pytest.raises(ValueError, match=message):
            sources.check(retriever.load_retrieval_recipe(name))
    few = retriever.RetrievalSources({"en": everything.queries["en"].select(range(8))})
    with pytest.raises(ValueError, match="too few distinct texts for a batch of 48"):
        next(iter(retriever.join_sources(few, retriever.load_retrieval_recipe("ir"))))


def test_hard_negatives_stay_with_their_query() -> None:
    sources = with_negatives(phrase_sources())
    stream = retriever.join_sources(sources, RECIPE)
    assert list(stream.features)[:4] == ["query", "passage", "negative_1", "negative_2"]
    for row in itertools.islice(stream, 16 * 10):
        assert (row["negative_1"], row["negative_2"]) == (f"1: {row['passage']}", f"2: {row['passage']}")
    assert sources.manifest()["queries:en"]["sha8"] != phrase_sources().manifest()["queries:en"]["sha8"]


STEPS = {"arguments.max_steps": 30, "arguments.logging_steps": 5, "arguments.eval_steps": 30}
TINY = {"vocabulary": 600, "hidden_size": 32, "layers": 2, "dropout": 0.0, "max_length": 64}


def features(model: Any, rows: list[dict[str, str]], *, routed: bool = False) -> list[dict[str, Any]]:
    names = list(rows[0])
    tasks = {name: ("query" if name == "query" else "document") if routed else None for name in names}
    return [model.preprocess([row[name] for row in rows], task=tasks[name]) for name in names]


def losses(model: Any) -> Any:
    ranking = InBatchRankingLoss(model).on(0, 1)
    semantic = 0.5 * SemanticContrastiveLoss(model).on(2, 3)
    return ranking + semantic + 0.25 * LanguageContrastiveLoss(model).on(4, 5, 6)


def gradients(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    recipe = retriever.load_retrieval_recipe(
        "ir-semacl-langcl", overrides={"arguments.per_device_train_batch_size": 12}
    )
    return list(itertools.islice(retriever.join_sources(phrase_sources(), recipe), 12))


def test_terms_one_by_one_have_the_gradient_of_the_sum(rows: list[dict[str, str]]) -> None:
    model = small_encoder(phrase_sources()).double()
    total = losses(model)(features(model, rows))
    sum(total.values()).backward()
    expected = gradients(model)
    model.zero_grad()
    values = retriever.TermByTermLoss(model, losses(model).term_list())(features(model, rows))
    sum(values.values()).backward()
    assert list(values) == list(total)
    for name, value in values.items():
        assert value.item() == pytest.approx(total[name].item(), rel=1e-9)
    for name, gradient in gradients(model).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12)


def test_contrastive_terms_teach_the_passage_encoder_alone(rows: list[dict[str, str]]) -> None:
    model = retriever.separate_encoders(small_encoder(phrase_sources()))
    term_by_term = retriever.TermByTermLoss(model, losses(model).term_list())
    for name in ("in_batch_ranking", "semantic_contrastive", "language_contrastive"):
        model.zero_grad()
        term_by_term(features(model, rows, routed=True))[name].backward()
        moved = {key.split(".")[2] for key, gradient in gradients(model).items() if gradient.abs().sum() > 0}
        assert moved == ({"query", "document"} if name == "in_batch_ranking" else {"document"})


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[:3]), NAMES[3]])
def test_every_recipe_trains_on_the_phrasebook(name: str, tmp_path: Path) -> None:
    sources = phrase_sources(parallel=160 if name != "ir" else 0, others=70 if "langcl" in name else 0)
    recipe = retriever.load_retrieval_recipe(
        name, tiny=True, overrides={**STEPS, "arguments.per_device_train_batch_size": 24}
    )
    result = retriever.train_retrieval(recipe, sources, tmp_path / "run", model="tiny", tiny=TINY)
    logged = [entry for entry in result.history if "loss" in entry]
    assert result.steps == 30 and logged[-1]["loss"] < 0.7 * logged[0]["loss"]
    assert set(retriever.load_retrieval_recipe(name).losses) <= set(logged[0])
    loaded = SentenceTransformer(str(result.folder), device="cpu")
    model = result.model.cpu()
    text = "Das Haus."
    assert isinstance(loaded[0], Router)
    assert (loaded.encode(text) == model.encode(text)).all()
    assert (loaded.encode_query(text) == model.encode_query(text)).all()
    assert abs(loaded.encode_query(text) - loaded.encode_document(text)).max() > 1e-6


def test_queries_that_evaluate_the_run_are_looked_for(tmp_path: Path) -> None:
    translated(tmp_path / "set", texts=ENGLISH)
    evaluator = RetrievalEvaluator(load_retrieval_specs([f"en={tmp_path / 'set'}"]), name="dev")
    queries = list(evaluator.sets[0].queries["en"].values())[:2]
    sources = phrase_sources(queries=20, parallel=0, others=0)
    leaking = sources.queries["en"].map(
        lambda row, at: {"source": queries[at].upper()} if at < 2 else {}, with_indices=True
    )
    steps = {"arguments.max_steps": 1, "arguments.per_device_train_batch_size": 4}
    recipe = retriever.load_retrieval_recipe("ir", tiny=True, overrides=steps)
    options: dict[str, Any] = {"model": "tiny", "tiny": TINY, "evaluator": SequentialEvaluator([evaluator])}
    sources = retriever.RetrievalSources({"en": leaking})
    retriever.train_retrieval(recipe, sources, tmp_path / "run", **options, on_leak="drop")
    leak = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))["leak"]
    assert leak["dropped"] and leak["sets"]["dev en, queries en"]["text"]["leaked"] == 2
    manifest = json.loads((tmp_path / "run" / "training" / "run.json").read_text("utf-8"))
    assert manifest["data"]["queries:en"]["rows"] == 18


def test_terms_are_differentiated_one_after_the_other(tmp_path: Path) -> None:
    """Hu et al. 2023, section 3.4: the graph of a term is gone before the next one is computed, in its memory alone.

    Gradients are those of one backward pass through the sum, but for rounding, and the log has the same components.
    """
    steps: list[str] = []
    gradients: dict[type, dict[str, torch.Tensor]] = {}
    logs: dict[type, dict[str, float]] = {}
    for kind in (retriever.RetrievalTrainer, CrossLingualTrainer):
        model = tiny_encoder(["Der Hund schläft.", "The dog sleeps."], vocabulary=60, hidden_size=16, dropout=0.0)
        terms = [
            Term(InBatchRankingLoss(model), 1.0, (0, 1), name="in_batch_ranking"),
            Term(SemanticContrastiveLoss(model), 0.5, (2, 3), name="semantic_contrastive"),
        ]
        loss = retriever.TermByTermLoss(model, terms)
        for term in loss.term_list():
            term.loss.register_forward_hook(lambda *_, name=term.name: steps.append(name))
        table = model[0].auto_model.get_input_embeddings().weight
        table.register_post_accumulate_grad_hook(lambda _: steps.append("backward"))
        texts = ["Der Hund.", "Das Buch.", "Ein Haus.", "Die Katze."]
        rows = Dataset.from_dict({name: texts for name in ("query", "passage", "semantic_source", "semantic_target")})
        arguments = SentenceTransformerTrainingArguments(
            str(tmp_path), max_steps=1, logging_steps=1, save_strategy="no", report_to="none", use_cpu=True
        )
        trainer = kind(model=model, args=arguments, train_dataset=rows, loss=loss)
        kept: dict[str, torch.Tensor] = {}
        for name, part in model.named_parameters():
            part.register_post_accumulate_grad_hook(
                lambda part, name=name, kept=kept: kept.update({name: part.grad.clone()})
            )
        trainer.train()
        gradients[kind], logs[kind] = kept, trainer.state.log_history[0]
        expected = ["in_batch_ranking", "backward", "semantic_contrastive", "backward"]
        assert steps == (expected if kind is retriever.RetrievalTrainer else [*expected[::2], "backward"])
        steps.clear()
    assert gradients[retriever.RetrievalTrainer].keys() == gradients[CrossLingualTrainer].keys()
    for name, gradient in gradients[retriever.RetrievalTrainer].items():
        torch.testing.assert_close(gradient, gradients[CrossLingualTrainer][name], rtol=0, atol=1e-6)
    for name in ("loss", "in_batch_ranking", "semantic_contrastive"):
        assert logs[retriever.RetrievalTrainer][name] == pytest.approx(logs[CrossLingualTrainer][name], abs=1e-4)


class SavedTensors:
    """Bytes that autograd keeps for backward passes: now, and at most."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def pack(self, tensor: torch.Tensor) -> "_Kept":
        return _Kept(self, tensor)

    @staticmethod
    def unpack(kept: "_Kept") -> torch.Tensor:
        return kept.tensor


class _Kept:
    def __init__(self, count: SavedTensors, tensor: torch.Tensor) -> None:
        self.count = count
        self.tensor = tensor
        count.now += tensor.nbytes
        count.peak = max(count.peak, count.now)

    def __del__(self) -> None:  # with its node of the graph
        self.count.now -= self.tensor.nbytes


def test_the_memory_is_that_of_the_largest_term(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    """The graphs of all three terms were kept until one backward pass, three times what the paper's training needs."""

    def peak(kind: Any, names: list[str]) -> int:
        model = small_encoder(phrase_sources())
        terms = [term for term in losses(model).term_list() if term.name in names]
        loss = retriever.TermByTermLoss(model, terms)
        arguments = SentenceTransformerTrainingArguments(
            str(tmp_path),
            max_steps=2,
            per_device_train_batch_size=12,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
        )
        count = SavedTensors()
        trainer = kind(model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=loss)
        with torch.autograd.graph.saved_tensors_hooks(count.pack, count.unpack):
            trainer.train()
        assert count.now < 0.1 * count.peak  # the last graph is gone
        return count.peak

    names = ["in_batch_ranking", "semantic_contrastive", "language_contrastive"]
    alone = [peak(CrossLingualTrainer, [name]) for name in names]
    together = peak(CrossLingualTrainer, names)
    assert together == pytest.approx(sum(alone), rel=0.02)
    assert peak(retriever.RetrievalTrainer, names) == pytest.approx(max(alone), rel=0.02)
    assert max(alone) < 0.6 * together


def test_options_and_files(tmp_path: Path) -> None:
    changes = {"retrieval.encoders": "shared", "losses.semantic_contrastive.weight": 0}
    recipe = retriever.load_retrieval_recipe("ir-semacl", tiny=True, overrides=changes)
    assert list(recipe.losses) == ["in_batch_ranking"] and recipe.as_dict()["retrieval"] == {"encoders": "shared"}
    recipe_file = tmp_path / "own.yaml"
    recipe_file.write_text("losses: {in_batch_ranking: {scale: 5}}\nretrieval: {encoders: shared}\n", encoding="utf-8")
    assert (
        recipe_kind(str(recipe_file)) == "retriever" and retriever.load_retrieval_recipe(str(recipe_file)).name == "own"
    )


def test_a_negative_is_no_other_rows_passage() -> None:
    """In a batch it would count as wrong what is right for the other query."""
    queries = phrase_sources(queries=48).queries["en"]
    texts = queries["target"][:]
    sources = retriever.RetrievalSources({"en": queries.add_column("negative_1", [*texts[1:], texts[0]])})
    recipe = retriever.load_retrieval_recipe("ir", overrides={"arguments.per_device_train_batch_size": 8})
    rows = list(itertools.islice(retriever.join_sources(sources, recipe), 8 * 12))
    for start in range(0, len(rows), 8):
        batch = rows[start : start + 8]
        assert len({text for row in batch for text in (row["passage"], row["negative_1"])}) == 16


@pytest.mark.slow
def test_the_best_checkpoint_is_that_of_retrieval(tmp_path: Path) -> None:
    held = phrase_sources(queries=40, parallel=0, others=0).queries["en"]
    passages = {f"p{row}": text for row, text in enumerate(held["target"][:])}
    queries = {f"q{row}": text for row, text in enumerate(held["source"][:])}
    folder = beir(tmp_path / "dev", passages, {"en": queries}, [(f"q{row}", f"p{row}", 1) for row in range(40)])
    evaluator = RetrievalEvaluator(load_retrieval_specs([f"en={folder}"]), name="dev")
    sources = phrase_sources(parallel=0, others=0)
    before = evaluator(small_encoder(sources))[evaluator.primary_metric]
    steps = {**STEPS, "arguments.eval_steps": 15, "arguments.per_device_train_batch_size": 24}
    recipe = retriever.load_retrieval_recipe("ir", tiny=True, overrides=steps)
    model = small_encoder(sources)
    out = tmp_path / "run"
    result = retriever.train_retrieval(recipe, sources, out, model=model, evaluator=evaluator)
    assert result.best is not None and result.best > before
    assert evaluator(result.model)[evaluator.primary_metric] == pytest.approx(result.best)
