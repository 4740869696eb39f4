"""Everything once, on the phrasebook: train DAP, evaluate it, mine with it, save it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.utils.signature import sign
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
        seed: Of text, weights and training.
        overwrite: Replace an earlier demo in ``out``.

    Returns:
        What ``results.json`` holds: ``tatoeba.before|after.LANG.to_en|from_en`` and
        ``mining.precision|recall|f1|threshold``, each with its signature.
    """
    from st_xling.data import load_data_specs
    from st_xling.evaluation import TatoebaEvaluator
    from st_xling.evaluation.pictures import TrainingPicture
    from st_xling.evaluation.results import SavedResults
    from st_xling.hub import CardOptions, write_card
    from st_xling.hub.card_facts import PHRASEBOOK_LICENSE
    from st_xling.training import load_recipe, train
    from st_xling.utils.io import write_json

    out = Path(out)
    data = load_data_specs([f"phrasebook:{','.join(LANGUAGES)}?size={size.train}&split=train&seed={seed}"])
    test = _pairs("test", size.test, seed)
    recipe = load_recipe("dap", tiny=True, overrides={"training.num_train_epochs": size.epochs, "training.seed": seed})
    model = _encoder(data, seed)
    evaluator = TatoebaEvaluator(test, name="phrasebook-test")
    before, picture = evaluator.evaluate(model), TrainingPicture(test, "DAP")
    result = train(
        recipe,
        data,
        out,
        model=model,
        evaluator=TatoebaEvaluator(_pairs("dev", min(100, size.test), seed), name="dev"),
        overwrite=overwrite,
        command=_command(seed),
        begin=picture.begin,
    )
    picture.end(result.model, out)
    after, mining = evaluator.evaluate(result.model), mine_phrases(result.model, size, seed=seed)
    results = {
        "tatoeba": {**_by_language(before=before, after=after), "signature": evaluator.signature},
        "mining": mining,
        **json.loads((out / "results.json").read_text(encoding="utf-8")),
        "evaluations": [
            asdict(SavedResults.of("tatoeba", after, _command(seed))),
            asdict(SavedResults.of("bucc", _mining_result(mining), _command(seed))),
        ],
        "example": [test["de"][0]["source"], test["de"][0]["target"]],
    }
    write_json(out / "results.json", results)
    write_card(out, options=CardOptions(data_licenses=dict.fromkeys(data, PHRASEBOOK_LICENSE)))
    return results


def _command(seed: int) -> str:
    return f"st-xling demo --seed {seed}" if seed else "st-xling demo"


def _mining_result(mining: dict[str, Any]) -> EvaluationResult:
    """Return the results as a BUCC evaluator does; the threshold is the same for all languages."""
    from st_xling.evaluation.bucc import mining_rows
    from st_xling.evaluation.results import EvaluationResult

    means = {key: mining[key] for key in ("precision", "recall", "f1")}
    values = {f"{code}-en": {**own, "threshold": mining["threshold"]} for code, own in mining["languages"].items()}
    metrics = {f"mining_{key}": value for key, value in means.items()}
    metrics |= {f"mining_{pair}_{key}": value for pair, own in values.items() for key, value in own.items()}
    return EvaluationResult(metrics, *mining_rows(values, means, "dev"), mining["signature"])


def _pairs(split: str, size: int, seed: int) -> dict[str, Dataset]:
    from st_xling.data.phrasebook import parallel_phrases

    return {language: parallel_phrases(language, "en", split=split, size=size, seed=seed) for language in LANGUAGES}


def _encoder(data: dict[str, Dataset], seed: int) -> SentenceTransformer:
    from st_xling.models import tiny_encoder
    from st_xling.training.mixture import mix

    pairs = mix(data)
    # Without dropout: the text is endless, so there is nothing to overfit, and few steps to waste.
    return tiny_encoder(
        [*pairs["source"][:], *pairs["target"][:]], vocabulary=4000, hidden_size=128, layers=2, dropout=0.0, seed=seed
    )


def mine_phrases(model: SentenceTransformer, size: DemoSize, *, seed: int) -> dict[str, Any]:
    """Mine unpaired test text of every language, with the threshold that served the development text best.

    Returns:
        ``threshold`` and, over all languages together, ``precision``, ``recall`` and ``f1`` on the test text; the same
        for each language; counts and signature.
    """
    from st_xling.evaluation import BuccEvaluator
    from st_xling.evaluation.measures import EvaluatedPairs

    spec = f"phrasebook:{','.join(LANGUAGES)}?size={size.mining}&gold={size.gold}&seed={seed}"
    evaluator = BuccEvaluator.from_spec(spec)

    def joined(parts: Iterable[EvaluatedPairs]) -> EvaluatedPairs:
        scores, is_correct, n_gold = zip(*((part.scores, part.is_correct, part.n_gold) for part in parts))
        return EvaluatedPairs(np.concatenate(scores), np.concatenate(is_correct), sum(n_gold))

    test = evaluator.mined(model, evaluator.corpora)
    threshold = joined(evaluator.mined(model, evaluator.train or {}).values()).best().threshold
    every = joined(test.values()).at(threshold)
    languages = {pair.partition("-")[0]: _rates(pairs.at(threshold)) for pair, pairs in test.items()}
    return {
        **_rates(every),
        "threshold": threshold,
        "languages": languages,
        **{name: every[f"n_{name}"] for name in ("correct", "mined", "gold")},
        "signature": sign(
            "mining",
            margin="ratio",
            k=4,
            retrieval="max",
            threshold="dev",
            split="test",
            data=f"phrasebook-{size.mining}x{size.gold}-seed{seed}",
        ),
    }


def _rates(scores: dict[str, float]) -> dict[str, float]:
    return {key: scores[key] for key in ("precision", "recall", "f1")}


def _by_language(**results: EvaluationResult) -> dict[str, Any]:
    from st_xling.evaluation.tatoeba import resolve_languages

    codes = dict(zip(resolve_languages(LANGUAGES), LANGUAGES))
    return {
        when: {codes[row.label]: dict(zip(("to_en", "from_en"), row.values)) for row in result.rows if not row.average}
        for when, result in results.items()
    }


def demo_table(results: dict[str, Any]) -> str:
    """The demo's results as people read them."""
    tatoeba, mining = results["tatoeba"], results["mining"]
    columns = [(when, way) for when in ("before", "after") for way in ("to_en", "from_en")]
    head = ["language", *(f"{when}: {way.replace('_', ' ')}" for when, way in columns)]
    rows = [[language, *(100 * tatoeba[when][language][way] for when, way in columns)] for language in LANGUAGES]
    return f"""Translation retrieval on unseen meanings, accuracy in % (P@1)
{format_table(head, rows)}
{tatoeba["signature"]}

Mining unseen text: {mining["mined"]} pairs found, {mining["correct"]} of {mining["gold"]} translations
precision {mining["precision"]:.3f}  recall {mining["recall"]:.3f}  F1 {mining["f1"]:.3f}  \
(threshold {mining["threshold"]:.4f}, chosen on the dev split)
{mining["signature"]}"""


def usage_lines(out: str | Path, examples: Sequence[str]) -> str:
    """Three lines of Python that use the saved model with sentence-transformers alone."""
    return f"""from sentence_transformers import SentenceTransformer
model = SentenceTransformer({str(out)!r})
print(model.similarity(*model.encode({list(examples)!r})))"""
