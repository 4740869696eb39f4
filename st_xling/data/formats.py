"""File formats of parallel text: one function each, in the table :data:`FORMATS`.

A function takes the path, a fault log and the languages asked for, and yields numbered rows: lists of cells, or
mappings of names to cells. Columns, languages, empty sides and batches are the caller's.
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
from st_xling.data.columns import PARALLEL_NAMES, Languages, Layout, Row, check_unique
from st_xling.data.json_documents import document_rows
from st_xling.data.pairs import COLUMNS
from st_xling.data.squad_form import read_squad
from st_xling.data.tmx import tmx_rows
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
    unescape_cell,
    unpacked_name,
)

NOT_LANGUAGES = {
    *("tsv", "csv", "txt", "log", "zip", "tar", "bz", "xz", "md", "py", "sh", "xml", "ids", "dev", "tmx"),
    *("src", "ref", "tgt", "trg"),  # of WMT
}
"""File endings that look like language codes but are not."""

Line = tuple[int, list[str]]
"""Number of a line, counted from 1, and its cells."""

Keyed = tuple[int, Mapping[str, Any]]
"""Number of a row, counted from 1, and its cells by name."""

BATCH_ROWS = 1000
_SEPARATOR_LINES = 100
_BATCH_CHARS = 1 << 25
_HEADER_WORDS = {source for source, _ in PARALLEL_NAMES}

_LABELS = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), True),
    **dict.fromkeys(("0", "0.0", "false", "no"), False),
}
_ENDED = "\n"  # no line holds it
_FLORES = re.compile(r"(.+)\.(?:dev|devtest)")


def tsv_rows(path: str | Path, faults: FaultLog, languages: Languages = (None, None)) -> Iterator[Line]:
    """Read tab-separated lines. Quotes and backslashes are text."""
    return ((number, _cells_of(line)) for number, line in numbered_lines(path, faults))


def _cells_of(line: str) -> list[str]:
    if "\r" in line or "\ufeff" in line:  # of files with CRLF or a byte order mark that ``paste`` joined
        return [cell.rstrip("\r").removeprefix("\ufeff") for cell in line.split("\t")]
    return line.split("\t")


def fixed_columns(path: str | Path, width: int, faults: FaultLog) -> Iterator[Line]:
    """Read the cells of tab-separated lines that have exactly so many."""
    for number, row in tsv_rows(path, faults):
        if len(row) == width:
            yield number, row
        else:
            faults.add(path, number, "wrong columns", f"expected {width}, got {len(row)}")


def csv_rows(path: str | Path, faults: FaultLog, languages: Languages = (None, None)) -> Iterator[Row]:
    """Read comma-separated lines by RFC 4180, applied to each line on its own: an open quote swallows nothing.

    Semicolons, as spreadsheets in much of Europe write them, tabs or bars separate instead where they divide the first
    lines better: see :func:`find_separator`.
    """
    opened = 0  # the line of an open quote, until a later line with quotes has been seen
    numbered = numbered_lines(path, faults)
    first = list(islice(numbered, _SEPARATOR_LINES))
    separator = find_separator([line for _, line in first])
    for number, line in chain(first, numbered):
        row = split_csv(line, separator)
        ends = bool(opened and row and line.count('"') % 2 and any(cell.endswith('"') for cell in row))
        if row is None or ends:
            detail = "a field begins with a quote that this line does not close"
            faults.add(path, number, "unclosed quote", f"ends a field that line {opened} opened" if ends else detail)
            opened = 0 if ends else number
        else:
            opened = 0 if '"' in line else opened
            yield number, row


def find_separator(lines: Sequence[str]) -> str:
    """Return what separates the fields of lines: a comma, a semicolon, a tab or a bar.

    It divides the most lines into the same number of fields, at least two. Of several that do, it is the one with
    fewer spaces behind it, since a comma within a sentence has one.

    Example:
        >>> find_separator(["Ja, klar.;Yes, sure.", "Sie weiß, dass er kommt.;She knows he comes."])
        ';'
    """
    best = ","
    most = (0, 0)
    for separator in ",;\t|":
        divided = (split_csv(line, separator) for line in lines)
        widths = Counter(len(fields) for fields in divided if fields is not None and len(fields) > 1)
        fitting = max(widths.values(), default=0)
        spaces = sum(line.count(f"{separator} ") for line in lines)
        if fitting and (fitting, -spaces) > most:
            best = separator
            most = (fitting, -spaces)
    return best


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


def json_objects(path: str | Path, faults: FaultLog, languages: Languages = (None, None)) -> Iterator[Keyed]:
    """Read the objects of JSON lines, or of a ``.json`` file with a document of rows, counted from 1."""
    rows = document_rows(path) if file_ending(unpacked_name(path)) == ".json" else None
    for number, value in _json_values(path, faults) if rows is None else enumerate(rows, 1):
        if isinstance(value, dict):
            yield number, value
        else:
            faults.add(path, number, "bad JSON", f"expected an object, got {type(value).__name__}")


def _json_values(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, Any]]:
    for number, line in numbered_lines(path, faults):
        try:
            yield number, parse_json(line)
        except (ValueError, RecursionError) as error:
            faults.add(path, number, "bad JSON", "an empty line" if not line.strip() else str(error))


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
    text, title = next((row[key] for key in TEXT_KEYS if key in row), ""), row.get("title") or ""
    return (f"{title.strip()} {text}".strip() or None) if isinstance(text, str) and isinstance(title, str) else None


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
    if file_ending(unpacked_name(path)) in (".jsonl", ".ndjson", ".json"):
        first_names = [spellings[0] for spellings in names]
        for number, row in json_objects(path, faults):
            cells = [next((row[name] for name in spellings if name in row), None) for spellings in names]
            missing = [name for name, cell in zip(first_names[:needed], cells) if cell is None]
            if missing:
                got = ", ".join(row) or "none"
                faults.add(path, number, "no such key", f"expected {', '.join(missing)}, got {got}")
            elif broken := broken_text(dict(zip(first_names, cells))):
                faults.add(path, number, "bad JSON", f"{broken} holds half a surrogate pair")
            else:
                yield number, cells
        return
    places: list[int | None] = []
    for number, texts in tsv_rows(path, faults):
        if not places:
            places = [next((texts.index(name) for name in own if name in texts), None) for own in names]
            with_header = None not in places[:needed]
            # GLUE's and the shared tasks' own files have more columns than are read, the cut ones have these alone.
            places = places if with_header else [*range(needed), *[None] * (len(names) - needed)]
            least, most = max(place for place in places if place is not None) + 1, len(texts) if with_header else needed
            if with_header or (any_header and len(texts) == needed and texts[-1].strip().lower() in names[needed - 1]):
                continue
        if least <= len(texts) <= most:
            yield number, [None if place is None else texts[place] for place in places]
            continue
        expected = f"{least} to {most}" if most > least else str(least)
        columns = " TAB ".join(own[0] for own in names[:needed])
        hint = "" if with_header else f" ({columns}), or a header that names the columns"
        faults.add(path, number, "bad column count", f"expected {expected}{hint}, got {len(texts)}")


def parquet_rows(path: str | Path, faults: FaultLog, languages: Languages = (None, None)) -> Iterator[Row]:
    """Read the rows of a Parquet file."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        check_unique(names, names, str(path))
        batches = (batch.to_pylist() for batch in file.iter_batches(BATCH_ROWS))
        yield from enumerate(chain.from_iterable(batches), 1)


