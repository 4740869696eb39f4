"""A run that was killed or interrupted, and resumed, is the run that never was."""

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.processes import Ended
from tests.training.children import Death, st_xling

STEPS = 16
"""Two epochs of 8: 2 · 68 pairs, about two held out, by 16; a checkpoint every 3 steps and at the end."""


def command(out: Path, *options: str) -> list[str]:
    # Dropout 0.1 and grouping by length are the defaults; both directions and languages give the head more to remember.
    words = "train dap --model tiny --data phrasebook:de,zh?size=68 --epochs 2 --batch-size 16 --eval-steps 3"
    for shape in ("hidden_size=32", "vocabulary=500", "layers=1", "max_length=24", "pooling=cls"):
        words += f" --tiny {shape}"
    for option in ("layers=1", "languages=auto", "direction=both", "mask_ratio=0.8"):
        words += f" --set losses.representation_translation.{option}"
    return [*words.split(), "--set", "arguments.save_total_limit=10", "--out", str(out), *options]


def train(out: Path, *options: str, death: Death | None = None) -> Ended:
    return st_xling(command(out, *options), out.parent / "streams", death)


def history(out: Path) -> list[dict[str, Any]]:
    """Logged steps without what a clock says; the last entry averages over the process's own steps."""
    lines = (out / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    clocks = ("_runtime", "_per_second")
    entries = [json.loads(line) for line in lines[:-1]]
    return [{key: value for key, value in entry.items() if not key.endswith(clocks)} for entry in entries]


def checkpoints(out: Path) -> list[int]:
    return sorted(int(path.name.rsplit("-", 1)[1]) for path in (out / "training").glob("checkpoint-*"))


def assert_same_run(out: Path, undisturbed: Path) -> None:
    resumed_history = history(out)
    expected_history = history(undisturbed)
    assert [entry["step"] for entry in resumed_history] == [entry["step"] for entry in expected_history]
    for mine, theirs in zip(resumed_history, expected_history):
        assert mine == pytest.approx(theirs, abs=1e-6)
    last = f"training/checkpoint-{STEPS}"
    for name in ("model.safetensors", f"{last}/model.safetensors", f"{last}/loss.safetensors"):
        torch.testing.assert_close(load_file(out / name), load_file(undisturbed / name), rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    outcome = train(out)
    assert outcome.status == 0, outcome.stderr
    return out


def test_the_undisturbed_run_is_worth_repeating(undisturbed: Path) -> None:
    """Otherwise equality would prove little: components, a head that moves, checkpoints in both epochs."""
    logged = [entry for entry in history(undisturbed) if "loss" in entry]
    assert [entry["step"] for entry in logged] == list(range(1, STEPS + 1))
    for entry in logged:
        parts = entry["translation_ranking"] + entry["representation_translation"]
        assert entry["loss"] == pytest.approx(parts, abs=1e-3)
    assert checkpoints(undisturbed) == [3, 6, 9, 12, 15, 16]
    heads = [load_file(undisturbed / f"training/checkpoint-{step}/loss.safetensors") for step in (3, STEPS)]
    moved = [key for key in heads[0] if not torch.equal(heads[0][key], heads[1][key])]
    assert any(key.endswith("head.bias") for key in moved)
    assert any(key.endswith("language_embeddings.weight") for key in moved)


@pytest.mark.slow
def test_killed_in_a_step(undisturbed: Path, tmp_path: Path) -> None:
    step = 6
    out = tmp_path / "run"
    assert train(out, death=Death(step=step)).status == -9
    assert not (out / "model.safetensors").exists()
    assert max(checkpoints(out)) == (step - 1) // 3 * 3  # the step was not finished
    outcome = train(out, "--resume")
    assert outcome.status == 0, outcome.stderr
    assert_same_run(out, undisturbed)
    assert json.loads((out / "training" / "run.json").read_text())["finished"] is True
    assert "checkpoint-" not in (out / "README.md").read_text(encoding="utf-8")  # no model of its own to start from


def short_command(out: Path) -> list[str]:
    words = "train tr --model tiny --data phrasebook:vi?size=40 --dev none --batch-size 8 --eval-steps 3 --max-steps 8"
    words += " --tiny hidden_size=32 --tiny layers=1 --tiny vocabulary=300"
    return [*words.split(), "--set", "losses.translation_ranking={margin: 1e-1}", "--out", str(out)]


def pasted(stderr: str) -> list[str]:
    """The words that a shell makes of the message's last line."""
    line = stderr.rstrip().splitlines()[-1]
    seen = subprocess.run(["sh", "-c", f"printf '%s\\0' {line.strip()}"], capture_output=True, text=True, check=True)
    words = seen.stdout.split("\0")[:-1]
    assert words == shlex.split(line)
    return words


def test_ctrl_c_then_the_printed_command(tmp_path: Path) -> None:
    out = tmp_path / "it's a  $HOME; run"  # what a careless quote would trip over
    stopped = st_xling(short_command(out), tmp_path / "first", Death(step=5, number=signal.SIGINT))
    assert stopped.status == 130, stopped.stderr
    assert stopped.stdout == ""
    assert "Traceback" not in stopped.stderr
    assert str(out / "training" / "checkpoint-3") in stopped.stderr
    assert checkpoints(out) == [3]

    program, *words = pasted(stopped.stderr)
    assert program == "st-xling" and words[-1] == "--resume"
    finished = st_xling(words, tmp_path / "second")
    assert finished.status == 0, finished.stderr
    assert finished.stdout.startswith("8 steps in ")
    assert [entry["step"] for entry in history(out) if "loss" in entry] == list(range(1, 9))


@pytest.mark.slow
def test_ctrl_c_before_the_first_checkpoint(tmp_path: Path) -> None:
    """There is nothing to resume: the command that is printed starts again, however often it is stopped."""
    out = tmp_path / "run"
    stopped = st_xling([*short_command(out), "--resume"], tmp_path / "first", Death(step=2, number=signal.SIGINT))
    assert stopped.status == 130, stopped.stderr
    assert "Interrupted before the first checkpoint" in stopped.stderr
    words = pasted(stopped.stderr)[1:]
    assert words == [*short_command(out), "--overwrite"]
    stopped = st_xling(words, tmp_path / "second", Death(step=2, number=signal.SIGINT))
    assert stopped.status == 130 and pasted(stopped.stderr)[1:] == words  # no second --overwrite
