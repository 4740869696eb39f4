"""Cross-encoders for re-ranking, trained on labeled pairs, in one stage or several (languages in turn).

The losses are ST's, by name. ``binary_cross_entropy`` and ``mse`` read a pair a row: ``query``, ``passage`` and
``label``, 0 or 1. The others read a query a row: ``query``, ``passages`` (a list, relevant ones first) and ``labels``.

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
import inspect
import itertools
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from sentence_transformers.cross_encoder import losses as st_losses
from sentence_transformers.cross_encoder.evaluation import CrossEncoderClassificationEvaluator
from torch import Tensor, nn
from transformers import TrainerCallback

from st_xling.data.leak import Texts
from st_xling.data.reranking.filter_pairs import check_hard_kinds
from st_xling.data.reranking.pairs import PAIR_COLUMNS
from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.data.text_cells import column_texts
from st_xling.losses.rows_by_length import row_groups
from st_xling.models.cross_encoders import Head, cross_encoder, tiny_cross_encoder
from st_xling.models.load import load_sentence_transformer, mark_loaded
from st_xling.models.pair_filter import calibrate_filter
from st_xling.models.pair_scorer import pair_sizes
from st_xling.models.token_rows import check_texts
from st_xling.training.arguments import RankingTrainingArguments, replaced
from st_xling.training.development import development_score
from st_xling.training.mixture import describe, fingerprint, log_truncation
from st_xling.training.options import OptimizationArguments
from st_xling.training.recipe import BaseRecipe, trains_by_recipe
from st_xling.training.recipe_files import check_keys
from st_xling.training.run import Evaluators, OnLeak, Run, TrainingResult, fit_trainer
from st_xling.training.run_folder import BASE, save_folder
from st_xling.training.trainer import GuardedTrainer
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.options import check_choice, nearest_name

logger = logging.getLogger(__name__)

XPI = "xpi"
FILTER = "filter"

_NO_TEXTS = ("label", "dataset_name", "prompt", "task")
"""What a batch of ST's trainer for cross-encoders has besides columns of text."""

LOSSES = {
    "binary_cross_entropy": "BinaryCrossEntropyLoss",
    "mse": "MSELoss",
    "lambda": "LambdaLoss",
    "list_net": "ListNetLoss",
    "list_mle": "ListMLELoss",
    "plist_mle": "PListMLELoss",
    "rank_net": "RankNetLoss",
    "adr_mse": "ADRMSELoss",
}
"""Name in recipes → class of ST."""


@dataclass(frozen=True)
class RankingLoss:
    """A loss that a recipe names.

    Attributes:
        name: One of :data:`LOSSES`.
        options: Options of ST's class, ``pos_weight`` as a number.
    """

    name: str = "binary_cross_entropy"
    options: dict[str, Any] = field(default_factory=dict)

    def build(self, model: CrossEncoder) -> nn.Module:
        """Build ST's loss over ``model``."""
        options = dict(self.options)
        if "pos_weight" in options:
            options["pos_weight"] = torch.tensor(options["pos_weight"], device=model.device)
        return getattr(st_losses, LOSSES[self.name])(model, **options)


def read_ranking_loss(section: Any) -> RankingLoss:
    """Read a recipe's key ``loss``: a name, or a mapping of one name to its options.

    Raises:
        ValueError: A loss or option that is not known; the nearest is named.
    """
    if section is None:
        return RankingLoss()
    if isinstance(section, str):
        section = {section: None}
    if not isinstance(section, dict) or len(section) != 1:
        raise ValueError(f"loss names one loss, as in {{list_net: {{mini_batch_size: 16}}}}: got {section!r}.")
    [(name, options)] = section.items()
    if name not in LOSSES:
        raise ValueError(f"loss {name!r} is not known{nearest_name(str(name), LOSSES)}")
    options = options or {}
    parameters = inspect.signature(getattr(st_losses, LOSSES[name])).parameters
    option_names = parameters.keys() - {"model", "show_progress_bar"}
    check_keys(options, option_names, f"loss.{name}")
    return RankingLoss(name, dict(options))


