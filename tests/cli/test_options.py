"""Options as they are declared; the library's defaults; helps that come at once."""

from __future__ import annotations

import argparse
import inspect
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from st_xling.cli import build_parser, main
from st_xling.cli.evaluate import TASKS
from st_xling.cli.options import Options, command, set_options
from st_xling.cli.parser import Parser
from st_xling.data.reranking.specs import load_pool_specs
from st_xling.data.retrieval import load_retrieval_specs
from st_xling.evaluation import BuccEvaluator, postprocess, xsim_by_language
from st_xling.evaluation.compare import compare_models
from st_xling.evaluation.retrieval import RetrievalEvaluator
from st_xling.mining import encode, mine_texts, plan_mining, score_texts
from st_xling.models.slim import slim_model
from st_xling.reranking import rerank_texts, search_texts

OPTIONS = Options(
    """
MODEL            a folder
TEXT...          several
--k N            neighbors (default: 4)
--share SHARE    100 % of it
--kind {a,b}     one of these
--data SPEC      where (required, repeatable)
--more XX...     each use adds several, in
                 one list (repeatable)
--codes LIST...  joined by commas or spaces
a group:
    what it is about
--yes            do
| --no, --never  do not
--number WORD    read by a function
""",
    number={"type": int, "default": 7},
)


def parsed(*words: str) -> argparse.Namespace:
    parser = Parser(prog="p")
    OPTIONS.add_to(parser)
    return parser.parse_args(["m", "t", "u", "--data", "x", *words])


def test_what_a_declaration_means() -> None:
    plain = {name: value for name, value in vars(parsed()).items() if name != "actions"}
    nothing = dict.fromkeys(("k", "share", "kind", "codes"), None) | {"more": [], "yes": False, "no": False}
    assert plain == {"model": "m", "text": ["t", "u"], "data": ["x"], "number": 7, **nothing}
    said = parsed(
        *["--k", "3", "--share", ".5", "--kind", "b", "--data", "y", "--more", "a", "b", "--more", "c", "--never"]
    )
    assert (said.k, said.share, said.kind, said.data, said.more) == (3, 0.5, "b", ["x", "y"], ["a", "b", "c"])
    assert parsed("--codes", "de,en", "fr").codes == ["de", "en", "fr"]
    assert said.no and not said.yes and parsed("--number", "8").number == 8


@pytest.mark.parametrize("words", [["--k", "x"], ["--kind", "c"], ["--yes", "--no"]])
def test_what_a_declaration_refuses(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parsed(*words)


def test_a_help_is_its_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    parser = Parser(prog="p")
    OPTIONS.add_to(parser)
    shown = parser.format_help()
    assert "100 % of it" in shown and "each use adds several, in one list" in shown
    assert "a group:\n  what it is about\n" in shown and "--no, --never" in shown


def test_set_options_are_what_was_said_and_is_taken() -> None:
    def function(model: str, *, k: int = 4, yes: bool = False, more: list[str] | None = None) -> None: ...

    assert set_options(parsed("--k", "0", "--share", "1"), function) == {"model": "m", "k": 0}


def leaf(*words: str) -> argparse.ArgumentParser:
    parser: Any = build_parser()
    for word in words:
        [below] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        parser = below.choices[word]
    return parser


# What commands decide by themselves, or say in their own words.
OWN = {"progress", "show_progress_bar", "write_csv", "place", "text_files", "filters", "view", "pairs", "pools", "sets"}
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
BY_THEMSELVES = {
    "evaluate xsim": {"name"},
    "evaluate bucc": {"train_split"},
    "compare": {"models"},
    "postprocess": {"evaluate_on"},
}


@pytest.mark.parametrize("name", CALLED)
def test_a_command_offers_what_the_library_takes_with_its_defaults(name: str) -> None:
    options = {action.dest: action for action in leaf(*name.split())._actions}
    for function in CALLED[name]:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in OWN | BY_THEMSELVES.get(name, set()):
                continue
            action = options["store_dtype" if parameter.name == "dtype" else parameter.name]
            assert action.default in (None, False, []), f"{parameter.name} has a default of the command's own"
            if type(parameter.default) in (int, float) and "default: " in (action.help or ""):
                assert f"(default: {parameter.default:g}" in str(action.help), parameter.name
            elif isinstance(parameter.default, str) and "default" in (action.help or ""):
                words = (f"default: {parameter.default}", f"{parameter.default} (default)", f"{parameter.default}: ")
                assert (action.help is not None and any(word in action.help for word in words)) or action.choices


COMMANDS = "demo train evaluate compare transfer leak encode mine score rerank search slim card push reproduce"
COMMANDS += " postprocess"
HELPS = ["", *COMMANDS.split(" ")]
HELPS += [f"evaluate {task.name}" for task in TASKS] + ["train dap"]


def test_helps_come_at_once() -> None:
    """Without torch or what else takes seconds to import; processor time, since others may share the machine."""
    script = f"""
import contextlib, io, sys
from st_xling.cli import main
for words in {HELPS!r}:
    shown = io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            main([*words.split(), "--help"])
    except SystemExit as end:
        assert end.code == 0
    words = words.removesuffix(" dap")
    assert shown.getvalue().startswith("usage: " + " ".join(["st-xling", *words.split()]) + " "), words
heavy = {{"torch", "transformers", "sentence_transformers", "datasets", "numpy"}} & set(sys.modules)
assert not heavy, heavy
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 2


def test_a_command_is_its_docstring(tmp_path: Path) -> None:
    def run(arguments: argparse.Namespace) -> None:
        """Do it.

        It does what
        it does.

        --k N  how often

        examples:
          p do --k 3

        That is all.
        """

    parser = Parser(prog="p")
    command("do")(run).add_parser(parser.add_subparsers())
    below = parser._subparsers._group_actions[0].choices["do"]  # type: ignore[union-attr,index]
    assert below.description == "It does what it does." and below.epilog == "examples:\n  p do --k 3\n\nThat is all."
    assert "do it" in parser.format_help() and parser.parse_args(["do", "--k", "3"]).run.__self__.run is run


WRITERS = {
    "mine": "mine a b --model absent --rejects r",
    "score": "score a --model absent --rejects r",
    "rerank": "rerank absent --queries a --passages b",
    "align": "align a --model absent",
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
    for words in [*passed, ["--out", "begun"]] if name != "align" else passed:
        assert "--overwrite" not in error(*words)
    if "--rejects" in WRITERS[name]:
        Path("r").write_text("mine", encoding="utf-8")
        assert "--rejects r exists: add --overwrite " in error("--out", "-")
    assert Path("old").read_text(encoding="utf-8") == "mine"
