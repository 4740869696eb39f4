"""Everything once, on the phrasebook: train DAP, evaluate it, mine with it, save it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

    from st_xling.evaluation.results import EvaluationResult

LANGUAGES = ("de", "fr", "es", "vi", "zh")


@dataclass(frozen=True)
class DemoSize:
    """Amount of text that the demo uses.

    Attributes:
        train: Training pairs a language.
        test: Unseen pairs a language, all candidates of one another: chance is one in this many.
        mining: Sentences a side and language in the text to mine.
        gold: Translation pairs hidden in it.
        epochs: Passes over the training pairs.
    """

    train: int = 4000
    test: int = 500
    mining: int = 600
    gold: int = 100
    epochs: float = 2.0


def run_demo(out: str | Path, *, size: DemoSize = DemoSize(), seed: int = 0, overwrite: bool = False) -> dict[str, Any]:
    """Train a tiny DAP encoder on the phrasebook and evaluate it before and after.

    Args:
        out: Folder for the model, ``results.json``, card and pictures.
        size: How much text.
        seed: Seed of text, weights and training.
        overwrite: Replace an earlier demo in ``out``.

    Returns:
        The content of ``results.json``: ``tatoeba.before|after.LANG.to_en|from_en``, and
        ``mining.languages.LANG.precision|recall|f1|threshold|mined|correct`` with averages over the languages in
        ``mining.precision|recall|f1``; each with its signature.
    """
    from st_xling.data import load_data_specs
    from st_xling.evaluation import BuccEvaluator, TatoebaEvaluator
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.evaluation.results import SavedResults
    from st_xling.hub import CardOptions, write_card
    from st_xling.hub.card_facts import PHRASEBOOK_LICENSE
    from st_xling.training import load_recipe, train
    from st_xling.utils.io import write_json

    out = Path(out)
    languages = ",".join(LANGUAGES)
    spec = f"phrasebook:{languages}?size={size.train}&split=train&seed={seed}"
    data = load_data_specs([spec])
    dev = _load_pairs("dev", min(100, size.test), seed)
    test = _load_pairs("test", size.test, seed)
    picture = TrainingPicture(test, "DAP", start="random weights")
    retrieval = TatoebaEvaluator(test, data_name="phrasebook-test")
    before: list[EvaluationResult] = []

    def begin(model: SentenceTransformer, training: Path) -> None:
        before.append(retrieval.evaluate(model))
        picture.begin(model, training)

    settings = {"arguments.num_train_epochs": size.epochs, "arguments.seed": seed}
    result = train(
        load_recipe("dap", tiny=True, overrides=settings),
        data,
        out,
        model="tiny",
        # Without dropout: the text is endless, so there is nothing to overfit, and few steps to waste.
        tiny={"vocabulary": 4000, "hidden_size": 128, "layers": 2, "dropout": 0.0},
        evaluator=TatoebaEvaluator(dev, name="dev"),
        evaluation={f"test {language}": pairs for language, pairs in test.items()},
        on_leak="drop",
        overwrite=overwrite,
        command=_command(seed),
        provenance=[{"option": "data", "spec": spec, "names": list(data)}],
        begin=begin,
    )
    picture.end(result.model, out)
    after = retrieval.evaluate(result.model)
    mining = BuccEvaluator.from_spec(f"phrasebook:{languages}?size={size.mining}&gold={size.gold}&seed={seed}")
    mined = mining.evaluate(result.model)
    with_histograms = replace(mined, metrics={**mined.metrics, "histograms": mined.histograms})
    results = {
        "tatoeba": {
            "before": _accuracy_by_language(before[0]),
            "after": _accuracy_by_language(after),
            "signature": after.signature,
        },
        "mining": _mining_results(mined),
        **json.loads((out / "results.json").read_text(encoding="utf-8")),
        "evaluations": [
            asdict(SavedResults.of("tatoeba", after, _command(seed))),
            asdict(SavedResults.of("bucc", with_histograms, _command(seed))),
        ],
        "example": [test["de"][0]["source"], test["de"][0]["target"]],
    }
    write_json(out / "results.json", results)
    write_card(out, options=CardOptions(data_licenses=dict.fromkeys(data, PHRASEBOOK_LICENSE)))
    return results


def _command(seed: int) -> str:
    return f"st-xling demo --seed {seed}" if seed else "st-xling demo"


def _load_pairs(split: str, size: int, seed: int) -> dict[str, Dataset]:
    from st_xling.data.phrasebook import parallel_phrases

    return {language: parallel_phrases(language, "en", split=split, size=size, seed=seed) for language in LANGUAGES}


def _mining_results(result: EvaluationResult) -> dict[str, Any]:
    """Return measures by language, and the averages over languages."""
    names = ("precision", "recall", "f1", "threshold", "mined", "correct")
    measures = {row.label.partition("-")[0]: dict(zip(names, row.values)) for row in result.rows}
    average = measures.pop("all")
    means = {name: average[name] for name in ("precision", "recall", "f1")}
    return {**means, "languages": measures, "signature": result.signature}


def _accuracy_by_language(result: EvaluationResult) -> dict[str, dict[str, float | None]]:
    from st_xling.evaluation.tatoeba import resolve_languages

    codes = dict(zip(resolve_languages(LANGUAGES), LANGUAGES))
    accuracy = {}
    for row in result.rows:
        if not row.average:
            to_english, from_english, *_ = row.values
            accuracy[codes[row.label]] = {"to_en": to_english, "from_en": from_english}
    return accuracy


def demo_table(results: dict[str, Any]) -> str:
    """Format the results of the demo as text."""
    tatoeba = results["tatoeba"]
    mining = results["mining"]
    head = ["language", "before: to en", "before: from en", "after: to en", "after: from en"]
    rows = []
    for language in LANGUAGES:
        before = tatoeba["before"][language]
        after = tatoeba["after"][language]
        accuracies = [before["to_en"], before["from_en"], after["to_en"], after["from_en"]]
        rows.append([language, *(100 * accuracy for accuracy in accuracies)])
    mined_head = ["language", "pairs mined", "correct", "precision", "recall", "F1"]
    mined_rows = []
    for language, measures in mining["languages"].items():
        counts = [f"{measures[key]:.0f}" for key in ("mined", "correct")]
        shares = [100 * measures[key] for key in ("precision", "recall", "f1")]
        mined_rows.append([language, *counts, *shares])
    return f"""Translation retrieval on unseen meanings, accuracy in % (P@1)
{format_table(head, rows)}
{tatoeba["signature"]}

Mining unseen text, thresholds chosen on the dev split, in %
{format_table(mined_head, mined_rows)}
mean F1 {100 * mining["f1"]:.1f}
{mining["signature"]}"""


def usage_lines(out: str | Path, examples: Sequence[str]) -> str:
    """Return three lines of Python that use the saved model with only sentence-transformers."""
    return f"""from sentence_transformers import SentenceTransformer
model = SentenceTransformer({str(out)!r})
print(model.similarity(*model.encode({list(examples)!r})))"""
