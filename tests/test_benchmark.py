"""``python -m tests.benchmarks``: a line for each ratio."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import aligners, document_pairing, filters
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


def test_other_aligners_read_each_group_by_its_last_sentence(tmp_path: Path) -> None:
    """Vecalign and Bertalign look groups up by their last sentence, ours by the first: a shift would beat them all."""
    document = aligners.Document("book", "de", ["a", "b", "c"], ["d"], [])
    texts = [aligners.PAD, "a", "b", "c", "a b", "b c", "d"]
    vectors = aligners.Vectors(texts, np.eye(7))
    aligners.write_vectors(document, vectors, 3, tmp_path / "book.npz")
    arrays = np.load(tmp_path / "book.npz")
    assert arrays["source"].argmax(axis=2).tolist() == [[1, 2, 3], [0, 4, 5]]
    assert arrays["source_bytes"].tolist() == [[1, 1, 1], [3, 3, 3]]
    assert arrays["target"].argmax(axis=2).tolist() == [[6], [0]]


def test_an_aligner_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Without the environment of the peers, the table of our own figures is printed all the same."""
    groups, reason = aligners.align_by_peer(sys.executable, "bertalign", tmp_path, 5)
    assert groups is None and "not installed" in reason


def test_pairs_of_documents_are_counted(tmp_path: Path) -> None:
    """What the guide says of --pair comes from these counts, of three draws without a fifth of either side."""
    source, target = document_pairing.made_up(60, 32)
    assert document_pairing.count_pairs(source, target) == (108, 108, 108)
    others = document_pairing.count_pairs(source, target[1:] + target[:1])
    assert others.correct == 0 < others.pairs
    (tmp_path / "gold").write_text("[0]:[1]\n[1]:[]\n[2]:[0, 2]\n[3]:[]\n", encoding="utf-8")
    assert document_pairing.cut(tmp_path, 2) == ([[1], [0, 2]], [[0, 1], [2, 3]])


@pytest.mark.slow
def test_some_of_the_benchmarks_run_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> None:
    monkeypatch.delenv("ST_XLING_DATA", raising=False)
    monkeypatch.delenv("ST_XLING_E5", raising=False)
    names = ["filters", "losses", "mining", "training"]
    command = [warm_python, "-m", "tests.benchmarks", *names, "--quick", "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert "THE FIGURES SAY NOTHING" in ran.stdout and "MISSED" not in ran.stdout
    for name in names:
        assert json.loads((tmp_path / f"{name}.json").read_text())["ratios"]
