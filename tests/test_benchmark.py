"""``python -m tests.benchmarks``: one table of all ratios, in which what fails or is skipped is named."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import FOLDER, benchmarks
from tests.benchmarks.measure import Ratio, ratio_table

BENCHMARK = '''"""Counts {what}."""
from tests.benchmarks.measure import Ratio, Skipped, main

def measure(run, *, rows: int = 100):
    yield Ratio("rows", "one", [rows, rows + run.rounds], at_most=150, note=f"{{run.threads}}")
    {then}

if __name__ == "__main__":
    main(measure, rounds=3, quick={{"rows": 4}})
'''


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout whose benchmarks take no time."""
    here = tmp_path / "tests" / "benchmarks"
    here.mkdir(parents=True)
    (here.parent / "__init__.py").touch()
    for name in ("__init__", "__main__", "measure"):
        shutil.copy(FOLDER / f"{name}.py", here)
    for name, then in {"good": "", "skips": "raise Skipped('set ONE')", "fails": "1 / 0"}.items():
        (here / f"{name}.py").write_text(BENCHMARK.format(what=name, then=then), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_one_table_names_what_failed_and_json_has_the_rest(folder: Path) -> None:
    ran = run(folder, "--threads", "2", "--out", "out", "--json", "ratios.json")
    assert ran.returncode == 1 and "2/3 good" in ran.stderr
    content = json.loads((folder / "ratios.json").read_text())
    assert content["machine"]["threads"] == 2 and "faiss" in content["machine"]["versions"]
    expected = {"value": 101.5, "low": 100.0, "high": 103.0, "at_most": 150, "peer": "one", "note": "2"}
    results = content["benchmarks"]
    assert results["good"]["ratios"] == {"rows": expected} and results["good"]["seconds"] >= 0
    assert results["skips"]["ratios"] == {"rows": expected, "skipped": {"peer": "", "note": "set ONE"}}
    assert results["fails"] == {"failed": "ZeroDivisionError: division by zero"}
    rows = {line.split()[0]: line for line in ran.stdout.splitlines() if line[:1].strip()}
    assert rows["fails"].endswith("ZeroDivisionError: division by zero") and "FAILED" in rows["fails"]
    assert rows["good"].split() == ["good", "rows", "one", "102", "(100-103)", "at", "most", "150", "2"]
    assert "set ONE" in ran.stdout and f"torch {content['machine']['versions']['torch']}" in ran.stdout
    assert "ZeroDivisionError" in (folder / "out" / "fails.log").read_text()


@pytest.mark.slow
def test_an_unknown_name_is_an_error(folder: Path) -> None:
    ran = run(folder, "good", "goood")
    assert ran.returncode == 2 and "must be one of fails, good, skips: got goood" in ran.stderr


@pytest.mark.parametrize("name", benchmarks())
def test_each_can_be_imported(name: str) -> None:
    assert callable(importlib.import_module(f"tests.benchmarks.{name}").measure)


def test_each_has_a_line_that_describes_it() -> None:
    assert all(len(line.split()) > 4 and line.endswith(".") for line in benchmarks().values())


@pytest.mark.parametrize(
    ("ratio", "cell"),
    [
        (Ratio("a", "b", 2.0, at_most=1.5), "2      at most 1.5, MISSED"),
        (Ratio("a", "b", 2.0, at_least=1.5), "2      at least 1.5"),
        (Ratio("a", "b", [0.0666, 0.05], at_most=0.1), "0.0583 (0.05-0.0666)  at most 0.1"),
        (Ratio("a", "b", [], at_most=1.5, note="no faiss"), "no faiss"),
    ],
)
def test_targets(ratio: Ratio, cell: str) -> None:
    assert ratio_table({"x": {"a": ratio.as_dict()}}).splitlines()[1].endswith(cell)


@pytest.mark.slow
def test_some_of_the_benchmarks_run_quickly(tmp_path: Path) -> None:
    names = ["adapter", "losses", "mining"]
    ran = run(FOLDER.parents[1], *names, "--quick", "--out", str(tmp_path))
    assert ran.returncode == 0, ran.stdout
    assert "THE FIGURES SAY NOTHING" in ran.stdout and "MISSED" not in ran.stdout
    for name in names:
        ratios = json.loads((tmp_path / f"{name}.json").read_text())["ratios"]
        assert all(ratio["value"] > 0 for ratio in ratios.values())
