"""Question-answering files in SQuAD's form, one language a file; of two translations also the paragraphs, as pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from st_xling.data.check import ADVICE, SHOWN
from st_xling.utils.text import read_bytes

NO_ANSWER = "question without an answer"
NOT_IN_PARAGRAPH = "answer not in its paragraph"


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        identity: The file's own id; ``""`` if it gives none.
        text: The question.
        paragraph: Number of its paragraph in the file.
        fault: Why no paragraph is known to answer it, or ``""``.
        sentence: Number of the sentence of the paragraph in which its first answer begins, where that is asked for.
    """

    identity: str
    text: str
    paragraph: int
    fault: str = ""
    sentence: int | None = None


@dataclass
class SquadFile:
    """All that a file holds, in its order.

    Attributes:
        path: The file.
        titles: Of its articles; ``""`` where it gives none.
        paragraphs: Their texts.
        paragraph_articles: Number of each one's article. *Shape:* ``(paragraphs,)``
        questions: The questions.
        sentences: Of each paragraph, first character and end of its sentences, where these are asked for.
    """

    path: str
    titles: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    paragraph_articles: list[int] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    sentences: list[list[tuple[int, int]]] = field(default_factory=list)


def read_squad(path: str | Path, *, sentences: bool = False) -> SquadFile:
    """Reads a file like XQuAD's, MLQA's or BiPaR's: ``data`` → ``paragraphs`` → ``context`` and ``qas``.

    A question is known to be answered by its paragraph if the text of one of its ``answers`` occurs there; SQuAD 2's
    ``is_impossible`` and empty ``answers`` are no fault of the file, but noted as such on the question.

    Args:
        path: ``.json``, plain or packed.
        sentences: Whether to read XQuAD-R's ``sentence_breaks`` as well, which must then be there.
    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not JSON, or not of this form; blank paragraphs and questions. All faults come together, each
            with its place, such as ``data[3].paragraphs[0].qas[2]``.
    """
    content = read_json(path)
    faults: list[str] = []
    read = SquadFile(str(path))
    for place, article in _items(content, "data", "", faults):
        read.titles.append(str(article.get("title") or ""))
        for where, paragraph in _items(article, "paragraphs", place, faults):
            read.paragraphs.append(_text(paragraph, "context", where, faults))
            read.paragraph_articles.append(len(read.titles) - 1)
            if sentences:
                read.sentences.append(_sentences(paragraph, where, read.paragraphs[-1], faults))
            for spot, question in _items(paragraph, "qas", where, faults):
                found = _question(question, spot, len(read.paragraphs) - 1, read.paragraphs[-1], faults)
                if sentences and not found.fault:
                    found = replace(found, sentence=_sentence(question, spot, read.sentences[-1], faults))
                read.questions.append(found)
    if not faults and not read.questions:
        faults.append("no question")
    if faults:
        shown = "".join(f"\n  {fault}" for fault in faults[:SHOWN])
        more = f"\n  ... and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise ValueError(f"{path}: expected questions in SQuAD's form, got {len(faults)} faults:{shown}{more}")
    return read


def read_json(path: str | Path) -> Any:
    """The content of a JSON file, plain or packed; a ``ValueError`` where it is none."""
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, got: {error}. {ADVICE['invalid UTF-8']}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON, got: {error}; check that it is the file.") from error


def _question(entry: dict[str, Any], place: str, paragraph: int, context: str, faults: list[str]) -> Question:
    text = _text(entry, "question", place, faults)
    answers = entry.get("answers") or []
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        faults.append(f"{place}.answers: expected a list of objects")
        answers = []
    spans = [answer.get("text") for answer in answers]
    fault = ""
    if not spans or entry.get("is_impossible"):
        fault = NO_ANSWER
    elif not any(isinstance(span, str) and span.strip() and span in context for span in spans):
        fault = NOT_IN_PARAGRAPH
    identity = entry.get("id")
    return Question("" if identity is None else str(identity), text, paragraph, fault)


def _sentences(paragraph: dict[str, Any], place: str, context: str, faults: list[str]) -> list[tuple[int, int]]:
    breaks: Any = paragraph.get("sentence_breaks")
    found: list[tuple[int, int]] = []
    pair: Any
    for pair in breaks if isinstance(breaks, list) else [None]:
        last = found[-1][1] if found else 0
        whole = isinstance(pair, list) and len(pair) == 2 and all(isinstance(end, int) for end in pair)
        if not whole or not last <= pair[0] < pair[1] <= len(context) or not context[slice(*pair)].strip():
            faults.append(
                f"{place}.sentence_breaks: expected [start, end] of sentences in order, in {len(context)} characters, "
                f"got {breaks if pair is None else pair!r}"
            )
            return []
        found.append((pair[0], pair[1]))
    return found


def _sentence(entry: dict[str, Any], place: str, sentences: list[tuple[int, int]], faults: list[str]) -> int | None:
    start = entry["answers"][0].get("answer_start")
    for number, (begin, end) in enumerate(sentences):
        if isinstance(start, int) and begin <= start < end:
            return number
    if sentences:
        faults.append(f"{place}.answers[0].answer_start: expected a place in one of the sentences, got {start!r}")
    return None


def _items(parent: Any, key: str, place: str, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    items = parent.get(key) if isinstance(parent, dict) else None
    where = f"{place}.{key}" if place else key
    if not isinstance(items, list):
        faults.append(f"{where}: expected a list, got {'nothing' if items is None else type(items).__name__}")
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield f"{where}[{number}]", item
        else:
            faults.append(f"{where}[{number}]: expected an object, got {type(item).__name__}")


def _text(entry: dict[str, Any], key: str, place: str, faults: list[str]) -> str:
    text = entry.get(key)
    if not isinstance(text, str) or not text.strip():
        faults.append(f"{place}.{key}: expected text, got {'blank' if isinstance(text, str) else 'nothing'}")
        return ""
    return text
