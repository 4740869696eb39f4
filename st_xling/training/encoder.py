"""Encoders: parallel text and a recipe's losses → a sentence-transformers model. What ``st-xling train`` calls."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.data.columns import negative_columns
from st_xling.data.orient import orient
from st_xling.data.text_columns import column_texts
from st_xling.losses import (
    CachedLoss,
    CombinedLoss,
    CrossLingualLoss,
    Term,
    TranslationLanguageModelingLoss,
    make,
)
from st_xling.models import VocabularyHead, backbone
from st_xling.models.heads import check_savable, save_with_head
from st_xling.models.lora import add_lora, check_start, end_lora, trained_share, without_adapters
from st_xling.training.arguments import training_arguments
from st_xling.training.hard_negatives import mine_negatives, read_negatives, write_negatives
from st_xling.training.leak_check import check_leaks
from st_xling.training.mixture import Mixture, add_mono, fingerprint, log_mixture, log_truncation, prepare, report_sides
from st_xling.training.recipe import Recipe, load_recipe, objective, reads_negatives
from st_xling.training.run import Run, RunOptions, TrainingResult, fit_trainer, model_name
from st_xling.training.run_folder import NEGATIVES, save_folder
from st_xling.training.sentence_vectors import cached_rows
from st_xling.training.teacher import OUTPUT, columns_read, open_teacher, vectors_for
from st_xling.training.trainer import CrossLingualTrainer
from st_xling.utils import distributed

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)


def train(
    recipe: Recipe | str,
    data: Mapping[str, Dataset | IterableDataset],
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
        data: Name → data set with ``source``, ``target``, ``source_language``, ``target_language``; all are mixed.
            If one is an ``IterableDataset``, all are streamed, and the recipe must say ``max_steps``: vocabulary,
            truncation report and leak check then see the first rows alone.
        out: Folder of the run (see :class:`~st_xling.training.run_folder.RunFolder`).
        mono: Name → text of one language, line by line, which the recipe's masked language modelling then reads instead
            of the sentences of ``data``; see :func:`add_mono`. It is not looked through for leaks.
        begin: Called with the model before its first step, and the folder ``training`` of the run; not if it is
            resumed from a checkpoint, and by the main process alone.
        teacher: A loaded model, in place of the recipe's ``teacher.model``.
        cache: Folder of the vectors of the teacher, which stay there for other runs; ``None``: a folder of that model's
            own, beside downloaded ones.
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
    more: dict[str, Any] = {"mono": mono or {}, "on_begin": begin, "teacher": teacher, "cache": cache}
    return _EncoderRun(recipe=recipe, out=out, data=data, **more, **options)()


def _reading_mono(recipe: Recipe) -> Recipe:
    """The recipe whose MLM term reads the columns that :func:`add_mono` adds, and no other term does."""
    if "mlm" not in recipe.losses:
        raise ValueError(
            f"monolingual text is for masked language modelling: {recipe.name} has {', '.join(recipe.losses)}; take a "
            "recipe with the loss mlm, such as amber."
        )
    losses = {name: {"columns": [0, 1], **options} for name, options in recipe.losses.items()}
    losses["mlm"] |= {"columns": [2, 3], "contiguous": True}
    return dataclasses.replace(recipe, losses=losses)


@dataclass(eq=False, kw_only=True)
class _EncoderRun(Run):
    may_train_longer = True
    recipe: Recipe
    data: Mapping[str, Dataset | IterableDataset]
    mono: Mapping[str, Dataset]
    on_begin: Callable[[SentenceTransformer, Path], None] | None
    teacher: Any = None
    cache: str | Path | None = None

    def check(self) -> None:
        if self.teacher is not None and not self.recipe.taught:
            raise ValueError(f"nothing in {self.recipe.name} learns from a teacher: got one; take the recipe distill.")
        if self.recipe.negatives.count and self.mono:
            raise ValueError("mined negatives stand in the columns of monolingual text: take one of the two.")

    def prepare_data(self) -> None:
        training, processes = self.recipe.training, distributed.process_count()
        oriented = orient(self.data, pivot=training.pivot)
        names = dict(zip(self.data, oriented.data))  # a data set that was turned has its languages in their new order
        for entry in self.provenance:
            if entry["option"] == "data":
                entry["names"] = [names.get(name, name) for name in entry["names"]]
        if {"representation_translation", "translation_ranking"} & self.recipe.losses.keys():  # others: no direction
            for line in oriented.messages():
                logger.info("%s", line)
        # Monolingual text stands in the columns that negatives would have.
        mined = {"translation_ranking"} if self.recipe.negatives.count else set()
        readers = set() if self.mono else mined or reads_negatives(self.recipe.losses)
        kept = bool(readers) and not mined
        mixture = prepare(oriented.data, training, processes=processes, negatives=kept)
        if mixture.streamed and self.on_leak != "report":
            raise ValueError(
                f"a stream is not read before it is trained on: got on_leak={self.on_leak!r}; take st-xling leak."
            )
        if mixture.streamed and (mined or self.recipe.taught):
            raise ValueError(
                "a teacher and the search for negatives read all text before training: got a stream; read it whole."
            )
        seen = " (first rows)" if mixture.streamed else ""  # so that results and signature say so
        parts = {name + seen: part for name, part in mixture.parts.items()}
        parts_left, self.leak = check_leaks(parts, self.evaluator, self.evaluation, on_leak=self.on_leak)
        if self.leak is not None and self.leak.dropped:
            mixture = prepare(parts_left, training, processes=processes, negatives=kept)
        if mined or negative_columns(mixture.looked_at.column_names):  # the other terms read the pair alone
            losses = {
                name: options if name in readers else {"columns": [0, 1], **options}
                for name, options in self.recipe.losses.items()
            }
            for name in mined:
                losses[name] = {**losses[name], "hard_negatives": True}
            self.recipe = dataclasses.replace(self.recipe, losses=losses)
        self.mixture = add_mono(mixture, self.mono, seed=training.seed) if self.mono else mixture

    def describe_data(self) -> dict[str, Any]:
        described: dict[str, Any] = {"data": self.mixture.manifest}
        if self.mono:
            described["mono"] = {name: {"rows": len(p), "sha8": fingerprint(p)} for name, p in self.mono.items()}
        return described | distributed.run_on_main(self._open_teacher)

    def _open_teacher(self) -> dict[str, Any]:
        self.teacher_cache, described = open_teacher(self.recipe, self.teacher, self.cache)
        return described

    def _ask_teacher(self) -> str | None:
        """Compute what the cache of the teacher lacks; its folder."""
        cache, self.teacher_cache = self.teacher_cache, None
        if cache is None:
            return None
        cache.fill(self._read_by_teacher(), [OUTPUT])
        return str(cache.folder)

    def _read_by_teacher(self) -> list[str]:
        """The distinct texts that the teacher reads."""
        return list(dict.fromkeys(column_texts(self.mixture.pairs, *columns_read(self.recipe.teacher.reads))))

    def build(self, checkpoint: Path | None) -> None:
        start = self.model
        self.vectors = distributed.run_on_main(self._ask_teacher)
        if checkpoint is None and self.model == "tiny" and distributed.process_count() > 1:
            # Built once, and read by all processes.
            start = str(self.folder.start)
            distributed.run_on_main(lambda: self._load("tiny").save_pretrained(start))
        distributed.run_on_all(lambda: self._build(start, checkpoint))
        if self.model == "tiny":
            self.trainer.model.model_card_data.base_model = None

    def _load(self, model: str | SentenceTransformer) -> SentenceTransformer:
        return self.load_start(lambda: column_texts(self.mixture.looked_at, "source", "target"), model)

    def _build(self, start: str | SentenceTransformer, checkpoint: Path | None) -> None:
        recipe, mixture, folder = self.recipe, self.mixture, self.folder
        training, lora = recipe.training, recipe.training.lora
        if checkpoint is not None:
            encoder = self.load_checkpoint(checkpoint if lora is None else folder.base)
        else:
            encoder = self._load(start)
            check_start(encoder, lora, given=not isinstance(start, str))
        log_mixture(mixture, training)
        prompts = self.prompts = self.set_prompts(encoder, {side: side for side in ("source", "target")})
        self.texts = report_sides(encoder, mixture.looked_at, prompts=prompts)
        if recipe.negatives.count:
            mixture = self.mixture = self._with_negatives(mixture, encoder, checkpoint)
        if "target" in prompts:  # without it a negative would be known by its beginning
            prompts |= dict.fromkeys(negative_columns(mixture.pairs.column_names or []), prompts["target"])
        cut, total = (sum(getattr(side, what) for side in self.texts) for what in ("truncated", "texts"))
        longest = max(side.longest for side in self.texts)
        log_truncation(cut, total, longest, max_length=encoder.max_seq_length)
        learned = None
        if self.vectors is not None:
            learned = vectors_for(encoder, cached_rows(Path(self.vectors), self._read_by_teacher(), OUTPUT), recipe)
        languages = [mixture.looked_at.unique(f"{side}_language") for side in ("source", "target")]
        loss = build_loss(recipe, encoder, token_ids=[side.token_ids for side in self.texts], languages=languages)
        if checkpoint is None and self.model != "tiny":  # a resumed run has the checkpoint's heads
            for origin in dict.fromkeys(part.origin for part in loss.modules() if isinstance(part, VocabularyHead)):
                logger.info("vocabulary head: %s", origin)
        if training.save_vocabulary_head and (lora is not None or not trained_heads(loss)):
            losses = ", ".join(recipe.losses) + (" with training.lora" if lora is not None else "")
            raise ValueError(f"training.save_vocabulary_head takes the loss mlm or tlm, and no adapters: got {losses}.")
        if training.save_vocabulary_head:
            check_savable(backbone(encoder), trained_heads(loss)[0])
        weights = scheduled_weights(recipe, loss)  # of the sum, before it is cached
        if lora is not None:  # after the losses, which copy plain layers
            add_lora(encoder, lora, base=folder.base, seed=training.seed)
            logger.info("LoRA trains %s of the encoder", trained_share(encoder))
        processes = distributed.process_count()
        size = training.mini_batch_size
        self.trainer = CrossLingualTrainer(
            model=encoder,
            args=training_arguments(
                training,
                folder.training,
                rows=mixture.rows,
                processes=processes,
                prompts=prompts,
                best_metric=None if self.evaluator is None else f"eval_{self.evaluator.primary_metric}",
            ),
            train_dataset=mixture.pairs,
            loss=CachedLoss(loss, mini_batch_size=size) if size else loss,
            evaluator=self.evaluator,
            callbacks=[*self.callbacks_of(training), *weights],
        )
        collator: Any = self.trainer.data_collator
        collator.teacher = learned

    def _with_negatives(self, mixture: Mixture, encoder: SentenceTransformer, checkpoint: Path | None) -> Mixture:
        """The pairs with hard negatives mined by ``encoder``, or with those that the run was started with."""
        options: dict[str, Any] = {"prompts": self.prompts, "seed": self.recipe.training.seed}
        if checkpoint is None:
            self.negatives = distributed.run_on_main(
                lambda: mine_negatives(mixture.pairs, encoder, self.recipe.negatives.count, **options)
            )
        else:
            self.negatives = read_negatives(self.folder.training / NEGATIVES)
        pairs: Any = mixture.pairs
        for name, texts in self.negatives.items():
            pairs = pairs.add_column(name, texts)
        return dataclasses.replace(mixture, pairs=pairs)

    def fit(self, checkpoint: Path | None) -> TrainingResult:
        model, folder, lora = self.trainer.model, self.folder, self.recipe.training.lora
        if checkpoint is None:
            if self.recipe.negatives.count:
                distributed.run_on_main(lambda: write_negatives(self.negatives, folder.training / NEGATIVES))
            if lora is not None:
                distributed.run_on_main(lambda: save_folder(without_adapters(model), folder.base))
            if (begin := self.on_begin) is not None:
                distributed.run_on_main(lambda: begin(model, folder.training))
        result = fit_trainer(self.trainer, folder, checkpoint, self.texts, name=self.recipe.name)
        if lora is not None:
            end_lora(result.model, lora, start=model_name(self.model), base=folder.base)
        if self.recipe.training.save_vocabulary_head:
            loss: Any = self.trainer.loss
            save_with_head(backbone(result.model), trained_heads(loss)[0])
        return result


def trained_heads(loss: nn.Module) -> list[VocabularyHead]:
    """The vocabulary heads of masked language modelling; all terms of a sum share one."""
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
        start = weight["start"] if isinstance(weight, dict) else weight
        try:
            if issubclass(known.loss, CrossLingualLoss):
                options = known.loss.resolve_options(options, token_ids=token_ids, languages=languages)
            elif "loss" in options:
                options["loss"] = total(options["loss"])
            with torch.random.fork_rng():  # new heads are drawn
                torch.manual_seed(recipe.training.seed)
                loss = make(known.loss(model, **options)) if known.is_ours else make(name, model, **options)
        except TypeError as error:
            raise ValueError(f"losses.{name} has an option of the wrong type: {error}") from error
        except ValueError as error:
            raise ValueError(f"losses.{name}: {error}") from error
        return Term(loss, start, None if columns is None else tuple(columns), name=name)

    def total(losses: Mapping[str, Mapping[str, Any]]) -> CombinedLoss:
        return CombinedLoss(model, [term(name, section) for name, section in losses.items()])

    return total(recipe.losses)


class ScheduledWeights(TrainerCallback):
    """Sets the weights of a sum's terms before each step; they depend on the step alone, so resuming needs no state.

    Args:
        loss: The sum.
        ramps: Name of a term → ``start``, ``end`` and ``steps``: its weight runs in a straight line and stays there.
    """

    def __init__(self, loss: CombinedLoss, ramps: dict[str, dict[str, float]]) -> None:
        self.loss, self.ramps = loss, ramps

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        for name, ramp in self.ramps.items():
            share = min(1.0, state.global_step / max(1, ramp["steps"]))
            self.loss.set_weight(name, ramp["start"] + (ramp["end"] - ramp["start"]) * share)


def scheduled_weights(recipe: Recipe, loss: CombinedLoss) -> list[ScheduledWeights]:
    """The callback that moves the recipe's changing weights, if it has any."""
    ramps = {name: options["weight"] for name, options in recipe.losses.items() if isinstance(options["weight"], dict)}
    return [ScheduledWeights(loss, ramps)] if ramps else []
