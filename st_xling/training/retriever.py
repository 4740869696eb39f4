"""Dense retrievers: English questions, parallel text, and text of other languages → an encoder, or two.

Recipes have a section ``retrieval``; their losses are the IR loss with semaCL and langCL. Data of different sizes are
joined into one stream, in which each is cycled; every term encodes its own columns.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from datasets import Dataset, Features, IterableDataset, Value
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router
from torch import Tensor
from transformers import TrainerCallback

from st_xling.data.columns import negative_columns
from st_xling.data.leak import Texts
from st_xling.data.text_cells import column_texts
from st_xling.losses.base import CombinedLoss
from st_xling.models.view import rebuilt
from st_xling.training.arguments import replaced, total_steps
from st_xling.training.encoder import build_loss
from st_xling.training.mixture import describe, log_truncation, mix, mix_endless, report_texts
from st_xling.training.options import RetrievalDataOptions, RetrievalOptions
from st_xling.training.recipe import LossRecipe, trains_by_recipe
from st_xling.training.recipe_files import check_keys
from st_xling.training.run import OnLeak, Run, TrainingResult, fit_trainer, set_prompts
from st_xling.training.trainer import CrossLingualTrainer

RANKING, SEMANTIC, LANGUAGE = "in_batch_ranking", "semantic_contrastive", "language_contrastive"

_NOT_OF_RETRIEVERS = ("lora", "mini_batch_size", "mini_batch_num_tokens", "warm_up_heads", "save_vocabulary_head")
"""Training arguments of encoders alone."""

Data = Mapping[str, Dataset]
Part = tuple[int, dict[str, str], Data]
"""Number of a source that a term reads, names of its columns in the joined rows → in the source, and the source."""


@dataclass(frozen=True)
class RetrievalRecipe(LossRecipe):
    """A named way to train a retriever.

    Example:
        >>> list(load_retrieval_recipe("ir-semacl").losses)
        ['in_batch_ranking', 'semantic_contrastive']
    """

    kind: ClassVar[str] = "retriever"

    data: RetrievalDataOptions = field(default_factory=RetrievalDataOptions)
    retrieval: RetrievalOptions = field(default_factory=RetrievalOptions)

    def check(self) -> None:
        check_keys(self.losses, (RANKING, SEMANTIC, LANGUAGE), "losses of a retriever")
        if RANKING not in self.losses:
            raise ValueError(f"a retriever learns by {RANKING}: got {', '.join(self.losses)} alone; add it.")
        changed = self.arguments.changed()
        if unused := [name for name in _NOT_OF_RETRIEVERS if name in changed]:
            raise ValueError(f"arguments has no key {unused[0]!r} for retrievers; leave it out.")


load_retrieval_recipe = RetrievalRecipe.load


@dataclass(frozen=True)
class RetrievalSources:
    """Training data of a retriever; every data set has the four columns of parallel text.

    Attributes:
        queries: Name → queries (``source``) and passages (``target``); perhaps hard negatives: passages that are near,
            and wrong (``negative_1``, ``negative_2``, …), as many in each data set.
        parallel: Name → parallel text, for semaCL and langCL.
        others: Name → sentences without translations, for langCL: ``source`` and ``target`` alike.
    Example:
        >>> from st_xling.data.retrieval import load_query_passage_specs
        >>> RetrievalSources(load_query_passage_specs(["queries=phrasebook?size=10"])).rows
        10
    """

    queries: Data
    parallel: Data = field(default_factory=dict)
    others: Data = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Query-passage pairs: an epoch."""
        return sum(len(part) for part in self.queries.values())

    def read_by(self, loss: str) -> list[Part]:
        """Return what a term looks at, in the order of its columns."""
        if loss == RANKING:
            first = next(iter(self.queries.values()))  # all data sets have as many hard negatives
            negatives = {name: name for name in negative_columns(first.column_names)}
            return [(0, {"query": "source", "passage": "target", **negatives}, self.queries)]
        if loss == SEMANTIC:
            return [(1, {"semantic_source": "source", "semantic_target": "target"}, self.parallel)]
        pairs: Part = (2, {"language_source": "source", "language_target": "target"}, self.parallel)
        return [pairs, (3, {"other": "source"}, self.others)] if self.others else [pairs]

    def columns(self, loss: str) -> list[str]:
        """Return the text columns that a term looks at."""
        return [name for _, columns, _ in self.read_by(loss) for name in columns]

    def texts(self) -> Iterator[str]:
        """Yield the texts of all data sets."""
        for data in filter(None, (self.queries, self.parallel, self.others)):
            yield from column_texts(mix(data), "source", "target")

    def named(self) -> dict[str, Dataset]:
        """All data sets, by role and name."""
        roles = {"queries": self.queries, "parallel": self.parallel, "others": self.others}
        return {f"{role}:{name}": part for role, data in roles.items() for name, part in data.items()}

    def check(self, recipe: RetrievalRecipe) -> None:
        """Raise ``ValueError`` unless the recipe's terms have their data, and all data a term."""
        mix(self.queries)
        counts = {name: len(negative_columns(part.column_names)) for name, part in self.queries.items()}
        if len(set(counts.values())) > 1:
            shown = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(f"queries need as many hard negatives in each data set: got {shown}; choose by ?columns=.")
        used = set(recipe.losses)
        if used & {SEMANTIC, LANGUAGE} and not self.parallel:
            raise ValueError(f"{recipe.name} learns from parallel text too: got none; give it with --parallel.")
        if self.parallel and not used & {SEMANTIC, LANGUAGE}:
            raise ValueError(f"{recipe.name} has no use for parallel text: leave --parallel out, or take ir-semacl.")
        if self.others and LANGUAGE not in used:
            raise ValueError(f"{recipe.name} has no use for other text: leave --mono out, or take ir-langcl.")
        for part in filter(None, (self.parallel, self.others)):
            mix(part)

    def manifest(self) -> dict[str, dict[str, Any]]:
        """Role and name → rows and the fingerprint of the text."""
        described: dict[str, dict[str, Any]] = {}
        for name, part in self.named().items():
            described |= describe({name: part}, ["source", "target", *negative_columns(part.column_names)])
        return described


