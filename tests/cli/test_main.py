"""The one command: ``--json`` on every command, a file or stdout with nothing else, and a reader that ends."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_results_come_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LEAK.split(), "--json", "-", "--fail-on-leak"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["signature"] in err and "st-xling: error: " in err


def test_stdout_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mine", "a", "b", "--out", "-", "--json", "-"]) == 2
    assert "--out - and --json -" in capsys.readouterr().err


def test_a_reader_of_stdout_that_ends() -> None:
    """As ``head``: not a word."""
    command = [sys.executable, "-m", "st_xling.cli", "train", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        ran.stdout.close()
        _, err = ran.communicate(timeout=100)
    assert (ran.returncode, err) == (1, b"")
