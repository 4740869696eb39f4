"""Text of Word documents (DOCX), as a reader sees it: with insertions, text boxes and notes, without deletions.

The text is read from the document's own XML. Libraries lose some of it: python-docx insertions, moves, text boxes and
Japanese words that carry a reading, mammoth and pandoc these words, pandoc text boxes as well; docx2python reads both
ends of a move, readings as words, and text boxes twice.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from st_xling.data.document_parts import TreeReader, ZippedParts, attribute, open_parts
from st_xling.data.xml_units import local_name

_LEFT_OUT = frozenset(
    [
        # Deleted text, where text was moved from, the reading of a word, codes of fields, formats.
        *("del", "moveFrom", "rt", "instrText", "delInstrText", "pPr", "rPr", "sectPr", "tblPr", "tcPr", "sdtPr"),
    ]
)
_CHARACTERS = {"br": "\n", "cr": "\n", "tab": " ", "ptab": " ", "noBreakHyphen": "\u2011"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_CONTENTS_STYLE = re.compile(r"toc (?:\d|heading)", re.IGNORECASE)
_OFF = ("0", "false", "off")


def docx_paragraphs(path: str | Path) -> list[str]:
    """Read the paragraphs of a DOCX file: headings, list items, cells of tables; notes follow their paragraph.

    Left out are the table of contents, headers, footers, comments and hidden text.

    Raises:
        ParallelTextError: If it is no DOCX file.
        FileNotFoundError: If there is none.
    """
    with open_parts(path, "DOCX") as parts:
        (document,) = _related(parts, "", "officeDocument") or ["word/document.xml"]
        notes: dict[tuple[str, str], Any] = {}
        for reference, kind in _NOTES.items():
            for name in _related(parts, document, kind):
                for note in parts.tree(name):
                    notes[reference, attribute(note, "id")] = note
        contents_styles = set()
        for name in _related(parts, document, "styles"):
            for style in parts.tree(name):
                names = [attribute(entry, "val") for entry in style if local_name(entry) == "name"]
                if names and _CONTENTS_STYLE.fullmatch(names[0]):
                    contents_styles.add(attribute(style, "styleId"))
        return _DocxReader(notes, contents_styles).read(parts.tree(document))


def _related(parts: ZippedParts, name: str, kind: str) -> list[str]:
    """Return the parts of a kind that a part refers to; those of the archive refer to the document."""
    folder, file = posixpath.split(name)
    relations = posixpath.join(folder, "_rels", f"{file}.rels")
    if relations not in parts:
        return []
    targets = []
    for relation in parts.tree(relations):
        if relation.get("Type", "").endswith(f"/{kind}") and relation.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))
            targets.append(target.lstrip("/"))
    return targets[:1]


class _DocxReader(TreeReader):
    """Reads the body of a document.

    Args:
        notes: Notes by the element that refers to them and by id.
        contents_styles: Ids of the styles of a table of contents.
    """

    def __init__(self, notes: Mapping[tuple[str, str], Any], contents_styles: set[str]) -> None:
        super().__init__()
        self._notes = notes
        self._contents_styles = contents_styles
        self._not_chosen: set[Any] = set()

    def begin(self, tag: str, element: Any) -> bool:
        if tag in _LEFT_OUT or element in self._not_chosen:
            return False
        if tag == "t":
            super().text(element.text or "")
            return False
        if tag in _CHARACTERS:
            self.paragraphs.add(_CHARACTERS[tag])
        elif tag in _NOTES:
            self._read_note(tag, element)
        elif tag == "txbxContent":
            self.paragraphs.begin_anchored()
        elif tag == "AlternateContent":
            self._choose(element)
        return not _is_unseen(tag, element, self._contents_styles)

    def end(self, tag: str, element: Any) -> None:
        if tag == "txbxContent":
            self.paragraphs.end_anchored()
        # A paragraph whose end was deleted goes on in the next one.
        elif tag == "p" and not _is_marked(element, "pPr/rPr", ("del", "moveFrom")):
            self.paragraphs.end_paragraph()

    def text(self, text: str) -> None:
        """Ignore text outside of ``t``: line ends of the file."""

    def _read_note(self, tag: str, reference: Any) -> None:
        note = self._notes.get((tag, attribute(reference, "id")))
        if note is not None:
            self.paragraphs.begin_anchored()
            self.walk(note)
            self.paragraphs.end_anchored()

    def _choose(self, alternatives: Any) -> None:
        """Choose the first of several forms of the same content that has text."""
        with_text = [branch for branch in alternatives if branch.find(".//{*}t") is not None]
        self._not_chosen.update(branch for branch in alternatives if with_text and branch is not with_text[0])


def _is_unseen(tag: str, element: Any, contents_styles: set[str]) -> bool:
    """Return whether an element is hidden, deleted, or in the table of contents."""
    if tag == "r":
        return _is_marked(element, "rPr", ("vanish",))
    if tag == "tr":
        return _is_marked(element, "trPr", ("del",))
    if tag == "p":
        style = element.find("{*}pPr/{*}pStyle")
        return style is not None and attribute(style, "val") in contents_styles
    if tag == "sdt":
        gallery = element.find("{*}sdtPr/{*}docPartObj/{*}docPartGallery")
        return gallery is not None and attribute(gallery, "val") == "Table of Contents"
    return False


def _is_marked(element: Any, formats: str, marks: tuple[str, ...]) -> bool:
    """Return whether an element has one of some marks among its formats, unless it is switched off there."""
    path = "/".join(f"{{*}}{name}" for name in formats.split("/"))
    for entry in element.iterfind(f"{path}/*"):
        if local_name(entry) in marks and attribute(entry, "val") not in _OFF:
            return True
    return False
