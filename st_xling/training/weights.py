"""Loss weights that change while training: a straight line from one value to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.losses.base import CombinedLoss
from st_xling.training.strict_keys import check_keys, read_value


@dataclass(frozen=True)
class LinearRamp:
    """A weight that runs from ``start`` to ``end`` over the first ``steps`` optimiser steps and stays there.

    Attributes:
        start: Weight at the first step, 0 or more.
        end: Weight from step ``steps`` on, 0 or more.
        steps: Above 0.
    """

    start: float
    end: float
    steps: int

    def at(self, step: int) -> float:
        """The weight before optimiser step ``step``, counted from 0."""
        return self.start + (self.end - self.start) * min(1.0, step / self.steps)


def read_weight(value: Any, where: str) -> float | dict[str, float | int]:
    """A recipe's weight: a number, or ``{start: 0, end: 1, steps: 1000}``.

    Raises:
        ValueError: Negative or not finite weights, steps below 1, or unknown keys.
    """
    if not isinstance(value, dict):
        return _weight(value, where)
    check_keys(value, ["start", "end", "steps"], where)
    if set(value) != {"start", "end", "steps"}:
        raise ValueError(f"{where} as a ramp needs start, end and steps: got {', '.join(value) or 'none of them'}.")
    steps = read_value(value["steps"], (int,), f"{where}.steps")
    if steps < 1:
        raise ValueError(f"{where}.steps must be at least 1: got {steps}.")
    return {
        "start": _weight(value["start"], f"{where}.start"),
        "end": _weight(value["end"], f"{where}.end"),
        "steps": steps,
    }


def _weight(value: Any, where: str) -> float:
    weight = read_value(value, (float,), where)
    if not 0 <= weight < math.inf:
        raise ValueError(f"{where} must be a finite number, 0 or more: got {weight}.")
    return weight


class ScheduledWeights(TrainerCallback):
    """Sets the weights of a sum's terms before each step; they depend on the step alone, so resuming needs no state.

    Args:
        loss: The sum.
        ramps: Name of a term → its ramp.
    """

    def __init__(self, loss: CombinedLoss, ramps: dict[str, LinearRamp]) -> None:
        self.loss, self.ramps = loss, ramps

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        for name, ramp in self.ramps.items():
            self.loss.set_weight(name, ramp.at(state.global_step))
