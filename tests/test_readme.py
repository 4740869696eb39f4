"""The README's Python runs as printed, in order, where the demo's model lies."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

import st_xling

README = Path(__file__).resolve().parents[1] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=[f"snippet{number}" for number in range(len(SNIPPETS))])
def test_python_snippets_run(snippet, demo, monkeypatch, capsys):
    folder, _ = demo
    monkeypatch.chdir(folder.parent)
    exec(compile(snippet, "README.md", "exec"), {"__name__": "readme"})
    capsys.readouterr()


def test_commands_of_results_parse():
    """Other commands are run (``test_examples.py``); those of results take hours. What has an ellipsis is not whole."""
    import shlex

    from st_xling.cli import build_parser

    results = README.read_text(encoding="utf-8").partition("## Results")[2]
    commands = [command for command in re.findall(r"`(st-xling [^`]*)`", results) if "…" not in command]
    assert len(commands) >= 5
    for command in commands:
        build_parser().parse_args(shlex.split(command)[1:])


FILES = [path for path in Path(st_xling.__file__).parent.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(README.parent).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    globs = {**vars(module), "torch": importlib.import_module("torch")}
    result = doctest.testmod(module, extraglobs=globs, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not result.failed
