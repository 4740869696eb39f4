"""Text of HTML pages, and of the pages of e-books: paragraphs as a browser divides them, without menus and readings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from st_xling.data.document_parts import TreeReader, attribute, check_entities, decode_markup, parse_xml
from st_xling.data.xml_units import local_name
from st_xling.utils.options import require
from st_xling.utils.text import ParallelTextError, read_bytes

# Elements before and after which a line ends.
_BLOCKS = frozenset([
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "ol", "p", "pre", "search", "section",
    "summary", "table", "tbody", "td", "text", "tfoot", "th", "thead", "tr", "ul",
])  # fmt: skip
# What is not text of the page, or is not seen; menus; the readings of words; the sources of formulas.
_LEFT_OUT = frozenset([
    "annotation", "annotation-xml", "audio", "button", "canvas", "datalist", "desc", "head", "iframe", "metadata",
    "nav", "noscript", "object", "rp", "rt", "rtc", "script", "select", "style", "template", "textarea", "title",
    "video",
])  # fmt: skip
# Meanings, as of EPUB, of what is no text of the page: numbers of pages, references to notes and back, contents.
_MEANINGS_LEFT_OUT = frozenset([
    "backlink", "landmarks", "loi", "lot", "noteref", "page-list", "pagebreak", "toc", "doc-backlink",
    "doc-noteref", "doc-pagebreak", "doc-pagelist", "doc-toc",
])  # fmt: skip
_EMPTY = frozenset([
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
])  # fmt: skip
# Readings of words may end without a tag, which lxml does not know: the next word would belong to them.
_UNCLOSED_READING = re.compile(r"(<(rt|rp|rb)\b[^>]*>[^<]*)(?=<(?:rb|rt|rp|rtc)\b|</ruby>)", re.IGNORECASE)
_NOTE_NUMBER = re.compile(r"[\[(]?(?:\d{1,4}|[a-z]|[ivxl]+|[*†‡§]{1,3})[\])]?")
_NOTE_REFERENCE = re.compile(r"(?:foot|end)-?note-?ref|noteref|fn-?ref", re.IGNORECASE)
_CLOSED_AT_ONCE = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")


def html_paragraphs(path: str | Path) -> list[str]:
    """Read the paragraphs of an HTML page: headings, list items, cells of tables; without its menus (``nav``).

    Args:
        path: HTML or XHTML, plain or packed, in the encoding that it names.

    Raises:
        ParallelTextError: For bytes that are none of its encoding, or no text at all.
        ValueError: If lxml is not installed.
    """
    return page_paragraphs(read_bytes(path, any_encoding=True), str(path))


def page_paragraphs(content: bytes, where: str) -> list[str]:
    """Return the paragraphs of a page: of XML if it is well-formed, else of HTML.

    Args:
        content: Its bytes.
        where: Its file, for messages.
    """
    text = decode_markup(content, where)
    is_xml = "<?xml" in text[:200] or "http://www.w3.org/1999/xhtml" in text[:2000]
    if is_xml:
        check_entities(text, where)
        try:
            return _PageReader().read(parse_xml(text, where))
        except ParallelTextError:
            # Elements without content, such as <title/>, would go on to the end of the page in HTML.
            text = _CLOSED_AT_ONCE.sub(_with_end, text)
    return _PageReader().read(_parse_html(text, where))


def _with_end(match: re.Match[str]) -> str:
    name, attributes = match.groups()
    return match[0] if name.lower() in _EMPTY else f"<{name}{attributes}></{name}>"


def _parse_html(text: str, where: str) -> Any:
    """Return the tree of a page, with the ends of elements that it leaves out."""
    etree = require("lxml.etree", "reading HTML", extra="documents")
    # A null byte would end the page; huge_tree lets through texts of more than 10 MB, which are otherwise lost.
    with_ends = _UNCLOSED_READING.sub(r"\1</\2>", text.replace("\0", "\ufffd"))
    content = with_ends.encode("utf-8", "replace")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True)
    root = etree.fromstring(content, parser) if text.strip() else None
    if root is None:
        raise ParallelTextError(f"{where}: expected a page with text, got none")
    for error in parser.error_log:
        if error.level_name == "FATAL":  # what follows was not read
            raise ParallelTextError(f"{where}:{error.line}: expected HTML, got: {error.message}")
    return root


class _PageReader(TreeReader):
    def __init__(self) -> None:
        super().__init__()
        self._preformatted = 0

    def begin(self, tag: str, element: Any) -> bool:
        tag = tag.lower()
        if tag in _LEFT_OUT or _is_left_out(element) or _refers_to_note(tag, element):
            return False
        if tag in _BLOCKS:
            self.paragraphs.end_paragraph()
        elif tag == "br":
            self.paragraphs.add("\n")
        self._preformatted += tag == "pre"
        return True

    def end(self, tag: str, element: Any) -> None:
        tag = tag.lower()
        if tag in _BLOCKS:
            self.paragraphs.end_paragraph()
        self._preformatted -= tag == "pre"

    def text(self, text: str) -> None:
        if self._preformatted:
            self.paragraphs.add(text)
        else:
            super().text(text)


def _refers_to_note(tag: str, element: Any) -> bool:
    """Return whether an element is the number of a note, linked to it, in a book that names no meanings.

    Such a number is raised, or a class or an id says what it is.
    """
    if tag not in ("a", "sup"):
        return False
    tags = {local_name(entry).lower(): entry for entry in element.iter()}
    link = tags.get("a")
    if link is None or "#" not in attribute(link, "href"):
        return False
    is_named = _NOTE_REFERENCE.search(f"{attribute(link, 'class')} {attribute(link, 'id')}") is not None
    is_number = _NOTE_NUMBER.fullmatch("".join(element.itertext()).strip()) is not None
    return is_number and ("sup" in tags or is_named)


def _is_left_out(element: Any) -> bool:
    """Return whether an element is hidden, or its meaning says that it is no text of the page."""
    if "hidden" in element.keys():  # noqa: SIM118, since an element is a list of its children
        return True
    meanings = f"{attribute(element, 'type')} {attribute(element, 'epub:type')} {attribute(element, 'role')}"
    return not _MEANINGS_LEFT_OUT.isdisjoint(meanings.split())
