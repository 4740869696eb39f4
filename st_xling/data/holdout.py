"""Development pairs set aside by their target text, so that no language trains on what evaluates another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from st_xling.data.pairs import PairSets, head

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

MOST_PAIRS = 500
MOST_SHARE = 0.02
HEAD_ROWS = 50_000
FEWEST_PAIRS = 50
"""Pairs or queries below which a development set says too little to choose a checkpoint by: none is held out then."""


def hold_out(
    data: PairSets, *, pairs: int = MOST_PAIRS, share: float = MOST_SHARE, fewest: int = 0, column: str = "target"
) -> tuple[PairSets, Any]:
    """Split a data set, or each of several, into training and development rows.

    A row goes to development when the hash of its target text falls below one share for all data sets: an English
    sentence is on the same side for every language, and on the same side tomorrow. Texts count as the leak check
    counts them (:func:`~st_xling.data.text_cells.leak_key`), so that no spelling in other case trains on what
    evaluates. Development rows of a stream come from its first 50,000; their texts are then skipped wherever they come.

    Args:
        data: A data set or a stream, or name → these.
        pairs: Development pairs of the largest data set, about.
        share: Share of the rows at most.
        fewest: Development pairs in all, below which none are held out: they would say too little.
        column: Column of the target texts.

    Returns:
        Training and development rows, each a data set (of a stream, a stream and a data set), or name → these. Of
        several, those too small to spare a row have none in the second; of a single one that is empty then.

    Raises:
        TypeError: No data set.
        ValueError: No such column; fewer than one pair; a share outside of 0 to 1.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> train, dev = hold_out(parallel_phrases("de", "en", size=400), share=0.1)
        >>> len(train) + len(dev), bool(set(train["target"]) & set(dev["target"]))
        (400, False)
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1: got {share}.")
    if pairs < 1:
        raise ValueError(f"pairs must be at least 1: got {pairs}.")
    by_name: Mapping[str, Any] = data if isinstance(data, Mapping) else {"": data}
    for dataset in by_name.values():
        _check_column(dataset, column)
    train: Any
    if all(hasattr(dataset, "__len__") for dataset in by_name.values()):
        train, dev = _hold_out_rows(by_name, pairs=pairs, share=share, column=column)
    else:
        train, dev = hold_out_streams(by_name, pairs=pairs, share=share, column=column)
    if sum(map(len, dev.values())) < fewest:
        train = dict(by_name)
        dev = {}
    if isinstance(data, Mapping):
        return train, dev
    if not dev:
        return train[""], head(by_name[""], 1).select([])
    return train[""], dev[""]


def _hold_out_rows(
    data: Mapping[str, Dataset], *, pairs: int, share: float, column: str
) -> tuple[dict[str, Dataset], dict[str, Dataset]]:
    import numpy as np

    largest = max([1, *map(len, data.values())])
    # A text is held out if its 64-bit key is below this: in about this share of all texts.
    limit = min(2**64 - 1, int(2**64 * min(share, pairs / largest)))
    candidates = {name: _texts_below(dataset, limit, column) for name, dataset in data.items()}
    held: set[str] = set()
    for texts in candidates.values():
        held.update(texts.values())
    for name, texts in candidates.items():
        if len(texts) == len(data[name]) and held.issuperset(texts.values()):
            held.difference_update(texts.values())  # its only sentences: every language trains on them
    train = {}
    dev = {}
    for name, dataset in data.items():
        rows = [row for row, text in candidates[name].items() if text in held]
        if rows:
            train[name] = dataset.select(np.delete(np.arange(len(dataset)), rows))
            dev[name] = dataset.select(rows)
        else:
            train[name] = dataset
    return train, dev


def hold_out_streams(
    data: Mapping[str, IterableDataset],
    *,
    pairs: int = MOST_PAIRS,
    share: float = MOST_SHARE,
    rows: int = HEAD_ROWS,
    column: str = "target",
) -> tuple[dict[str, IterableDataset], dict[str, Dataset]]:
    """Split streams as :func:`hold_out` does: development pairs come from the first ``rows`` rows of each.

    Their target texts are then skipped wherever they come in any stream, so that none is trained on.
    """
    from st_xling.data.text_cells import leak_key

    heads = {name: head(stream, rows) for name, stream in data.items()}
    _, dev = _hold_out_rows(heads, pairs=pairs, share=share, column=column)
    held: set[str] = set()
    for dataset in dev.values():
        held.update(leak_key(text) for text in dataset[column])
    if not held:
        return dict(data), dev
    may_train = partial(_may_train, held=frozenset(held), column=column)
    return {name: stream.filter(may_train) for name, stream in data.items()}, dev


def _check_column(dataset: Any, column: str) -> None:
    """Raise ``TypeError`` for what is no data set, and ``ValueError`` for one without the column."""
    if not hasattr(dataset, "select_columns"):
        raise TypeError(
            f"rows are held out from data sets: got {type(dataset).__name__}; load pairs by load_pairs, or wrap lists "
            "by Dataset.from_dict."
        )
    names = dataset.column_names
    if names is not None and column not in names:  # None: of a stream that does not know them
        raise ValueError(
            f"rows are held out by the text of their column {column}: got {', '.join(names) or 'none'}; name another "
            "by column=."
        )


def _may_train(row: Mapping[str, str], held: frozenset[str], column: str) -> bool:
    """Return whether a row's target text is not held out."""
    from st_xling.data.text_cells import leak_key

    return leak_key(row[column]) not in held


def _texts_below(dataset: Dataset, limit: int, column: str) -> dict[int, str]:
    """Return row → normalized target text, of the rows whose key is below ``limit``."""
    import numpy as np

    from st_xling.data.text_cells import column_batches, exact_keys, leak_key

    texts_below: dict[int, str] = {}
    first_row = 0
    for batch in column_batches(dataset, column):
        texts = [leak_key(text) for text in batch]
        is_below = exact_keys(texts) < np.uint64(limit)
        for index in np.flatnonzero(is_below).tolist():
            texts_below[first_row + index] = texts[index]
        first_row += len(texts)
    return texts_below
