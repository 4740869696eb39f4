"""One stage of a run: labelled pairs and a cross-encoder → the host's trainer → the stage's best model."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from tqdm.auto import tqdm
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from st_xling.models.load import st_model
from st_xling.models.lora import add_lora, end_lora, trained_share
from st_xling.training.arguments import host_arguments
from st_xling.training.checkpoint import BASE, seal
from st_xling.training.progress import StderrProgress
from st_xling.training.reranker.batch_keys import meaning_keys
from st_xling.training.reranker.loss_rows import loss_rows
from st_xling.training.reranker.pair_lengths import PairLengths, fitting_pairs
from st_xling.training.reranker.stages import Stage
from st_xling.training.reranker.trainer import RankingTrainer
from st_xling.training.run_folder import save_model

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers.base.evaluation import BaseEvaluator


def prepare_stage(stage: Stage, model: CrossEncoder, *, tell: bool = True) -> tuple[Dataset, PairLengths]:
    """The rows that the stage's loss reads, and how long its pairs are.

    Raises:
        ValueError: Nothing that can be trained on; a loss that does not fit the model.
    """
    pairs, lengths = fitting_pairs(model.tokenizer, stage.pairs, max_length=model.max_seq_length)
    rows, unusable = loss_rows(pairs, stage.recipe.loss.form)
    stage.recipe.loss.build(model)
    if tell:
        lengths.tell(stage.name, model.max_seq_length)
        if unusable:
            tqdm.write(
                f"{stage.name}: {unusable:,} queries are left out: {stage.recipe.loss.name} needs a relevant passage "
                "and another one of each.",
                file=sys.stderr,
            )
    return rows, lengths


def train_stage(
    stage: Stage,
    model: CrossEncoder | None,
    folder: Path,
    *,
    checkpoint: Path | None = None,
    keep_adapters: bool = True,
    start: str | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> tuple[CrossEncoder, dict[str, Any]]:
    """Train one stage, from ``checkpoint`` if there is one.

    Args:
        stage: What to train on, and how.
        model: What the stage begins with; ``None``: what the checkpoint's folder holds.
        folder: Where checkpoints go.
        checkpoint: Where to go on.
        keep_adapters: Adapters may stay apart at the end, if the recipe says so; otherwise they are merged.
        start: Name of the model that the stage begins with, for kept adapters to name as their base.
        callbacks: Of the trainer, besides its progress.

    Returns:
        The model, best by the development score or last, and the stage's figures with its log.
    """
    options, lora, base = stage.recipe.training, stage.recipe.training.lora, folder / BASE
    if checkpoint is not None:
        model = st_model(CrossEncoder, str(checkpoint if lora is None else base))
    assert model is not None
    rows, lengths = prepare_stage(stage, model)
    if lora is not None:
        if checkpoint is None:
            base.mkdir(parents=True, exist_ok=True)
            save_model(model, base)
            seal(base)
        add_lora(model, lora, base=base, seed=options.seed)
        tqdm.write(f"LoRA trains {trained_share(model)}", file=sys.stderr)
    progress = StderrProgress(stage.name)
    trainer = _trainer(stage, model, rows, folder, [progress, *callbacks])
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    finally:
        progress.close()
    trained: CrossEncoder = trainer.model
    if lora is not None:
        ending = lora if keep_adapters else dataclasses.replace(lora, merge=True)
        end_lora(trained, ending, start=start or str(base), base=base)
    return trained, {
        "name": stage.name,
        "pairs": lengths.pairs,
        "pairs_cut": lengths.cut,
        "pairs_left_out": lengths.left_out,
        "steps": trainer.state.global_step,
        "seconds": round(trainer.seconds, 1),
        "best_dev": trainer.state.best_metric,
        "history": trainer.state.log_history,
    }


def _trainer(
    stage: Stage, model: CrossEncoder, rows: Dataset, folder: Path, callbacks: list[TrainerCallback]
) -> RankingTrainer:
    loss = stage.recipe.loss
    options = dataclasses.replace(
        stage.recipe.training, max_steps=stage.max_steps, keep_duplicates_apart=loss.compares_within_batch
    )
    metric = None if stage.evaluator is None else f"eval_{_metric(stage.evaluator)}"
    trainer = RankingTrainer(
        model=model,
        args=host_arguments(CrossEncoderTrainingArguments, options, folder, rows=len(rows), best_metric=metric),
        train_dataset=rows,
        loss=loss.build(model),
        keys=meaning_keys(stage.pairs, rows) if loss.compares_within_batch else None,
        evaluator=stage.evaluator,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    return trainer


def _metric(evaluator: BaseEvaluator) -> str:
    # Some of the host's evaluators put their name before their metric's only when they are first called.
    metric, prefix = str(evaluator.primary_metric), f"{getattr(evaluator, 'name', '')}_"
    return metric if prefix == "_" or metric.startswith(prefix) else prefix + metric
