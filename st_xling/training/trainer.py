"""Trainers of sentence-transformers and transformers, with what training here needs on top.

:class:`FiniteTrainer` (any ``transformers.Trainer``) stops at NaN and marks complete checkpoints,
:class:`GuardedTrainer` (any trainer of sentence-transformers) adds mixed precision for losses and LoRA,
:class:`CrossLingualTrainer` (encoders) adds the loss's own parameters, language columns and several processes.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import transformers.trainer
from accelerate.utils import broadcast
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.util.distributed import get_world_size
from torch import Tensor, nn
from torch.utils.data import BatchSampler
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.data.text_columns import text_columns
from st_xling.losses import CachedLoss
from st_xling.losses.base import CrossLingualLoss
from st_xling.models.length_groups import grouped_by_length
from st_xling.models.lora import has_adapters, load_adapters
from st_xling.training.checkpoint import (
    DONE,
    LOSS_STATE_NAME,
    enough_room,
    forget_last_call,
    is_complete,
    load_loss_state,
    mark_complete,
    newest_checkpoint,
    own_state,
    remove_earlier,
    save_loss_state,
    seconds_at,
)
from st_xling.utils.languages import match_language

TOTAL = "the loss"
LANGUAGE_SUFFIX = "_language"
NOT_TEXT = ("label", "labels", "score", "scores", "dataset_name", "return_loss")
"""Columns that sentence-transformers keeps for itself."""


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
            remedy = f"there is no checkpoint yet; start again with {lower}"
        else:
            remedy = f"{checkpoint} stands: go on from it with --model {checkpoint}, {lower}, and another --out"
        super().__init__(f"expected finite numbers in training step {step}: {what}. Training has stopped; {remedy}.")


class FiniteGuard(TrainerCallback):
    """Checks every step's loss components and gradient norm once, before the optimiser uses them.

    The device is waited for once a step; which component it was is read only when one was bad.
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
        values = [value for components in self._losses for value in components.values()]
        watched = [value.float().reshape(()) for value in (*values, *([] if norm is None else [norm]))]
        if not watched:
            return
        bad = (~torch.stack([value.to(watched[0].device) for value in watched]).isfinite()).any()
        if get_world_size() > 1:  # all processes must stop, or those that go on wait for ever
            flag = bad.to(torch.int32)
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            bad = flag.bool()
        if not bool(bad):
            return
        faults = {name: value for part in self._losses for name, value in part.items() if not bool(value.isfinite())}
        if len(faults) > 1:
            faults.pop(TOTAL, None)  # its components say more
        if norm is not None and not bool(norm.isfinite()):
            faults["gradient norm"] = norm
        shown = {name: _shown(value) for name, value in faults.items()} or {"a loss of another process": "not finite"}
        raise _not_finite(state.global_step + 1, shown, args)

    def check_weights(self, args: TrainingArguments, state: TrainerState, named: Iterable[tuple[str, Tensor]]) -> None:
        """Before a checkpoint: a last step can spoil weights that no further loss would show."""
        bad = [name for name, weight in named if not bool(weight.detach().isfinite().all())]
        if bad:
            raise _not_finite(state.global_step, {f"weight {name}": "not finite" for name in bad[:3]}, args)


def _not_finite(step: int, values: Mapping[str, str], args: TrainingArguments) -> NotFiniteError:
    precision = "fp16" if args.fp16 else "bf16" if args.bf16 else "fp32"
    last = newest_checkpoint(Path(str(args.output_dir)))
    return NotFiniteError(step, values, precision=precision, checkpoint=last)


def _shown(value: Tensor) -> str:
    number = float(value)
    return "NaN" if math.isnan(number) else "-infinity" if number < 0 else "infinity"


