"""Trainers of sentence-transformers and transformers, with what training here needs on top.

:class:`FiniteTrainer` (any ``transformers.Trainer``) stops at NaN and marks complete checkpoints,
:class:`GuardedTrainer` (any trainer of sentence-transformers) adds mixed precision for losses and LoRA,
:class:`CrossLingualTrainer` (encoders) adds the loss's own parameters, language columns and several processes. All are
run by :func:`run_trainer`, which shows their progress.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import logging
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import torch
from accelerate.utils import broadcast
from datasets import Dataset, IterableDataset, List, Value
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
from sentence_transformers.base.data_collator import DEFAULT_LABEL_COLUMNS
from sentence_transformers.base.model import BaseModel
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.base.training_args import BaseTrainingArguments, BatchSamplers
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from torch import Tensor, nn
from torch.utils.data import BatchSampler
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import EarlyStoppingCallback, PrinterCallback, ProgressCallback
from transformers.trainer_utils import IntervalStrategy, get_last_checkpoint

from st_xling.data.columns import column_order_warning
from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.losses import CachedLoss, TranslationLanguageModelingLoss
from st_xling.losses.gather import mark_saved
from st_xling.models.backbones import backbone
from st_xling.models.fast_linear import fast_linear_layers, recomputes_layers
from st_xling.models.heads import VocabularyHead, check_savable, new_heads, write_with_head
from st_xling.models.load import NO_LENGTH, length_for_pairs
from st_xling.models.lora import (
    add_lora,
    check_start,
    end_lora,
    has_adapters,
    load_adapters,
    trained_share,
    without_adapters,
)
from st_xling.models.training_dtype import train_in_float32
from st_xling.training.arguments import CrossLingualTrainingArguments, TrainerArguments, fit_to_data, replaced
from st_xling.training.development import best_metric, development_score
from st_xling.training.mixture import epoch_rows
from st_xling.training.options import EncoderArguments
from st_xling.training.run_folder import (
    BASE,
    DONE,
    RunFolder,
    check_intact,
    checksums,
    damaged_file,
    intact_checkpoint,
    is_complete,
    newest_checkpoint,
    remove_earlier,
    save_folder,
    step_of,
)
from st_xling.training.warm_up import warm_up_heads
from st_xling.utils.io import atomic_path, naming_full_disk, read_json_object, write_json
from st_xling.utils.languages import match_language
from st_xling.utils.lora_options import LoraOptions
from st_xling.utils.private import uncompiled
from st_xling.utils.terminal import on_terminal, pace, progress_bar

logger = logging.getLogger(__name__)

TrainingData: TypeAlias = Dataset | IterableDataset | dict[str, Dataset]
"""What a trainer reads: a data set, a stream, or data sets by name."""

LOSS_STATE_NAME = "loss.safetensors"
SUFFIX = "_language"
_NOT_SHOWN = {"learning_rate", "grad_norm", "epoch", "total_flos", "step"}
"""Keys of the log that are no losses."""


class NotFiniteError(ValueError):
    """NaN or infinity while training.

    Attributes:
        step: Optimizer steps that were made.
        values: Name of a loss or a weight → its value.
        checkpoint: The last checkpoint, or ``None``; nothing later was written.
    """

    def __init__(self, step: int, values: Mapping[str, str], *, checkpoint: Path | None) -> None:
        self.step = step
        self.values = dict(values)
        self.checkpoint = checkpoint
        what = ", ".join(f"{name} is {value}" for name, value in values.items())
        lower = "a lower --learning-rate or a longer --warmup"
        remedy = f"there is no checkpoint yet; start again with {lower}"
        if checkpoint is not None:
            remedy = f"resume from it with --model {checkpoint}, {lower}, and another --out"
        super().__init__(f"expected finite numbers by training step {step}: {what}. Training has stopped; {remedy}.")


class CheckpointCallback(TrainerCallback):
    """Complete each checkpoint after transformers has written its own files, and remove earlier ones after that.

    NaN or infinity in a logged loss, or in a weight before it is saved and after the last step, stops training.

    Args:
        trainer: The trainer that it belongs to.
        keep: Number of checkpoints to keep; ``None``: all.
    """

    def __init__(self, trainer: FiniteTrainer, keep: int | None) -> None:
        self.trainer = trainer
        self.keep = keep

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        best = Path(str(args.output_dir)) / f"checkpoint-{state.best_global_step}"
        if is_complete(best):  # the run may have been moved since
            state.best_model_checkpoint = str(best)
            if name := damaged_file(best):
                logger.warning(
                    f"{best / name}, of the best checkpoint, is damaged: the best is chosen among those from here on"
                )
                state.best_model_checkpoint = None
                state.best_metric = None
        elif args.load_best_model_at_end and state.best_metric is not None and not best.is_dir():
            # Its score would be reported for the model of another checkpoint.
            logger.warning(f"{best}, the best checkpoint, is missing: the best is chosen among those from here on")
            state.best_model_checkpoint = None
            state.best_metric = None

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        # transformers keeps the first of equal checkpoints; of two with equal scores, the later has learned more.
        if kwargs["metrics"].get(str(args.metric_for_best_model)) == state.best_metric:
            state.best_metric = None

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        # A sum is finite only with all its terms. A term that is not, in a sum that is, belongs to the loss of another
        # data set: sentence-transformers logs NaN where it was not computed since the last line.
        if logs and not math.isfinite(logs.get("loss", 0.0)):
            faults: dict[str, str] = {}
            for name, value in logs.items():
                if name not in _NOT_SHOWN and not math.isfinite(value):
                    faults[name] = str(value)
            self.check_finite(state, faults)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        checkpoint = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        bad = self.bad_weights()
        if bad and state.is_world_process_zero:
            shutil.rmtree(checkpoint, ignore_errors=True)
        self.check_finite(state, bad)
        self.trainer.accelerator.wait_for_everyone()  # other processes write their random states there
        if state.is_world_process_zero:
            self.trainer.save_more(str(checkpoint))
            done = {"seconds": round(self.trainer.seconds, 3), "files": checksums(checkpoint)}
            write_json(checkpoint / DONE, done)  # the last of its files
            remove_earlier(checkpoint, keep=self.keep, best=state.best_model_checkpoint)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # The model that is returned has made steps after the last checkpoint.
        self.check_finite(state, self.bad_weights())

    def bad_weights(self) -> dict[str, str]:
        """Return the first weights that are not finite, as faults."""
        names = [name for name, weight in self.trainer.trained_weights() if not weight.detach().isfinite().all()]
        return {f"weight {name}": "not finite" for name in names[:3]}

    def check_finite(self, state: TrainerState, faults: Mapping[str, str]) -> None:
        """Raise :class:`NotFiniteError` if there are ``faults``."""
        if faults:
            checkpoint = newest_checkpoint(Path(str(self.trainer.args.output_dir)))
            raise NotFiniteError(state.global_step, faults, checkpoint=checkpoint)


class FiniteTrainer(Trainer):
    """``transformers.Trainer``, or what else follows it among the bases of a class.

    A checkpoint is complete when its ``done.json`` is written (:mod:`st_xling.training.run_folder`).

    Raises:
        NotFiniteError: Losses or weights that are no longer numbers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.args.logging_nan_inf_filter = False  # which would hide what training should stop at
        model: Any = self.model
        loss: nn.Module | dict[str, nn.Module] | None = getattr(self, "loss", None)  # none where the model computes it
        losses: list[nn.Module] = []
        if isinstance(loss, dict):
            losses = list(loss.values())
        elif loss is not None:
            losses = [loss]
        adapts = getattr(self.args, "lora", None) is not None or has_adapters(model)
        mixed_precision = self.args.bf16 or self.args.fp16
        train_in_float32(model, *losses, keep_adapted=adapts and mixed_precision)
        # transformers removes earlier checkpoints before done.json is written: too early, were the machine to stop.
        self.add_callback(CheckpointCallback(self, self.args.save_total_limit))
        self.args.save_total_limit = None

    @property
    def seconds(self) -> float:
        """Wall time of training, with that up to the checkpoint that it was resumed from."""
        return self._seconds_before + time.perf_counter() - self._started

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        if resume_from_checkpoint is True:
            newest = intact_checkpoint(Path(str(self.args.output_dir)))
            if newest is not None:
                resume_from_checkpoint = str(newest)
            else:  # perhaps a checkpoint of another trainer
                resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True
        self._seconds_before = 0.0
        self._started = time.perf_counter()
        if isinstance(resume_from_checkpoint, str):
            check_intact(Path(resume_from_checkpoint))
            done = read_json_object(Path(resume_from_checkpoint) / DONE)  # nothing of one that is not complete
            self._seconds_before = float(done.get("seconds") or 0.0)
            self.load_more(resume_from_checkpoint)
        result = super().train(resume_from_checkpoint, *args, **kwargs)
        if self.args.load_best_model_at_end and self.state.best_model_checkpoint is not None:
            self.load_more(self.state.best_model_checkpoint)
        return result

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Name and value of each weight in a checkpoint."""
        return self.model.named_parameters()  # type: ignore[union-attr]

    def save_more(self, checkpoint: str) -> None:
        """Save what a checkpoint contains besides transformers' files."""

    def load_more(self, checkpoint: str) -> None:
        """Load what :meth:`save_more` has saved."""

    def _run_epoch(self, *args: Any, **kwargs: Any) -> Any:
        # Resumed from its last checkpoint, a run would make one more step: callbacks can only stop after a step.
        if self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
            return None
        return super()._run_epoch(*args, **kwargs)


