"""Data sets of sentence pairs, in memory or as a stream: their columns, their languages, and samples of their rows."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from st_xling.utils.languages import UNKNOWN
from st_xling.utils.text import ParallelTextError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from datasets import Dataset, IterableDataset

logger = logging.getLogger(__name__)

COLUMNS = ("source", "target", "source_language", "target_language")
"""The columns of every parallel dataset, all strings, in this order."""

PairSets = TypeVar("PairSets")
"""A data set or a stream of pairs, or name → these."""

LANGUAGE_COLUMNS = ("source_language", "target_language")


def text_features(negatives: int = 0) -> Any:
    """Return the features of a parallel data set: :data:`COLUMNS`, and ``negative_1``, ``negative_2``, … behind."""
    from datasets import Features, Value

    negative_names = [f"negative_{number + 1}" for number in range(negatives)]
    names = [*COLUMNS, *negative_names]
    return Features({name: Value("string") for name in names})


def pair_dataset(rows: Iterable[tuple[str, str, str, str]]) -> Dataset:
    """Return rows of :data:`COLUMNS`, in that order, as a data set in memory."""
    from datasets import Dataset

    columns = list(zip(*rows)) or [()] * len(COLUMNS)
    cells = {name: list(column) for name, column in zip(COLUMNS, columns)}
    return Dataset.from_dict(cells, features=text_features())


def dataset_in_memory(table: pa.Table) -> Dataset:
    """Return a table as a data set; its text columns may be larger than 2 GiB.

    Without a fingerprint, ``datasets`` makes one of the content: it joins the chunks of each column to a copy, which
    fails with "offset overflow" for a text column above 2 GiB.
    """
    from datasets import Dataset

    is_large = table.nbytes >= 2**31
    fingerprint = uuid.uuid4().hex if is_large else None
    return Dataset(table, fingerprint=fingerprint)


def stream_rows(dataset: Any) -> int | None:
    """Return the number of rows of a stream, as its ``info`` states or estimates; ``None`` if it is unknown."""
    splits = dataset.info.splits or {}
    split = str(dataset.split or next(iter(splits), None))
    if split not in splits:
        return None
    return int(splits[split].num_examples or 0) or None  # 0: not counted


def head(dataset: Dataset | IterableDataset, rows: int) -> Dataset:
    """Return the first rows of a stream, at most ``rows``, in memory; a data set that is no stream as it is."""
    import pyarrow as pa
    from datasets import Dataset

    if isinstance(dataset, Dataset):
        return dataset
    names = list(dataset.column_names or COLUMNS)
    batches = dataset.select_columns(names).take(rows).iter(batch_size=10_000)
    tables = [pa.table(batch) for batch in batches]
    if not tables:
        return Dataset.from_dict({name: [] for name in names})
    return Dataset(pa.concat_tables(tables))


def append_columns(dataset: Dataset, columns: Dataset) -> Dataset:
    """Return ``dataset`` with the columns of another one of as many rows behind its own; it keeps its format."""
    from datasets import concatenate_datasets

    # concatenate_datasets drops the format where only one of them has it, and the name of the split.
    joined = concatenate_datasets([dataset.with_format(None), columns.with_format(None)], axis=1, split=dataset.split)
    form = dataset.format
    if form["type"] is None:
        return joined
    names = [*form["columns"], *columns.column_names]
    options = {"columns": names} if set(names) != set(joined.column_names) else {}
    return joined.with_format(
        form["type"], output_all_columns=form["output_all_columns"], **options, **form["format_kwargs"]
    )


def require_rows(dataset: Dataset, where: str) -> Dataset:
    """Return ``dataset`` itself, if it has rows.

    Raises:
        ParallelTextError: If it has none; ``where`` names its source.
    """
    if len(dataset) == 0:
        raise no_rows(where)
    return dataset


def no_rows(where: str, notes: str = "") -> ParallelTextError:
    """Return the error for a place without sentence pairs, with what is known of it in ``notes``."""
    fact = f"expected at least one sentence pair in {where}, got none; check that it is the file"
    return ParallelTextError("\n".join(filter(None, [fact, notes])))


class Sample(NamedTuple):
    """Number of rows to draw, and the seed of the draw.

    Attributes:
        size: Rows; ``None`` for all.
        seed: Seed of the draw.
    """

    size: int | None = None
    seed: int = 0

    def places(self, total: int, where: str) -> list[int]:
        """Return the sorted numbers of the rows drawn: all of them, with a warning, if there are fewer than ``size``.

        Samples of one seed are nested: the 1,000 rows are among the 2,000, so that curves over the amount of data add
        rows and exchange none.
        """
        import numpy as np

        if self.size is None or self.size == total:
            return list(range(total))
        if self.size > total:
            asked_for = _counted_rows(self.size)
            logger.warning("%s: a sample of %s was asked for, all %s are taken", where, asked_for, _counted_rows(total))
            return list(range(total))
        permutation = np.random.default_rng(self.seed).permutation(total)
        return np.sort(permutation[: self.size]).tolist()


def _counted_rows(rows: int) -> str:
    return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"


def sample_rows(dataset: Dataset, size: int | None, *, seed: int = 0, where: str = "data") -> Dataset:
    """Draw a seeded sample of a data set's rows, in their order.

    Args:
        dataset: In memory or on disk. Streams of files are sampled where they are read, with ``?size=N`` in their spec:
            see :func:`~st_xling.data.load_pairs`.
        size: Rows to draw; ``None`` for all. If there are fewer, all are taken, with a warning.
        seed: Seed of the draw; samples of one seed are nested, see :meth:`Sample.places`.
        where: What is sampled, for messages.

    Example:
        >>> from datasets import Dataset
        >>> sample_rows(Dataset.from_dict({"source": list("abcdef")}), 3)["source"][:]
        ['c', 'd', 'f']
    """
    if size is None:
        return dataset
    rows = Sample(size, seed).places(len(dataset), where)
    return dataset if len(rows) == len(dataset) else dataset.select(rows)


def pair_rows(dataset: Any) -> dict[tuple[str, str], np.ndarray]:
    """Return the row numbers of each pair of languages, in the order in which the pairs first come.

    Raises:
        ValueError: The data set lacks a language column, or a row its language.
    """
    import numpy as np
    import pyarrow.compute as pc

    missing = [name for name in LANGUAGE_COLUMNS if name not in dataset.column_names]
    if missing:
        raise ValueError(
            f"balancing languages and batches of one pair need the columns {' and '.join(missing)}: got "
            f"{', '.join(dataset.column_names)}; add them, or leave these options out."
        )
    numbers: dict[tuple[str, str], int] = {}
    batches_of_numbers = [np.zeros(0, np.int64)]
    for batch in dataset.select_columns(list(LANGUAGE_COLUMNS)).with_format("arrow").iter(batch_size=100_000):
        # One text for both, which Arrow numbers at once; no language code holds a tab.
        joined = pc.binary_join_element_wise(*(batch[name] for name in LANGUAGE_COLUMNS), "\t").combine_chunks()
        if joined.null_count:
            raise ValueError(f"every row needs its languages, {UNKNOWN!r} where one is not known: got a row without.")
        encoded = joined.dictionary_encode()
        pairs = [text.partition("\t")[::2] for text in encoded.dictionary.to_pylist()]
        pair_numbers = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs])
        batches_of_numbers.append(pair_numbers[encoded.indices.to_numpy()])
    number_of_row = np.concatenate(batches_of_numbers)
    return {pair: np.flatnonzero(number_of_row == number) for pair, number in numbers.items()}
