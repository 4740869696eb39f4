"""``mining.json``: what is published is read again, from a folder or the Hub; what is broken is told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import PublishedThreshold, mine, publish_thresholds, published_thresholds
from st_xling.mining.published import Fit, fitting_threshold, languages_of, pair_of
from tests.hub.hub_server import Repo, serve
from tests.processes import run_together

VALUES: dict[str, Any] = {
    **{"threshold": 1.06, "precision": 0.97, "recall": 0.92, "f1": 0.944, "margin": "ratio", "k": 4},
    **{"retrieval": "max", "signature": "bucc|pairs:de-en"},
}
QUERY = {"prompt": "query: ", "layer": "7"}


def threshold(**changes: Any) -> PublishedThreshold:
    return PublishedThreshold(**{**VALUES, **changes})


def write(folder: Path, **pairs: Any) -> Path:
    path = folder / "mining.json"
    path.write_text(json.dumps({"version": 1, "pairs": pairs}), encoding="utf-8")
    return path


def test_what_is_published_is_read_again(tmp_path: Path) -> None:
    """The same languages in another spelling are the same pair; the other direction is another."""
    assert published_thresholds(tmp_path) == {}
    first = {"de-en": threshold(), "fr-en": threshold(threshold=1, precision=None, options=QUERY)}
    path = publish_thresholds(tmp_path, first)
    assert path == tmp_path / "mining.json" and published_thresholds(str(tmp_path)) == first
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": 1,
        "pairs": {"de-en": VALUES, "fr-en": {**VALUES, "threshold": 1, "precision": None, "options": QUERY}},
    }
    publish_thresholds(tmp_path, {"deu-eng": threshold(threshold=2.0), "en-de": threshold(k=3)})
    found = published_thresholds(tmp_path)
    assert list(found) == ["fr-en", "deu-eng", "en-de"] and found["deu-eng"].threshold == 2.0


def test_nan_is_unknown(tmp_path: Path) -> None:
    write(tmp_path, **{"de-en": {**VALUES, "precision": math.nan}})
    assert published_thresholds(tmp_path)["de-en"] == threshold(precision=None)


def test_a_pair_is_two_codes(tmp_path: Path) -> None:
    for pair in ("de", "de-", "de-en-fr", "German-English", "DE-en", "de_en", "de-AT", "", "d-e"):
        with pytest.raises(ValueError, match=f"two language codes .* such as de-en: got '{pair}'"):
            publish_thresholds(tmp_path, {pair: threshold()})
    assert not list(tmp_path.iterdir())
    assert languages_of("de-en") == languages_of("deu-eng") == ("deu", "eng")
    assert languages_of("xx-tlh") == ("xx", "tlh")
    assert pair_of(" zh_Hant", "EN-gb") == "zh-en"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": math.inf}, "threshold must be a finite number: got inf"),
        ({"threshold": "1.06"}, "threshold must be a finite number: got '1.06'"),
        ({"precision": 97.0}, r"precision must lie in \[0, 1\]: got 97"),
        ({"margin": "log"}, "margin must be one of .*: got 'log'"),
        ({"retrieval": ["max"]}, "retrieval must be one of .*: got "),
        ({"k": 4.0, "f1": -1}, "f1 must lie in .*; k must be a whole number of at least 1: got 4.0"),
        ({"k": True}, "k must be a whole number"),
        ({"signature": None}, "signature and options must be text"),
        ({"options": {"layer": 7}}, "signature and options must be text"),
        ({"options": "query: "}, "signature and options must be text"),
    ],
)
def test_a_threshold_has_to_mean_something(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """In Python, and in a file."""
    with pytest.raises(ValueError, match=message):
        threshold(**changes)
    write(tmp_path, **{"de-en": {**VALUES, **changes}, "fr-en": VALUES})
    with pytest.raises(ValueError, match=r"mining\.json: expected thresholds by pair of languages: de-en: .* must "):
        published_thresholds(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"mining\.json: expected JSON"),
        ("[]", "expected a JSON object, got list"),
        ('{"pairs": {}}', r"version must be 1, got None \(of a later st-xling\?\)"),
        ('{"version": 2, "pairs": {}, "new": 1}', "version must be 1, got 2"),
        ('{"version": 1, "pairs": []}', r"pairs must be an object, got \[\]"),
        ('{"version": 1, "pairs": {"de-en": 1.06}}', r"mining\.json: .*de-en: .*float"),
        ('{"version": 1, "pairs": {"de-en": {"treshold": 1}}}', "de-en: .*'treshold'"),
        ('{"version": 1, "pairs": {"de-en": {"threshold": 1}}}', "de-en: .*'precision'.*'signature'"),
        (json.dumps({"version": 1, "pairs": {"deen": VALUES, "fr-en": 3}}), "deen: a pair must .*; fr-en: "),
    ],
)
def test_a_broken_file_is_told_and_left(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mining.json"
    path.write_text(content, encoding="utf-8")
    for call in (
        lambda: published_thresholds(tmp_path),
        lambda: publish_thresholds(tmp_path, {"de-en": threshold()}),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert path.read_text(encoding="utf-8") == content


ASKS = """
import json, os, sys
os.environ["HF_HUB_OFFLINE"] = sys.argv.pop(1)
from st_xling.mining import published_thresholds
for model in sys.argv[1:]:
    try:
        print(json.dumps({pair: found.threshold for pair, found in published_thresholds(model).items()}))
    except ValueError as error:
        print(str(error))
