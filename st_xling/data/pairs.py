"""Data sets of sentence pairs, in memory or as a stream."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from st_xling.utils.text import ParallelTextError

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

COLUMNS = ("source", "target", "source_language", "target_language")
"""The columns of every parallel dataset, all strings, in this order."""

PairRow = tuple[str, ...]
"""The cells of :data:`COLUMNS`, and those of hard negatives where there are any."""

_TABLE_ROWS = 10_000


def pair_columns(negatives: int = 0) -> list[str]:
    """Return :data:`COLUMNS`, and ``negative_1``, ``negative_2``, … behind them."""
    return [*COLUMNS, *(f"negative_{number + 1}" for number in range(negatives))]


def text_features(negatives: int = 0) -> Any:
    """Return the features of a parallel data set with so many hard negatives."""
    from datasets import Features, Value

    return Features({name: Value("string") for name in pair_columns(negatives)})


def pair_dataset(rows: Iterable[PairRow], negatives: int = 0) -> Dataset:
    """Return rows of :func:`pair_columns`, in that order, as a data set in memory."""
    import pyarrow as pa
    from datasets import Dataset

    # Tables made here are four times faster than Dataset.from_dict, which looks at each value for its type.
    schema = pa.schema([(column, pa.string()) for column in pair_columns(negatives)])
    tables, iterator = [schema.empty_table()], iter(rows)
    while part := list(islice(iterator, _TABLE_ROWS)):
        tables.append(pa.table([pa.array(cells, pa.string()) for cells in zip(*part)], schema=schema))
    return Dataset(pa.concat_tables(tables).combine_chunks())


def stream_rows(dataset: Any) -> int | None:
    """Return the number of rows of a stream, as its ``info`` states or estimates; ``None`` if it is unknown."""
    splits = dataset.info.splits or {}
    split = str(dataset.split or next(iter(splits), None))
    return int(splits[split].num_examples or 0) or None if split in splits else None


def head(dataset: Dataset | IterableDataset, rows: int) -> Dataset:
    """Return the first rows of a stream, at most ``rows``, in memory; a data set that is no stream as it is."""
    import pyarrow as pa
    from datasets import Dataset

    if isinstance(dataset, Dataset):
        return dataset
    names = list(dataset.column_names or COLUMNS)
    batches = dataset.select_columns(names).take(rows).iter(batch_size=10_000)
    tables = [pa.table(batch) for batch in batches]
    return Dataset(pa.concat_tables(tables)) if tables else Dataset.from_dict({name: [] for name in names})


def require_rows(dataset: Dataset, where: str) -> Dataset:
    """Return ``dataset`` itself, if it has rows.

    Raises:
        ParallelTextError: If it has none; ``where`` names its source.
    """
    if len(dataset) == 0:
        raise no_rows(where)
    return dataset


def no_rows(where: str) -> ParallelTextError:
    """Return the error for a place without sentence pairs."""
    return ParallelTextError(f"expected at least one sentence pair in {where}, got none; check that it is the file")
