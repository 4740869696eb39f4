"""All that a run trains with, made ready: encoder, losses, trainer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.model import BaseModel
from tqdm.auto import tqdm
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from st_xling.data.text_columns import column_texts
from st_xling.losses import CachedLoss
from st_xling.models import VocabularyHead, load_encoder, tiny_encoder
from st_xling.models.lora import add_lora, check_start, trained_share
from st_xling.training import processes
from st_xling.training.arguments import training_arguments
from st_xling.training.auto_batch import choose_mini_batch
from st_xling.training.build import build_loss, scheduled_weights
from st_xling.training.mixture import COLUMNS, Mixture, tell_mixture
from st_xling.training.progress import StderrProgress
from st_xling.training.recipe import AUTO, Recipe
from st_xling.training.run_folder import RunFolder
from st_xling.training.strict_keys import read_options
from st_xling.training.texts import TextReport, report_texts
from st_xling.training.trainer import CrossLingualTrainer

if TYPE_CHECKING:
    from datasets import Dataset


# XLM-R has 250,002 pieces, 24 layers, 1,024 dimensions and 512 positions.
_LARGEST_TINY = {"vocabulary": 1_000_000, "layers": 200, "hidden_size": 16_384, "heads": 16_384, "max_length": 65_536}


@dataclass(frozen=True)
class Job:
    """What a run is made of, before anything is loaded.

    Attributes:
        model: Hub id, folder, a loaded model, or ``"tiny"``.
        tiny: Options of :func:`tiny_encoder`.
    """

    recipe: Recipe
    mixture: Mixture
    folder: RunFolder
    model: str | SentenceTransformer
    tiny: dict[str, Any]
    evaluator: BaseEvaluator | None
    progress: StderrProgress


def prepare_trainer(
    job: Job, start: str | SentenceTransformer, checkpoint: Path | None, *, mini_batch: int | None = None
) -> tuple[CrossLingualTrainer, tuple[TextReport, TextReport]]:
    """The trainer, and what its two columns of text are like.

    Args:
        job: What to train, on what, and how.
        start: The model to start from: the job's, or what :func:`same_start` made of it.
        checkpoint: Where to go on, if anywhere.
        mini_batch: The mini-batch that an earlier part of the run has found to fit.

    Raises:
        ValueError: A model or option that does not fit.
    """
    recipe, mixture, folder = job.recipe, job.mixture, job.folder
    lora = recipe.training.lora
    if checkpoint is not None:  # pooling and length as they were chosen at the start
        encoder = load_encoder(str(checkpoint if lora is None else folder.base))
        encoder.model_card_data.base_model = None if job.model == "tiny" else model_name(job.model)
    else:
        encoder = _encoder(recipe, start, job.tiny, mixture.looked_at) if isinstance(start, str) else start
        check_start(encoder, lora, given=not isinstance(start, str))
    tell_mixture(mixture, recipe.training)
    sides = [
        report_texts(
            encoder.tokenizer,
            column_texts(mixture.looked_at, side),
            max_length=encoder.max_seq_length,
            description=side,
            progress=True,
            total=len(mixture.looked_at),
        )
        for side in ("source", "target")
    ]
    _tell_truncation(sides[0] + sides[1], encoder.max_seq_length)
    languages = [mixture.looked_at.unique(f"{side}_language") for side in ("source", "target")]
    loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in sides], languages=languages)
    if checkpoint is None and job.model != "tiny":  # a resumed run has the checkpoint's heads
        for origin in dict.fromkeys(part.origin for part in loss.modules() if isinstance(part, VocabularyHead)):
            tqdm.write(f"vocabulary head: {origin}", file=sys.stderr)
    weights = scheduled_weights(recipe, loss)
    if lora is not None:  # after the losses, which copy plain layers
        add_lora(encoder, lora, base=folder.base, seed=recipe.training.seed)
        tqdm.write(f"LoRA trains {trained_share(encoder)} of the encoder", file=sys.stderr)
    cache = recipe.training.mini_batch_size
    cached = 0 if cache == AUTO else int(cache)
    metric = None if job.evaluator is None else f"eval_{job.evaluator.primary_metric}"
    trainer = CrossLingualTrainer(
        model=encoder,
        args=training_arguments(
            recipe.training, folder.training, rows=mixture.rows, processes=processes.count(), best_metric=metric
        ),
        train_dataset=mixture.pairs,
        loss=CachedLoss(loss, mini_batch_size=cached) if cached else loss,
        evaluator=job.evaluator,
        callbacks=[job.progress] if weights is None else [job.progress, weights],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if cache == AUTO:
        _cache_what_fits(trainer, job, sides, mini_batch)
    return trainer, (sides[0], sides[1])


def check_tiny(options: Mapping[str, Any] | None, model: Any = "tiny") -> dict[str, Any]:
    """Options of :func:`tiny_encoder`, or ``ValueError`` with the nearest valid name or the type that was expected.

    Args:
        options: As given.
        model: What a run starts from; only ``"tiny"`` takes any.
    """
    tiny = read_options(tiny_encoder, dict(options or {}), "tiny")
    for name, most in _LARGEST_TINY.items():
        if tiny.get(name, 0) > most:  # beyond all that text can fill or memory holds: libraries abort
            raise ValueError(f"tiny.{name} must be at most {most:,}: got {tiny[name]:,}; take a model of the Hub.")
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    return tiny


def same_start(job: Job) -> str | SentenceTransformer:
    """What to start from: beside other processes, a tiny encoder is built once and read by all."""
    if job.model != "tiny" or processes.count() == 1:
        return job.model
    encoder, goal = _encoder, str(job.folder.start)
    processes.on_main(lambda: encoder(job.recipe, "tiny", job.tiny, job.mixture.looked_at).save_pretrained(goal))
    return goal


def model_name(model: str | BaseModel) -> str:
    """How the card and the run's manifest call the model that was started from."""
    if isinstance(model, str):
        return model
    return str(getattr(model.model_card_data, "base_model", None) or "a loaded model")


