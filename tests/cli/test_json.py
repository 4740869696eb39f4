"""``--json`` on every command: a file, or stdout with nothing else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from st_xling._version import __version__
from st_xling.cli import build_parser, main
from tests.test_examples import LEAVES

LEAK = "leak --train phrasebook:de?size=30 --eval phrasebook:de?size=30&split=train"


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.prog)
def test_every_command_with_results_has_it(leaf: argparse.ArgumentParser) -> None:
    assert "--json" in leaf._option_string_actions


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


def test_a_card_and_a_push(encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["card", str(encoder), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": {"path": str(encoder / "README.md"), "validated": False}}
    assert main(["push", str(encoder), "user/my-encoder", "--dry-run", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    push = json.loads(out)["push"]
    assert (push["repo_id"], push["url"]) == ("user/my-encoder", None) and "would go to user/my-encoder" in err
    assert {file["path"] for file in push["files"]} >= {"README.md", "modules.json"}


def test_stdout_is_one() -> None:
    arguments = build_parser().parse_args(["mine", "a", "b", "--out", "-", "--json", "-"])
    with pytest.raises(ValueError, match="--out - and --json -"):
        from st_xling.cli.parser import check_arguments

        check_arguments(arguments)
