"""Our options as sentence-transformers' arguments: how many steps, and where checkpoints and log lines fall."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.training import TrainingOptions
from st_xling.training.arguments import read_training, total_steps, training_arguments


def args(tmp_path: Path, rows: int = 1000, best: str | None = None, **options: Any) -> Any:
    return training_arguments(TrainingOptions(**options), tmp_path, rows=rows, best_metric=best)


def test_steps() -> None:
    def steps(rows: int, processes: int = 1, **options: Any) -> int:
        return total_steps(TrainingOptions(per_device_train_batch_size=10, **options), rows, processes)

    assert (steps(100), steps(3), steps(100, 2), steps(100, max_steps=7)) == (10, 1, 5, 7)
    assert (steps(109, num_train_epochs=2.5), steps(100, gradient_accumulation_steps=4)) == (25, 3)


@pytest.mark.parametrize("rows", [1, 50, 999, 12_345, 1_000_000])
@pytest.mark.parametrize("log_steps", [0, 1, 7])
def test_checkpoints_fall_on_logged_steps(rows: int, log_steps: int, tmp_path: Path) -> None:
    """A checkpoint between two log lines would cut the first line after a resume short."""
    made = args(tmp_path, rows, logging_steps=log_steps, per_device_train_batch_size=16)
    steps = total_steps(TrainingOptions(per_device_train_batch_size=16), rows)
    assert made.save_steps == made.eval_steps
    assert made.save_steps % made.logging_steps == 0 or made.save_steps == steps
    assert log_steps in (0, made.logging_steps)
    assert args(tmp_path, 128_000, best="eval_x").eval_steps == 100  # ten of them
    apart = args(tmp_path, rows, logging_steps=log_steps, eval_steps=14)
    assert apart.save_steps == apart.eval_steps <= 14  # less: the end comes first
    assert apart.eval_steps < 14 or 14 % apart.logging_steps == 0


def test_samplers_and_dropping(tmp_path: Path) -> None:
    made = args(tmp_path).batch_sampler
    assert made.func is LengthGroupedBatchSampler
    assert made.keywords == {"alpha": None, "one_pair": False, "keep_duplicates_apart": True}
    assert args(tmp_path, group_by_length=False).batch_sampler.func is ShuffledBatchSampler
    asked = args(tmp_path, language_alpha=0.5, batches="one_pair", keep_duplicates_apart=False).batch_sampler.keywords
    assert asked == {"alpha": 0.5, "one_pair": True, "keep_duplicates_apart": False}
    assert args(tmp_path, rows=128).dataloader_drop_last and not args(tmp_path, rows=127).dataloader_drop_last


def test_a_stream(tmp_path: Path) -> None:
    made = training_arguments(TrainingOptions(max_steps=50), tmp_path, rows=None)
    assert made.max_steps == 50 and made.eval_steps == 5 and made.dataloader_drop_last
    assert made.batch_sampler == "batch_sampler" and made.accelerator_config.dispatch_batches is False
    with pytest.raises(ValueError, match=r"a stream has no end that is known: .* set training.max_steps / --max-steps"):
        training_arguments(TrainingOptions(), tmp_path, rows=None)


def test_any_argument_of_sentence_transformers_passes_through(tmp_path: Path) -> None:
    section = {"adam_beta2": "98e-2", "report_to": "none", "prompts": {"source": "q: "}, "save_total_limit": None}
    section |= {"logging_first_step": True, "save_strategy": "epoch", "eval_strategy": "no"}
    section |= {"auto_find_batch_size": True}
    options = read_training(section)
    assert {**section, "adam_beta2": 0.98}.items() <= options.as_dict().items()
    made = training_arguments(options, tmp_path, rows=1000)
    assert (made.adam_beta2, made.prompts, made.save_strategy) == (0.98, {"source": "q: "}, "epoch")
    assert made.logging_first_step and made.auto_find_batch_size and made.save_total_limit is None
    with pytest.raises(ValueError, match="training.adam_beta2 must be a number: got 'high'"):
        read_training({"adam_beta2": "high"})
    with pytest.raises(ValueError, match="training has no key 'adam_beta3'; did you mean 'adam_beta"):
        read_training({"adam_beta3": 0.9})
    with pytest.raises(ValueError, match="sentence-transformers refuses .*sometimes"):
        training_arguments(read_training({"eval_strategy": "sometimes"}), tmp_path, rows=10, best_metric="x")
    for key in ("output_dir", "hub_token", "save_only_model", "metric_for_best_model", "push_to_hub", "save_steps"):
        with pytest.raises(ValueError, match=f"has no key '{key}'"):
            read_training({key: True})


def test_a_cpu_has_bfloat16_too(tmp_path: Path) -> None:
    """Sentence-transformers refuses it on a machine without a GPU unless it is told that the CPU is meant."""
    made = args(tmp_path, bf16=True)
    assert made.bf16 and made.device.type == (torch.accelerator.current_accelerator() or torch.device("cpu")).type
    assert not args(tmp_path).use_cpu


RANGES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("learning_rate", "num_train_epochs"), (0, -1e-4, math.inf, math.nan)),
    **dict.fromkeys(("warmup_steps", "weight_decay", "language_alpha", "max_grad_norm"), (-0.1, math.nan)),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps", "shuffle_buffer"), (0,)),
    **dict.fromkeys(("eval_steps", "logging_steps", "seed", "early_stopping_patience", "warm_up_heads"), (-1,)),
    **{"mini_batch_size": (-2, 3), "max_steps": (0, -2), "save_total_limit": (0,)},
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in RANGES.items() for value in values])
def test_numbers_out_of_range_are_named(key: str, value: float) -> None:
    """A learning rate of 0 trains for as long as any other, and changes nothing."""
    with pytest.raises(ValueError, match=f"training.{key} .*got {value}"):
        read_training({key: value})
