"""One training run of a cross-encoder, stage by stage, from labelled pairs to a saved model."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator

from st_xling._version import __version__
from st_xling.cross_encoder.heads import cross_encoder, replace_head, tiny_cross_encoder
from st_xling.cross_encoder.labelled import PAIR_COLUMNS
from st_xling.cross_encoder.loss_rows import check_pairs
from st_xling.cross_encoder.recipe import CrossEncoderRecipe
from st_xling.cross_encoder.stage_training import prepare_stage, train_stage
from st_xling.cross_encoder.stages import Stage, StagedRunFolder, plan_stages
from st_xling.data.text_columns import column_texts
from st_xling.training import processes
from st_xling.training.lora import require_peft
from st_xling.training.mixture import fingerprint
from st_xling.training.prepare import check_tiny, model_name
from st_xling.training.run import TrainingInterrupted, dev_data
from st_xling.training.saving import save_run

if TYPE_CHECKING:
    from datasets import Dataset

Start = str | SentenceTransformer | CrossEncoder
_TEXT = [name for name in PAIR_COLUMNS if name != "label"]


@dataclass(frozen=True)
class CrossEncoderResult:
    """What a run leaves behind.

    Attributes:
        model: The trained model: the best by the development score of the last stage, or the last one.
        folder: Where it was saved.
        seconds: Wall time of training, of stages that an earlier process has finished too.
        steps: Optimiser steps of all stages.
        stages: Figures of each stage: name, pairs, steps, seconds, best development score, pairs cut and left out.
        history: The host's log of all stages.
        best: Best development score of the last stage, if there was a development set.
    """

    model: CrossEncoder
    folder: Path
    seconds: float
    steps: int
    stages: list[dict[str, Any]]
    history: list[dict[str, Any]] = field(repr=False)
    best: float | None = None


def train_cross_encoder(
    recipe: CrossEncoderRecipe,
    stages: Sequence[Dataset],
    out: str | Path,
    *,
    model: Start = "tiny",
    tiny: Mapping[str, Any] | None = None,
    evaluator: BaseEvaluator | None = None,
    xpi: Dataset | None = None,
    xpi_evaluator: BaseEvaluator | None = None,
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> CrossEncoderResult:
    """Train a cross-encoder and save it.

    Args:
        recipe: Loss and options, from :func:`load_cross_encoder_recipe`.
        stages: Labelled pairs of each stage, as a strategy gives them.
        out: Folder of the run, see :mod:`st_xling.cross_encoder.stages`.
        model: Hub id, folder, a loaded model (an encoder or a cross-encoder, see :func:`cross_encoder`), or ``"tiny"``:
            a small encoder built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Judges the model during training by its ``primary_metric``; the best checkpoint is kept.
        xpi: Labelled pairs of the stage before, for a recipe that was loaded with ``xpi=True``: the encoder is kept,
            the head is new.
        xpi_evaluator: Judges that stage.
        resume: Go on from the last complete checkpoint in ``out``, in the stage that was interrupted.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; several processes.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny)
    if tiny and model != "tiny":
        raise ValueError(f"tiny options shape the model 'tiny' only: got {', '.join(tiny)} for another model.")
    if processes.count() > 1:
        raise ValueError(f"cross-encoders are trained in one process: got {processes.count()}; start one.")
    plan = plan_stages(recipe, stages, evaluator=evaluator, xpi=xpi, xpi_evaluator=xpi_evaluator)
    for stage in plan:
        check_pairs(stage.pairs)
        if stage.recipe.training.lora is not None:
            require_peft()
    folder = StagedRunFolder(out, stages=len(plan))
    folder.check_free(resume=resume, overwrite=overwrite)
    manifest = _manifest(plan, recipe, model, tiny, command)
    if not (resume and folder.manifest_path.is_file()):
        start = _start(plan, model, tiny)
        for stage in plan:  # faults of any stage before the first is trained
            prepare_stage(stage, start, tell=False)
        folder.claim(manifest, overwrite=overwrite)
        folder.start_over(manifest)
    else:
        start = None
        folder.claim(manifest, resume=True)
    return _run(plan, folder, manifest, start, model)


