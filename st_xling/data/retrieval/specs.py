"""Retrieval sets on the command line: ``fi=FOLDER?split=dev``, ``de=phrasebook?size=300&queries=de,en``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from st_xling.data.phrasebook_spec import PhrasebookSpec, is_phrasebook, parse_phrasebook
from st_xling.data.retrieval.phrase_set import OPTIONS, phrase_set
from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set

FORM = (
    "xx=FOLDER, xx the language of the passages, perhaps with ?split=dev&corpus=PATH&queries=en,de, "
    "or xx=phrasebook?split=test&size=300&queries=en,de"
)

_LISTS = ("queries", "columns")
_SPEC = re.compile(r"([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)=([^?]+)(?:\?(.*))?", re.DOTALL)
OF_SETS = {"split": "split", "corpus": "corpus", "queries": "query_languages"}
"""What may follow ``?``, and what the reader calls it."""


def load_retrieval_specs(
    specs: Iterable[str],
    *,
    split: str = "test",
    query_languages: Iterable[str] | None = None,
    skip_bad_lines: bool = False,
) -> list[RetrievalSet]:
    """The sets that specs name; all are parsed before the first is read.

    Args:
        specs: ``xx=FOLDER``, with ``?split=``, ``corpus=`` and ``queries=`` behind it where a set needs its own; or
            ``xx=phrasebook``, with ``?split=``, ``size=``, ``seed=`` and ``queries=``.
        split: Of sets that name none.
        query_languages: Likewise; by default all that a folder has, and the phrasebook's in the language of the
            passages.
        skip_bad_lines: As :func:`read_retrieval_set`.
    Raises:
        ValueError: A spec of another form; and as :func:`read_retrieval_set`.
    Example:
        >>> parse_retrieval_spec("fi=miracl?split=dev")
        ('fi', 'miracl', {'split': 'dev'})
    """
    wanted = None if query_languages is None else list(query_languages)
    common: dict[str, Any] = {"split": split, "query_languages": wanted}
    return [
        phrase_set(where, code, **common)
        if isinstance(where, PhrasebookSpec)
        else read_retrieval_set(where, language=code, **{**common, "skip_bad_lines": skip_bad_lines, **own})
        for code, where, own in [parse_retrieval_spec(spec) for spec in specs]
    ]


def parse_retrieval_spec(
    spec: str, *, options: Mapping[str, str] = OF_SETS, form: str = FORM
) -> tuple[str, str | PhrasebookSpec, dict[str, Any]]:
    """Language, folder (or what is asked of the phrasebook) and options of one spec; looks at no file.

    Args:
        spec: As :func:`load_retrieval_specs` takes it.
        options: What may follow ``?`` → what it is called here; ``queries`` and ``columns`` are lists.
        form: What is expected, for messages.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"expected {form}; got {spec!r}.")
    language, folder, query = match.groups()
    if is_phrasebook(folder):
        book = parse_phrasebook(spec.partition("=")[2], options=OPTIONS, spec=spec)
        if book.languages:
            raise ValueError(f"expected {FORM}, one language of passages a spec; got {spec!r}.")
        return language, book, {}
    own: dict[str, Any] = {}
    for key, value in parse_qsl(query or "", keep_blank_values=True):
        if key not in options or not value:
            raise ValueError(f"expected {form}; got {key}={value} in {spec!r}.")
        own[options[key]] = value.split(",") if key in _LISTS else value
    return language, folder, own
