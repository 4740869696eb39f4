"""Settings that are wrong are named before torch is loaded, before data are read, and before anything is written."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from st_xling.cli import main
from st_xling.training import load_recipe
from st_xling.training.reranker import load_cross_encoder_recipe
from st_xling.training.retriever import load_retrieval_recipe
from st_xling.training.settings import TRACKERS, check_settings, check_trackers

IMPORTED = """
import sys
from st_xling.cli import main
status = main(sys.argv[1:])
print(status, "torch" in sys.modules, "transformers" in sys.modules)
"""


def test_trackers_are_those_of_transformers() -> None:
    """A canary: transformers' list is private and needs torch."""
    assert TRACKERS.keys() == INTEGRATION_TO_CALLBACK.keys()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("arguments.logging_step=1", "arguments has no key 'logging_step'; did you mean 'logging_steps'?"),
        ("arguments.report_to=tensorbord", "no tracker 'tensorbord'; did you mean 'tensorboard'?"),
        (
            "arguments.report_to=[none, swanlab]",
            "needs the package swanlab, which is not installed: pip install swanlab",
        ),
        ("loses.tlm.weight=1", "the recipe has no key 'loses'; did you mean 'losses'?"),
        ("arguments=5", "arguments must be a mapping of keys: got 5"),
        ("arguments={seed: 1, seed: 2}", "the key 'seed' is in line 1 and again in line 1"),
    ],
)
def test_a_wrong_setting_is_named_before_torch_is_loaded(setting: str, message: str, tmp_path: Path) -> None:
    """It took seven seconds to name `--set arguments.logging_step=1`; trackers failed after the data had been read."""
    words = ["train", "tr", "--model", "tiny", "--data", "phrasebook:de", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", IMPORTED, *words, "--set", setting]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert message in ran.stderr and len(ran.stderr.splitlines()) == 1
    assert ran.stdout.split() == ["2", "False", "False"]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("load", [load_recipe, load_retrieval_recipe, load_cross_encoder_recipe])
def test_a_tracker_that_is_not_installed_is_named_when_the_recipe_is_read(load: object) -> None:
    """It was a traceback of 30 lines at the end of the preparation: "TensorBoardCallback requires tensorboard"."""
    names = {load_recipe: "tr", load_retrieval_recipe: "ir", load_cross_encoder_recipe: "xpi"}
    missing = "tensorboard" if find_spec("tensorboard") is None else "swanlab"
    with pytest.raises(ValueError, match=f"arguments.report_to={missing} needs the package {missing}, which is not"):
        load(names[load], overrides={"arguments.report_to": missing})  # type: ignore[operator, index]


def test_a_folder_of_a_trackers_name_is_no_tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """wandb writes its runs to ./wandb, which Python finds as a package without content."""
    (tmp_path / "swanlab").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="needs the package swanlab"):
        check_trackers("swanlab")
    for fine in (None, "none", "all", ["none"], []):
        check_trackers(fine)


def test_tensorboard_gets_the_losses(tmp_path: Path) -> None:
    """`--set arguments.report_to=tensorboard`, as in the guide: with the loss, its terms and the development score."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    words = ["train", "tr", "--model", "tiny", "--data", "phrasebook:de?size=100", "--dev", "phrasebook:de?size=20"]
    words += ["--tiny", "hidden_size=32", "--tiny", "layers=1", "--tiny", "vocabulary=300"]
    words += ["--max-steps", "2", "--batch-size", "16", "--out", str(tmp_path / "run")]
    assert main([*words, "--set", "arguments.report_to=tensorboard"]) == 0
    [events] = (tmp_path / "run" / "training" / "runs").rglob("events*")
    accumulator = accumulators.EventAccumulator(str(events))
    accumulator.Reload()
    assert {"train/loss", "train/translation_ranking", "eval/dev_mean_accuracy"} <= {*accumulator.Tags()["scalars"]}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("batches", "onepair", "arguments.batches must be one of 'mixed', 'one_pair': got 'onepair'"),
        ("group_by_length", "maybe", "arguments.group_by_length must be .*: got 'maybe'"),
        ("lora.rnk", 4, "arguments.lora has no key 'rnk'; did you mean 'rank'"),
        ("lora.rank", 0, "lora.rank must be at least 1: got 0"),
    ],
)
def test_values_are_named_before_libraries_load(key: str, value: Any, message: str) -> None:
    """The command took six seconds to say so."""
    with pytest.raises(ValueError, match=f"^{message}"):
        check_settings("dap", {f"arguments.{key}": value})
    check_settings(
        "dap", {"arguments.eval_strategy": False, "arguments.lora.rank": 4, "arguments.learning_rate": "5e-5"}
    )
