"""Ctrl-C: the last checkpoint stands, and the printed command goes on from it."""

from __future__ import annotations

import shlex
import signal
import subprocess
from pathlib import Path

from tests.training.children import Death, st_xling
from tests.training.test_resume import checkpoints, history


def command(out: Path) -> list[str]:
    words = ["train", "tr", "--data", "phrasebook:vi?size=40", "--dev", "none", "--out", str(out)]
    words += ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300", "--batch-size", "8"]
    return [*words, "--eval-steps", "3", "--max-steps", "8", "--set", "losses.translation_ranking={margin: 1e-1}"]


def pasted(stderr: str) -> list[str]:
    """The words that a shell makes of the message's last line."""
    line = stderr.rstrip().splitlines()[-1]
    seen = subprocess.run(["sh", "-c", f"printf '%s\\0' {line.strip()}"], capture_output=True, text=True, check=True)
    words = seen.stdout.split("\0")[:-1]
    assert words == shlex.split(line)
    return words


def test_ctrl_c_then_the_printed_command(tmp_path: Path) -> None:
    out = tmp_path / "it's a  $HOME; run"  # what a careless quote would trip over
    stopped = st_xling(command(out), tmp_path / "first", Death(step=5, number=signal.SIGINT))
    assert stopped.status == 130, stopped.stderr
    assert stopped.stdout == ""
    assert "Traceback" not in stopped.stderr
    assert f"interrupted; {out / 'training' / 'checkpoint-3'} stands. To go on:" in stopped.stderr
    assert checkpoints(out) == [3]

    program, *words = pasted(stopped.stderr)
    assert program == "st-xling" and words[-1] == "--resume"
    finished = st_xling(words, tmp_path / "second")
    assert finished.status == 0, finished.stderr
    assert finished.stdout.startswith("8 steps in ")
    assert [entry["step"] for entry in history(out) if "loss" in entry] == list(range(1, 9))


def test_ctrl_c_before_the_first_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "run"
    stopped = st_xling([*command(out), "--resume"], tmp_path / "first", Death(step=2, number=signal.SIGINT))
    assert stopped.status == 130, stopped.stderr
    assert "interrupted before the first checkpoint; start again with:" in stopped.stderr
    words = pasted(stopped.stderr)[1:]
    assert words == [*command(out), "--overwrite"]
    stopped = st_xling(words, tmp_path / "second", Death(step=2, number=signal.SIGINT))
    assert stopped.status == 130 and pasted(stopped.stderr)[1:] == words  # no second --overwrite


def test_ctrl_c_while_a_checkpoint_is_written(tmp_path: Path) -> None:
    out = tmp_path / "run"
    death = Death(event="open", path="checkpoint-6/trainer_state.json", number=signal.SIGINT)
    stopped = st_xling(command(out), tmp_path / "first", death)
    assert stopped.status == 130, stopped.stderr
    assert f"interrupted; {out / 'training' / 'checkpoint-3'} stands." in stopped.stderr
    assert checkpoints(out) == [3]
