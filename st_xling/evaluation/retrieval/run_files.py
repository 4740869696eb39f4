"""Rankings as TREC run files, which other tools and ``st-xling rerank --candidates`` read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from st_xling.evaluation.retrieval.measures import Rankings
from st_xling.utils.io import write_atomic


def write_run(path: str | Path, rankings: Rankings, *, tag: str, names: Mapping[str, str] | None = None) -> None:
    """Write ``query Q0 passage rank score tag`` lines, beside ``path`` first.

    Args:
        path: Where to; its folder is made where it is missing.
        rankings: Query id → hits, best first.
        tag: Of the system.
        names: Other ids for the queries.
    Raises:
        ValueError: An id with white space, which the format cannot hold.
    """
    lines = []
    for query, hits in rankings.items():
        asked = query if names is None else names[query]
        for rank, (name, score) in enumerate(hits, 1):
            if any(len(part.split()) != 1 for part in (asked, name)):
                raise ValueError(f"a TREC run divides its columns by spaces: got the ids {asked!r} and {name!r}.")
            lines.append(f"{asked} Q0 {name} {rank} {score:.9g} {tag}\n")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, "".join(lines).encode("utf-8"))
