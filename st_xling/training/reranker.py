"""Cross-encoders for re-ranking, trained on labeled pairs, in one stage or several (languages in turn).

Besides what :mod:`st_xling.training.run_folder` names, the folder of a run of two stages or more has

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sentence_transformers import CrossEncoder
from sentence_transformers.base.training_args import BaseTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

from st_xling.data.reranking.pairs import PAIR_COLUMNS
from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.data.text_columns import column_texts
from st_xling.models.cross_encoder import Head, cross_encoder, tiny_cross_encoder
from st_xling.models.load import load_sentence_transformer, mark_loaded
from st_xling.models.lora import add_lora, end_lora, trained_share
from st_xling.models.pair_scorer import pair_sizes
from st_xling.training.arguments import TrainingOptions, training_arguments
from st_xling.training.mixture import fingerprint, log_truncation
from st_xling.training.ranking_losses import RankingLoss, check_pairs, loss_rows, meaning_keys, read_ranking_loss
from st_xling.training.recipe import BaseRecipe, load_kind
from st_xling.training.run import Run, RunOptions, TrainingResult, fit_trainer, model_name
from st_xling.training.run_folder import BASE, newest_checkpoint, save_folder
from st_xling.training.trainer import GuardedTrainer
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from datasets import Dataset
    from typing_extensions import Unpack


logger = logging.getLogger(__name__)

XPI = "xpi"


@dataclass(frozen=True)
class NegativeOptions:
    """Pairs of label 0 that are drawn.

    Attributes:
        per_positive: For each positive pair; ``None``: 1, or none where the data label negatives.
    """

    per_positive: int | None = None


@dataclass(frozen=True)
class SentenceOptions:
    """XPI pairs from parallel text.

    Attributes:
        size: Rows drawn of all parallel text; ``None``: all. The paper's: 100,000.
    """

    size: int | None = None


@dataclass(frozen=True)
class PairOptions:
    """Tokenization of pairs. ``None`` keeps the model's own."""

    max_length: int | None = None


