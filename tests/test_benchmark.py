"""``python -m tests.benchmarks``: a line for each ratio."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import filters
from tests.benchmarks.__main__ import FOLDER, NAMES
from tests.benchmarks.measure import Ratio, describe


@pytest.mark.parametrize("name", NAMES)
def test_each_can_be_imported(name: str) -> None:
    assert callable(importlib.import_module(f"tests.benchmarks.{name}").measure)


@pytest.mark.parametrize(
    ("ratio", "line"),
    [
        (Ratio("a", "b", 2.0, at_most=1.5), "a by b: 2: at most 1.5, MISSED"),
        (Ratio("a", "b", 2.0, at_least=1.5), "a by b: 2: at least 1.5"),
        (Ratio("a", "b", [0.0666, 0.05], at_most=0.1), "a by b: 0.0583 (0.05-0.0666): at most 0.1"),
        (Ratio("a", "b", [], at_most=1.5, note="no faiss"), "a by b: no faiss"),
    ],
)
def test_targets(ratio: Ratio, line: str) -> None:
    assert describe("a", ratio.as_dict()) == line


def test_documents_are_read_with_english_first_in_gold(tmp_path: Path) -> None:
    """Sides guessed by their numbers of lines were swapped in a document with equally many, and its pairs wrong."""
    folder = tmp_path / "book.fr"
    folder.mkdir()
    (folder / "en").write_text("Where is it?\nNo.\nHere. Look.\nls\n", encoding="utf-8")
    (folder / "xx").write_text("Non.\nOù est-ce ?\nIci.\nRegardez.\nls\n", encoding="utf-8")
    (folder / "gold").write_text("[0]:[1]\n[1]:[0]\n[2]:[2, 3]\n[3]:[4]\n", encoding="utf-8")
    document = filters.read(folder)
    assert document.language == "fr"
    assert document.gold == {("Où est-ce ?", "Where is it?"), ("Non.", "No.")}
    assert document.together == document.gold | {
        ("Ici.", "Here. Look."),
        ("Regardez.", "Here. Look."),
        ("ls", "ls"),
    }


@pytest.mark.slow
def test_some_of_the_benchmarks_run_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ST_XLING_DATA", raising=False)
    monkeypatch.delenv("ST_XLING_E5", raising=False)
    names = ["filters", "losses", "mining", "training"]
    command = [sys.executable, "-m", "tests.benchmarks", *names, "--quick", "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert "THE FIGURES SAY NOTHING" in ran.stdout and "MISSED" not in ran.stdout
    for name in names:
        assert json.loads((tmp_path / f"{name}.json").read_text())["ratios"]