class GuardedTrainer(FiniteTrainer, BaseTrainer):
    """Goes before one of sentence-transformers' trainers among the bases of a class.

    Besides what :class:`FiniteTrainer` does, mixed precision holds for all that the loss computes. With our training
    arguments (:class:`~st_xling.training.arguments.TrainerArguments`)

    - the evaluator chooses the checkpoint that training ends with, and stops it early if the arguments say so;
    - batches are drawn anew from seed and epoch, of similar length, and without a text twice;
    - adapters are added before training, and merged at the end.

    With sentence-transformers' own arguments all of this is as they say. On a CPU, linear layers are computed by the
    faster library, see :func:`~st_xling.models.fast_linear.fast_linear_layers`.
    """

    default_arguments: ClassVar[type[TrainerArguments]]
    """Class of the arguments if none are given."""

    def __init__(
        self,
        model: BaseModel | None = None,
        args: BaseTrainingArguments | None = None,
        train_dataset: TrainingData | None = None,
        eval_dataset: TrainingData | None = None,
        loss: Any = None,
        evaluator: Any = None,
        data_collator: Any = None,
        *,
        callbacks: Sequence[TrainerCallback] | None = None,
        **options: Any,
    ) -> None:
        if args is None:
            args = self.default_arguments("tmp_trainer")
        callbacks = list(callbacks or ())
        self._evaluator_chooses = False
        if isinstance(args, TrainerArguments):
            metric = best_metric(evaluator)
            if evaluator is None and isinstance(eval_dataset, dict) and eval_dataset:
                metric = f"eval_{next(iter(eval_dataset))}_loss"
            rows = 0 if train_dataset is None else epoch_rows(train_dataset, args)
            evaluates = evaluator is not None or eval_dataset is not None
            args = fit_to_data(args, rows=rows, evaluates=evaluates, best_metric=metric)
            self._evaluator_chooses = evaluator is not None and args.metric_for_best_model == metric
            if args.early_stopping_patience:
                callbacks.append(early_stopping(args))
        else:
            args = copy.copy(args)  # which is changed here, and may be another trainer's, too
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            loss=loss,
            evaluator=evaluator,
            data_collator=data_collator,
            callbacks=callbacks,
            **options,
        )
        check_prompts(getattr(self.args, "prompts", None), self.train_dataset)
        # After the losses, which copy plain layers.
        if self.lora is not None:
            check_start(self.model, self.lora, ready_made=True)
            add_lora(self.model, self.lora, base=self.lora_base, seed=self.args.seed)
            logger.info("LoRA trains %s of the model", trained_share(self.model))

    @property
    def lora(self) -> LoraOptions | None:
        """Options of the adapters that are trained; ``None``: all weights are."""
        return self.args.lora if isinstance(self.args, TrainerArguments) else None

    @property
    def lora_base(self) -> Path:
        """Folder of the model below the adapters."""
        return Path(str(self.args.output_dir)) / BASE

    def get_batch_sampler(
        self,
        dataset: Dataset,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> BatchSampler | None:
        arguments = self.args
        if (
            not isinstance(arguments, TrainerArguments)
            or arguments.batch_sampler != BatchSamplers.BATCH_SAMPLER
            or isinstance(dataset, IterableDataset)
        ):
            return super().get_batch_sampler(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        sampler_class = LengthGroupedBatchSampler if arguments.group_by_length else ShuffledBatchSampler
        alpha: float | None = None
        one_pair = False
        keep_duplicates_apart = False
        if isinstance(arguments, EncoderArguments):
            alpha = arguments.language_alpha
            one_pair = arguments.batches == "one_pair"
            keep_duplicates_apart = arguments.keep_duplicates_apart
        return sampler_class(
            dataset,
            batch_size,
            drop_last,
            valid_label_columns,
            generator,
            seed,
            alpha=alpha,
            one_pair=one_pair,
            keep_duplicates_apart=keep_duplicates_apart,
        )

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        output = super().evaluation_loop(*args, **kwargs)
        if self._evaluator_chooses:  # many evaluators of ST name their metric only once they were called
            self.args.metric_for_best_model = best_metric(self.evaluator)
        return output

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        # The card lists what differs from ST's defaults; of arguments that ST lacks it would list nothing.
        if isinstance(self.args, TrainerArguments):
            ours = {entry.name: entry.default for entry in dataclasses.fields(self.args)}
            default_args_dict = {**ours, **default_args_dict}
        super().add_model_card_callback(default_args_dict)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        if self.lora is not None and not resume_from_checkpoint and self.args.should_save:
            save_folder(without_adapters(self.model), self.lora_base)
        checkpointing = self.args.gradient_checkpointing or recomputes_layers(self.model)
        if self.args.device.type != "cpu" or self.args.torch_compile or checkpointing:
            result = super().train(resume_from_checkpoint, *args, **kwargs)
        else:
            with fast_linear_layers():
                result = super().train(resume_from_checkpoint, *args, **kwargs)
        if self.lora is not None:
            card: Any = self.model.model_card_data
            end_lora(self.model, self.lora, start=card.base_model, base=self.lora_base)
        return result

    def autocast_smart_context_manager(self, *args: Any, **kwargs: Any) -> Any:
        return self.accelerator.autocast()

    def _load_from_checkpoint(self, checkpoint_path: str, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        # ST loads a whole model, which for adapters needs their base; it has no public way to restore weights in place.
        if has_adapters(self.model):
            load_adapters(uncompiled(self.model), checkpoint_path)
        else:
            super()._load_from_checkpoint(checkpoint_path, *args, **kwargs)


class StderrProgress(ProgressCallback):
    """transformers' bar under another name, only on a terminal; each time it logs, one line in place of a table."""

    def __init__(self, description: str = "training", evaluator: Any = None) -> None:
        super().__init__()
        self.description = description
        self.evaluator = evaluator

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        # A resumed run continues the bar where the checkpoint was written.
        self.started = time.perf_counter()
        self.first_step = state.global_step
        self.current_step = state.global_step
        if state.is_world_process_zero:
            self.training_bar: Any = progress_bar(
                total=state.max_steps,
                initial=self.first_step,
                desc=self.description,
                unit="steps",
                show=on_terminal(),
            )

    def on_prediction_step(self, *args: Any, **kwargs: Any) -> None:
        """No second bar."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if self.training_bar is None or not logs or "train_runtime" in logs:
            return
        shown: list[str] = []
        for name, value in logs.items():
            if isinstance(value, float) and _is_shown(name):
                label = name.removeprefix("eval_").removesuffix("_accuracy")
                shown.append(f"{label} {self._format_value(name, value)}")
        if shown:
            step = state.global_step
            last_step = state.max_steps
            speed = pace(step - self.first_step, last_step - step, time.perf_counter() - self.started)
            logger.info("%s: step %d of %d, %s: %s", self.description, step, last_step, speed, ", ".join(shown))

    def _format_value(self, name: str, value: float) -> str:
        score = development_score(value, self.evaluator) if name.startswith("eval_") else None
        return f"{value:.3f}" if score is None else str(score)

    def close(self) -> None:
        """Clear the bar; an interrupted run would otherwise draw it over the message."""
        if self.training_bar is not None:
            self.training_bar.close()


def _is_shown(name: str) -> bool:
    """Return whether a log line shows a value: a loss, or of evaluations the number that chooses the checkpoint."""
    if name.startswith("eval_"):
        return name.endswith(("mean_accuracy", "acc@1"))
    return name not in _NOT_SHOWN and not name.endswith(("runtime", "per_second"))


def run_trainer(trainer: FiniteTrainer, folder: RunFolder, checkpoint: Path | None, *, name: str) -> None:
    """``trainer.train`` under one progress bar on stderr, instead of transformers' two that write to stdout."""
    progress = StderrProgress(name, getattr(trainer, "evaluator", None))
    for callback_class in (PrinterCallback, ProgressCallback):  # subclasses too: before ours is one of them
        trainer.remove_callback(callback_class)
    trainer.add_callback(progress)
    callbacks = trainer.callback_handler.callbacks
    stops_early = any(isinstance(callback, EarlyStoppingCallback) for callback in callbacks)
    if checkpoint is not None and folder.is_finished and stops_early:  # it may have ended the run here
        trainer.args.max_steps = step_of(checkpoint)
    resume_from_checkpoint = None if checkpoint is None else str(checkpoint)
    try:
        with naming_full_disk(folder.path):
            trainer.train(resume_from_checkpoint=resume_from_checkpoint)
    finally:
        progress.close()


@dataclass
class CrossLingualDataCollator(SentenceTransformerDataCollator):
    """ST's collator, with ``source_language`` next to ``source`` turned into a ``language`` feature.

    Args:
        languages: Language → id, as the loss counts them; ``None`` drops the language columns. Spellings of one
            language (``en``, ``eng``) have one id.
    """

    languages: dict[str, int] | None = field(default=None)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Tokenize the texts, and replace languages by their ids."""
        if not features:
            return {}
        for row in features:
            for name, value in row.items():
                if value is None or name == "translation":
                    raise ValueError(
                        f"expected columns of text, such as source and target, got {value!r} in the column {name}; "
                        "drop rows without text, and make one column of each key: dataset.flatten().rename_columns(…)"
                    )
        columns = features[0]
        language_columns = [name for name in columns if name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in columns]
        text_rows = []
        for row in features:
            text_rows.append({name: value for name, value in row.items() if name not in language_columns})
        batch = super().__call__(text_rows)
        if self.languages is None:
            return batch
        for name in language_columns:
            # The trainer cuts a batch into columns by prefix: source_language arrives as source's "language".
            codes = [row[name] for row in features]
            ids = {code: self._language_id(code) for code in dict.fromkeys(codes)}
            batch[name] = torch.tensor([ids[code] for code in codes])
        return batch

    def _language_id(self, language: str) -> int:
        languages = self.languages or {}
        name = match_language(language, languages)
        if name is None:
            raise ValueError(
                f"the loss knows the languages {', '.join(languages)}: a row is in {language!r}; add it to the loss's "
                "languages=, or drop the rows."
            )
        return languages[name]


def _datasets_of(data: TrainingData | None) -> list[Any]:
    """Return the data sets that a trainer gets: one, or several by name."""
    return list(data.values()) if isinstance(data, dict) else [data]


def _check_columns(data: TrainingData | None) -> None:
    """Raise ``ValueError`` for columns of lists, such as a parallel text's word alignments, which no model reads."""
    for dataset in _datasets_of(data):
        features = getattr(dataset, "features", None) or {}
        lists = [
            name for name, kind in features.items() if name not in DEFAULT_LABEL_COLUMNS and _is_list_of_values(kind)
        ]
        if lists:
            texts = [name for name in features if name not in lists]
            raise ValueError(
                f"expected columns of text, and labels: got lists in {', '.join(lists)}; leave them out, by "
                f"dataset.select_columns({texts})."
            )


def _is_list_of_values(kind: Any) -> bool:
    if not isinstance(kind, List):
        return False
    return isinstance(kind.feature, Value) or _is_list_of_values(kind.feature)


def _check_texts(data: TrainingData | None) -> None:
    """Raise ``ValueError`` for texts that are ``None``."""
    for dataset in _datasets_of(data):
        if not isinstance(dataset, Dataset):
            continue
        for name in dataset.column_names:
            # The table also has the rows that `filter` dropped, so that only a column with None is read to be sure.
            if dataset.data.column(name).null_count and dataset.with_format("arrow")[:].column(name).null_count:
                raise ValueError(
                    f"expected text in every row, got None in the column {name}; drop these rows: dataset.filter(…)"
                )


def _warn_of_column_order(data: TrainingData | None) -> None:
    """Warn of data sets whose first two columns are not those called source and target."""
    for dataset in _datasets_of(data):
        if warning := column_order_warning(getattr(dataset, "column_names", None) or []):
            logger.warning("%s", warning, extra={"at_once": True})


_LANGUAGE_COLUMN = re.compile(r"(.+_)?lang(uage)?")


def _stray_language_columns(columns: Sequence[str]) -> list[str]:
    """Names of the columns of languages that do not belong to a text column, as ``source_language`` does to source."""
    stray: list[str] = []
    for name in columns:
        belongs_to_text = name.endswith(SUFFIX) and name.removesuffix(SUFFIX) in columns
        if _LANGUAGE_COLUMN.fullmatch(name) and not belongs_to_text:
            stray.append(name)
    return stray


def _without_languages(data: Any) -> Any:
    """Leave out columns of languages, such as ``lang``, which sentence-transformers would read as another text."""
    if isinstance(data, dict):
        datasets = {name: _without_languages(dataset) for name, dataset in data.items()}
        return type(data)(datasets)
    if names := _stray_language_columns(getattr(data, "column_names", None) or []):
        logger.warning(
            f"the data have columns of languages, not text, which are ignored: {', '.join(names)}. Losses read the "
            f"languages of a text column from one such as source{SUFFIX}."
        )
        return data.remove_columns(names)
    return data


def check_prompts(prompts: Any, data: TrainingData | None) -> None:
    """Raise ``ValueError`` for prompts of columns that the training data do not have.

    Args:
        prompts: Prompts as ST's training arguments have them: one text; column or data set → text; data set → column →
            text.
        data: A data set, or name → data set.
    """
    if not isinstance(prompts, Mapping) or data is None:
        return
    datasets: dict[str, Any] = dict(data) if isinstance(data, dict) else {"": data}
    columns = {name: dataset.column_names for name, dataset in datasets.items()}
    if None in columns.values():  # a stream that does not know them
        return
    all_columns = list(dict.fromkeys(itertools.chain.from_iterable(columns.values())))
    unknown = [key for key in prompts if key not in all_columns and key not in datasets]
    for key, texts in prompts.items():
        if isinstance(texts, Mapping):
            unknown += [f"{key}.{column}" for column in texts if column not in columns.get(key, all_columns)]
    if unknown:
        raise ValueError(
            f"prompts must be for columns of the training data ({', '.join(all_columns)}): got some for "
            f"{', '.join(unknown)}; rename them, or give one text for all columns."
        )


def named_prompt(model: Any, name: str) -> str:
    """Return a prompt of a model, or ``ValueError`` with the names that it has."""
    if name not in model.prompts:
        names = ", ".join(model.prompts) or "none"
        raise ValueError(f"prompt_name must be one of the model's prompts ({names}): got {name!r}.")
    return model.prompts[name]


def set_default_prompt(model: Any, prompt: str) -> None:
    """Make a prompt the one that ``encode`` puts before every text; an empty one is none.

    A prompt that the model has already keeps its name. Another one is that of queries, too, as in
    :func:`~st_xling.models.load_encoder`: ``encode_query`` takes a prompt of its own, even an empty one.
    """
    names = [name for name, text in model.prompts.items() if text == prompt]
    name = names[0] if names else "default"
    model.prompts[name] = prompt
    model.default_prompt_name = name if prompt else None
    if not names:
        model.prompts["query"] = model.prompts.get("query") or prompt


def masked_language_modeling_heads(loss: nn.Module) -> list[VocabularyHead]:
    """Return the vocabulary heads of masked language modeling; all terms of a sum share one."""
    return [module.head for module in loss.modules() if isinstance(module, TranslationLanguageModelingLoss)]


def early_stopping(arguments: TrainerArguments) -> EarlyStoppingCallback:
    """Return the callback that ends training after evaluations without a better score.

    Raises:
        ValueError: Nothing is evaluated.
    """
    if arguments.eval_strategy == IntervalStrategy.NO:
        raise ValueError(
            "early_stopping_patience needs evaluations to stop by: got none; add an evaluator (--dev), and leave "
            "eval_strategy at 'steps' or 'epoch'."
        )
    return EarlyStoppingCallback(arguments.early_stopping_patience)


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

    def __init__(self, batches: BatchSampler, processes: int) -> None:
        self.batches = batches
        self.processes = processes
        # accelerate tells the epoch to the sampler's sampler.
        self.sampler = batches  # type: ignore[assignment]
        # Without a size it deals short batches too.
        self.batch_size = None  # type: ignore[assignment]
        self.drop_last = True
        if len(self) == 0:
            raise ValueError(
                f"{processes} processes need {processes} batches an epoch: the data give {len(batches)}; lower the "
                "batch size, or train in fewer processes."
            )

    def __len__(self) -> int:
        return len(self.batches) // self.processes * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        return islice(iter(self.batches), len(self))


def own_state(loss: nn.Module, model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers of ``loss`` that are not the model's, by their names within the loss.

    Args:
        loss: An objective that holds ``model``, plain or wrapped for distributed training.
        model: The ``SentenceTransformer`` being trained.

    Returns:
        Name → tensor, sharing memory with the loss; empty for an objective without a head.
    """
    shared = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    named = [*loss.named_parameters(), *loss.named_buffers()]  # each tensor once, under its first name
    return {name: tensor for name, tensor in named if id(tensor) not in shared}


def save_loss_state(loss: nn.Module, model: nn.Module, folder: str | Path) -> None:
    """Write :func:`own_state` to ``folder/loss.safetensors``; where nothing is owned, remove what another run left."""
    path = Path(folder) / LOSS_STATE_NAME
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in own_state(loss, model).items()}
    if state:
        with atomic_path(path) as temporary:
            save_file(state, temporary)
    else:
        path.unlink(missing_ok=True)


def load_loss_state(loss: nn.Module, model: nn.Module, folder: str | Path) -> None:
    """Restore what :func:`save_loss_state` wrote, in place.

    Raises:
        ValueError: The file is missing, or contains other tensors than this loss owns.
    """
    state = own_state(loss, model)
    path = Path(folder) / LOSS_STATE_NAME
    if state and not path.exists():
        raise ValueError(
            f"expected the loss's own parameters in {path}: it is missing, as in checkpoints of other trainers. Resume "
            "from a checkpoint of this one, or start again from the model."
        )
    saved = load_file(path) if path.exists() else {}
    shapes = {(name, tensor.shape) for name, tensor in state.items()}
    saved_shapes = {(name, tensor.shape) for name, tensor in saved.items()}
    if unlike := sorted({name for name, _ in shapes ^ saved_shapes}):
        raise ValueError(
            f"{path} does not fit this loss: {', '.join(unlike[:5])} are missing, unknown or of another shape; "
            "resume with the recipe that wrote it."
        )
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(saved[name])
    for head in new_heads(loss):
        head.mark_trained()


class CrossLingualTrainer(GuardedTrainer, SentenceTransformerTrainer):
    """``SentenceTransformerTrainer`` that saves and restores the loss's own parameters with every checkpoint.

    Takes the arguments of ST's trainer. In each checkpoint it also keeps ``loss.safetensors``, the heads that the loss
    owns; resuming restores them, so that a killed and resumed run ends where an undisturbed
    one does. Columns ``source_language`` and ``target_language`` reach the losses as ids.

    In several processes all start with the main one's heads, every epoch is shuffled anew (ST deals out the same order
    again), and the batches at its end that do not reach every process are dropped.

    Mixed precision holds for all that the loss computes: ST gives it to the model's own pass only, and leaves passes
    and heads of token-level losses in float32. Similarities stay in float32.

    New vocabulary heads of the loss (of RTL, MLM, TLM) over a pretrained encoder, whose checkpoint has no such head,
    are first trained alone, with the encoder frozen: see :func:`~st_xling.training.warm_up.warm_up_heads`.

    With :class:`~st_xling.training.CrossLingualTrainingArguments` it also encodes in mini-batches, balances languages
    and saves the vocabulary head, as the arguments say, and a prompt of all texts becomes the model's own. What it
    shares with our other trainers is in :class:`GuardedTrainer`.

    Args:
        model: Model to train.
        args: Training arguments, ours or ST's.
        train_dataset: Training data.
        eval_dataset: Data to compute the loss on during training.
        loss: A loss over ``model``, or one for each data set.
        evaluator: Evaluates the model during training. With our arguments its ``primary_metric`` chooses the checkpoint
            that training ends with.
        data_collator: In place of a :class:`CrossLingualDataCollator`, which cuts texts as
            :func:`~st_xling.models.load.length_for_pairs` says, unless the arguments have a ``max_length``.
        **options: As ST's trainer takes them.

    Raises:
        NotFiniteError: Losses or weights that are no longer numbers.
        ValueError: No loss, or texts that are ``None``; in several processes, fewer batches than processes, or a loss
            for each data set: processes must have the same loss in the same step.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> from st_xling.losses import TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> pairs = parallel_phrases("de", "en", size=16).select_columns(["source", "target"])
        >>> model = tiny_encoder([*pairs["source"], *pairs["target"]], vocabulary=200, hidden_size=16)
        >>> arguments = CrossLingualTrainingArguments("run", max_steps=1, disable_tqdm=True)
        >>> loss = TranslationRankingLoss(model)
        >>> trainer = CrossLingualTrainer(model=model, args=arguments, train_dataset=pairs, loss=loss)
    """

    data_collator_class = CrossLingualDataCollator
    default_arguments = CrossLingualTrainingArguments
    reads_sentences: ClassVar[bool] = True
    """True if texts are cut to the length of sentences where model and arguments have no shorter one."""

    def __init__(
        self,
        model: SentenceTransformer | None = None,
        args: BaseTrainingArguments | None = None,
        train_dataset: TrainingData | None = None,
        eval_dataset: TrainingData | None = None,
        loss: Any = None,
        evaluator: Any = None,
        data_collator: Any = None,
        **options: Any,
    ) -> None:
        if data_collator is None:
            _check_columns(train_dataset)
        _check_texts(train_dataset)  # before ST reads them for the card
        _warn_of_column_order(train_dataset)
        if isinstance(args, EncoderArguments) and args.prompt_name is not None and args.prompts is None:
            args = replaced(args, prompts=named_prompt(model, args.prompt_name))
        if isinstance(args, EncoderArguments) and isinstance(args.prompts, str) and model is not None:
            set_default_prompt(model, args.prompts)
        super().__init__(
            model,
            args,
            _without_languages(train_dataset),
            eval_dataset,
            loss,
            evaluator,
            data_collator,
            **options,
        )
        self._check_vocabulary_head()
        mark_saved(self._own_state().values())
        languages_of_losses = [getattr(module, "languages", None) for module in self._all_losses().modules()]
        languages = next(filter(None, languages_of_losses), None)
        if languages and isinstance(self.data_collator, CrossLingualDataCollator):
            ids = {name: number for number, name in enumerate(languages)}
            self.data_collator = dataclasses.replace(self.data_collator, languages=ids)
        if isinstance(self.loss, dict) and self.args.world_size > 1:
            raise ValueError(
                f"{self.args.world_size} processes share their negatives, so all need the same loss in a step: got "
                "a loss for each data set; train in one process, or with one loss."
            )

    def get_data_collator(self, model: Any, args: Any, processing_class: Any = None) -> Any:
        collator = super().get_data_collator(model, args, processing_class)
        if not self.reads_sentences or collator.max_length is not None:
            return collator
        max_length = length_for_pairs(model)
        if max_length is None:
            return collator
        of_model = f"{model.max_seq_length:,}" if model.max_seq_length < NO_LENGTH else "any number"
        logger.info(
            f"training reads at most {max_length} tokens of a text, the saved model {of_model} as before; for another "
            "length: --max-length, or max_length in the training arguments"
        )
        return dataclasses.replace(collator, max_length=max_length)

    def prepare_loss(self, loss: Any, model: Any) -> nn.Module:
        loss = super().prepare_loss(loss, model)
        arguments = self.args
        if not isinstance(arguments, EncoderArguments):
            return loss
        if isinstance(loss, CachedLoss):
            return loss
        try:
            if arguments.mini_batch_num_tokens:
                return CachedLoss(loss, mini_batch_num_tokens=arguments.mini_batch_num_tokens)
            if arguments.mini_batch_size:
                return CachedLoss(loss, mini_batch_size=arguments.mini_batch_size)
        except ValueError as error:
            raise ValueError(f"the arguments ask for mini-batches, which do not fit this loss: {error}") from error
        return loss

    def _check_vocabulary_head(self) -> None:
        """Raise ``ValueError`` where ``save_vocabulary_head`` asks for a head that there will not be."""
        if not isinstance(self.args, EncoderArguments) or not self.args.save_vocabulary_head:
            return
        heads = masked_language_modeling_heads(self._all_losses())
        if self.args.lora is not None or not heads:
            raise ValueError("save_vocabulary_head takes the loss mlm or tlm, and no lora.")
        check_savable(backbone(self.model), heads[0])

    def get_default_loss(self, model: Any) -> nn.Module:
        raise ValueError(
            "expected a loss, got None; pass one, such as loss=TranslationRankingLoss(model). The default of "
            "sentence-transformers, CoSENTLoss, needs a column of scores."
        )

    def _all_losses(self) -> nn.Module:
        return nn.ModuleDict(self.loss) if isinstance(self.loss, dict) else self.loss

    def _own_state(self) -> dict[str, Tensor]:
        return own_state(self._all_losses(), self.model)

    def get_batch_sampler(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        # ST's sampler takes languages for texts: as all rows have the same, each batch would be one row.
        if self.args.batch_sampler in (BatchSamplers.NO_DUPLICATES, BatchSamplers.NO_DUPLICATES_HASHED):
            language_columns = [name for name in dataset.column_names or [] if _LANGUAGE_COLUMN.fullmatch(name)]
            dataset = dataset.remove_columns(language_columns)
        sampler = super().get_batch_sampler(dataset, *args, **kwargs)
        return sampler if isinstance(self.train_dataset, dict) else self._in_rounds(sampler)

    def get_multi_dataset_batch_sampler(self, *args: Any, **kwargs: Any) -> Any:
        return self._in_rounds(super().get_multi_dataset_batch_sampler(*args, **kwargs))

    def _in_rounds(self, sampler: Any) -> Any:
        # ST evens out batches when it evaluates and not when it trains.
        if sampler is None or self.args.world_size == 1 or self.accelerator.even_batches:
            return sampler
        return WholeRounds(sampler, self.args.world_size)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        if self.args.world_size > 1:
            for tensor in self._own_state().values():
                tensor.data.copy_(broadcast(tensor.data))
        if not resume_from_checkpoint:  # a checkpoint has trained heads
            self.warm_up_heads()
        return super().train(resume_from_checkpoint, *args, **kwargs)

    @property
    def saved_head(self) -> VocabularyHead | None:
        """Vocabulary head that is saved with the model, if the arguments say so."""
        if isinstance(self.args, EncoderArguments) and self.args.save_vocabulary_head:
            return masked_language_modeling_heads(self._all_losses())[0]
        return None

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        super().save_model(output_dir, _internal_call)
        # A checkpoint has the head in the loss's file, and is the one internal call that names a folder.
        is_checkpoint = _internal_call and output_dir is not None
        head = self.saved_head
        if head is not None and not is_checkpoint and self.args.should_save:
            write_with_head(output_dir or str(self.args.output_dir), backbone(self.model), head)

    def warm_up_heads(self) -> int:
        """Train new heads alone, as the arguments say; :meth:`train` does it by itself, and no head is trained twice.

        Returns:
            The steps that were made; 0 if no head is new, or the encoder has nothing to lose.
        """
        harmful = any(head.on_pretrained for head in new_heads(self._all_losses()))
        steps = self.args.warm_up_heads if isinstance(self.args, EncoderArguments) else None
        if not harmful and not steps:
            return 0
        return warm_up_heads(self, steps=steps)

    def trained_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self.model.named_parameters()
        yield from self._own_state().items()

    def save_more(self, checkpoint: str) -> None:
        save_loss_state(self._all_losses(), self.model, checkpoint)

    def load_more(self, checkpoint: str) -> None:
        load_loss_state(self._all_losses(), self.model, checkpoint)
