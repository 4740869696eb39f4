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
from datasets import Dataset, IterableDataset
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import TrainerCallback

from st_xling.data.columns import negative_columns
from st_xling.data.leak import Texts
from st_xling.data.pairs import append_columns
from st_xling.data.read import labeled_pairs
from st_xling.data.sides import orient
from st_xling.data.spec import unique_name
from st_xling.data.text_cells import MONO, column_texts, text_columns
from st_xling.losses import CombinedLoss, CrossLingualLoss, Term, make
from st_xling.losses.base import as_loss
from st_xling.models import VocabularyHead
from st_xling.models.backbones import normalizes
from st_xling.models.load import length_for_pairs
from st_xling.models.lora import check_start
from st_xling.models.token_rows import check_texts
from st_xling.training.arguments import replaced
from st_xling.training.hard_negatives import add_hard_negatives
from st_xling.training.mixture import Mixture, TextReport, add_mono, describe, log_truncation, prepare, report_texts
from st_xling.training.recipe import LossRecipe, Recipe, load_recipe, objective, reads_negatives, trains_by_recipe
from st_xling.training.replay import KeptTexts, add_replay, describe_replay, kept_text_columns, texts_by_prompt
from st_xling.training.run import Evaluators, OnLeak, Run, TrainingResult, fit_trainer, set_prompts
from st_xling.training.run_folder import NEGATIVES
from st_xling.training.swap_negatives import add_swap_negatives
from st_xling.training.teacher import TeacherVectors, encode_by_teacher, load_teacher
from st_xling.training.trainer import CrossLingualTrainer
from st_xling.utils import distributed
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.io import atomic_path
from st_xling.utils.languages import canonical_language

logger = logging.getLogger(__name__)


