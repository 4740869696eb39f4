"""Query-passage pairs, parallel text and other text, of different sizes, as one stream of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from st_xling.data.retrieval.training_text import negative_columns
from st_xling.data.stream_mixture import mix_streams
from st_xling.training.arguments import sampler_options
from st_xling.training.mixture import as_stream, fingerprint, mix
from st_xling.training.recipe import Recipe, TrainingOptions
from st_xling.training.retriever.recipe import LANGUAGE, RANKING, SEMANTIC, RetrievalRecipe

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

Data = Mapping[str, "Dataset"]


@dataclass(frozen=True)
class RetrievalSources:
    """What a retriever learns from; every data set has the four columns of parallel text.

    Attributes:
        queries: Name → queries (``source``) and passages (``target``); perhaps hard negatives: passages that are near,
            and wrong (``negative_1``, ``negative_2``, …), as many in each data set.
        parallel: Name → parallel text, for semaCL and langCL.
        others: Name → sentences without translations, for langCL: ``source`` and ``target`` alike.
    """

    queries: Data
    parallel: Data = field(default_factory=dict)
    others: Data = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Query-passage pairs: an epoch."""
        return sum(len(part) for part in self.queries.values())

    @property
    def negatives(self) -> list[str]:
        """Columns of hard negatives."""
        return negative_columns(next(iter(self.queries.values())).column_names) if self.queries else []

    def columns(self, loss: str) -> list[str]:
        """Text columns that a term looks at."""
        if loss == RANKING:
            return ["query", "passage", *self.negatives]
        if loss == SEMANTIC:
            return ["semantic_source", "semantic_target"]
        return ["language_source", "language_target", *(["other"] if self.others else [])]

    def check(self, recipe: Recipe) -> None:
        """Raise ``ValueError`` unless the recipe's terms have their data, and all data a term."""
        mix(self.queries)
        counts = {name: len(negative_columns(part.column_names)) for name, part in self.queries.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ValueError(f"queries need as many hard negatives in each data set: got {found}; choose by ?columns=.")
        used = set(recipe.losses)
        if used & {SEMANTIC, LANGUAGE} and not self.parallel:
            raise ValueError(f"{recipe.name} learns from parallel text too: got none; give it with --parallel.")
        if self.parallel and not used & {SEMANTIC, LANGUAGE}:
            raise ValueError(f"{recipe.name} has no use for parallel text: leave --parallel out, or take ir-semacl.")
        if self.others and LANGUAGE not in used:
            raise ValueError(f"{recipe.name} has no use for other text: leave --others out, or take ir-langcl.")
        for part in (self.parallel, self.others):
            if part:
                mix(part)

    def manifest(self) -> dict[str, dict[str, Any]]:
        """Role and name → rows and the fingerprint of the text."""
        roles = {"queries": self.queries, "parallel": self.parallel, "others": self.others}
        return {
            f"{role}:{name}": {
                "rows": len(part),
                "sha8": fingerprint(part, ["source", "target", *negative_columns(part.column_names)]),
            }
            for role, data in roles.items()
            for name, part in data.items()
        }


def join_sources(sources: RetrievalSources, recipe: RetrievalRecipe) -> IterableDataset:
    """One stream without an end, whose rows hold a piece of each source that the recipe's terms look at.

    Cut every ``batch_rows(recipe)`` rows, it gives the batches of training. Every term reads its source in an order of
    its own, and from the start again when it has come to the end, so the sources' sizes need not agree. In a batch the
    rows of each source are of like length, without a text twice, and several pairs of languages are mixed, as the
    options say. Side by side, rows of different sources have nothing to do with each other; where parallel text has
    batches of another size, the cells that are left over are ``None``.

    Raises:
        ValueError: As :meth:`RetrievalSources.check`; while reading, too few distinct texts to fill a batch.
    """
    from datasets import Features, IterableDataset, Value

    sources.check(recipe)
    parts = [part for loss in recipe.losses for part in _parts(sources, loss, recipe)]
    features = Features({name: Value("string") for part in parts for name in part.columns})
    return IterableDataset.from_generator(_rows, features=features, gen_kwargs={"plan": _Plan(tuple(parts))})


def batch_rows(recipe: RetrievalRecipe) -> int:
    """Rows of a batch of :func:`join_sources`: those of the larger of the two kinds of text."""
    return max(recipe.training.batch_size, recipe.retrieval.parallel_batch_size or 0)


@dataclass(frozen=True)
class _Part:
    columns: dict[str, str]  # of the rows → of the stream
    stream: IterableDataset
    rows: int  # of a batch


@dataclass(frozen=True)
class _Plan:
    parts: tuple[_Part, ...]  # a tuple: of a list, the host would hand each worker a part


def _parts(sources: RetrievalSources, loss: str, recipe: RetrievalRecipe) -> list[_Part]:
    """What one term looks at, in the order of :meth:`RetrievalSources.columns`."""
    names, sides = sources.columns(loss), ("source", "target")
    options, parallel = recipe.training, recipe.retrieval.parallel_batch_size or recipe.training.batch_size

    def part(columns: dict[str, str], data: Data, rows: int, place: int) -> _Part:
        more = [name for name in columns.values() if name not in sides]
        return _Part(columns, _cycled(data, options, rows, place, more), rows)

    if loss == RANKING:
        columns = dict(zip(names, (*sides, *sources.negatives)))
        return [part(columns, sources.queries, options.batch_size, 0)]
    if loss == SEMANTIC:
        return [part(dict(zip(names, sides)), sources.parallel, parallel, 1)]
    pairs = part(dict(zip(names[:2], sides)), sources.parallel, parallel, 2)
    others = {name: "source" for name in names[2:]}
    return [pairs, part(others, sources.others, parallel, 3)] if others else [pairs]


def _cycled(data: Data, options: TrainingOptions, rows: int, place: int, more: list[str]) -> IterableDataset:
    return mix_streams(
        {name: as_stream(name, part) for name, part in data.items()},
        batch_rows=rows,
        seed=options.seed + 1_000_003 * place,
        group_by_length=options.group_by_length,
        buffer_rows=options.shuffle_buffer,
        more=more,
        **sampler_options(options),
    )


def _rows(plan: _Plan) -> Iterator[dict[str, str | None]]:
    streams = [iter(part.stream) for part in plan.parts]
    while True:
        for row in range(max(part.rows for part in plan.parts)):
            found = [next(stream) if row < part.rows else {} for part, stream in zip(plan.parts, streams)]
            yield {
                name: own.get(column) for part, own in zip(plan.parts, found) for name, column in part.columns.items()
            }
