"""Parts of documents: files in a zip archive, trees of elements, and the paragraphs that are found in them.

An archive, and a tree, may come from anywhere: no part is read that is larger than it may be, and no tree that defines
entities, by which a small file can stand for a huge text, or for the text of another file.
"""

from __future__ import annotations

import html
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from st_xling.data.xml_units import local_name
from st_xling.utils.text import LARGEST_DOCUMENT_BYTES, ParallelTextError, describe_missing, is_blank

_OLE = b"\xd0\xcf\x11\xe0"  # first bytes of files of old Word, and of encrypted ones
_XML_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_ENCODING = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
# Names of encodings, and the wider ones that browsers read instead.
_AS_BROWSERS_READ = {
    "iso-8859-1": "windows-1252",
    "us-ascii": "windows-1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "utf-16": "utf-8",  # what has such a name in ASCII, and no byte order mark, is not UTF-16
}
_ENCODING_BYTES = 4096  # where an encoding is looked for
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ENTITY = re.compile(r"&(\w+);")
_ENTITIES_OF_XML = ("amp", "lt", "gt", "quot", "apos")
_SPACES = re.compile(r"[ \t\r\n\f]+")
# Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese have no spaces between words.
_NO_SPACES = r"[\u0e00-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uff60]"
_LINE_END_WITHOUT_SPACE = re.compile(rf"(?<={_NO_SPACES})\n(?={_NO_SPACES})")
_SOFT_HYPHEN = "\u00ad"  # where a word may be divided at the end of a line


