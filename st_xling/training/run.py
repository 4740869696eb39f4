"""One training run, from data sets to a saved model: what ``st-xling train`` and the demo call."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from tqdm import tqdm

from st_xling._version import __version__
from st_xling.data.orient import orient
from st_xling.models.lora import end_lora, require_peft, without_adapters
from st_xling.training import processes
from st_xling.training.checkpoint import seal
from st_xling.training.leak_check import OnLeak, check_leaks
from st_xling.training.mixture import Mixture, add_mono, fingerprint, prepare
from st_xling.training.prepare import Job, check_tiny, model_name, prepare_trainer, same_start
from st_xling.training.progress import StderrProgress
from st_xling.training.recipe import AUTO, Recipe
from st_xling.training.run_folder import EndReplaced, RunFolder, save_model
from st_xling.training.saving import save_run
from st_xling.training.texts import TextReport
from st_xling.training.trainer import CrossLingualTrainer

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.leak import Texts
    from st_xling.data.leak_report import LeakReport


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
        seconds: Wall time of training, with that of the parts before the run was resumed.
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

    def figures(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        return {"seconds": round(self.seconds, 1), "steps": self.steps, "best_dev": self.best}


def train(
    recipe: Recipe,
    data: Mapping[str, Dataset | IterableDataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer = "tiny",
    tiny: Mapping[str, Any] | None = None,
    mono: Mapping[str, Dataset] | None = None,
    evaluator: BaseEvaluator | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
    begin: Callable[[SentenceTransformer, Path], None] | None = None,
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
        mono: Name → text of one language, line by line, which the recipe's masked language modelling then reads instead
            of the sentences of ``data``; see :func:`add_mono`. It is not looked through for leaks.
        evaluator: Judges the model during training, by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Texts that will judge the model later; like the evaluator's, they are looked for in the data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Go on from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.
        begin: Called with the model before its first step, and the folder ``training`` of the run; not if it is
            resumed from a checkpoint, and by the main process alone.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny, model)
    if recipe.training.lora is not None:
        require_peft()
    if mono:
        recipe = _reading_mono(recipe)
    processes.meet()
    with RunFolder(out, resume=resume, overwrite=overwrite, start=model) as folder:
        mixture, leak = processes.together(lambda: _mixture(recipe, data, evaluator, evaluation, on_leak))
        if mono:
            mixture = processes.together(lambda: add_mono(mixture, mono, seed=recipe.training.seed))
        job = Job(recipe, mixture, folder, model, tiny, evaluator, StderrProgress(recipe.name))
        manifest = _manifest(job, command)
        if mono:
            manifest["mono"] = {name: {"rows": len(part), "sha8": fingerprint(part)} for name, part in mono.items()}
        checkpoint = processes.on_main(lambda: folder.claim(manifest))
        trainer, texts = _prepare(job, manifest, checkpoint, resume=resume)
        if begin is not None and checkpoint is None:
            processes.on_main(lambda: begin(trainer.model, folder.training))
        result = run_trainer(trainer, folder, job.progress, checkpoint, texts)
        if recipe.training.lora is not None:
            end_lora(result.model, recipe.training.lora, start=model_name(model), base=folder.base)
        processes.on_main(
            lambda: save_run(result.model, folder, history=result.history, figures=result.figures(), leak=leak)
        )
    return result


def _reading_mono(recipe: Recipe) -> Recipe:
    """The recipe whose MLM term reads the columns that :func:`add_mono` adds, and no other term does."""
    if "mlm" not in recipe.losses:
        raise ValueError(
            f"monolingual text is for masked language modelling: {recipe.name} has {', '.join(recipe.losses)}; take a "
            "recipe with the loss mlm, such as amber."
        )
    losses = {name: {"columns": [0, 1], **options} for name, options in recipe.losses.items()}
    losses["mlm"] |= {"columns": [2, 3], "contiguous": True}
    return dataclasses.replace(recipe, losses=losses)


def _mixture(
    recipe: Recipe,
    data: Mapping[str, Dataset | IterableDataset],
    evaluator: BaseEvaluator | None,
    evaluation: Mapping[str, Texts] | None,
    on_leak: OnLeak,
) -> tuple[Mixture, LeakReport | None]:
    """What is trained on, its sides in order, looked through for text that judges the model."""
    oriented = orient(data, pivot=recipe.training.pivot)
    if {"representation_translation", "translation_ranking"} & recipe.losses.keys():  # the others have no direction
        for line in oriented.messages():
            tqdm.write(line, file=sys.stderr)
    data = oriented.data
    mixture = prepare(data, recipe.training, processes=processes.count())
    if mixture.streamed and on_leak != "report":
        raise ValueError(f"a stream is not read before it is trained on: got on_leak={on_leak!r}; take st-xling leak.")
    seen = " (first rows)" if mixture.streamed else ""  # so that figures and signature say so
    looked_at = {name + seen: part for name, part in mixture.parts.items()}
    unleaked, leak = check_leaks(looked_at, evaluator, evaluation, on_leak=on_leak)
    if leak is not None and leak.dropped:
        mixture = prepare(unleaked, recipe.training, processes=processes.count())
    return mixture, leak


def dev_data(evaluator: BaseEvaluator | None) -> str | None:
    """What judges the run, without our version, which may change before a run is resumed."""
    signature = getattr(evaluator, "signature", None)
    return None if signature is None else "|".join(p for p in signature.split("|") if not p.startswith("st-xling:"))


def _manifest(job: Job, command: str | None) -> dict[str, Any]:
    """What identifies the run; one that is resumed must agree with it."""
    return {
        "version": __version__,
        "command": command,
        "recipe": job.recipe.as_dict(),
        "model": model_name(job.model),
        "tiny": job.tiny,
        "data": job.mixture.manifest,
        "dev": dev_data(job.evaluator),
        "processes": processes.count(),
    }


def _prepare(
    job: Job, manifest: dict[str, Any], checkpoint: Path | None, *, resume: bool
) -> tuple[CrossLingualTrainer, tuple[TextReport, TextReport]]:
    """All that is needed to go on; the folder is the run's own from then on.

    A mini-batch that was found to fit is noted in ``manifest``, for those who resume.
    """
    folder, recipe = job.folder, job.recipe
    found = folder.read_manifest().get("mini_batch_size") if resume and folder.manifest_path.is_file() else None
    start = job.model if checkpoint is not None else same_start(job)
    trainer, texts = processes.together(lambda: prepare_trainer(job, start, checkpoint, mini_batch=found))
    if job.model == "tiny":
        trainer.model.model_card_data.base_model = None
    if recipe.training.mini_batch_size == AUTO:
        manifest["mini_batch_size"] = getattr(trainer.loss, "mini_batch_size", 0)
    processes.on_main(lambda: folder.begin(manifest))
    if recipe.training.lora is not None and checkpoint is None:
        processes.on_main(lambda: _save_base(without_adapters(trainer.model), folder.base))
    return trainer, texts


def _save_base(model: SentenceTransformer, base: Path) -> None:
    """The model below adapters, whole or not at all."""
    save_model(model, base)
    seal(base)


def run_trainer(
    trainer: CrossLingualTrainer,
    folder: RunFolder,
    progress: StderrProgress,
    checkpoint: Path | None,
    texts: tuple[TextReport, TextReport],
) -> TrainingResult:
    """Train, from ``checkpoint`` if there is one."""
    trainer.add_callback(EndReplaced(folder))
    try:
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    except KeyboardInterrupt as stop:
        # Beside others, only the main process tidies up after itself.
        whole = folder.last_checkpoint(compare=False) if processes.is_main() else None
        raise TrainingInterrupted(folder.path, whole) from stop
    finally:
        progress.close()
    return TrainingResult(
        model=trainer.model,
        folder=folder.path,
        seconds=trainer.seconds,
        steps=trainer.state.global_step,
        history=trainer.state.log_history,
        texts=texts,
        best=trainer.state.best_metric,
    )
