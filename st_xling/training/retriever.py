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
from st_xling.training.run import Evaluators, OnLeak, Run, TrainingResult, fit_trainer, set_prompts
from st_xling.training.trainer import CrossLingualTrainer

RANKING = "in_batch_ranking"
SEMANTIC = "semantic_contrastive"
LANGUAGE = "language_contrastive"

_NOT_OF_RETRIEVERS = ("lora", "mini_batch_size", "mini_batch_num_tokens", "warm_up_heads", "save_vocabulary_head")
"""Training arguments of encoders only."""

DatasetsByName = Mapping[str, Dataset]


@dataclass(frozen=True)
class TermInput:
    """Columns of a source that a term of the loss reads.

    Attributes:
        number: Number of the source, from which the order of its rows is drawn.
        columns: Name of each column in the joined rows → in the source.
        data: The source.
    """

    number: int
    columns: dict[str, str]
    data: DatasetsByName


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

    queries: DatasetsByName
    parallel: DatasetsByName = field(default_factory=dict)
    others: DatasetsByName = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Query-passage pairs: an epoch."""
        return sum(len(dataset) for dataset in self.queries.values())

    def read_by(self, loss: str) -> list[TermInput]:
        """Return what a term reads, in the order of its columns."""
        if loss == RANKING:
            first = next(iter(self.queries.values()))  # all data sets have as many hard negatives
            columns = {"query": "source", "passage": "target"}
            columns |= {name: name for name in negative_columns(first.column_names)}
            return [TermInput(0, columns, self.queries)]
        if loss == SEMANTIC:
            return [TermInput(1, {"semantic_source": "source", "semantic_target": "target"}, self.parallel)]
        inputs = [TermInput(2, {"language_source": "source", "language_target": "target"}, self.parallel)]
        if self.others:
            inputs.append(TermInput(3, {"other": "source"}, self.others))
        return inputs

    def columns(self, loss: str) -> list[str]:
        """Return the text columns that a term reads."""
        names: list[str] = []
        for term_input in self.read_by(loss):
            names += term_input.columns
        return names

    def texts(self) -> Iterator[str]:
        """Yield the texts of all data sets."""
        for data in filter(None, (self.queries, self.parallel, self.others)):
            yield from column_texts(mix(data), "source", "target")

    def named(self) -> dict[str, Dataset]:
        """All data sets, by role and name."""
        roles = {"queries": self.queries, "parallel": self.parallel, "others": self.others}
        named: dict[str, Dataset] = {}
        for role, data in roles.items():
            for name, dataset in data.items():
                named[f"{role}:{name}"] = dataset
        return named

    @classmethod
    def of_named(cls, named: Mapping[str, Dataset]) -> RetrievalSources:
        """Return the sources whose :meth:`named` these data sets are."""
        roles: dict[str, dict[str, Dataset]] = {"queries": {}, "parallel": {}, "others": {}}
        for key, dataset in named.items():
            role, _, name = key.partition(":")
            roles[role][name] = dataset
        return cls(queries=roles["queries"], parallel=roles["parallel"], others=roles["others"])

    def check(self, recipe: RetrievalRecipe) -> None:
        """Raise ``ValueError`` unless the recipe's terms have their data, and all data a term."""
        mix(self.queries)
        counts = {name: len(negative_columns(dataset.column_names)) for name, dataset in self.queries.items()}
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
        for data in filter(None, (self.parallel, self.others)):
            mix(data)

    def manifest(self) -> dict[str, dict[str, Any]]:
        """Role and name → rows and the fingerprint of the text."""
        described: dict[str, dict[str, Any]] = {}
        for name, dataset in self.named().items():
            columns = ["source", "target", *negative_columns(dataset.column_names)]
            described |= describe({name: dataset}, columns)
        return described


def join_sources(sources: RetrievalSources, recipe: RetrievalRecipe) -> IterableDataset:
    """One stream without an end, whose rows hold a piece of each source that the recipe's terms look at.

    Cut by the batch size, it gives the batches of training. Every term reads its source in another order, and
    from the start again when it has come to the end, so the sources' sizes need not agree. In a batch the rows of each
    source are of like length, without a text twice, and several pairs of languages are mixed, as the options say. Side
    by side, rows of different sources have nothing to do with each other.

    Raises:
        ValueError: As :meth:`RetrievalSources.check`; while reading, too few distinct texts to fill a batch.
    """
    sources.check(recipe)
    streams: list[tuple[dict[str, str], IterableDataset]] = []
    features = Features()
    for loss in recipe.losses:
        for term_input in sources.read_by(loss):
            stream = mix_endless(
                term_input.data,
                recipe.arguments,
                shuffle_buffer=recipe.data.shuffle_buffer,
                negative_names=negative_columns(term_input.columns),
                order=term_input.number,
            )
            streams.append((term_input.columns, stream))
            for name in term_input.columns:
                features[name] = Value("string")
    return IterableDataset.from_generator(partial(_join_rows, streams), features=features)


