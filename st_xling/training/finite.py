"""Training stops when a loss, a gradient or a weight is no longer a number, before anything is spoilt by it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
import torch.distributed as dist
from sentence_transformers.util.distributed import get_world_size
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.training.checkpoint import newest_checkpoint

TOTAL = "the loss"


class NotFiniteError(ValueError):
    """NaN or infinity while training.

    Attributes:
        step: The optimiser step, counted from 1, that was not made, or whose weights were not saved.
        values: Name of a loss component, ``"gradient norm"`` or a weight → its value.
        checkpoint: The last checkpoint, or ``None``; nothing later was written.
    """

    def __init__(self, step: int, values: Mapping[str, str], *, precision: str, checkpoint: Path | None) -> None:
        self.step, self.values, self.checkpoint = step, dict(values), checkpoint
        what = ", ".join(f"{name} is {value}" for name, value in values.items())
        lower = "a lower --learning-rate or a longer --warmup"
        lower += " or --precision bf16" if precision == "fp16" else ""
        if checkpoint is None:
            stands = f"there is no checkpoint yet; start again with {lower}"
        else:
            stands = f"{checkpoint} stands: go on from it with --model {checkpoint}, {lower}, and another --out"
        super().__init__(f"expected finite numbers in training step {step}: {what}. Training has stopped; {stands}.")


class FiniteGuard(TrainerCallback):
    """Looks at every step's loss components and gradient norm once, before the optimiser does.

    The device is waited for once a step; which component it was is asked only when one was bad.
    """

    def __init__(self) -> None:
        self._losses: list[dict[str, Tensor]] = []
        self._norm: Tensor | None = None

    def see_losses(self, components: Mapping[str, Tensor]) -> None:
        """Components of one forward pass; *Shape:* ``()`` each."""
        self._losses.append({name: value.detach() for name, value in components.items()})

    def see_gradient_norm(self, norm: Tensor | float | None) -> None:
        """The norm before clipping; ``None`` where a grad scaler (fp16) skips steps of infinite gradients by itself."""
        self._norm = norm if isinstance(norm, Tensor) else None

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        self._losses, self._norm = [], None

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        norm = self._norm
        seen = [value for components in self._losses for value in components.values()]
        watched = [value.float().reshape(()) for value in (*seen, *([] if norm is None else [norm]))]
        if not watched:
            return
        bad = (~torch.stack([value.to(watched[0].device) for value in watched]).isfinite()).any()
        if not _anywhere(bad):
            return
        found = {name: value for part in self._losses for name, value in part.items() if not bool(value.isfinite())}
        if len(found) > 1:
            found.pop(TOTAL, None)  # its components say more
        if norm is not None and not bool(norm.isfinite()):
            found["gradient norm"] = norm
        values = {name: _shown(value) for name, value in found.items()} or {"a loss of another process": "not finite"}
        raise NotFiniteError(state.global_step + 1, values, precision=_precision(args), checkpoint=_last(args))

    def check_weights(self, args: TrainingArguments, state: TrainerState, named: Iterable[tuple[str, Tensor]]) -> None:
        """Before a checkpoint: a last step can spoil weights that no further loss would show."""
        bad = [name for name, weight in named if not bool(weight.detach().isfinite().all())]
        if bad:
            values = {f"weight {name}": "not finite" for name in bad[:3]}
            raise NotFiniteError(state.global_step, values, precision=_precision(args), checkpoint=_last(args))


def _anywhere(bad: Tensor) -> bool:
    """Whether it is true in any process: all must stop, or those that go on wait for ever."""
    if get_world_size() > 1:
        flag = bad.to(torch.int32)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)
    return bool(bad)


def _shown(value: Tensor) -> str:
    number = float(value)
    return "NaN" if math.isnan(number) else "-infinity" if number < 0 else "infinity"


def _precision(args: TrainingArguments) -> str:
    return "fp16" if args.fp16 else "bf16" if args.bf16 else "fp32"


def _last(args: TrainingArguments) -> Path | None:
    return newest_checkpoint(Path(str(args.output_dir)), compare=False)