def join_sources(sources: RetrievalSources, recipe: RetrievalRecipe) -> IterableDataset:
    """One stream without an end, whose rows hold a piece of each source that the recipe's terms look at.

    Cut by the batch size, it gives the batches of training. Every term reads its source in an order of its own, and
    from the start again when it has come to the end, so the sources' sizes need not agree. In a batch the rows of each
    source are of like length, without a text twice, and several pairs of languages are mixed, as the options say. Side
    by side, rows of different sources have nothing to do with each other.

    Raises:
        ValueError: As :meth:`RetrievalSources.check`; while reading, too few distinct texts to fill a batch.
    """
    sources.check(recipe)
    parts = []
    for number, columns, data in (part for loss in recipe.losses for part in sources.read_by(loss)):
        stream = mix_endless(
            data,
            recipe.arguments,
            shuffle_buffer=recipe.data.shuffle_buffer,
            more=negative_columns(columns),
            order=number,
        )
        parts.append((columns, stream))
    features = Features({name: Value("string") for columns, _ in parts for name in columns})
    return IterableDataset.from_generator(partial(_joined, parts), features=features)


def _joined(parts: Sequence[tuple[dict[str, str], IterableDataset]]) -> Iterator[dict[str, str]]:
    for rows in zip(*(stream for _, stream in parts)):
        yield {name: row[column] for (columns, _), row in zip(parts, rows) for name, column in columns.items()}


