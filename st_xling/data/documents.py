"""Documents and subtitles of one language: one function for each format, in the table :data:`DOCUMENTS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from st_xling.data.docx import docx_paragraphs
from st_xling.data.epub import epub_paragraphs
from st_xling.data.html_pages import html_paragraphs
from st_xling.data.odt import odt_paragraphs
from st_xling.data.subtitles import join_sentences, read_cues
from st_xling.utils.file_endings import FILE_FORMATS, FileFormat
from st_xling.utils.text import ParallelTextError, unpacked_ending


@dataclass(frozen=True)
class Document:
    """Text of a document.

    Attributes:
        texts: Its paragraphs, or what is said in subtitles, in order, each in one line. The cues of a sentence are
            joined, see :func:`~st_xling.data.subtitles.join_sentences`.
        times: Times of subtitles, from the first to the last of joined cues; none of paragraphs.
    """

    texts: list[str]
    times: tuple[str, ...] = ()


def _read_paragraphs(read: Callable[[str | Path], list[str]], path: str | Path) -> Document:
    return Document(read(path))


def _read_subtitles(path: str | Path) -> Document:
    cues = join_sentences(read_cues(path))
    return Document([cue.text for cue in cues], tuple(cue.time for cue in cues))


DOCUMENTS: dict[str, Callable[[str | Path], Document]] = {
    ".epub": partial(_read_paragraphs, epub_paragraphs),
    ".docx": partial(_read_paragraphs, docx_paragraphs),
    ".odt": partial(_read_paragraphs, odt_paragraphs),
    ".html": partial(_read_paragraphs, html_paragraphs),
    ".htm": partial(_read_paragraphs, html_paragraphs),
    ".xhtml": partial(_read_paragraphs, html_paragraphs),
    ".srt": _read_subtitles,
    ".vtt": _read_subtitles,
}
"""Ending of a document, without that of its compression, to the function that reads it."""


def is_document(path: str | Path) -> bool:
    """Return whether a file is a document or subtitles, by its name.

    Raises:
        ParallelTextError: For a document of a format that is not read; the message names a program that converts it.
    """
    ending = unpacked_ending(path)
    converter = FILE_FORMATS.get(ending, FileFormat("")).converter
    if converter:
        raise ParallelTextError(
            f"{path}: expected text, EPUB, DOCX, ODT, HTML or subtitles, got {ending[1:].upper()}; convert it: "
            f"{converter}"
        )
    return ending in DOCUMENTS


def read_document(path: str | Path) -> Document:
    """Read a document or subtitles, in the format of its ending.

    Args:
        path: ``.epub``, ``.docx``, ``.odt``, ``.html``, ``.htm``, ``.xhtml``, ``.srt`` or ``.vtt``.

    Raises:
        ParallelTextError: If it is none, or has no text.
        FileNotFoundError: If there is none.
        ValueError: If lxml, which reads HTML, is not installed.

    Example:
        >>> read_document("book.de.epub").texts                                          # doctest: +SKIP
        ['Erstes Kapitel', 'Es regnete seit gestern. Wir blieben zu Hause.', …]
    """
    if not is_document(path):
        raise ParallelTextError(f"{path}: expected a document that ends in {', '.join(DOCUMENTS)}; rename it")
    document = DOCUMENTS[unpacked_ending(path)](path)
    if not document.texts:
        raise ParallelTextError(f"{path}: expected a document with text, got none")
    return document
