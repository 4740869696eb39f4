"""Text of e-books (EPUB 2 and 3): their pages in the order in which they are read, without the contents."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

from st_xling.data.document_parts import ZippedParts, attribute, open_parts
from st_xling.data.html_pages import page_paragraphs
from st_xling.utils.text import ParallelTextError

_PAGE_TYPES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_PACKAGE_TYPE = "application/oebps-package+xml"
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def epub_paragraphs(path: str | Path) -> list[str]:
    """Read the paragraphs of a book in the order of its spine; see :func:`~st_xling.data.html_pages.page_paragraphs`.

    Left out are the table of contents, numbers of printed pages, and the numbers that refer to notes.

    Raises:
        ParallelTextError: If it is no EPUB file, lacks a page, or is locked (DRM).
        FileNotFoundError: If there is none.
    """
    with open_parts(path, "EPUB") as parts:
        if _CONTAINER not in parts:
            raise ParallelTextError(f"{path}: expected EPUB, got a zip archive without {_CONTAINER}")
        roots = [root for root in parts.tree(_CONTAINER).iterfind(".//{*}rootfile") if root.get("full-path")]
        packages = [root for root in roots if root.get("media-type") == _PACKAGE_TYPE] or roots
        if not packages:
            raise ParallelTextError(f"{path}: expected EPUB, got {_CONTAINER} without a rootfile")
        pages = _pages(parts, packages[0].get("full-path", ""))
        locked = _encrypted(parts)
        paragraphs: list[str] = []
        for page in pages:
            if page in locked:
                raise ParallelTextError(f"{path}: expected a book that can be read, got {page} locked (DRM)")
            paragraphs += page_paragraphs(parts.read(page), f"{path}/{page}")
    return paragraphs


def _pages(parts: ZippedParts, package_name: str) -> list[str]:
    """Return the pages of a book in the order of its spine, without that of the contents."""
    package = parts.tree(package_name)
    folder = posixpath.dirname(package_name)
    items: dict[str, Any] = {item.get("id", ""): item for item in package.iterfind("{*}manifest/{*}item")}
    contents = {_part_name(folder, entry) for entry in package.iterfind("{*}guide/{*}reference[@type='toc']")}
    pages = []
    for reference in package.iterfind("{*}spine/{*}itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or item.get("media-type") not in _PAGE_TYPES:
            continue
        name = _part_name(folder, item)
        is_contents = "nav" in item.get("properties", "").split() or name in contents
        if not is_contents:
            pages.append(name)
    if not pages:
        raise ParallelTextError(f"{parts.path}: expected EPUB, got no pages in the spine of {package_name}")
    return pages


def _part_name(folder: str, entry: Any) -> str:
    """Return the name in the archive of what an entry of the package refers to."""
    return posixpath.normpath(posixpath.join(folder, unquote(urldefrag(entry.get("href", ""))[0])))


def _encrypted(parts: ZippedParts) -> set[str]:
    """Return the names of the parts that are encrypted."""
    if _ENCRYPTION not in parts:
        return set()
    references = parts.tree(_ENCRYPTION).iterfind(".//{*}CipherReference")
    return {unquote(attribute(reference, "URI")) for reference in references}
