"""transformers' ``Trainer``, which stops at what is not a number, seals its checkpoints and ends where it ended."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import Trainer

from st_xling.training.checkpoint import FILES, damage, enough_room, forget_last_call, remove_earlier, seal, seconds_at
from st_xling.training.finite import TOTAL, FiniteGuard


class FiniteTrainer(Trainer):
    """``transformers.Trainer``, or what else goes after it among the bases of a class.

    NaN or infinity in a loss, a gradient or a weight stops training before it is used or saved (:class:`FiniteGuard`).
    A checkpoint is whole when its ``files.json`` stands (:mod:`st_xling.training.checkpoint`); earlier ones are removed
    after that. A run that is resumed from its last checkpoint makes no further step.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
        OSError: No room for a checkpoint; the last whole one stands.
        ValueError: The best checkpoint, which the run ends with, is damaged.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.finite = FiniteGuard()
        self.add_callback(self.finite)
        self._seconds_before, self._started = 0.0, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time of training, with that of the parts before the checkpoint that it went on from."""
        return self._seconds_before + time.perf_counter() - self._started

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        known = resume_from_checkpoint if isinstance(resume_from_checkpoint, str) else None
        self._seconds_before, self._started = seconds_at(known), time.perf_counter()
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        """What a checkpoint keeps, by name."""
        assert self.model is not None
        return self.model.named_parameters()

    def _run_epoch(self, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step >= self.state.max_steps:
            # The host asks after a step: resumed from the last checkpoint, it would make one more.
            self.control.should_training_stop = True
            return None
        return super()._run_epoch(*args, **kwargs)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        result = super().compute_loss(*args, **kwargs)
        loss = result[0] if isinstance(result, tuple) else result
        assert self.model is not None
        if self.model.training:
            self.finite.see_losses({TOTAL: loss})
        return result

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        self.finite.see_gradient_norm(norm if self.accelerator.scaler is None else None)
        return norm

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.finite.check_weights(self.args, self.state, self.trained_weights())
        folder = Path(str(self.args.output_dir))
        checkpoint, limit = folder / f"checkpoint-{self.state.global_step}", self.args.save_total_limit
        if self.args.should_save:
            (checkpoint / FILES).unlink(missing_ok=True)  # of a damaged one, which is written anew
        # The host removes earlier checkpoints as soon as it has written its own files: too early, were the machine to
        # stop before files.json stands.
        self.args.save_total_limit = None
        try:
            with enough_room(checkpoint, folder):
                forget_last_call(self.model)
                super()._save_checkpoint(*args, **kwargs)
                self.accelerator.wait_for_everyone()  # other processes write their random states there
                if self.args.should_save:
                    if self.processing_class is not None:  # ST saved it after it had encoded examples for the card
                        forget_last_call(self.model)
                        self.processing_class.save_pretrained(str(checkpoint))
                    seal(checkpoint, seconds=self.seconds)
        except BaseException:
            if self.args.should_save and not (checkpoint / FILES).is_file():  # sealed, it is whole: Ctrl-C came after
                shutil.rmtree(checkpoint, ignore_errors=True)
            raise
        finally:
            self.args.save_total_limit = limit
        if self.args.should_save:
            remove_earlier(checkpoint, keep=limit, best=self.state.best_model_checkpoint)

    def _load_best_model(self) -> None:
        best = self.state.best_model_checkpoint
        if best is not None:
            here = Path(str(self.args.output_dir)) / Path(best).name  # the run may have been moved since
            fault = damage(here)
            if fault is not None:  # the host would log an error and end with the last weights
                raise ValueError(f"the run ends with its best checkpoint, but {here} is damaged: {fault}; --resume.")
            self.state.best_model_checkpoint = str(here)
        super()._load_best_model()
