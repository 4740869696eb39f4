"""Retrieval sets on the command line: ``fi=FOLDER?split=dev``, ``de=phrasebook?size=300&queries=de,en``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from st_xling.data.phrasebook_spec import PhrasebookSpec, is_phrasebook, parse_phrasebook
from st_xling.data.retrieval.retrieval_set import (
    RetrievalSet,
    phrase_set,
    read_retrieval_set,
    read_xquad_r,
    sample_queries,
)
from st_xling.data.spec_options import SAMPLE_OPTIONS, Sample, SpecOption, read_options
from st_xling.utils.text import file_ending

FORM = (
    "xx=FOLDER, xx the language of the passages, perhaps with ?split=dev&corpus=PATH&queries=en,de&size=500&seed=0, "
    "xx=FILE.json of XQuAD-R, or xx=phrasebook?split=test&size=300&queries=en,de"
)

_SPEC = re.compile(r"([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)=([^?]+)(?:\?(.*))?", re.DOTALL)
_SENTENCES = (".json", ".json.gz")
_LISTS = ("queries", "columns")
_OF_PHRASEBOOK = ("size", "split", "seed", "queries")
OF_SETS = ("split", "corpus", "queries")
"""What may follow ``?`` of a folder, beside ``size`` and ``seed``."""


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
    codes = None if query_languages is None else list(query_languages)
    common: dict[str, Any] = {"split": split, "query_languages": codes}
    specs = list(specs)
    parsed = [parse_retrieval_spec(spec) for spec in specs]
    # Files of XQuAD-R are read together, since each holds the questions of one language alone.
    paths: dict[str, str] = {}
    shared: dict[str, Any] | None = None
    for spec, (code, place, options) in zip(specs, parsed):
        if isinstance(place, str) and file_ending(place) in _SENTENCES:
            shared = options if shared is None else shared
            if code in paths or options.keys() - SAMPLE_OPTIONS or options != shared:
                raise ValueError(
                    "files of XQuAD-R come once a language, all with the same ?size and seed, and take no other "
                    f"options: got {spec!r}."
                )
            paths[code] = place
    sentences = {each.language: each for each in read_xquad_r(paths, query_languages=codes)} if paths else {}
    sets = []
    for spec, (code, place, options) in zip(specs, parsed):
        if isinstance(place, PhrasebookSpec):
            sets.append(phrase_set(place, code, **common))
            continue
        own = dict(options)
        sample = Sample.pop(own, spec)
        if file_ending(place) in _SENTENCES:
            data = sentences[code]
        else:
            data = read_retrieval_set(place, language=code, **{**common, "skip_bad_lines": skip_bad_lines, **own})
        sets.append(sample_queries(data, sample, spec))
    return sets


def parse_retrieval_spec(
    spec: str, *, options: Iterable[str] = OF_SETS, form: str = FORM
) -> tuple[str, str | PhrasebookSpec, dict[str, Any]]:
    """Language, folder (or what the spec says of the phrasebook) and options of one spec; looks at no file.

    Args:
        spec: As :func:`load_retrieval_specs` takes it.
        options: What may follow ``?`` beside ``size`` and ``seed``; ``queries``, which becomes ``query_languages``, and
            ``columns`` are lists.
        form: What is expected, for messages.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"expected {form}; got {spec!r}.")
    language, folder, query = match.groups()
    if is_phrasebook(folder):
        book = parse_phrasebook(spec.partition("=")[2], options=_OF_PHRASEBOOK, spec=spec)
        if book.languages:
            raise ValueError(f"expected {FORM}, one language of passages a spec; got {spec!r}.")
        return language, book, {}
    known = {name: SpecOption((lambda text: text.split(",")) if name in _LISTS else str, "") for name in options}
    try:
        own = read_options(query or "", known | SAMPLE_OPTIONS, spec=spec)
    except ValueError as error:
        raise ValueError(f"{error}; the forms are {form}.") from error
    if "queries" in own:
        own["query_languages"] = own.pop("queries")
    return language, folder, own
