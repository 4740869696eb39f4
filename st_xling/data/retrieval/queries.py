"""Queries by id, from JSON lines or TSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from st_xling.data.faults import FaultLog, iter_lines
from st_xling.data.records import json_objects
from st_xling.data.retrieval.passages import passage

_IDS = ("_id", "query_id", "id")
_TEXTS = ("text", "query")


def read_queries(path: str | Path, *, skip_bad_lines: bool = False) -> dict[str, str]:
    """Queries in the order of their file, by id.

    Args:
        path: ``id TAB text`` lines where the name holds ``.tsv``, else JSON lines with an id (``_id``, ``query_id`` or
            ``id``) and a text (``text`` or ``query``); either may be gzipped.
        skip_bad_lines: Leave faulty lines out, with a warning, instead of raising.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: no id, no text, an id twice with another text.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    queries: dict[str, str] = {}
    for number, identity, text in _rows(Path(path), faults):
        _add(queries, identity, text, path, number, faults)
    faults.settle()
    return queries


def read_judged_queries(
    path: str | Path, *, key: str = "positive_passages", skip_bad_lines: bool = False
) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]]]:
    """Queries with their passages beside them: Mr.TyDi's form for training.

    A line is ``{"query_id": …, "query": …, "positive_passages": [{"docid": …, "title": …, "text": …}], …}``.

    Args:
        path: JSON lines, plain or gzipped.
        key: Of the passages: ``positive_passages``, or ``negative_passages``.
        skip_bad_lines: As :func:`read_queries`.
    Returns:
        Queries by id; and by query id the ids and texts of its passages.
    Raises:
        FileNotFoundError, ParallelTextError: As :func:`read_queries`.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries with passages")
    queries: dict[str, str] = {}
    passages: dict[str, list[tuple[str, str]]] = {}
    for number, line in enumerate(iter_lines(path, faults), 1):
        for _, row in json_objects(path, [line], faults, number):
            identity, text = _json_query(row)
            given = row.get(key)
            found = [passage(each) if isinstance(each, dict) else None for each in _listed(given)]
            if given is None or None in found:
                faults.add(path, number, "no passages", f"expected {key}, each with a docid and a text")
            elif _add(queries, identity, text, path, number, faults):
                passages[identity] = [each for each in found if each is not None]
    faults.settle()
    return queries, passages


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [None]


def _rows(path: Path, faults: FaultLog) -> Iterator[tuple[int, str, str]]:
    is_tsv = ".tsv" in path.suffixes
    for number, line in enumerate(iter_lines(path, faults), 1):
        if not is_tsv:
            for _, row in json_objects(path, [line], faults, number):
                yield number, *_json_query(row)
        elif line is not None:
            identity, tab, text = line.partition("\t")
            if tab and "\t" not in text:
                yield number, identity, text
            else:
                faults.add(path, number, "wrong columns", f"expected id TAB text, got {line!r:.80}")


def _json_query(row: Mapping[str, Any]) -> tuple[str, str]:
    identity = next((row[key] for key in _IDS if isinstance(row.get(key), (str, int))), "")
    text = next((row[key] for key in _TEXTS if isinstance(row.get(key), str)), "")
    return str(identity), text


def _add(queries: dict[str, str], identity: str, text: str, path: str | Path, number: int, faults: FaultLog) -> bool:
    if not identity.strip() or not text.strip():
        faults.add(path, number, "no id or text", "expected an id and a text that are not blank")
    elif queries.get(identity, text) != text:
        faults.add(path, number, "id twice", f"{identity}, with another text")
    else:
        queries[identity] = text
        return True
    return False