@dataclass(frozen=True)
class NegativeOptions:
    """Pairs of label 0 that are drawn.

    Attributes:
        per_positive: For each positive pair; ``None``: 1, or none where the data label negatives.
        hard: Of a filter: kinds of pairs that only look like translations, see
            :data:`~st_xling.data.reranking.filter_pairs.HARD_KINDS`.
    """

    per_positive: int | None = None
    hard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_hard_kinds(self.hard, "negatives.hard")


@dataclass(frozen=True)
class SentenceOptions:
    """XPI pairs from parallel text.

    Attributes:
        size: Rows drawn of all parallel text; ``None``: all. The paper's: 100,000.
    """

    size: int | None = None


@dataclass(frozen=True)
class PairLength:
    """Tokenization of pairs. ``None`` keeps the model's own."""

    max_length: int | None = None


@dataclass(frozen=True)
class CrossEncoderRecipe(BaseRecipe):
    """A named way to train a cross-encoder.

    Attributes:
        strategy: ``"xpi"``, ``"filter"``, or how translated query-passage pairs are put together: ``STRATEGIES``.
    """

    kind: ClassVar[str] = "cross-encoder"
    arguments_class: ClassVar[type[OptimizationArguments]] = RankingTrainingArguments

    name: str
    summary: str
    arguments: RankingTrainingArguments
    strategy: str = ""
    negatives: NegativeOptions = field(default_factory=NegativeOptions)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    head: Head = "cls"
    loss: RankingLoss = field(default_factory=RankingLoss, metadata={"read": read_ranking_loss})
    model: PairLength = field(default_factory=PairLength)

    def check(self) -> None:
        check_choice("strategy", self.strategy, (XPI, FILTER, *STRATEGIES))
        if self.negatives.hard and self.strategy != FILTER:
            raise ValueError(
                f"pairs that look like translations are for a filter: got negatives.hard "
                f"{', '.join(self.negatives.hard)}, and the strategy {self.strategy}; take the recipe filter."
            )

    def as_dict(self) -> dict[str, Any]:
        content = super().as_dict()
        if self.strategy != FILTER:
            del content["negatives"]["hard"]
        return content


load_cross_encoder_recipe = CrossEncoderRecipe.load


class RankingTrainer(GuardedTrainer, CrossEncoderTrainer):
    """``CrossEncoderTrainer`` with what :class:`GuardedTrainer` adds.

    On a CPU, a loss that is a mean over pairs is computed on groups of pairs of similar length, so that little is
    computed on padding: the same loss and gradient up to rounding.
    """

    default_arguments = RankingTrainingArguments

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        groups = self._groups_of_pairs(inputs)
        if len(groups) < 2:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        row_count = sum(map(len, groups))
        weighted_means: list[Tensor] = []
        for group in groups:
            mean: Any = super().compute_loss(model, _take_rows(inputs, group))
            weighted_means.append(len(group) / row_count * mean)
        loss = torch.stack(weighted_means).sum()
        return (loss, {}) if return_outputs else loss

    def _groups_of_pairs(self, inputs: Mapping[str, Any]) -> list[Tensor]:
        """Return the rows of each group; none where the loss cannot be divided, or a wrapped model would see groups."""
        reads_pairs = isinstance(self.loss, (st_losses.BinaryCrossEntropyLoss, st_losses.MSELoss))
        if not reads_pairs or self.model_wrapped is not self.model:
            return []
        model: Any = self.model
        # ST's losses read the first two columns, whatever their names.
        queries, passages, *_ = [values for name, values in inputs.items() if name not in _NO_TEXTS]
        if not all(isinstance(text, str) for text in (*queries, *passages)):
            return []
        lengths = model.preprocess(list(zip(queries, passages)))["attention_mask"].sum(dim=1)
        return row_groups(lengths.to(model.device), model[0].get_embedding_dimension())


