"""Parallel text of every kind, whole or as a stream: ``read_parallel``, ``stream_parallel`` and a reader a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.faults import FaultLog
from st_xling.data.moses import find_moses, language_ending, moses_rows, zipped_moses
from st_xling.data.pairs import PairRow, pair_columns, read_pairs, streamed_rows, text_features
from st_xling.data.sample import Sample, no_length
from st_xling.data.squad_form import paragraph_rows
from st_xling.data.tables import (
    PARALLEL_NAMES,
    Columns,
    Languages,
    Layout,
    file_layout,
    file_rows,
    hub_layout,
    hub_rows,
    load_table,
    open_parquet,
    pair_rows,
)
from st_xling.utils.text import PACKED, describe_missing, estimate_lines, file_ending, open_bytes, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
"""Endings of the files that are read as tables; all but the last may be packed."""


def read_parallel(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Columns | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
) -> Dataset:
    """Reads parallel text, whatever it is kept in.

    Args:
        path_or_id: In this order: two paths (a Moses pair; of two ``.json`` files in SQuAD's form, such as XQuAD's, the
            paragraphs); a ``.tsv``, ``.csv``, ``.jsonl`` (each also packed:
            ``.gz``, ``.xz``, ``.bz2``, ``.zst``) or ``.parquet`` file; a ``.zip`` of OPUS with a Moses pair in it; the
            prefix of a Moses pair (``corpus`` for ``corpus.de`` and ``corpus.en``); a folder that ``datasets`` can
            load; the id of a dataset on the Hub.
        source_language: Language of the source side; else it is taken from the file name, the columns or the file
            ending; else ``"und"``. The reader of each kind says in which order.
        target_language: The same, of the target side.
        columns: Where source and target are, and hard negatives behind them: positions counted from 0 (TSV, CSV) or
            names. Else columns called ``source``/``target``, ``src``/``tgt``, ``sentence1``/``sentence2``,
            ``anchor``/``positive``, ``english``/``non_english`` (English is the target, unless the languages say
            otherwise), the two languages (``de``, ``deu``, ``German``), or two language codes and no other columns;
            also as keys of ``translation``. Columns ``negative``, ``negative_1``, … are hard negatives. A warning names
            the columns that are not read.
        skip_bad_lines: Drop faulty lines, with a warning, instead of raising.
        name: Configuration of a dataset on the Hub.
        split: Split of a dataset on the Hub.
    Returns:
        Rows of ``source``, ``target``, ``source_language``, ``target_language`` and, where there are hard negatives,
        ``negative_1``, ``negative_2``, …, all strings, in the order of the file.
    Raises:
        ParallelTextError: For all faults of the text together, or if no pair is left.
        FileNotFoundError: If there is no such file; the message names the nearest one.
        ValueError: If the options do not fit what is read.
    Example:
        >>> read_parallel("de-en.tsv.gz").select_columns(["source", "target"])  # doctest: +SKIP
    """
    return find_source(path_or_id, (source_language, target_language), columns, name, split).read(skip_bad_lines)


def stream_parallel(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Columns | None = None,
    skip_bad_lines: bool = False,
    name: str | None = None,
    split: str | None = None,
    sample: Sample = Sample(),  # noqa: B008
) -> IterableDataset:
    """As ``read_parallel``, without holding the text: rows come from the file as they are asked for.

    Reading starts anew in each pass. Faults raise when their line is reached (of a data set of the Hub, its batch), not
    all together. Before, a file is read no further than to its columns, and its first megabyte to estimate its rows.

    Args:
        path_or_id, source_language, target_language, columns, skip_bad_lines, name, split: As ``read_parallel``.
        sample: Rows of a file to take: the same rows that a sample of the whole file has, for one more pass over it.
    Raises:
        ValueError: A sample of a data set of the Hub, which may be without an end; and as ``read_parallel``.
        FileNotFoundError: If there is no such file.
    """
    found = find_source(path_or_id, (source_language, target_language), columns, name, split, stream=True)
    return found.stream(skip_bad_lines, sample)


def read_tsv(path: str | Path, **options: Any) -> Dataset:
    """Pairs of a file of ``source TAB target`` lines, plain or packed.

    Quotes and backslashes are text. The first line is a header if it names the columns, as in :func:`read_csv`; a
    warning says so. Without header and ``columns`` every line must have exactly two columns; with positions, at least
    as many as they reach.

    Args:
        path: The file.
        **options: ``source_language``, ``target_language``, ``columns`` and ``skip_bad_lines`` of
            :func:`read_parallel`. Languages are otherwise those of a name like ``de-en.tsv``; else ``"und"``.
    Returns, Raises: As :func:`read_parallel`.
    """
    return _file(".tsv", path, **options)


def read_csv(path: str | Path, **options: Any) -> Dataset:
    r"""Pairs of a comma-separated file, plain or packed.

    Quotes are syntax only where RFC 4180 is kept *within a line*: a field is quoted if it begins with ``"`` and ends,
    before a comma or the end of the line, with the matching ``"``; ``""`` in it is one quote. A quote elsewhere is
    text, so ``5" pipe,5-Zoll-Rohr`` is a pair. A field that begins with a quote which its line never closes is a fault
    of that line alone: it swallows nothing. Fields that span lines are not supported; the line that would end one is a
    fault too.

    The first line is a header if it names the columns: those of ``columns``, or as :func:`read_parallel` finds them;
    two bare language codes only where they are the languages asked for or named by the file. Otherwise it is a pair.
    A header may have ``source_language`` and ``target_language`` too, which hold where no language is asked for.

    Args, Returns, Raises: As :func:`read_tsv`.
    """
    return _file(".csv", path, **options)


def read_jsonl(path: str | Path, **options: Any) -> Dataset:
    """Pairs of a file with one JSON object a line, plain or packed.

    The first object in which columns are found decides for all lines. The language of a side is the one asked for; else
    the row's own ``source_language``, if it has one; else from a name like ``de-en.jsonl``; else the key, if it is a
    language code; else ``"und"``.

    Args, Returns, Raises: As :func:`read_tsv`; ``columns`` are names.
    """
    return _file(".jsonl", path, **options)


def read_parquet(path: str | Path, **options: Any) -> Dataset:
    """Pairs of a Parquet file; columns, languages and faults as in ``read_jsonl``, with rows counted from 1."""
    return _file(".parquet", path, **options)


def _file(
    kind: str,
    path: str | Path,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Columns | None = None,
    skip_bad_lines: bool = False,
) -> Dataset:
    source = _open_file(kind, path, (source_language, target_language), columns, PARALLEL_NAMES)
    return source.read(skip_bad_lines)


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
    return _open_moses((source_path, target_path), (source_language, target_language)).read(skip_bad_lines)


def read_hub(
    dataset_id: str | Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Columns | None = None,
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
        columns: Names of two columns, or two keys of ``translation``; else as :func:`read_parallel` finds them.
        skip_bad_lines: Drop faulty rows, with a warning, instead of raising.
        name: The configuration, e.g. ``"de-en"``.
        split: The split; else ``"train"``, or the only one there is.
    Returns:
        As :func:`read_parallel`.
    Raises:
        ValueError: If it cannot be loaded (the error of ``datasets`` is its cause), or the split must be chosen.
        ParallelTextError: If no two columns fit; for faulty rows, counted from 1, all together; if no row is left.
    """
    languages = (source_language, target_language)
    return _open_hub(dataset_id, languages, columns, name, split, PARALLEL_NAMES).read(skip_bad_lines)