def _run(
    plan: list[Stage],
    folder: StagedRunFolder,
    manifest: dict[str, Any],
    start: CrossEncoder | None,
    given: Start,
) -> CrossEncoderResult:
    """The stages that are not finished yet; ``start`` is what the first of all begins with, where that is known."""
    first = folder.first_unfinished()
    reports = [folder.report(number) for number in range(first)]
    model = start
    for number in range(first, len(plan)):
        stage, checkpoint = plan[number], folder.checkpoint(number)
        if checkpoint is None and model is None:
            model = CrossEncoder(str(folder.model(number - 1))) if number else _start(plan, given, manifest["tiny"])
        if checkpoint is None and stage.new_head and model is not None:
            replace_head(model, stage.recipe.training.seed)
        last = number == len(plan) - 1
        started = time.perf_counter()
        try:
            model, report = train_stage(
                stage,
                model,
                folder.stage(number),
                checkpoint=checkpoint,
                keep_adapters=last,
                start=None if number else model_name(given),
            )
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint()) from stop
        reports.append({**report, "seconds": round(time.perf_counter() - started, 1)})
        if not last:
            folder.finish(number, model, reports[-1])
    assert model is not None
    return _save(model, folder, manifest, reports, given)


def _save(
    model: CrossEncoder,
    folder: StagedRunFolder,
    manifest: dict[str, Any],
    reports: list[dict[str, Any]],
    given: Start,
) -> CrossEncoderResult:
    model.model_card_data.base_model = None if given == "tiny" else model_name(given)
    figures = [{key: value for key, value in report.items() if key != "history"} for report in reports]
    history = [{**entry, "stage": report["name"]} for report in reports for entry in report["history"]]
    result = CrossEncoderResult(
        model=model,
        folder=folder.path,
        seconds=sum(report["seconds"] for report in reports),
        steps=sum(report["steps"] for report in reports),
        stages=figures,
        history=history,
        best=reports[-1]["best_dev"],
    )
    totals = {"seconds": round(result.seconds, 1), "steps": result.steps, "best_dev": result.best, "stages": figures}
    save_run(model, folder, manifest, history=history, figures=totals, leak=None)
    return result


def _start(plan: list[Stage], model: Start, tiny: Mapping[str, Any]) -> CrossEncoder:
    """What the first stage begins with."""
    recipe = plan[-1].recipe
    seed, max_length = recipe.training.seed, recipe.model.max_length
    if model != "tiny":
        return cross_encoder(model, head=recipe.head, max_length=max_length, seed=seed)
    if recipe.head == "keep":
        raise ValueError("the model 'tiny' has no head to keep: got head 'keep'; take 'cls' or 'pooler'.")
    shape: dict[str, Any] = {"seed": seed, "max_length": max_length or 128, **tiny}
    texts = (text for stage in plan for text in column_texts(stage.pairs, "query", "passage"))
    built = tiny_cross_encoder(texts, head=recipe.head, **shape)
    built.model_card_data.base_model = None
    return built


def _manifest(
    plan: list[Stage],
    recipe: CrossEncoderRecipe,
    model: Start,
    tiny: Mapping[str, Any],
    command: str | None,
) -> dict[str, Any]:
    """What identifies the run; one that is resumed must agree with it."""
    return {
        "version": __version__,
        "command": command,
        "recipe": recipe.as_dict(),
        "model": model_name(model),
        "tiny": dict(tiny),
        "data": {stage.name: {"rows": len(stage.pairs), "sha8": fingerprint(stage.pairs, _TEXT)} for stage in plan},
        "dev": {stage.name: dev_data(stage.evaluator) for stage in plan},
    }
