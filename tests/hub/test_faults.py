"""What goes wrong on the way to the Hub: one clear line, no half-made commit, and a second try that succeeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import main
from st_xling.hub.hub_errors import HubError, talking_to_hub
from st_xling.utils import hub_requests
from tests.hub.clients import Client
from tests.hub.hub_state import READ_TOKEN, TOKEN, Fault, Hub

pytest_plugins = ["tests.hub.publishing"]
Run = Callable[..., Any]

AGAIN = "try again later: what has arrived is kept"
LATER = {"Retry-After": "37"}
WINDOW = {"RateLimit": '"api";r=0;t=55', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
FAULTS: dict[str, tuple[Fault, list[str]]] = {
    "401 create": (Fault("create", 401), ["does not know who you are while creating", "hf auth login"]),
    "401 commit": (Fault("commit", 401), ["does not know who you are while committing to 'tester/mine' (401"]),
    "403 preupload": (Fault("preupload", 403), ["may not write there while uploading", "token with write permission"]),
    "404 info": (Fault("info", 404), ["the Hub has no 'tester/mine', or hides it from this login"]),
    "409 commit": (Fault("commit", 409), ["somebody else changed 'tester/mine'", "look, and push again"]),
    "412 commit": (Fault("commit", 412), ["somebody else changed 'tester/mine'"]),
    "413 commit": (Fault("commit", 413), ["the Hub finds it too large"]),
    "429 commit": (Fault("commit", 429, headers=LATER), ["asks to wait", "try again in 37 s", AGAIN]),
    "429 batch": (Fault("lfs_batch", 429, headers=WINDOW), ["asks to wait", "try again in 55 s", AGAIN]),
    "429 create": (Fault("create", 429), ["try again in some minutes"]),
    "500 create": (Fault("create", 500), ["a fault of its own while creating", AGAIN]),
    "500 put": (Fault("lfs_put", 500), ["a fault of its own while uploading to", AGAIN]),
    "503 commit": (Fault("commit", 503, message="over capacity"), ["(503: over capacity)"]),
    "400 validate": (Fault("validate", 400), ["Invalid metadata in README.md"]),
    "400 commit": (Fault("commit", 400, message="odd path"), ["the Hub refused while committing", "odd path"]),
    "cut put": (Fault("lfs_put", None), ["the connection to the Hub broke while uploading to", AGAIN]),
    "cut verify": (Fault("lfs_verify", None), ["the connection to the Hub broke while uploading to"]),
    "cut commit": (Fault("commit", None), ["the connection to the Hub broke while committing to"]),
    "cut create": (Fault("create", None), ["the connection to the Hub broke while creating"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_clear_line_then_success(name: str, my_encoder: Path, hub: Hub, client: Run) -> None:
    fault, said = FAULTS[name]
    hub.faults = [fault]
    error = client("push", my_encoder, "tester/mine").error
    assert all(part in error for part in said), error
    assert "?X-Signature" not in error and "secret" not in error and TOKEN not in error
    if ("model", "tester/mine") in hub.repos:
        assert hub.files("tester/mine").keys() == {".gitattributes"}
    arrived = set(hub.uploaded)
    hub.reset()
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    assert "model.safetensors" in hub.files("tester/mine")
    assert not arrived & set(hub.uploaded)
    assert len(hub.model("tester/mine").commits) == 2


IMPATIENT = """
from st_xling.cli import main
from st_xling.hub import commit
from st_xling.utils import hub_requests
before = hub_requests.REQUEST_S, commit.PATIENCE_S
hub_requests.REQUEST_S, commit.PATIENCE_S = 0.5, 2.0
try:
    raise SystemExit(main(words))
finally:
    hub_requests.REQUEST_S, commit.PATIENCE_S = before
