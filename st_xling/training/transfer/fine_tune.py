"""Fine-tuning by the host libraries' trainers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import CrossEntropyLoss
from transformers import DataCollatorForTokenClassification, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from st_xling.training.callbacks import StderrProgress
from st_xling.training.trainer import FiniteTrainer, GuardedTrainer
from st_xling.training.transfer.heads import WordTagger
from st_xling.training.transfer.tasks import FineTuning

if TYPE_CHECKING:
    from datasets import Dataset

CHECKPOINTS_A_RUN = 10


class PairTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds. Takes the host's arguments."""


def fine_tune(
    model: CrossEncoder | WordTagger,
    rows: Dataset,
    options: FineTuning,
    folder: Path,
    *,
    checkpoint: Path | None = None,
    name: str = "training",
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, Any]:
    """Train ``model`` in place.

    Args:
        model: A classifier of pairs, or a tagger.
        rows: Two text columns and ``label``; or ``input_ids``, ``attention_mask`` and ``labels``.
        options: How.
        folder: Where checkpoints go.
        checkpoint: Where to go on.
        name: Of the progress bar.
        callbacks: Of the trainer, besides its progress.
    Returns:
        ``steps``, ``seconds`` (of all parts of the run) and ``history``, the host's log.
    """
    progress = StderrProgress(name)
    trainer: Any
    if isinstance(model, CrossEncoder):
        trainer = PairTrainer(
            model=model,
            args=_arguments(CrossEncoderTrainingArguments, options, folder, len(rows)),
            train_dataset=rows,
            loss=CrossEntropyLoss(model),
            callbacks=[progress, *callbacks],
        )
    else:
        trainer = FiniteTrainer(
            model=model.model,
            args=_arguments(TrainingArguments, options, folder, len(rows)),
            train_dataset=rows,
            processing_class=model.tokenizer,
            data_collator=DataCollatorForTokenClassification(model.tokenizer),
            callbacks=[progress, *callbacks],
        )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    finally:
        progress.close()
    seconds = round(trainer.seconds, 1)
    return {"steps": trainer.state.global_step, "seconds": seconds, "history": trainer.state.log_history}


def _arguments(kind: Any, options: FineTuning, folder: Path, rows: int) -> Any:
    steps = options.max_steps
    if steps <= 0:
        steps = max(1, math.ceil(options.epochs * math.ceil(rows / options.batch_size)))
    save_steps = min(steps, options.save_steps or max(1, steps // CHECKPOINTS_A_RUN))
    return kind(
        output_dir=str(folder),
        per_device_train_batch_size=options.batch_size,
        num_train_epochs=options.epochs,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type=options.schedule,
        weight_decay=options.weight_decay,
        logging_steps=save_steps,
        save_strategy="steps",
        save_steps=save_steps,
        save_total_limit=2,
        seed=options.seed,
        data_seed=options.seed,
        dataloader_pin_memory=torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
    )
