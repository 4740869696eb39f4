"""Sentence pairs on their way into a data set, in memory or as a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from st_xling.data.faults import FaultLog, ParallelTextError, StreamFaultLog

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

COLUMNS = ("source", "target", "source_language", "target_language")
"""The columns of every parallel dataset, all strings, in this order."""

PairRow = tuple[str, ...]
"""The cells of :data:`COLUMNS`, and those of hard negatives where there are any."""

SURROGATE = re.compile("[\ud800-\udfff]")

_TABLE_ROWS = 10_000


def pair_columns(negatives: int = 0) -> list[str]:
    """:data:`COLUMNS`, and ``negative_1``, ``negative_2``, … behind them."""
    return [*COLUMNS, *(f"negative_{number + 1}" for number in range(negatives))]


def text_features(negatives: int = 0) -> Any:
    """The features of a parallel data set with so many hard negatives."""
    from datasets import Features, Value

    return Features({name: Value("string") for name in pair_columns(negatives)})


def is_pair(faults: FaultLog, where: str, line: int, names: Sequence[str], texts: Sequence[object]) -> bool:
    r"""Whether all cells are sentences; notes what is wrong with each that is none.

    White space around a sentence is kept; a sentence of nothing else counts as empty. Half a surrogate pair, which JSON
    can spell (``"\ud83d"``), is in no text.
    """
    if all(isinstance(text, str) and text.isascii() and not text.isspace() and text for text in texts):
        return True
    fine = True
    for column, text in zip(names, texts):
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            faults.add(where, line, "non-string value", f"{column} is {kind}")
        elif not text.strip():
            faults.add(where, line, "empty side", column)
        elif not text.isascii() and SURROGATE.search(text):
            faults.add(where, line, "bad JSON", f"{column} holds half a surrogate pair")
        else:
            continue
        fine = False
    return fine


def pair_dataset(rows: Iterable[PairRow], negatives: int = 0) -> Dataset:
    """Rows of :func:`pair_columns`, in that order, as a dataset."""
    import pyarrow as pa
    from datasets import Dataset

    # Tables made here are four times faster than Dataset.from_dict, which looks at each value for its type.
    schema = pa.schema([(column, pa.string()) for column in pair_columns(negatives)])
    tables, iterator = [schema.empty_table()], iter(rows)
    while part := list(islice(iterator, _TABLE_ROWS)):
        tables.append(pa.table([pa.array(cells, pa.string()) for cells in zip(*part)], schema=schema))
    return Dataset(pa.concat_tables(tables).combine_chunks())


def read_pairs(rows: Iterable[PairRow], where: str, faults: FaultLog, negatives: int = 0) -> Dataset:
    """All rows of a reader, in order.

    Raises:
        ParallelTextError: If there were faults that are not to be skipped, or no pair is left.
    """
    dataset = pair_dataset(rows, negatives)
    faults.finalize()
    return require_rows(dataset, where)


def streamed_rows(
    rows: Callable[..., Iterator[PairRow]],
    options: dict[str, Any],
    skip_bad_lines: bool,
    places: tuple[int, ...] | None,
    columns: tuple[str, ...],
) -> Iterator[dict[str, str]]:
    """One pass of a reader; of ``places`` those rows alone. Faulty lines raise where they are reached, or are counted.

    Args:
        rows: The reader, a function of a module; called with a fault log and ``options``.
        options: Of the reader.
        skip_bad_lines: Drop faulty lines, instead of raising.
        places: Numbers of the rows to take, ascending; ``None`` for all.
        columns: Names of the cells.
    """
    faults = StreamFaultLog(skip_bad_lines=skip_bad_lines)
    wanted = None if places is None else iter(places)
    place = None if wanted is None else next(wanted, None)
    for number, row in enumerate(rows(faults, **options)):
        if wanted is None or number == place:
            yield dict(zip(columns, row))
            if wanted is not None and (place := next(wanted, None)) is None:
                return
    faults.finalize()


def stream_rows(dataset: Any) -> int | None:
    """How many rows a stream has, as its own ``info`` says or estimates; ``None`` where nobody knows."""
    splits, split = dataset.info.splits or {}, str(dataset.split)
    return int(splits[split].num_examples or 0) or None if split in splits else None


def head(dataset: Dataset | IterableDataset, rows: int) -> Dataset:
    """The first rows of a stream, at most ``rows``, in memory; a data set that is no stream as it is."""
    import pyarrow as pa
    from datasets import Dataset

    if isinstance(dataset, Dataset):
        return dataset
    names = list(dataset.column_names or COLUMNS)
    batches = dataset.select_columns(names).take(rows).iter(batch_size=10_000)
    tables = [pa.table(batch) for batch in batches]
    return Dataset(pa.concat_tables(tables)) if tables else Dataset.from_dict({name: [] for name in names})


def require_rows(dataset: Dataset, where: str) -> Dataset:
    """``dataset`` itself, if it has rows.

    Raises:
        ParallelTextError: If it has none; ``where`` says where it came from.
    """
    if len(dataset) == 0:
        raise ParallelTextError(f"expected at least one sentence pair in {where}, got none; check that it is the file")
    return dataset