@dataclass(frozen=True)
class CrossEncoderRecipe(BaseRecipe):
    """A named way to train a cross-encoder.

    Attributes:
        strategy: ``"xpi"``, or how translated query-passage pairs are put together: ``STRATEGIES``.
    """

    kind: ClassVar[str] = "cross-encoder"
    arguments: ClassVar[type[BaseTrainingArguments] | None] = CrossEncoderTrainingArguments
    # Balance is the strategy's, mini-batches are the loss's.
    without: ClassVar[tuple[str, ...]] = (
        *("mini_batch_size", "language_alpha", "batches"),
        *("keep_duplicates_apart", "shuffle_buffer", "prompt_name", "save_vocabulary_head", "warm_up_heads"),
    )

    name: str
    summary: str
    strategy: str = ""
    negatives: NegativeOptions = field(default_factory=NegativeOptions)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    head: Head = "cls"
    loss: RankingLoss = field(default_factory=RankingLoss, metadata={"read": read_ranking_loss})
    model: PairOptions = field(default_factory=PairOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def check(self) -> None:
        check_choice("strategy", self.strategy, (XPI, *STRATEGIES))


def load_cross_encoder_recipe(
    name_or_path: str, *, tiny: bool = False, overrides: dict[str, Any] | None = None
) -> CrossEncoderRecipe:
    """Read a recipe by name, or from a YAML file; see :func:`~st_xling.training.load_recipe` for the arguments.

    Raises:
        ValueError: No such recipe, an unknown key, or a bad value.
    """
    return load_kind(CrossEncoderRecipe, name_or_path, tiny=tiny, overrides=overrides)


def _shares(total: int, rows: Sequence[int]) -> list[int]:
    """Divide ``total`` steps by rows, at least one for each."""
    if total <= 0:
        return [total] * len(rows)
    if total < len(rows):
        raise ValueError(f"training.max_steps is shared by {len(rows)} stages: got {total}; give one step to each.")
    # Rounded bounds rather than rounded shares: they add up to the total.
    bounds = [round(total * sum(rows[:place]) / max(1, sum(rows))) for place in range(len(rows) + 1)]
    shares = [max(1, end - start) for start, end in itertools.pairwise(bounds)]
    shares[shares.index(max(shares))] += total - sum(shares)
    return shares


def fitting_pairs(tokenizer: Any, pairs: Dataset, *, max_length: int | None) -> tuple[Dataset, dict[str, int], int]:
    """The pairs that can be trained on, what a stage reports of them, and the tokens of the longest.

    A pair whose query leaves no room for a token of the passage is skipped; of a longer one the passage is cut.

    Args:
        tokenizer: The model's; a text of several pairs is tokenized once.
        pairs: Labeled pairs.
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
    counts = {"pairs": len(lengths), "pairs_cut": int((lengths > limit).sum()), "pairs_skipped": int((~fits).sum())}
    return (pairs if fits.all() else pairs.select(np.flatnonzero(fits))), counts, int(lengths.max())


class RankingTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds.

    Args:
        *args, **options: Of ``CrossEncoderTrainer``.
        keys: Of the training rows' texts; like equal texts, those of equal keys are kept out of each other's batches,
            by samplers that keep duplicates apart. *Shape:* ``(rows, columns)``, uint64
    """

    def __init__(self, *args: Any, keys: np.ndarray | None = None, **options: Any) -> None:
        self.row_keys = keys
        super().__init__(*args, **options)

    def get_batch_sampler(self, dataset: Any, *args: Any, **options: Any) -> Any:
        """Return the sampler of the training rows; evaluators make their own batches."""
        sampler: Any = super().get_batch_sampler(dataset, *args, **options)
        known = getattr(sampler, "keys", None)
        if self.row_keys is not None and known is not None and len(known) == len(self.row_keys):
            sampler.keys = np.concatenate([known, self.row_keys], axis=1)
        return sampler


def train_cross_encoder(
    recipe: CrossEncoderRecipe, stages: Sequence[Dataset], out: str | Path, **options: Unpack[RunOptions]
) -> TrainingResult:
    """Train a cross-encoder and save it.

    Args:
        recipe: Loss and options, from :func:`load_cross_encoder_recipe`.
        stages: Labeled pairs of each stage, as a strategy gives them.
        out: Folder of the run, see :mod:`st_xling.training.reranker`.
        **options: See :class:`~st_xling.training.run.RunOptions`; a model may be an encoder or a cross-encoder, see
            :func:`cross_encoder`. A run is resumed in the stage that was interrupted.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; several processes;
            shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.
    """
    if not stages:
        raise ValueError("training needs at least one data set: got none.")
    names = [recipe.name if len(stages) == 1 else f"{recipe.name} {n}/{len(stages)}" for n in range(1, len(stages) + 1)]
    run = Run(recipe=recipe, out=out, stages=len(stages), **options)
    for part in stages:
        check_pairs(part)
    with run.opened("cross-encoders"):
        parts = _without_leaks(dict(zip(names, stages)), run)
        text = [name for name in PAIR_COLUMNS if name != "label"]
        described = {name: {"rows": len(part), "sha8": fingerprint(part, text)} for name, part in parts.items()}
        checkpoint = run.claim({"data": described})
        model = _start_model(run, parts) if checkpoint is None else _load_stage(run, checkpoint)
        prepared = [prepare_stage(name, part, recipe.loss, model) for name, part in parts.items()]
        return run.fit(lambda: _train_stages(run, prepared, model, checkpoint))


def _without_leaks(data: dict[str, Dataset], run: Run) -> dict[str, Dataset]:
    """Compare pairs with the text that evaluates the run, and drop those that share some, if they shall be dropped."""
    columns = {"query": "source", "passage": "target"}
    left = run.check_leaks({name: part.rename_columns(columns) for name, part in data.items()})
    back = {new: old for old, new in columns.items()}
    return {name: part.rename_columns(back) for name, part in left.items()}


def _start_model(run: Run, data: Mapping[str, Dataset]) -> CrossEncoder:
    """Load the model to start from; a tiny one has the vocabulary of the text of all stages."""
    recipe, seed = run.recipe, run.recipe.training.seed
    max_length = recipe.model.max_length
    if run.model != "tiny":
        options: dict[str, Any] = {"max_length": max_length, "seed": seed, **run.load_options}
        model = mark_loaded(cross_encoder(run.model, head=recipe.head, **options))
    elif recipe.head == "keep":
        raise ValueError("the model 'tiny' has no head to keep: got head 'keep'; take 'cls' or 'pooler'.")
    else:
        texts = (text for part in data.values() for text in column_texts(part, "query", "passage"))
        shape: dict[str, Any] = {"seed": seed, "max_length": max_length or 128, **(run.tiny or {})}
        model = tiny_cross_encoder(texts, head=recipe.head, **shape)
    run.announce(model)
    return model


def _load_stage(run: Run, checkpoint: Path) -> CrossEncoder:
    """Load a checkpoint, the model below one of adapters, or the model that a stage ended with."""
    if run.recipe.training.lora is not None and checkpoint.name != "model":
        checkpoint = checkpoint.parent / BASE
    return load_sentence_transformer(CrossEncoder, str(checkpoint))


@dataclass(frozen=True)
class Stage:
    """Training data of one stage.

    Attributes:
        name: Name in the log and in the results.
        size: Number of labeled pairs, the skipped ones included.
        rows: Rows that the loss reads.
        counts: Numbers of pairs that are trained on, cut and skipped.
        keys: See :class:`RankingTrainer`.
    """

    name: str
    size: int
    rows: Dataset
    counts: dict[str, int]
    keys: np.ndarray | None


def prepare_stage(name: str, pairs: Dataset, loss: RankingLoss, model: CrossEncoder) -> Stage:
    """Make the rows that the loss reads, and log what is cut or skipped.

    Raises:
        ValueError: Nothing that can be trained on; a loss that does not fit the model.
    """
    max_length = model.max_seq_length
    fitting, counts, longest = fitting_pairs(model.tokenizer, pairs, max_length=max_length)
    rows, unusable = loss_rows(fitting, loss.form)
    loss.build(model)
    sizes = counts["pairs_cut"], counts["pairs"], longest
    log_truncation(*sizes, max_length=max_length, what=f"pairs of {name}", effect="and their passages are cut")
    if counts["pairs_skipped"]:
        logger.warning(
            f"{name}: {counts['pairs_skipped']:,} pairs are skipped: their queries, which are never cut, leave no "
            f"room for a passage in {max_length} tokens. Raise model.max_length to keep them."
        )
    if unusable:
        logger.warning(
            f"{name}: {unusable:,} queries are skipped: {loss.name} needs a relevant passage and another one of each."
        )
    return Stage(name, len(pairs), rows, counts, meaning_keys(pairs, rows) if loss.compares_within_batch else None)


def _train_stages(run: Run, stages: Sequence[Stage], model: CrossEncoder, checkpoint: Path | None) -> TrainingResult:
    """Train the stages that are not finished yet.

    Args:
        run: The run.
        stages: All stages.
        model: The model that the first of them starts from, or the one of ``checkpoint``.
        checkpoint: A checkpoint of the first unfinished stage, or the model of the stage before it.
    """
    folder = run.folder
    first = folder.finished_stages() if checkpoint is not None else 0
    reports = [read_json_object(folder.stage(number) / "report.json", missing_ok=False) for number in range(first)]
    # max_steps is of the whole recipe, so that strategies of one and of several stages cost the same.
    steps = _shares(run.recipe.training.max_steps, [stage.size for stage in stages])
    for number in range(first, len(stages)):
        resumed = newest_checkpoint(folder.stage(number)) if checkpoint is not None else None
        model, report = _train_stage(run, number, stages[number], steps[number], model, resumed)
        reports.append(report)
        if number < len(stages) - 1:  # without room for it, the stage's last checkpoint remains
            write_json(folder.stage(number) / "report.json", report)
            save_folder(model, folder.stage(number) / "model")
    model.model_card_data.base_model = run.base_model
    return TrainingResult(
        model=model,
        folder=folder.path,
        seconds=sum(report["seconds"] for report in reports),
        steps=sum(report["steps"] for report in reports),
        stages=[{key: value for key, value in report.items() if key != "history"} for report in reports],
        history=[{**entry, "stage": report["name"]} for report in reports for entry in report["history"]],
        best=reports[-1]["best_dev"],
    )


def _train_stage(
    run: Run, number: int, stage: Stage, max_steps: int, model: CrossEncoder, checkpoint: Path | None
) -> tuple[CrossEncoder, dict[str, Any]]:
    """Train one stage, from ``checkpoint`` if there is one.

    Returns:
        The model, best by the development score or last, and the stage's results with its log.
    """
    recipe, folder = run.recipe, run.folder.stage(number)
    loss, lora, base = recipe.loss, recipe.training.lora, folder / BASE
    if lora is not None:
        if checkpoint is None:
            save_folder(model, base)
        add_lora(model, lora, base=base, seed=recipe.training.seed)
        logger.info("LoRA trains %s", trained_share(model))
    options = dataclasses.replace(
        recipe.training, max_steps=max_steps, keep_duplicates_apart=loss.compares_within_batch
    )
    trainer = RankingTrainer(
        model=model,
        args=training_arguments(
            options,
            folder,
            rows=len(stage.rows),
            best_metric=run.best_metric,
            kind=CrossEncoderTrainingArguments,
        ),
        train_dataset=stage.rows,
        loss=loss.build(model),
        keys=stage.keys,
        evaluator=run.evaluator,
        callbacks=run.all_callbacks(),
    )
    result = fit_trainer(trainer, run.folder, checkpoint, name=stage.name)
    if lora is not None:  # kept apart only at the end
        ending = lora if number == run.folder.stages - 1 else dataclasses.replace(lora, merge=True)
        end_lora(result.model, ending, start=str(base) if number else model_name(run.model), base=base)
    report = {"name": stage.name, **stage.counts, **result.figures(), "history": result.history}
    return result.model, report
