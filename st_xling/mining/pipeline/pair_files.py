"""Mined pairs as lines of a file.

======  ==============================================================================================
format  a line
======  ==============================================================================================
tsv     ``score TAB source ids TAB target ids TAB source TAB target``, ids joined by commas; cells are
        escaped as by :func:`~st_xling.mining.tsv_line`, so that :func:`~st_xling.mining.tsv_cells` reads it
jsonl   ``{"score": …, "source_ids": […], "target_ids": […], "source": …, "target": …}``
======  ==============================================================================================

Where a cross-encoder has scored the pairs again, its score is the first, and the margin stands last: a sixth cell, or
``"margin"``.

A sentence that occurs several times is mined once: all its ids are there, in the order of its rows, and its first form.
Scores are written so that they are read back as the same number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.mining.deduplication import TextSide
from st_xling.mining.guards import Reject, RejectsFile
from st_xling.mining.mine import MinedPairs
from st_xling.mining.text import tsv_line
from st_xling.utils.io import atomic_writer

#: Names that ``format`` may take.
PAIR_FORMATS = ("tsv", "jsonl")

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"


def pair_line(
    score: float,
    source_ids: Sequence[str],
    target_ids: Sequence[str],
    source: str,
    target: str,
    *,
    format: str,
    margin: float | None = None,
) -> bytes:
    """One pair as a line, with its end."""
    if format == "tsv":
        last = [] if margin is None else [repr(margin)]
        line = tsv_line([repr(score), ",".join(source_ids), ",".join(target_ids), source, target, *last])
    else:
        record: dict[str, Any] = {"score": score, "source_ids": list(source_ids), "target_ids": list(target_ids)}
        record |= {"source": source, "target": target} | ({} if margin is None else {"margin": margin})
        line = json.dumps(record, ensure_ascii=False)
    return line.encode("utf-8") + b"\n"


def check_pair_format(format: str) -> None:
    if format not in PAIR_FORMATS:
        raise ValueError(f"format must be one of {', '.join(PAIR_FORMATS)}: got {format!r}.")


def write_pairs(
    pairs: MinedPairs,
    sides: Sequence[TextSide],
    path: Path,
    *,
    format: str,
    margins: np.ndarray | None = None,
    progress: bool = False,
) -> None:
    """Write pairs of distinct sentences, with the ids of all rows that each stands for, and ``margins`` if given."""
    source, target = sides
    with atomic_writer(path) as stream:
        for row in tqdm(range(len(pairs)), desc="writing", unit=" pairs", disable=not progress):
            one, other = int(pairs.source_indices[row]), int(pairs.target_indices[row])
            ids = source.ids(one), target.ids(other)
            texts = source.distinct[one], target.distinct[other]
            margin = None if margins is None else float(margins[row])
            stream.write(pair_line(float(pairs.scores[row]), *ids, *texts, format=format, margin=margin))


@contextmanager
def rejects_to(path: Path | None, sides: Sequence[TextSide]) -> Iterator[Callable[[Reject], object] | None]:
    """What writes a reject with the ids of all rows that it stands for; ``None`` without a path."""
    if path is None:
        yield None
        return
    with RejectsFile(path) as file:

        def write(reject: Reject) -> None:
            places = reject.candidate.source_index, reject.candidate.target_index
            source_ids, target_ids = (side.ids(place) for side, place in zip(sides, places))
            file.write(reject, source_ids=source_ids, target_ids=target_ids)

        yield write
