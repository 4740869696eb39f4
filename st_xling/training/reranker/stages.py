"""A run in several stages: what each is trained on, and where its checkpoints and its model are kept.

Beside what :mod:`st_xling.training.run_folder` names, of a run of two stages or more:

================================  ====================================================================
``training/stage-1/checkpoint-N/``  the host's checkpoint of the first stage
``training/stage-1/base/``          training by adapters: the model below them
``training/stage-1/model/``         what the stage ended with, and ``files.json``: the next one starts from it
``training/stage-1/report.json``    its figures and log
================================  ====================================================================

A run of one stage keeps its checkpoints in ``training/``, as an encoder's does.
"""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder

from st_xling.training.checkpoint import damage, enough_room, forget_last_call, newest_checkpoint, seal
from st_xling.training.reranker.recipe import CrossEncoderRecipe
from st_xling.training.run_folder import RunFolder
from st_xling.utils.io import read_json_object, write_json

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers.base.evaluation import BaseEvaluator

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stage:
    """One training on one data set.

    Attributes:
        name: For people, e.g. ``"xpr-cascade 2/2"``.
        recipe: Its loss and training options.
        pairs: Labelled pairs.
        max_steps: Its part of the recipe's; at most 0: as the epochs say.
        new_head: The head of the stage before is replaced.
        evaluator: Judges it; the best checkpoint is what it ends with.
    """

    name: str
    recipe: CrossEncoderRecipe
    pairs: Dataset
    max_steps: int
    new_head: bool
    evaluator: BaseEvaluator | None


def plan_stages(
    recipe: CrossEncoderRecipe,
    pairs: Sequence[Dataset],
    *,
    evaluator: BaseEvaluator | None = None,
    xpi: Dataset | None = None,
    xpi_evaluator: BaseEvaluator | None = None,
) -> list[Stage]:
    """The stages of a recipe in order, XPI first.

    ``max_steps`` is of the whole recipe, so that strategies of one and of several stages cost the same: its stages
    share it by their rows. Epochs are of each stage's own data.

    Raises:
        ValueError: No data, data for XPI but no recipe for it or the reverse, or fewer steps than stages.
    """
    if not pairs:
        raise ValueError("training needs at least one data set: got none.")
    if (recipe.xpi is None) != (xpi is None):
        given, lacking = ("data", "recipe") if recipe.xpi is None else ("recipe", "data")
        raise ValueError(
            f"XPI needs a recipe and data: got its {given} and no {lacking}; load the recipe with xpi=True."
        )
    stages = []
    if recipe.xpi is not None and xpi is not None:
        stages.append(Stage(recipe.xpi.name, recipe.xpi, xpi, recipe.xpi.training.max_steps, False, xpi_evaluator))
    steps = _shares(recipe.training.max_steps, [len(part) for part in pairs])
    for number, part in enumerate(pairs):
        name = recipe.name if len(pairs) == 1 else f"{recipe.name} {number + 1}/{len(pairs)}"
        stages.append(Stage(name, recipe, part, steps[number], number == 0 and bool(stages), evaluator))
    return stages


def _shares(total: int, rows: Sequence[int]) -> list[int]:
    if total <= 0:
        return [total] * len(rows)
    if total < len(rows):
        raise ValueError(f"training.max_steps is shared by {len(rows)} stages: got {total}; give one step to each.")
    bounds = [round(total * sum(rows[:place]) / max(1, sum(rows))) for place in range(len(rows) + 1)]
    shares = [max(1, end - start) for start, end in itertools.pairwise(bounds)]
    shares[shares.index(max(shares))] += total - sum(shares)
    return shares


class StagedRunFolder(RunFolder):
    """The folder of a run of ``stages`` stages, which are numbered from 0."""

    def __init__(self, path: str | Path, *, stages: int, **options: Any) -> None:
        super().__init__(path, **options)
        self.stages = stages

    def stage(self, number: int) -> Path:
        """Where a stage's checkpoints are."""
        return self.training if self.stages == 1 else self.training / f"stage-{number + 1}"

    def first_unfinished(self) -> int:
        """The stage to go on in; the last one is finished by the run itself."""
        for number in range(self.stages - 1):
            model = self.model(number)
            if not model.is_dir():
                return number
            if (fault := damage(model)) is not None:
                logger.warning("%s is damaged: %s; stage %d ends anew.", model, fault, number + 1)
                return number
        return self.stages - 1

    def model(self, number: int) -> Path:
        """The model that a stage before the last ended with."""
        return self.stage(number) / "model"

    def stage_after(self, going_on: Path) -> int:
        """The stage to be trained from what :meth:`last_checkpoint` returned."""
        found = next(number for number in range(self.stages) if going_on.parent == self.stage(number))
        return found + 1 if going_on == self.model(found) else found

    def last_checkpoint(self, *, compare: bool = True) -> Path | None:
        """What there is to go on from: a checkpoint of the stage that was interrupted, or the model before it."""
        number = self.first_unfinished()
        found = newest_checkpoint(self.stage(number), compare=compare)
        return self.model(number - 1) if found is None and number > 0 else found

    def finish_stage(self, number: int, model: CrossEncoder, report: dict[str, Any]) -> None:
        """Keep what a stage before the last ended with; the model stands, or does not, as a whole.

        Raises:
            OSError: No room; the stage's last checkpoint stands.
        """
        goal = self.model(number)
        write_json(self.stage(number) / "report.json", report)
        beside = goal.with_name("model.tmp")
        shutil.rmtree(beside, ignore_errors=True)
        with enough_room(goal, self.stage(number)):
            forget_last_call(model)
            model.save_pretrained(str(beside))
            seal(beside)
        shutil.rmtree(goal, ignore_errors=True)  # a damaged one
        beside.replace(goal)

    def report(self, number: int) -> dict[str, Any]:
        """What :meth:`finish_stage` kept."""
        remedy = "remove the folder of the stage, which is then trained again"
        return read_json_object(self.stage(number) / "report.json", missing_ok=False, remedy=remedy)

    def _last_stage(self) -> Path:
        return self.stage(self.stages - 1)
