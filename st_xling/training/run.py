"""One training run, from data sets to a saved model: what ``st-xling train`` and the demo call."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from tqdm.auto import tqdm
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from st_xling._version import __version__
from st_xling.losses import CachedLoss
from st_xling.models import load_encoder, tiny_encoder
from st_xling.training.arguments import training_arguments
from st_xling.training.build import build_loss, scheduled_weights
from st_xling.training.progress import StderrProgress
from st_xling.training.recipe import Recipe
from st_xling.training.run_folder import RunFolder, write_json
from st_xling.training.strict_keys import read_options
from st_xling.training.texts import TextReport, report_texts
from st_xling.training.trainer import CrossLingualTrainer

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

COLUMNS = ["source", "target", "source_language", "target_language"]


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training; ``checkpoint`` is the last complete one, or ``None``."""

    def __init__(self, folder: Path, checkpoint: Path | None) -> None:
        super().__init__(f"training in {folder} was interrupted")
        self.folder, self.checkpoint = folder, checkpoint


@dataclass(frozen=True)
class TrainingResult:
    """What a run leaves behind.

    Attributes:
        model: The trained model: the best by the development score, or the last one.
        folder: Where it was saved.
        seconds: Wall time of this process's training.
        steps: Optimiser steps of the whole run.
        history: The host's log: losses, components, development scores.
        texts: Source and target side: texts, truncated texts, longest.
        best: Best development score, if there was a development set.
    """

    model: SentenceTransformer
    folder: Path
    seconds: float
    steps: int
    history: list[dict[str, Any]] = field(repr=False)
    texts: tuple[TextReport, TextReport] = field(repr=False)
    best: float | None = None


