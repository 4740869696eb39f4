"""What the impatient get: no command, a misspelt command, a misspelt flag; and helps that fit the screen."""

from __future__ import annotations

import pytest

from st_xling.cli import build_parser, main
from st_xling.cli.parser import Parser
from st_xling.cli.train import train
from st_xling.training import recipe_names

WRONG = {
    "trian": ("st-xling", "argument COMMAND: got 'trian'; did you mean 'train'?"),
    "xyz": ("st-xling", "argument COMMAND: got 'xyz'; it is one of demo, train, evaluate, "),
    "evaluate": ("st-xling evaluate", "the following arguments are required: TASK"),
    "evaluate tatoba": ("st-xling evaluate", "argument TASK: got 'tatoba'; did you mean 'tatoeba'?"),
    "train dap --data a.tsv --oot b": ("st-xling train", "no flag is called '--oot'; did you mean '--out'?"),
    "train dap --out b --bach-size=4": (
        "st-xling train",
        "no flag is called '--bach-size'; did you mean '--batch-size'?",
    ),
    "--versoin": ("st-xling", "no flag is called '--versoin'; did you mean '--version'?"),
    "evaluate --data x": ("st-xling evaluate", "argument TASK: got 'x'; it is one of tatoeba, "),
    "mine a b --format bucc": ("st-xling mine", "argument --format: got 'bucc'; it is one of tsv, jsonl"),
    "train ir --encoder separate --model tiny": (
        "st-xling train",
        "the following arguments are required: --data, --out",
    ),
    "train dpa --help": ("st-xling train", "no recipe is called 'dpa'; did you mean 'dap'?"),
    "demo --qqq": ("st-xling demo", "no flag is called '--qqq'"),
    "encode m t --out x --dtype flot16": ("st-xling encode", "argument --dtype: got 'flot16'; did you mean 'float16'?"),
    "train dap": ("st-xling train", "the following arguments are required: --model, --data, --out"),
    "card a b": ("st-xling card", "unrecognized arguments: b"),
}


@pytest.mark.parametrize("words", WRONG)
def test_two_lines_say_what_is_wrong(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    out, err = capsys.readouterr()
    program, message = WRONG[words]
    said, more = err.splitlines()
    assert out == "" and said.startswith(f"{program}: error: {message}")
    assert more == f"try: {program} --help"


def test_no_command_shows_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([])
    out, err = capsys.readouterr()
    assert out == "" and build_parser().format_help() in err
    assert err.endswith("st-xling: error: expected a command, got none\ntry: st-xling --help\n")


def test_what_the_host_takes_is_taken() -> None:
    """Beginnings of flags, values with a space that look like flags, words after two hyphens."""
    parser = Parser(prog="p")
    parser.add_argument("--limits")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("rest", nargs="*")
    assert parser.parse_args(["--learn", "0.5"]).learning_rate == 0.5
    assert parser.parse_args(["--learn=0.5"]).learning_rate == 0.5
    assert parser.parse_args(["--limits", "-- not for poems"]).limits == "-- not for poems"
    assert parser.parse_args(["--limits=--none"]).limits == "--none"
    assert parser.parse_args(["--", "--other"]).rest == ["--other"]


def test_paragraphs_are_filled_and_examples_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    example = f"examples:\n  {'p --flag value ' * 6}"
    shown = Parser(prog="p", description="word " * 40, epilog=example).format_help().splitlines()
    assert max(len(line) for line in shown if line.startswith("word")) <= 60
    assert f"  {'p --flag value ' * 6}" in shown


def test_the_help_lists_every_recipe() -> None:
    listed = (
        train.help.partition("\n    recipes:\n")[2].partition("examples")[0].replace(";", " ").replace(",", " ").split()
    )
    names = recipe_names(None)
    assert set(names) <= set(listed)