class ZippedParts:
    """Files in the archive of a document.

    Args:
        path: The document, for messages.
        archive: Its archive.
    """

    def __init__(self, path: str | Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self.archive = archive
        self._bytes_read = 0

    def __contains__(self, name: str) -> bool:
        return name in self.archive.NameToInfo

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            ParallelTextError: If there is none, it has a password, or all that is read is larger than a document may
                be.
        """
        if name not in self:
            raise ParallelTextError(f"{self.path}: expected a part {name}, got an archive without it; write it again")
        entry = self.archive.getinfo(name)
        if entry.flag_bits & 0x1:
            raise ParallelTextError(f"{self.path}: expected a document without a password; save it without one")
        # Of an entry that is larger than it says, no more is read than it says.
        self._bytes_read += entry.file_size
        if self._bytes_read > LARGEST_DOCUMENT_BYTES:
            raise ParallelTextError(
                f"{self.path}: expected a document of at most {LARGEST_DOCUMENT_BYTES:,} bytes, got {name} of "
                f"{entry.file_size:,} bytes; divide it"
            )
        try:
            return self.archive.read(entry)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise ParallelTextError(f"{self.path}: expected a whole archive, got: {error}; fetch it again") from error

    def tree(self, name: str) -> ElementTree.Element:
        """Return the tree of a file of XML."""
        return parse_xml(decode_markup(self.read(name), self._name(name)), self._name(name))

    def _name(self, name: str) -> str:
        return f"{self.path}/{name}"


@contextmanager
def open_parts(path: str | Path, kind: str) -> Iterator[ZippedParts]:
    """Open the archive of a document.

    Args:
        path: The document.
        kind: Name of its format, for messages.

    Raises:
        FileNotFoundError: If there is none.
        ParallelTextError: If it is no archive.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(describe_missing(path))
    with file.open("rb") as stream:
        if stream.read(4) == _OLE:
            raise ParallelTextError(
                f"{path}: expected {kind}, got a file of old Word, or with a password; save it as {kind} without one"
            )
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise ParallelTextError(f"{path}: expected {kind}, which is a zip archive, got: {error}") from error
    with archive:
        yield ZippedParts(path, archive)


def decode_markup(content: bytes, where: str) -> str:
    """Return the text of XML or HTML in the encoding that it names: UTF-8 by default, or Windows' for Western Europe.

    Raises:
        ParallelTextError: For an unknown encoding, or bytes that are none of it.
    """
    head = content[:_ENCODING_BYTES]
    named = _ENCODING.search(head)
    encoding = ""
    for mark, encoding_of_mark in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            encoding = encoding_of_mark
    if not encoding and named:
        name = (named[1] or named[2]).decode("ascii", "replace").lower()
        encoding = _AS_BROWSERS_READ.get(name, name)
    if not encoding:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            encoding = "windows-1252"
    try:
        return content.decode(encoding)
    except LookupError as error:
        raise ParallelTextError(
            f"{where}: expected an encoding, got {encoding!r}; convert the file to UTF-8"
        ) from error
    except UnicodeDecodeError as error:
        raise ParallelTextError(
            f"{where}: expected {encoding}, got byte 0x{content[error.start]:02x} at byte {error.start + 1:,}; convert "
            "the file to UTF-8"
        ) from error


def parse_xml(text: str, where: str) -> ElementTree.Element:
    """Return the tree of XML, in which entities of HTML such as ``&nbsp;`` are characters.

    Raises:
        ParallelTextError: For malformed XML, and for XML that defines entities.
    """
    text = _XML_DECLARATION.sub("", text, count=1)
    check_entities(text, where)
    try:
        return ElementTree.fromstring(_ENTITY.sub(_entity_text, text))
    except ElementTree.ParseError as error:
        raise ParallelTextError(f"{where}: expected XML, got malformed XML: {error}; write it again") from error


def check_entities(text: str, where: str) -> None:
    """Raise ``ParallelTextError`` for XML that defines entities."""
    if "<!ENTITY" in text:
        raise ParallelTextError(f"{where}: expected text, got a definition of entities (<!ENTITY); remove it")


def _entity_text(match: re.Match[str]) -> str:
    """Return the character of an entity of HTML; the entity itself if XML knows it, or nobody does."""
    return match[0] if match[1] in _ENTITIES_OF_XML else html.escape(html.unescape(match[0]))


class TreeReader:
    """Reads the paragraphs of a tree of elements; subclasses say what each element means.

    A tree may be deeper than functions of Python may call each other.
    """

    def __init__(self) -> None:
        self.paragraphs = ParagraphWriter()

    def begin(self, tag: str, element: Any) -> bool:
        """Begin an element; returns whether its content is read."""
        raise NotImplementedError

    def end(self, tag: str, element: Any) -> None:
        """End an element whose content was read."""
        raise NotImplementedError

    def text(self, text: str) -> None:
        """Add text, with one space in place of white space."""
        self.paragraphs.add(_SPACES.sub(" ", text))

    def read(self, root: Any) -> list[str]:
        """Return the paragraphs of a tree."""
        self.walk(root)
        return self.paragraphs.finish()

    def walk(self, root: Any) -> None:
        """Read a tree, or a part of it."""
        opened: list[Any] = []
        children: list[Iterator[Any]] = [iter([root])]
        while children:
            element = next(children[-1], None)
            if element is None:
                children.pop()
                if opened:
                    ended = opened.pop()
                    self.end(local_name(ended), ended)
                    if opened:
                        self.text(ended.tail or "")
                continue
            tag = local_name(element)
            if tag and self.begin(tag, element):
                self.text(element.text or "")
                opened.append(element)
                children.append(iter(element))
            elif opened:
                self.text(element.tail or "")


class ParagraphWriter:
    """Joins pieces of text to paragraphs, in their order; notes and text boxes follow the paragraph they belong to."""

    def __init__(self) -> None:
        # The document, and the notes and boxes that are open in it.
        self._open = [_OpenText()]

    def add(self, text: str) -> None:
        """Add a piece of text; line ends in it are those of the paragraph."""
        self._open[-1].pieces.append(text)

    def end_paragraph(self) -> None:
        """End a paragraph; without any text, there is none."""
        self._open[-1].end_paragraph()

    def begin_anchored(self) -> None:
        """Begin a note or a text box."""
        self._open.append(_OpenText())

    def end_anchored(self) -> None:
        """End a note or a text box."""
        self.end_paragraph()
        anchored = self._open.pop().finished
        self._open[-1].anchored += anchored

    def finish(self) -> list[str]:
        """Return all paragraphs."""
        self.end_paragraph()
        return self._open[-1].finished


class _OpenText:
    """Paragraphs so far of a document, a note or a text box.

    Attributes:
        finished: Paragraphs that have ended.
        pieces: Text of the one that is open.
        anchored: Paragraphs of notes and boxes in it.
    """

    def __init__(self) -> None:
        self.finished: list[str] = []
        self.pieces: list[str] = []
        self.anchored: list[str] = []

    def end_paragraph(self) -> None:
        self.finished += split_paragraphs("".join(self.pieces))
        self.finished += self.anchored
        self.pieces = []
        self.anchored = []


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, which blank lines divide, each in one line.

    Example:
        >>> split_paragraphs(" One \\n line\\n\\n\\nTwo ")
        ['One line', 'Two']
    """
    lines = [_SPACES.sub(" ", line).strip(" ") for line in text.replace(_SOFT_HYPHEN, "").split("\n")]
    paragraphs = re.split(r"\n{2,}", "\n".join(lines).strip("\n"))
    return [join_lines(paragraph) for paragraph in paragraphs if not is_blank(paragraph)]


def join_lines(text: str) -> str:
    """Join lines by spaces, but not within scripts that have none between words.

    Example:
        >>> join_lines("One\\nline"), join_lines("日本\\n語")
        ('One line', '日本語')
    """
    return _LINE_END_WITHOUT_SPACE.sub("", text).replace("\n", " ")


def attribute(element: Any, name: str) -> str:
    """Return an attribute by its name without namespace; empty if there is none."""
    if name in element.keys():  # noqa: SIM118, since an element is a list of its children
        return str(element.get(name))
    values: Iterable[tuple[str, str]] = element.items()
    return next((value for key, value in values if key.rpartition("}")[2] == name), "")