def _join_rows(streams: Sequence[tuple[dict[str, str], IterableDataset]]) -> Iterator[dict[str, str]]:
    """Put the next row of each stream into one, under the columns' names in the joined rows."""
    for rows in zip(*(stream for _, stream in streams)):
        joined: dict[str, str] = {}
        for (columns, _), row in zip(streams, rows):
            for name, column in columns.items():
                joined[name] = row[column]
        yield joined


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
            term_columns = [dict(column) for column in term.select(columns)]
            components[name] = term.weight * term.loss(term_columns, labels)
        return components

    def single_terms(self) -> list[TermByTermLoss]:
        """Each term as a separate loss over the same columns."""
        losses = [TermByTermLoss(self.model, [term]) for term in self.term_list()]
        for loss in losses:  # a single term may read fewer columns than the data have
            loss.min_columns = self.min_columns
            loss.max_columns = self.max_columns
        return losses


class RetrievalTrainer(CrossLingualTrainer):
    """:class:`CrossLingualTrainer` with a backward pass for each term of a :class:`TermByTermLoss`.

    Gradients add up until the optimizer's step, which is that of one backward pass through the sum, in the memory of
    the largest term in place of all of them.

    Source:
        Hu et al. 2023, section 3.4: the terms are differentiated one after the other.
    """

    reads_sentences = False

    def training_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:
        total_loss = self.loss
        if not isinstance(total_loss, TermByTermLoss):
            return super().training_step(model, inputs, *args, **kwargs)
        values: list[Tensor] = []
        try:
            for term_loss in total_loss.single_terms():
                self.loss = term_loss  # type: ignore[assignment]
                values.append(super().training_step(model, dict(inputs), *args, **kwargs))
        finally:
            self.loss = total_loss
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
    static: Mapping[str, Any] | None = None,
    evaluator: Evaluators | None = None,
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
        model: Hub id, folder, a loaded model, or ``"tiny"`` or ``"static"``: a small model built from the data.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``model="tiny"``.
        static: Options of :func:`~st_xling.models.static_encoder`, for ``model="static"``.
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
    sources.check(recipe)
    with run.opened("retrievers"):
        named = run.check_leaks(sources.named())
        if run.leak is not None and run.leak.dropped:
            sources = RetrievalSources.of_named(named)
        checkpoint = run.claim({"data": sources.manifest()}, longer=True)
        trainer = _build_trainer(run, recipe, sources, callbacks, checkpoint)
        return run.fit(lambda: fit_trainer(trainer, run.folder, checkpoint, name=recipe.name))


def _build_trainer(
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
    names: list[str] = []
    for loss_name in recipe.losses:
        names += sources.columns(loss_name)
    routes = {name: "query" if name == "query" else "document" for name in names}
    prompts = set_prompts(encoder, routes, arguments)
    _report_lengths(encoder, sources, prompts)
    if recipe.retrieval.encoders == "separate":
        encoder = separate_encoders(encoder)
    elif _has_routes(encoder):
        raise ValueError("this model has separate encoders: got retrieval.encoders 'shared'; take 'separate'.")
    loss = _build_loss(recipe, sources, encoder, names)
    router_mapping = routes if _has_routes(encoder) else {}
    arguments = replaced(
        arguments,
        output_dir=str(run.folder.training),
        # The epochs of a stream are not known to ST, so they are counted out here.
        max_steps=total_steps(arguments, sources.rows),
        prompts=prompts or None,
        prompt_name=None,
        router_mapping=router_mapping,
    )
    return RetrievalTrainer(
        model=encoder,
        args=arguments,
        train_dataset=join_sources(sources, recipe),
        loss=loss,
        evaluator=run.evaluator,
        callbacks=callbacks,
    )


def _report_lengths(encoder: SentenceTransformer, sources: RetrievalSources, prompts: Mapping[str, str]) -> None:
    """Warn of queries and passages that are longer than the model reads."""
    queries = mix(sources.queries)
    for side, column, name in (("source", "query", "queries"), ("target", "passage", "passages")):
        report = report_texts(encoder, queries, side, prompts.get(column, ""), name=name)
        log_truncation(report.truncated, report.texts, report.longest, max_length=encoder.max_seq_length, what=name)


def _build_loss(
    recipe: RetrievalRecipe, sources: RetrievalSources, encoder: SentenceTransformer, names: Sequence[str]
) -> TermByTermLoss:
    """Build the recipe's losses, each of which reads the columns of its sources.

    Args:
        recipe: Losses and their options.
        sources: Training data.
        encoder: The model to train.
        names: Columns of the joined rows.
    """
    losses: dict[str, dict[str, Any]] = {}
    for name, options in recipe.losses.items():
        positions = [names.index(column) for column in sources.columns(name)]
        losses[name] = {**options, "columns": positions}
    total = build_loss(dataclasses.replace(recipe, losses=losses), encoder, token_ids=[set(), set()])
    return TermByTermLoss(encoder, total.term_list())
