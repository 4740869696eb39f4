"""``st-xling benchmark``: what fails or is skipped is named, and what is done is not done again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import st_xling.benchmark
from st_xling.benchmark import FOLDER, benchmark_table, benchmarks, ratio_table, run_benchmarks
from st_xling.cli import main
from tests.benchmarks.measure import Ratio

BENCHMARK = '''"""Counts {what}."""
from tests.benchmarks.measure import Ratio, Skipped, main

def measure(run, *, rows: int = 100, words: tuple[str, ...] = (), slow: bool = False):
    yield Ratio("rows", "one", [rows, rows + run.rounds], at_most=150, note=f"{{slow}} {{run.threads}}")
    {then}

if __name__ == "__main__":
    main(measure, rounds=3, quick={{"rows": 4}})
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Benchmarks of seconds, in a source of its own."""
    here = tmp_path / "source" / "tests" / "benchmarks"
    here.mkdir(parents=True)
    for package in (here, here.parent):
        (package / "__init__.py").touch()
    (here / "measure.py").write_text((FOLDER / "measure.py").read_text(encoding="utf-8"), encoding="utf-8")
    for name, then in {"good": "", "skips": "raise Skipped('set ONE')", "fails": "1 / 0"}.items():
        (here / f"{name}.py").write_text(BENCHMARK.format(what=name, then=then), encoding="utf-8")
    monkeypatch.setattr(st_xling.benchmark, "FOLDER", here)
    monkeypatch.chdir(tmp_path)
    return here


def test_one_table_names_what_failed_and_json_has_the_rest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", "--threads", "2", "--out", "out", "--json", "ratios.json"]) == 2
    out, err = capsys.readouterr()
    content = json.loads((tmp_path / "ratios.json").read_text())
    assert content["machine"]["threads"] == 2 and "faiss" in content["machine"]["versions"]
    expected = {"value": 101.5, "low": 100.0, "high": 103.0, "at_most": 150, "peer": "one", "note": "False 2"}
    results = content["benchmarks"]
    assert results["good"]["ratios"] == {"rows": expected} and results["good"]["seconds"] >= 0
    assert results["skips"]["ratios"] == {"rows": expected, "skipped": {"peer": "", "note": "set ONE"}}
    assert results["fails"]["failed"] == "ZeroDivisionError: division by zero"
    assert "error: failed: fails;" in err and "2/3 good" in err
    rows = {line.split()[0]: line for line in out.splitlines() if line[:1].strip()}
    assert rows["fails"].endswith("ZeroDivisionError: division by zero") and "FAILED" in rows["fails"]
    assert rows["good"].split() == ["good", "rows", "one", "102", "(100-103)", "at", "most", "150", "False", "2"]
    assert "set ONE" in out and f"torch {content['machine']['versions']['torch']}" in out
    assert "ZeroDivisionError" in (tmp_path / "out" / "fails.log").read_text()


def test_what_is_done_with_the_same_options_is_not_done_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def value(name: str = "good", **options: Any) -> float:
        return run_benchmarks([name], out=tmp_path / "out", **options)["benchmarks"][name]["ratios"]["rows"]["low"]

    def spoil(name: str) -> None:
        path = tmp_path / "out" / f"{name}.json"
        path.write_text(path.read_text().replace('"low": 100.0', '"low": 7.0'))

    assert value() == value("skips") == 100
    spoil("good"), spoil("skips")
    assert value() == 7
    assert value("skips") == 100  # it may have what it lacked
    monkeypatch.setenv("ST_XLING_E5", "another-encoder")
    assert value() == 100
    assert value(overwrite=True, options={"rows": "50", "slow": None}) == 50
    assert value(quick=True) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["goood"], "no benchmark is called 'goood': did you mean 'good'?"),
        (["mining"], "they are fails, good, skips"),
        (["good", "skips", "--set", "rows=1"], "--set is for one benchmark at a time: got 2 names"),
        (["good", "--set", "columns=1"], "failed: good"),
        (["good", "--threads", "0"], "threads must be at least 1: got 0"),
    ],
)
def test_bad_input(folder: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_installed_package_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(st_xling.benchmark, "FOLDER", tmp_path / "tests" / "benchmarks")
    assert main(["benchmark", "--list"]) == 2
    assert "pip install -e ." in capsys.readouterr().err


def test_each_is_listed_with_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(benchmarks()) == len([*FOLDER.glob("*.py")]) - 2
    assert all(len(line.split()) > 5 and line.endswith(".") for line in lines)


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
    content = run_benchmarks(names, quick=True, out=tmp_path)
    assert [*content["benchmarks"]] == names and content["quick"]
    for name, result in content["benchmarks"].items():
        assert "failed" not in result, (tmp_path / f"{name}.log").read_text()
        assert all(ratio["value"] > 0 for ratio in result["ratios"].values())
    assert "THE FIGURES SAY NOTHING" in benchmark_table(content) and "MISSED" not in benchmark_table(content)
