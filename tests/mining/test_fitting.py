"""Which published threshold holds: the same languages, mined in the same way, from either side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from st_xling.mining import PublishedThreshold, mine
from st_xling.mining.published import FittingThreshold, fitting_threshold


def threshold(**changes: Any) -> PublishedThreshold:
    values = {"threshold": 1.06, "precision": None, "recall": None, "f1": None, "margin": "ratio", "k": 4}
    return PublishedThreshold(**{**values, "retrieval": "max", "signature": "", **changes})  # type: ignore[arg-type]


def fitting(
    published: dict[str, PublishedThreshold], source: str = "de", target: str = "en", **changes: Any
) -> FittingThreshold:
    way = {"margin": "ratio", "k": 4, "retrieval": "max", "prompt": None, **changes}
    return fitting_threshold(published, source, target, way=way)


@pytest.mark.parametrize("codes", [("de", "en"), ("deu", "eng"), ("de-AT", "en_GB"), (" DE ", "eng")])
def test_languages_in_any_spelling(codes: tuple[str, str]) -> None:
    published = {"fr-en": threshold(), "deu-en": threshold(threshold=1.1)}
    fit = fitting(published, *codes)
    assert (fit.pair, fit.threshold) == ("deu-en", published["deu-en"]) and not fit.why_not


@pytest.mark.parametrize(
    ("published", "asked", "holds"),
    [
        ("max", "max", True),
        ("intersect", "intersect", True),
        ("forward", "backward", True),
        ("backward", "forward", True),
        ("forward", "forward", False),
        ("max", "intersect", False),
    ],
)
def test_the_other_way_round(published: str, asked: str, holds: bool) -> None:
    fit = fitting({"en-de": threshold(retrieval=published)}, retrieval=asked)
    assert (fit.threshold is not None) == holds == (not fit.differs)


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("way", "back"), [("max", "max"), ("intersect", "intersect"), ("forward", "backward")])
def test_mining_the_other_way_round_is_the_same(margin: str, way: str, back: str) -> None:
    """What the rule rests on: the same pairs with the same scores."""
    source, target = np.random.default_rng(5).normal(size=(2, 40, 6)) + 0.3
    one = mine(source, target, margin=margin, retrieval=way)
    other = mine(target, source, margin=margin, retrieval=back)
    there = set(zip(one.scores.tolist(), one.source_indices.tolist(), one.target_indices.tolist()))
    assert there == set(zip(other.scores.tolist(), other.target_indices.tolist(), other.source_indices.tolist()))


def test_the_direction_that_was_asked_for_comes_first() -> None:
    published = {"en-de": threshold(threshold=2.0), "de-en": threshold()}
    assert fitting(published).pair == "de-en"
    published["de-en"] = threshold(k=5)
    assert fitting(published).pair == "en-de"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"margin": "distance"}, "margin distance, not ratio"),
        ({"k": 8}, "k 8, not 4"),
        ({"retrieval": "forward"}, "retrieval forward, not max"),
        ({"prompt": "query: "}, "prompt query: , not None"),
        ({"k": 8, "margin": "absolute"}, "margin absolute, not ratio, k 8, not 4"),
    ],
)
def test_mined_in_another_way(change: dict[str, Any], words: str) -> None:
    fit = fitting({"de-en": threshold(**change)})
    assert fit.threshold is None and fit.differs and fit.why_not == f"that of de-en is for {words}"


def test_no_such_languages() -> None:
    fit = fitting({"fr-en": threshold(), "zh-en": threshold()}, "Klingon", "en")
    assert fit.why_not == "it has one for fr-en, zh-en, none for Klingon-en" and not fit.differs
    assert fitting({}).why_not == "it has none"
