"""Read parallel text of any kind, memory-mapped or as a stream, and the data specs that name it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.data.check import FaultLog
from st_xling.data.columns import ColumnChoice, Columns, find_label
from st_xling.data.locations import Location, check_unused, find_source, find_spec_source, open_table
from st_xling.data.pair_source import PairReader
from st_xling.data.pairs import COLUMNS, head, no_rows, pair_dataset, require_rows, sample_rows
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.sides import check_sides, language_pairs
from st_xling.data.spec import (
    PAIR_FORMS,
    DataSpec,
    paired_languages,
    parse_data_spec,
    phrase_sample,
    split_spec,
    unique_name,
)
from st_xling.utils.languages import UNKNOWN, check_languages, pair_languages
from st_xling.utils.private import with_features
from st_xling.utils.text import file_ending, home_path

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)


def load_data_specs(
    specs: Iterable[str],
    *,
    split: str = "train",
    skip_bad_lines: bool = False,
    stream: bool = False,
    identify: bool = False,
    every_label: bool = False,
) -> dict[str, Any]:
    """Load all parallel text that the specs name.

    Args:
        specs: As ``parse_data_spec`` takes them; all are parsed before the first is read.
        split: Split of a phrasebook whose spec names none; files have none.
        skip_bad_lines: Drop faulty lines, with a warning that lists them, instead of raising.
        stream: Return streams, see ``load_pairs``; the phrasebook is in memory.
        identify: Warn if a side is in another language than named, and raise if both are swapped: see
            :func:`~st_xling.data.sides.check_sides`.
        every_label: Also load rows whose label is 0, for checks that only look at their texts.

    Returns:
        The datasets, or streams, in order, by name: the languages (``de-en``), else the name of the file; ``-2``,
        ``-3`` is added where a name repeats. A phrasebook gives one dataset for each language.

    Raises:
        ValueError: If a spec is malformed or there is none; and as ``load_pairs``.
    """
    parsed = [parse_data_spec(spec) for spec in specs]
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {PAIR_FORMS}")
    loaded: dict[str, Any] = {}
    for spec in parsed:
        if spec.is_phrasebook:
            for phrases in _load_phrasebook(spec, split):
                loaded[unique_name(_dataset_name(phrases, spec), loaded)] = phrases
            continue
        source = find_spec_source(spec, stream=stream)
        if every_label:
            source = source.with_every_label()
        dataset = source.load(skip_bad_lines, spec.sample, stream=stream)
        name = unique_name(_dataset_name(dataset, spec), loaded)
        loaded[name] = dataset
        if identify:
            check_sides({name: dataset})
    return loaded


def _load_phrasebook(spec: DataSpec, split: str) -> list[Dataset]:
    """Load a data set for each pair of languages that a spec of the phrasebook names."""
    pairs: list[tuple[str, ...]] = [spec.languages]
    if not spec.languages:
        pairs = [(language, "en") for language in paired_languages(spec)]
    sample = phrase_sample(spec, split=split)
    datasets = []
    for source_language, target_language in pairs:
        phrases = parallel_phrases(source_language, target_language, **sample)
        datasets.append(phrases.select_columns(list(COLUMNS)))
    return datasets


class AlignedLines(NamedTuple):
    """Pairs of a file, and the lines that they come from.

    Attributes:
        name: Languages of the pairs, else the name of the file.
        pairs: Data set of the pairs.
        places: Index of the line of each pair, counted from 0, without a header.
        lines: Number of lines; those without a pair have an empty side.
    """

    name: str
    pairs: Dataset
    places: list[int]
    lines: int


def load_aligned_lines(spec: str, *, identify: bool = False) -> AlignedLines:
    """Load the pairs that one spec names, for output that is written line by line next to the text.

    Lines whose source or target is empty, as in corpora whose sentences were filtered one side at a time, have no pair,
    but are counted. Several files are counted one after the other.

    Args:
        spec: As :func:`parse_data_spec` takes it, for one pair of languages.
        identify: As :func:`load_data_specs`.

    Raises:
        ParallelTextError: For all faults but empty sides, or without any pair.
        ValueError: If the spec is malformed, or names several pairs of languages.
    """
    parsed = parse_data_spec(spec)
    if parsed.is_phrasebook:
        loaded = load_data_specs([spec])
        if len(loaded) != 1:
            raise ValueError(f"expected pairs of two languages, got {', '.join(loaded)}; align one pair at a time.")
        ((name, pairs),) = loaded.items()
        return AlignedLines(name, pairs, list(range(len(pairs))), len(pairs))

    source = find_spec_source(parsed)
    faults = FaultLog(can_skip=False)
    rows: list[tuple[str, str, str, str]] = []
    line_indices: list[int] = []
    line_count = 0
    for reader in source.parts:
        line_count += _read_aligned_lines(reader, faults, rows, line_indices, first_index=line_count)
    faults.finalize()
    if not rows:
        raise no_rows(source.where)

    pairs = pair_dataset(rows)
    name = _dataset_name(pairs, parsed)
    if identify:
        check_sides({name: pairs})
    sample = parsed.sample
    if sample.size is None:
        return AlignedLines(name, pairs, line_indices, line_count)
    drawn = sample_rows(pairs, sample.size, seed=sample.seed, where=source.where)
    return AlignedLines(name, drawn, list(range(len(drawn))), len(drawn))


def _read_aligned_lines(
    reader: PairReader,
    faults: FaultLog,
    rows: list[tuple[str, str, str, str]],
    line_indices: list[int],
    *,
    first_index: int,
) -> int:
    """Append the pairs of one file, and the indices of their lines; return the number of its lines.

    Args:
        reader: Reader of the file.
        faults: Where faults are noted, but for empty sides: their lines have no pair.
        rows: Pairs, to which those of the file are appended.
        line_indices: Index of the line of each pair.
        first_index: Index of the file's first line: the number of lines before it.
    """
    numbers: list[int] = []
    for table in reader.tables(faults, COLUMNS):
        numbers += table["line"].to_pylist()
        rows += zip(*(table[name].to_pylist() for name in COLUMNS))

    empty = {fault.line for fault in faults.faults if fault.kind in ("empty side", "empty line")}
    faults.faults = [fault for fault in faults.faults if fault.line not in empty]
    # Numbers begin behind a header, and units of other languages have none.
    lines = sorted({*numbers, *filter(None, empty)})
    index_of_line = {number: index for index, number in enumerate(lines, first_index)}
    line_indices += [index_of_line[number] for number in numbers]
    return len(lines)


def _dataset_name(dataset: Any, spec: DataSpec) -> str:
    """Return the languages of a data set, such as ``de-en``; the name of its file if they are unknown, or several."""
    pairs = list(language_pairs(require_rows(head(dataset, 1000), spec.text)))
    check_languages(pairs, spec.text)
    if len(pairs) == 1 and UNKNOWN not in pairs[0]:
        return "-".join(pairs[0])
    path = Path(spec.paths[0])
    return path.name.removesuffix(file_ending(path)) or UNKNOWN


def load_pairs(
    location: Location,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Columns | None = None,
    name: str | None = None,
    split: str | None = None,
    skip_bad_lines: bool = False,
    stream: bool = False,
) -> Any:
    """Load parallel text, in whatever format.

    Text is read and checked once, and kept in the Arrow cache of ``datasets``, from which it is memory-mapped. A
    changed file is read again.

    Args:
        location: A file, plain or packed (``.gz``, ``.xz``, ``.bz2``, ``.zst``): ``.tsv`` (quotes are text), ``.csv``
            (RFC 4180 within each line), ``.jsonl``, ``.json``, ``.parquet``, ``.tmx``, ``.xlf``, ``.po`` (finished
            translations), or lines of ``source ||| target``; two line-aligned files, or the prefix of such (``corpus``
            for ``corpus.de`` and ``corpus.en``), also in a ``.zip`` of OPUS; two ``.json`` files in SQuAD's form, such
            as XQuAD's, of which the paragraphs are read; a folder of such files, of FLORES, or of ``datasets``; the id
            of a data set on the Hub; or, with two languages, ``"tatoeba"``, ``"ntrex"`` or ``"flores"``, test sets on
            the Hub. A spec of the command line
            (``"de-en=pairs.tsv?size=100"``, see :mod:`st_xling.data.spec`) has its options within it.
        source_language: Language of the source side. Otherwise that of the row (``source_language``), of a name such as
            ``de-en.tsv``, of the column or the file ending, in this order; otherwise ``"und"``.
        target_language: The same, of the target side.
        columns: Columns of source and target, and of hard negatives behind them: positions counted from 0 (TSV, CSV) or
            names. Otherwise columns called ``source``/``target``, ``src``/``tgt``, ``sentence1``/``sentence2``,
            ``anchor``/``positive``, ``english``/``non_english`` (English is the target, unless the languages say
            otherwise), the two languages (``de``, ``deu``, ``German``), or two languages and no other columns; also as
            keys of ``translation``. Columns ``negative``, ``negative_1``, … are hard negatives. Of lines without such a
            header the first two columns are read, and there must be no more. A warning names the columns not read.
        name: Configuration of a data set on the Hub.
        split: Split of a data set on the Hub or of a folder; by default ``train``, or the only one.
        skip_bad_lines: Drop faulty lines, with a warning that lists them, instead of raising.
        stream: Return a stream instead: rows are read as they are iterated over, and faults raise when their batch is
            reached.

    Returns:
        A ``Dataset``, or an ``IterableDataset``, of ``source``, ``target``, ``source_language``, ``target_language``
        and, with hard negatives, ``negative_1``, ``negative_2``, …, all strings, in the order of the file.

    Raises:
        ParallelTextError: For all faults of the text together, or if no pair is left.
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ValueError: If the options do not fit what is read.

    Example:
        >>> load_pairs("de-en.tsv.gz").select_columns(["source", "target"])  # doctest: +SKIP
    """
    if isinstance(location, str) and _is_spec(location):
        check_unused(
            f"the spec {location}",
            source_language=source_language,
            target_language=target_language,
            columns=columns,
            name=name,
            split=split,
        )
        loaded = load_data_specs([location], skip_bad_lines=skip_bad_lines, stream=stream)
        if len(loaded) > 1:
            raise ValueError(f"{location} names {', '.join(loaded)}; load several by load_data_specs, or name one pair")
        return next(iter(loaded.values()))
    languages = (source_language, target_language)
    source = find_source(location, languages, columns=columns, name=name, split=split, stream=stream)
    return source.load(skip_bad_lines, stream=stream)


def _is_spec(location: str) -> bool:
    """Return whether a location is a spec of the command line, and no file of that name.

    A spec has languages, options, or two files that a comma joins.
    """
    if home_path(location).exists():
        return False
    parts = split_spec(location)
    has_options = bool(parts.query)
    has_two_files = "," in parts.location
    return len(parts.languages) == 2 or has_options or parts.is_phrasebook or has_two_files


def labeled_pairs(data: Any) -> dict[str, Any]:
    """Return data sets by name, with all columns of :data:`~st_xling.data.pairs.COLUMNS`.

    Of data sets that lack some the columns are found and checked as in files, and languages are those of the columns'
    names or the data set's, such as ``de-en``.

    Args:
        data: A data set or a stream, or name → data set.
    """
    datasets = data if isinstance(data, Mapping) else {"pairs": data}
    labeled = {}
    for name, dataset in datasets.items():
        if not hasattr(dataset, "features"):
            raise TypeError(
                f"expected data sets by name, got {type(dataset).__name__} for {name}; load pairs by load_pairs, or "
                "wrap lists by Dataset.from_dict"
            )
        dataset = with_features(dataset)
        has_all_columns = set(COLUMNS) <= set(dataset.column_names)
        if not has_all_columns or find_label(dataset.column_names):
            is_stream = not hasattr(dataset, "__len__")
            source = open_table(dataset, name, None, ColumnChoice(pair_languages(name)))
            dataset = source.load(False, stream=is_stream)
        labeled[name] = dataset
    return labeled
