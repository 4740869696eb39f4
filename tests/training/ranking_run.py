"""A small run of a cross-encoder: sentences and their translations as queries and passages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.reranking.pairs import AlignedPairs, labeled_dataset
from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.training.reranker import load_cross_encoder_recipe, train_cross_encoder

TINY = {"hidden_size": 32, "layers": 1, "vocabulary": 300}


def sentences(rows: int = 24) -> tuple[list[str], list[str]]:
    data = parallel_phrases("de", "en", size=rows)
    return list(data["source"]), list(data["target"])


def aligned(rows: int = 16) -> AlignedPairs:
    """Every German and English sentence with itself, and with the next one: half of the labels are 0."""
    german, english = sentences(rows)
    sides = {"de": german * 2, "en": english * 2}
    passages = {name: texts[:rows] + texts[1:rows] + texts[:1] for name, texts in sides.items()}
    return AlignedPairs(queries=sides, passages=passages, labels=[1] * rows + [0] * rows)


def xpi_rows(rows: int = 12) -> Dataset:
    german, english = sentences(rows)
    labels = [1] * rows + [0] * rows
    return labeled_dataset(
        german * 2, english + english[1:] + english[:1], labels, ["de"] * 2 * rows, ["en"] * 2 * rows
    )


def judge() -> CrossEncoderRerankingEvaluator:
    german, english = sentences()
    samples = [
        {"query": query, "positive": [passage], "negative": english[:6]}
        for query, passage in zip(german[8:], english[8:])
    ]
    return CrossEncoderRerankingEvaluator(samples, name="dev", write_csv=False)  # type: ignore[arg-type]


def run(out: Path, name: str = "xpr-mixed", *, judged: bool = True, **options: Any) -> Any:
    """Train ``name`` for a few steps; dotted options as ``training__max_steps=4``; others are the function's own."""
    steps = {
        "training.max_steps": 4,
        "training.eval_steps": 2,
        "training.logging_steps": 1,
        "training.per_device_train_batch_size": 8,
    }
    fast = {"training.learning_rate": 1e-2, "training.save_total_limit": 10, "model.max_length": 64}
    dotted = {
        key.replace("__", "."): options.pop(key) for key in list(options) if "__" in key or key in ("head", "loss")
    }
    recipe = load_cross_encoder_recipe(name, tiny=True, overrides={**steps, **fast, **dotted})
    stages = options.pop("stages", None) or STRATEGIES[recipe.strategy](aligned(), seed=0)
    start = options.pop("model", "tiny")
    return train_cross_encoder(
        recipe,
        stages,
        out,
        model=start,
        tiny=TINY if start == "tiny" else None,
        evaluator=judge() if judged else None,
        **options,
    )
