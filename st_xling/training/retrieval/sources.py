"""Query-passage pairs, parallel text and other text, of different sizes, as one stream of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from st_xling.data.stream_mixture import mix_streams
from st_xling.training.arguments import sampler_options
from st_xling.training.mixture import as_stream, fingerprint, mix
from st_xling.training.recipe import Recipe, TrainingOptions
from st_xling.training.retrieval.recipe import LANGUAGE, RANKING, SEMANTIC

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

Data = Mapping[str, "Dataset"]


@dataclass(frozen=True)
class RetrievalSources:
    """What a retriever learns from; every data set has the four columns of parallel text.

    Attributes:
        queries: Name → queries (``source``) and passages (``target``).
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

    def columns(self, loss: str) -> list[str]:
        """Text columns that a term looks at."""
        if loss == RANKING:
            return ["query", "passage"]
        if loss == SEMANTIC:
            return ["semantic_source", "semantic_target"]
        return ["language_source", "language_target", *(["other"] if self.others else [])]

    def check(self, recipe: Recipe) -> None:
        """Raise ``ValueError`` unless the recipe's terms have their data, and all data a term."""
        mix(self.queries)
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
            f"{role}:{name}": {"rows": len(part), "sha8": fingerprint(part)}
            for role, data in roles.items()
            for name, part in data.items()
        }


def join_sources(sources: RetrievalSources, recipe: Recipe) -> IterableDataset:
    """One stream without an end, whose rows hold a piece of each source that the recipe's terms look at.

    Cut every ``batch_size`` rows, it gives the batches of training. Every term reads its source in an order of its own,
    and from the start again when it has come to the end, so the sources' sizes need not agree. In a batch the rows of
    each source are of like length, without a text twice, and several pairs of languages are mixed, as the options say.
    Side by side, rows of different sources have nothing to do with each other.

    Raises:
        ValueError: As :meth:`RetrievalSources.check`; while reading, too few distinct texts to fill a batch.
    """
    from datasets import Features, IterableDataset, Value

    sources.check(recipe)
    parts = [part for loss in recipe.losses for part in _parts(sources, loss, recipe.training)]
    names = [name for part in parts for name in part.columns]
    features = Features({name: Value("string") for name in names})
    return IterableDataset.from_generator(_rows, features=features, gen_kwargs={"plan": _Plan(tuple(parts))})


@dataclass(frozen=True)
class _Part:
    columns: list[str]
    stream: IterableDataset


@dataclass(frozen=True)
class _Plan:
    parts: tuple[_Part, ...]  # a tuple: of a list, the host would hand each worker a part


def _parts(sources: RetrievalSources, loss: str, options: TrainingOptions) -> list[_Part]:
    """What one term looks at, in the order of :meth:`RetrievalSources.columns`."""
    columns = sources.columns(loss)
    if loss == RANKING:
        return [_Part(columns, _cycled(sources.queries, options, 0))]
    if loss == SEMANTIC:
        return [_Part(columns, _cycled(sources.parallel, options, 1))]
    pairs = _Part(columns[:2], _cycled(sources.parallel, options, 2))
    return [pairs, _Part(columns[2:], _cycled(sources.others, options, 3))] if sources.others else [pairs]


def _cycled(data: Data, options: TrainingOptions, place: int) -> IterableDataset:
    return mix_streams(
        {name: as_stream(name, part) for name, part in data.items()},
        batch_rows=options.batch_size,
        seed=options.seed + 1_000_003 * place,
        group_by_length=options.group_by_length,
        buffer_rows=options.shuffle_buffer,
        **sampler_options(options),
    )


def _rows(plan: _Plan) -> Iterator[dict[str, str]]:
    for rows in zip(*(part.stream for part in plan.parts)):
        yield {
            name: row[side]
            for part, row in zip(plan.parts, rows)
            for name, side in zip(part.columns, ("source", "target"))
        }
