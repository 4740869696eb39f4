"""Find the pairs that a location names: one function for each kind of location, in the table :data:`LOCATIONS`.

A function takes a :class:`PairRequest`, and returns the pairs, or ``None`` for a location of another kind. No text is
read further than its columns.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from st_xling.data.check import FaultLog
from st_xling.data.columns import (
    PARALLEL_NAMES,
    ColumnChoice,
    Columns,
    LanguagePair,
    Layout,
    NumberedRow,
    find_layout,
    layout_of_names,
)
from st_xling.data.documents import is_document
from st_xling.data.formats import (
    FORMATS,
    find_moses,
    flores_pair,
    has_bars,
    language_ending,
    moses_rows,
    paragraph_rows,
    zipped_moses,
)
from st_xling.data.pair_source import PairReader, PairSource, content_sha256, file_on_disk
from st_xling.data.spec import DataSpec
from st_xling.data.test_sets import HUB_TEST_SETS, hub_pairs
from st_xling.utils.languages import UNKNOWN, check_language_code, language_name, pair_in_name
from st_xling.utils.private import with_features
from st_xling.utils.terminal import first_line
from st_xling.utils.text import PACKED, ParallelTextError, describe_missing, home_path, unpacked_ending

logger = logging.getLogger(__name__)

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")

_ALIGN_FIRST = "align it with its translation first: st-xling align-documents SOURCE TARGET --out pairs.tsv"

Location = str | Path | tuple[str | Path, str | Path]


@dataclass(frozen=True)
class PairRequest:
    """What is to be read, and how.

    Attributes:
        location: A path, two paths, or an id of the Hub.
        choice: How the columns are chosen, and the languages of source and target.
        name: Configuration of a data set on the Hub.
        split: Split of a data set on the Hub or of a folder.
        stream: Whether a data set of the Hub is to be streamed.
        default_ending: Ending in :data:`~st_xling.data.formats.FORMATS` as which a file of any other ending is read.
    """

    location: Location
    choice: ColumnChoice
    name: str | None = None
    split: str | None = None
    stream: bool = False
    default_ending: str | None = None

    @property
    def languages(self) -> LanguagePair:
        """Languages of source and target; ``None`` for one that is not chosen."""
        return self.choice.languages

    @property
    def path(self) -> Path:
        """The location as a path."""
        return home_path(str(self.location))

    @property
    def ending(self) -> str:
        """Ending of the path, without that of its compression."""
        return unpacked_ending(self.path)


def find_source(
    location: Location,
    languages: LanguagePair = (None, None),
    *,
    columns: Columns | None = None,
    name: str | None = None,
    split: str | None = None,
    stream: bool = False,
    paired_names: Sequence[tuple[str, str]] = PARALLEL_NAMES,
    default_ending: str | None = None,
) -> PairSource:
    """Find the text that a location names, without reading further than its columns.

    Args:
        location, languages, columns, name, split: As :func:`~st_xling.data.load_pairs`.
        stream: Whether a data set of the Hub is to be streamed.
        paired_names: Names of columns, see :class:`~st_xling.data.columns.ColumnChoice`.
        default_ending: Ending in :data:`~st_xling.data.formats.FORMATS` as which a file of any other ending is read.

    Raises:
        FileNotFoundError: If the location is of no kind in :data:`LOCATIONS`.
    """
    for code in filter(None, languages):
        check_language_code(code, str(location))
    choice = ColumnChoice(languages, columns, paired_names)
    request = PairRequest(location, choice, name, split, stream, default_ending)
    for open_location in LOCATIONS.values():
        source = open_location(request)
        if source is not None:
            return source
    raise FileNotFoundError(describe_missing(request.path))


def find_spec_source(spec: DataSpec, *, stream: bool = False, default_ending: str | None = None) -> PairSource:
    """Find the text that a spec of parallel text names.

    Args:
        spec: As :func:`~st_xling.data.spec.parse_data_spec` returns it, but not of the phrasebook.
        stream, default_ending: As :func:`find_source`.
    """
    return find_source(
        spec.path_or_pair,
        spec.language_pair,
        columns=spec.options.get("columns"),
        name=spec.options.get("name"),
        split=spec.options.get("split"),
        stream=stream,
        default_ending=default_ending,
    )


def check_unused(what: str, **options: object) -> None:
    """Raise ``ValueError`` if one of these options, which ``what`` does not have, is given."""
    unused = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    if unused:
        raise ValueError(f"{what} takes no {' and '.join(unused)}; leave it out")


# Line-aligned files.


def open_two_files(request: PairRequest) -> PairSource | None:
    """Open two line-aligned files that are both named."""
    if not isinstance(request.location, (tuple, list)):
        return None
    return _open_aligned(request.location[0], request.location[1], request)


def open_flores(request: PairRequest) -> PairSource | None:
    """Open the files of two languages in a folder of FLORES."""
    files = flores_pair(request.path, request.languages) if request.path.is_dir() else None
    return _open_aligned(*files, request) if files else None


def open_archive(request: PairRequest) -> PairSource | None:
    """Open the two files in a zip archive of OPUS."""
    if request.ending != ".zip" or not request.path.is_file():
        return None
    return _open_aligned(*zipped_moses(request.path, request.languages), request)


def open_prefix(request: PairRequest) -> PairSource | None:
    """Open two line-aligned files by their common beginning: ``corpus`` for ``corpus.de`` and ``corpus.en``."""
    files = None if request.ending in FORMATS else find_moses(request.path, request.languages)
    return _open_aligned(*files, request) if files else None


def _open_aligned(source: str | Path, target: str | Path, request: PairRequest) -> PairSource:
    check_unused(f"{source} and {target}", columns=request.choice.columns, name=request.name, split=request.split)
    source_path = home_path(source)
    target_path = home_path(target)
    languages = _aligned_languages(source_path, target_path, request.languages)
    is_squad = unpacked_ending(source_path) == unpacked_ending(target_path) == ".json"
    read_rows = paragraph_rows if is_squad else moses_rows
    where = (str(source_path), str(target_path))
    reader = PairReader(partial(read_rows, *where), Layout((0, 1), languages, width=2), where)
    return PairSource((reader,), " and ".join(where), (source_path, target_path))


def _aligned_languages(source_path: Path, target_path: Path, languages: LanguagePair) -> tuple[str, str]:
    """Return the languages of two line-aligned files: those chosen, else those that the names of the files state."""
    source, target = languages
    source_ending = language_ending(source_path)
    target_ending = language_ending(target_path)
    have_both_endings = None not in (source_ending, target_ending) and source_ending != target_ending
    if have_both_endings and (source == target_ending or target == source_ending):
        raise ValueError(
            f"expected source {source_ending} and target {target_ending}, as {source_path} and {target_path} end, got "
            f"{source}-{target}; swap the languages or the files"
        )
    for path in (source_path, target_path):
        if not file_on_disk(path).is_file():
            raise FileNotFoundError(describe_missing(path))
        if is_document(path):
            raise ParallelTextError(f"{path}: expected a sentence a line, got a document; {_ALIGN_FIRST}")
    if source_ending is None and target_ending is None:
        source_ending, target_ending = pair_in_name(source_path)  # wmt19.en-de.src
    return source or source_ending or UNKNOWN, target or target_ending or UNKNOWN


# Files whose rows have both sides.


def open_file(request: PairRequest) -> PairSource | None:
    """Open a file of pairs in one of the :data:`~st_xling.data.formats.FORMATS`."""
    path = request.path
    if not path.is_file():
        return None
    check_unused(f"the file {path}", name=request.name, split=request.split)
    if is_document(path):
        raise ParallelTextError(f"{path}: expected sentence pairs, got a document of one language; {_ALIGN_FIRST}")
    if not path.stat().st_size:
        raise ParallelTextError(f"expected at least one sentence pair, got none in {path}: the file is empty.")
    ending: str | None = request.ending
    if ending not in FORMATS:
        ending = "|||" if has_bars(path) else request.default_ending
    if ending is None:
        raise ValueError(
            f"expected a file ending in {', '.join(list(FORMATS)[:-1])} (each also {', '.join(PACKED)}) or .zip, "
            f"lines of source ||| target, or the common beginning of two files (corpus, of corpus.de and "
            f"corpus.en), got {path}; rename it, or pass both paths of a pair"
        )
    return _open_files([path], ending, request.choice)


def _open_files(paths: Sequence[Path], ending: str, choice: ColumnChoice) -> PairSource:
    readers = []
    for path in paths:
        where = str(path)
        rows = partial(FORMATS[ending], where, languages=choice.languages)
        layout = find_layout(rows(FaultLog(skip_bad_lines=True)), where, choice)
        if layout.languages == (UNKNOWN, UNKNOWN) and layout.language_keys == (None, None):
            _warn_of_unknown_languages(path)
        readers.append(PairReader(rows, layout, (where, where)))
    return PairSource(tuple(readers), ", ".join(map(str, paths)), tuple(paths))


def _warn_of_unknown_languages(path: Path) -> None:
    """Warn of a name such as ``de_en.tsv``, which is not read as two languages, since ``sv_fi`` is a region, too."""
    seeming = re.search(r"(?:^|[.])([a-z]{2,3})_([a-z]{2,3})(?=[.]|$)", path.name)
    if seeming is None:
        return
    codes = seeming.groups()
    names = [language_name(code) for code in codes]
    if set(names).isdisjoint(codes):  # both codes are languages, which have names
        message = "%s: the languages are not known; if they are %s and %s, name them: %s-%s=%s"
        logger.warning(message, path, *names, *codes, path)


# Folders and data sets.


def open_folder(request: PairRequest) -> PairSource | None:
    """Open a folder of files of one format, or one of ``datasets``."""
    folder = request.path
    if not folder.is_dir():
        return None
    files = _files_of_split(folder, request.name, request.split)
    endings = {unpacked_ending(file) for file in files}
    _warn_of_unread_files(folder, endings)
    if endings == {".csv", ".tsv"}:
        raise ValueError(f"{folder} holds both .csv and .tsv files; name one file, or part them into two folders")
    if len(endings) == 1 and endings <= FORMATS.keys() - {".parquet"}:
        return _open_files(files, endings.pop(), request.choice)

    content = content_sha256(files) if files and not request.stream else ""
    table = _load_table(folder, request, content=content)
    source = open_table(table, str(folder), request.name, request.choice)
    if request.stream:
        return source
    return replace(source, content=content or content_sha256(_arrow_files(table)))


def _warn_of_unread_files(folder: Path, endings: set[str]) -> None:
    """Warn of the files in a folder that have none of the endings that are read, but another one of parallel text."""
    other_endings = FORMATS.keys() - endings
    unread = [str(file) for file in sorted(folder.iterdir()) if unpacked_ending(file) in other_endings]
    if endings and unread:
        logger.warning("%s: reads the files ending in %s, and not %s", folder, ", ".join(endings), ", ".join(unread))


def open_hub_test_set(request: PairRequest) -> PairSource | None:
    """Open a test set of the Hub by its short name, such as ``ntrex``."""
    name = str(request.location)
    if name not in HUB_TEST_SETS:
        return None
    check_unused(f"the test set {name}", columns=request.choice.columns, name=request.name, split=request.split)
    table = hub_pairs(name, *request.languages)
    if request.stream:
        table = table.to_iterable_dataset()
    return open_table(table, name, None, request.choice)


def open_hub_data_set(request: PairRequest) -> PairSource | None:
    """Open a data set of the Hub by its id."""
    dataset_id = str(request.location)
    is_file_name = request.ending in FORMATS or request.ending == ".zip"
    if is_file_name or not HUB_ID.fullmatch(dataset_id):
        return None
    return open_table(_load_table(dataset_id, request), dataset_id, request.name, request.choice)


LOCATIONS: dict[str, Callable[[PairRequest], PairSource | None]] = {
    "two files": open_two_files,
    "folder of FLORES": open_flores,
    "folder": open_folder,
    "zip archive": open_archive,
    "beginning of file names": open_prefix,
    "file": open_file,
    "test set of the Hub": open_hub_test_set,
    "data set of the Hub": open_hub_data_set,
}
"""Kind of a location → the function that opens it; a location is of the first kind that fits."""


def open_table(table: Any, where: str, name: str | None, choice: ColumnChoice) -> PairSource:
    """Return the pairs of a data set or a stream of ``datasets``.

    Args:
        table: The data set or stream.
        where: What it is, for messages.
        name: Its configuration, which may name the two languages.
        choice: How its columns are chosen.
    """
    if name:
        where = f"{where}/{name}"
    languages = choice.languages
    source, target = pair_in_name(name or "")
    if source and source != target and (languages[0] == target or languages[1] == source):
        source, target = target, source  # the columns are chosen by language, so that either direction can be read
    feature = table.features.get("translation")
    keys = getattr(feature, "languages", feature)  # of a Translation, or of a plain struct
    named = (languages[0] or source, languages[1] or target)
    layout = layout_of_names(table.column_names, keys, where, choice, named=named)
    reader = PairReader(partial(_table_rows, table, layout.column_names), layout, (where, where))
    return PairSource((reader,), where, table=table)


def _table_rows(table: Any, names: list[str], faults: FaultLog) -> Iterator[NumberedRow]:
    number = 0
    for batch in table.with_format(None).select_columns(names).iter(batch_size=1000):
        for cells in zip(*batch.values()):
            number += 1
            yield number, dict(zip(batch, cells))


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
        data_files = datasets.load_dataset_builder(str(folder), name).config.data_files or {}
    except Exception:  # datasets raises a dozen unrelated kinds; load_dataset names the one
        data_files = {}
    files_by_split: dict[str, list[Path]] = {}
    for split_name, paths in data_files.items():
        files_by_split[str(split_name)] = list(map(Path, paths))
    for files in files_by_split.values():
        check_inside(folder, files)
    if not files_by_split:
        return sorted(folder.glob("*.tmx*"))
    return files_by_split.get(split or _only_split(files_by_split, str(folder)), [])


def _only_split(splits: Iterable[str], where: str) -> str:
    """Return ``train``, or the only split; raise ``ValueError`` if there are several others."""
    splits = list(splits)
    if "train" in splits:
        return "train"
    if len(splits) > 1:
        raise ValueError(f"{where}: expected a split to choose, got none for {', '.join(splits)}; pass e.g. split=test")
    return splits[0]


def check_inside(folder: Path, files: Iterable[Path]) -> None:
    """Raise ``ParallelTextError`` for files that a folder names and that lie elsewhere.

    The metadata of a folder of ``datasets`` (``data_files`` in its card, the shards in ``state.json``) may name any
    path: whoever wrote the folder would choose which files of this machine are read, and published by ``push``. Links
    are not followed, since the user's own folders, and the cache of the Hub, have links to large files elsewhere.
    """
    roots = (os.path.abspath(folder), os.path.realpath(folder))  # noqa: PTH100, since links must not be followed
    for file in files:
        path = Path(os.path.normpath(file))
        if not any(path.is_relative_to(root) for root in roots):
            raise ParallelTextError(
                f"{folder}: expected data files inside the folder, got {file}, which its metadata name; move the file "
                "into the folder, or name it yourself"
            )


def _arrow_files(table: Any) -> list[Path]:
    """Return the files from which a data set, or each split of several, is memory-mapped."""
    if not isinstance(table.cache_files, dict):
        return [Path(file["filename"]) for file in table.cache_files]
    paths: list[Path] = []
    for files in table.cache_files.values():
        paths += [Path(file["filename"]) for file in files]
    return paths


def _load_table(dataset_id: str | Path, request: PairRequest, *, content: str = "") -> Any:
    """Load one split of a data set of the Hub or of a folder.

    Args:
        dataset_id: The id, or the folder.
        request: Its configuration; its split, by default ``train``, or the only one; and whether to load a stream.
        content: Hash of the files of a folder: what is cached under another hash is of another text. ``datasets`` tells
            versions of a local file apart only by its time of modification.
    """
    import datasets

    name = request.name
    split = request.split
    folder = Path(dataset_id)
    try:
        if _is_saved(folder):
            loaded = datasets.load_from_disk(str(folder))
            check_inside(folder, _arrow_files(loaded))
            if split and isinstance(loaded, datasets.DatasetDict):
                loaded = loaded[split]
        else:
            loaded = _load_dataset(str(dataset_id), request, content)
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
    if request.stream and hasattr(loaded, "to_iterable_dataset"):  # a folder of save_to_disk, which is on disk as it is
        loaded = loaded.to_iterable_dataset()
    return with_features(loaded)


def _load_dataset(dataset_id: str, request: PairRequest, content: str) -> Any:
    import datasets

    cache_folder = None
    if content:
        cache_folder = str(Path(datasets.config.HF_DATASETS_CACHE) / "st_xling_folders" / content[:16])
    load = partial(
        datasets.load_dataset,
        dataset_id,
        request.name,
        split=request.split,
        streaming=request.stream,
        cache_dir=cache_folder,
    )
    builder = datasets.load_dataset_builder(dataset_id, request.name)
    is_tsv = builder.name == "csv" and getattr(builder.config, "sep", "") == "\t"
    # In a TSV file a quote is text; by default it would swallow lines up to the next one.
    return load(quoting=csv.QUOTE_NONE) if is_tsv else load()
