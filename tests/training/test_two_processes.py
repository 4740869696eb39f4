"""Training in two processes: the real launchers, the real command, and one model at the end."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from st_xling.cli import main
from tests.processes import Ended, alive_with, run_together
from tests.training.spread_arguments import CASES
from tests.training.spread_training import SECONDS

pytestmark = pytest.mark.slow

ACCELERATE = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
STEPS = 40


def command(out: Path, batch: int) -> list[str]:
    """All 32 pairs are one step's: whatever the order, two processes of 16 see what one of 32 sees."""
    words = "train dap --model tiny --data phrasebook:de?size=32 --dev none --eval-steps 5"
    words += " --tiny hidden_size=32 --tiny layers=1 --tiny vocabulary=400 --tiny dropout=0.0"
    words += f" --set losses.representation_translation.layers=1 --max-steps {STEPS} --batch-size {batch} --out {out}"
    return words.split()


def launch(launcher: list[str], words: list[str], folder: Path, **options: Any) -> Ended:
    return run_together([[*launcher, "-m", "st_xling.cli", *words]], folder, seconds=SECONDS, **options)[0]


def history(out: Path) -> list[dict[str, float]]:
    lines = (out / "training" / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if "loss" in entry]


def interrupt_after(checkpoint: Path) -> Any:
    """What a terminal does at Ctrl-C: the launcher alone hears it, its children have sessions of their own."""

    def wait(launcher: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + SECONDS
        while not (checkpoint / "done.json").exists() and time.monotonic() < end and launcher.poll() is None:
            time.sleep(0.02)
        launcher.send_signal(signal.SIGINT)

    return wait


def test_stopped_and_resumed_it_is_one_process_of_twice_the_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "together"
    alone = tmp_path / "alone"
    checkpoint = out / "training" / "checkpoint-5"
    stopped = launch(TORCHRUN, command(out, 16), tmp_path / "first", disturb=interrupt_after(checkpoint))
    assert stopped.status not in (0, None), stopped.stderr
    assert alive_with(str(out)) == []
    assert stopped.stderr.count("Resume with:") == 1 and "--resume" in stopped.stderr
    assert not (out / "model.safetensors").exists() and stopped.stdout == ""

    finished = launch(ACCELERATE, [*command(out, 16), "--resume"], tmp_path / "second")
    assert finished.status == 0, finished.stderr
    assert finished.stdout.startswith(f"{STEPS} steps in ") and finished.stdout.count("\n") == 1
    assert finished.stderr.count("32 pairs") == 1
    assert json.loads((out / "training" / "run.json").read_text())["processes"] == 2

    assert main(command(alone, 32)) == 0
    capsys.readouterr()
    mine = history(out)
    theirs = history(alone)
    assert [entry["step"] for entry in mine] == [entry["step"] for entry in theirs]
    for left, right in zip(mine, theirs):
        for key in ("loss", "translation_ranking", "representation_translation"):
            assert left[key] == pytest.approx(right[key], abs=2e-3), f"step {left['step']}"
    assert mine[-1]["loss"] < mine[0]["loss"] - 1
    texts = ["Das Buch ist alt.", "The book is old."]
    vectors = [torch.tensor(SentenceTransformer(str(folder)).encode(texts)) for folder in (out, alone)]
    assert torch.cosine_similarity(*vectors).min() > 0.9999


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Path:
    folder = tmp_path_factory.mktemp("spread")
    words = [*TORCHRUN, "-m", "tests.training.spread_training", str(folder)]
    ended = run_together([words], folder, seconds=SECONDS + 10, python=warm_python)[0]
    assert (folder / "rank0.safetensors").exists() and (folder / "rank1.safetensors").exists(), ended.stderr
    (folder / "ended.json").write_text(json.dumps([ended.status, ended.stderr]))
    return folder


def told(folder: Path, rank: int) -> dict[str, Any]:
    return json.loads((folder / f"rank{rank}.json").read_text())


def test_both_end_with_the_same_model_and_heads(trained: Path) -> None:
    """Their heads began apart, on purpose: the main process's are taken."""
    states = [load_file(trained / f"rank{rank}.safetensors") for rank in range(2)]
    assert any(name.startswith("loss.") for name in states[0])
    torch.testing.assert_close(*states, rtol=0, atol=1e-6)


def test_the_cache_of_sentence_transformers_keeps_them_equal(trained: Path) -> None:
    """In its own trainer; the two have different numbers of mini-batches, and wait for each other once a step."""
    states = [load_file(trained / f"cached{rank}.safetensors") for rank in range(2)]
    torch.testing.assert_close(*states, rtol=0, atol=1e-6)
    assert any(
        not torch.equal(states[0][name], weight) for name, weight in load_file(trained / "start.safetensors").items()
    )


def test_each_sees_its_own_rows_in_whole_rounds_shuffled_anew(trained: Path) -> None:
    steps = [told(trained, rank)["rows"] for rank in range(2)]
    assert len(steps[0]) == len(steps[1]) == 4  # two rounds of two batches an epoch
    epochs = [[row for rank in steps for batch in rank[first : first + 2] for row in batch] for first in (0, 2)]
    for rows in epochs:
        assert len(set(rows)) == len(rows) >= 11  # the short batch may be among them
    assert epochs[0] != epochs[1]


def test_an_error_in_one_is_an_error_in_all(trained: Path) -> None:
    first, second = (told(trained, rank)["failures"] for rank in (0, 1))
    assert first[0] == second[0] == "done" and first[3] == second[3] == "from main"
    assert first[1:3] == ["ValueError: no room in 0", "ValueError: process 1 of 2: no room in 1"]
    assert second[1:3] == [f"AnotherProcessFailed: no room in {rank}" for rank in (0, 1)]


def test_a_refused_command_ends_both_with_one_message(trained: Path) -> None:
    """The program's last act is the command line, with a folder that is not empty."""
    status, stderr = json.loads((trained / "ended.json").read_text())
    assert status not in (0, None)
    assert stderr.count("st-xling: error:") == 1, stderr
    assert f"st-xling: error: --out must be empty or a run of ours: {trained} contains " in stderr


def test_both_have_the_same_columns_of_negatives_and_labels(
    saved_encoder: Path, tmp_path: Path, warm_python: str
) -> None:
    """Called before the training arguments were made, the second process took itself for one without a main one."""
    (tmp_path / "model").symlink_to(saved_encoder)
    words = [*TORCHRUN, "-m", "tests.training.spread_columns", str(tmp_path)]
    ended = run_together([words], tmp_path, seconds=SECONDS, python=warm_python)[0]
    assert ended.status == 0, ended.stderr
    first, second = (told(tmp_path, rank) for rank in range(2))
    assert first == second and first["processes"] == 2 and first["steps"] == 2
    assert len(first["negatives"]) == len(first["labels"]) == 64


@pytest.fixture(scope="module")
def by_arguments(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Path:
    """A folder with the ends of a script's runs, in one process and in two."""
    folder = tmp_path_factory.mktemp("arguments")
    for name, launcher in (("one", []), ("two", TORCHRUN)):
        (folder / name).mkdir()
        words = [*launcher, "-m", "tests.training.spread_arguments", str(folder / name)]
        ended = run_together([words], folder / f"{name}.log", seconds=2 * SECONDS, python=warm_python)[0]
        assert ended.status == 0, ended.stderr
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_script_with_our_arguments_ends_as_one_process_of_twice_the_batch(case: str, by_arguments: Path) -> None:
    """Batches of one pair, balanced languages, mini-batches, adapters and heads that learn alone, all by arguments."""

    def end(launched: str, rank: int) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        file = by_arguments / launched / f"{case}.rank{rank}"
        return json.loads(Path(f"{file}.json").read_text(encoding="utf-8")), load_file(f"{file}.safetensors")

    alone, state_alone = end("one", 0)
    first, state_first = end("two", 0)
    second, state_second = end("two", 1)
    torch.testing.assert_close(state_first, state_second, rtol=0, atol=1e-6)
    assert first["steps"] == alone["steps"] == 6
    assert first["losses"] == second["losses"] == pytest.approx(alone["losses"], abs=1e-4)
    torch.testing.assert_close(state_first, state_alone, rtol=0, atol=2e-3)
    assert first["languages"] == second["languages"] == alone["languages"]
    pairs_in_steps = {len(languages) for languages in first["languages"]}
    assert pairs_in_steps == ({1} if case.startswith("one pair") else {2})
