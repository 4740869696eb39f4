"""Cross-encoders for re-ranking: labelled pairs → a model, in one stage or several (XPI first, languages in turn).

Beside what :mod:`st_xling.training.run_folder` names, the folder of a run of two stages or more has

================================  ====================================================================
``training/stage-1/checkpoint-N/``  ST's checkpoint of the first stage
``training/stage-1/base/``          training by adapters: the model below them
``training/stage-1/model/``         what the stage ended with: the next one starts from it
``training/stage-1/report.json``    its results and log
================================  ====================================================================

A run of one stage keeps its checkpoints in ``training/``, as an encoder's does.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.base.training_args import BaseTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

from st_xling.data.reranking.pairs import PAIR_COLUMNS
from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.data.text_columns import column_texts
from st_xling.models.cross_encoder import Head, cross_encoder, replace_head, tiny_cross_encoder
from st_xling.models.load import load_sentence_transformer, mark_loaded
from st_xling.models.lora import add_lora, end_lora, trained_share
from st_xling.models.pair_scorer import pair_sizes
from st_xling.training.arguments import TrainingOptions, training_arguments
from st_xling.training.checkpoint import BASE, newest_checkpoint
from st_xling.training.leak_check import check_leaks, evaluation_texts
from st_xling.training.mixture import fingerprint, log_truncation
from st_xling.training.ranking_losses import RankingLoss, check_pairs, loss_rows, meaning_keys, read_ranking_loss
from st_xling.training.recipe import BaseRecipe, read_sections
from st_xling.training.recipe_files import check_keys, merge, recipe_names
from st_xling.training.run import Run, RunOptions, dev_data, model_name, run_trainer
from st_xling.training.run_folder import RunFolder, save_folder
from st_xling.training.trainer import GuardedTrainer
from st_xling.utils.checks import check_choice
from st_xling.utils.io import read_json_object, write_json

if TYPE_CHECKING:
    from datasets import Dataset
    from typing_extensions import Unpack

    from st_xling.data.leak import Texts

logger = logging.getLogger(__name__)

XPI = "xpi"
Start = str | SentenceTransformer | CrossEncoder
"""Hub id, folder, a loaded model, or ``"tiny"``."""


@dataclass(frozen=True)
class NegativeOptions:
    """Pairs of label 0 that are drawn.

    Attributes:
        per_positive: For each positive pair; ``None``: 1, or none where the data label negatives.
        hard: So many of these out of the same group, e.g. paragraphs of the same article.
    """

    per_positive: int | None = None
    hard: int = 0


@dataclass(frozen=True)
class SentenceOptions:
    """What XPI makes of parallel text.

    Attributes:
        size: Rows drawn of all parallel text; ``None``: all. The paper's: 100,000.
        mono_positives: Two sentences of one language that mean the same: ``"identical"`` or ``"word_dropout"``.
    """

    size: int | None = None
    mono_positives: str = "identical"


@dataclass(frozen=True)
class PairOptions:
    """How a pair becomes tokens. ``None`` keeps what the model has."""

    max_length: int | None = None


@dataclass(frozen=True)
class CrossEncoderRecipe(BaseRecipe):
    """A named way to train a cross-encoder.

    Attributes:
        strategy: ``"xpi"``, or how translated query-passage pairs are put together: ``STRATEGIES``.
        xpi: The recipe of the stage before, whose encoder is kept and whose head is not; ``None``: none.
    """

    kind: ClassVar[str] = "cross-encoder"
    arguments: ClassVar[type[BaseTrainingArguments] | None] = CrossEncoderTrainingArguments
    # Balance is the strategy's, mini-batches are the loss's.
    without: ClassVar[tuple[str, ...]] = (
        *("mini_batch_size", "language_alpha", "language_temperature", "batches"),
        *("keep_duplicates_apart", "shuffle_buffer", "prompt_name", "save_vocabulary_head"),
    )

    name: str
    summary: str
    strategy: str = field(metadata={"read": lambda value: value})
    negatives: NegativeOptions = field(default_factory=NegativeOptions)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    head: Head = field(default="cls", metadata={"read": lambda value: value})
    loss: RankingLoss = field(default_factory=RankingLoss, metadata={"read": read_ranking_loss})
    model: PairOptions = field(default_factory=PairOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    xpi: CrossEncoderRecipe | None = None

    def check(self) -> None:
        check_choice("strategy", self.strategy, (XPI, *STRATEGIES))
        check_choice("head", self.head, Head)
        if self.strategy != XPI and self.sentences != SentenceOptions():
            raise ValueError(
                f"'sentences' shapes what XPI makes of parallel text: strategy {self.strategy!r} takes none."
            )
        drawn = 1 if self.negatives.per_positive is None else self.negatives.per_positive
        if drawn < 0 or not 0 <= self.negatives.hard <= drawn:
            hard = self.negatives.hard
            raise ValueError(f"negatives.hard counts among negatives.per_positive: got {hard} of {drawn}.")


def cross_encoder_recipe_names() -> list[str]:
    """Names of the cross-encoders' recipes that come with the package."""
    return recipe_names("cross-encoder")