def _take_rows(inputs: Mapping[str, Any], rows: Tensor) -> dict[str, Any]:
    """Return these rows of a batch of texts and labels."""
    row_numbers = rows.tolist()
    selected: dict[str, Any] = {}
    for name, values in inputs.items():
        if isinstance(values, Tensor):
            selected[name] = values[rows]
        elif isinstance(values, list):
            selected[name] = [values[number] for number in row_numbers]
        else:
            selected[name] = values
    return selected


@trains_by_recipe
def train_cross_encoder(
    recipe: CrossEncoderRecipe,
    stages: Sequence[Dataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer | CrossEncoder,
    tiny: Mapping[str, Any] | None = None,
    evaluator: Evaluators | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    command: str | None = None,
    provenance: Sequence[Mapping[str, Any]] = (),
    load_options: Mapping[str, Any] | None = None,
    calibration: Dataset | None = None,
) -> TrainingResult:
    """Train a cross-encoder and save it.

    Args:
        recipe: Loss and options, from :func:`load_cross_encoder_recipe`.
        stages: Labeled pairs of each stage, as a strategy gives them.
        out: Folder of the run, see :mod:`st_xling.training.reranker`.
        model: An encoder or a cross-encoder, see :func:`cross_encoder`: Hub id, folder, a loaded model, or ``"tiny"``:
            a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Evaluates the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Resume from the last complete checkpoint in ``out``, in the stage that was interrupted.
        overwrite: Replace an earlier run in ``out``.
        callbacks: transformers' callbacks, called while training.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
        load_options: ``revision`` and ``trust_remote_code`` of
            :func:`~st_xling.models.load.load_sentence_transformer`, for a model that is loaded.
        calibration: Held-out labeled pairs, on which a filter's scores become probabilities and its threshold is
            chosen, see :func:`~st_xling.models.pair_filter.calibrate_filter`.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; several processes;
            shared text, if it is to fail; pairs that the trained model cannot be calibrated on.
        TrainingInterrupted: Ctrl-C.
    """
    if not stages:
        raise ValueError("training needs at least one data set: got none.")
    if len(stages) == 1:
        names = [recipe.name]
    else:
        names = [f"{recipe.name} {number}/{len(stages)}" for number in range(1, len(stages) + 1)]
    run = Run(
        recipe=recipe,
        out=out,
        model=model,
        stages=len(stages),
        tiny=tiny,
        evaluator=evaluator,
        evaluation=evaluation,
        on_leak=on_leak,
        resume=resume,
        overwrite=overwrite,
        command=command,
        provenance=provenance,
        load_options=load_options,
    )
    for pairs in stages:
        _check_labels(pairs)
    with run.opened("cross-encoders"):
        stage_pairs = _check_leaks(run, dict(zip(names, stages)))
        text_columns = [name for name in PAIR_COLUMNS if name != "label"]
        labels = {name: fingerprint(pairs, ["label"]) for name, pairs in stage_pairs.items()}
        checkpoint = run.claim({"data": describe(stage_pairs, text_columns), "labels": labels})
        if checkpoint is None:
            start = _start_model(run, recipe, stage_pairs)
        else:
            start = _load_stage(recipe, checkpoint)
        prepared = {name: prepare_stage(name, pairs, recipe.loss, start) for name, pairs in stage_pairs.items()}
        if isinstance(evaluator, PairClassificationEvaluator):
            evaluator.drop_long_queries(start)  # or an error, before anything is trained

        def train() -> TrainingResult:
            result = _train_stages(run, recipe, prepared, start, callbacks, checkpoint)
            return result if calibration is None else _calibrated(result, calibration)

        return run.fit(train)


class PairClassificationEvaluator(CrossEncoderClassificationEvaluator):
    """ST's evaluator of labeled pairs, without those whose query leaves no room for a passage.

    Queries are never cut, so that such a pair has no score: the tokenizer raises an error for it. Pairs that are left
    out stay so.
    """

    _checked_limit: int | None = None

    def __call__(  # type: ignore[override]  # ST's own evaluators narrow the model, too
        self, model: CrossEncoder, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        self.drop_long_queries(model)
        return super().__call__(model, output_path=output_path, epoch=epoch, steps=steps)

    def drop_long_queries(self, model: CrossEncoder) -> None:
        """Leave out the pairs that a model cannot score, with a warning.

        Raises:
            ValueError: None of a label is left.
        """
        limit = model.max_seq_length
        if limit is None or limit == self._checked_limit:
            return
        queries, passages = zip(*self.sentence_pairs)
        sizes, _ = pair_sizes(model.tokenizer, queries, passages)
        fitting = np.flatnonzero(sizes < limit)
        if set(self.labels[fitting]) != set(self.labels):
            raise ValueError(
                f"a query is never cut, and those of all development pairs of a label leave no room for a passage in "
                f"{limit} tokens: the shortest of all takes {int(sizes.min())} with its special tokens; raise "
                "model.max_length."
            )
        self._checked_limit = limit
        if dropped := len(sizes) - len(fitting):
            logger.warning(
                f"{dropped:,} of {len(sizes):,} development pairs are left out: their queries, which are never cut, "
                f"leave no room for a passage in {limit} tokens. Raise model.max_length to keep them."
            )
            self.sentence_pairs = [self.sentence_pairs[row] for row in fitting]
            self.labels = self.labels[fitting]


def pair_classification(pairs: Dataset) -> BaseEvaluator:
    """Return an evaluator of a filter on labeled pairs, by average precision."""
    texts = [list(pair) for pair in zip(pairs["query"][:], pairs["passage"][:])]
    labels = [int(label) for label in pairs["label"][:]]
    return PairClassificationEvaluator(texts, labels, name="dev", show_progress_bar=False, write_csv=False)


def _calibrated(result: TrainingResult, pairs: Dataset) -> TrainingResult:
    """Return the result with its model calibrated on held-out pairs."""
    texts = list(zip(pairs["query"][:], pairs["passage"][:]))
    pair_filter = calibrate_filter(result.model, texts, np.asarray(pairs["label"][:]) > 0)
    return dataclasses.replace(result, pair_filter=pair_filter)


def _check_labels(pairs: Dataset) -> None:
    """Raise ``ValueError`` for other labels than 0 and 1, or fewer than two pairs."""
    labels = pairs.unique("label")
    if not set(labels) <= {0, 1}:
        raise ValueError(f"a label is 1 (relevant) or 0 (not): got {', '.join(map(str, labels[:5]))}.")
    if len(pairs) < 2:
        raise ValueError(f"training needs at least 2 labeled pairs: got {len(pairs)}; check the reader's report.")


def _check_leaks(run: Run, stage_pairs: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Compare the pairs with what evaluates the run, and return those to train on."""
    # Leaks are looked for in columns called source and target.
    as_parallel = {
        name: pairs.rename_columns({"query": "source", "passage": "target"}) for name, pairs in stage_pairs.items()
    }
    remaining = run.check_leaks(as_parallel)
    return {name: pairs.rename_columns({"source": "query", "target": "passage"}) for name, pairs in remaining.items()}


def _start_model(run: Run, recipe: CrossEncoderRecipe, data: Mapping[str, Dataset]) -> CrossEncoder:
    """Load the model to start from; a tiny one has the vocabulary of the text of all stages."""
    seed = recipe.arguments.seed
    max_length = recipe.model.max_length
    start: Any = run.model
    if start == "static":
        raise ValueError(
            "a cross-encoder reads two texts at once: got the model 'static', which has no layers; take 'tiny'."
        )
    if start != "tiny":
        model = cross_encoder(start, head=recipe.head, max_length=max_length, seed=seed, **(run.load_options or {}))
        model = mark_loaded(model)
    elif recipe.head == "keep":
        raise ValueError("the model 'tiny' has no head to keep: got head 'keep'; take 'cls' or 'pooler'.")
    else:
        texts = itertools.chain.from_iterable(column_texts(pairs, "query", "passage") for pairs in data.values())
        # Options of the user come before those of the recipe.
        options: dict[str, Any] = {"seed": seed, "max_length": max_length or 128, **(run.tiny or {})}
        model = tiny_cross_encoder(texts, head=recipe.head, **options)
    run.announce(model)
    return model


def _load_stage(recipe: CrossEncoderRecipe, checkpoint: Path) -> CrossEncoder:
    """Load a checkpoint, the model below one of adapters, or the model that a stage ended with."""
    if recipe.arguments.lora is not None and checkpoint.name != "model":
        checkpoint = checkpoint.parent / BASE
    return load_sentence_transformer(CrossEncoder, str(checkpoint))


def prepare_stage(name: str, pairs: Dataset, loss: RankingLoss, model: CrossEncoder) -> tuple[Dataset, dict[str, int]]:
    """Make the rows that the loss reads, and log what is cut or skipped.

    A pair whose query leaves no room for a token of the passage is skipped; of a longer one the passage is cut.

    Returns:
        The rows; and the numbers of pairs that are trained on, cut and skipped.

    Raises:
        ValueError: Nothing that can be trained on; a loss that does not fit the model.
    """
    max_length = model.max_seq_length
    limit = sys.maxsize if max_length is None else max_length
    check_texts(model, list(dict.fromkeys(column_texts(pairs, "query", "passage"))))
    queries, passages = pair_sizes(model.tokenizer, pairs["query"][:], pairs["passage"][:])
    fits = queries < limit
    if not fits.any():
        raise ValueError(
            f"a query is never cut, and none leaves room for a passage in {max_length} tokens: the shortest takes "
            f"{int(queries.min(initial=0))} with its special tokens; raise model.max_length."
        )
    lengths = (queries + passages)[fits]
    cut = int((lengths > limit).sum())
    skipped = int((~fits).sum())
    if skipped:
        pairs = pairs.select(np.flatnonzero(fits))
    rows, unusable = loss_rows(pairs, loss)
    loss.build(model)  # or an error, before any stage is trained
    log_truncation(
        cut,
        len(lengths),
        int(lengths.max()),
        max_length=max_length,
        what=f"pairs of {name}",
        effect="and their passages are cut",
    )
    if skipped:
        logger.warning(
            f"{name}: {skipped:,} pairs are skipped: their queries, which are never cut, leave no room for a passage "
            f"in {max_length} tokens. Raise model.max_length to keep them."
        )
    if unusable:
        logger.warning(
            f"{name}: {unusable:,} queries are skipped: {loss.name} needs a relevant passage and another one of each."
        )
    return rows, {"pairs": len(lengths), "pairs_cut": cut, "pairs_skipped": skipped}


def loss_rows(pairs: Dataset, loss: RankingLoss) -> tuple[Dataset, int]:
    """Return the rows that a loss reads, and how many queries were skipped, whose passages all have the same label.

    Args:
        pairs: Labeled pairs; rows of the same query text and language belong together.
        loss: One that reads queries with their passages skips queries; one that reads pairs none.

    Raises:
        ValueError: No query that can be ranked.
    """
    if loss.name in ("binary_cross_entropy", "mse"):
        return pairs.select_columns(["query", "passage", "label"]), 0
    # Passages of each query and language, relevant ones and others, in the order in which they first come.
    entries: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for row in pairs.select_columns(list(PAIR_COLUMNS)):
        relevant, others = entries.setdefault((row["query"], row["query_language"]), ({}, {}))
        if row["label"]:
            relevant[row["passage"]] = None
        else:
            others[row["passage"]] = None
    usable = [(query, relevant, others) for (query, _), (relevant, others) in entries.items() if relevant and others]
    if not usable:
        raise ValueError(
            f"a loss that compares passages needs a query with a relevant and another one: got {len(entries):,} "
            "queries with one kind alone; draw negatives, or take binary_cross_entropy."
        )
    columns = {  # ListMLE reads the order of the passages as their rank
        "query": [query for query, _, _ in usable],
        "passages": [[*relevant, *others] for _, relevant, others in usable],
        "labels": [[1.0] * len(relevant) + [0.0] * len(others) for _, relevant, others in usable],
    }
    return Dataset.from_dict(columns), len(entries) - len(usable)


def _train_stages(
    run: Run,
    recipe: CrossEncoderRecipe,
    stages: Mapping[str, tuple[Dataset, dict[str, int]]],
    model: CrossEncoder,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> TrainingResult:
    """Train the stages that are not finished yet.

    Args:
        run: The run.
        recipe: Loss and options.
        stages: Name → result of :func:`prepare_stage`.
        model: The model that the first of them starts from, or the one of ``checkpoint``.
        callbacks: transformers' callbacks.
        checkpoint: A checkpoint of the first unfinished stage, or the model of the stage before it.
    """
    folder = run.folder
    first = folder.finished_stages() if checkpoint is not None else 0
    reports = [read_json_object(folder.stage(number) / "report.json", missing_ok=False) for number in range(first)]
    # max_steps is of the whole recipe, so that strategies of one and of several stages cost the same.
    total = recipe.arguments.max_steps
    count = len(stages)
    if 0 < total < count:
        raise ValueError(f"arguments.max_steps is shared by {count} stages: got {total}; give one step to each.")
    last = count - 1
    bounds = [round(total * number / count) for number in range(count + 1)]
    for number, (name, (rows, counts)) in enumerate(stages.items()):
        if number < first:
            continue
        stage_folder = folder.stage(number)
        max_steps = bounds[number + 1] - bounds[number] if total > 0 else total
        lora = recipe.arguments.lora
        if lora is not None and number < last:  # adapters are kept apart only at the end
            lora = dataclasses.replace(lora, merge=True)
        arguments = replaced(recipe.arguments, output_dir=str(stage_folder), max_steps=max_steps, lora=lora)
        model.model_card_data.base_model = str(stage_folder / BASE) if number else run.base_model
        trainer = RankingTrainer(
            model=model,
            args=arguments,
            train_dataset=rows,
            loss=recipe.loss.build(model),
            evaluator=run.evaluator,
            callbacks=callbacks,
        )
        # The model of the stage before is no checkpoint to resume from.
        is_of_stage = checkpoint is not None and checkpoint.parent == stage_folder
        stage_checkpoint = checkpoint if is_of_stage else None
        result = fit_trainer(trainer, folder, stage_checkpoint, name=name)
        model = result.model
        report = {"name": name, **counts, **result.figures(), "history": result.history}
        reports.append(report)
        if number < last:  # without room for it, the stage's last checkpoint remains
            write_json(stage_folder / "report.json", report)
            save_folder(model, stage_folder / "model")
    model.model_card_data.base_model = run.base_model
    return _join_reports(reports, run, model)


def _join_reports(reports: Sequence[Mapping[str, Any]], run: Run, model: CrossEncoder) -> TrainingResult:
    """Return the result of a run from the reports of its stages."""
    stages: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    for report in reports:
        stages.append({key: value for key, value in report.items() if key != "history"})
        history += [{**entry, "stage": report["name"]} for entry in report["history"]]
    best = reports[-1]["best_dev"]
    return TrainingResult(
        model=model,
        folder=run.folder.path,
        seconds=sum(report["seconds"] for report in reports),
        steps=sum(report["steps"] for report in reports),
        stages=stages,
        history=history,
        best=best,
        development=development_score(best, run.evaluator),
    )