def separate_encoders(encoder: SentenceTransformer) -> SentenceTransformer:
    """A model with two encoders that start out alike: ``encode_query`` uses one, ``encode_document`` the other.

    Plain ``encode`` uses the passage encoder. A model that has routes already comes back as it is.

    Args:
        encoder: What both start from; its modules become the passage encoder.
    Raises:
        ValueError: Routes of other names.
    """
    if _has_routes(encoder):
        routes = list(encoder[0].sub_modules)  # type: ignore[arg-type]
        if set(routes) != {"query", "document"}:
            raise ValueError(f"separate encoders need the routes query and document: got {', '.join(routes)}.")
        return encoder
    modules: list[Any] = list(encoder)
    router = Router.for_query_document(
        query_modules=copy.deepcopy(modules),
        document_modules=modules,
        default_route="document",
    )
    return rebuilt(encoder, [router])


def _has_routes(encoder: SentenceTransformer) -> bool:
    return isinstance(encoder[0], Router)


class TermByTermLoss(CombinedLoss):
    """A :class:`CombinedLoss` with an encoder pass for each term, over the term's columns.

    Long passages are then not the length to which parallel sentences are padded. Value and gradient are those of the
    single pass, but for dropout's draws.
    """

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> dict[str, Tensor]:
        columns = self.columns_read(list(sentence_features))
        components: dict[str, Tensor] = {}
        for name, term in zip(self.names, self.term_list()):
            components[name] = term.weight * term.loss([dict(column) for column in term.select(columns)], labels)
        return components

    def parts(self) -> list[TermByTermLoss]:
        """Each term as a loss of its own over the same columns."""
        parts = [TermByTermLoss(self.model, [term]) for term in self.term_list()]
        for part in parts:  # a term alone may read fewer columns than the data have
            part.min_columns = self.min_columns
            part.max_columns = self.max_columns
        return parts


class RetrievalTrainer(CrossLingualTrainer):
    """:class:`CrossLingualTrainer` with a backward pass for each term of a :class:`TermByTermLoss`.

    Gradients add up until the optimizer's step, which is that of one backward pass through the sum, in the memory of
    the largest term in place of all of them.

    Source:
        Hu et al. 2023, section 3.4: the terms are differentiated one after the other.
    """

    reads_sentences = False

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:
        whole = self.loss
        if not isinstance(whole, TermByTermLoss):
            return super().training_step(model, inputs, *args, **kwargs)
        values = []
        try:
            for part in whole.parts():
                self.loss = part  # type: ignore[assignment]
                values.append(super().training_step(model, dict(inputs), *args, **kwargs))
        finally:
            self.loss = whole
        return torch.stack(values).sum()

    def track_loss_components(self, loss: dict[str, Tensor]) -> None:
        super().track_loss_components(loss)
        # ST averages over its calls, and a step has one for each term: only that of the first term counts.
        if RANKING not in loss:
            mode = "train" if self.model.training else "eval"
            self.accum_loss_components[mode]["steps"] -= 1


