"""JSON documents of rows: an array, read row by row, or an object with the rows in it; JSON lines are no document."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from st_xling.utils.json_text import RepeatedKey, object_of_unique_keys, parse_json
from st_xling.utils.text import LONGEST_LINE_BYTES, UTF8_MARK, ParallelTextError, open_bytes, read_bytes

_BLOCK_CHARS = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


def document_rows(path: str | Path) -> Iterator[Any] | None:
    """Return the rows of a JSON document; ``None`` if the file has JSON lines.

    A document is an array, or an object: with the rows under ``data``, or as its only list of objects (the rows of a
    data set's viewer are one level deeper, under ``row``); with a list of texts for each column; or one row itself.

    Args:
        path: The file, plain or packed.

    Raises:
        ParallelTextError: For an object of more than 128 MiB, a row of more than 16 MiB, an array that is not JSON, or
            an object whose values are objects.
    """
    with open_bytes(path) as stream:
        head = stream.peek(1 << 12).removeprefix(UTF8_MARK).lstrip()
        if head.startswith(b"["):
            return _array_rows(path)
        line = stream.readline(LONGEST_LINE_BYTES + 1)
        if _is_object(line) and stream.read(1 << 12).strip():
            return None
    try:
        content = parse_json(read_bytes(path).decode("utf-8-sig"))
    except RepeatedKey as error:
        raise ParallelTextError(f"{path}: expected rows in JSON; {error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return None  # as lines, whose faults have their numbers
    rows = _rows_of(content, path) if isinstance(content, dict) else [content]
    return iter(rows)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.decode("utf-8-sig")), dict)
    except (ValueError, RecursionError):
        return False


def _array_rows(path: str | Path) -> Iterator[Any]:
    """Yield the elements of an array: one of them, and a block of the file, are in memory."""
    number = 0
    with open_bytes(path) as stream:
        buffer = _Buffer(stream)
        try:
            buffer.skip()  # the bracket
            delimiter = "]" if buffer.peek() == "]" else ","
            while delimiter == ",":
                number += 1
                yield buffer.read_value()
                delimiter = buffer.peek()
                buffer.skip()
            if delimiter != "]":
                raise ValueError(f"expected a comma or the end of the array after it, got {delimiter or 'the end'!r}")
            if number and (surplus := buffer.peek()):
                raise ValueError(f"expected nothing after the array, got {surplus!r}")
        except UnicodeDecodeError as error:
            raise ParallelTextError(
                f"{path}: expected UTF-8, got {error} in row {number}; convert the file: iconv -f <its encoding> -t "
                "utf-8"
            ) from error
        except ParallelTextError:
            raise
        except (ValueError, RecursionError) as error:
            raise ParallelTextError(f"{path}: expected an array of rows in JSON; row {number}: {error}") from None


class _Buffer:
    """Text of a JSON file, of which what is being read is in memory."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._reader = codecs.getreader("utf-8-sig")(stream)
        self._decoder = json.JSONDecoder(object_pairs_hook=object_of_unique_keys)
        self._text = ""
        self._position = 0  # in the text, of the next character
        self._is_end = False

    def _read_block(self) -> None:
        block = self._reader.read(_BLOCK_CHARS)
        self._is_end = not block
        self._text = self._text[self._position :] + block
        self._position = 0

    def peek(self) -> str:
        """Return the next character that is no white space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._position)
            if match:
                self._position = match.end()
            if self._position < len(self._text) or self._is_end:
                return self._text[self._position : self._position + 1]
            self._read_block()

    def skip(self) -> None:
        """Skip that character."""
        self.peek()
        self._position += 1

    def read_value(self) -> Any:
        """Return the next value, of at most 16 MiB.

        Raises:
            ValueError: If it is longer, or not JSON.
        """
        self.peek()  # the decoder takes no white space before it
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except json.JSONDecodeError as error:  # perhaps since the value goes on behind this block
                if self._is_end:
                    raise ValueError(error.msg) from None
            else:
                if end < len(self._text) or self._is_end:  # "12" may be the beginning of "123"
                    self._position = end
                    return value
            if len(self._text) - self._position > LONGEST_LINE_BYTES:
                raise ValueError(f"more than {LONGEST_LINE_BYTES:,} characters, or no JSON")
            self._read_block()


def _rows_of(content: dict[str, Any], path: str | Path) -> list[Any]:
    """Return the rows of an object; see :func:`document_rows`."""
    lists = {name: value for name, value in content.items() if isinstance(value, list)}
    rows: Any = lists.get("data", lists.get("rows"))
    columns = lists.get("columns")
    if rows is not None and columns is not None and _are_all(rows, list):
        return [dict(zip(columns, row)) for row in rows]  # pandas' orient="split"
    if rows is None:
        lists_of_objects = [value for value in lists.values() if value and _are_all(value, dict)]
        rows = lists_of_objects[0] if len(lists_of_objects) == 1 else None
    if rows is not None:
        return list(map(_unwrap_viewer_row, rows))

    if len(content) > 1 and len(lists) == len(content):
        sizes = {name: len(value) for name, value in lists.items()}
        if len(set(sizes.values())) > 1:
            got = ", ".join(f"{name} with {size:,}" for name, size in sizes.items())
            raise ParallelTextError(f"{path}: expected columns with as many texts each, got {got}; make them equal")
        return [dict(zip(lists, cells)) for cells in zip(*lists.values())]
    if len(content) > 1 and _are_all(content.values(), dict):
        raise ParallelTextError(
            f"{path}: expected an array of rows, a list of texts for each column, or JSON lines, got an object of "
            f"objects, {', '.join(list(content)[:4])}; of pandas, write it by to_json(orient='records', lines=True)"
        )
    return [content]


def _are_all(values: Iterable[Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def _unwrap_viewer_row(row: Any) -> Any:
    """Return a row itself, which the viewer of data sets puts under ``row``, next to its number."""
    if isinstance(row, Mapping) and isinstance(row.get("row"), Mapping) and "row_idx" in row:
        return row["row"]
    return row
