"""Encoders: parallel text and a recipe's losses → a sentence-transformers model. What ``st-xling train`` calls."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, IterableDataset, concatenate_datasets
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import TrainerCallback

from st_xling.data.columns import negative_columns
from st_xling.data.leak import Texts
from st_xling.data.read import labeled_pairs
from st_xling.data.sides import orient
from st_xling.data.text_columns import MONO, column_texts
from st_xling.losses import CombinedLoss, CrossLingualLoss, Term
from st_xling.losses.base import as_loss
from st_xling.models import VocabularyHead
from st_xling.models.load import NO_LENGTH, length_for_pairs
from st_xling.models.lora import check_start
from st_xling.models.token_rows import check_texts
from st_xling.training.arguments import replaced
from st_xling.training.mixture import (
    Mixture,
    add_mono,
    describe,
    log_truncation,
    mine_negatives,
    prepare,
    report_texts,
)
from st_xling.training.recipe import LossRecipe, Recipe, load_recipe, objective, reads_negatives, trains_by_recipe
from st_xling.training.run import OnLeak, Run, TrainingResult, fit_trainer, set_prompts
from st_xling.training.run_folder import NEGATIVES
from st_xling.training.sentence_vectors import CachedVectors
from st_xling.training.teacher import teacher_vectors, vectors_for
from st_xling.training.trainer import CrossLingualDataCollator, CrossLingualTrainer
from st_xling.utils import distributed
from st_xling.utils.io import atomic_path

logger = logging.getLogger(__name__)


@trains_by_recipe
def train(
    recipe: Recipe | str,
    data: Dataset | Mapping[str, Dataset | IterableDataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer,
    tiny: Mapping[str, Any] | None = None,
    mono: Mapping[str, Dataset] | None = None,
    teacher: SentenceTransformer | None = None,
    cache: str | Path | None = None,
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    begin: Callable[[SentenceTransformer, Path], None] | None = None,
    command: str | None = None,
    provenance: Sequence[Mapping[str, Any]] = (),
    load_options: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train a cross-lingual encoder by a recipe and save it; in each of several processes, they train one together.

    Args:
        recipe: Objectives and options, from :func:`load_recipe`; or what that takes.
        data: A data set, or name → data set; all are mixed. Columns ``source``, ``target``, ``source_language``,
            ``target_language``; else as :func:`~st_xling.data.read.labeled_pairs` finds them.
            If one is an ``IterableDataset``, all are streamed, and the recipe must say ``max_steps``: vocabulary,
            truncation report and leak check then see the first rows alone.
        out: Folder of the run (see :class:`~st_xling.training.run_folder.RunFolder`).
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        mono: Name → text of one language, line by line, which the recipe's masked language modeling then reads instead
            of the sentences of ``data``; see :func:`add_mono`. It is not looked through for leaks.
        teacher: A loaded model, in place of the recipe's ``data.teacher.model``.
        cache: Folder of the vectors of the teacher, which stay there for other runs; ``None``: a folder of that model's
            own, next to downloaded ones.
        evaluator: Evaluates the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Resume from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        callbacks: transformers' callbacks, called while training.
        begin: Called with the model before its first step, and the folder ``training`` of the run; not if it is
            resumed from a checkpoint, and by the main process alone.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
        load_options: ``revision`` and ``trust_remote_code`` of
            :func:`~st_xling.models.load.load_sentence_transformer`, for a model that is loaded.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> from st_xling.training import load_recipe
        >>> recipe = load_recipe("tr", tiny=True, overrides={"arguments.max_steps": 1})
        >>> small = {"vocabulary": 200, "hidden_size": 16}
        >>> data = {"de-en": parallel_phrases("de", "en", size=20)}
        >>> train(recipe, data, "my-encoder", model="tiny", tiny=small).steps
        1
    """
    if isinstance(recipe, str):
        recipe = load_recipe(recipe, tiny=isinstance(model, str) and model == "tiny")
    recipe = _reading_mono(recipe) if mono else recipe
    if teacher is not None and not recipe.taught:
        raise ValueError(f"nothing in {recipe.name} learns from a teacher: got one; take the recipe distill.")
    if recipe.data.hard_negatives.count and mono:
        raise ValueError("mined negatives stand in the columns of monolingual text: take one of the two.")
    run = Run(
        recipe=recipe,
        out=out,
        model=model,
        inputs=[recipe.data.teacher.model],
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
    with run.opened():
        prepared = distributed.run_on_all(lambda: _prepare(run, recipe, labeled_pairs(data), mono or {}))
        described = {"mono": describe(mono)} if mono else {}
        vectors, taught = teacher_vectors(
            recipe, teacher, cache, prepared.mixture.pairs, check=run.folder.check_teacher
        )
        checkpoint = run.claim(
            {"data": prepared.mixture.manifest, **described, **taught},
            recipe=prepared.recipe,
            sources=prepared.sources,
            longer=True,
        )
        trainer = distributed.run_on_all(lambda: _build(run, prepared, vectors, callbacks, checkpoint))
        return run.fit(lambda: _fit(run, recipe, trainer, checkpoint, begin))


def _reading_mono(recipe: Recipe) -> Recipe:
    """The recipe whose MLM term reads the columns that :func:`add_mono` adds, and no other term does."""
    if "mlm" not in recipe.losses:
        raise ValueError(
            f"monolingual text is for masked language modeling: {recipe.name} has {', '.join(recipe.losses)}; take a "
            "recipe with the loss mlm, such as amber."
        )
    losses = {name: {"columns": [0, 1], **options} for name, options in recipe.losses.items()}
    losses["mlm"] |= {"columns": [2, 3], "contiguous": True}
    return dataclasses.replace(recipe, losses=losses)


@dataclass(frozen=True)
class _Prepared:
    """What a run trains on.

    Attributes:
        mixture: The training data.
        recipe: The recipe, whose losses know which columns they read.
        sources: Where the text came from; a data set that was turned has its languages in their new order.
    """

    mixture: Mixture
    recipe: Recipe
    sources: list[dict[str, Any]]


def _prepare(
    run: Run, recipe: Recipe, data: Mapping[str, Dataset | IterableDataset], mono: Mapping[str, Dataset]
) -> _Prepared:
    """Mix the data, without what evaluates the run if that shall be dropped, and tell the losses their columns."""
    arguments = recipe.arguments
    oriented, messages = orient(data, pivot=recipe.data.pivot)
    new_names = dict(zip(data, oriented))
    sources = [dict(entry) for entry in run.provenance]
    for entry in sources:
        if entry["option"] == "data":
            entry["names"] = [new_names.get(name, name) for name in entry["names"]]
    if {"representation_translation", "translation_ranking"} & recipe.losses.keys():  # others: no direction
        for line in messages:
            logger.info("%s", line)

    mines = recipe.data.hard_negatives.count > 0
    # Monolingual text takes the columns that negatives would have.
    reads_given_negatives = not mono and not mines and bool(reads_negatives(recipe.losses))

    def mixed(parts: Mapping[str, Dataset | IterableDataset]) -> Mixture:
        return prepare(
            parts,
            arguments,
            shuffle_buffer=recipe.data.shuffle_buffer,
            processes=distributed.process_count(),
            negatives=reads_given_negatives,
        )

    mixture = mixed(oriented)
    if mixture.streamed and (mines or recipe.taught or run.on_leak != "report"):
        raise ValueError(
            "a teacher, the search for negatives and dropping leaks read all text before training: got a stream; read "
            "it whole."
        )
    seen = " (first rows)" if mixture.streamed else ""  # so that results and signature say so
    parts_left = run.check_leaks({name + seen: part for name, part in mixture.parts.items()})
    if run.leak is not None and run.leak.dropped:
        mixture = mixed(parts_left)
    if mines:
        recipe = _reading_negatives(recipe, {"translation_ranking"})
        recipe.losses["translation_ranking"]["hard_negatives"] = True
    elif negative_columns(mixture.looked_at.column_names):
        recipe = _reading_negatives(recipe, set() if mono else reads_negatives(recipe.losses))
    if mono:
        mixture = add_mono(mixture, mono, seed=arguments.seed)
    return _Prepared(mixture, recipe, sources)


def _reading_negatives(recipe: Recipe, readers: set[str]) -> Recipe:
    """The recipe in which ``readers`` read the columns of hard negatives, and the other losses the pair alone."""
    losses = {}
    for name, options in recipe.losses.items():
        losses[name] = dict(options) if name in readers else {"columns": [0, 1], **options}
    return dataclasses.replace(recipe, losses=losses)


def _build(
    run: Run,
    prepared: _Prepared,
    vectors: CachedVectors | None,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> CrossLingualTrainer:
    """Build model, losses and the trainer."""
    mixture = prepared.mixture
    recipe = prepared.recipe
    arguments = recipe.arguments
    if checkpoint is not None:
        encoder = run.load_checkpoint(checkpoint if arguments.lora is None else run.folder.base)
    else:
        encoder = run.load_start(
            lambda: column_texts(mixture.looked_at, "source", "target"),
            seed=arguments.seed,
            pooling=recipe.model.pooling,
            max_length=recipe.model.max_length,
            bare=recipe.bare,
        )
        check_start(encoder, arguments.lora, given=not isinstance(run.model, str))
    mixture.log(arguments.batches)
    prompts = set_prompts(encoder, {side: side for side in ("source", "target")}, arguments)
    looked_at = mixture.looked_at
    max_length = None if recipe.model.max_length else length_for_pairs(encoder)
    if max_length is not None:
        of_model: Any = encoder.max_seq_length
        reads = f"{of_model:,}" if of_model < NO_LENGTH else "any number"
        logger.info(
            f"training reads at most {max_length} tokens of a text, the saved model {reads} as before; to set both: "
            "--max-length"
        )
    texts = [
        report_texts(encoder, looked_at, side, prompts.get(side, ""), max_length=max_length)
        for side in ("source", "target")
    ]
    pairs = mixture.pairs
    # Texts next to the pairs: hard negatives of the data, and monolingual text.
    columns = pairs.column_names or []
    others = [name for name in columns if name in (*MONO, *negative_columns(columns))]
    if others and not mixture.streamed:
        check_texts(encoder, list(dict.fromkeys(column_texts(pairs, *others))))
    if recipe.data.hard_negatives.count:
        pairs = _with_negatives(run, recipe, pairs, encoder, prompts, checkpoint)
    if "target" in prompts:  # without it a negative would be known by its beginning
        prompts |= dict.fromkeys(negative_columns(pairs.column_names or []), prompts["target"])
    log_truncation(
        sum(side.truncated for side in texts),
        sum(side.texts for side in texts),
        max(side.longest for side in texts),
        max_length=max_length or encoder.max_seq_length,
    )
    labels = None if vectors is None else vectors_for(encoder, vectors, recipe)
    languages = [looked_at.unique(f"{side}_language") for side in ("source", "target")]
    loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in texts], languages=languages)
    if checkpoint is None and run.model != "tiny":  # a resumed run has the checkpoint's heads
        heads = [part for part in loss.modules() if isinstance(part, VocabularyHead)]
        for head in {head.origin: head for head in heads}.values():
            level = logging.DEBUG if head.is_new else logging.INFO  # a new one has been named when it was made
            logger.log(level, "vocabulary head: %s", head.origin)
    if run.model == "tiny" and arguments.warm_up_heads is None:  # random weights have nothing to lose
        arguments = replaced(arguments, warm_up_heads=0)
    arguments = replaced(arguments, output_dir=str(run.folder.training), prompts=prompts or None, prompt_name=None)
    return CrossLingualTrainer(
        model=encoder,
        args=arguments,
        train_dataset=pairs,
        loss=loss,
        evaluator=run.evaluator,
        data_collator=CrossLingualDataCollator(
            preprocess_fn=encoder.preprocess, prompts=arguments.prompts, max_length=max_length, teacher=labels
        ),
        callbacks=callbacks,
    )


