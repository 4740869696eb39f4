"""File formats of parallel text: one function each, in the table :data:`FORMATS`.

A function takes the path, a fault log and the languages of source and target, and yields numbered rows: lists of
cells, or mappings of names to cells. Columns, languages, empty sides and batches are the caller's concern.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from st_xling.data.check import (
    FaultLog,
    ParallelTextError,
    broken_text,
    check_sentences,
    is_unicode,
    iter_lines,
    numbered_lines,
)
from st_xling.data.columns import PARALLEL_NAMES, LanguagePair, Layout, NumberedRow, check_unique
from st_xling.data.json_documents import document_rows
from st_xling.data.pairs import COLUMNS
from st_xling.data.po import po_rows
from st_xling.data.squad_form import read_squad
from st_xling.data.tmx import tmx_rows
from st_xling.data.xliff import xliff_rows
from st_xling.utils.file_endings import JSON_ENDINGS, endings_of
from st_xling.utils.json_text import parse_json
from st_xling.utils.languages import (
    canonical_language,
    is_code,
    is_strict_code,
    match_language,
    pair_in_name,
)
from st_xling.utils.text import (
    archive_names,
    describe_missing,
    file_ending,
    is_blank,
    text_name,
    unescape_cell,
    unpacked_ending,
    unpacked_name,
)

NOT_LANGUAGES = {
    *("tsv", "csv", "txt", "log", "zip", "tar", "bz", "xz", "md", "py", "sh", "xml", "ids", "dev", "tmx"),
    *("po", "xlf", "odt", "doc", "pdf", "rtf", "htm", "srt", "vtt"),
    *("src", "ref", "tgt", "trg"),  # of WMT
}
"""File endings that look like language codes but are not."""

Line = tuple[int, list[str]]
"""Number of a line, counted from 1, and its cells."""

Keyed = tuple[int, Mapping[str, Any]]
"""Number of a row, counted from 1, and its cells by name."""

TABLE_ROWS = 1000
"""Most rows of one Arrow table."""

_SEPARATOR_LINES = 100  # by which the separator of a CSV file is found
_TABLE_CHARS = 1 << 25  # from which on a table gets no more rows
_HEADER_WORDS = {source for source, _ in PARALLEL_NAMES}

_LABELS = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), True),
    **dict.fromkeys(("0", "0.0", "false", "no"), False),
}
_ENDED = "\n"  # in place of the lines of a file that has ended: no line contains it
_FLORES = re.compile(r"(.+)\.(?:dev|devtest)")


def tsv_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[Line]:
    """Read tab-separated lines. Quotes and backslashes are text."""
    return ((number, _split_tabs(line)) for number, line in numbered_lines(path, faults))


def _split_tabs(line: str) -> list[str]:
    if "\r" in line or "\ufeff" in line:  # files with CRLF or a byte order mark were joined by ``paste``
        return [cell.rstrip("\r").removeprefix("\ufeff") for cell in line.split("\t")]
    return line.split("\t")


def fixed_columns(path: str | Path, width: int, faults: FaultLog) -> Iterator[Line]:
    """Read the cells of tab-separated lines that have exactly so many."""
    for number, row in tsv_rows(path, faults):
        if len(row) == width:
            yield number, row
        else:
            faults.add(path, number, "wrong columns", f"expected {width}, got {len(row)}")


def csv_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read comma-separated lines by RFC 4180, applied to each line separately: an open quote swallows nothing.

    Semicolons, as spreadsheets in much of Europe write them, tabs or bars separate instead where they divide the first
    lines better: see :func:`find_separator`.
    """
    lines = numbered_lines(path, faults)
    first_lines = list(islice(lines, _SEPARATOR_LINES))
    separator = find_separator([line for _, line in first_lines])
    opened_at = 0  # number of the line of an open quote, until a later line with quotes has been seen; 0 for none
    for number, line in chain(first_lines, lines):
        cells = split_csv(line, separator)
        if cells is None:
            detail = "a field begins with a quote that this line does not close"
            faults.add(path, number, "unclosed quote", detail)
            opened_at = number
        elif opened_at and _closes_quote(line, cells):
            faults.add(path, number, "unclosed quote", f"ends a field that line {opened_at} opened")
            opened_at = 0
        else:
            if '"' in line:
                opened_at = 0
            yield number, cells