@dataclass(frozen=True)
class Source:
    """Pairs that have been found, and how to read them.

    Attributes:
        rows: The reader: a function of a module that takes a fault log and ``options``.
        options: Of the reader.
        where: What is read, for messages.
        files: The files that are read; none of a data set.
        negatives: Hard negatives of each row.
    """

    rows: Callable[..., Iterator[PairRow]]
    options: dict[str, Any]
    where: str
    files: tuple[Path, ...] = ()
    negatives: int = 0

    def read(self, skip_bad_lines: bool) -> Dataset:
        """All of it; raises as :func:`read_parallel`."""
        faults = FaultLog(skip_bad_lines=skip_bad_lines)
        return read_pairs(self.rows(faults, **self.options), self.where, faults, self.negatives)

    def stream(self, skip_bad_lines: bool, sample: Sample) -> IterableDataset:
        """The same as :func:`stream_parallel` says."""
        from datasets import IterableDataset, Split, SplitDict, SplitInfo

        if not self.files:
            if sample.size is not None:
                raise no_length(self.where, sample.size)
            table, layout = self.options["table"], self.options["layout"]
            # With the shards of the table; faults raise, or warn, a thousand rows at a time.
            return table.select_columns(layout.column_names).map(
                partial(_hub_batch, skip_bad_lines=skip_bad_lines, where=self.where, layout=layout),
                batched=True,
                with_indices=True,
                remove_columns=layout.column_names,
                features=text_features(self.negatives),
            )
        columns, size = tuple(pair_columns(self.negatives)), self._size()
        plan: dict[str, Any] = {"rows": self.rows, "options": self.options, "columns": columns, "places": None}
        plan["skip_bad_lines"] = skip_bad_lines
        if sample.size is not None:
            # One more pass, to count them; a tuple, not a list: of a list, datasets would hand each worker a part.
            plan["places"] = tuple(sample.places(sum(1 for _ in streamed_rows(**plan)), self.where))
            size = len(plan["places"])
        stream = IterableDataset.from_generator(
            streamed_rows, features=text_features(self.negatives), gen_kwargs=plan, split=Split.TRAIN
        )
        stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=size)})
        return stream

    def _size(self) -> int:
        if self.options.get("kind") == ".parquet":
            with open_parquet(str(self.files[0])) as file:
                return int(file.metadata.num_rows)
        for path in self.files[1:]:
            with open_bytes(path):  # it is there
                pass
        return estimate_lines(self.files[0])