def _with_negatives(
    run: Run,
    recipe: Recipe,
    pairs: Any,
    encoder: SentenceTransformer,
    prompts: dict[str, str],
    checkpoint: Path | None,
) -> Dataset:
    """Add hard negatives to the pairs: mined by ``encoder``, or those that the run was started with."""
    count = recipe.data.hard_negatives.count
    seed = recipe.arguments.seed
    if checkpoint is None:
        mined = distributed.run_on_main(lambda: mine_negatives(pairs, encoder, count, prompts=prompts, seed=seed))
        negatives = Dataset.from_dict(mined)
    else:
        path = run.folder.training / NEGATIVES
        written = run.folder.read_manifest().get("mined_negatives")  # earlier versions did not record it
        if not path.is_file() or written not in (None, _sha256(path)):
            raise ValueError(
                f"{path} is not as it was written: --resume needs the negatives that the run was started with. Restore "
                "it, or start again with --overwrite."
            )
        negatives = Dataset.from_parquet(str(path))
    return concatenate_datasets([pairs, negatives], axis=1)


def _write_negatives(run: Run, pairs: Any) -> None:
    with atomic_path(run.folder.training / NEGATIVES) as temporary:
        pairs.select_columns(negative_columns(pairs.column_names)).to_parquet(str(temporary))
    run.folder.update(mined_negatives=_sha256(run.folder.training / NEGATIVES))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _fit(
    run: Run,
    recipe: Recipe,
    trainer: CrossLingualTrainer,
    checkpoint: Path | None,
    begin: Callable[[SentenceTransformer, Path], None] | None,
) -> TrainingResult:
    folder = run.folder
    if checkpoint is None:
        if recipe.data.hard_negatives.count:
            distributed.run_on_main(lambda: _write_negatives(run, trainer.train_dataset))
        if begin is not None:
            distributed.run_on_main(lambda: begin(trainer.model, folder.training))
        if steps := trainer.warm_up_heads():
            distributed.run_on_main(lambda: folder.update(warm_up_heads=steps))
    return fit_trainer(trainer, folder, checkpoint, name=recipe.name)


