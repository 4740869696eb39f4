"""``python -m tests.benchmarks``: a line for each ratio."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_some_of_the_benchmarks_run_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ST_XLING_DATA", raising=False)
    names = ["losses", "mining", "mining_approximate"]
    command = [sys.executable, "-m", "tests.benchmarks", *names, "--quick", "--out", str(tmp_path)]
    ran = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout
    assert "THE FIGURES SAY NOTHING" in ran.stdout and "MISSED" not in ran.stdout
    for name in names:
        assert json.loads((tmp_path / f"{name}.json").read_text())["ratios"]
