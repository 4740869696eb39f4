"""Streams of several languages as one endless stream of batches: balanced, shuffled, of like length, no duplicates."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.balance import check_balance, language_shares, shuffled
from st_xling.data.batches import WINDOW_BATCHES, arrange
from st_xling.data.pairs import COLUMNS, stream_rows, text_features
from st_xling.data.text_columns import exact_keys

if TYPE_CHECKING:
    from datasets import IterableDataset

logger = logging.getLogger(__name__)

BUFFER_ROWS = 50_000
READ_ROWS = 1000

Rows = dict[str, list[str]]


def mix_streams(
    data: Mapping[str, IterableDataset],
    *,
    batch_rows: int,
    seed: int = 0,
    alpha: float | None = None,
    temperature: float | None = None,
    one_pair: bool = False,
    keep_duplicates_apart: bool = True,
    group_by_length: bool = True,
    buffer_rows: int = BUFFER_ROWS,
    more: Sequence[str] = (),
) -> IterableDataset:
    """One stream without an end whose rows, cut every ``batch_rows``, are the batches of training.

    Each data set is read from its start as often as need be. Rows come out of a buffer: it is filled, shuffled, cut
    into batches, emptied, filled again. What comes out is a function of the data and the options alone, so a resumed
    run that skips as many batches as it had goes on where it stopped.

    Args:
        data: Name → stream with the columns of every parallel data set. A data set counts as one language.
        batch_rows: Rows of a batch, of all processes together.
        seed: Of all drawing and shuffling.
        alpha: Balance languages, see :func:`language_shares`, by the rows that the streams say they have.
        temperature: The same, as 1 / ``alpha``.
        one_pair: Every batch comes from a single data set.
        keep_duplicates_apart: No two rows of a batch share a text; see :func:`keep_apart`.
        group_by_length: Batch sentences of like length.
        buffer_rows: Rows in the buffer (with ``one_pair``, one for each data set); at least 32 batches are taken.
        more: Further columns of text that every data set has, such as hard negatives; kept apart with the others.
    Raises:
        ValueError: Options out of range; sizes unknown that the balance needs; while reading, too few distinct texts to
            fill a batch.
    """
    from datasets import Features, IterableDataset, Value

    sizes = [stream_rows(stream) for stream in data.values()]
    # A buffer larger than the data would only hold some rows twice.
    known = None if None in sizes else sum(size or 0 for size in sizes)
    batches = partial(
        _batches,
        dict(data),
        shares=list(stream_shares(data, alpha=alpha, temperature=temperature).values()),
        size=batch_rows,
        window=max(WINDOW_BATCHES, min(buffer_rows, known or buffer_rows) // batch_rows) * batch_rows,
        seed=seed,
        one_pair=one_pair,
        group_by_length=group_by_length,
        keep_duplicates_apart=keep_duplicates_apart,
        texts=("source", "target", *more),
    )
    features = Features({**text_features(), **{name: Value("string") for name in more}})
    # interleave_datasets of datasets starts threads for each row, which makes it the slowest part by far.
    return IterableDataset.from_generator(_rows, features=features, gen_kwargs={"batches": batches})


def stream_shares(
    data: Mapping[str, Any], *, alpha: float | None = None, temperature: float | None = None
) -> dict[str, float]:
    """Share of each stream in the batches; where a size is unknown and no balance was asked for, all the same."""
    rows = {name: stream_rows(stream) for name, stream in data.items()}
    unknown = [name for name, count in rows.items() if count is None]
    exponent = check_balance(alpha, temperature)
    if unknown and len(rows) > 1 and exponent != 0:
        if alpha is not None or temperature is not None:
            raise ValueError(
                f"balancing streams needs their sizes: {', '.join(unknown)} says none; take alpha=0 (all alike)."
            )
        logger.warning("%s does not say how many rows it has: all data sets get the same share", ", ".join(unknown))
    if unknown:
        rows = dict.fromkeys(rows, 1)
    return dict(zip(rows, language_shares([count or 1 for count in rows.values()], alpha=exponent)))


def _batches(
    streams: Mapping[str, IterableDataset],
    *,
    shares: Sequence[float],
    size: int,
    window: int,
    seed: int,
    one_pair: bool,
    group_by_length: bool,
    keep_duplicates_apart: bool,
    texts: Sequence[str],
) -> Iterator[Rows]:
    """What :func:`mix_streams` does; ``window`` is the rows of a full buffer, ``texts`` the columns of text."""
    sources = [_Source(name, stream, list(dict.fromkeys([*COLUMNS, *texts]))) for name, stream in streams.items()]

    def arranged(buffer: Rows, name: str, own_seed: list[int]) -> Iterator[Rows]:
        """The batches of a buffer of rows."""
        count = len(buffer["source"])
        lengths = keys = None
        if group_by_length:
            lengths = np.array([sum(map(len, row)) for row in zip(*(buffer[name] for name in texts))])
        if keep_duplicates_apart:
            keys = np.column_stack([exact_keys(buffer[name]) for name in texts])
        batches, _ = arrange(shuffled(count, own_seed), size, lengths=lengths, keys=keys, drop_last=True)
        whole = [batch for batch in batches if len(batch) == size]  # a short one would shift all that follow
        if not whole:
            raise ValueError(
                f"{name}: {count:,} rows in a row hold too few distinct texts for a batch of {size}; lower batch_size, "
                "remove repeated rows, or switch keep_duplicates_apart off."
            )
        for place in shuffled(len(whole), [*own_seed, 1]):
            yield {column: [values[row] for row in whole[place]] for column, values in buffer.items()}

    def of_one(place: int) -> Iterator[Rows]:
        for number in itertools.count():
            yield from arranged(sources[place].take(window), sources[place].name, [seed, number, 1, place])

    if one_pair:  # a buffer for each stream, which take turns by their shares
        turns, draws = [of_one(place) for place in range(len(sources))], np.random.default_rng([seed, 0])
        while True:
            for place in draws.choice(len(sources), size=1000, p=shares):
                yield next(turns[place])
    for number in itertools.count():  # one buffer, in which each stream has its share
        counts = np.random.default_rng([seed, number, 0]).multinomial(window, shares)
        parts = [source.take(int(count)) for source, count in zip(sources, counts)]
        buffer = {name: [value for part in parts for value in part[name]] for name in parts[0]}
        yield from arranged(buffer, ", ".join(streams), [seed, number, 1])


def _rows(batches: Callable[[], Iterator[Rows]]) -> Iterator[dict[str, str]]:
    for batch in batches():
        yield from (dict(zip(batch, values)) for values in zip(*batch.values()))


class _Source:
    """The rows of a stream, again from its start when it has ended."""

    def __init__(self, name: str, stream: IterableDataset, columns: Sequence[str]) -> None:
        self.name, self.stream, self.columns = name, stream, list(columns)
        self.batches = self._batches()
        self.rest: Rows = {column: [] for column in self.columns}

    def take(self, count: int) -> Rows:
        taken = self.rest
        while len(taken["source"]) < count:
            batch = next(self.batches)
            for column in self.columns:
                taken[column] += batch[column]
        self.rest = {column: values[count:] for column, values in taken.items()}
        return {column: values[:count] for column, values in taken.items()}

    def _batches(self) -> Iterator[Rows]:
        while True:
            empty = True
            for batch in self.stream.select_columns(self.columns).iter(batch_size=READ_ROWS):
                empty = False
                yield batch
            if empty:
                raise ValueError(f"data set {self.name!r} is empty; check its file, or leave it out.")
