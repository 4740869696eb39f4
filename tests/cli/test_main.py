"""The one command: ``--json`` on every command, a file or stdout with nothing else, and a reader that ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from st_xling._version import __version__
from st_xling.cli import main

LEAK = "leak --train phrasebook:de?size=30 --eval phrasebook:de?size=30&split=train"


def test_stdout_holds_the_results_and_stderr_all_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main([*LEAK.split(), "--json", str(tmp_path / "deep" / "leak.json")]) == 0
    printed = capsys.readouterr()
    assert main([*LEAK.split(), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == json.loads((tmp_path / "deep" / "leak.json").read_text(encoding="utf-8"))
    assert json.loads(out)["signature"].endswith(__version__) and printed.out in err


def test_json_of_a_card_and_a_push(encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``push --json`` gave lists in place of named fields."""
    assert main(["card", str(encoder), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": {"path": str(encoder / "README.md")}}
    assert main(["push", str(encoder), "user/my-encoder", "--dry-run", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    push = json.loads(out)["push"]
    assert (push["repo_id"], push["url"]) == ("user/my-encoder", None) and "would go to user/my-encoder" in err
    assert push["files"].keys() >= {"README.md", "modules.json"}


def test_results_come_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LEAK.split(), "--json", "-", "--fail-on-leak"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["signature"] in err and "st-xling: error: " in err


def test_stdout_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mine", "a", "b", "--out", "-", "--json", "-"]) == 2
    assert "--out - and --json -" in capsys.readouterr().err


@pytest.fixture(params=["buffered", "unbuffered"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    """Python's standard output with and without its buffer, whatever the tests were started with."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return plain if request.param == "buffered" else {**plain, "PYTHONUNBUFFERED": "1"}


def test_a_reader_of_stdout_that_ends(environment: dict[str, str]) -> None:
    """As ``head``: not a word.

    With the usual buffer, status 120 and Python's own complaint came after the command, which our tests, run without
    it, did not see.
    """
    command = [sys.executable, "-m", "st_xling.cli", "train", "--list"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as ran:
        assert ran.stdout is not None
        ran.stdout.close()
        _, err = ran.communicate(timeout=100)
    assert (ran.returncode, err) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", ["--help", "train --list"])
def test_a_full_disk_behind_stdout(words: str, environment: dict[str, str]) -> None:
    """A help redirected onto a full disk ended in forty lines of typer's and rich's."""
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "st_xling.cli", *words.split()]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100, env=environment)
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and "No space left" in ran.stderr, ran.stderr


def test_another_pipe_that_breaks_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker of ours that had died was taken for a reader of stdout that had ended: status 1, and not a word."""

    def write_to_worker(name: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("st_xling.training.recipe_files.recipe_text", write_to_worker)
    assert main(["train", "dap", "--print"]) == 2
    assert "Broken pipe" in capsys.readouterr().err


def test_ctrl_c_while_modules_are_imported() -> None:
    script = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import st_xling.cli
def watch(event, words):
    if event == "import" and words[0] == "torch":
        signal.raise_signal(signal.SIGINT)
sys.addaudithook(watch)
sys.exit(st_xling.cli.main(["demo"]))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert (ran.returncode, ran.stderr.strip(), ran.stdout) == (130, "Interrupted.", "")
