"""Development pairs set aside by their target text, so that no language trains on what another is judged by."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset

MOST_PAIRS = 500
MOST_SHARE = 0.02
_KEYS = 2**64


def hold_out(
    data: Mapping[str, Dataset], *, pairs: int = MOST_PAIRS, share: float = MOST_SHARE
) -> tuple[dict[str, Dataset], dict[str, Dataset]]:
    """Split each data set into training and development rows.

    A row goes to development when the hash of its target text falls below one share for all data sets: an English
    sentence is on the same side for every language, and on the same side tomorrow.

    Args:
        data: Name → data set with ``target``.
        pairs: Development pairs of the largest data set, about.
        share: Share of the rows at most.

    Returns:
        Training and development data sets, by name; those too small to spare a row have none in the second.
    """
    largest = max((len(dataset) for dataset in data.values()), default=0)
    limit = int(_KEYS * min(share, pairs / max(1, largest)))
    texts = {name: dataset["target"][:] for name, dataset in data.items()}
    held = {text for column in texts.values() for text in column if _key(text) < limit}
    for column in texts.values():
        if held.issuperset(column):  # its only sentences: every language trains on them
            held.difference_update(column)
    train, dev = {}, {}
    for name, dataset in data.items():
        train[name] = dataset.select([row for row, text in enumerate(texts[name]) if text not in held])
        out = [row for row, text in enumerate(texts[name]) if text in held]
        if out:
            dev[name] = dataset.select(out)
    return train, dev


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")
