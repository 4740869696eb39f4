"""Mined pairs as lines of a file.

======  ==============================================================================================
format  a line
======  ==============================================================================================
tsv     ``score TAB source ids TAB target ids TAB source TAB target``, ids joined by commas; cells are
        escaped as by :func:`~st_xling.mining.tsv_line`, so that :func:`~st_xling.mining.tsv_cells` reads it
jsonl   ``{"score": …, "source_ids": […], "target_ids": […], "source": …, "target": …}``
======  ==============================================================================================

A sentence that occurs several times is mined once: all its ids are there, in the order of its rows, and its first form.
Scores are written so that they are read back as the same number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from st_xling.mining.escapes import tsv_line

#: Names that ``format`` may take.
PAIR_FORMATS = ("tsv", "jsonl")


def pair_line(
    score: float, source_ids: Sequence[str], target_ids: Sequence[str], source: str, target: str, *, format: str
) -> bytes:
    """One pair as a line, with its end."""
    if format == "tsv":
        line = tsv_line([repr(score), ",".join(source_ids), ",".join(target_ids), source, target])
    else:
        record: dict[str, Any] = {"score": score, "source_ids": list(source_ids), "target_ids": list(target_ids)}
        line = json.dumps({**record, "source": source, "target": target}, ensure_ascii=False)
    return line.encode("utf-8") + b"\n"


def check_pair_format(format: str) -> None:
    if format not in PAIR_FORMATS:
        raise ValueError(f"format must be one of {', '.join(PAIR_FORMATS)}: got {format!r}.")
