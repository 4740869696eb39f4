"""One training run of a cross-encoder, stage by stage, from labelled pairs to a saved model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder
from sentence_transformers.base.evaluation import BaseEvaluator

from st_xling._version import __version__
from st_xling.data.reranking.pairs import PAIR_COLUMNS
from st_xling.models.cross_encoder import replace_head
from st_xling.models.load import st_model
from st_xling.models.lora import require_peft
from st_xling.training import processes
from st_xling.training.checkpoint import newest_checkpoint
from st_xling.training.leak_check import OnLeak
from st_xling.training.mixture import fingerprint
from st_xling.training.prepare import check_tiny, model_name
from st_xling.training.reranker.loss_rows import check_pairs
from st_xling.training.reranker.pool_leaks import check_pool_leaks
from st_xling.training.reranker.recipe import CrossEncoderRecipe
from st_xling.training.reranker.result import CrossEncoderResult, save_result
from st_xling.training.reranker.stage_training import prepare_stage, train_stage
from st_xling.training.reranker.stages import Stage, StagedRunFolder, plan_stages
from st_xling.training.reranker.start import Start, start_model
from st_xling.training.run import TrainingInterrupted, dev_data
from st_xling.training.run_folder import EndReplaced

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.leak import Texts
    from st_xling.data.leak_report import LeakReport

_TEXT = [name for name in PAIR_COLUMNS if name != "label"]


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
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
) -> CrossEncoderResult:
    """Train a cross-encoder and save it.

    Args:
        recipe: Loss and options, from :func:`~st_xling.training.reranker.recipe_files.load_cross_encoder_recipe`.
        stages: Labelled pairs of each stage, as a strategy gives them.
        out: Folder of the run, see :mod:`st_xling.training.reranker.stages`.
        model: Hub id, folder, a loaded model (an encoder or a cross-encoder, see :func:`cross_encoder`), or ``"tiny"``:
            a small encoder built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Judges the model during training by its ``primary_metric``; the best checkpoint is kept.
        xpi: Labelled pairs of the stage before, for a recipe that was loaded with ``xpi=True``: the encoder is kept,
            the head is new.
        xpi_evaluator: Judges that stage.
        evaluation: Texts that will judge the model later; like the evaluators' queries and relevant passages, they are
            looked for in the pairs of every stage, and what is found is told and kept in ``results.json``.
        on_leak: What to do about pairs with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Go on from the last complete checkpoint in ``out``, in the stage that was interrupted.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, kept with the run.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; several processes;
            shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.
    """
    tiny = check_tiny(tiny, model)
    processes.require_one("cross-encoders")
    plan = plan_stages(recipe, stages, evaluator=evaluator, xpi=xpi, xpi_evaluator=xpi_evaluator)
    _check(plan)
    plan, leak = check_pool_leaks(plan, evaluation, on_leak=on_leak)
    with StagedRunFolder(out, stages=len(plan), resume=resume, overwrite=overwrite, start=_named(model)) as folder:
        manifest = _manifest(plan, recipe, model, tiny, command)
        going_on = folder.claim(manifest)
        start = None
        if going_on is None:
            start = start_model(plan, model, tiny)
            for stage in plan:  # faults of any stage before the first is trained
                prepare_stage(stage, start, tell=False)
        folder.begin(manifest)
        return _run(plan, folder, going_on, start, model, leak)


def _named(model: Start) -> str | None:
    return model if isinstance(model, str) else None


def _check(plan: list[Stage]) -> None:
    for stage in plan:
        check_pairs(stage.pairs)
        if stage.recipe.training.lora is not None:
            require_peft()


def _run(
    plan: list[Stage],
    folder: StagedRunFolder,
    going_on: Path | None,
    start: CrossEncoder | None,
    given: Start,
    leak: LeakReport | None,
) -> CrossEncoderResult:
    """The stages that are not finished yet.

    Args:
        going_on: A checkpoint of the first of them, or the model that the one before ended with.
        start: Otherwise: what the first of all begins with.
    """
    first = 0 if going_on is None else folder.stage_after(going_on)
    reports = [folder.report(number) for number in range(first)]
    model = start
    for number in range(first, len(plan)):
        stage, checkpoint = plan[number], going_on
        if number > first:
            checkpoint = newest_checkpoint(folder.stage(number))
        elif going_on is not None and going_on == folder.model(number - 1):
            checkpoint = None
            model = st_model(CrossEncoder, str(going_on))
        if checkpoint is None and stage.new_head and model is not None:
            replace_head(model, stage.recipe.training.seed)
        last = number == len(plan) - 1
        try:
            model, report = train_stage(
                stage,
                model,
                folder.stage(number),
                checkpoint=checkpoint,
                keep_adapters=last,
                start=None if number else model_name(given),
                callbacks=[EndReplaced(folder)],
            )
        except KeyboardInterrupt as stop:
            raise TrainingInterrupted(folder.path, folder.last_checkpoint(compare=False)) from stop
        reports.append(report)
        if not last:
            folder.finish_stage(number, model, report)
    assert model is not None
    return save_result(model, folder, reports, given, leak)


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
