"""Mining sets of the phrasebook for the BUCC evaluator."""

from __future__ import annotations

import pytest

from st_xling.data.phrasebook import mining_phrases
from st_xling.evaluation import BuccEvaluator
from st_xling.evaluation.bucc_phrases import mining_sets


def test_heaps_of_both_splits() -> None:
    found = mining_sets("phrasebook?size=30&gold=5&seed=2", ["de-en", "zh-vi"])
    test, dev = (mining_phrases("zh", "vi", split=part, size=30, gold=5, seed=2) for part in ("test", "dev"))
    assert found.test["zh-vi"] == (test.source, test.target, test.gold)
    assert found.train is not None and found.train["zh-vi"] == (dev.source, dev.target, dev.gold)
    assert found.name == "phrasebook-30x5-seed2" and list(found.test) == ["de-en", "zh-vi"]


def test_pairs_by_the_languages() -> None:
    assert list(mining_sets("phrasebook:fr,zh?size=5&gold=1").test) == ["fr-en", "zh-en"]
    assert list(mining_sets("phrasebook?size=5&gold=1").test) == ["de-en", "fr-en", "es-en", "vi-en", "zh-en"]


def test_the_signature_says_where_text_and_threshold_come_from() -> None:
    evaluator = BuccEvaluator.from_phrasebook("phrasebook:de?size=20&gold=4")
    assert "|threshold:dev|split:test|" in evaluator.signature
    assert "|data:phrasebook-20x4-seed0@" in evaluator.signature and evaluator.primary_metric == "bucc_f1"
    given = BuccEvaluator.from_phrasebook("phrasebook:de?size=20&gold=4", threshold=1.06)
    assert given.train is None and "|threshold:given|" in given.signature
    assert given.signature != evaluator.signature
    other = BuccEvaluator.from_phrasebook("phrasebook:de?size=20&gold=4&seed=1")
    assert other.signature.replace("seed1", "seed0").split("@")[0] == evaluator.signature.split("@")[0]


@pytest.mark.parametrize(
    ("spec", "options", "reason"),
    [
        ("phrasebook?size=5&gold=6", {}, "gold must lie between 0 and size"),
        ("phrasebook?gold=0", {}, "expected gold=100, a number above 0, got 'gold=0'"),
        ("phrasebook?split=test", {}, "expected the options size, gold, seed, once each, got 'split=test'"),
        ("phrasebook", {"pairs": ["deen"]}, "expected language pairs such as de-en: got 'deen'"),
        ("phrasebook", {"pairs": ["de-ru"]}, "language must be one of"),
        ("phrasebook:de", {"pairs": ["de-en"]}, "expected language pairs once"),
        ("phrasebook", {"split": "training"}, "split must be one of train, dev, test"),
        ("phrasebook", {"split": "dev"}, "a threshold must come from text that is not judged by it"),
    ],
)
def test_errors(spec: str, options: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        mining_sets(spec, **options)  # type: ignore[arg-type]
