"""Retrieval sets on the command line: ``fi=FOLDER?split=dev``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set

FORM = "xx=FOLDER, xx the language of the passages, perhaps with ?split=dev&corpus=PATH&queries=en,de"

_SPEC = re.compile(r"([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)=([^?]+)(?:\?(.*))?", re.DOTALL)
_OPTIONS = {"split": "split", "corpus": "corpus", "queries": "query_languages"}


def load_retrieval_specs(
    specs: Iterable[str],
    *,
    split: str = "test",
    query_languages: Iterable[str] | None = None,
    skip_bad_lines: bool = False,
) -> list[RetrievalSet]:
    """The sets that specs name; all are parsed before the first is read.

    Args:
        specs: ``xx=FOLDER``, with ``?split=``, ``corpus=`` and ``queries=`` behind it where a set needs its own.
        split: Of sets that name none.
        query_languages: Likewise; by default all that a set has.
        skip_bad_lines: As :func:`read_retrieval_set`.
    Raises:
        ValueError: A spec of another form; and as :func:`read_retrieval_set`.
    Example:
        >>> parse_retrieval_spec("fi=miracl?split=dev")
        ('fi', 'miracl', {'split': 'dev'})
    """
    parsed = [parse_retrieval_spec(spec) for spec in specs]
    common: dict[str, Any] = {"split": split, "query_languages": query_languages, "skip_bad_lines": skip_bad_lines}
    return [read_retrieval_set(folder, language=code, **{**common, **own}) for code, folder, own in parsed]


def parse_retrieval_spec(spec: str) -> tuple[str, str, dict[str, Any]]:
    """Language, folder and options of one spec; looks at no file."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"expected {FORM}; got {spec!r}.")
    language, folder, query = match.groups()
    own: dict[str, Any] = {}
    for key, value in parse_qsl(query or "", keep_blank_values=True):
        if key not in _OPTIONS or not value:
            raise ValueError(f"expected {FORM}; got {key}={value} in {spec!r}.")
        own[_OPTIONS[key]] = value.split(",") if key == "queries" else value
    return language, folder, own
