"""Options of commands, their defaults, which are the library's, and what is checked before anything is read."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling._version import __version__
from st_xling.cli import main
from st_xling.cli.app import HELP, fill
from st_xling.data.reranking.specs import load_pool_specs
from st_xling.data.retrieval import load_retrieval_specs
from st_xling.evaluation import BuccEvaluator, xsim_by_language
from st_xling.evaluation.compare import compare_models
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.mining import EncodingOptions, SearchOptions, align_texts, encode, mine_texts, score_texts
from st_xling.models.slim import slim_model
from st_xling.reranking import search_texts
from st_xling.training import recipe_names
from tests.commands import COMMANDS, command_lines, examples, parse


def test_lists_take_commas_spaces_and_repeats() -> None:
    line = "st-xling evaluate bucc m --data d --pairs"
    for words in ("de-en,fr-en", "de-en fr-en", "de-en --pairs fr-en"):
        assert parse(f"{line} {words}")["pairs"] == ["de-en", "fr-en"]
    assert parse("st-xling card m --languages ''")["languages"] == []
    assert parse("st-xling reproduce dap --seeds 0,2 --seeds 1")["seeds"] == ["0", "2", "1"]


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"st-xling {__version__}\n"


def test_paragraphs_are_filled_and_examples_are_not() -> None:
    assert fill("One\n    line.\n\n    \b\n    examples:\n      a\n") == "One line.\n\n\b\nexamples:\n  a"


def test_the_help_lists_every_recipe() -> None:
    listed = COMMANDS["st-xling train"].help.partition("recipes:\n")[2].partition("examples:")[0]
    assert set(recipe_names(None)) <= set(listed.replace(";", " ").replace(",", " ").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_ten_options_come_before_the_others(name: str) -> None:
    """Others have panels; each command has ``--json``."""
    names: list[str] = []
    for parameter in COMMANDS[name].params:
        is_option = parameter.opts[0].startswith("-")
        if is_option and not parameter.rich_help_panel:
            names.append(parameter.name)
    assert "json" in names
    assert len(names) <= 10


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("trian", "train"),
        ("evaluate tatoba", "tatoeba"),
        ("train dap --data a.tsv --oot b", "--out"),
        ("train dap --lr=1e-5", "did you mean --learning-rate?"),
        ("train dap --output_dir x", "did you mean --out?"),
        ("mine a b --threshold high --out c", "published"),
        ("reproduce dap 1 --out t --seeds 1,1", "1,1"),
        ("encode m t --out x --dtype flot16", "float16"),
        ("train dap", "--model, --data, --out"),
        ("train --print", "--print needs the name of a recipe"),
        ("card a b", "b"),
        ("evaluate tatoeba m", "--data"),
    ],
)
def test_usage_errors(words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert named in err


CALLED: dict[str, list[Callable[..., Any]]] = {
    "encode": [encode, EncodingOptions],
    "mine": [mine_texts, SearchOptions, EncodingOptions],
    "score": [score_texts, SearchOptions, EncodingOptions],
    "align-documents": [align_texts, EncodingOptions],
    "search": [search_texts],
    "slim": [slim_model],
    "evaluate bucc": [BuccEvaluator.from_spec],
    "evaluate xsim": [xsim_by_language],
    "evaluate reranking": [load_pool_specs],
    "evaluate retrieval": [load_retrieval_specs, RetrievalEvaluator],
    "compare": [compare_models],
}
RENAMED = {"dtype": "store_dtype", "candidates": "max_candidates"}


@pytest.mark.parametrize("name", CALLED)
def test_a_help_names_the_defaults_of_the_library(name: str) -> None:
    options = {option.name: option for option in COMMANDS[f"st-xling {name}"].params}
    checked = 0
    for function in CALLED[name]:
        for parameter in inspect.signature(function).parameters.values():
            option = options.get(RENAMED.get(parameter.name, parameter.name))
            default_in_help = re.search(r"\(default: ([\w.]+)\)", str(option and option.help))
            is_value = isinstance(parameter.default, (int, float, str)) and parameter.name != "threshold"
            if default_in_help and is_value:
                assert default_in_help[1] == str(parameter.default), parameter.name
                checked += 1
    assert checked


def test_helps_come_at_once() -> None:
    """Without torch or other imports that take seconds."""
    script = f"""
import contextlib, io, sys
from st_xling._version import __version__
from st_xling.cli import main
for words in {["st-xling", "st-xling evaluate", *COMMANDS]!r}:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main([*words.split()[1:], "--help"]) == 0
    assert f"Usage: {{words}} " in shown.getvalue(), words
heavy = {{"torch", "transformers", "sentence_transformers", "datasets", "numpy"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_examples_of_the_help_can_be_copied_from_80_columns() -> None:
    """Long lines were broken without a backslash: what was copied ran half of the command.

    Spaces behind a backslash would make it continue nothing.
    """
    words = ["st-xling", *COMMANDS]
    script = f"""
from st_xling.cli import main
for words in {words!r}:
    main([*words.split()[1:], "--help"])
"""
    env = {**os.environ, "COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    process = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=env)
    lines = process.stdout.splitlines()
    assert not [line for line in lines if line != line.rstrip()]
    copied = command_lines("\n".join(lines))
    for text in [HELP, *(str(command.help) for command in COMMANDS.values())]:
        for example in examples(text):
            assert example in copied
    assert max(len(line) for line in lines if line.strip().startswith("st-xling ")) <= 74
    # A flag has no value, and nobody types braces or brackets of a type.
    assert not [line for line in lines if re.search(r"<(bool|str|int|float|path)>|Usage: .*[{}]", line)]


WRITERS = {
    "mine": "mine a b --model absent --rejects r",
    "score": "score a --model absent --rejects r",
    "rerank": "rerank absent --queries a --passages b",
    "align-documents": "align-documents a b --model absent --rejects r",
    "align-words": "align-words a --model absent",
}


@pytest.mark.parametrize("name", WRITERS)
def test_an_earlier_result_is_not_replaced_unasked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is an error before anything is read. What is empty has nothing to lose, and work that goes on is not asked."""
    monkeypatch.chdir(tmp_path)
    contents = {"old": "mine", "empty": "", "begun": "mine", "begun.work/done.json": "{}"}
    for file, content in contents.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(content, encoding="utf-8")

    def error(*words: str) -> str:
        assert main([*WRITERS[name].split(), *words]) == 2
        return capsys.readouterr().err

    assert error("--out", "old").startswith("st-xling: error: --out old exists: add --overwrite ")
    allowed = [["--out", "old", "--overwrite"], ["--out", "empty"], ["--out", "new"]]
    if name != "align-words":  # it has no work folder
        allowed.append(["--out", "begun"])
    for words in allowed:
        assert "--overwrite" not in error(*words)
    if "--rejects" in WRITERS[name]:
        Path("r").write_text("mine", encoding="utf-8")
        assert "--rejects r exists: add --overwrite " in error("--out", "-")
    assert Path("old").read_text(encoding="utf-8") == "mine"