def load_cross_encoder_recipe(
    name_or_path: str, *, tiny: bool = False, xpi: bool = False, overrides: dict[str, Any] | None = None
) -> CrossEncoderRecipe:
    """Read a recipe by name, or from a YAML file.

    Args:
        name_or_path: One of :func:`cross_encoder_recipe_names`, or a path that ends in ``.yaml``.
        tiny: Apply the ``tiny`` sections, meant for encoders that start from random weights.
        xpi: XPI comes before, by the recipe ``xpi`` and what is said under this one's key ``xpi``.
        overrides: Dotted key → value, applied last: ``{"training.num_train_epochs": 2, "xpi.training.seed": 1}``.

    Raises:
        ValueError: No such recipe, a key that no part knows (the nearest valid one is named), or a bad value.
    """
    raw = read_sections(CrossEncoderRecipe, name_or_path, tiny=tiny, overrides=overrides)
    before = raw.pop(XPI, None)
    recipe = CrossEncoderRecipe.from_dict(raw, Path(name_or_path).stem)
    if recipe.strategy == XPI and (xpi or before is not None):
        raise ValueError(f"XPI comes before a re-ranking recipe: got it before {recipe.name}, which is XPI itself.")
    if not xpi:
        if any(key.split(".")[0] == XPI for key in overrides or {}):
            raise ValueError(
                "options under 'xpi' are of a stage that is not there: give --xpi-data, or leave them out."
            )
        return recipe
    before = {} if before is None else before
    check_keys(before, ["negatives", "sentences", "loss", "training"], XPI)
    # Head, length, seed, precision and adapters are said once, for both stages; what stands under xpi wins.
    training = raw.get("training") or {}
    own_precision = {"bf16", "fp16"} & (before.get("training") or {}).keys()
    names = ("seed", "lora") if own_precision else ("seed", "bf16", "fp16", "lora")
    shared = {key: training[key] for key in names if key in training}
    stage = merge(read_sections(CrossEncoderRecipe, XPI, tiny=tiny), {"training": shared})
    stage = merge(stage, merge(before, {"head": recipe.head, "model": dataclasses.asdict(recipe.model)}))
    return dataclasses.replace(recipe, xpi=CrossEncoderRecipe.from_dict(stage, XPI))


@dataclass(frozen=True)
class Stage:
    """One training on one data set.

    Attributes:
        name: For people, e.g. ``"xpr-cascade 2/2"``.
        recipe: Its loss and training options.
        pairs: Labelled pairs.
        max_steps: Its part of the recipe's; at most 0: as the epochs say.
        new_head: The head of the stage before is replaced.
        evaluator: Evaluates it; the best checkpoint is what it ends with.
    """

    name: str
    recipe: CrossEncoderRecipe
    pairs: Dataset
    max_steps: int
    new_head: bool
    evaluator: BaseEvaluator | None