@trains_by_recipe
def train(
    recipe: Recipe | str,
    data: Dataset | Mapping[str, Dataset | IterableDataset],
    out: str | Path,
    *,
    model: str | SentenceTransformer | None = None,
    tiny: Mapping[str, Any] | None = None,
    static: Mapping[str, Any] | None = None,
    mono: Mapping[str, Dataset] | None = None,
    keep_like: KeptTexts | Sequence[str] = (),
    teacher: SentenceTransformer | None = None,
    cache: str | Path | None = None,
    evaluator: Evaluators | None = None,
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
            truncation report and leak check then see only the first rows.
        out: Folder of the run (see :class:`~st_xling.training.run_folder.RunFolder`).
        model: Hub id, folder, a loaded model, or ``"tiny"`` or ``"static"``: a small model built from the data;
            ``None``: the one that the recipe starts from.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        static: Options of :func:`~st_xling.models.static_encoder`, for ``model="static"``.
        mono: Name → text of one language, line by line, which the recipe's masked language modeling then reads instead
            of the sentences of ``data``; see :func:`add_mono`. It is not looked through for leaks.
        keep_like: Texts on which the model shall stay as it was, such as queries and sentences of languages that
            ``data`` lack, or name of a prompt of the model → texts; see :func:`~st_xling.training.add_replay`. The
            recipe's ``data.replay`` says how many go with a pair, and their weight. Text of the evaluation data is
            looked for in them, too.
        teacher: A loaded model, in place of the recipe's ``data.teacher.model``.
        cache: Folder of the vectors of the teacher, and of the start for ``keep_like``, which stay there for other
            runs; ``None``: a folder next to downloaded models.
        evaluator: Evaluates the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Resume from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        callbacks: transformers' callbacks, called while training.
        begin: Called with the model before its first step, and the folder ``training`` of the run; not if it is
            resumed from a checkpoint, and only by the main process.
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
        is_built = isinstance(model, str) and model in BUILT_MODELS
        recipe = load_recipe(recipe, tiny=is_built)
    if model is None:
        model = recipe.start
    if model is None:
        raise ValueError(f"the recipe {recipe.name} needs a model to start from: got none; pass one, such as 'tiny'.")
    if mono:
        recipe = _reading_mono(recipe)
    if teacher is not None and not recipe.taught:
        raise ValueError(f"nothing in {recipe.name} learns from a teacher: got one; take the recipe distill.")
    if keep_like:
        _check_replay(recipe, model)
    if (recipe.data.hard_negatives.num_negatives or recipe.data.hard_swaps) and mono:
        raise ValueError("hard negatives stand in the columns of monolingual text: take one of the two.")
    run = Run(
        recipe=recipe,
        out=out,
        model=model,
        inputs=[recipe.data.teacher.model],
        tiny=tiny,
        static=static,
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
        prepared = distributed.run_on_all(lambda: _prepare(run, recipe, labeled_pairs(data), mono or {}, keep_like))
        described: dict[str, Any] = {"data": prepared.mixture.manifest}
        if mono:
            described["mono"] = describe(mono)
        if keep_like:
            described["replay"] = describe_replay(prepared.kept_texts, recipe.data.replay)
        vectors = _encode_by_teacher(run, recipe, teacher, cache, prepared.mixture.pairs)
        if vectors is not None:
            described["teacher"] = dict(vectors.description)
        checkpoint = run.claim(described, recipe=prepared.recipe, sources=prepared.sources, longer=True)
        start = distributed.run_on_all(lambda: _load_start(run, prepared, checkpoint))
        pairs = _add_columns(run, prepared, start, vectors, checkpoint)
        if keep_like:
            pairs = _add_replay(run, prepared, start, pairs, cache, checkpoint)
        trainer = distributed.run_on_all(lambda: _build_trainer(run, prepared, start, pairs, callbacks, checkpoint))
        return run.fit(lambda: _fit(run, recipe, trainer, checkpoint, begin))


def _check_replay(recipe: Recipe, model: str | SentenceTransformer) -> None:
    """Raise ``ValueError`` for a run in which there is nothing to keep, or whose labels are others."""
    if isinstance(model, str) and model in BUILT_MODELS:
        raise ValueError(
            f"keep_like (--keep-like) is text on which a trained model stays as it was: got the model {model!r}, of "
            "random weights; start from another, or leave it out."
        )
    if recipe.taught:
        raise ValueError(
            f"{recipe.name} learns a teacher's vectors, and keep_like (--keep-like) the start's: take one of the two."
        )


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
    """Data and recipe of a run, prepared for training.

    Attributes:
        mixture: The training data.
        recipe: The recipe, whose losses know which columns they read.
        sources: Where the text came from; a data set that was turned has its languages in their new order.
        text_count: Number of columns of text, before those of replay.
        kept_texts: Name of a prompt, or ``""`` → texts on which the model shall stay as it was.
    """

    mixture: Mixture
    recipe: Recipe
    sources: list[dict[str, Any]]
    text_count: int
    kept_texts: dict[str, list[str]]


def _prepare(
    run: Run,
    recipe: Recipe,
    data: Mapping[str, Dataset | IterableDataset],
    mono: Mapping[str, Dataset],
    keep_like: KeptTexts | Sequence[str],
) -> _Prepared:
    """Mix the data, without what evaluates the run if that shall be dropped, and tell the losses their columns."""
    arguments = recipe.arguments
    oriented, messages = orient(data, pivot=recipe.data.pivot)
    sources = _renamed_sources(run.provenance, dict(zip(data, oriented)))
    if {"representation_translation", "translation_ranking"} & recipe.losses.keys():  # others: no direction
        for line in messages:
            logger.info("%s", line)

    mines = recipe.data.hard_negatives.num_negatives > 0
    swaps = recipe.data.hard_swaps
    if swaps:
        oriented = _with_swaps(oriented, swaps, seed=arguments.seed)
    # Monolingual text takes the columns that negatives would have.
    reads_given_negatives = bool(swaps) or (not mono and not mines and bool(reads_negatives(recipe.losses)))

    def mix(datasets: Mapping[str, Dataset | IterableDataset]) -> Mixture:
        return prepare(
            datasets,
            arguments,
            shuffle_buffer=recipe.data.shuffle_buffer,
            processes=distributed.process_count(),
            negatives=reads_given_negatives,
        )

    mixture = mix(oriented)
    if mixture.streamed and (mines or keep_like or recipe.taught or run.on_leak != "report"):
        raise ValueError(
            "a teacher, replay, the search for negatives and dropping leaks read all text before training: got a "
            "stream; read it whole."
        )
    # Results and signature say so if only the start of a stream was compared.
    suffix = " (first rows)" if mixture.streamed else ""
    checked = {f"{name}{suffix}": dataset for name, dataset in mixture.parts.items()}
    kept_texts = texts_by_prompt(keep_like)
    checked_names: dict[str, str] = {}
    for name, texts in kept_texts.items():
        if texts:
            title = f"kept texts, {name}" if name else "kept texts"
            checked_names[name] = unique_name(title, checked)
            # The check reads pairs.
            checked[checked_names[name]] = Dataset.from_dict({"source": texts, "target": texts})
    remaining = dict(run.check_leaks(checked))
    for name, checked_name in checked_names.items():
        kept_texts[name] = remaining.pop(checked_name)["source"][:]
    if run.leak is not None and run.leak.dropped:
        mixture = mix(remaining)

    if mines or swaps:
        recipe = _reading_negatives(recipe, {"translation_ranking"})
        recipe.losses["translation_ranking"]["hard_negatives"] = True
    elif negative_columns(mixture.looked_at.column_names):
        readers = set() if mono else reads_negatives(recipe.losses)
        recipe = _reading_negatives(recipe, readers)
    if mono:
        mixture = add_mono(mixture, mono, seed=arguments.seed)
    text_count = len(text_columns(mixture.looked_at if mixture.streamed else mixture.pairs))
    if mines:
        text_count += recipe.data.hard_negatives.num_negatives
    if keep_like:  # columns of texts that only their own term reads
        recipe = _reading_columns(recipe, list(range(text_count)))
    return _Prepared(mixture, recipe, sources, text_count, kept_texts)


def _with_swaps(
    data: Mapping[str, Dataset | IterableDataset], categories: Sequence[str], *, seed: int
) -> dict[str, Dataset | IterableDataset]:
    """Return the data sets with near-translations as negatives.

    Raises:
        ValueError: If no data set has English targets, as far as that is known before it is read.
    """
    languages: set[str] = set()
    for dataset in data.values():
        languages |= set(dataset.unique("target_language")) if isinstance(dataset, Dataset) else {"en"}
    if "eng" not in map(canonical_language, languages):
        raise ValueError(
            f"near-translations (data.hard_swaps) are made of English targets: got {', '.join(sorted(languages))}; "
            "leave it out, or put English on the target side (data.pivot, --pivot en)."
        )
    return {name: add_swap_negatives(dataset, categories=categories, seed=seed) for name, dataset in data.items()}


def _renamed_sources(provenance: Sequence[Mapping[str, Any]], new_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return where the text came from, with the names that training data have once their sides are turned."""
    sources = [dict(entry) for entry in provenance]
    for entry in sources:
        if entry["option"] == "data":
            entry["names"] = [new_names.get(name, name) for name in entry["names"]]
    return sources


def _reading_negatives(recipe: Recipe, readers: set[str]) -> Recipe:
    """The recipe in which ``readers`` read the columns of hard negatives, and the other losses only the pair."""
    losses: dict[str, dict[str, Any]] = {}
    for name, options in recipe.losses.items():
        if name in readers:
            losses[name] = dict(options)
        else:
            losses[name] = {"columns": [0, 1], **options}
    return dataclasses.replace(recipe, losses=losses)


def _reading_columns(recipe: Recipe, columns: list[int]) -> Recipe:
    """The recipe whose losses read these columns where they name none."""
    losses = {name: {"columns": columns, **options} for name, options in recipe.losses.items()}
    return dataclasses.replace(recipe, losses=losses)


def _encode_by_teacher(
    run: Run,
    recipe: Recipe,
    teacher: SentenceTransformer | None,
    cache: str | Path | None,
    pairs: Dataset | IterableDataset,
) -> TeacherVectors | None:
    """Encode the texts that the teacher reads, if a loss learns from one; ``teacher`` is in place of the recipe's."""
    if not recipe.taught:
        return None
    options = recipe.data.teacher

    def load() -> SentenceTransformer:
        return load_teacher(options) if teacher is None else teacher

    def check(fingerprint: str) -> None:
        run.folder.check_teacher(fingerprint, dataclasses.asdict(options))

    assert isinstance(pairs, Dataset)  # _prepare refuses streams
    return encode_by_teacher(pairs, load, reads=options.reads, cache=cache, check=check)


@dataclass(frozen=True)
class _Start:
    """Model that a run starts from, and its tokens of the training data.

    Attributes:
        encoder: The model to train, from the start or a checkpoint.
        prompts: Text column → the prompt of its texts.
        reports: Lengths of the sources and of the targets, and the token ids that they use.
    """

    encoder: SentenceTransformer
    prompts: dict[str, str]
    reports: list[TextReport]


def _load_start(run: Run, prepared: _Prepared, checkpoint: Path | None) -> _Start:
    """Load the model, and look at its tokens of the data."""
    mixture = prepared.mixture
    recipe = prepared.recipe
    arguments = recipe.arguments
    if checkpoint is not None:
        # Of adapters a checkpoint has no whole model: the trainer loads them over the one that they started from.
        saved = checkpoint if arguments.lora is None else run.folder.base
        encoder = run.load_checkpoint(saved)
    else:
        encoder = run.load_start(
            lambda: column_texts(mixture.looked_at, "source", "target"),
            seed=arguments.seed,
            pooling=recipe.model.pooling,
            max_length=recipe.model.max_length,
            bare=recipe.bare,
        )
        check_start(encoder, arguments.lora, ready_made=not isinstance(run.model, str))
    mixture.log(arguments.batches)
    prompts = set_prompts(encoder, {"source": "source", "target": "target"}, arguments)
    # Texts are counted as the trainer cuts them.
    max_length = None if recipe.model.max_length else length_for_pairs(encoder)
    reports: list[TextReport] = []
    for side in ("source", "target"):
        report = report_texts(encoder, mixture.looked_at, side, prompts.get(side, ""), max_length=max_length)
        reports.append(report)
    # Texts next to the pairs: hard negatives of the data, and monolingual text.
    columns = mixture.pairs.column_names or []
    other_columns = [name for name in columns if name in (*MONO, *negative_columns(columns))]
    if other_columns and not mixture.streamed:
        check_texts(encoder, list(dict.fromkeys(column_texts(mixture.pairs, *other_columns))))
    log_truncation(
        sum(report.truncated for report in reports),
        sum(report.texts for report in reports),
        max(report.longest for report in reports),
        max_length=max_length or encoder.max_seq_length,
    )
    return _Start(encoder, prompts, reports)


def _add_columns(
    run: Run, prepared: _Prepared, start: _Start, vectors: TeacherVectors | None, checkpoint: Path | None
) -> Dataset | IterableDataset:
    """Return the pairs with hard negatives and a teacher's labels, if the recipe asks for them."""
    pairs = prepared.mixture.pairs
    recipe = prepared.recipe
    mines = recipe.data.hard_negatives.num_negatives > 0
    if not mines and vectors is None:
        return pairs
    assert isinstance(pairs, Dataset)  # _prepare refuses streams
    if mines and checkpoint is None:
        pairs = _mine_negatives(recipe, pairs, start)
    elif mines:
        pairs = append_columns(pairs, distributed.run_on_all(lambda: _read_negatives(run)))
    if vectors is not None:
        pairs = vectors.add_to(pairs, student=_student_of(vectors, recipe, start.encoder))
    return pairs


def _add_replay(
    run: Run,
    prepared: _Prepared,
    start: _Start,
    pairs: Dataset | IterableDataset,
    cache: str | Path | None,
    checkpoint: Path | None,
) -> Dataset:
    """Return the pairs with texts next to them on which the model stays as it was."""
    assert isinstance(pairs, Dataset)  # _prepare refuses streams
    recipe = prepared.recipe
    arguments = recipe.arguments
    frozen = start.encoder
    if checkpoint is not None and arguments.lora is None:  # the encoder is the checkpoint's; its prompts are the run's
        frozen = distributed.run_on_all(lambda: _load_again(run, recipe, start.encoder))
    per_pair = recipe.data.replay.per_pair
    most_texts: int | None = None
    if arguments.max_steps > 0:
        rows = arguments.max_steps * arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps
        most_texts = rows * per_pair * distributed.process_count()
    max_length = arguments.max_length
    if max_length is None and not recipe.model.max_length:
        max_length = length_for_pairs(frozen)
    return add_replay(
        pairs,
        prepared.kept_texts,
        frozen,
        per_pair=per_pair,
        most_texts=most_texts,
        max_length=max_length,
        seed=arguments.seed,
        cache=cache,
    )


def _load_again(run: Run, recipe: Recipe, encoder: SentenceTransformer) -> SentenceTransformer:
    """Load the model that a resumed run was started from, with the prompts of its checkpoint."""
    frozen = run.load_start(
        lambda: [],
        seed=recipe.arguments.seed,
        pooling=recipe.model.pooling,
        max_length=recipe.model.max_length,
        bare=recipe.bare,
    )
    frozen.prompts = dict(encoder.prompts)
    frozen.default_prompt_name = encoder.default_prompt_name
    return frozen


def _mine_negatives(recipe: Recipe, pairs: Dataset, start: _Start) -> Dataset:
    options = recipe.data.hard_negatives
    return add_hard_negatives(
        pairs,
        start.encoder,
        num_negatives=options.num_negatives,
        range_min=options.range_min,
        range_max=options.range_max,
        max_score=options.max_score,
        min_score=options.min_score,
        absolute_margin=options.absolute_margin,
        relative_margin=options.relative_margin,
        sampling_strategy=options.sampling_strategy,
        prompts=start.prompts,
        seed=recipe.arguments.seed,
    )


def _read_negatives(run: Run) -> Dataset:
    """Read the hard negatives that a run was started with: those that its checkpoint would find are others."""
    path = run.folder.training / NEGATIVES
    written = run.folder.read_manifest().get("mined_negatives")  # earlier versions did not record it
    if not path.is_file() or written not in (None, _sha256(path)):
        raise ValueError(
            f"{path} is not as it was written: --resume needs the negatives that the run was started with. Restore "
            "it, or start again with --overwrite."
        )
    return Dataset.from_parquet(str(path))


def _student_of(vectors: TeacherVectors, recipe: Recipe, encoder: SentenceTransformer) -> SentenceTransformer | None:
    """Return the model whose dimensions the labels have, or ``None`` if the losses project its embeddings to theirs.

    Raises:
        ValueError: A projection to others than the teacher's; a student with more dimensions and no projection.
    """
    projections = {name: options.get("projection_dim") for name, options in recipe.taught.items()}
    if any(projections.values()):
        if wrong := [name for name, size in projections.items() if size != vectors.dim]:
            raise ValueError(
                f"losses.{wrong[0]}.projection_dim must be the teacher's {vectors.dim} dimensions, in each loss that "
                f"learns from it: got {projections[wrong[0]]}."
            )
        return None
    dim = int(encoder.get_embedding_dimension() or 0)
    if not vectors.can_have(dim):
        got = f"{vectors.dim}" if dim > vectors.dim else f"{vectors.dim}, of {len(vectors.vectors):,} texts"
        raise ValueError(
            f"a student of {dim} dimensions learns at most as many from its teacher: got {got}; train a projection, "
            f"losses.{next(iter(projections))}.projection_dim={vectors.dim}."
        )
    return encoder


def _build_trainer(
    run: Run,
    prepared: _Prepared,
    start: _Start,
    pairs: Dataset | IterableDataset,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> CrossLingualTrainer:
    """Build losses and trainer."""
    recipe = prepared.recipe
    arguments = recipe.arguments
    encoder = start.encoder
    prompts = dict(start.prompts)
    if "target" in prompts:  # without it a negative would be known by its beginning
        prompts |= dict.fromkeys(negative_columns(pairs.column_names or []), prompts["target"])
    token_ids = [report.token_ids for report in start.reports]
    looked_at = prepared.mixture.looked_at
    languages = [looked_at.unique("source_language"), looked_at.unique("target_language")]
    loss = build_loss(recipe, encoder, token_ids=token_ids, languages=languages)
    replayed = [name for name in pairs.column_names or [] if name in kept_text_columns(recipe.data.replay.per_pair)]
    if replayed:
        columns = tuple(range(prepared.text_count, prepared.text_count + len(replayed)))
        loss = loss + replay_term(encoder, columns, weight=recipe.data.replay.weight)
    if checkpoint is None and not run.builds_model:  # a resumed run has the checkpoint's heads
        _log_heads(loss)
    if run.builds_model and arguments.warm_up_heads is None:  # random weights have nothing to lose
        arguments = replaced(arguments, warm_up_heads=0)
    if recipe.model.max_length and length_for_pairs(encoder) is not None:  # the trainer would read less
        arguments = replaced(arguments, max_length=recipe.model.max_length)
    arguments = replaced(arguments, output_dir=str(run.folder.training), prompts=prompts or None, prompt_name=None)
    return CrossLingualTrainer(
        model=encoder,
        args=arguments,
        train_dataset=pairs,
        loss=loss,
        evaluator=run.evaluator,
        callbacks=callbacks,
    )


def _log_heads(loss: nn.Module) -> None:
    """Log where the weights of the vocabulary heads come from, each origin once."""
    heads: dict[str, VocabularyHead] = {}
    for module in loss.modules():
        if isinstance(module, VocabularyHead):
            heads[module.origin] = module
    for head in heads.values():
        level = logging.DEBUG if head.is_new else logging.INFO  # a new one was logged when it was made
        logger.log(level, "vocabulary head: %s", head.origin)


def _write_negatives(run: Run, pairs: Dataset) -> None:
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
        if recipe.data.hard_negatives.num_negatives:
            distributed.run_on_main(lambda: _write_negatives(run, trainer.train_dataset))
        if begin is not None:
            distributed.run_on_main(lambda: begin(trainer.model, folder.training))
        if steps := trainer.warm_up_heads():
            distributed.run_on_main(lambda: folder.update(warm_up_heads=steps))
    return fit_trainer(trainer, folder, checkpoint, name=recipe.name)


def replay_term(model: SentenceTransformer, columns: tuple[int, ...], *, weight: float = 20.0) -> CombinedLoss:
    """The distance of replayed texts from the start's vectors, as a sum of one term.

    Args:
        model: The model to train.
        columns: Positions of the columns of replayed texts.
        weight: Weight of the distance: 1 - cosine, or where embeddings are compared by their lengths too, squared.
    """
    metric = "cosine" if model.similarity_fn_name in (None, "cosine") or normalizes(model) else "mse"
    distance = make("EmbedDistillLoss", model, distance_metric=metric)
    return CombinedLoss(model, [Term(distance, weight, columns, name="replay")])


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

    def build_term(name: str, section: Mapping[str, Any]) -> Term:
        entry = objective(name)
        options: dict[str, Any] = {**entry.preset, **section}
        weight = options.pop("weight", 1.0)
        columns = options.pop("columns", None)
        try:
            if issubclass(entry.loss, CrossLingualLoss):  # ours
                options = entry.loss.resolve_options(options, token_ids=token_ids, languages=languages)
            elif "loss" in options:
                options["loss"] = build_sum(options["loss"])
            with torch.random.fork_rng():  # new heads are drawn
                torch.manual_seed(recipe.arguments.seed)
                loss = entry.loss(model, **options)
        except TypeError as error:
            raise ValueError(f"losses.{name} has an option of the wrong type: {error}") from error
        except ValueError as error:
            raise ValueError(f"losses.{name}: {error}") from error
        if columns is not None:
            columns = tuple(columns)
        return Term(as_loss(loss), weight, columns, name=name)

    def build_sum(losses: Mapping[str, Mapping[str, Any]]) -> CombinedLoss:
        return CombinedLoss(model, [build_term(name, section) for name, section in losses.items()])

    return build_sum(recipe.losses)