class FiniteTrainer(Trainer):
    """``transformers.Trainer``, or what else follows it among the bases of a class.

    NaN or infinity in a loss, a gradient or a weight stops training before it is used or saved (:class:`FiniteGuard`).
    A checkpoint is complete when its ``done.json`` is written (:mod:`st_xling.training.checkpoint`); earlier ones are
    removed after that. A run that is resumed from its last checkpoint makes no further step.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
        OSError: No room for a checkpoint; the last complete one stands.
        ValueError: The best checkpoint, which the run ends with, is missing.
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
            # transformers checks after a step: resumed from the last checkpoint, it would make one more.
            self.control.should_training_stop = True
            return None
        return super()._run_epoch(*args, **kwargs)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        result = super().compute_loss(*args, **kwargs)
        assert self.model is not None
        if self.model.training:
            self.finite.see_losses({TOTAL: result[0] if isinstance(result, tuple) else result})
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
            (checkpoint / DONE).unlink(missing_ok=True)  # of one that is written anew
        # transformers removes earlier checkpoints as soon as it has written its own files: too early, were the machine
        # to stop before done.json is written.
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
                    mark_complete(checkpoint, seconds=self.seconds)
        except BaseException:
            if self.args.should_save and not is_complete(checkpoint):  # otherwise Ctrl-C came after it
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
            if not is_complete(here):  # transformers would log an error and end with the last weights
                raise ValueError(f"the run ends with its best checkpoint, but {here} is missing; use --overwrite.")
            self.state.best_model_checkpoint = str(here)
        super()._load_best_model()


class GuardedTrainer(FiniteTrainer, BaseTrainer):
    """Goes before one of sentence-transformers' trainers among the bases of a class.

    Besides what :class:`FiniteTrainer` does: of checkpoints with equal scores, the latest is kept. Mixed precision
    holds for all that the loss computes. On a CPU the encoder reads a batch in groups of rows of like length (see
    :func:`grouped_by_length`), unless the arguments have a ``split_by_length`` of ``False``. Adapters that peft has put
    into the model are restored without their base.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
    """

    def train(self, *args: Any, **kwargs: Any) -> Any:
        split = getattr(self.args, "split_by_length", True) and not self.args.torch_compile
        with grouped_by_length(self.model) if split else contextlib.nullcontext():
            return super().train(*args, **kwargs)

    def autocast_smart_context_manager(self, *args: Any, **kwargs: Any) -> Any:
        return self.accelerator.autocast()

    def track_loss_components(self, loss: dict[str, Tensor]) -> None:
        super().track_loss_components(loss)
        if self.model.training:
            self.finite.see_losses(loss)

    def _push_from_checkpoint(self, checkpoint_folder: str) -> None:
        # transformers copies the checkpoint's model into the folder of the run and uploads all of that: run.json, with
        # its command line, and the log are not for the Hub, and no file may lie there that --overwrite does not know.
        folder, arguments = Path(str(self.args.output_dir)), transformers.trainer.TRAINING_ARGS_NAME
        self.args.output_dir = str(folder / "hub")
        # The arguments are a pickle that names folders of this machine; what begins like this is not uploaded.
        transformers.trainer.TRAINING_ARGS_NAME = f"_{arguments}"
        try:
            super()._push_from_checkpoint(checkpoint_folder)
        finally:
            self.args.output_dir, transformers.trainer.TRAINING_ARGS_NAME = str(folder), arguments

    def _checkpoint_push_skip_names(self, checkpoint_folder: str) -> set[str]:
        return {*super()._checkpoint_push_skip_names(checkpoint_folder), DONE, LOSS_STATE_NAME}

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """transformers keeps the first of equal checkpoints; of two with equal scores, the later has learned more."""
        name = str(self.args.metric_for_best_model)
        value = metrics.get(name, metrics.get(f"eval_{name}"))
        if value is not None and value == self.state.best_metric:
            self.state.best_metric = None
        return super()._determine_best_metric(metrics, trial)

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        if has_adapters(self.model):
            load_adapters(getattr(self.model, "_orig_mod", self.model), checkpoint_path)
        else:
            super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)


@dataclass
class CrossLingualDataCollator(SentenceTransformerDataCollator):
    """ST's collator, with ``source_language`` beside ``source`` turned into a ``language`` feature.

    Args:
        languages: Language → id, as the loss counts them; ``None`` drops the language columns. Spellings of one
            language (``en``, ``eng``) have one id.
        teacher: Gives the labels of rows.
    """

    languages: dict[str, int] | None = field(default=None)
    teacher: Callable[[Sequence[Mapping[str, Any]]], Tensor] | None = field(default=None)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        batch = self.columns(features)
        if features and self.teacher is not None:
            batch["label"] = self.teacher(features)
        return batch

    def columns(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Their texts, tokenised, and languages."""
        if not features:
            return {}
        columns = [name.removesuffix(LANGUAGE_SUFFIX) for name in features[0] if name.endswith(LANGUAGE_SUFFIX)]
        columns = [name for name in columns if name in features[0]]
        dropped = {name + LANGUAGE_SUFFIX for name in columns}
        batch = super().__call__([{k: v for k, v in row.items() if k not in dropped} for row in features])
        if self.languages is not None:
            for name in columns:
                # The trainer cuts a batch into columns by prefix: source_language arrives as source's "language".
                codes = [row[name + LANGUAGE_SUFFIX] for row in features]
                ids = {code: self._id(code) for code in dict.fromkeys(codes)}
                batch[name + LANGUAGE_SUFFIX] = torch.tensor([ids[code] for code in codes])
        return batch

    def _id(self, language: Any) -> int:
        known = self.languages or {}
        name = match_language(language, known) if isinstance(language, str) else None
        if name is None:
            raise ValueError(
                f"the loss knows the languages {', '.join(self.languages or ())}: a row is in {language!r}; "
                "add it to the loss's languages=, or drop the rows."
            )
        return known[name]