"""


@pytest.mark.parametrize(
    ("route", "pace", "doing"),
    [
        ("create", "silent", "creating"),
        ("info", "silent", "creating"),
        ("lfs_batch", "silent", "uploading to"),
        ("lfs_put", "silent", "uploading to"),
        ("commit", "silent", "committing to"),
        ("create", "drip", "creating"),
        ("lfs_put", "drip", "uploading to"),
    ],
)
def test_a_hub_that_does_not_answer(
    route: str, pace: str, doing: str, my_encoder: Path, hub: Hub, process: Client
) -> None:
    hub.faults = [Fault(route, None, pace=pace)]
    error = process.python(IMPATIENT, "push", my_encoder, "tester/mine").error
    assert f"while {doing} 'tester/mine'" in error and AGAIN in error
    assert "secret" not in error and hub.asked(route) <= 2 * hub_requests.ATTEMPTS  # weights and picture
    if ("model", "tester/mine") in hub.repos:
        assert hub.files("tester/mine").keys() == {".gitattributes"}
    hub.reset()
    assert process.st_xling("push", my_encoder, "tester/mine").status == 0
    assert "model.safetensors" in hub.files("tester/mine")


@pytest.mark.parametrize("content", [b"[]", b"null", b"{}", b"<html>"])
@pytest.mark.parametrize("route", ["create", "info", "preupload", "lfs_batch", "commit"])
def test_an_answer_that_is_none(route: str, content: bytes, my_encoder: Path, hub: Hub, client: Run) -> None:
    hub.faults = [Fault(route, 200, content=content)]
    error = client("push", my_encoder, "tester/mine").error
    assert "ing 'tester/mine'" in error or "ing to 'tester/mine'" in error
    assert "HF_ENDPOINT" in error
    hub.reset()
    assert client("push", my_encoder, "tester/mine").status == 0


def test_a_conflict_that_names_no_repository(my_encoder: Path, hub: Hub, client: Run) -> None:
    hub.faults = [Fault("create", 409, content=b"{}")]
    assert "while creating 'tester/mine' (KeyError: 'url')" in client("push", my_encoder, "tester/mine").error


def test_the_log_of_the_client_keeps_signatures(my_encoder: Path, hub: Hub, client: Run) -> None:
    """It says whole addresses when it tries again."""
    hub.faults = [Fault("lfs_put", None, (1,))]
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0 and "/_lfs/" in done.stderr, done.stderr
    assert "secret" not in done.stderr and "X-Signature" not in done.stderr


def test_faults_that_pass_are_not_noticed(my_encoder: Path, hub: Hub, client: Run) -> None:
    """The client tries again by itself: a busy moment, and a connection cut in the middle of an upload."""
    hub.faults = [Fault("preupload", 429, (1,)), Fault("lfs_put", None, (1,)), Fault("lfs_put", 500, (2,))]
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0, done.stderr
    assert hub.asked("preupload") == 2 and hub.asked("lfs_put") >= 3
    assert hub.files("tester/mine")["model.safetensors"] == (my_encoder / "model.safetensors").read_bytes()


def test_what_arrived_before_the_cut_is_not_sent_again(my_encoder: Path, hub: Hub, client: Run) -> None:
    hub.faults = [Fault("lfs_put", None, tuple(range(2, 50)))]
    assert "the connection to the Hub broke while uploading" in client("push", my_encoder, "tester/mine").error
    assert len(hub.uploaded) == 1
    hub.faults = []
    assert client("push", my_encoder, "tester/mine").status == 0
    assert len(hub.uploaded) == len(set(hub.uploaded)) == 2  # weights and picture, each once


def test_a_commit_whose_answer_is_lost(my_encoder: Path, hub: Hub, client: Run) -> None:
    """It stands; pushing again finds nothing to do."""
    hub.faults = [Fault("commit", None, after=True)]
    assert "the connection to the Hub broke while committing" in client("push", my_encoder, "tester/mine").error
    assert "model.safetensors" in hub.files("tester/mine")
    hub.faults = []
    done = client("push", my_encoder, "tester/mine")
    assert done.status == 0 and "holds all of it already" in done.stderr
    assert len(hub.model("tester/mine").commits) == 2


def test_somebody_was_faster(my_encoder: Path, hub: Hub, client: Run) -> None:
    """Their commit comes between our look at the repository and our commit: it is not buried under ours."""
    assert client("push", my_encoder, "tester/mine").status == 0
    hub.before["preupload"] = lambda: hub.put("tester/mine", {"theirs.txt": b"faster"})
    (my_encoder / "mining.json").unlink()
    error = client("push", my_encoder, "tester/mine").error
    assert "somebody else changed 'tester/mine' in the meantime" in error and "A commit has happened since" in error
    assert hub.files("tester/mine")["theirs.txt"] == b"faster" and "mining.json" in hub.files("tester/mine")
    assert client("push", my_encoder, "tester/mine").status == 0
    assert "theirs.txt" in hub.files("tester/mine") and "mining.json" not in hub.files("tester/mine")


@pytest.mark.parametrize(
    ("token", "repo", "said"),
    [
        ("", "tester/mine", "no login for the Hub: run `hf auth login`, or set HF_TOKEN"),
        ("hf_" + "WrongWrongWrongWrongWrongWrong1234", "tester/mine", "does not know who you are while creating"),
        (READ_TOKEN, "tester/mine", "this login may not write there while creating 'tester/mine' (403"),
        (TOKEN, "others/mine", "this login may not write there while creating 'others/mine' (403"),
    ],
    ids=["none", "wrong", "reads only", "another's"],
)
def test_who_may_not(token: str, repo: str, said: str, my_encoder: Path, hub: Hub, client: Run, home: Path) -> None:
    done = client("push", my_encoder, repo, token=token)
    assert said in done.error
    assert token == "" or token not in done.stderr
    assert hub.repos == {} and (token != "" or hub.calls == [])
    for path in (path for folder in (home, my_encoder) for path in folder.rglob("*") if path.is_file()):
        assert not token or token.encode() not in path.read_bytes()


def test_even_a_traceback_keeps_the_token(my_encoder: Path, hub: Hub, client: Run) -> None:
    """From a Hub that repeats the token in its answer."""
    hub.faults = [Fault("commit", 403, message=f"the token {TOKEN} may not")]
    done = client("--debug", "push", my_encoder, "tester/mine")
    last = done.stderr.strip().splitlines()[-1]
    assert done.status == 1 and "HubError: this login may not write there while committing" in last
    assert TOKEN not in last and "the token … may not" in last


def test_no_hub_at_all(my_encoder: Path, process: Client) -> None:
    code = "from st_xling.hub import push_model; push_model(words[0], 'tester/mine', endpoint='http://127.0.0.1:9')"
    done = process.python(code, my_encoder)
    assert done.status == 1 and "check the network" in done.stderr
    assert "HubError: the connection to the Hub broke while creating 'tester/mine'" in done.stderr


def test_offline(my_encoder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As these tests are themselves."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert main(["push", str(my_encoder), "tester/mine"]) == 2
    error = capsys.readouterr().err
    assert "st-xling: error: HF_HUB_OFFLINE is set, which forbids creating 'tester/mine': unset it" in error


def test_the_storage_behind_xet(my_encoder: Path, hub: Hub, process: Client) -> None:
    """Where hf_xet is installed, it uploads, in a language of its own: its failures are told as well as the others."""
    pytest.importorskip("hf_xet")
    hub.xet = "http://127.0.0.1:9"
    code = """
import os
from huggingface_hub import constants
from st_xling.hub import push_model
os.environ["HF_XET_CLIENT_RETRY_MAX_ATTEMPTS"] = "1"
constants.HF_HUB_DISABLE_XET = False
try:
    push_model(words[0], "tester/mine")
finally:
    constants.HF_HUB_DISABLE_XET = True
"""
    done = process.python(code, my_encoder)
    assert done.status == 1 and hub.asked("xet_token") >= 1
    assert "HubError: the connection to the Hub broke while uploading to 'tester/mine'" in done.stderr
    assert hub.files("tester/mine").keys() == {".gitattributes"}


def test_faults_of_others_are_left_alone() -> None:
    with pytest.raises(ValueError, match="ours"), talking_to_hub("reading", "a/b"):
        raise ValueError("ours")
    with pytest.raises(FileNotFoundError), talking_to_hub("reading", "a/b"):
        raise FileNotFoundError("gone")
    signed = "cannot reach https://store.example/x?X-Signature=abc with hf_" + "a" * 34
    with pytest.raises(HubError, match=r"x\?… with …\)") as caught, talking_to_hub("reading", "a/b"):
        raise ConnectionError(signed)
    assert "abc" not in str(caught.value)
