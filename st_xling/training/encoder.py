"""Encoders: parallel text and a recipe's losses → a sentence-transformers model. What ``st-xling train`` calls."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset, IterableDataset, concatenate_datasets
from sentence_transformers import SentenceTransformer
from torch import nn

from st_xling.data.columns import negative_columns
from st_xling.data.read import labeled_pairs
from st_xling.data.sides import orient
from st_xling.data.text_columns import MONO, column_texts
from st_xling.losses import CachedLoss, CombinedLoss, CrossLingualLoss, Term, TranslationLanguageModelingLoss
from st_xling.losses.base import as_loss
from st_xling.models import VocabularyHead, backbone
from st_xling.models.heads import check_savable, save_with_head
from st_xling.models.load import NO_LENGTH, length_for_pairs
from st_xling.models.lora import add_lora, check_start, end_lora, trained_share, without_adapters
from st_xling.models.token_rows import check_texts
from st_xling.training.mixture import (
    Mixture,
    add_mono,
    describe,
    log_truncation,
    mine_negatives,
    prepare,
    report_texts,
)
from st_xling.training.recipe import Recipe, load_recipe, objective, reads_negatives
from st_xling.training.run import Run, RunOptions, TrainingResult, fit_trainer, model_name
from st_xling.training.run_folder import NEGATIVES, save_folder
from st_xling.training.sentence_vectors import CachedVectors
from st_xling.training.teacher import teacher_vectors, vectors_for
from st_xling.training.trainer import CrossLingualTrainer
from st_xling.training.warm_up import warm_up_heads
from st_xling.utils import distributed
from st_xling.utils.io import atomic_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)


def train(
    recipe: Recipe | str,
    data: Dataset | Mapping[str, Dataset | IterableDataset],
    out: str | Path,
    *,
    mono: Mapping[str, Dataset] | None = None,
    begin: Callable[[SentenceTransformer, Path], None] | None = None,
    teacher: SentenceTransformer | None = None,
    cache: str | Path | None = None,
    **options: Unpack[RunOptions],
) -> TrainingResult:
    """Train a cross-lingual encoder and save it; called in each of several processes, they train one together.

    Args:
        recipe: Objectives and options, from :func:`load_recipe`; or what that takes.
        data: A data set, or name → data set; all are mixed. Columns ``source``, ``target``, ``source_language``,
            ``target_language``; else as :func:`~st_xling.data.read.labeled_pairs` finds them.
            If one is an ``IterableDataset``, all are streamed, and the recipe must say ``max_steps``: vocabulary,
            truncation report and leak check then see the first rows alone.
        out: Folder of the run (see :class:`~st_xling.training.run_folder.RunFolder`).
        mono: Name → text of one language, line by line, which the recipe's masked language modeling then reads instead
            of the sentences of ``data``; see :func:`add_mono`. It is not looked through for leaks.
        begin: Called with the model before its first step, and the folder ``training`` of the run; not if it is
            resumed from a checkpoint, and by the main process alone.
        teacher: A loaded model, in place of the recipe's ``teacher.model``.
        cache: Folder of the vectors of the teacher, which stay there for other runs; ``None``: a folder of that model's
            own, next to downloaded ones.
        **options: See :class:`~st_xling.training.run.RunOptions`.

    Raises:
        ValueError: Empty data, an occupied folder, a model or option that does not fit; shared text, if it is to fail.
        TrainingInterrupted: Ctrl-C.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> from st_xling.training import load_recipe
        >>> recipe = load_recipe("tr", tiny=True, overrides={"training.max_steps": 1})
        >>> small = {"vocabulary": 200, "hidden_size": 16}
        >>> data = {"de-en": parallel_phrases("de", "en", size=20)}
        >>> train(recipe, data, "my-encoder", model="tiny", tiny=small).steps
        1
    """
    if isinstance(recipe, str):
        recipe = load_recipe(recipe, tiny=isinstance(model := options.get("model"), str) and model == "tiny")
    recipe = _reading_mono(recipe) if mono else recipe
    if teacher is not None and not recipe.taught:
        raise ValueError(f"nothing in {recipe.name} learns from a teacher: got one; take the recipe distill.")
    if recipe.negatives.count and mono:
        raise ValueError("mined negatives stand in the columns of monolingual text: take one of the two.")
    run = Run(recipe=recipe, out=out, **options)
    with run.opened():
        mixture = distributed.run_on_all(lambda: _prepare(run, labeled_pairs(data), mono or {}))
        described = {"mono": describe(mono)} if mono else {}
        vectors, taught = teacher_vectors(recipe, teacher, cache, mixture.pairs)
        checkpoint = run.claim({"data": mixture.manifest, **described, **taught}, longer=True)
        trainer = distributed.run_on_all(lambda: _build(run, mixture, vectors, checkpoint))
        return run.fit(lambda: _fit(run, trainer, checkpoint, begin))


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


def _prepare(run: Run, data: Mapping[str, Dataset | IterableDataset], mono: Mapping[str, Dataset]) -> Mixture:
    """Mix the data, without what evaluates the run if that shall be dropped; sets the columns that losses read."""
    recipe, processes = run.recipe, distributed.process_count()
    oriented, messages = orient(data, pivot=recipe.training.pivot)
    names = dict(zip(data, oriented))  # a data set that was turned has its languages in their new order
    for entry in run.provenance:
        if entry["option"] == "data":
            entry["names"] = [names.get(name, name) for name in entry["names"]]
    if {"representation_translation", "translation_ranking"} & recipe.losses.keys():  # others: no direction
        for line in messages:
            logger.info("%s", line)
    # Monolingual text takes the columns that negatives would have.
    mined = {"translation_ranking"} if recipe.negatives.count else set()
    readers = set() if mono else mined or reads_negatives(recipe.losses)
    kept = bool(readers) and not mined
    mixture = prepare(oriented, recipe.training, processes=processes, negatives=kept)
    if mixture.streamed and (mined or recipe.taught or run.on_leak != "report"):
        raise ValueError(
            "a teacher, the search for negatives and dropping leaks read all text before training: got a stream; read "
            "it whole."
        )
    seen = " (first rows)" if mixture.streamed else ""  # so that results and signature say so
    parts_left = run.check_leaks({name + seen: part for name, part in mixture.parts.items()})
    if run.leak is not None and run.leak.dropped:
        mixture = prepare(parts_left, recipe.training, processes=processes, negatives=kept)
    if mined or negative_columns(mixture.looked_at.column_names):  # the other terms read the pair alone
        losses = {
            name: options if name in readers else {"columns": [0, 1], **options}
            for name, options in recipe.losses.items()
        }
        for name in mined:
            losses[name] = {**losses[name], "hard_negatives": True}
        run.recipe = dataclasses.replace(recipe, losses=losses)
    return add_mono(mixture, mono, seed=recipe.training.seed) if mono else mixture


def _build(run: Run, mixture: Mixture, vectors: CachedVectors | None, checkpoint: Path | None) -> CrossLingualTrainer:
    """Build model, losses and the trainer."""
    recipe, training, lora = run.recipe, run.recipe.training, run.recipe.training.lora
    if checkpoint is not None:
        encoder = run.load_checkpoint(checkpoint if lora is None else run.folder.base)
    else:
        encoder = run.load_start(lambda: column_texts(mixture.looked_at, "source", "target"))
        check_start(encoder, lora, given=not isinstance(run.model, str))
    mixture.log(training)
    prompts = run.set_prompts(encoder, {side: side for side in ("source", "target")})
    looked_at = mixture.looked_at
    max_length = None if recipe.model.max_length else length_for_pairs(encoder)
    if max_length is not None:
        own: Any = encoder.max_seq_length
        reads = f"{own:,}" if own < NO_LENGTH else "any number"
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
    beside = [name for name in pairs.column_names or [] if name in (*MONO, *negative_columns(pairs.column_names))]
    if beside and not mixture.streamed:
        check_texts(encoder, list(dict.fromkeys(column_texts(pairs, *beside))))
    if recipe.negatives.count:
        pairs = _with_negatives(run, pairs, encoder, prompts, checkpoint)
    if "target" in prompts:  # without it a negative would be known by its beginning
        prompts |= dict.fromkeys(negative_columns(pairs.column_names or []), prompts["target"])
    cut, count = (sum(getattr(side, what) for side in texts) for what in ("truncated", "texts"))
    longest = max(side.longest for side in texts)
    log_truncation(cut, count, longest, max_length=max_length or encoder.max_seq_length)
    learned = None if vectors is None else vectors_for(encoder, vectors, recipe)
    languages = [looked_at.unique(f"{side}_language") for side in ("source", "target")]
    loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in texts], languages=languages)
    if checkpoint is None and run.model != "tiny":  # a resumed run has the checkpoint's heads
        heads = [part for part in loss.modules() if isinstance(part, VocabularyHead)]
        for head in {head.origin: head for head in heads}.values():
            level = logging.DEBUG if head.is_new else logging.INFO  # a new one has been named when it was made
            logger.log(level, "vocabulary head: %s", head.origin)
    if training.save_vocabulary_head:
        if lora is not None or not trained_heads(loss):
            raise ValueError("training.save_vocabulary_head takes the loss mlm or tlm, and no training.lora.")
        check_savable(backbone(encoder), trained_heads(loss)[0])
    if lora is not None:  # after the losses, which copy plain layers
        add_lora(encoder, lora, base=run.folder.base, seed=training.seed)
        logger.info("LoRA trains %s of the encoder", trained_share(encoder))
    size = training.mini_batch_size
    total: Any = CachedLoss(loss, mini_batch_size=size) if size else loss
    kind = partial(CrossLingualTrainer, warm_up_steps=0)  # heads are warmed up in `_fit`, which records it
    trainer = run.build_trainer(kind, encoder, pairs, total, rows=mixture.rows, prompts=prompts or None)
    trainer.data_collator.teacher = learned  # type: ignore[attr-defined]
    trainer.data_collator.max_length = max_length
    return trainer


def _with_negatives(
    run: Run, pairs: Any, encoder: SentenceTransformer, prompts: dict[str, str], checkpoint: Path | None
) -> Dataset:
    """Add hard negatives to the pairs: mined by ``encoder``, or those that the run was started with."""
    count, seed = run.recipe.negatives.count, run.recipe.training.seed
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
    trainer: CrossLingualTrainer,
    checkpoint: Path | None,
    begin: Callable[[SentenceTransformer, Path], None] | None,
) -> TrainingResult:
    model, folder, training = trainer.model, run.folder, run.recipe.training
    if checkpoint is None:
        if run.recipe.negatives.count:
            distributed.run_on_main(lambda: _write_negatives(run, trainer.train_dataset))
        if training.lora is not None:
            distributed.run_on_main(lambda: save_folder(without_adapters(model), folder.base))
        if begin is not None:
            distributed.run_on_main(lambda: begin(model, folder.training))
        steps = training.warm_up_heads
        if steps is None and run.model == "tiny":  # an encoder of random weights has nothing to lose
            steps = 0
        if (made := warm_up_heads(trainer, steps=steps)) > 0:
            distributed.run_on_main(lambda: folder.update(warm_up_heads=made))
    result = fit_trainer(trainer, folder, checkpoint, name=run.recipe.name)
    if training.lora is not None:
        end_lora(result.model, training.lora, start=model_name(run.model), base=folder.base)
    if training.save_vocabulary_head:
        save_with_head(backbone(result.model), trained_heads(trainer.loss)[0])  # type: ignore[arg-type]
    return result


def trained_heads(loss: nn.Module) -> list[VocabularyHead]:
    """The vocabulary heads of masked language modeling; all terms of a sum share one."""
    return [part.head for part in loss.modules() if isinstance(part, TranslationLanguageModelingLoss)]


def build_loss(
    recipe: Recipe, model: nn.Module, *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]] = ()
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
                torch.manual_seed(recipe.training.seed)
                loss = known.loss(model, **options)
        except TypeError as error:
            raise ValueError(f"losses.{name} has an option of the wrong type: {error}") from error
        except ValueError as error:
            raise ValueError(f"losses.{name}: {error}") from error
        return Term(as_loss(loss), weight, None if columns is None else tuple(columns), name=name)

    def total(losses: Mapping[str, Mapping[str, Any]]) -> CombinedLoss:
        return CombinedLoss(model, [term(name, section) for name, section in losses.items()])

    return total(recipe.losses)