def train(
    recipe: Recipe,
    data: Mapping[str, Dataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer = "tiny",
    tiny: Mapping[str, Any] | None = None,
    evaluator: BaseEvaluator | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> TrainingResult:
    """Train a cross-lingual encoder and save it.

    Args:
        recipe: Objectives and options, from :func:`load_recipe`.
        data: Name → data set with ``source``, ``target``, ``source_language``, ``target_language``; all are mixed.
        out: Folder of the run (see :class:`RunFolder`).
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small encoder built from the data.
        tiny: Options of :func:`tiny_encoder`, for ``model="tiny"``.
        evaluator: Judges the model during training, by its ``primary_metric``; the best checkpoint is kept.
        resume: Go on from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny)
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    pairs = mix(data)
    folder = RunFolder(out)
    manifest = {
        "version": __version__,
        "command": command,
        "recipe": recipe.as_dict(),
        "model": _name(model),
        "tiny": tiny,
        "data": {key: {"rows": len(part), "sha8": fingerprint(part)} for key, part in data.items()},
        "dev": _dev_data(evaluator),
    }
    created, replaces = not folder.path.exists(), overwrite and not resume and folder.manifest_path.is_file()
    progress = StderrProgress(recipe.name)
    checkpoint = folder.claim(manifest, resume=resume, overwrite=overwrite)
    try:
        trainer, texts = _prepare(recipe, pairs, folder, model, tiny, evaluator, checkpoint, progress)
    except ValueError:
        if not resume and not replaces:  # nothing was trained: leave nothing behind
            shutil.rmtree(folder.path if created else folder.training, ignore_errors=True)
        raise
    if replaces:
        folder.start_over(manifest)
    started = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except KeyboardInterrupt as stop:
        raise TrainingInterrupted(folder.path, folder.last_checkpoint()) from stop
    finally:
        progress.close()
    result = TrainingResult(
        model=trainer.model,
        folder=folder.path,
        seconds=time.perf_counter() - started,
        steps=trainer.state.global_step,
        history=trainer.state.log_history,
        texts=texts,
        best=trainer.state.best_metric,
    )
    _save(result, folder, manifest)
    return result


def check_tiny(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of :func:`tiny_encoder`, or ``ValueError`` with the nearest valid name or the type that was expected."""
    return read_options(tiny_encoder, dict(options or {}), "tiny")


def mix(data: Mapping[str, Dataset]) -> Dataset:
    """All data sets in one, with the columns that training reads.

    Raises:
        ValueError: No data set, an empty one, or one that lacks a column.
    """
    from datasets import concatenate_datasets

    if not data:
        raise ValueError("training needs at least one data set: got none.")
    for name, part in data.items():
        missing = [column for column in COLUMNS if column not in part.column_names]
        if missing:
            raise ValueError(f"data set {name!r} lacks {', '.join(missing)}: it has {', '.join(part.column_names)}.")
        if len(part) == 0:
            raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")
    return concatenate_datasets([part.select_columns(COLUMNS) for part in data.values()])


def fingerprint(dataset: Dataset) -> str:
    """Eight hexadecimal digits that change with any text of the data set or its order."""
    digest = hashlib.sha256()
    for column in ("source", "target"):
        for text in dataset[column][:]:
            digest.update(text.encode("utf-8") + b"\n")
    return digest.hexdigest()[:8]


def _prepare(
    recipe: Recipe,
    pairs: Dataset,
    folder: RunFolder,
    model: str | SentenceTransformer,
    tiny: dict[str, Any],
    evaluator: BaseEvaluator | None,
    checkpoint: Path | None,
    progress: StderrProgress,
) -> tuple[CrossLingualTrainer, tuple[TextReport, TextReport]]:
    if checkpoint is not None:
        encoder = load_encoder(str(checkpoint))  # pooling and length as they were chosen at the start
        encoder.model_card_data.base_model = None if model == "tiny" else _name(model)
    else:
        encoder = _encoder(recipe, model, tiny, pairs) if isinstance(model, str) else model
    sides = [
        report_texts(
            encoder.tokenizer, pairs[side][:], max_length=encoder.max_seq_length, description=side, progress=True
        )
        for side in ("source", "target")
    ]
    _tell_truncation(sides[0] + sides[1], encoder.max_seq_length)
    languages = sorted(set(pairs["source_language"][:]) | set(pairs["target_language"][:]))
    loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in sides], languages=languages)
    weights = scheduled_weights(recipe, loss)
    cache = recipe.training.mini_batch_size
    metric = None if evaluator is None else f"eval_{evaluator.primary_metric}"
    trainer = CrossLingualTrainer(
        model=encoder,
        args=training_arguments(recipe.training, folder.training, rows=len(pairs), best_metric=metric),
        train_dataset=pairs,
        loss=CachedLoss(loss, mini_batch_size=cache) if cache else loss,
        evaluator=evaluator,
        callbacks=[progress] if weights is None else [progress, weights],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    return trainer, (sides[0], sides[1])


def _encoder(recipe: Recipe, model: str, tiny: dict[str, Any], pairs: Dataset) -> SentenceTransformer:
    options = recipe.model
    if model != "tiny":
        return load_encoder(model, pooling=options.pooling, max_length=options.max_length)  # type: ignore[arg-type]
    shape: dict[str, Any] = {"seed": recipe.training.seed, **tiny}
    for key, value in (("pooling", options.pooling), ("max_length", options.max_length)):
        if value is not None:
            shape.setdefault(key, value)
    return tiny_encoder((text for side in ("source", "target") for text in pairs[side][:]), **shape)


def _name(model: str | SentenceTransformer) -> str:
    return model if isinstance(model, str) else str(model.model_card_data.base_model or "a loaded model")


def _dev_data(evaluator: BaseEvaluator | None) -> str | None:
    """What judges the run, without our version, which may change before a run is resumed."""
    signature = getattr(evaluator, "signature", None)
    return None if signature is None else "|".join(p for p in signature.split("|") if not p.startswith("st-xling:"))


def _tell_truncation(report: TextReport, max_length: int | None) -> None:
    if report.truncated:
        share = 100 * report.truncated / report.texts
        tqdm.write(
            f"{report.truncated:,} of {report.texts:,} texts ({share:.1f} %) are longer than {max_length} tokens and "
            f"are cut; the longest has {report.longest}. Raise model.max_length to keep more.",
            file=sys.stderr,
        )


def _save(result: TrainingResult, folder: RunFolder, manifest: dict[str, Any]) -> None:
    lines = [json.dumps(entry, ensure_ascii=False) for entry in result.history]
    (folder.training / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_model(result.model, folder.path)
    figures = {"seconds": round(result.seconds, 1), "steps": result.steps, "best_dev": result.best}
    write_json(folder.path / "results.json", {"training": figures})
    folder.write_manifest({**manifest, "finished": True})


def save_model(model: SentenceTransformer, folder: Path) -> None:
    """Save ``model`` into ``folder`` file by file from a folder beside, so that no half-written model is seen."""
    beside = folder / ".saving"
    shutil.rmtree(beside, ignore_errors=True)
    model.save_pretrained(str(beside))
    for path in sorted(beside.iterdir()):
        goal = folder / path.name
        if goal.is_dir():
            shutil.rmtree(goal)
        path.replace(goal)
    beside.rmdir()
