"""Data specs: what the command line's ``--data`` may say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.orient import check_languages, language_pairs
from st_xling.data.pairs import COLUMNS, head, require_rows
from st_xling.data.parallel import read_parallel, stream_parallel
from st_xling.data.phrasebook_spec import PhrasebookSpec, is_phrasebook, parse_phrasebook
from st_xling.data.spec_options import (
    SAMPLE_OPTIONS,
    Sample,
    SpecOption,
    free_name,
    read_options,
    sample_rows,
    split_options,
)
from st_xling.data.tables import Columns
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.text import file_ending

if TYPE_CHECKING:
    from datasets import Dataset

FORMS = (
    "PATH, xx-yy=PATH, PATH_SRC,PATH_TGT, HUB_ID?name=CONFIG&split=SPLIT, each also with ?size=8000&seed=0, "
    "or phrasebook:de,fr?size=8000"
)
"""The forms of a spec, for help and messages."""

_PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})=(.*)", re.DOTALL)


@dataclass(frozen=True)
class DataSpec:
    """What one ``--data`` asks for.

    Attributes:
        text: The spec as it was typed.
        location: A path, a Moses prefix, a Hub id or ``"phrasebook"``; or the two paths of a Moses pair.
        source_language: As before ``=``, or ``None``.
        target_language: As before ``=``, or ``None``.
        languages: The languages of a phrasebook, each to be paired with English; empty for all.
        options: What follows ``?``: ``size`` and ``seed``, ``columns``, ``name`` and ``split``; of a phrasebook
            ``size``, ``split``, ``seed``.
    """

    text: str
    location: str | tuple[str, str]
    source_language: str | None = None
    target_language: str | None = None
    languages: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def parse_data_spec(spec: str) -> DataSpec:
    """Parses one spec; looks at no file.

    The forms are ``PATH``, ``HUB_ID`` and ``PATH_SRC,PATH_TGT``, each with an optional ``xx-yy=`` before and
    ``?columns=0,2``, ``?name=de-en&split=test`` or ``?size=8000&seed=0`` (a seeded sample of its rows) after it, and
    ``phrasebook``, ``phrasebook:de,fr`` and ``xx-yy=phrasebook`` with an optional ``?size=8000&split=train&seed=0``.

    Raises:
        ValueError: If the spec is none of these forms, or names one language twice (``en-en=…``).
    Example:
        >>> parse_data_spec("de-en=corpus.de,corpus.en").location
        ('corpus.de', 'corpus.en')
    """
    source_language, target_language, rest = None, None, spec
    if match := _PAIR.fullmatch(rest):
        source_language, target_language, rest = match.groups()
        check_languages([(source_language, target_language)], spec)
    if is_phrasebook(rest):
        book = parse_phrasebook(rest, spec=spec, several=not source_language)
        return DataSpec(spec, "phrasebook", source_language, target_language, book.languages, book.options)
    rest, query = split_options(rest)
    if not rest.strip():
        raise ValueError(f"expected {FORMS}, got {spec!r}; name what to read")
    options = read_options(query, _OPTIONS, spec=spec)
    paths = rest.split(",")
    if len(paths) > 2 or not all(path.strip() for path in paths):
        raise ValueError(f"expected one path, or two joined by a comma, got {spec!r}; repeat --data for each corpus")
    location = rest if len(paths) == 1 else (paths[0], paths[1])
    return DataSpec(spec, location, source_language, target_language, options=options)


def load_data_specs(
    specs: Iterable[str],
    *,
    split: str = "train",
    skip_bad_lines: bool = False,
    stream: bool = False,
    identify: bool = False,
) -> dict[str, Any]:
    """Reads all that the specs ask for.

    Args:
        specs: As ``parse_data_spec`` takes them; all are parsed before the first is read.
        split: Of a phrasebook whose spec names none; files have none.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
        stream: Read no further than the first rows; the rest comes when it is asked for, see ``stream_parallel``.
        identify: Warn of sides in another language than they say: :func:`~st_xling.data.sides.check_sides`.
    Returns:
        The datasets, or streams, in order, by name: the languages (``de-en``), else the name of the file; ``-2``,
        ``-3`` is added where a name repeats. A phrasebook gives one dataset for each language.
    Raises:
        ValueError: If a spec is malformed or there is none; and as ``read_parallel``.
    """
    parsed = [parse_data_spec(spec) for spec in specs]
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}")
    loaded: dict[str, Any] = {}
    for spec in parsed:
        options = {**spec.options, "source_language": spec.source_language, "target_language": spec.target_language}
        found: list[Any]
        if spec.location == "phrasebook":
            found = _read_phrasebook(spec, split)
        elif stream:
            sample = Sample.pop(options, spec.text)
            found = [stream_parallel(spec.location, sample=sample, skip_bad_lines=skip_bad_lines, **options)]
        else:
            size, seed = Sample.pop(options, spec.text)
            whole = read_parallel(spec.location, skip_bad_lines=skip_bad_lines, **options)
            found = [sample_rows(whole, size, seed=seed, where=spec.text)]
        for dataset in found:
            loaded[name := free_name(_name(dataset, spec), loaded)] = dataset
            if identify and spec.location != "phrasebook":
                from st_xling.data.sides import check_sides

                check_sides({name: dataset})
    return loaded


def _read_phrasebook(spec: DataSpec, split: str) -> list[Dataset]:
    book = PhrasebookSpec(spec.languages, spec.options)
    pairs = [(language, "en") for language in book.paired_languages]
    if spec.source_language and spec.target_language:
        pairs = [(spec.source_language, spec.target_language)]
    parallel = [book.parallel(*pair, split=split).select_columns(list(COLUMNS)) for pair in pairs]
    return [require_rows(dataset, spec.text) for dataset in parallel]


def _name(dataset: Any, spec: DataSpec) -> str:
    pairs = language_pairs(require_rows(head(dataset, 1000), spec.text))
    check_languages(pairs, spec.text)
    if len(pairs) == 1 and UNKNOWN not in (pair := next(iter(pairs))):
        return "-".join(pair)
    path = Path(spec.location if isinstance(spec.location, str) else spec.location[0])
    return path.name.removesuffix(file_ending(path)) or UNKNOWN


def _columns(value: str) -> Columns:
    columns = tuple(value.split(","))
    if len(columns) < 2:
        raise ValueError(value)
    return tuple(map(int, columns)) if all(map(str.isdecimal, columns)) else columns


_OPTIONS = {
    "columns": SpecOption(_columns, "0,2 or de,en"),
    "name": SpecOption(str, "de-en"),
    "split": SpecOption(str, "train"),
    **SAMPLE_OPTIONS,
}
