"""Text of documents of LibreOffice (ODT), as a reader sees it: with text boxes and notes, without deletions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from st_xling.data.document_parts import TreeReader, open_parts
from st_xling.utils.text import ParallelTextError

_LEFT_OUT = frozenset(
    [
        # Deleted text, comments, the number of a note, the reading of a word, descriptions of pictures.
        *("tracked-changes", "annotation", "note-citation", "ruby-text", "desc", "table-of-content", "forms", "math"),
    ]
)
_CHARACTERS = {"s": " ", "tab": " ", "line-break": "\n"}
_ANCHORED = ("note-body", "text-box")
_DRAWING = "svg-compatible"  # of the namespace of pictures, whose title is a description


def odt_paragraphs(path: str | Path) -> list[str]:
    """Read the paragraphs of an ODT file: headings, list items, cells of tables; notes follow their paragraph.

    Left out are the table of contents, headers, footers and comments.

    Raises:
        ParallelTextError: If it is no ODT file, or has a password.
        FileNotFoundError: If there is none.
    """
    with open_parts(path, "ODT") as parts:
        manifest = "META-INF/manifest.xml"
        if manifest in parts and b"encryption-data" in parts.read(manifest):
            raise ParallelTextError(f"{path}: expected a document without a password; save it without one")
        body = parts.tree("content.xml").find("{*}body")
    return [] if body is None else _OdtReader().read(body)


class _OdtReader(TreeReader):
    def begin(self, tag: str, element: Any) -> bool:
        if tag in _LEFT_OUT or (tag == "title" and _DRAWING in element.tag):
            return False
        if tag in _CHARACTERS:
            self.paragraphs.add(_CHARACTERS[tag])
        elif tag in _ANCHORED:
            self.paragraphs.begin_anchored()
        return True

    def end(self, tag: str, element: Any) -> None:
        if tag in _ANCHORED:
            self.paragraphs.end_anchored()
        elif tag in ("p", "h"):
            self.paragraphs.end_paragraph()