@contextmanager
def open_parquet(path: str | Path) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile``; errors name what is there instead."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise FileNotFoundError(describe_missing(path))
    if file_ending(path) != file_ending(unpacked_name(path)):
        raise ParallelTextError(
            f"{path}: expected a Parquet file, which is compressed within, got a packed one; unpack it"
        )
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise ParallelTextError(f"{path}: expected a Parquet file, got: {error}; write it again") from error


def bar_rows(path: str | Path, faults: FaultLog, languages: Languages = (None, None)) -> Iterator[Row]:
    """Read lines of ``source ||| target``, as fast_align takes them."""
    return ((number, line.split(" ||| ")) for number, line in numbered_lines(path, faults))


def has_bars(path: str | Path) -> bool:
    """Return whether the first line of a file is ``source ||| target``."""
    return (next(iter_lines(path, FaultLog()), None) or "").count(" ||| ") == 1


FORMATS: dict[str, Callable[..., Iterator[Row]]] = {
    ".tsv": tsv_rows,
    ".csv": csv_rows,
    ".jsonl": json_objects,
    ".ndjson": json_objects,
    ".json": json_objects,
    ".parquet": parquet_rows,
    ".tmx": tmx_rows,
    "|||": bar_rows,
}
"""Ending of a file, without that of its compression, to the function that reads it."""


