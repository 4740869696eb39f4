"""Callbacks of training: one progress bar or line, and loss weights that change while training."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ProgressCallback

from st_xling.losses.base import CombinedLoss
from st_xling.training.options import check_keys, read_value
from st_xling.utils.console import on_terminal, pace, progress_bar

logger = logging.getLogger(__name__)

_NOT_SHOWN = {"learning_rate", "grad_norm", "epoch", "total_flos", "step"}


class StderrProgress(ProgressCallback):
    """transformers' bar under another name, on a terminal alone; each time it logs, one line in place of a table."""

    def __init__(self, description: str = "training") -> None:
        super().__init__()
        self.description = description

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # A resumed run continues the bar where the checkpoint was written.
        self.first, self.began = state.global_step, time.perf_counter()
        self.current_step = state.global_step
        if state.is_world_process_zero:
            options: dict[str, Any] = {"total": state.max_steps, "initial": self.first, "desc": self.description}
            self.training_bar: Any = progress_bar(**options, unit="steps", show=on_terminal())

    def on_prediction_step(self, *args: Any, **kwargs: Any) -> None:
        """No second bar."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if self.training_bar is None or not logs or "train_runtime" in logs:
            return
        # The loss components, and of evaluations the one number that chooses the checkpoint.
        shown = [
            f"{name.removeprefix('eval_').removesuffix('_accuracy')} {value:.3f}"
            for name, value in logs.items()
            if isinstance(value, float)
            and name not in _NOT_SHOWN
            and not name.endswith(("runtime", "per_second"))
            and (not name.startswith("eval_") or name.endswith(("mean_accuracy", "acc@1")))
        ]
        step, last = state.global_step, state.max_steps
        if shown:
            speed = pace(step - self.first, last - step, time.perf_counter() - self.began)
            logger.info("%s: step %d of %d, %s: %s", self.description, step, last, speed, ", ".join(shown))

    def close(self) -> None:
        """Clear the bar; an interrupted run would otherwise draw it over the message."""
        if self.training_bar is not None:
            self.training_bar.close()


class ScheduledWeights(TrainerCallback):
    """Sets the weights of a sum's terms before each step; they depend on the step alone, so resuming needs no state.

    Args:
        loss: The sum.
        ramps: Name of a term → ``start``, ``end`` and ``steps``: its weight runs in a straight line and stays there.
    """

    def __init__(self, loss: CombinedLoss, ramps: dict[str, dict[str, float]]) -> None:
        self.loss, self.ramps = loss, ramps

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        for name, ramp in self.ramps.items():
            share = min(1.0, state.global_step / ramp["steps"])
            self.loss.set_weight(name, ramp["start"] + (ramp["end"] - ramp["start"]) * share)


def read_weight(value: Any, where: str) -> float | dict[str, float | int]:
    """A recipe's weight: a number, or ``{start: 0, end: 1, steps: 1000}``.

    Raises:
        ValueError: Negative or not finite weights, steps below 1, or unknown keys.
    """
    if not isinstance(value, dict):
        return _weight(value, where)
    check_keys(value, keys := ("start", "end", "steps"), where)
    if len(value) < len(keys):
        raise ValueError(f"{where} as a ramp needs start, end and steps: got {', '.join(value) or 'none of them'}.")
    steps = read_value(value["steps"], int, f"{where}.steps")
    if steps < 1:
        raise ValueError(f"{where}.steps must be at least 1: got {steps}.")
    return {**{key: _weight(value[key], f"{where}.{key}") for key in ("start", "end")}, "steps": steps}


def _weight(value: Any, where: str) -> float:
    weight = read_value(value, float, where)
    if not 0 <= weight < math.inf:
        raise ValueError(f"{where} must be a finite number, 0 or more: got {weight}.")
    return weight
