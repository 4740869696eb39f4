"""Which passages answer which query: TREC's qrels and BEIR's."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from st_xling.data.faults import FaultLog, iter_lines

Qrels = dict[str, dict[str, int]]


def read_qrels(path: str | Path, *, passages: Container[str] | None = None, skip_bad_lines: bool = False) -> Qrels:
    """Relevant passages of each query.

    Args:
        path: Four columns as TREC has them (query, iteration, passage, grade), divided by spaces or tabs; or three
            (query, passage, grade), divided by tabs, under BEIR's header or none. Perhaps gzipped.
        passages: Ids of the corpus, which the file may name; ``None``: any.
        skip_bad_lines: Leave faulty lines out, with a warning that counts them, instead of raising.
    Returns:
        Query id → passage id → grade, of the grades above 0 alone; a query that is judged and has no relevant passage
        is there with none.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: wrong columns, two grades of one pair, and relevant passages
            that are not in the corpus, which are counted and listed.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="qrels")
    relevant: Qrels = {}
    for number, line in enumerate(iter_lines(path, faults), 1):
        if line is None or not line.strip() or (number == 1 and _is_header(line)):
            continue
        judged = _judgement(line)
        if judged is None:
            faults.add(path, number, "wrong columns", f"expected query, 0, passage, whole number; got {line!r:.80}")
            continue
        query, name, grade = judged
        given = relevant.setdefault(query, {})
        if grade > 0 and passages is not None and name not in passages:
            faults.add(path, number, "unknown passage", f"{name} is not in the corpus")
        elif given.get(name, grade) != grade:
            faults.add(path, number, "two grades", f"query {query}, passage {name}: {given[name]} and {grade}")
        elif grade > 0:
            given[name] = grade
    faults.settle()
    return relevant


def _is_header(line: str) -> bool:
    return line.split("\t")[-1].strip().lower() in ("score", "grade", "rel", "relevance")


def _judgement(line: str) -> tuple[str, str, int] | None:
    cells = line.strip().split("\t")
    if len(cells) != 3:  # BEIR's ids may hold spaces, TREC's columns are divided by any
        cells = line.split()
        if len(cells) != 4:
            return None
        cells = [cells[0], *cells[2:]]
    try:
        grade = float(cells[2])
    except ValueError:
        return None
    return (cells[0].strip(), cells[1].strip(), int(grade)) if grade.is_integer() else None
