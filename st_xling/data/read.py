"""Read parallel text of any kind, memory-mapped or as a stream, and the data specs that name it."""

from __future__ import annotations

import csv
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling._version import __version__
from st_xling.data.check import FaultLog
from st_xling.data.columns import (
    PARALLEL_NAMES,
    ColumnChoice,
    Columns,
    Languages,
    Layout,
    Row,
    find_label,
    find_layout,
    layout_of_names,
)
from st_xling.data.formats import (
    FORMATS,
    find_moses,
    flores_pair,
    has_bars,
    language_ending,
    moses_rows,
    open_parquet,
    pair_tables,
    paragraph_rows,
    zipped_moses,
)
from st_xling.data.pairs import (
    COLUMNS,
    Sample,
    head,
    no_rows,
    pair_dataset,
    require_rows,
    sample_rows,
    stream_rows,
    text_features,
)
from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.sides import check_languages, check_sides, language_pairs
from st_xling.data.spec import OPTIONS, DataSpec, paired_languages, parse_spec, phrase_sample, split_spec, unique_name
from st_xling.data.test_sets import HUB_TEST_SETS, hub_pairs
from st_xling.utils.io import file_sha256
from st_xling.utils.languages import UNKNOWN, check_language_code, language_name, pair_in_name, pair_languages
from st_xling.utils.private import fingerprint, with_features
from st_xling.utils.terminal import first_line
from st_xling.utils.text import (
    PACKED,
    ParallelTextError,
    describe_missing,
    estimate_lines,
    file_ending,
    home_path,
    unpacked_name,
)

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

logger = logging.getLogger(__name__)

FORMS = (
    "PATH, xx-yy=PATH, PATH_SRC,PATH_TGT, HUB_ID?name=CONFIG&split=SPLIT, each also with ?size=8000&seed=0, "
    "or phrasebook:de,fr?size=8000"
)
"""The forms of parallel text, for messages."""

PAIR_OPTIONS = {name: OPTIONS[name] for name in ("columns", "name", "split")}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")

Location = str | Path | tuple[str | Path, str | Path]