def _closes_quote(line: str, cells: Sequence[str]) -> bool:
    """Return whether a line may end a field that an earlier line opened: it has a quote too many, at a cell's end."""
    return line.count('"') % 2 == 1 and any(cell.endswith('"') for cell in cells)


def find_separator(lines: Sequence[str]) -> str:
    """Return what separates the fields of lines: a comma, a semicolon, a tab or a bar.

    It divides the most lines into the same number of fields, at least two. Of several that do, it is the one with
    fewer spaces behind it, since a comma within a sentence has one.

    Example:
        >>> find_separator(["Ja, klar.;Yes, sure.", "Sie weiß, dass er kommt.;She knows he comes."])
        ';'
    """
    best_separator = ","
    best_rank = (0, 0)
    for separator in ",;\t|":
        widths: Counter[int] = Counter()
        for line in lines:
            fields = split_csv(line, separator)
            if fields is not None and len(fields) > 1:
                widths[len(fields)] += 1
        lines_alike = max(widths.values(), default=0)
        spaces = sum(line.count(f"{separator} ") for line in lines)
        rank = (lines_alike, -spaces)
        if lines_alike and rank > best_rank:
            best_separator = separator
            best_rank = rank
    return best_separator


def split_csv(line: str, separator: str = ",") -> list[str] | None:
    """Return the fields of one CSV line; ``None`` if a quoted field does not end before a separator or the line's end.

    Example:
        >>> split_csv('"a, b",5" pipe')
        ['a, b', '5" pipe']
    """
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], strict=True, delimiter=separator))
    except csv.Error:
        return None


def json_objects(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[Keyed]:
    """Read the objects of JSON lines, or of a ``.json`` file with a document of rows, counted from 1."""
    document = document_rows(path) if unpacked_ending(path) == ".json" else None
    numbered_values = _json_values(path, faults) if document is None else enumerate(document, 1)
    for number, value in numbered_values:
        if isinstance(value, dict):
            yield number, value
        else:
            faults.add(path, number, "bad JSON", f"expected an object, got {type(value).__name__}")


def _json_values(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, Any]]:
    for number, line in numbered_lines(path, faults):
        try:
            yield number, parse_json(line)
        except (ValueError, RecursionError) as error:
            detail = str(error) if line.strip() else "an empty line"
            faults.add(path, number, "bad JSON", detail)


# First column of files of queries or passages, and the columns that follow it.
_ID_NAMES = {"id", "_id", "qid", "pid", "docid", "query_id", "query-id", "doc_id", "passage_id", "corpus-id"}
_TEXT_NAMES = {"text", "query", "question", "passage", "contents", "title", "sentence", "document", "language"}


def is_id_header(cells: Sequence[str]) -> bool:
    """Return whether the cells of a first line are names of columns: an id, then texts.

    Example:
        >>> is_id_header(["query_id", "query"]), is_id_header(["7", "query"])
        (True, False)
    """
    names = [cell.strip().lower() for cell in cells]
    return len(names) > 1 and names[0] in _ID_NAMES and all(name in _TEXT_NAMES for name in names[1:])


TEXT_KEYS = ("text", "contents")
"""Keys of JSON lines that hold a text or passage of one language."""


def titled_text(row: Mapping[str, Any]) -> str | None:
    """Return the text of an object behind its title; ``None`` where it is missing or blank."""
    text = next((row[key] for key in TEXT_KEYS if key in row), "")
    title = row.get("title") or ""
    if not isinstance(text, str) or not isinstance(title, str):
        return None
    return f"{title.strip()} {text}".strip() or None


