"""Files of translation units in XML (TMX, XLIFF): read unit by unit, in bounded memory, and the text of their segments.

Nothing that a file names is fetched: no schema, no document type and no entity of another file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from st_xling.utils.text import ParallelTextError, open_bytes

LONGEST_UNIT_BYTES = 1 << 22
"""A longer translation unit is no sentence."""

DEEPEST_TAGS = 100
"""Tags within tags of a file, from its root; inline tags are rarely more than three deep."""

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

# Control characters are not allowed in XML, and would end the reading of the whole file. They are read as a character
# that no text has, so that the fault is one of their unit.
NOT_XML = "\U0010fffd"
"""Character in place of those that XML does not allow."""

_READ_BYTES = 1 << 14
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CONTROL_REFERENCE = re.compile(rb"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]));")
_REFERENCE_BYTES = 12  # longest reference to a control character, which may begin at the end of a block
_LINE_BREAK_TYPE = re.compile(r"(?:x-|xlf:)?(?:lb|br|pb|line-?break|page-?break|new-?line)", re.IGNORECASE)
_LINE_BREAK_CODE = re.compile(r"\s*(?:<br\b[^>]*>|<w:br\b[^>]*>|\\n|\n)\s*", re.IGNORECASE)
_XML_SPACE = " \t\r\n"


class UnitEvent(NamedTuple):
    """Beginning or end of an element.

    Attributes:
        is_end: Whether the element ends; its text and its children are complete only then.
        tag: Its name without namespace.
        element: The element.
        unit: Number of units that have ended, with this one.
    """

    is_end: bool
    tag: str
    element: ElementTree.Element
    unit: int


def unit_events(
    path: str | Path, kind: str, *unit_tags: str, longest_unit: int = LONGEST_UNIT_BYTES
) -> Iterator[UnitEvent]:
    """Yield the beginnings and ends of the elements of a file, in their order.

    The caller removes the elements that it has read: they would fill the memory.

    Args:
        path: The file, plain or packed; UTF-8 or UTF-16.
        kind: Name of the format, for messages.
        unit_tags: Names that the element of a unit may have.
        longest_unit: Maximum number of bytes from the end of a unit to that of the next.

    Raises:
        ParallelTextError: For malformed XML, with its line; for a unit that is too long; for tags more than 100 deep.
    """
    with open_bytes(path, any_encoding=True) as stream:
        source = _UnitReader(stream, path, kind, longest_unit)
        depth = 0
        try:
            for event, element in ElementTree.iterparse(source, ("start", "end")):
                is_end = event == "end"
                depth += -1 if is_end else 1
                if depth > DEEPEST_TAGS:
                    raise ParallelTextError(
                        f"{path}: expected {kind} with tags at most {DEEPEST_TAGS} deep, got more in unit "
                        f"{source.unit + 1}; remove the unit"
                    )
                tag = local_name(element)
                if is_end and tag in unit_tags:
                    source.end_unit()
                yield UnitEvent(is_end, tag, element, source.unit)
        except ElementTree.ParseError as error:
            where = f"{path}:{error.position[0]}"
            raise ParallelTextError(f"{where}: expected {kind}, got malformed XML: {error}") from error


def local_name(element: Any) -> str:
    """Return the tag of an element without its namespace, which some writers name; empty for a comment of lxml."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def normalize_spaces(text: str) -> str:
    """Return a text with one space in place of white space of XML; a no-break space is part of the text."""
    return " ".join(filter(None, re.split(f"[{_XML_SPACE}]+", text)))


def is_line_break(kind: str, code: str | None) -> bool:
    """Return whether an inline tag stands for a line break, by its kind or the formatting code in it."""
    return bool(_LINE_BREAK_TYPE.fullmatch(kind) or _LINE_BREAK_CODE.fullmatch(code or ""))


class _UnitReader:
    """Bytes of a file for the parser, with a limit for one unit, and control characters made readable.

    Args:
        stream: Unpacked bytes.
        path: The file, for messages.
        kind: Name of its format, for messages.
        longest_unit: Maximum number of bytes of a unit.

    Attributes:
        unit: Number of units that have ended.
    """

    def __init__(self, stream: io.BufferedReader, path: str | Path, kind: str, longest_unit: int) -> None:
        self.stream = stream
        self.path = path
        self.kind = kind
        self.longest_unit = longest_unit
        self.unit = 0
        self._unit_bytes = 0
        self._kept_back = b""
        head = stream.peek(200)[:200]
        encoding = re.search(rb"""<\?xml[^>]*encoding=["']([^"']+)""", head)
        is_named_utf8 = encoding is None or encoding[1].lower() in (b"utf-8", b"utf8")
        # In UTF-16 each second byte of most texts is 0.
        self._is_utf8 = is_named_utf8 and b"\0" not in head

    def read(self, size: int = _READ_BYTES) -> bytes:
        """Return the next bytes; empty at the end."""
        block = self.stream.read(_READ_BYTES)
        self._unit_bytes += len(block)
        if self._unit_bytes > self.longest_unit:
            raise ParallelTextError(
                f"{self.path}: expected translation units of sentences, got more than {self.longest_unit:,} bytes "
                f"without the end of unit {self.unit + 1}; is this {self.kind}?"
            )
        if not self._is_utf8:
            return block
        data = self._kept_back + block
        self._kept_back = b""
        if block:
            # A reference that may go on in the next block is kept back until then.
            start = data.rfind(b"&", max(0, len(data) - _REFERENCE_BYTES))
            if start > 0:
                self._kept_back = data[start:]
                data = data[:start]
        marker = NOT_XML.encode()
        return _CONTROL_REFERENCE.sub(marker, _CONTROL.sub(marker, data))

    def end_unit(self) -> None:
        """Count a unit, and begin the next."""
        self.unit += 1
        self._unit_bytes = 0
