"""One training run, from data sets to a saved model: what ``st-xling train`` and the demo call."""

from __future__ import annotations

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
from st_xling.data.text_columns import column_texts
from st_xling.losses import CachedLoss
from st_xling.models import load_encoder, tiny_encoder
from st_xling.models.adapters import without_adapters
from st_xling.training import processes
from st_xling.training.arguments import training_arguments
from st_xling.training.auto_batch import choose_mini_batch
from st_xling.training.build import build_loss, scheduled_weights
from st_xling.training.leak_check import OnLeak, check_leaks
from st_xling.training.lora import add_lora, check_start, end_lora, require_peft, trained_share
from st_xling.training.mixture import COLUMNS, Mixture, prepare, tell_mixture
from st_xling.training.progress import StderrProgress
from st_xling.training.recipe import AUTO, Recipe, TrainingOptions
from st_xling.training.run_folder import RunFolder, write_json
from st_xling.training.strict_keys import read_options
from st_xling.training.texts import TextReport, report_texts
from st_xling.training.trainer import CrossLingualTrainer

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.leak import Texts
    from st_xling.data.leak_report import LeakReport

logger = logging.getLogger(__name__)


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
    data: Mapping[str, Dataset | IterableDataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer = "tiny",
    tiny: Mapping[str, Any] | None = None,
    evaluator: BaseEvaluator | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> TrainingResult:
    """Train a cross-lingual encoder and save it; called in each of several processes, they train one together.

    Args:
        recipe: Objectives and options, from :func:`load_recipe`.
        data: Name → data set with ``source``, ``target``, ``source_language``, ``target_language``; all are mixed.
            If one is an ``IterableDataset``, all are streamed, and the recipe must say ``max_steps``: vocabulary,
            truncation report and leak check then see the first rows alone.
        out: Folder of the run (see :class:`RunFolder`).
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small encoder built from the data.
        tiny: Options of :func:`tiny_encoder`, for ``model="tiny"``.
        evaluator: Judges the model during training, by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Texts that will judge the model later; like the evaluator's, they are looked for in the data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Go on from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny)
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    if recipe.training.lora is not None:
        require_peft()
    processes.meet()
    mixture, leak = processes.together(lambda: _mixture(recipe, data, evaluator, evaluation, on_leak))
    folder = RunFolder(out)
    manifest = {
        "version": __version__,
        "command": command,
        "recipe": recipe.as_dict(),
        "model": _name(model),
        "tiny": tiny,
        "data": mixture.manifest,
        "dev": _dev_data(evaluator),
        "processes": processes.count(),
    }
    created, replaces = not folder.path.exists(), overwrite and not resume and folder.manifest_path.is_file()
    progress = StderrProgress(recipe.name)
    checkpoint = processes.on_main(lambda: folder.claim(manifest, resume=resume, overwrite=overwrite))
    try:
        start = model if checkpoint is not None else _same_start(recipe, model, tiny, mixture.looked_at, folder)
        found = folder.read_manifest().get("mini_batch_size") if resume else None
        trainer, texts = processes.together(
            lambda: _prepare(recipe, mixture, folder, start, tiny, evaluator, checkpoint, progress, found)
        )
    except ValueError:
        if processes.is_main() and not resume and not replaces:  # nothing was trained: leave nothing behind
            shutil.rmtree(folder.path if created else folder.training, ignore_errors=True)
        raise
    if model == "tiny":
        trainer.model.model_card_data.base_model = None
    processes.on_main(folder.forget_start)
    if replaces:
        processes.on_main(lambda: folder.start_over(manifest))
    if recipe.training.mini_batch_size == AUTO:
        manifest["mini_batch_size"] = getattr(trainer.loss, "mini_batch_size", 0)
        processes.on_main(lambda: folder.write_manifest({**manifest, "finished": False}))
    lora = recipe.training.lora
    if lora is not None and checkpoint is None:
        processes.on_main(lambda: save_model(without_adapters(trainer.model), folder.base))
    started = time.perf_counter()
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except KeyboardInterrupt as stop:
        # Beside others, only the main process tidies up after itself.
        raise TrainingInterrupted(folder.path, folder.last_checkpoint() if processes.is_main() else None) from stop
    finally:
        progress.close()
    if lora is not None:
        end_lora(trainer.model, lora, start=_name(model), base=folder.base)
    result = TrainingResult(
        model=trainer.model,
        folder=folder.path,
        seconds=time.perf_counter() - started,
        steps=trainer.state.global_step,
        history=trainer.state.log_history,
        texts=texts,
        best=trainer.state.best_metric,
    )
    processes.on_main(lambda: _save(result, folder, manifest, leak))
    return result


def check_tiny(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of :func:`tiny_encoder`, or ``ValueError`` with the nearest valid name or the type that was expected."""
    return read_options(tiny_encoder, dict(options or {}), "tiny")


def _mixture(
    recipe: Recipe,
    data: Mapping[str, Dataset | IterableDataset],
    evaluator: BaseEvaluator | None,
    evaluation: Mapping[str, Texts] | None,
    on_leak: OnLeak,
) -> tuple[Mixture, LeakReport | None]:
    """What is trained on, looked through for text that judges the model."""
    mixture = prepare(data, recipe.training, processes=processes.count())
    if mixture.streamed and on_leak != "report":
        raise ValueError(f"a stream is not read before it is trained on: got on_leak={on_leak!r}; take st-xling leak.")
    seen = " (first rows)" if mixture.streamed else ""  # so that figures and signature say so
    looked_at = {name + seen: part for name, part in mixture.parts.items()}
    unleaked, leak = check_leaks(looked_at, evaluator, evaluation, on_leak=on_leak)
    if leak is not None and leak.dropped:
        mixture = prepare(unleaked, recipe.training, processes=processes.count())
    return mixture, leak


def _prepare(
    recipe: Recipe,
    mixture: Mixture,
    folder: RunFolder,
    model: str | SentenceTransformer,
    tiny: dict[str, Any],
    evaluator: BaseEvaluator | None,
    checkpoint: Path | None,
    progress: StderrProgress,
    mini_batch: int | None,
) -> tuple[CrossLingualTrainer, tuple[TextReport, TextReport]]:
    lora = recipe.training.lora
    if checkpoint is not None:  # pooling and length as they were chosen at the start
        encoder = load_encoder(str(checkpoint if lora is None else folder.base))
        encoder.model_card_data.base_model = None if model == "tiny" else _name(model)
    else:
        encoder = _encoder(recipe, model, tiny, mixture.looked_at) if isinstance(model, str) else model
        check_start(encoder, lora, given=not isinstance(model, str))
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
    languages = sorted({name for side in ("source", "target") for name in mixture.looked_at.unique(f"{side}_language")})
    loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in sides], languages=languages)
    weights = scheduled_weights(recipe, loss)
    if lora is not None:  # after the losses, which copy plain layers
        add_lora(encoder, lora, base=folder.base, seed=recipe.training.seed)
        tqdm.write(f"LoRA trains {trained_share(encoder)} of the encoder", file=sys.stderr)
    cache = recipe.training.mini_batch_size
    cached = 0 if cache == AUTO else int(cache)
    metric = None if evaluator is None else f"eval_{evaluator.primary_metric}"
    trainer = CrossLingualTrainer(
        model=encoder,
        args=training_arguments(
            recipe.training, folder.training, rows=mixture.rows, processes=processes.count(), best_metric=metric
        ),
        train_dataset=mixture.pairs,
        loss=CachedLoss(loss, mini_batch_size=cached) if cached else loss,
        evaluator=evaluator,
        callbacks=[progress] if weights is None else [progress, weights],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    if cache == AUTO:
        _cache_what_fits(trainer, recipe.training, mixture.looked_at[0], sides, mini_batch)
    return trainer, (sides[0], sides[1])


def _cache_what_fits(
    trainer: CrossLingualTrainer,
    options: TrainingOptions,
    row: dict[str, Any],
    sides: list[TextReport],
    found: int | None,
) -> None:
    """Cache the trainer's loss by the largest mini-batch that fits, or by the one that the run was started with."""
    if found is None:
        longest = {"source": sides[0].longest_text, "target": sides[1].longest_text}
        row = {name: text for name, text in row.items() if name in COLUMNS} | longest
        found = choose_mini_batch(trainer, row, batch_size=options.batch_size, budget_mib=options.memory_budget)
    if found:
        loss: Any = trainer.loss
        trainer.loss = trainer.prepare_loss(CachedLoss(loss, mini_batch_size=found), trainer.model)  # type: ignore[assignment]


def _same_start(
    recipe: Recipe, model: str | SentenceTransformer, tiny: dict[str, Any], pairs: Dataset, folder: RunFolder
) -> str | SentenceTransformer:
    """What to start from: beside others, a tiny encoder is built once and read by all."""
    if model != "tiny" or processes.count() == 1:
        return model
    processes.on_main(lambda: _encoder(recipe, "tiny", tiny, pairs).save_pretrained(str(folder.start)))
    return str(folder.start)


def _encoder(recipe: Recipe, model: str, tiny: dict[str, Any], pairs: Dataset) -> SentenceTransformer:
    options = recipe.model
    if model != "tiny":
        return load_encoder(model, pooling=options.pooling, max_length=options.max_length)  # type: ignore[arg-type]
    shape: dict[str, Any] = {"seed": recipe.training.seed, **tiny}
    for key, value in (("pooling", options.pooling), ("max_length", options.max_length)):
        if value is not None:
            shape.setdefault(key, value)
    return tiny_encoder(column_texts(pairs, "source", "target"), **shape)


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


def _save(result: TrainingResult, folder: RunFolder, manifest: dict[str, Any], leak: LeakReport | None) -> None:
    lines = [json.dumps(entry, ensure_ascii=False) for entry in result.history]
    (folder.training / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    save_model(result.model, folder.path)
    figures = {"seconds": round(result.seconds, 1), "steps": result.steps, "best_dev": result.best}
    checked = {} if leak is None else {"leak": leak.as_dict()}
    write_json(folder.path / "results.json", {"training": figures, **checked})
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