def named_cells(
    path: str | Path, names: Sequence[Sequence[str]], needed: int, faults: FaultLog, *, any_header: bool = False
) -> Iterator[tuple[int, list[Any]]]:
    """Read the cells of some columns of JSON lines, or of tab-separated lines under a header or none.

    Args:
        path: JSON lines if its name ends in ``.jsonl`` or ``.json``, perhaps packed.
        names: Of each column those that it may have, the first for messages.
        needed: How many of the columns must be there, and come first where no header names them; of the others the
            cell is ``None`` where there is none.
        faults: Where lines without these columns are noted.
        any_header: A first line that ends with the last needed column's name is a header too, however it calls those
            before: where it does not matter which is which.
    """
    if unpacked_ending(path) in JSON_ENDINGS:
        yield from _keyed_cells(path, names, needed, faults)
        return

    has_header = False
    column_indices: list[int | None] = []
    for number, texts in tsv_rows(path, faults):
        if not column_indices:  # the first line
            column_indices = [_first_index(texts, spellings) for spellings in names]
            has_header = None not in column_indices[:needed]
            if has_header:
                # The files of GLUE and of the shared tasks have more columns than are read.
                most_columns = len(texts)
            else:
                most_columns = needed
                column_indices = [*range(needed), *[None] * (len(names) - needed)]
            least_columns = max(index for index in column_indices if index is not None) + 1
            ends_like_header = len(texts) == needed and texts[-1].strip().lower() in names[needed - 1]
            if has_header or (any_header and ends_like_header):
                continue
        if least_columns <= len(texts) <= most_columns:
            yield number, [None if index is None else texts[index] for index in column_indices]
            continue
        expected = f"{least_columns} to {most_columns}" if most_columns > least_columns else str(least_columns)
        columns = " TAB ".join(spellings[0] for spellings in names[:needed])
        hint = "" if has_header else f" ({columns}), or a header that names the columns"
        faults.add(path, number, "bad column count", f"expected {expected}{hint}, got {len(texts)}")


def _keyed_cells(
    path: str | Path, names: Sequence[Sequence[str]], needed: int, faults: FaultLog
) -> Iterator[tuple[int, list[Any]]]:
    """Read the cells of some columns of JSON lines; see :func:`named_cells`."""
    first_names = [spellings[0] for spellings in names]
    for number, row in json_objects(path, faults):
        cells = [_first_value(row, spellings) for spellings in names]
        missing = [name for name, cell in zip(first_names[:needed], cells) if cell is None]
        if missing:
            got = ", ".join(row) or "none"
            faults.add(path, number, "no such key", f"expected {', '.join(missing)}, got {got}")
        elif broken := broken_text(dict(zip(first_names, cells))):
            faults.add(path, number, "bad JSON", f"{broken} holds half a surrogate pair")
        else:
            yield number, cells


def _first_index(texts: Sequence[str], spellings: Sequence[str]) -> int | None:
    """Return the index of the first spelling of a name that is among some texts."""
    return next((texts.index(name) for name in spellings if name in texts), None)


def _first_value(row: Mapping[str, Any], spellings: Sequence[str]) -> Any:
    """Return the value of the first spelling of a name that an object has."""
    return next((row[name] for name in spellings if name in row), None)


def parquet_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read the rows of a Parquet file."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        check_unique(names, names, str(path))
        batches = (batch.to_pylist() for batch in file.iter_batches(TABLE_ROWS))
        yield from enumerate(chain.from_iterable(batches), 1)


@contextmanager
def open_parquet(path: str | Path) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile``; errors name what is there instead."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    if file_ending(path) != unpacked_ending(path):
        raise ParallelTextError(
            f"{path}: expected a Parquet file, which is compressed within, got a packed one; unpack it"
        )
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error


def bar_rows(path: str | Path, faults: FaultLog, languages: LanguagePair = (None, None)) -> Iterator[NumberedRow]:
    """Read lines of ``source ||| target``, as fast_align takes them."""
    return ((number, line.split(" ||| ")) for number, line in numbered_lines(path, faults))


def has_bars(path: str | Path) -> bool:
    """Return whether the first line of a file is ``source ||| target``."""
    first_line = next(iter_lines(path, FaultLog()), None)
    return (first_line or "").count(" ||| ") == 1


FORMATS: dict[str, Callable[..., Iterator[NumberedRow]]] = {
    ".tsv": tsv_rows,
    ".csv": csv_rows,
    ".jsonl": json_objects,
    ".ndjson": json_objects,
    ".json": json_objects,
    ".parquet": parquet_rows,
    ".tmx": tmx_rows,
    **dict.fromkeys(endings_of("xliff"), xliff_rows),
    ".po": po_rows,
    "|||": bar_rows,
}
"""Ending of a file, without that of its compression, to the function that reads it."""


