"""Parallel text of every kind, whole or as a stream: ``read_parallel``, ``stream_parallel`` and a reader a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.delimited import csv_rows, tsv_rows
from st_xling.data.faults import FaultLog
from st_xling.data.moses import find_moses, language_ending, moses_rows
from st_xling.data.pairs import PairRow, read_pairs, stream_pairs
from st_xling.data.records import (
    ColumnPair,
    Languages,
    check_names,
    hub_columns,
    hub_rows,
    jsonl_rows,
    load_table,
    parquet_rows,
    stream_hub,
)
from st_xling.data.spec_options import Sample, no_length
from st_xling.utils.text import PACKED, describe_missing, estimate_lines, file_ending, open_bytes, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")


def read_parallel(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
) -> Dataset:
    """Reads parallel text, whatever it is kept in.

    Args:
        path_or_id: In this order: two paths (a Moses pair); a ``.tsv``, ``.csv``, ``.jsonl`` (each also packed:
            ``.gz``, ``.xz``, ``.bz2``, ``.zst``) or ``.parquet`` file; the prefix of a Moses pair (``corpus`` for
            ``corpus.de`` and ``corpus.en``); a folder that ``datasets`` can load; the id of a dataset on the Hub.
        source_language: Language of the source side; else it is taken from the file name, the columns or the file
            ending; else ``"und"``. The reader of each kind says in which order.
        target_language: The same, of the target side.
        columns: Where source and target are: two positions counted from 0 (TSV, CSV) or two names (all but TSV).
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
        name: Configuration of a dataset on the Hub.
        split: Split of a dataset on the Hub.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``, all strings, in the order of the file.
    Raises:
        ParallelTextError: For all faults of the text together, or if no pair is left.
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ValueError: If the options do not fit what is read.
    Example:
        >>> read_parallel("de-en.tsv.gz").select_columns(["source", "target"])  # doctest: +SKIP
    """
    return _find(path_or_id, (source_language, target_language), columns, name, split).read(skip_bad_lines)


def stream_parallel(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
    sample: Sample = Sample(),  # noqa: B008
) -> IterableDataset:
    """As ``read_parallel``, without holding the text: rows come from the file as they are asked for.

    Reading starts anew in each pass. Faults raise when their line is reached (of a data set of the Hub, its batch), not
    all together. Nothing but the first
    megabyte of a file is looked at before, to estimate the number of its rows.

    Args:
        path_or_id, source_language, target_language, columns, skip_bad_lines, name, split: As ``read_parallel``.
        sample: Rows of a file to take: the same rows that a sample of the whole file has, for one more pass over it.
    Raises:
        ValueError: A sample of a data set of the Hub, which may be without an end; and as ``read_parallel``.
        FileNotFoundError: If there is no such file.
    """
    found = _find(path_or_id, (source_language, target_language), columns, name, split, stream=True)
    return found.stream(skip_bad_lines, sample)


def read_tsv(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a file of ``source TAB target`` lines, plain or packed.

    Quotes and backslashes are text, and no header is assumed. Without ``columns`` every line must have exactly two
    columns; with it, at least as many as it reaches.

    Args:
        path: The file.
        source_language: Language of the source side; else from a name like ``de-en.tsv``; else ``"und"``.
        target_language: The same, of the target side.
        columns: Positions of source and target, counted from 0.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
        ValueError: If ``columns`` are not two positions.
    """
    return _file(tsv_rows, path, (source_language, target_language), columns).read(skip_bad_lines)