def moses_rows(source_path: str | Path, target_path: str | Path, faults: FaultLog) -> Iterator[Row]:
    """Read two line-aligned files: line ``i`` of one translates line ``i`` of the other."""
    sources, targets = iter_lines(source_path, faults), iter_lines(target_path, faults)
    for number, (source, target) in enumerate(zip_longest(sources, targets, fillvalue=_ENDED), 1):
        if _ENDED in (source, target):
            rest = number + sum(1 for _ in (targets if source == _ENDED else sources))
            counts = (number - 1, rest) if source == _ENDED else (rest, number - 1)
            detail = f"{counts[0]} lines, but {target_path} has {counts[1]}"
            faults.add_beyond_repair(source_path, "unequal line counts", detail)
            return
        if source is not None and target is not None:
            yield number, [source, target]


def paragraph_rows(source_path: str | Path, target_path: str | Path, faults: FaultLog) -> Iterator[Row]:
    """Read paragraph ``i`` of a file in SQuAD's form with paragraph ``i`` of its translation, as XQuAD has them."""
    sources, targets = (read_squad(path).paragraphs for path in (source_path, target_path))
    if len(sources) != len(targets):
        detail = f"{len(sources)} paragraphs, but {target_path} has {len(targets)}"
        faults.add_beyond_repair(source_path, "unequal paragraph counts", detail)
        return
    yield from enumerate(map(list, zip(sources, targets)), 1)


