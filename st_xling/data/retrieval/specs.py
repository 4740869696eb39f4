"""Retrieval sets on the command line: ``fi=FOLDER?split=dev``, ``de=phrasebook?size=300&queries=de,en``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from st_xling.data.phrasebook_spec import PhrasebookSpec, is_phrasebook, parse_phrasebook
from st_xling.data.retrieval.phrase_set import OPTIONS, phrase_set
from st_xling.data.retrieval.retrieval_set import RetrievalSet, read_retrieval_set, sample_queries
from st_xling.data.retrieval.xquad_r import read_xquad_r
from st_xling.data.spec_options import SAMPLE_OPTIONS, Sample, SpecOption, read_options
from st_xling.utils.text import file_ending

FORM = (
    "xx=FOLDER, xx the language of the passages, perhaps with ?split=dev&corpus=PATH&queries=en,de&size=500&seed=0, "
    "xx=FILE.json of XQuAD-R, or xx=phrasebook?split=test&size=300&queries=en,de"
)

_LISTS = ("queries", "columns")
_SPEC = re.compile(r"([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)=([^?]+)(?:\?(.*))?", re.DOTALL)
_SENTENCES = (".json", ".json.gz")
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
        specs: ``xx=FOLDER``, with ``?split=``, ``corpus=`` and ``queries=`` behind it where a set needs its own, and
            ``size=`` and ``seed=`` for a sample of its queries; ``xx=FILE.json``, sentences of XQuAD-R, whose questions
            are read from all such files together (see :func:`read_xquad_r`); or
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
    specs = list(specs)
    parsed = [parse_retrieval_spec(spec) for spec in specs]
    sentences = _read_sentences(specs, parsed, wanted)
    sets = []
    for spec, (code, where, own) in zip(specs, parsed):
        if isinstance(where, PhrasebookSpec):
            sets.append(phrase_set(where, code, **common))
            continue
        sample = Sample.pop(own, spec)
        if code in sentences and file_ending(where) in _SENTENCES:
            found = sentences[code]
        else:
            found = read_retrieval_set(where, language=code, **{**common, "skip_bad_lines": skip_bad_lines, **own})
        sets.append(sample_queries(found, sample, spec))
    return sets


def _read_sentences(
    specs: list[str], parsed: list[tuple[str, str | PhrasebookSpec, dict[str, Any]]], wanted: list[str] | None
) -> dict[str, RetrievalSet]:
    """Language → set of its XQuAD-R file: together, since each holds the questions of one language alone."""
    found = [
        (spec, code, where, own)
        for spec, (code, where, own) in zip(specs, parsed)
        if isinstance(where, str) and file_ending(where) in _SENTENCES
    ]
    paths: dict[str, str] = {}
    for spec, code, where, own in found:
        if code in paths or own.keys() - SAMPLE_OPTIONS or own != found[0][3]:
            raise ValueError(
                f"files of XQuAD-R come once a language, all with the same ?size and seed, and take no other options: "
                f"got {spec!r}."
            )
        paths[code] = where
    return {each.language: each for each in read_xquad_r(paths, query_languages=wanted)} if paths else {}


def parse_retrieval_spec(
    spec: str, *, options: Mapping[str, str] = OF_SETS, form: str = FORM
) -> tuple[str, str | PhrasebookSpec, dict[str, Any]]:
    """Language, folder (or what is asked of the phrasebook) and options of one spec; looks at no file.

    Args:
        spec: As :func:`load_retrieval_specs` takes it.
        options: What may follow ``?`` beside ``size`` and ``seed`` → what it is called here; ``queries`` and
            ``columns`` are lists.
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
    known = {key: SpecOption(_listed if key in _LISTS else str, "") for key in options} | SAMPLE_OPTIONS
    try:
        read = read_options(query or "", known, spec=spec)
    except ValueError as error:
        raise ValueError(f"{error}; the forms are {form}.") from error
    own |= {options.get(key, key): value for key, value in read.items()}
    return language, folder, own


def _listed(value: str) -> list[str]:
    return value.split(",")