class WholeRounds(BatchSampler):
    """The batches of a sampler, but for those of an epoch's last round that do not reach every process.

    accelerate deals batch ``i`` to process ``i % processes`` and, as ST sets it up, some processes get one more: they
    would wait for ever for the others' negatives and gradients. Batches may be of any size.

    Args:
        batches: ST's or our batch sampler, the same in every process.
        processes: Processes that share a round.

    Raises:
        ValueError: Not one whole round.
    """

    def __init__(self, batches: Any, processes: int) -> None:
        self.batches, self.processes = batches, processes
        # accelerate tells the epoch to the sampler's sampler; without a size it deals short batches too.
        self.sampler, self.batch_size, self.drop_last = batches, None, True  # type: ignore[assignment]
        if len(self) == 0:
            raise ValueError(
                f"{processes} processes need {processes} batches an epoch: the data give {len(batches)}; lower the "
                "batch size, or train in fewer processes."
            )

    def __len__(self) -> int:
        return len(self.batches) // self.processes * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        return islice(iter(self.batches), len(self))


class CrossLingualTrainer(GuardedTrainer, SentenceTransformerTrainer):
    """``SentenceTransformerTrainer`` that saves and restores the loss's own parameters with every checkpoint.

    Takes the arguments of ST's trainer. In each checkpoint it also keeps ``loss.safetensors``, the heads that the loss
    owns; resuming restores them, so that a killed and resumed run ends where an undisturbed
    one does. Columns ``source_language`` and ``target_language`` reach the losses as ids.

    In several processes all start with the main one's heads, every epoch is shuffled anew (ST deals out the same order
    again), and the batches at its end that do not reach every process are left out.

    Mixed precision holds for all that the loss computes: ST gives it to the model's own pass alone, and leaves passes
    and heads of token-level losses in float32. Similarities stay in float32.

    What it shares with our other trainers is in :class:`GuardedTrainer`.

    Raises:
        NotFiniteError: Losses, gradients or weights that are no longer numbers.
        ValueError: The data set has too few text columns for the loss, or is empty; in several processes, fewer batches
            than processes, or a loss for each data set: processes must have the same loss in the same step.

    Example:
        >>> from sentence_transformers import SentenceTransformerTrainingArguments
        >>> from st_xling import TranslationRankingLoss, parallel_phrases, tiny_encoder
        >>> pairs = parallel_phrases("de", "en", size=16).select_columns(["source", "target"])
        >>> model = tiny_encoder([*pairs["source"], *pairs["target"]], vocabulary=200, hidden_size=16)
        >>> arguments = SentenceTransformerTrainingArguments("run", max_steps=1, report_to="none", disable_tqdm=True)
        >>> loss = TranslationRankingLoss(model)
        >>> trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=pairs, loss=loss)
    """

    data_collator_class = CrossLingualDataCollator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        parts = self._all_losses().modules()
        languages = next((names for part in parts if (names := getattr(part, "languages", None))), None)
        if languages and isinstance(self.data_collator, CrossLingualDataCollator):
            self.data_collator.languages = {name: number for number, name in enumerate(languages)}
        self._check_data()

    def _all_losses(self) -> nn.Module:
        return nn.ModuleDict(self.loss) if isinstance(self.loss, dict) else self.loss

    def _check_data(self) -> None:
        data = self.train_dataset
        for name, part in data.items() if isinstance(data, dict) else [("", data)]:
            if part is not None and hasattr(part, "__len__") and len(part) == 0:
                raise ValueError("training needs at least one pair: the data set is empty; check the reader's report.")
            check_columns(self.loss[name] if isinstance(self.loss, dict) else self.loss, part)
        if isinstance(self.loss, dict) and self.args.world_size > 1:
            raise ValueError(
                f"{self.args.world_size} processes share their negatives, so all need the same loss in a step: got "
                "a loss for each data set; train in one process, or with one loss."
            )

    def get_batch_sampler(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        sampler = super().get_batch_sampler(dataset, *args, **kwargs)
        return sampler if isinstance(self.train_dataset, dict) else self._in_rounds(sampler)

    def get_multi_dataset_batch_sampler(self, *args: Any, **kwargs: Any) -> Any:
        return self._in_rounds(super().get_multi_dataset_batch_sampler(*args, **kwargs))

    def _in_rounds(self, sampler: Any) -> Any:
        # ST evens out batches when it evaluates and not when it trains.
        if sampler is None or self.args.world_size == 1 or self.accelerator.even_batches:
            return sampler
        return WholeRounds(sampler, self.args.world_size)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        if self.args.world_size > 1:
            for tensor in own_state(self._all_losses(), self.model).values():
                tensor.data.copy_(broadcast(tensor.data))
        return super().train(*args, **kwargs)

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self.model.named_parameters()
        yield from own_state(self._all_losses(), self.model).items()

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.args.should_save:
            save_loss_state(self._all_losses(), self.model, output_dir)
        super()._save_optimizer_and_scheduler(output_dir)

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)
        load_loss_state(self._all_losses(), self.model, checkpoint_path)


def check_columns(loss: nn.Module, dataset: Any) -> None:
    """Raise ``ValueError`` unless the data set has the columns that every term of ``loss`` reads.

    Args:
        loss: One of ours, a sum, or cached; what other losses need, they say themselves.
        dataset: A ``Dataset`` or ``IterableDataset``; a stream that does not know its columns passes.
    """
    inner = loss.loss if isinstance(loss, CachedLoss) else loss
    if not isinstance(inner, CrossLingualLoss) or not getattr(dataset, "features", None):
        return
    texts = text_columns(dataset, without=NOT_TEXT)
    total = inner.as_sum()
    for name, term in zip(total.names, total.term_list()):
        if term.columns_needed > len(texts):
            wanted = list(term.columns) if term.columns else list(range(term.columns_needed))
            missing = ", ".join(str(column) for column in wanted if column >= len(texts))
            raise ValueError(
                f"{name} looks at text columns {', '.join(map(str, wanted))} (counted from 0) and lacks {missing}: the "
                f"data have {len(texts)}: {', '.join(texts) or 'none'}; add the column, or choose others with "
                "'columns:' in the recipe or .on(...)."
            )
