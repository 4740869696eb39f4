"""A small run of a cross-encoder: sentences and their translations as queries and passages."""

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
    labels, passages = [1] * rows + [0] * rows, english + english[1:] + english[:1]
    return labeled_dataset(german * 2, passages, labels, ["de"] * 2 * rows, ["en"] * 2 * rows)


def judge() -> CrossEncoderRerankingEvaluator:
    german, english = sentences()
    pairs = zip(german[8:], english[8:])
    samples = [{"query": query, "positive": [passage], "negative": english[:6]} for query, passage in pairs]
    return CrossEncoderRerankingEvaluator(samples, name="dev", write_csv=False)  # type: ignore[arg-type]


def run(out: Path, name: str = "xpr-mixed", *, judged: bool = True, **options: Any) -> Any:
    """Train ``name`` for a few steps; dotted options as ``arguments__max_steps=4``; others are the function's own."""
    steps = {"max_steps": 4, "eval_steps": 2, "logging_steps": 1, "per_device_train_batch_size": 8}
    fast = {
        f"arguments.{key}": value for key, value in {**steps, "learning_rate": 1e-2, "save_total_limit": 10}.items()
    }
    keys = [key for key in options if "__" in key or key in ("head", "loss")]
    dotted = {key.replace("__", "."): options.pop(key) for key in keys}
    recipe = load_cross_encoder_recipe(name, tiny=True, overrides={**fast, "model.max_length": 64, **dotted})
    stages = options.pop("stages", None) or STRATEGIES[recipe.strategy](aligned(), seed=0)
    start = {"model": "tiny", "tiny": TINY} if "model" not in options else {}
    options = {"evaluator": judge() if judged else None, **start, **options}
    return train_cross_encoder(recipe, stages, out, **options)
