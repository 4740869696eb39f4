"""Development pairs set aside by their target text, so that no language trains on what evaluates another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.pairs import head
from st_xling.data.text_columns import column_batches, exact_keys, leak_key

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

MOST_PAIRS = 500
MOST_SHARE = 0.02
HEAD_ROWS = 50_000
FEWEST_PAIRS = 50
"""Pairs or queries below which a development set says too little to choose a checkpoint by: none is held out then."""


def hold_out(
    data: Mapping[str, Dataset], *, pairs: int = MOST_PAIRS, share: float = MOST_SHARE
) -> tuple[dict[str, Dataset], dict[str, Dataset]]:
    """Split each data set into training and development rows.

    A row goes to development when the hash of its target text falls below one share for all data sets: an English
    sentence is on the same side for every language, and on the same side tomorrow. Texts count as the leak check
    counts them (:func:`~st_xling.data.text_columns.leak_key`), so that no spelling in other case trains on what
    evaluates.

    Args:
        data: Name → data set with ``target``.
        pairs: Development pairs of the largest data set, about.
        share: Share of the rows at most.

    Returns:
        Training and development data sets, by name; those too small to spare a row have none in the second.
    """
    limit = min(2**64 - 1, int(2**64 * min(share, pairs / max([1, *map(len, data.values())]))))
    found = {name: _candidates(dataset, limit) for name, dataset in data.items()}
    held = {text for candidates in found.values() for text in candidates.values()}
    for name, candidates in found.items():
        if len(candidates) == len(data[name]) and held.issuperset(candidates.values()):
            held.difference_update(candidates.values())  # its only sentences: every language trains on them
    train, dev = {}, {}
    for name, dataset in data.items():
        out = [row for row, text in found[name].items() if text in held]
        train[name] = dataset.select(np.delete(np.arange(len(dataset)), out)) if out else dataset
        if out:
            dev[name] = dataset.select(out)
    return train, dev


def hold_out_streams(
    data: Mapping[str, IterableDataset], *, pairs: int = MOST_PAIRS, share: float = MOST_SHARE, rows: int = HEAD_ROWS
) -> tuple[dict[str, IterableDataset], dict[str, Dataset]]:
    """Do the same for streams: development pairs come from the first ``rows`` rows of each.

    Their target texts are then skipped wherever they come in any stream, so that none is trained on.
    """
    _, dev = hold_out({name: head(stream, rows) for name, stream in data.items()}, pairs=pairs, share=share)
    held = frozenset(leak_key(text) for dataset in dev.values() for text in dataset["target"])
    if held:
        return {name: stream.filter(partial(_may_train, held=held)) for name, stream in data.items()}, dev
    return dict(data), dev


def _may_train(row: Mapping[str, str], held: frozenset[str]) -> bool:
    """Return whether a row's target text is not held out."""
    return leak_key(row["target"]) not in held


def _candidates(dataset: Dataset, limit: int) -> dict[int, str]:
    """Row → normalized target text, of the rows whose key is below ``limit``."""
    found: dict[int, str] = {}
    rows = 0
    for batch in column_batches(dataset, "target"):
        texts = [leak_key(text) for text in batch]
        found |= {rows + row: texts[row] for row in np.flatnonzero(exact_keys(texts) < np.uint64(limit)).tolist()}
        rows += len(texts)
    return found
