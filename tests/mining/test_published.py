"""``mining.json``: what is published is read again, from a folder or the Hub; what is broken is told."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from st_xling.mining import PublishedThreshold, mine, publish_thresholds, published_thresholds
from st_xling.mining.published import FittingThreshold, fitting_threshold, languages_of, pair_of
from tests.processes import run_together

VALUES: dict[str, Any] = {
    **{"threshold": 1.06, "precision": 0.97, "recall": 0.92, "f1": 0.944, "margin": "ratio", "k": 4},
    **{"retrieval": "max", "signature": "bucc|pairs:de-en"},
}


def threshold(**changes: Any) -> PublishedThreshold:
    return PublishedThreshold(**{**VALUES, **changes})


def test_what_is_published_is_read_again(tmp_path: Path) -> None:
    assert published_thresholds(tmp_path) == {}
    first = {"de-en": threshold(), "fr-en": threshold(threshold=1, precision=None, prompt="query: ")}
    path = publish_thresholds(tmp_path, first)
    assert path == tmp_path / "mining.json" and published_thresholds(str(tmp_path)) == first
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "version": 1,
        "pairs": {"de-en": VALUES, "fr-en": {**VALUES, "threshold": 1, "precision": None, "prompt": "query: "}},
    }


def test_pairs_are_added_and_replaced(tmp_path: Path) -> None:
    """The same languages in another spelling are the same pair; the other direction is another."""
    publish_thresholds(tmp_path, {"de-en": threshold(), "en-de": threshold(k=3), "zh-en": threshold(k=2)})
    publish_thresholds(tmp_path, {"deu-eng": threshold(threshold=2.0), "cmn-en": threshold(k=5)})
    found = published_thresholds(tmp_path)
    assert list(found) == ["en-de", "deu-eng", "cmn-en"]
    assert found["deu-eng"].threshold == 2.0 and found["cmn-en"].k == 5
    publish_thresholds(tmp_path, {})
    assert published_thresholds(tmp_path) == found


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
        ({"signature": None}, "signature and prompt must be text"),
    ],
)
def test_a_threshold_has_to_mean_something(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """In Python, and in a file."""
    with pytest.raises(ValueError, match=message):
        threshold(**changes)
    content = {"version": 1, "pairs": {"de-en": {**VALUES, **changes}, "fr-en": VALUES}}
    (tmp_path / "mining.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"mining\.json: expected thresholds by pair of languages: de-en: .* must "):
        published_thresholds(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"mining\.json: expected JSON"),
        ("[]", "expected a JSON object, got list"),
        ('{"pairs": {}}', r"version must be 1, got None \(of a later st-xling\?\)"),
        ('{"version": 2, "pairs": {}, "new": 1}', "version must be 1, got 2"),
        ('{"version": 1}', "pairs must be an object, got None"),
        ('{"version": 1, "pairs": []}', r"pairs must be an object, got \[\]"),
        ('{"version": 1, "pairs": {}, "thresholds": {}}', "got unknown thresholds"),
        ('{"version": 1, "pairs": {"de-en": 1.06}}', "de-en: expected an object, got 1.06"),
        (
            '{"version": 1, "pairs": {"de-en": {"treshold": 1}}}',
            "de-en: missing f1, k, .*threshold and unknown treshold",
        ),
        (json.dumps({"version": 1, "pairs": {"deen": VALUES, "fr-en": 3}}), "deen: a pair must .*; fr-en: expected"),
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


def test_a_share_that_is_nan_in_the_file_is_not_known(tmp_path: Path) -> None:
    content = {"version": 1, "pairs": {"de-en": {**VALUES, "precision": math.nan}}}
    (tmp_path / "mining.json").write_text(json.dumps(content), encoding="utf-8")
    assert published_thresholds(tmp_path)["de-en"].precision is None


def test_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder .*absent"):
        publish_thresholds(tmp_path / "absent", {"de-en": threshold()})
    with pytest.raises(ValueError, match="expected a folder or the Hub id of a model, got '.*absent'"):
        published_thresholds(tmp_path / "absent")
    assert published_thresholds("some-body/not-cached-here") == {}  # offline


class Hub(BaseHTTPRequestHandler):
    """Two models, of which one has thresholds."""

    mining = json.dumps({"version": 1, "pairs": {"de-en": VALUES}}).encode()
    files: ClassVar = {"/somebody/mining": mining, "/sentence-transformers/old": mining, "/somebody/bare": b""}

    def do_HEAD(self) -> None:
        repo, _, file = self.path.partition("/resolve/main/")
        data = self.files.get(repo)
        found = bool(data) and file == "mining.json"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(data or b"") if found else 0))
        self.send_header("X-Repo-Commit", "0" * 40)
        if found:
            self.send_header("ETag", '"abc"')
        else:
            self.send_header("X-Error-Code", "RepoNotFound" if data is None else "EntryNotFound")
        self.end_headers()
        if found and self.command == "GET":
            self.wfile.write(data or b"")

    do_GET = do_HEAD

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.timeout = 10
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


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


def test_a_model_of_the_hub(hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file is downloaded, then cached; offline the cache counts; a bare name may be ST's own."""
    for name, value in {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    for offline in ("0", "1"):
        folder = tmp_path / offline
        folder.mkdir()
        names = ["somebody/mining", "somebody/bare", "old", "nobody/nothing"]
        (ended,) = run_together([["-c", ASKS, offline, *names]], folder, seconds=100)
        assert ended.status == 0, ended.stderr
        *found, unknown = ended.stdout.splitlines()
        assert found == ['{"de-en": 1.06}', "{}", '{"de-en": 1.06}'], ended
        expected = "expected a folder or the Hub id of a model, got 'nobody/nothing'; check the spelling."
        assert unknown == ("{}" if offline == "1" else expected)


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
