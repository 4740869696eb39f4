"""Mix streams of several languages into one endless stream of batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.balance import check_balance, language_shares, shuffled
from st_xling.data.batches import WINDOW_BATCHES, arrange
from st_xling.data.pairs import COLUMNS, stream_rows
from st_xling.data.text_columns import exact_keys

if TYPE_CHECKING:
    from datasets import IterableDataset

logger = logging.getLogger(__name__)

BUFFER_ROWS = 50_000
CHUNK_ROWS = 16


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
    """Mix streams into one without an end; every ``batch_rows`` rows of it are a training batch.

    Streams are repeated and interleaved by ``datasets``. A buffer of rows is filled, shuffled and cut into batches,
    then filled again. The result depends on the data and the options only, so a resumed run that skips the batches it
    has seen continues where it stopped.

    Args:
        data: Name → stream with the columns of a parallel data set. Each data set counts as one language.
        batch_rows: Rows of a batch, over all processes.
        seed: Seed of drawing and shuffling.
        alpha: Balance languages by the rows that the streams report; see :func:`language_shares`.
        temperature: The same as 1 / ``alpha``.
        one_pair: Take each batch from a single data set.
        keep_duplicates_apart: Let no two rows of a batch share a text; see :func:`keep_apart`.
        group_by_length: Batch sentences of similar length.
        buffer_rows: Rows in the buffer (with ``one_pair``, in that of each data set); at least 32 batches.
        more: Further text columns of every data set, such as hard negatives, which are kept apart too.
    Raises:
        ValueError: If an option is out of range, a data set is empty or its size unknown where balancing needs it; when
            reading, if a buffer holds too few distinct texts for a batch.
    """
    from datasets import Features, IterableDataset, Value, interleave_datasets

    columns = list(dict.fromkeys([*COLUMNS, *more]))
    for name, stream in data.items():
        if not list(stream.take(1)):
            raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")
    shares = list(stream_shares(data, alpha=alpha, temperature=temperature).values())
    sizes = [stream_rows(stream) for stream in data.values()]
    # A buffer larger than the data would hold some rows twice.
    known = None if None in sizes else sum(size or 0 for size in sizes)
    options = {
        "size": batch_rows,
        "window": max(WINDOW_BATCHES, min(buffer_rows, known or buffer_rows) // batch_rows) * batch_rows,
        "texts": ("source", "target", *more),
        "group_by_length": group_by_length,
        "keep_duplicates_apart": keep_duplicates_apart,
    }
    features = Features({name: Value("string") for name in columns})
    lists = Features({name: [Value("string")] for name in columns})
    # In small groups: interleaving row by row is several times slower.
    chunks = [stream.select_columns(columns).repeat(None).batch(CHUNK_ROWS) for stream in data.values()]

    def arranged(part: IterableDataset, name: str, number: int) -> IterableDataset:
        given = {"chunks": part, "name": name, "seed": [seed, number], **options}
        return IterableDataset.from_generator(_batches, features=lists, gen_kwargs=given)

    if one_pair:
        parts = [arranged(part, name, number) for number, (name, part) in enumerate(zip(data, chunks))]
        batches = interleave_datasets(parts, probabilities=shares, seed=seed)
    else:
        batches = arranged(interleave_datasets(chunks, probabilities=shares, seed=seed), ", ".join(data), 0)
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
                f"balancing streams needs their sizes: {', '.join(unknown)} has none; use alpha=0 (all alike)."
            )
        logger.warning("%s does not say how many rows it has: all data sets get the same share", ", ".join(unknown))
    if unknown:
        rows = dict.fromkeys(rows, 1)
    return dict(zip(rows, language_shares([count or 1 for count in rows.values()], alpha=exponent)))


def _batches(
    chunks: IterableDataset,
    *,
    name: str,
    seed: Sequence[int],
    size: int,
    window: int,
    texts: Sequence[str],
    group_by_length: bool,
    keep_duplicates_apart: bool,
) -> Iterator[dict[str, list[str]]]:
    """Yield the batches of one buffer of ``window`` rows after the other."""
    rows: dict[str, list[str]] = {}
    number = 0
    for chunk in chunks:
        for column, values in chunk.items():
            rows.setdefault(column, []).extend(values)
        while len(rows["source"]) >= window:
            buffer = {column: values[:window] for column, values in rows.items()}
            rows = {column: values[window:] for column, values in rows.items()}
            lengths = keys = None
            if group_by_length:
                lengths = np.array([sum(map(len, row)) for row in zip(*(buffer[text] for text in texts))])
            if keep_duplicates_apart:
                keys = np.column_stack([exact_keys(buffer[text]) for text in texts])
            whole = _whole_batches(shuffled(window, [*seed, number]), size, lengths, keys)
            if not whole:
                raise ValueError(
                    f"{name}: {window:,} rows in a row hold too few distinct texts for a batch of {size}; lower "
                    "batch_size, remove repeated rows, or switch keep_duplicates_apart off."
                )
            for place in shuffled(len(whole), [*seed, number, 1]):
                yield {column: [values[row] for row in whole[place]] for column, values in buffer.items()}
            number += 1


def _whole_batches(
    order: np.ndarray, size: int, lengths: np.ndarray | None, keys: np.ndarray | None
) -> list[np.ndarray]:
    """Cut into batches of exactly ``size`` rows: a shorter one would shift all that follow."""
    whole: list[np.ndarray] = []
    while len(order) >= size:
        batches, _ = arrange(order, size, lengths=lengths, keys=keys, drop_last=True)
        full = [batch for batch in batches if len(batch) == size]
        if not full:
            break
        whole += full
        # Rows of batches that repeated texts left short are cut again.
        order = np.concatenate([order[:0], *(batch for batch in batches if len(batch) < size)])
    return whole


def _rows(batches: IterableDataset) -> Iterator[dict[str, str]]:
    for batch in batches:
        yield from (dict(zip(batch, values)) for values in zip(*batch.values()))