def moses_rows(source_path: str | Path, target_path: str | Path, faults: FaultLog) -> Iterator[NumberedRow]:
    """Read two line-aligned files: line ``i`` of one translates line ``i`` of the other."""
    sources = iter_lines(source_path, faults)
    targets = iter_lines(target_path, faults)
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=_ENDED), 1):
        if source == _ENDED or target == _ENDED:
            # One line of the longer file has been read; the others are only counted.
            source_lines = number - 1 if source == _ENDED else number + sum(1 for _ in sources)
            target_lines = number - 1 if target == _ENDED else number + sum(1 for _ in targets)
            detail = f"{source_lines} lines, but {target_path} has {target_lines}"
            faults.add_beyond_repair(source_path, "unequal line counts", detail)
            return
        if source is not None and target is not None:
            yield number, [source, target]


def paragraph_rows(source_path: str | Path, target_path: str | Path, faults: FaultLog) -> Iterator[NumberedRow]:
    """Read paragraph ``i`` of a file in SQuAD's form with paragraph ``i`` of its translation, as XQuAD has them."""
    sources = read_squad(source_path).paragraphs
    targets = read_squad(target_path).paragraphs
    if len(sources) != len(targets):
        detail = f"{len(sources)} paragraphs, but {target_path} has {len(targets)}"
        faults.add_beyond_repair(source_path, "unequal paragraph counts", detail)
        return
    yield from enumerate(map(list, zip(sources, targets)), 1)


def pair_tables(
    rows: Iterable[NumberedRow], layout: Layout, where: Sequence[str], faults: FaultLog, names: Sequence[str]
) -> Iterator[Any]:
    """Yield the pairs among rows as Arrow tables of a column ``line`` and ``names``, without faulty rows.

    Args:
        rows: Numbered rows.
        layout: Their columns.
        where: The file of the sources, that of the targets.
        faults: Where faults are noted.
        names: The columns of parallel text, those of hard negatives last.
    """
    import pyarrow as pa

    schema = pa.schema([("line", pa.int64()), *((name, pa.string()) for name in names)])
    sentence_columns = [*names[:2], *names[4:]]
    negative_files = [where[-1]] * layout.negatives
    files = [*where, *negative_files]
    is_first = True
    for batch in _row_batches(rows):
        try:
            table = pa.table(_plain_columns(batch, layout), schema=schema)
        except ValueError:  # also for half a surrogate pair, which JSON can spell
            checked_rows = list(_checked_rows(batch, layout, where[0], faults))
            columns = list(zip(*checked_rows)) or [()] * len(schema)
            table = pa.table(columns, schema=schema)
        yield check_sentences(table, sentence_columns, files, faults, is_first=is_first)
        is_first = False


def _row_batches(rows: Iterable[NumberedRow]) -> Iterator[list[NumberedRow]]:
    """Yield :data:`TABLE_ROWS` rows at a time, fewer of long ones."""
    batch: list[NumberedRow] = []
    chars = 0
    for number, row in rows:
        batch.append((number, row))
        cells = row if isinstance(row, list) else row.values()
        chars += sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(batch) == TABLE_ROWS or chars > _TABLE_CHARS:
            yield batch
            batch = []
            chars = 0
    if batch:
        yield batch


def _plain_columns(batch: Sequence[NumberedRow], layout: Layout) -> list[Sequence[Any]]:
    """Return the columns of the usual case, lists of as many cells, at the speed of C; else raise ``ValueError``."""
    numbers, rows = zip(*batch)
    widths = set(map(len, rows))
    has_all_cells = widths == {layout.width} if layout.width else min(widths) >= layout.least
    has_languages = layout.language_keys != (None, None)
    is_read_cell_by_cell = layout.escaped or has_languages or layout.label_key is not None
    if not has_all_cells or not isinstance(rows[0], list) or is_read_cell_by_cell:
        raise ValueError("not plain")
    columns = list(zip(*rows))
    texts = [columns[key] for key in layout.keys]
    # A file that was joined from several may have another header among its rows.
    if layout.header in rows or not _HEADER_WORDS.isdisjoint(texts[0]):
        raise ValueError("not plain")
    languages = [[code] * len(numbers) for code in layout.languages]
    return [numbers, *texts[:2], *languages, *texts[2:]]