@trains_by_recipe
def train_retrieval(
    recipe: RetrievalRecipe,
    sources: RetrievalSources,
    out: str | Path,
    *,
    model: str | SentenceTransformer,
    tiny: Mapping[str, Any] | None = None,
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    command: str | None = None,
    provenance: Sequence[Mapping[str, Any]] = (),
    load_options: Mapping[str, Any] | None = None,
) -> TrainingResult:
    """Train a retriever and save it: a stock model for ``encode_query`` and ``encode_document``.

    Args:
        recipe: Terms and options, from :func:`load_retrieval_recipe`.
        sources: Queries with their passages, and what the recipe's other terms look at. An epoch is as long as the
            query-passage pairs; the others are cycled.
        out: Folder of the run, see :class:`~st_xling.training.run_folder.RunFolder`.
        model: Hub id, folder, a loaded model, or ``"tiny"``: a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        evaluator: Evaluates the model during training by its ``primary_metric``; the best checkpoint is kept.
        evaluation: Name → texts that the model will be evaluated on later; like the evaluator's, they are looked for
            in the training data.
        on_leak: What to do about training rows with such text: ``"report"``, ``"drop"`` or ``"fail"``.
        resume: Resume from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        callbacks: transformers' callbacks, called while training.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.
        load_options: ``revision`` and ``trust_remote_code`` of
            :func:`~st_xling.models.load.load_sentence_transformer`, for a model that is loaded.

    Raises:
        ValueError: Data that do not fit the recipe, an occupied folder, a model or option that does not fit; shared
            text, if it is to fail; several processes.
        TrainingInterrupted: Ctrl-C.

    Example:
        >>> from tempfile import mkdtemp
        >>> from st_xling.data.retrieval import load_query_passage_specs
        >>> sources = RetrievalSources(load_query_passage_specs(["queries=phrasebook?size=20"]))
        >>> options = {"arguments.max_steps": 1, "arguments.per_device_train_batch_size": 8}
        >>> recipe = load_retrieval_recipe("ir", tiny=True, overrides=options)
        >>> train_retrieval(recipe, sources, mkdtemp(), model="tiny", tiny={"hidden_size": 16}).steps
        1
    """
    run = Run(
        recipe=recipe,
        out=out,
        model=model,
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
    sources.check(recipe)
    with run.opened("retrievers"):
        named = run.check_leaks(sources.named())
        if run.leak is not None and run.leak.dropped:
            roles: dict[str, dict[str, Dataset]] = {"queries": {}, "parallel": {}, "others": {}}
            for key, part in named.items():
                role, _, name = key.partition(":")
                roles[role][name] = part
            sources = RetrievalSources(**roles)
        checkpoint = run.claim({"data": sources.manifest()}, longer=True)
        trainer = _build(run, recipe, sources, callbacks, checkpoint)
        return run.fit(lambda: fit_trainer(trainer, run.folder, checkpoint, name=recipe.name))


def _build(
    run: Run,
    recipe: RetrievalRecipe,
    sources: RetrievalSources,
    callbacks: Sequence[TrainerCallback],
    checkpoint: Path | None,
) -> RetrievalTrainer:
    """Build model, losses and the trainer."""
    arguments = recipe.arguments
    if checkpoint is None:
        encoder = run.load_start(
            sources.texts,
            seed=arguments.seed,
            pooling=recipe.model.pooling,
            max_length=recipe.model.max_length,
            bare=recipe.bare,
        )
    else:
        encoder = run.load_checkpoint(checkpoint)
    names = [name for loss in recipe.losses for name in sources.columns(loss)]
    routes = {name: "query" if name == "query" else "document" for name in names}
    prompts = set_prompts(encoder, routes, arguments)
    asked, limit = mix(sources.queries), encoder.max_seq_length
    for side, column, name in (("source", "query", "queries"), ("target", "passage", "passages")):
        report = report_texts(encoder, asked, side, prompts.get(column, ""), name=name)
        log_truncation(report.truncated, report.texts, report.longest, max_length=limit, what=name)
    if recipe.retrieval.encoders == "separate":
        encoder = separate_encoders(encoder)
    elif _has_routes(encoder):
        raise ValueError("this model has separate encoders: got retrieval.encoders 'shared'; take 'separate'.")
    losses = {
        loss: {**options, "columns": [names.index(name) for name in sources.columns(loss)]}
        for loss, options in recipe.losses.items()
    }
    total = build_loss(dataclasses.replace(recipe, losses=losses), encoder, token_ids=[set(), set()])
    loss = TermByTermLoss(encoder, total.term_list())
    arguments = replaced(
        arguments,
        output_dir=str(run.folder.training),
        # The epochs of a stream are not known to ST, so they are counted out here.
        max_steps=total_steps(arguments, sources.rows),
        prompts=prompts or None,
        prompt_name=None,
        router_mapping=routes if _has_routes(encoder) else {},
    )
    return RetrievalTrainer(
        model=encoder,
        args=arguments,
        train_dataset=join_sources(sources, recipe),
        loss=loss,
        evaluator=run.evaluator,
        callbacks=callbacks,
    )
