"""The one command: helps at once, says in a line what is wrong, keeps stdout for figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from tests.conftest import PAIRS
from tests.training.children import st_xling

SMALL = ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300", "--batch-size", "8"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets for its own process ends with the test."""
    for name in ("TOKENIZERS_PARALLELISM", "TRANSFORMERS_VERBOSITY", "TRANSFORMERS_NO_ADVISORY_WARNINGS"):
        monkeypatch.setenv(name, os.environ.get(name, "true" if name == "TOKENIZERS_PARALLELISM" else "error"))


@pytest.fixture
def tsv(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    return path


TRAIN = ["train", "tr", "--model", "tiny", "--data", "phrasebook:vi?size=8"]


def test_an_occupied_folder_is_told_before_the_data_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "tr", "--model", "tiny", "--data", "de-en=absent", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("st-xling: error: --out must")
    assert main([*TRAIN, *SMALL, "--out", str(tmp_path), "--overwrite"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_train_prints_figures_and_nothing_else(tsv: Path, tmp_path: Path) -> None:
    """In a process of its own, whose two streams are files."""
    out, figures = tmp_path / "run", tmp_path / "deep" / "figures.json"
    words = [*f"train dap --model tiny --data {tsv} --dev {tsv} --out {out} --json {figures}".split(), *SMALL]
    words += ["--max-steps", "2", "--batch-size", "4", "--max-length", "16"]
    ran = st_xling([*words, "--set", "losses.representation_translation.layers=1"], tmp_path)
    assert ran.status == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert len(lines) == 1 and lines[0].startswith("2 steps in ")
    assert lines[0].endswith(f"the model is in {out}") and "best development accuracy" in lines[0]
    assert (
        "pairs: 8 pairs" in ran.stderr and "dap: step 2 of 2, " in ran.stderr and "translation_ranking " in ran.stderr
    )
    assert json.loads(figures.read_text()) == json.loads((out / "results.json").read_text())
    assert json.loads(figures.read_text())["training"]["steps"] == 2
    assert SentenceTransformer(str(out), device="cpu").encode(["Hallo"]).shape == (1, 32)


def test_flags_win_over_the_recipe_and_set_over_flags(tsv: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["train", "tr", "--model", "tiny", "--data", str(tsv), "--dev", "none", "--out", str(out), *SMALL]
    words += ["--max-steps", "1"]
    assert main([*words, "--learning-rate", "0.5", "--warmup", "0.5", "--set", "training.learning_rate=5e-5"]) == 0
    recipe = json.loads((out / "training" / "run.json").read_text())["recipe"]
    assert recipe["training"]["learning_rate"] == 5e-5
    assert recipe["training"]["warmup_steps"] == 0.5


def test_training_goes_on_from_a_saved_encoder(
    tsv: Path, saved_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--model FOLDER`` with the pooling and length of our choice; in quiet, of which the run keeps no trace."""
    out = tmp_path / "run"
    words = ["train", "tr", "--model", str(saved_encoder), "--data", str(tsv), "--dev", "none", "--out", str(out)]
    assert main(["-q", *words, "--max-steps", "1", "--pooling", "max", "--max-length", "12"]) == 0
    assert capsys.readouterr().err == ""
    command = json.loads((out / "training" / "run.json").read_text())["command"]
    assert command.startswith("st-xling train tr ") and "-q" not in command
    saved = SentenceTransformer(str(out), device="cpu")
    assert saved.max_seq_length == 12 and "max" in (out / "1_Pooling" / "config.json").read_text()


def test_a_reader_of_stdout_that_ends() -> None:
    """As ``head``: not a word."""
    command = [sys.executable, "-m", "st_xling.cli", "train", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        ran.stdout.close()
        _, err = ran.communicate(timeout=100)
    assert (ran.returncode, err) == (1, b"")