def _shares(total: int, rows: Sequence[int]) -> list[int]:
    """``total`` steps divided by rows, at least one for each."""
    if total <= 0:
        return [total] * len(rows)
    if total < len(rows):
        raise ValueError(f"training.max_steps is shared by {len(rows)} stages: got {total}; give one step to each.")
    # Rounded bounds rather than rounded shares: they add up to the total.
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

    def model(self, number: int) -> Path:
        """The model that a stage before the last ended with."""
        return self.stage(number) / "model"

    def first_unfinished(self) -> int:
        """The stage to go on in; the last one is finished by the run itself."""
        for number in range(self.stages - 1):
            if not self.model(number).is_dir():
                return number
        return self.stages - 1

    def last_checkpoint(self) -> Path | None:
        """What there is to go on from: a checkpoint of the stage that was interrupted, or the model before it."""
        number = self.first_unfinished()
        checkpoint = newest_checkpoint(self.stage(number))
        return self.model(number - 1) if checkpoint is None and number > 0 else checkpoint

    def stage_after(self, start: Path) -> int:
        """The stage to be trained from what :meth:`last_checkpoint` returned."""
        stage = next(number for number in range(self.stages) if start.parent == self.stage(number))
        return stage + 1 if start == self.model(stage) else stage

    def finish_stage(self, number: int, model: CrossEncoder, report: dict[str, Any]) -> None:
        """Keep what a stage before the last ended with; without room for it, the stage's last checkpoint stands."""
        write_json(self.stage(number) / "report.json", report)
        save_folder(model, self.model(number))

    def report(self, number: int) -> dict[str, Any]:
        """What :meth:`finish_stage` kept."""
        remedy = "remove the folder of the stage, which is then trained again"
        return read_json_object(self.stage(number) / "report.json", missing_ok=False, remedy=remedy)

    def _last_stage(self) -> Path:
        return self.stage(self.stages - 1)


def fitting_pairs(tokenizer: Any, pairs: Dataset, *, max_length: int | None) -> tuple[Dataset, dict[str, int], int]:
    """The pairs that can be trained on, what a stage reports of them, and the tokens of the longest.

    A pair whose query leaves no room for a token of the passage is left out; of a longer one the passage is cut.

    Args:
        tokenizer: The model's; a text of several pairs is tokenised once.
        pairs: Labelled pairs.
        max_length: Tokens that a pair is cut to, its passage alone, special tokens included; ``None``: never.

    Raises:
        ValueError: No query leaves room for a passage.
    """
    sides = pairs["query"][:], pairs["passage"][:]
    queries, passages = pair_sizes(tokenizer, *sides)
    limit = sys.maxsize if max_length is None else max_length
    fits = queries < limit
    if not fits.any():
        raise ValueError(
            f"a query is never cut, and none of {len(set(sides[0])):,} leaves room for a passage in {max_length} tokens"
            f": the shortest takes {int(queries.min(initial=0))} with its special tokens; raise model.max_length."
        )
    lengths = (queries + passages)[fits]
    counts = {"pairs": len(lengths), "pairs_cut": int((lengths > limit).sum()), "pairs_left_out": int((~fits).sum())}
    return (pairs if fits.all() else pairs.select(np.flatnonzero(fits))), counts, int(lengths.max())


class RankingTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds.

    Args:
        *args, **options: Of ``CrossEncoderTrainer``.
        keys: Of the training rows' texts; beside equal texts, those of equal keys are kept out of each other's batches,
            by samplers that keep duplicates apart. *Shape:* ``(rows, columns)``, uint64
    """

    def __init__(self, *args: Any, keys: np.ndarray | None = None, **options: Any) -> None:
        self.row_keys = keys
        super().__init__(*args, **options)

    def get_batch_sampler(self, dataset: Any, *args: Any, **options: Any) -> Any:
        """Of the training rows; evaluators make batches of their own."""
        sampler: Any = super().get_batch_sampler(dataset, *args, **options)
        known = getattr(sampler, "keys", None)
        if self.row_keys is not None and known is not None and len(known) == len(self.row_keys):
            sampler.keys = np.concatenate([known, self.row_keys], axis=1)
        return sampler


@dataclass(frozen=True)
class CrossEncoderResult:
    """What a run leaves behind.

    Attributes:
        model: The trained model: the best by the development score of the last stage, or the last one.
        folder: Where it was saved.
        seconds: Wall time of training, of stages that an earlier process has finished too.
        steps: Optimiser steps of all stages.
        stages: Results of each stage: name, pairs, steps, seconds, best development score, pairs cut and left out.
        history: The trainer's log of all stages.
        best: Best development score of the last stage, if there was a development set.
    """

    model: CrossEncoder
    folder: Path
    seconds: float
    steps: int
    stages: list[dict[str, Any]]
    history: list[dict[str, Any]] = field(repr=False)
    best: float | None = None

    def figures(self) -> dict[str, Any]:
        """What ``results.json`` says of it."""
        return {
            "seconds": round(self.seconds, 1), "steps": self.steps, "best_dev": self.best, "stages": self.stages
        }  # fmt: skip


def train_cross_encoder(
    recipe: CrossEncoderRecipe,
    stages: Sequence[Dataset],
    out: str | Path,
    *,
    xpi: Dataset | None = None,
    xpi_evaluator: BaseEvaluator | None = None,
    **options: Unpack[RunOptions],
) -> CrossEncoderResult:
    """Train a cross-encoder and save it.

    Args:
        recipe: Loss and options, from :func:`load_cross_encoder_recipe`.
        stages: Labelled pairs of each stage, as a strategy gives them.
        out: Folder of the run, see :mod:`st_xling.training.reranker`.
        xpi: Labelled pairs of the stage before, for a recipe that was loaded with ``xpi=True``: the encoder is kept,
            the head is new.
        xpi_evaluator: Evaluates that stage.
        **options: See :class:`~st_xling.training.run.RunOptions`; a model may be an encoder or a cross-encoder, see
            :func:`cross_encoder`. A run is resumed in the stage that was interrupted.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; several processes;
            shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.
    """
    if not stages:
        raise ValueError("training needs at least one data set: got none.")
    if (recipe.xpi is None) != (xpi is None):
        present, lacking = ("data", "recipe") if recipe.xpi is None else ("recipe", "data")
        raise ValueError(
            f"XPI needs a recipe and data: got its {present} and no {lacking}; load the recipe with xpi=True."
        )
    plan = []
    if recipe.xpi is not None and xpi is not None:
        plan = [Stage(recipe.xpi.name, recipe.xpi, xpi, recipe.xpi.training.max_steps, False, xpi_evaluator)]
    # max_steps is of the whole recipe, so that strategies of one and of several stages cost the same.
    steps = _shares(recipe.training.max_steps, [len(part) for part in stages])
    for number, part in enumerate(stages):
        name = recipe.name if len(stages) == 1 else f"{recipe.name} {number + 1}/{len(stages)}"
        new_head = number == 0 and xpi is not None
        plan.append(Stage(name, recipe, part, steps[number], new_head, options.get("evaluator")))
    return _RerankerRun(recipe=recipe, out=out, plan=plan, **options)()


@dataclass(eq=False, kw_only=True)
class _RerankerRun(Run):
    single_process = "cross-encoders"
    recipe: CrossEncoderRecipe
    plan: list[Stage]
    folder: StagedRunFolder = field(init=False)

    def open_folder(self, **options: Any) -> StagedRunFolder:
        return StagedRunFolder(self.out, stages=len(self.plan), **options)

    def check(self) -> None:
        for stage in self.plan:
            check_pairs(stage.pairs)

    def prepare_data(self) -> None:
        texts: dict[str, Texts] = {}
        first = {id(stage.evaluator): stage for stage in reversed(self.plan)}  # one evaluator may serve several stages
        for stage in reversed(first.values()):
            texts |= evaluation_texts(stage.evaluator, prefix=f"{stage.recipe.name} ")
        columns = {"query": "source", "passage": "target"}
        data = {stage.name: stage.pairs.rename_columns(columns) for stage in self.plan}
        evaluation = {**texts, **(self.evaluation or {})}
        data_left, self.leak = check_leaks(data, evaluation=evaluation, on_leak=self.on_leak)
        if self.leak is not None and self.leak.dropped:
            back = {new: old for old, new in columns.items()}
            self.plan = [
                dataclasses.replace(stage, pairs=data_left[stage.name].rename_columns(back)) for stage in self.plan
            ]

    def describe_data(self) -> dict[str, Any]:
        text = [name for name in PAIR_COLUMNS if name != "label"]
        return {
            "data": {
                stage.name: {"rows": len(stage.pairs), "sha8": fingerprint(stage.pairs, text)} for stage in self.plan
            },
            "dev": {stage.name: dev_data(stage.evaluator) for stage in self.plan},
        }

    def build(self, checkpoint: Path | None) -> None:
        self.start: CrossEncoder | None = None
        if checkpoint is None:
            self.start = self._start_model()
            for stage in self.plan:  # faults of any stage before the first is trained
                prepare_stage(stage, self.start, log=False)

    def _start_model(self) -> CrossEncoder:
        """What the first stage begins with, by the recipe of the last one; a tiny vocabulary is of the text of all."""
        recipe = self.plan[-1].recipe
        seed, max_length = recipe.training.seed, recipe.model.max_length
        if self.model != "tiny":
            options: dict[str, Any] = {"max_length": max_length, "seed": seed, **self.load_options}
            model = mark_loaded(cross_encoder(self.model, head=recipe.head, **options))
            self.announce(model)
            return model
        if recipe.head == "keep":
            raise ValueError("the model 'tiny' has no head to keep: got head 'keep'; take 'cls' or 'pooler'.")
        texts = (text for stage in self.plan for text in column_texts(stage.pairs, "query", "passage"))
        shape: dict[str, Any] = {"seed": seed, "max_length": max_length or 128, **(self.tiny or {})}
        model = tiny_cross_encoder(texts, head=recipe.head, **shape)
        self.announce(model)
        return model

    def fit(self, checkpoint: Path | None) -> CrossEncoderResult:
        """Train the stages that are not finished yet.

        Args:
            checkpoint: Of the first of them, or the model that the one before ended with; ``None``: from the start.
        """
        folder, model = self.folder, self.start
        first = 0 if checkpoint is None else folder.stage_after(checkpoint)
        reports = [folder.report(number) for number in range(first)]
        for number in range(first, len(self.plan)):
            stage, last = self.plan[number], number == len(self.plan) - 1
            resumed = checkpoint if number == first else newest_checkpoint(folder.stage(number))
            if resumed is not None and number and resumed == folder.model(number - 1):
                model, resumed = load_sentence_transformer(CrossEncoder, str(resumed)), None
            if resumed is None and stage.new_head and model is not None:
                replace_head(model, stage.recipe.training.seed)
            start = None if number else model_name(self.model)
            model, report = self._train_stage(number, model, resumed, keep_adapters=last, start=start)
            reports.append(report)
            if not last:
                folder.finish_stage(number, model, report)
        assert model is not None
        model.model_card_data.base_model = self.base_model
        return CrossEncoderResult(
            model=model,
            folder=folder.path,
            seconds=sum(report["seconds"] for report in reports),
            steps=sum(report["steps"] for report in reports),
            stages=[{key: value for key, value in report.items() if key != "history"} for report in reports],
            history=[{**entry, "stage": report["name"]} for report in reports for entry in report["history"]],
            best=reports[-1]["best_dev"],
        )

    def _train_stage(
        self,
        number: int,
        model: CrossEncoder | None,
        checkpoint: Path | None,
        *,
        keep_adapters: bool,
        start: str | None,
    ) -> tuple[CrossEncoder, dict[str, Any]]:
        """Train one stage, from ``checkpoint`` if there is one.

        Args:
            number: Of the stage.
            model: What it begins with; ``None``: what the checkpoint's folder holds.
            checkpoint: Where to go on.
            keep_adapters: Adapters may stay apart at the end, if the recipe says so; otherwise they are merged.
            start: Name of the model that the stage begins with, for kept adapters to name as their base.

        Returns:
            The model, best by the development score or last, and the stage's results with its log.
        """
        stage, folder = self.plan[number], self.folder.stage(number)
        options, lora, base = stage.recipe.training, stage.recipe.training.lora, folder / BASE
        if checkpoint is not None:
            model = load_sentence_transformer(CrossEncoder, str(checkpoint if lora is None else base))
        assert model is not None
        rows, counts = prepare_stage(stage, model)
        if lora is not None:
            if checkpoint is None:
                save_folder(model, base)
            add_lora(model, lora, base=base, seed=options.seed)
            logger.info("LoRA trains %s", trained_share(model))
        loss = stage.recipe.loss
        options = dataclasses.replace(
            options, max_steps=stage.max_steps, keep_duplicates_apart=loss.compares_within_batch
        )
        trainer = RankingTrainer(
            model=model,
            args=training_arguments(
                options,
                folder,
                rows=len(rows),
                best_metric=None if stage.evaluator is None else f"eval_{_metric(stage.evaluator)}",
                kind=CrossEncoderTrainingArguments,
            ),
            train_dataset=rows,
            loss=loss.build(model),
            keys=meaning_keys(stage.pairs, rows) if loss.compares_within_batch else None,
            evaluator=stage.evaluator,
            callbacks=self.callbacks_of(options),
        )
        run_trainer(trainer, self.folder, checkpoint, name=stage.name)
        trained: CrossEncoder = trainer.model
        if lora is not None:
            ending = lora if keep_adapters else dataclasses.replace(lora, merge=True)
            end_lora(trained, ending, start=start or str(base), base=base)
        return trained, {
            "name": stage.name,
            **counts,
            "steps": trainer.state.global_step,
            "seconds": round(trainer.seconds, 1),
            "best_dev": trainer.state.best_metric,
            "history": trainer.state.log_history,
        }


def prepare_stage(stage: Stage, model: CrossEncoder, *, log: bool = True) -> tuple[Dataset, dict[str, int]]:
    """The rows that the stage's loss reads, and how many pairs are trained on, cut and left out.

    Raises:
        ValueError: Nothing that can be trained on; a loss that does not fit the model.
    """
    name, loss, max_length = stage.name, stage.recipe.loss, model.max_seq_length
    pairs, counts, longest = fitting_pairs(model.tokenizer, stage.pairs, max_length=max_length)
    rows, unusable = loss_rows(pairs, loss.form)
    loss.build(model)
    if not log:
        return rows, counts
    sizes = counts["pairs_cut"], counts["pairs"], longest
    log_truncation(*sizes, max_length=max_length, what=f"pairs of {name}", effect="and their passages are cut")
    if counts["pairs_left_out"]:
        logger.warning(
            f"{name}: {counts['pairs_left_out']:,} pairs are left out: their queries, which are never cut, leave no "
            f"room for a passage in {max_length} tokens. Raise model.max_length to keep them."
        )
    if unusable:
        logger.warning(
            f"{name}: {unusable:,} queries are left out: {loss.name} needs a relevant passage and another one of each."
        )
    return rows, counts


def _metric(evaluator: BaseEvaluator) -> str:
    # Some of ST's evaluators put their name before their metric's only when they are first called.
    metric, prefix = str(evaluator.primary_metric), f"{getattr(evaluator, 'name', '')}_"
    return metric if prefix == "_" or metric.startswith(prefix) else prefix + metric
