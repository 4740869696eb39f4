"""What a run of a cross-encoder leaves behind, in memory and on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder

from st_xling.training.prepare import model_name
from st_xling.training.reranker.stages import StagedRunFolder
from st_xling.training.reranker.start import Start
from st_xling.training.saving import save_run

if TYPE_CHECKING:
    from st_xling.data.leak import LeakReport


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


def save_result(
    model: CrossEncoder,
    folder: StagedRunFolder,
    reports: list[dict[str, Any]],
    given: Start,
    leak: LeakReport | None,
) -> CrossEncoderResult:
    """Save the model with the figures and logs of all stages, and mark the run as finished.

    Args:
        model: What the last stage ended with.
        folder: Of the run.
        reports: Of each stage.
        given: What the run began with.
        leak: What training and judging texts share, if they were compared.
    """
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
    save_run(model, folder, history=history, figures=totals, leak=leak)
    return result