def parse_data_spec(spec: str) -> DataSpec:
    """Parse the spec of parallel text.

    Args:
        spec: As :mod:`st_xling.data.spec` describes. ``NAME`` is two languages. A single language is taken for the
            beginning of a path.
    Raises:
        ValueError: If the spec is malformed, names one language twice (``en-en=…``) or more than two paths, or names
            one language for a file that exists.
    Example:
        >>> parse_data_spec("de-en=corpus.de,corpus.en").paths
        ('corpus.de', 'corpus.en')
    """
    parsed = parse_spec(spec, PAIR_OPTIONS, forms=FORMS)
    if len(parsed.languages) == 1:
        name, whole = parsed.languages[0], f"{spec.partition('=')[0]}={parsed.location}"
        if parsed.is_phrasebook or (Path(parsed.location).exists() and not Path(whole).exists()):
            raise ValueError(f"expected two languages before =, got {spec!r}; write {name}-en={parsed.location}")
        parsed = DataSpec(spec, whole, options=parsed.options)
    if parsed.languages:
        check_languages([(parsed.languages[0], parsed.languages[1])], spec)
    if len(parsed.paths) > 2 or not all(path.strip() for path in parsed.paths):
        raise ValueError(f"expected one path, or two joined by a comma, got {spec!r}; repeat --data for each corpus")
    return parsed


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
        every_label: Also load rows whose label is 0, for what looks at their texts alone.
    Returns:
        The datasets, or streams, in order, by name: the languages (``de-en``), else the name of the file; ``-2``,
        ``-3`` is added where a name repeats. A phrasebook gives one dataset for each language.
    Raises:
        ValueError: If a spec is malformed or there is none; and as ``load_pairs``.
    """
    parsed = [parse_data_spec(spec) for spec in specs]
    if not parsed:
        raise ValueError(f"expected at least one data spec, got none; pass {FORMS}")
    loaded: dict[str, Any] = {}
    for spec in parsed:
        found: list[Any]
        if spec.is_phrasebook:
            pairs = [spec.languages] if spec.languages else [(language, "en") for language in paired_languages(spec)]
            sample = phrase_sample(spec, split=split)
            found = [parallel_phrases(*pair, **sample).select_columns(list(COLUMNS)) for pair in pairs]
        else:
            languages: Any = spec.languages or (None, None)
            source = find_source(spec.path_or_pair, languages, stream=stream, **spec.reader_options)
            source = source.with_every_label() if every_label else source
            found = [(source.stream if stream else source.read)(skip_bad_lines, spec.sample)]
        for dataset in found:
            loaded[name := unique_name(_name(dataset, spec), loaded)] = dataset
            if identify and not spec.is_phrasebook:
                check_sides({name: dataset})
    return loaded


class AlignedLines(NamedTuple):
    """Pairs of a file, and their places among its lines.

    Attributes:
        name: Languages of the pairs, else the name of the file.
        pairs: Data set of the pairs.
        places: Of each pair the number of its line, counted from 0, without a header.
        lines: Number of lines; those without a pair have an empty side.
    """

    name: str
    pairs: Dataset
    places: list[int]
    lines: int


def load_aligned_lines(spec: str, *, identify: bool = False) -> AlignedLines:
    """Load the pairs that one spec names, for what is written line by line next to the text.

    Lines whose source or target is empty, as in corpora whose sentences were filtered one side at a time, are left out,
    and keep their places. Several files are counted one after the other.

    Args:
        spec: As :func:`parse_data_spec` takes it, for one pair of languages.
        identify: As :func:`load_data_specs`.
    Raises:
        ParallelTextError: For all faults but empty sides, or without any pair.
        ValueError: If the spec is malformed, or names several pairs of languages.
    """
    parsed = parse_data_spec(spec)
    if parsed.is_phrasebook:
        read = load_data_specs([spec])
        if len(read) != 1:
            raise ValueError(f"expected pairs of two languages, got {', '.join(read)}; align one pair at a time.")
        ((name, pairs),) = read.items()
        return AlignedLines(name, pairs, list(range(len(pairs))), len(pairs))
    languages: Any = parsed.languages or (None, None)
    source = find_source(parsed.path_or_pair, languages, **parsed.reader_options)
    faults = FaultLog(can_skip=False)
    rows: list[tuple[str, str, str, str]] = []
    places: list[int] = []
    count = 0
    for part in source.parts:
        tables = list(part.tables(faults, COLUMNS))
        numbers = [number for table in tables for number in table["line"].to_pylist()]
        empty = {fault.line for fault in faults.faults if fault.kind in ("empty side", "empty line")}
        faults.faults = [fault for fault in faults.faults if fault.line not in empty]
        # Numbers begin behind a header, and units of other languages have none.
        lines = sorted({*numbers, *filter(None, empty)})
        places_of_part = {number: place for place, number in enumerate(lines, count)}
        places += [places_of_part[number] for number in numbers]
        for table in tables:
            rows += zip(*(table[name].to_pylist() for name in COLUMNS))
        count += len(lines)
    faults.finalize()
    if not rows:
        raise no_rows(source.where)
    pairs = pair_dataset(rows)
    name = _name(pairs, parsed)
    if identify:
        check_sides({name: pairs})
    if parsed.sample.size is None:
        return AlignedLines(name, pairs, places, count)
    drawn = sample_rows(pairs, parsed.sample.size, seed=parsed.sample.seed, where=source.where)
    return AlignedLines(name, drawn, list(range(len(drawn))), len(drawn))


def _name(dataset: Any, spec: DataSpec) -> str:
    pairs = language_pairs(require_rows(head(dataset, 1000), spec.text))
    check_languages(pairs, spec.text)
    if len(pairs) == 1 and UNKNOWN not in (pair := next(iter(pairs))):
        return "-".join(pair)
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
            (RFC 4180 within each line), ``.jsonl``, ``.json``, ``.parquet``, ``.tmx``, or lines of ``source |||
            target``; two line-aligned files, or the prefix of such (``corpus`` for ``corpus.de`` and ``corpus.en``),
            also in a ``.zip`` of OPUS; two ``.json`` files in SQuAD's form, such as XQuAD's, of which the paragraphs
            are read; a folder of such files, of FLORES, or of ``datasets``; the id of a data set on the Hub; or, with
            two languages, ``"tatoeba"``, ``"ntrex"`` or ``"flores"``, test sets on the Hub. A spec of the command line
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
        stream: Return a stream instead: rows are read when they are asked for, and faults raise when their batch is
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
        _check_unused(
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
    return (source.stream if stream else source.read)(skip_bad_lines)


def _is_spec(location: str) -> bool:
    """Return whether a location is a spec of the command line, and no file of that name.

    A spec has languages, options, or two files that a comma joins.
    """
    if home_path(location).exists():
        return False
    parts = split_spec(location)
    return len(parts.languages) == 2 or bool(parts.query) or parts.is_phrasebook or "," in parts.location


def labeled_pairs(data: Any) -> dict[str, Any]:
    """Return data sets by name, with all columns of :data:`~st_xling.data.pairs.COLUMNS`.

    Of data sets that lack some the columns are found and checked as in files, and languages are those of the columns'
    names or the data set's, such as ``de-en``.

    Args:
        data: A data set or a stream, or name → data set.
    """
    found = {}
    for name, part in (data if isinstance(data, Mapping) else {"pairs": data}).items():
        if not hasattr(part, "features"):
            raise TypeError(
                f"expected data sets by name, got {type(part).__name__} for {name}; load pairs by load_pairs, or wrap "
                "lists by Dataset.from_dict"
            )
        part = with_features(part)
        if set(COLUMNS) - set(part.column_names) or find_label(part.column_names):
            source = _from_table(part, name, None, ColumnChoice(pair_languages(name)))
            part = source.read(False) if hasattr(part, "__len__") else source.stream(False)
        found[name] = part
    return found


class Part(NamedTuple):
    """One file, a pair of files or a data set, with its reader.

    Attributes:
        rows: Function that takes a fault log and yields numbered rows.
        layout: Columns of the rows.
        where: File of the source side, and of the target side.
    """

    rows: partial[Iterator[Row]]
    layout: Layout
    where: tuple[str, str]

    def tables(self, faults: FaultLog, names: Sequence[str]) -> Iterator[Any]:
        """Yield the pairs as Arrow tables with the number of each line."""
        rows = self.rows(faults)
        if self.layout.header is not None:
            next(rows, None)
        return pair_tables(rows, self.layout, self.where, faults, names)


@dataclass(frozen=True)
class Source:
    """Pairs that have been found, and how to read them.

    Attributes:
        parts: Files with their readers, read in this order.
        where: What is read, for messages.
        files: The files; none of a data set of the Hub.
        table: Data set or stream of the Hub or of a folder.
        content: Hash of the files of such a folder; empty of a stream, which is not cached.
    """

    parts: tuple[Part, ...]
    where: str
    files: tuple[Path, ...] = ()
    table: Any = None
    content: str = ""

    def with_every_label(self) -> Source:
        """Return the same pairs with those whose label says that they are none."""
        parts = (part._replace(layout=part.layout._replace(label_key=None)) for part in self.parts)
        return replace(self, parts=tuple(parts))

    def read(self, skip_bad_lines: bool, sample: Sample = Sample()) -> Dataset:  # noqa: B008
        """Read all pairs, or those of a sample, memory-mapped."""
        from datasets.exceptions import DatasetGenerationError

        builder = self._builder(skip_bad_lines, is_stream=False)
        try:
            builder.download_and_prepare()
        except DatasetGenerationError as error:
            raise error.__cause__ or error from None
        if not builder.info.splits["train"].num_examples:
            raise no_rows(self.where, builder.info.description)
        if builder.info.description:
            logger.warning("%s", builder.info.description)
        return sample_rows(builder.as_dataset("train"), sample.size, seed=sample.seed, where=self.where)

    def stream(self, skip_bad_lines: bool, sample: Sample = Sample()) -> IterableDataset:  # noqa: B008
        """Read the pairs when they are asked for. A sample is drawn from the memory-mapped whole."""
        from datasets import SplitDict, SplitInfo

        if sample.size is None:
            stream, size = self._builder(skip_bad_lines, is_stream=True).as_streaming_dataset("train"), self._size()
        elif self.files:
            rows = self.read(skip_bad_lines, sample)
            stream, size = rows.to_iterable_dataset(), len(rows)
        else:
            # The first rows are no sample of a sorted corpus, and a stream may never end.
            raise ValueError(
                f"{self.where}: a sample of size={sample.size} needs the number of rows, which a stream of the Hub "
                "does not have; read it whole (without --stream), or leave out ?size and bound the run by --max-steps"
            )
        stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=size or 0)})
        return stream

    def _builder(self, skip_bad_lines: bool, *, is_stream: bool) -> Any:
        from st_xling.data.builder import PairsBuilder

        # A stream is read anew each time. A cached text is found again by the content of its files: size and time of
        # modification may both be those of the text before, as after "cp -p", "rsync -t" or unpacking an archive.
        content = self.content if is_stream else self.content + content_sha256(self.files)
        # `datasets` has no public name for the fingerprint of a table, which changes with its content.
        table = self.table if self.table is None or is_stream else fingerprint(self.table)
        # A reader is a partial function of this package; data sets among its arguments have a fingerprint of their own.
        rows = [part.rows for part in self.parts]
        readers = [(one.func.__qualname__, one.args if self.files else (), one.keywords) for one in rows]
        layouts = [(part.layout, part.where) for part in self.parts]
        key = hashlib.sha256(repr((__version__, skip_bad_lines, readers, layouts, content, table)).encode()).hexdigest()
        features = text_features(self.parts[0].layout.negatives)
        return PairsBuilder(self.parts, features, skip_bad_lines=skip_bad_lines, is_stream=is_stream, key=key)

    def _size(self) -> int | None:
        """Estimate the number of rows."""
        if not self.files:
            return stream_rows(self.table)
        if self.files[0].suffix == ".parquet":
            with open_parquet(self.files[0]) as file:
                return int(file.metadata.num_rows)
        return sum(map(estimate_lines, self.files if len(self.parts) > 1 else self.files[:1]))


def find_source(
    location: Location,
    languages: Languages = (None, None),
    *,
    columns: Columns | None = None,
    name: str | None = None,
    split: str | None = None,
    stream: bool = False,
    known: Sequence[tuple[str, str]] = PARALLEL_NAMES,
    other: str | None = None,
) -> Source:
    """Find the text that a location names, without reading further than its columns.

    Args:
        location, languages, columns, name, split: As :func:`load_pairs`.
        stream: Whether a data set of the Hub is to be streamed.
        known: Names of columns, see :class:`~st_xling.data.columns.ColumnChoice`.
        other: Ending in :data:`~st_xling.data.formats.FORMATS` as which a file of any other ending is read.
    """
    for code in filter(None, languages):
        check_language_code(code, str(location))
    choice = ColumnChoice(languages, columns, known)
    if pair := _line_aligned(location, languages):
        _check_unused(" and ".join(map(str, pair)), columns=columns, name=name, split=split)
        return _open_moses(pair, languages)
    path = home_path(str(location))
    kind = file_ending(unpacked_name(path))
    if path.is_dir():
        files = _files_of_split(path, name, split)
        kinds = {file_ending(unpacked_name(file)) for file in files}
        unread = FORMATS.keys() - kinds
        ignored = [str(file) for file in sorted(path.iterdir()) if file_ending(unpacked_name(file)) in unread]
        if kinds and ignored:
            logger.warning("%s: reads the files ending in %s, and not %s", path, ", ".join(kinds), ", ".join(ignored))
        if kinds == {".csv", ".tsv"}:
            raise ValueError(f"{path} holds both .csv and .tsv files; name one file, or part them into two folders")
        if len(kinds) == 1 and kinds <= FORMATS.keys() - {".parquet"}:
            return _open_files(files, kinds.pop(), choice)
        content = content_sha256(files) if files and not stream else ""
        table = _load_table(path, name, split, stream, content=content)
        source = _from_table(table, str(path), name, choice)
        return source if stream else replace(source, content=content or content_sha256(_arrow_files(table)))
    if path.is_file():
        _check_unused(f"the file {path}", name=name, split=split)
        if not path.stat().st_size:
            raise ParallelTextError(f"expected at least one sentence pair, got none in {path}: the file is empty.")
        if kind not in FORMATS and (other := "|||" if has_bars(path) else other) is None:
            raise ValueError(
                f"expected a file ending in {', '.join(list(FORMATS)[:-1])} (each also {', '.join(PACKED)}) or .zip, "
                f"lines of source ||| target, or the common beginning of two files (corpus, of corpus.de and "
                f"corpus.en), got {path}; rename it, or pass both paths of a pair"
            )
        return _open_files([path], kind if kind in FORMATS else str(other), choice)
    if str(location) in HUB_TEST_SETS:
        _check_unused(f"the test set {location}", columns=columns, name=name, split=split)
        table = hub_pairs(str(location), *languages)
        return _from_table(table.to_iterable_dataset() if stream else table, str(location), None, choice)
    if kind in FORMATS or kind == ".zip" or not HUB_ID.fullmatch(str(location)):
        raise FileNotFoundError(describe_missing(path))
    return _from_table(_load_table(str(location), name, split, stream), str(location), name, choice)


def _line_aligned(location: Location, languages: Languages) -> tuple[str | Path, str | Path] | None:
    """Find two line-aligned files: those named, with a common prefix, in a zip archive, or in a folder of FLORES."""
    if isinstance(location, (tuple, list)):
        return location[0], location[1]
    path = home_path(location)
    kind = file_ending(unpacked_name(path))
    if path.is_dir():
        return flores_pair(path, languages)
    if kind == ".zip" and path.is_file():
        return zipped_moses(path, languages)
    return None if kind in FORMATS else find_moses(path, languages)


def _check_unused(what: str, **options: object) -> None:
    """Raise ``ValueError`` if one of these options is given, by name, which ``what`` does not have."""
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{what} takes no {' and '.join(given)}; leave it out")


def _open_files(paths: Sequence[Path], kind: str, choice: ColumnChoice) -> Source:
    parts = []
    for path in paths:
        reader = partial(FORMATS[kind], str(path), languages=choice.languages)
        layout = find_layout(reader(FaultLog(skip_bad_lines=True)), str(path), choice)
        if layout.languages == (UNKNOWN, UNKNOWN) and layout.language_keys == (None, None):
            _warn_of_unknown_languages(path)
        parts.append(Part(reader, layout, (str(path), str(path))))
    return Source(tuple(parts), ", ".join(map(str, paths)), tuple(paths))


def _warn_of_unknown_languages(path: Path) -> None:
    """Warn of a name such as ``de_en.tsv``, which is not read as two languages, since ``sv_fi`` is a region, too."""
    seeming = re.search(r"(?:^|[.])([a-z]{2,3})_([a-z]{2,3})(?=[.]|$)", path.name)
    if seeming is None:
        return
    names = [language_name(code) for code in seeming.groups()]
    if not set(names).intersection(seeming.groups()):
        what = "%s: the languages are not known; if they are %s and %s, name them: %s-%s=%s"
        logger.warning(what, path, *names, *seeming.groups(), path)


def _open_moses(paths: tuple[str | Path, str | Path], languages: Languages) -> Source:
    source_path, target_path = map(home_path, paths)
    endings = (language_ending(source_path), language_ending(target_path))
    if endings[0] != endings[1] and None not in endings and (languages[0] == endings[1] or languages[1] == endings[0]):
        raise ValueError(
            f"expected source {endings[0]} and target {endings[1]}, as {source_path} and {target_path} end, got "
            f"{languages[0]}-{languages[1]}; swap the languages or the files"
        )
    for path in (source_path, target_path):
        if not _on_disk(path).is_file():
            raise FileNotFoundError(describe_missing(path))
    named = endings if any(endings) else pair_in_name(source_path)  # wmt19.en-de.src
    codes = (languages[0] or named[0] or UNKNOWN, languages[1] or named[1] or UNKNOWN)
    is_squad = all(file_ending(unpacked_name(path)) == ".json" for path in (source_path, target_path))
    where = (str(source_path), str(target_path))
    reader = partial(paragraph_rows if is_squad else moses_rows, *where)
    part = Part(reader, Layout((0, 1), codes, width=2), where)
    return Source((part,), " and ".join(where), (source_path, target_path))


def _is_saved(folder: Path) -> bool:
    """Return whether ``save_to_disk`` of ``datasets`` wrote a folder."""
    return (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file()


def _files_of_split(folder: Path, name: str | None, split: str | None) -> list[Path]:
    """Return the files of a split as ``datasets`` divides a folder, or its TMX files; none of another folder."""
    import datasets

    if any(folder.glob("tatoeba.*-eng.*")):
        raise ValueError(f"{folder} holds Tatoeba test sets; read them with read_tatoeba, or one by tatoeba.deu-eng")
    if _is_saved(folder):
        return []
    try:
        files = datasets.load_dataset_builder(str(folder), name).config.data_files or {}
    except Exception:  # datasets raises a dozen unrelated kinds; load_dataset names the one
        files = {}
    by_split = {str(key): [Path(file) for file in paths] for key, paths in files.items()}
    for paths in by_split.values():
        _check_inside(folder, paths)
    if not by_split:
        return sorted(folder.glob("*.tmx*"))
    return by_split.get(split or _only_split(by_split, str(folder)), [])


def _only_split(splits: Iterable[str], where: str) -> str:
    splits = list(splits)
    if "train" not in splits and len(splits) > 1:
        raise ValueError(f"{where}: expected a split to choose, got none for {', '.join(splits)}; pass e.g. split=test")
    return "train" if "train" in splits else splits[0]


def _from_table(table: Any, where: str, name: str | None, choice: ColumnChoice) -> Source:
    where = f"{where}/{name}" if name else where
    languages = choice.languages
    pair = pair_in_name(name or "")
    if pair[0] != pair[1] and pair[0] and (languages[0] == pair[1] or languages[1] == pair[0]):
        pair = (pair[1], pair[0])  # the columns are chosen by language, so that either direction can be read
    feature = table.features.get("translation")
    keys = getattr(feature, "languages", feature)  # of a Translation, or of a plain struct
    named = (languages[0] or pair[0], languages[1] or pair[1])
    layout = layout_of_names(table.column_names, keys, where, choice, named=named)
    part = Part(partial(_table_rows, table, layout.column_names), layout, (where, where))
    return Source((part,), where, table=table)


def _table_rows(table: Any, names: list[str], faults: FaultLog) -> Iterator[Row]:
    batches = table.with_format(None).select_columns(names).iter(batch_size=1000)
    rows = (dict(zip(batch, values)) for batch in batches for values in zip(*batch.values()))
    return enumerate(rows, 1)


def _check_inside(folder: Path, files: Iterable[Path]) -> None:
    """Raise ``ParallelTextError`` for files that a folder names and that lie elsewhere.

    The metadata of a folder of ``datasets`` (``data_files`` in its card, the shards in ``state.json``) may name any
    path: whoever wrote the folder would choose which files of this machine are read, and published by ``push``. Links
    are not followed, since the user's own folders, and the cache of the Hub, have links to large files elsewhere.
    """
    inside = (os.path.abspath(folder), os.path.realpath(folder))  # noqa: PTH100, since links must not be followed
    for file in files:
        if not any(Path(os.path.normpath(file)).is_relative_to(root) for root in inside):
            raise ParallelTextError(
                f"{folder}: expected data files inside the folder, got {file}, which its metadata name; move the file "
                "into the folder, or name it yourself"
            )


def _arrow_files(table: Any) -> list[Path]:
    """Return the files from which a data set, or each split of several, is memory-mapped."""
    by_split = table.cache_files if isinstance(table.cache_files, dict) else {"": table.cache_files}
    return [Path(file["filename"]) for files in by_split.values() for file in files]


def content_sha256(files: Iterable[Path]) -> str:
    """Return a hash of the paths and the bytes of files; of those in an archive, of the archive."""
    digest = hashlib.sha256()
    for path in dict.fromkeys(map(_on_disk, files)):
        digest.update(f"{path}\t{file_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _load_table(dataset_id: str | Path, name: str | None, split: str | None, stream: bool, *, content: str = "") -> Any:
    """Load one split of a data set of the Hub or of a folder.

    Args:
        dataset_id: The id, or the folder.
        name: Configuration.
        split: Split; by default ``train``, or the only one.
        stream: Whether to load a stream.
        content: Hash of the files of a folder: what is cached under another hash is of another text. ``datasets`` alone
            tells versions of a local file apart by its time of modification.
    """
    import datasets

    folder = Path(dataset_id)
    try:
        if _is_saved(folder):
            loaded = datasets.load_from_disk(str(folder))
            _check_inside(folder, _arrow_files(loaded))
            if split and isinstance(loaded, datasets.DatasetDict):
                loaded = loaded[split]
        else:
            builder = datasets.load_dataset_builder(str(dataset_id), name)
            # In a TSV file a quote is text; by default it would swallow lines up to the next one.
            is_tsv = builder.name == "csv" and getattr(builder.config, "sep", "") == "\t"
            options = {"quoting": csv.QUOTE_NONE} if is_tsv else {}
            cache = Path(datasets.config.HF_DATASETS_CACHE) / "st_xling_folders" / content[:16] if content else None
            loaded = datasets.load_dataset(
                str(dataset_id), name, split=split, streaming=stream, cache_dir=cache and str(cache), **options
            )
    except ParallelTextError:
        raise
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        nearby = "" if folder.is_dir() else f" As a file: {describe_missing(folder)}."
        raise ValueError(
            f"expected a file, a Moses prefix, a folder or the id of a dataset on the Hub, got {dataset_id}"
            f"{f'/{name}' if name else ''}{f' with split {split}' if split else ''}; the Hub answered: "
            f"{type(error).__name__}: {first_line(error)}.{nearby} Check the spelling, the network (HF_HUB_OFFLINE), "
            "and name= (the configuration) and split=."
        ) from error
    if not isinstance(loaded, (datasets.Dataset, datasets.IterableDataset)):
        loaded = loaded[_only_split(loaded, str(dataset_id))]
    if stream and hasattr(loaded, "to_iterable_dataset"):  # a folder of save_to_disk, which is on disk as it is
        loaded = loaded.to_iterable_dataset()
    return with_features(loaded)


def _on_disk(path: Path) -> Path:
    """Return the absolute path of the file itself, or of the archive that a path leads into."""
    return next((folder for folder in (path, *path.parents) if folder.is_file()), path).resolve()