"""


def test_a_model_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is downloaded, then cached; offline the cache counts; a bare name may be ST's own."""
    with pytest.raises(ValueError, match="there is no folder .*absent"):
        publish_thresholds(tmp_path / "absent", {"de-en": threshold()})
    with pytest.raises(ValueError, match="expected a folder or the Hub id of a model, got '.*absent'"):
        published_thresholds(tmp_path / "absent")
    names = ["somebody/mining", "somebody/bare", "old", "nobody/nothing"]
    content = write(tmp_path, **{"de-en": VALUES}).read_bytes()
    with serve(tmp_path / "blobs") as hub:
        for name in ("somebody/mining", "somebody/bare", "sentence-transformers/old"):
            hub.repos["model", name] = Repo("model", name, private=False)
            files = {"config.json": b"{}"} if name.endswith("bare") else {"mining.json": content}
            hub.repos["model", name].add("main", "first", files, None)
        for name, value in {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "*"}.items():
            monkeypatch.setenv(name, value)
        for offline in ("0", "1"):
            (tmp_path / offline).mkdir()
            (ended,) = run_together([["-c", ASKS, offline, *names]], tmp_path / offline, seconds=100)
            assert ended.status == 0, ended.stderr
            *found, unknown = ended.stdout.splitlines()
            assert found == ['{"de-en": 1.06}', "{}", '{"de-en": 1.06}'], ended
            expected = "expected a folder or the Hub id of a model, got 'nobody/nothing'; check the spelling."
            assert unknown == ("{}" if offline == "1" else expected)


def fitting(published: dict[str, PublishedThreshold], source: str = "de", target: str = "en", **changes: Any) -> Fit:
    way: dict[str, Any] = {"margin": "ratio", "k": 4, "retrieval": "max", "options": {}, **changes}
    return fitting_threshold(published, source, target, **way)


@pytest.mark.parametrize("codes", [("de", "en"), ("deu", "eng"), ("de-AT", "en_GB"), (" DE ", "eng")])
def test_languages_in_any_spelling(codes: tuple[str, str]) -> None:
    published = {"fr-en": threshold(), "deu-en": threshold(threshold=1.1)}
    assert fitting(published, *codes) == Fit("deu-en", published["deu-en"])


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
    """A pair's margin has no direction: mining the other way round gives the same pairs with the same scores."""
    fit = fitting({"en-de": threshold(retrieval=published)}, retrieval=asked)
    assert (fit.threshold is not None) == holds == (not fit.why_not)
    for margin in ("ratio", "distance", "absolute") if holds else ():
        source, target = np.random.default_rng(5).normal(size=(2, 40, 6)) + 0.3
        one = mine(source, target, margin=margin, retrieval=asked)
        other = mine(target, source, margin=margin, retrieval=published)
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
        ({"k": 8, "margin": "absolute"}, "margin absolute, not ratio, k 8, not 4"),
        ({"retrieval": "forward"}, "retrieval forward, not max"),
        ({"options": QUERY}, "prompt query: , not none, layer 7, not the last"),
    ],
)
def test_mined_in_another_way(change: dict[str, Any], words: str) -> None:
    assert fitting({"de-en": threshold(**change)}) == Fit("", None, f"that of de-en is for {words}")
    assert fitting({"de-en": threshold(**change)}, **change).threshold is not None


def test_no_such_languages() -> None:
    fit = fitting({"fr-en": threshold(), "zh-en": threshold()}, "Klingon", "en")
    assert fit == Fit("", None, "it has one for fr-en, zh-en, none for Klingon-en")
    assert fitting({}).why_not == "it has none"
