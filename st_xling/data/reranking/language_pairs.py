"""Parallel text of several data sets, sorted by its two languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.text_columns import column_texts
from st_xling.utils.languages import UNKNOWN

if TYPE_CHECKING:
    from datasets import Dataset

LanguagePair = tuple[str, str]


def by_language_pair(
    data: Mapping[str, Dataset], *, size: int | None = None, seed: int = 0
) -> dict[LanguagePair, tuple[list[str], list[str]]]:
    """The two sides of all rows, for each pair of languages, whichever of the two was the source.

    Args:
        data: Name → parallel text with ``source``, ``target``, ``source_language`` and ``target_language``.
        size: Rows to draw from all data sets together; by default all.
        seed: Of this draw.
    Returns:
        Languages, in the order of the first row that has them, → their texts, aligned.
    Raises:
        ValueError: There is no row; a stream; a row has the same language twice, or an unknown one; ``size`` is below 1
            or beyond the rows that there are.
    """
    streams = [name for name, dataset in data.items() if not hasattr(dataset, "__len__")]
    if streams:
        raise ValueError(
            f"negatives are drawn from all rows, so {', '.join(streams)} cannot be streamed; read it whole."
        )
    rows = sum(map(len, data.values()))
    if not rows or (size is not None and not 1 <= size <= rows):
        asked = "at least 1" if size is None else f"size={size:,}, 1 or more,"
        raise ValueError(f"expected parallel text of {asked} rows: got {rows:,}; lower size, or add text.")
    chosen = np.arange(rows)
    if size is not None:
        chosen = np.sort(np.random.default_rng([seed, 4]).choice(rows, size=size, replace=False))
    sorted_rows: dict[LanguagePair, tuple[list[str], list[str]]] = {}
    start = 0
    for name, dataset in data.items():
        here = chosen[(chosen >= start) & (chosen < start + len(dataset))] - start
        start += len(dataset)
        part = dataset if len(here) == len(dataset) else dataset.select(here)
        columns = [column_texts(part, name) for name in ("source_language", "target_language", "source", "target")]
        for first, second, source, target in zip(*columns):
            if (first, second) in sorted_rows:
                sides = sorted_rows[first, second]
            elif (second, first) in sorted_rows:
                sides, source, target = sorted_rows[second, first], target, source
            elif first == second or UNKNOWN in (first, second):
                raise ValueError(
                    f"{name}: expected parallel text of two known languages, got {first} and {second}; "
                    "say which they are: xx-yy=PATH."
                )
            else:
                sides = sorted_rows[first, second] = ([], [])
            sides[0].append(source)
            sides[1].append(target)
    return sorted_rows