def pair_tables(
    rows: Iterable[Row], layout: Layout, where: Sequence[str], faults: FaultLog, names: Sequence[str]
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
    sentences = [*names[:2], *names[4:]]
    places = [*where, *[where[-1]] * layout.negatives]
    is_first = True
    for part in _batches(rows):
        try:
            table = pa.table(_plain_columns(part, layout), schema=schema)
        except ValueError:  # also for half a surrogate pair, which JSON can spell
            columns = list(zip(*_cells(part, layout, where[0], faults))) or [()] * len(schema)
            table = pa.table(columns, schema=schema)
        yield check_sentences(table, sentences, places, faults, is_first=is_first)
        is_first = False


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield :data:`BATCH_ROWS` rows at a time, fewer of long ones."""
    part: list[Row] = []
    chars = 0
    for row in rows:
        part.append(row)
        cells = row[1] if isinstance(row[1], list) else row[1].values()
        chars += sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(part) == BATCH_ROWS or chars > _BATCH_CHARS:
            yield part
            part = []
            chars = 0
    if part:
        yield part


def _plain_columns(part: Sequence[Row], layout: Layout) -> list[Sequence[Any]]:
    """Return the columns of the usual case, lists of as many cells, at the speed of C; else raise ``ValueError``."""
    lines, rows = zip(*part)
    widths = set(map(len, rows))
    fits = widths == {layout.width} if layout.width else min(widths) >= layout.least
    has_more = layout.escaped or layout.language_keys != (None, None) or layout.label_key is not None
    if not fits or not isinstance(rows[0], list) or has_more:
        raise ValueError("not plain")
    cells = list(zip(*rows))
    texts = [cells[key] for key in layout.keys]
    if layout.header in rows or not _HEADER_WORDS.isdisjoint(texts[0]):  # perhaps the header of a file that was joined
        raise ValueError("not plain")
    return [lines, *texts[:2], *([code] * len(lines) for code in layout.languages), *texts[2:]]


def _cells(part: Iterable[Row], layout: Layout, where: str, faults: FaultLog) -> Iterator[tuple[Any, ...]]:
    """Yield line and cells of each row that has them."""
    for number, row in part:
        if fault := _row_fault(row, layout):
            faults.add(where, number, *fault)
            continue
        keyed: Any = dict(enumerate(row)) if isinstance(row, list) else row
        label = None if layout.label_key is None else keyed.get(layout.label_key)
        # A list is a teacher's vector, which some trainers call so.
        if layout.label_key is not None and not isinstance(label, (list, Mapping)):
            belongs = is_pair(label)
            if belongs is None:
                faults.add(where, number, "unknown label", f"expected 0 or 1, got {label!r}")
            elif not belongs:
                faults.skip(where, "label 0")
            if not belongs:
                continue
        cells = keyed["translation"] if layout.nested else keyed
        texts = [cells[key] for key in layout.keys]
        wrong = list(_text_faults(texts))
        if layout.escaped and not wrong:
            try:
                texts = list(map(unescape_cell, texts))
            except ValueError as error:
                wrong = [("bad escape", str(error))]
        for kind, detail in wrong:
            faults.add(where, number, kind, detail)
        if not wrong:
            own = (keyed.get(key) for key in layout.language_keys)
            codes = [named if isinstance(named, str) and named else code for named, code in zip(own, layout.languages)]
            yield (number, *texts[:2], *codes, *texts[2:])


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
    if len(row) != layout.width if layout.width else len(row) < layout.least:
        return "wrong column count", f"expected {layout.width or f'at least {layout.least}'}, got {len(row)}"
    if row == layout.header or tuple(row) in PARALLEL_NAMES:
        return "second header", ", ".join(row)
    return None


def _text_faults(texts: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for name, text in zip_longest(COLUMNS[:2], texts, fillvalue="a negative"):
        if not isinstance(text, str):
            yield "non-string value", f"{name} is {'null' if text is None else type(text).__name__}"
        elif not is_unicode(text):
            yield "bad JSON", f"{name} holds half a surrogate pair"


def find_moses(prefix: str | Path, languages: Languages = (None, None)) -> tuple[Path, Path] | None:
    """Find two files ``PREFIX.xx`` and ``PREFIX.yy``, plain or packed; ``None`` if there are no two such files.

    WMT's ``PREFIX-src.xx`` and ``PREFIX-ref.yy`` count too. Of more than two files the languages must choose.
    The source is the language asked for, else the first of a pair in the prefix (``data/de-en`` with ``de-en.de`` and
    ``de-en.en``), else the one that is not English, else the first in the alphabet.

    Raises:
        ValueError: If there are three or more files and the languages do not choose two.
    """
    prefix = Path(prefix)
    if not prefix.parent.is_dir() or not prefix.name:
        return None
    found: dict[str, Path] = {}
    for path in sorted(prefix.parent.iterdir()):
        code = language_ending(path)
        names = (f"{prefix.name}.{code}", f"{prefix.name}-src.{code}", f"{prefix.name}-ref.{code}")  # WMT's have both
        if code and unpacked_name(path).removesuffix(".txt") in names and path.is_file():
            found.setdefault(code, path)
    return _choose(found, prefix, languages) if len(found) > 1 else None


def flores_pair(folder: Path, languages: Languages) -> tuple[Path, Path] | None:
    """Find the files of two languages in a folder of FLORES (``deu_Latn.devtest``), chosen as by :func:`find_moses`."""
    files = [path for path in sorted(folder.iterdir()) if _FLORES.fullmatch(path.name)]
    found = {code: path for path in files if (code := language_ending(path))}
    return _choose(found, folder, languages) if len(found) > 1 else None


def zipped_moses(path: str | Path, languages: Languages = (None, None)) -> tuple[Path, Path]:
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
    pairs = {prefix: found for prefix, found in by_prefix.items() if len(found) > 1}
    if len(pairs) != 1:
        raise ParallelTextError(
            f"{path}: expected one pair of files, NAME.xx and NAME.yy, got {len(pairs)} pairs among "
            f"{', '.join(names[:8])}; unpack it, and name two files"
        )
    ((prefix, found),) = pairs.items()
    return _choose(found, Path(path) / prefix, languages)


def _choose(found: dict[str, Path], prefix: Path, languages: Languages) -> tuple[Path, Path]:
    """Choose source and target among the files of several languages."""
    wanted = [code and (match_language(code, found) or code) for code in languages]
    named = pair_in_name(prefix)
    endings = sorted(found, key=lambda code: (canonical_language(code) == "eng", code))
    pair: list[Any] = wanted if None not in wanted else list(named) if set(named) <= found.keys() else endings
    if len(pair) != 2 or not {*pair, *filter(None, wanted)} <= found.keys():
        asked = f"{languages[0] or '?'}-{languages[1] or '?'}" if any(languages) else "none named"
        raise ValueError(
            f"{prefix}: expected two languages out of {', '.join(found)}, got {asked}; name two, as in "
            f"{endings[0]}-{endings[-1]}={prefix} (source_language, target_language)"
        )
    source, target = pair if wanted[0] != pair[1] and wanted[1] != pair[0] else pair[::-1]
    return found[source], found[target]


def language_ending(path: str | Path) -> str | None:
    """Return the language that a file name ends with, or that FLORES puts before the split; ``None`` if there is none.

    Example:
        >>> [language_ending(name) for name in ("corpus.de.gz", "deu_Latn.devtest", "news.de.txt", "corpus.txt")]
        ['de', 'deu_Latn', 'de', None]
    """
    name = unpacked_name(path).removesuffix(".txt")
    if (match := _FLORES.fullmatch(name)) and is_strict_code(match[1]):
        return match[1]
    ending = Path(name).suffix.removeprefix(".")
    return ending if is_code(ending) and ending not in NOT_LANGUAGES else None