def _checked_rows(
    batch: Iterable[NumberedRow], layout: Layout, where: str, faults: FaultLog
) -> Iterator[tuple[Any, ...]]:
    """Yield number and cells of each row without a fault; the faults of the others are noted."""
    for number, row in batch:
        row_fault = _row_fault(row, layout)
        if row_fault is not None:
            faults.add(where, number, *row_fault)
            continue
        keyed: Any = dict(enumerate(row)) if isinstance(row, list) else row
        if layout.label_key is not None and not _belongs(keyed.get(layout.label_key), where, number, faults):
            continue

        cells = keyed["translation"] if layout.nested else keyed
        texts = [cells[key] for key in layout.keys]
        text_faults = list(_text_faults(texts))
        if layout.escaped and not text_faults:
            try:
                texts = list(map(unescape_cell, texts))
            except ValueError as error:
                text_faults = [("bad escape", str(error))]
        for kind, detail in text_faults:
            faults.add(where, number, kind, detail)
        if not text_faults:
            yield (number, *texts[:2], *_row_languages(keyed, layout), *texts[2:])


def _belongs(label: Any, where: str, number: int, faults: FaultLog) -> bool:
    """Return whether the texts of a row belong together by its label; what the label says otherwise is noted."""
    # A list is a teacher's vector, which some trainers call a label.
    if isinstance(label, (list, Mapping)):
        return True
    belongs = is_pair(label)
    if belongs is None:
        faults.add(where, number, "unknown label", f"expected 0 or 1, got {label!r}")
    elif not belongs:
        faults.skip(where, "label 0")
    return bool(belongs)


def _row_languages(row: Mapping[Any, Any], layout: Layout) -> list[str]:
    """Return the languages of source and target that a row names, or else those of its file."""
    languages = []
    for key, file_language in zip(layout.language_keys, layout.languages):
        row_language = row.get(key)
        if isinstance(row_language, str) and row_language:
            languages.append(row_language)
        else:
            languages.append(file_language)
    return languages


def is_pair(label: Any) -> bool | None:
    """Return whether the two texts of a row belong together by its label; ``None`` for a label that does not say it.

    Example:
        >>> is_pair(1), is_pair("0"), is_pair(0.0), is_pair("neutral")
        (True, False, False, None)
    """
    return _LABELS.get(str(label).strip().lower())


def _row_fault(row: list[str] | Mapping[str, Any], layout: Layout) -> tuple[str, str] | None:
    """Return kind and detail of the fault of a row that does not have the cells of the layout."""
    if not isinstance(row, list):
        cells = row.get("translation") if layout.nested else row
        if isinstance(cells, Mapping) and cells.keys() >= set(layout.keys):
            return None
        return "missing key", f"expected {' and '.join(map(repr, layout.keys))}, got {', '.join(row) or 'none'}"

    if len(row) == 1 and is_blank(row[0]):
        return "empty line", ""
    has_all_cells = len(row) == layout.width if layout.width else len(row) >= layout.least
    if not has_all_cells:
        return "wrong column count", f"expected {layout.width or f'at least {layout.least}'}, got {len(row)}"
    if row == layout.header or tuple(row) in PARALLEL_NAMES:
        return "second header", ", ".join(row)
    return None


