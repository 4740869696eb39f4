"""Read documents of any format as lines, and split their paragraphs into sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from st_xling.data.documents import is_document, read_document
from st_xling.mining.pipeline.work import SideLanguages
from st_xling.mining.sentences import split_sentences
from st_xling.mining.text import MiningText, TextWithIds, summarize
from st_xling.utils.identify import main_language
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.text import ParallelTextError, is_blank

#: Names of both sides, in this order.
SIDES = ("source", "target")

# Sentences of a side that tell its language: the first of each document, of the first documents.
_SAMPLED_DOCUMENTS = 200
_SAMPLED_SENTENCES = 200


class DocumentLines(NamedTuple):
    """Lines of a document of one side.

    Attributes:
        file: Its file.
        sha256: Hash of its lines.
        lines: Its lines, or its sentences if they are split, without white space at the ends; blank ones are empty.
        ids: Ids of its lines, such as the times of subtitles; none for their numbers.
        has_paragraphs: Whether the lines are paragraphs, which are to be split.
    """

    file: str
    sha256: str
    lines: list[str]
    ids: tuple[str, ...] = ()
    has_paragraphs: bool = False

    @property
    def texts(self) -> list[str]:
        """Lines that are not blank."""
        return list(filter(None, self.lines))


def read_document_lines(path: str) -> DocumentLines:
    """Read a document of any format.

    Raises:
        ValueError: For faulty text, or lines that begin with ids.
    """
    if is_document(path):
        document = read_document(path)
        sha256 = summarize(document.texts).sha256
        if document.times:
            return DocumentLines(path, sha256, document.texts, ids=document.times)
        paragraphs = "\n\n".join(document.texts).split("\n")
        return DocumentLines(path, sha256, paragraphs, has_paragraphs=True)
    text = MiningText(path)
    try:
        sha256 = text.validate().sha256
    except TextWithIds as error:
        raise ParallelTextError(f"{error.fact}; take the sentences alone: cut -f2-.") from None
    return DocumentLines(path, sha256, ["" if is_blank(line) else line.strip() for line in text])


def split_documents(
    sides: dict[str, list[DocumentLines]], named_languages: SideLanguages, *, every_text: bool, task: dict[str, Any]
) -> bool:
    """Split paragraphs into sentences; returns whether there were any.

    Args:
        sides: The documents, by side, of which those with paragraphs are replaced.
        named_languages: Languages of source and target, by whose rules they are split; otherwise they are identified.
        every_text: Whether the lines of text files are paragraphs, too; subtitles stay as they are.
        task: What the work depends on, to which the languages are added.
    """
    split_languages: dict[str, str] = {}
    for side, named_language in zip(SIDES, named_languages):
        are_split = [document.has_paragraphs or (every_text and not document.ids) for document in sides[side]]
        if not any(are_split):
            continue
        language = named_language or main_language(sample_sentences(sides[side]))
        rules = None if language == UNKNOWN else language
        for number, document in enumerate(sides[side]):
            if are_split[number]:
                sentences = split_sentences("\n".join(document.lines), rules)
                sides[side][number] = document._replace(lines=sentences)
        split_languages[side] = language
    if split_languages:
        task["split"] = split_languages
    return bool(split_languages)


def sample_sentences(documents: Sequence[DocumentLines]) -> list[str]:
    """Return the first sentences of the first documents."""
    sentences: list[str] = []
    for document in documents[:_SAMPLED_DOCUMENTS]:
        sentences += document.texts[:_SAMPLED_SENTENCES]
    return sentences


def count_sentences(documents: Sequence[DocumentLines]) -> int:
    """Return the number of sentences, without blank lines."""
    return sum(len(document.texts) for document in documents)