def _cache_what_fits(trainer: CrossLingualTrainer, job: Job, sides: list[TextReport], found: int | None) -> None:
    """Cache the trainer's loss by the largest mini-batch that fits, or by the one that the run was started with."""
    options = job.recipe.training
    if found is None:
        longest = {"source": sides[0].longest_text, "target": sides[1].longest_text}
        row = {name: text for name, text in job.mixture.looked_at[0].items() if name in COLUMNS} | longest
        found = choose_mini_batch(trainer, row, batch_size=options.batch_size, budget_mib=options.memory_budget)
    if found:
        loss: Any = trainer.loss
        trainer.loss = trainer.prepare_loss(CachedLoss(loss, mini_batch_size=found), trainer.model)  # type: ignore[assignment]


def _encoder(recipe: Recipe, model: str, tiny: dict[str, Any], pairs: Dataset) -> SentenceTransformer:
    options = recipe.model
    if model != "tiny":
        return load_encoder(model, pooling=options.pooling, max_length=options.max_length)  # type: ignore[arg-type]
    shape: dict[str, Any] = {"seed": recipe.training.seed, **tiny}
    for key, value in (("pooling", options.pooling), ("max_length", options.max_length)):
        if value is not None:
            shape.setdefault(key, value)
    return tiny_encoder(column_texts(pairs, "source", "target"), **shape)


def _tell_truncation(report: TextReport, max_length: int | None) -> None:
    if report.truncated:
        share = 100 * report.truncated / report.texts
        tqdm.write(
            f"{report.truncated:,} of {report.texts:,} texts ({share:.1f} %) are longer than {max_length} tokens and "
            f"are cut; the longest has {report.longest}. Raise model.max_length to keep more.",
            file=sys.stderr,
        )
