"""``mining.json``: what is published is read again, from a folder or the Hub; what is broken is told."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from st_xling.mining import PublishedThreshold, publish_thresholds, published_thresholds
from st_xling.mining.published import languages_of, pair_of
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


@pytest.mark.parametrize("pair", ["de", "de-", "de-en-fr", "German-English", "DE-en", "de_en", "de-AT", "", "d-e"])
def test_a_pair_is_two_codes(pair: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a pair must be two language codes joined by a hyphen, such as de-en: got "):
        publish_thresholds(tmp_path, {pair: threshold()})
    assert not list(tmp_path.iterdir())


def test_codes_of_a_pair() -> None:
    assert languages_of("de-en") == languages_of("deu-eng") == ("deu", "eng")
    assert languages_of("xx-tlh") == ("xx", "tlh")
    assert pair_of(" zh_Hant", "EN-gb") == "zh-en"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": math.inf}, "threshold must be a finite number: got inf"),
        ({"threshold": math.nan}, "threshold must be a finite number: got nan"),
        ({"threshold": "1.06"}, "threshold must be a finite number: got '1.06'"),
        ({"threshold": None}, "threshold must be a finite number: got None"),
        ({"precision": 97.0}, r"precision must lie in \[0, 1\]: got 97"),
        ({"recall": -0.1}, r"recall must lie in \[0, 1\]: got -0.1"),
        ({"margin": "log"}, "margin must be one of .*: got 'log'"),
        ({"retrieval": ["max"]}, "retrieval must be one of .*: got "),
        ({"k": 0}, "k must be a whole number of at least 1: got 0"),
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
    """One file is downloaded, then cached; offline the cache counts; a name alone may be one of the host's models."""
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


def test_shares_that_are_no_numbers_are_not_known(tmp_path: Path) -> None:
    """Python's own NaN in the file: as a threshold it is a fault, as a share of something it says nothing."""
    with pytest.raises(ValueError, match="precision must lie in .* got nan"):
        threshold(precision=math.nan)
    content = {"version": 1, "pairs": {"de-en": {**VALUES, "precision": math.nan}}}
    (tmp_path / "mining.json").write_text(json.dumps(content), encoding="utf-8")
    assert published_thresholds(tmp_path)["de-en"].precision is None