def find_source(
    path_or_id: str | Path | tuple[str | Path, str | Path],
    languages: Languages = (None, None),
    columns: Columns | None = None,
    name: str | None = None,
    split: str | None = None,
    *,
    stream: bool = False,
    known: Iterable[tuple[str, str]] = PARALLEL_NAMES,
) -> Source:
    """What a path or id names, looked at no further than its columns; arguments as :func:`read_parallel`.

    Args:
        stream: Whether a data set of the Hub is to be streamed.
        known: Names of columns, see :func:`~st_xling.data.tables.choose_columns`.
    """
    if isinstance(path_or_id, (tuple, list)):
        if len(path_or_id) != 2:
            raise ValueError(f"expected two paths of a Moses pair, got {len(path_or_id)}; pass (source, target)")
        _refuse("a Moses pair", columns=columns, name=name, split=split)
        return _open_moses((path_or_id[0], path_or_id[1]), languages)
    path = Path(path_or_id).expanduser()
    kind = file_ending(unpacked_name(path))
    if not path.is_dir() and (kind in TABLES[:3] or file_ending(path) in (".parquet", ".zip")):
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
        _refuse(f"the file {path}", name=name, split=split)
        if kind == ".zip":
            _refuse(f"the archive {path}", columns=columns)
            return _open_moses(zipped_moses(path, *languages), languages)
        return _open_file(kind, path, languages, columns, known)
    if path.is_dir():
        if any(path.glob("tatoeba.*-eng.*")):
            raise ValueError(f"{path} holds Tatoeba test sets; read them with read_tatoeba, or one by tatoeba.deu-eng")
        return _open_hub(path, languages, columns, name, split, known, stream=stream)
    if moses := find_moses(path, *languages):
        _refuse(f"the Moses pair {path}", columns=columns, name=name, split=split)
        return _open_moses(moses, languages)
    if path.is_file():
        raise ValueError(
            f"expected a file ending in {', '.join(TABLES[:3])} (each also {', '.join(PACKED)}), .parquet or .zip, or "
            f"the common beginning of two (corpus, of corpus.de and corpus.en), got {path}; rename it, or pass both "
            "paths of a pair"
        )
    if not HUB_ID.fullmatch(str(path_or_id)):
        raise FileNotFoundError(describe_missing(path))
    return _open_hub(str(path_or_id), languages, columns, name, split, known, stream=stream)


def _open_file(
    kind: str, path: str | Path, languages: Languages, columns: Columns | None, known: Iterable[tuple[str, str]]
) -> Source:
    layout = file_layout(str(path), kind, languages, columns, known)
    options = {"path": str(path), "kind": kind, "layout": layout}
    return Source(file_rows, options, str(path), (Path(path),), layout.negatives)


def _open_moses(paths: tuple[str | Path, str | Path], languages: Languages) -> Source:
    source_path, target_path = (Path(path).expanduser() for path in paths)
    endings = (language_ending(source_path), language_ending(target_path))
    if endings[0] != endings[1] and None not in endings and (languages[0] == endings[1] or languages[1] == endings[0]):
        raise ValueError(
            f"expected source {endings[0]} and target {endings[1]}, as {source_path} and {target_path} end, got "
            f"{languages[0]}-{languages[1]}; swap the languages or the files"
        )
    codes = (languages[0] or endings[0], languages[1] or endings[1])
    options = {"source_path": str(source_path), "target_path": str(target_path), "languages": codes}
    squad = all(file_ending(unpacked_name(path)) == ".json" for path in (source_path, target_path))
    where = f"{source_path} and {target_path}"
    return Source(paragraph_rows if squad else moses_rows, options, where, (source_path, target_path))


def _open_hub(
    dataset_id: str | Path,
    languages: Languages,
    columns: Columns | None,
    name: str | None,
    split: str | None,
    known: Iterable[tuple[str, str]],
    *,
    stream: bool = False,
) -> Source:
    where = f"{dataset_id}{f'/{name}' if name else ''}"
    table = load_table(dataset_id, name, split, where, stream=stream)
    layout = hub_layout(table, where, name, languages, columns, known)
    return Source(hub_rows, {"table": table, "where": where, "layout": layout}, where, (), layout.negatives)


def _hub_batch(
    batch: dict[str, list[Any]], numbers: list[int], *, skip_bad_lines: bool, where: str, layout: Layout
) -> dict[str, list[str]]:
    faults = FaultLog(skip_bad_lines=skip_bad_lines)
    rows = (dict(zip(batch, values)) for values in zip(*batch.values()))
    pairs = list(pair_rows(faults, where, ((number + 1, row) for number, row in zip(numbers, rows)), layout))
    faults.finalize()
    return {column: [pair[place] for pair in pairs] for place, column in enumerate(pair_columns(layout.negatives))}


def _refuse(what: str, **options: object) -> None:
    named = [f"{option}={value!r}" for option, value in options.items() if value is not None]
    if named:
        raise ValueError(f"{what} takes no {' and '.join(named)}; leave it out")