def build_loss(
    recipe: LossRecipe, model: nn.Module, *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]] = ()
) -> CombinedLoss:
    """The weighted sum that a recipe describes.

    Args:
        recipe: What to train with.
        model: The ``SentenceTransformer`` to train.
        token_ids: Token ids that each text column uses: the meaning of ``target_vocabulary: auto``.
        languages: Languages of each text column, for losses that tell languages apart.

    Raises:
        ValueError: Options that the loss refuses.
    """

    def term(name: str, section: Mapping[str, Any]) -> Term:
        known = objective(name)
        options: dict[str, Any] = {**known.preset, **section}
        weight, columns = options.pop("weight", 1.0), options.pop("columns", None)
        try:
            if issubclass(known.loss, CrossLingualLoss):  # ours
                options = known.loss.resolve_options(options, token_ids=token_ids, languages=languages)
            elif "loss" in options:
                options["loss"] = total(options["loss"])
            with torch.random.fork_rng():  # new heads are drawn
                torch.manual_seed(recipe.arguments.seed)
                loss = known.loss(model, **options)
        except TypeError as error:
            raise ValueError(f"losses.{name} has an option of the wrong type: {error}") from error
        except ValueError as error:
            raise ValueError(f"losses.{name}: {error}") from error
        return Term(as_loss(loss), weight, None if columns is None else tuple(columns), name=name)

    def total(losses: Mapping[str, Mapping[str, Any]]) -> CombinedLoss:
        return CombinedLoss(model, [term(name, section) for name, section in losses.items()])

    return total(recipe.losses)