def _text_faults(texts: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and detail of each cell that is no text: of source, target and negatives."""
    for name, text in zip_longest(COLUMNS[:2], texts, fillvalue="a negative"):
        if not isinstance(text, str):
            kind = "null" if text is None else type(text).__name__
            yield "non-string value", f"{name} is {kind}"
        elif not is_unicode(text):
            yield "bad JSON", f"{name} holds half a surrogate pair"


def find_moses(prefix: str | Path, languages: LanguagePair = (None, None)) -> tuple[Path, Path] | None:
    """Find two files ``PREFIX.xx`` and ``PREFIX.yy``, plain or packed; ``None`` if there are no two such files.

    WMT's ``PREFIX-src.xx`` and ``PREFIX-ref.yy`` count too. Of more than two files the languages must choose.
    The source is the language that is chosen, else the first of a pair in the prefix (``data/de-en`` with ``de-en.de``
    and ``de-en.en``), else the one that is not English, else the first in the alphabet.

    Raises:
        ValueError: If there are three or more files and the languages do not choose two.
    """
    prefix = Path(prefix)
    if not prefix.parent.is_dir() or not prefix.name:
        return None
    files: dict[str, Path] = {}
    for path in sorted(prefix.parent.iterdir()):
        code = language_ending(path)
        if code is None:
            continue
        names = (f"{prefix.name}.{code}", f"{prefix.name}-src.{code}", f"{prefix.name}-ref.{code}")
        if unpacked_name(path).removesuffix(".txt") in names and path.is_file():
            files.setdefault(code, path)
    return _choose_pair(files, prefix, languages) if len(files) > 1 else None


def flores_pair(folder: Path, languages: LanguagePair) -> tuple[Path, Path] | None:
    """Find the files of two languages in a folder of FLORES (``deu_Latn.devtest``), chosen as by :func:`find_moses`."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        code = language_ending(path) if _FLORES.fullmatch(path.name) else None
        if code is not None:
            files[code] = path
    return _choose_pair(files, folder, languages) if len(files) > 1 else None


def zipped_moses(path: str | Path, languages: LanguagePair = (None, None)) -> tuple[Path, Path]:
    """Find the two files of a zip archive as OPUS publishes it, chosen as by :func:`find_moses`.

    Of ``de-en.txt.zip`` with ``TED2020.de-en.de`` and ``TED2020.de-en.en`` in it these are
    ``de-en.txt.zip/TED2020.de-en.de`` and the other one, as :func:`~st_xling.utils.text.open_bytes` takes them.

    Raises:
        ParallelTextError: If it is no archive, has no two such files or several pairs, or a name in it leads out of it.
    """
    names = archive_names(path)
    by_prefix: dict[str, dict[str, Path]] = {}
    for name in sorted(names):
        if code := language_ending(name):
            by_prefix.setdefault(name.removesuffix(f".{code}"), {})[code] = Path(path) / name
    pairs = {prefix: files for prefix, files in by_prefix.items() if len(files) > 1}
    if len(pairs) != 1:
        raise ParallelTextError(
            f"{path}: expected one pair of files, NAME.xx and NAME.yy, got {len(pairs)} pairs among "
            f"{', '.join(names[:8])}; unpack it, and name two files"
        )
    ((prefix, files),) = pairs.items()
    return _choose_pair(files, Path(path) / prefix, languages)


def _choose_pair(files: Mapping[str, Path], prefix: Path, languages: LanguagePair) -> tuple[Path, Path]:
    """Choose source and target among files of several languages.

    Args:
        files: Language, as the name of the file spells it, to file.
        prefix: What the names of the files have in common.
        languages: Languages of source and target.
    """
    chosen = [code and (match_language(code, files) or code) for code in languages]
    english_last = sorted(files, key=lambda code: (canonical_language(code) == "eng", code))
    pair = [code for code in chosen if code]
    if len(pair) < 2:
        in_prefix = [code for code in pair_in_name(prefix) if code and code in files]
        pair = in_prefix if len(in_prefix) == 2 else english_last
    needed = {*pair, *filter(None, chosen)}
    if len(pair) != 2 or not needed <= files.keys():
        got = f"{languages[0] or '?'}-{languages[1] or '?'}" if any(languages) else "none named"
        raise ValueError(
            f"{prefix}: expected two languages out of {', '.join(files)}, got {got}; name two, as in "
            f"{english_last[0]}-{english_last[-1]}={prefix} (source_language, target_language)"
        )
    source, target = pair
    if chosen[0] == target or chosen[1] == source:
        source, target = target, source
    return files[source], files[target]


def language_ending(path: str | Path) -> str | None:
    """Return the language that a file name ends with, or that FLORES puts before the split; ``None`` if there is none.

    Example:
        >>> [language_ending(name) for name in ("corpus.de.gz", "deu_Latn.devtest", "book.de.epub", "corpus.txt")]
        ['de', 'deu_Latn', 'de', None]
    """
    name = text_name(path)
    if (match := _FLORES.fullmatch(name)) and is_strict_code(match[1]):
        return match[1]
    ending = Path(name).suffix.removeprefix(".")
    return ending if is_code(ending) and ending not in NOT_LANGUAGES else None
