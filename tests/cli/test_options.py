"""Options of commands and their defaults, which are the library's; lists of words; helps that come at once."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling._version import __version__
from st_xling.cli import main
from st_xling.cli.app import fill
from st_xling.cli.options import given, numbers
from st_xling.data.reranking.specs import load_pool_specs
from st_xling.data.retrieval import load_retrieval_specs
from st_xling.evaluation import BuccEvaluator, postprocess, xsim_by_language
from st_xling.evaluation.compare import compare_models
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.mining import align_texts, encode, mine_texts, plan_mining, score_texts
from st_xling.models.slim import slim_model
from st_xling.reranking import rerank_texts, search_texts
from st_xling.training import recipe_names
from tests.commands import COMMANDS, parse


def test_lists_take_commas_spaces_and_repeats() -> None:
    line = "st-xling evaluate bucc m --data d --pairs"
    for words in ("de-en,fr-en", "de-en fr-en", "de-en --pairs fr-en"):
        assert parse(f"{line} {words}")["pairs"] == ["de-en", "fr-en"]
    assert parse("st-xling card m --languages ''")["languages"] == []
    assert numbers("--seeds", ["0,2", "1"]) == [0, 2, 1]
    with pytest.raises(ValueError, match="--seeds must be distinct whole numbers.*0,0"):
        numbers("--seeds", ["0,0"])


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"st-xling {__version__}\n"


def test_given_keeps_what_was_set() -> None:
    assert given(k=0, margin=None, overwrite=False) == {"k": 0, "overwrite": False}


def test_paragraphs_are_filled_and_examples_are_not() -> None:
    assert fill("One\n    line.\n\n    \b\n    examples:\n      a\n") == "One line.\n\n\b\nexamples:\n  a"


def test_the_help_lists_every_recipe() -> None:
    listed = COMMANDS["st-xling train"].help.partition("recipes:\n")[2].partition("examples:")[0]
    assert set(recipe_names(None)) <= set(listed.replace(";", " ").replace(",", " ").split())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("trian", "train"),
        ("evaluate tatoba", "tatoeba"),
        ("train dap --data a.tsv --oot b", "--out"),
        ("mine a b --format bucc", "jsonl"),
        ("mine a b --threshold high --out c", "published"),
        ("reproduce dap 1 --out t --seeds 1,1", "1,1"),
        ("evaluate bucc m --data d --threshold best", "best"),
        ("mine a b --out c --k many", "--k"),
        ("encode m t --out x --dtype flot16", "float16"),
        ("train dap", "--model, --data, --out"),
        ("card a b", "b"),
        ("evaluate tatoeba m", "--data"),
    ],
)
def test_usage_errors(words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and named in err


# What commands decide by themselves, or say in their own words.
OWN = {"progress", "show_progress_bar", "place", "text_files", "filters", "view", "pairs", "pools", "sets"}
OWN |= {"data_name", "command", "complete", "languages", "parity_texts", "texts", "queries", "threshold", "work"}
OWN |= {
    "encoder",
    "keep",
    "no_relevant",
    "phrasebook_split",
    "dev_share",
    "test_share",
    "specs",
    "corpora",
    "train",
    "folder",
    "options",
}
CALLED: dict[str, list[Callable[..., Any]]] = {
    "encode": [encode],
    "mine": [mine_texts, plan_mining],
    "score": [score_texts],
    "align-documents": [align_texts],
    "rerank": [rerank_texts],
    "search": [search_texts],
    "slim": [slim_model],
    "postprocess": [postprocess],
    "evaluate bucc": [BuccEvaluator.from_folder],
    "evaluate xsim": [xsim_by_language],
    "evaluate reranking": [load_pool_specs],
    "evaluate retrieval": [load_retrieval_specs, RetrievalEvaluator],
    "compare": [compare_models],
}
RENAMED = {
    "encode": {"dtype": "store_dtype", "format": "text_format", "blank": "blank_lines"},
    "mine": {"dtype": "store_dtype", "calibrate_with": "calibrate"},
    "align-documents": {"dtype": "store_dtype", "html_page": "html"},
    "search": {"candidates": "max_candidates"},
}
BY_THEMSELVES = {
    "evaluate xsim": {"name"},
    "evaluate bucc": {"train_split"},
    "compare": {"models"},
    "postprocess": {"evaluate_on"},
}


@pytest.mark.parametrize("name", CALLED)
def test_a_command_offers_what_the_library_takes_with_its_defaults(name: str) -> None:
    options = {each.name: each for each in COMMANDS[f"st-xling {name}"].params}
    for function in CALLED[name]:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in OWN | BY_THEMSELVES.get(name, set()):
                continue
            option = options[RENAMED.get(name, {"dtype": "store_dtype"}).get(parameter.name, parameter.name)]
            help, default = str(option.help), parameter.default
            if type(default) in (int, float) and "default: " in help:
                assert f"(default: {default:g}" in help, parameter.name
            elif isinstance(default, str) and "default: " in help:
                assert f"default: {default}" in help or f"default: --{parameter.name}" in help, parameter.name


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


@pytest.mark.parametrize("spec", ["de-en=a.tsv?sise=3", "de-en=a.tsv?size=x", "phrasebook:de?columns=0,1"])
def test_options_of_a_spec_are_checked_at_once(spec: str, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n", encoding="utf-8")
    script = f"""
import sys
from st_xling.cli import main
assert main(["train", "tr", "--model", "tiny", "--data", {spec!r}, "--out", "o"]) == 2
assert "torch" not in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and spec.partition("?")[2].partition("=")[0] in ran.stderr, ran.stderr


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
    for file, content in {"old": "mine", "empty": "", "begun": "mine", "begun.work/done.json": "{}"}.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(content, encoding="utf-8")

    def error(*words: str) -> str:
        assert main([*WRITERS[name].split(), *words]) == 2
        return capsys.readouterr().err

    assert error("--out", "old").startswith("st-xling: error: --out old exists: add --overwrite ")
    passed = [["--out", "old", "--overwrite"], ["--out", "empty"], ["--out", "new"]]
    for words in [*passed, ["--out", "begun"]] if name != "align-words" else passed:
        assert "--overwrite" not in error(*words)
    if "--rejects" in WRITERS[name]:
        Path("r").write_text("mine", encoding="utf-8")
        assert "--rejects r exists: add --overwrite " in error("--out", "-")
    assert Path("old").read_text(encoding="utf-8") == "mine"
