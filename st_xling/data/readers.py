"""One door to parallel text of every kind: ``read_parallel``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.columns import ColumnPair
from st_xling.data.comma import read_csv
from st_xling.data.hub import read_hub
from st_xling.data.moses import find_moses, read_moses
from st_xling.data.records import read_jsonl, read_parquet
from st_xling.data.tsv import read_tsv
from st_xling.utils.text import describe_missing

if TYPE_CHECKING:
    from datasets import Dataset

READERS = {
    ".tsv": read_tsv,
    ".tsv.gz": read_tsv,
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".jsonl": read_jsonl,
    ".jsonl.gz": read_jsonl,
    ".parquet": read_parquet,
}
"""The reader of each file name ending."""

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
        path_or_id: In this order: two paths (a Moses pair); a ``.tsv``, ``.csv``, ``.jsonl`` (each also ``.gz``) or
            ``.parquet`` file; the prefix of a Moses pair (``corpus`` for ``corpus.de`` and ``corpus.en``); a folder
            that ``datasets`` can load; the id of a dataset on the Hub.
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
    if isinstance(path_or_id, (tuple, list)):
        if len(path_or_id) != 2:
            raise ValueError(f"expected two paths of a Moses pair, got {len(path_or_id)}; pass (source, target)")
        _refuse("a Moses pair", columns=columns, name=name, split=split)
        return read_moses(
            *path_or_id,
            source_language=source_language,
            target_language=target_language,
            skip_bad_lines=skip_bad_lines,
        )
    path = Path(path_or_id).expanduser()
    reader = READERS.get(file_ending(path))
    if reader is not None and not path.is_dir():
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
        _refuse(f"the file {path}", name=name, split=split)
        return reader(
            path,
            source_language=source_language,
            target_language=target_language,
            columns=columns,
            skip_bad_lines=skip_bad_lines,
        )
    if path.is_dir() and any(path.glob("tatoeba.*-eng.*")):
        raise ValueError(f"{path} holds Tatoeba test sets; read them with read_tatoeba, or one by tatoeba.deu-eng")
    moses = None if path.is_dir() else find_moses(path, source_language, target_language)
    if moses:
        _refuse(f"the Moses pair {path}", columns=columns, name=name, split=split)
        return read_moses(
            *moses, source_language=source_language, target_language=target_language, skip_bad_lines=skip_bad_lines
        )
    if path.is_file():
        raise ValueError(
            f"expected a file ending in {', '.join(READERS)}, or the common beginning of two (corpus, of corpus.de and "
            f"corpus.en), got {path}; rename it, or pass both paths of a pair"
        )
    if not path.is_dir() and not HUB_ID.fullmatch(str(path_or_id)):
        raise FileNotFoundError(describe_missing(path))
    return read_hub(
        path if path.is_dir() else str(path_or_id),
        source_language=source_language,
        target_language=target_language,
        columns=columns,
        skip_bad_lines=skip_bad_lines,
        name=name,
        split=split,
    )


def file_ending(path: str | Path) -> str:
    """The last suffix, with the one before it where the last is ``.gz``; in lower case."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def _refuse(what: str, **options: object) -> None:
    given = [f"{option}={value!r}" for option, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{what} takes no {' and '.join(given)}; leave it out")
