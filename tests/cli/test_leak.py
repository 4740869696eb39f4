"""``st-xling leak``, and what ``train`` does about text that will judge it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from st_xling import __version__
from st_xling.cli import main

ROWS = ["Der Hund schläft.\tThe dog sleeps.", "Ich lese.\tI read.", "Es regnet.\tIt is raining.", "แมวดำ\tA black cat."]
SMALL = ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300", "--batch-size", "4"]


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(ROWS * 2 + ["Danke.\tThanks."] * 4) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def test_set(tmp_path: Path) -> Path:
    path = tmp_path / "test.txt"
    path.write_text("it is raining\nI sing.\n", encoding="utf-8")
    return path


def test_leak(tsv: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "deep" / "figures.json"
    words = ["leak", "--train", str(tsv), "--eval", str(test_set), "--json", str(figures)]
    assert main(words) == 0
    out, err = capsys.readouterr()
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert out.splitlines()[-1] == written["signature"] and written["signature"].endswith(f"st-xling:{__version__}")
    assert "test 2 1 (50.0 %) - - pairs 1" in " ".join(out.split())
    assert "pairs: 2 of 12 training rows in question" in out
    assert written["sets"]["test"]["text"]["examples"] == [{"text": "It is raining.", "train": "pairs", "row": 3}]
    assert err == ""

    assert main([*words, "--stream"]) == 0 and capsys.readouterr().out == out
    assert main([*words, "--fail-on-leak"]) == 2
    out, err = capsys.readouterr()
    assert "1 (50.0 %)" in out  # the figures come first
    assert err.startswith("st-xling: error: training data must not hold evaluation text") and err.count("\n") == 1


def test_train_says_that_it_saw_the_head_of_a_stream(
    tsv: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = [*f"train tr --model tiny --data {tsv} --stream --dev none --out {out}".split(), *SMALL]
    assert main([*words, "--max-steps", "1", "--check-leak", str(test_set)]) == 0
    assert "pairs (first rows): 2 of 12 training rows in question" in capsys.readouterr().err
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    assert "|train:pairs (first rows)@" in leak["signature"]


def test_train_looks_for_later_tests(
    tsv: Path, test_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = [*f"train tr --model tiny --data {tsv} --dev none --out {out}".split(), *SMALL]
    words += ["--max-steps", "1", "--check-leak", str(test_set)]
    assert main([*words, "--fail-on-leak"]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == "" and "1 of 1 evaluation sets share some (test)" in stderr and not out.exists()

    assert main([*words, "--drop-leaks"]) == 0
    stdout, stderr = capsys.readouterr()
    assert len(stdout.splitlines()) == 1
    assert "pairs: 2 of 12 training rows dropped" in stderr and "e.g. pairs row 3: It is raining." in stderr
    leak = json.loads((out / "results.json").read_text(encoding="utf-8"))["leak"]
    assert leak["dropped"] is True and leak["train"] == {"pairs": {"rows": 12, "leaked": 2}}
    assert json.loads((out / "training" / "run.json").read_text(encoding="utf-8"))["data"]["pairs"]["rows"] == 10


def test_train_looks_for_development_pairs(tsv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dev.tsv").write_text("Ich lese!\tI'm reading.\nGuten Tag.\tGood day.\n", encoding="utf-8")
    words = f"train tr --model tiny --data {tsv} --dev {tmp_path}/dev.tsv --out {tmp_path}/run".split()
    assert main([*words, *SMALL, "--max-steps", "1"]) == 0
    err = capsys.readouterr().err
    assert "text in both training and evaluation data: 1 of 1 evaluation sets" in err
    assert "1 (50.0 %) 0 (0.0 %) 0 (0.0 %) pairs 1" in " ".join(err.split())
