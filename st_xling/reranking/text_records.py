"""Queries or passages of a file by id, their text left on the disk until it is needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.faults import FaultLog
from st_xling.mining.text.lines import LineIndex
from st_xling.utils.text import raw_lines


class TextRecord(NamedTuple):
    """A query or a passage.

    Attributes:
        id: Unique in its file.
        text: With its title before it, where the file has titles.
        language: Its code; ``None`` where the file names none.
    """

    id: str
    text: str
    language: str | None = None


class TextRecords(Sequence[TextRecord]):
    """The records of a file in their order; ids are in memory, and 8 bytes a line.

    A line is JSON, ``{"id": …, "text": …, "language": …}`` (``_id`` and ``title`` as in BEIR's files), or where the
    file's name holds ``.tsv``, ``id TAB text`` or ``id TAB text TAB language``. The language may be left out.

    Args:
        path: UTF-8, also ``.gz`` and ``.xz``.
        what: What the records are, for errors: ``"queries"``, ``"passages"``.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For faulty lines, together: no JSON, no id, no text, an id twice; for a file without lines.

    Attributes:
        sha256: Of the file's lines.
        rows: Id → place, from 0.
    """

    def __init__(self, path: str | Path, what: str) -> None:
        self.path, self.what = str(path), what
        self._is_tsv = ".tsv" in Path(path).suffixes
        faults, digest = FaultLog(can_skip=False, what=what), hashlib.sha256()
        self.rows: dict[str, int] = {}
        for number, raw in enumerate(raw_lines(path), 1):
            digest.update(raw + b"\n")
            try:
                record = self._parse(raw)
            except ValueError as error:
                faults.add(path, number, "bad line", str(error))
                continue
            if record.id in self.rows:
                faults.add(path, number, "duplicate id", f"{record.id}, as in line {self.rows[record.id] + 1}")
            self.rows[record.id] = number - 1
        faults.settle()
        if not self.rows:
            raise ValueError(f"expected {what} in {path}: got a file without lines.")
        self.sha256 = digest.hexdigest()
        self._lines = LineIndex(path)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self._parse(self._lines[row]) for row in range(*place.indices(len(self)))]
        return self._parse(self._lines[range(len(self))[place]])

    def __iter__(self) -> Iterator[TextRecord]:
        return map(self._parse, raw_lines(self.path))

    @property
    def format(self) -> str:
        """The name that :mod:`st_xling.mining.text.mining_text` has for the form of the lines."""
        return "bucc" if self._is_tsv else "jsonl"

    def close(self) -> None:
        self._lines.close()

    def _parse(self, raw: bytes) -> TextRecord:
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"expected UTF-8, got byte 0x{raw[error.start]:02x} at byte {error.start + 1}") from None
        record = _tsv_record(line) if self._is_tsv else _json_record(line)
        if not record.id.strip() or not record.text.strip():
            raise ValueError("expected an id and a text that are not blank")
        return record


def _tsv_record(line: str) -> TextRecord:
    cells = line.split("\t")
    if not 2 <= len(cells) <= 3:
        raise ValueError(f"expected id TAB text, perhaps TAB language, got {len(cells)} columns")
    return TextRecord(cells[0], cells[1], (cells[2].strip() or None) if len(cells) == 3 else None)


def _json_record(line: str) -> TextRecord:
    value = json_object(line)
    name, text, title, language = (value.get(key) for key in ("id", "text", "title", "language"))
    name = value.get("_id") if name is None else name
    if isinstance(name, bool) or not isinstance(name, (str, int)) or not isinstance(text, str):
        raise ValueError('expected a string or whole number "id" and a string "text"')
    if not isinstance(language, (str, type(None))) or not isinstance(title, (str, type(None))):
        raise ValueError('expected strings where "language" or "title" are given')
    whole = f"{title.strip()} {text}" if title and title.strip() else text
    try:
        f"{name}{whole}{language}".encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair, which UTF-8 cannot hold") from None
    return TextRecord(str(name), whole, language or None)


def json_object(line: str) -> dict[str, Any]:
    """The object of a line of JSON.

    Raises:
        ValueError: If it holds none; says why.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("expected JSON, got an empty line" if not line.strip() else f"bad JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value
