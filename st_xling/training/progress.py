"""A single training bar on stderr, with the loss components beside it."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

_SHOWN_APART = {"learning_rate", "grad_norm", "epoch", "total_flos", "step"}


class StderrProgress(TrainerCallback):
    """Replaces the host's bar, which writes its logs to stdout, where our figures go."""

    def __init__(self, description: str = "training") -> None:
        self.description = description
        self.bar: Any = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        if state.is_world_process_zero:
            total, done = state.max_steps, state.global_step
            self.bar = tqdm(total=total, initial=done, desc=self.description, file=sys.stderr, dynamic_ncols=True)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if self.bar is None or not logs or "train_runtime" in logs:
            return
        shown = {
            name.removeprefix("eval_").removesuffix("_accuracy"): f"{value:.3f}"
            for name, value in logs.items()
            if isinstance(value, float)
            and name not in _SHOWN_APART
            and not name.endswith(("runtime", "per_second"))
            and (not name.startswith("eval_") or name.endswith(("mean_accuracy", "acc@1")))
        }
        self.bar.set_postfix(shown)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the bar as it stands; an interrupted run would otherwise draw it over the message."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