def read_csv(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    r"""Pairs of a comma-separated file, plain or packed.

    Quotes are syntax only where RFC 4180 is kept *within a line*: a field is quoted if it begins with ``"`` and ends,
    before a comma or the end of the line, with the matching ``"``; ``""`` in it is one quote. A quote elsewhere is
    text, so ``5" pipe,5-Zoll-Rohr`` is a pair. A field that begins with a quote which its line never closes is a fault
    of that line alone: it swallows nothing. Fields that span lines are not supported; the line that would end one is a
    fault too.

    The first line is a header if it names the columns: those of ``columns``, or ``source``/``target``,
    ``src``/``tgt``, ``sentence1``/``sentence2``, or the two languages asked for or named by the file. Otherwise it is a
    pair. A header may have ``source_language`` and ``target_language`` too, which hold where no language is asked for.

    Args, Returns, Raises: as ``read_tsv``; ``columns`` may also be two names of the header.
    """
    return _file(csv_rows, path, (source_language, target_language), columns).read(skip_bad_lines)


def read_jsonl(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a file with one JSON object a line, plain or packed.

    The keys are those of ``columns``, else ``source``/``target``, ``src``/``tgt``, ``sentence1``/``sentence2``, the
    languages asked for or named by the file, or the only two keys if both are two-letter codes; all of these also
    inside ``{"translation": {"de": ..., "en": ...}}``. The first object in which any of these is found
    decides for all lines; a stream looks for it in the first thousand.

    Args:
        path: The file.
        source_language: Language of the source side; else the row's own ``source_language``, if it has one; else from a
            name like ``de-en.jsonl``; else the key, if it is a language code; else ``"und"``.
        target_language: The same, of the target side.
        columns: Names of the two keys.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
        ValueError: If ``columns`` are not two names.
    """
    return _file(jsonl_rows, path, (source_language, target_language), columns).read(skip_bad_lines)


def read_parquet(
    path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of a Parquet file; columns, languages and faults as in ``read_jsonl``, with rows counted from 1."""
    return _file(parquet_rows, path, (source_language, target_language), columns).read(skip_bad_lines)


def read_moses(
    source_path: str | Path,
    target_path: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    """Pairs of two line-aligned files, plain or packed; quotes and tabs are text.

    Args:
        source_path: The source sentences, one a line.
        target_path: Their translations, one a line.
        source_language: Language of the source side; else the ending of its file, as in ``corpus.de``; else ``"und"``.
        target_language: The same, of the target side.
        skip_bad_lines: Drop pairs with a faulty side, with a warning, instead of raising.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ParallelTextError: For faulty lines, all together; if no pair is left; if the files differ in their number of
            lines, whatever ``skip_bad_lines`` says, since the alignment is then unknown.
        FileNotFoundError: If a file is missing.
        ValueError: If the endings are the languages asked for, the other way round.
    """
    return _moses((source_path, target_path), (source_language, target_language)).read(skip_bad_lines)


def read_hub(
    dataset_id: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: ColumnPair | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
) -> Dataset:
    """Pairs of a dataset of the Hub, through ``datasets.load_dataset``; they are held in memory.

    Args:
        dataset_id: E.g. ``"Helsinki-NLP/opus-100"``, or a folder with Parquet or JSON files, or one written by
            ``Dataset.save_to_disk``.
        source_language: Language of the source side; else the row's own ``source_language``; else that of a
            configuration named like ``de-en``; else the column or ``translation`` key, if it is a language code; else
            ``"und"``.
        target_language: The same, of the target side.
        columns: Names of two columns, or two keys of ``translation``. Else ``source``/``target``, ``src``/``tgt``,
            ``sentence1``/``sentence2``, the two languages, as columns or as keys of ``translation``.
        skip_bad_lines: Drop faulty rows, with a warning, instead of raising.
        name: The configuration, e.g. ``"de-en"``.
        split: The split; else ``"train"``, or the only one there is.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language``.
    Raises:
        ValueError: If it cannot be loaded (the error of ``datasets`` is its cause), or the split must be chosen.
        ParallelTextError: If no two columns fit; for faulty rows, counted from 1, all together; if no row is left.
    """
    return _hub(dataset_id, (source_language, target_language), columns, name, split).read(skip_bad_lines)


_READERS = {".tsv": read_tsv, ".csv": read_csv, ".jsonl": read_jsonl}
_ROWS = {".tsv": tsv_rows, ".csv": csv_rows, ".jsonl": jsonl_rows, ".parquet": parquet_rows}

READERS: dict[str, Callable[..., Dataset]] = {
    **{kind + packing: reader for kind, reader in _READERS.items() for packing in ("", *PACKED)},
    ".parquet": read_parquet,
}
"""The reader of each file name ending."""


@dataclass(frozen=True)
class _Source:
    """Parallel text that has been found, and how to read it.

    Attributes:
        rows: The reader.
        options: Of the reader.
        where: What is read, for messages.
        files: The files that are read; none of a data set.
    """

    rows: Callable[..., Iterator[PairRow]]
    options: dict[str, Any]
    where: str
    files: tuple[Path, ...] = ()

    def read(self, skip_bad_lines: bool) -> Dataset:
        faults = FaultLog(skip_bad_lines=skip_bad_lines)
        return read_pairs(self.rows(faults, **self.options), self.where, faults)

    def stream(self, skip_bad_lines: bool, sample: Sample) -> IterableDataset:
        if not self.files:
            if sample.size is not None:
                raise no_length(self.where, sample.size)
            return stream_hub(skip_bad_lines=skip_bad_lines, **self.options)
        return stream_pairs(
            self.rows,
            self.options,
            where=self.where,
            size=self._size(),
            sample=sample,
            skip_bad_lines=skip_bad_lines,
        )

    def _size(self) -> int:
        if self.rows is parquet_rows:
            import pyarrow.parquet as pq

            with pq.ParquetFile(self.files[0]) as file:
                return int(file.metadata.num_rows)
        for path in self.files[1:]:
            with open_bytes(path):  # it is there
                pass
        return estimate_lines(self.files[0])


def _find(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    languages: Languages,
    columns: ColumnPair | None,
    name: str | None,
    split: str | None,
    *,
    stream: bool = False,
) -> _Source:
    if isinstance(path_or_id, (tuple, list)):
        if len(path_or_id) != 2:
            raise ValueError(f"expected two paths of a Moses pair, got {len(path_or_id)}; pass (source, target)")
        _refuse("a Moses pair", columns=columns, name=name, split=split)
        return _moses((path_or_id[0], path_or_id[1]), languages)
    path = Path(path_or_id).expanduser()
    ending = file_ending(path)
    if ending in READERS and not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
        _refuse(f"the file {path}", name=name, split=split)
        return _file(_ROWS[file_ending(unpacked_name(path))], path, languages, columns)
    if path.is_dir():
        if any(path.glob("tatoeba.*-eng.*")):
            raise ValueError(f"{path} holds Tatoeba test sets; read them with read_tatoeba, or one by tatoeba.deu-eng")
        return _hub(path, languages, columns, name, split, stream=stream)
    if moses := find_moses(path, *languages):
        _refuse(f"the Moses pair {path}", columns=columns, name=name, split=split)
        return _moses(moses, languages)
    if path.is_file():
        raise ValueError(
            f"expected a file ending in {', '.join(_READERS)} (each also {', '.join(PACKED)}) or .parquet, or the "
            f"common beginning of two (corpus, of corpus.de and corpus.en), got {path}; rename it, or pass both paths "
            "of a pair"
        )
    if not HUB_ID.fullmatch(str(path_or_id)):
        raise FileNotFoundError(describe_missing(path))
    return _hub(str(path_or_id), languages, columns, name, split, stream=stream)


def _file(
    rows: Callable[..., Iterator[PairRow]], path: str | Path, languages: Languages, columns: ColumnPair | None
) -> _Source:
    # A tuple: JSON and the command line may give a list, of which datasets would hand each worker a part.
    options = {"path": str(path), "languages": languages, "columns": columns and tuple(columns)}
    return _Source(rows, options, str(path), (Path(path),))


def _moses(paths: tuple[str | Path, str | Path], languages: Languages) -> _Source:
    source_path, target_path = (Path(path).expanduser() for path in paths)
    endings = (language_ending(source_path), language_ending(target_path))
    if endings[0] != endings[1] and None not in endings and (languages[0] == endings[1] or languages[1] == endings[0]):
        raise ValueError(
            f"expected source {endings[0]} and target {endings[1]}, as {source_path} and {target_path} end, got "
            f"{languages[0]}-{languages[1]}; swap the languages or the files"
        )
    codes = (languages[0] or endings[0], languages[1] or endings[1])
    options = {"source_path": str(source_path), "target_path": str(target_path), "languages": codes}
    return _Source(moses_rows, options, f"{source_path} and {target_path}", (source_path, target_path))


def _hub(
    dataset_id: str | Path,
    languages: Languages,
    columns: ColumnPair | None,
    name: str | None,
    split: str | None,
    *,
    stream: bool = False,
) -> _Source:
    where = f"{dataset_id}{f'/{name}' if name else ''}"
    check_names(columns, where)
    table = load_table(dataset_id, name, split, where, stream=stream)
    if stream and hasattr(table, "to_iterable_dataset"):  # a folder of save_to_disk, which is on disk as it is
        table = table.to_iterable_dataset()
    if table.features is None:
        table = table._resolve_features()  # looks at the first rows
    chosen, pair = hub_columns(table, where, name, languages, columns)
    options = {"table": table, "where": where, "chosen": chosen, "languages": pair, "requested": languages}
    return _Source(hub_rows, options, where)


def _refuse(what: str, **options: object) -> None:
    named = [f"{option}={value!r}" for option, value in options.items() if value is not None]
    if named:
        raise ValueError(f"{what} takes no {' and '.join(named)}; leave it out")
