"""Question-answering files in SQuAD's form, one language a file; of two translations also the paragraphs, as pairs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    """Read a file like XQuAD's, MLQA's or BiPaR's: ``data`` → ``paragraphs`` → ``context`` and ``qas``.

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
            context = _text(paragraph, "context", where, faults)
            read.paragraphs.append(context)
            read.paragraph_articles.append(len(read.titles) - 1)
            spans = _sentences(paragraph, where, context, faults) if sentences else []
            read.sentences.append(spans)
            for spot, entry in _items(paragraph, "qas", where, faults):
                text, answers = _text(entry, "question", spot, faults), list(_items(entry, "answers", spot, faults))
                texts = [answer.get("text") for _, answer in answers]
                fault, sentence = "", None
                if not texts or entry.get("is_impossible"):
                    fault = NO_ANSWER
                elif not any(isinstance(each, str) and each.strip() and each in context for each in texts):
                    fault = NOT_IN_PARAGRAPH
                elif spans:
                    start = answers[0][1].get("answer_start")
                    sentence = next((number for number, (a, b) in enumerate(spans) if start in range(a, b)), None)
                    if sentence is None:
                        faults.append(f"{spot}.answers[0].answer_start: expected a place in a sentence, got {start!r}")
                identity = "" if entry.get("id") is None else str(entry["id"])
                read.questions.append(Question(identity, text, len(read.paragraphs) - 1, fault, sentence))
    if not faults and not read.questions:
        faults.append("no question")
    if faults:
        shown = "".join(f"\n  {fault}" for fault in faults[:SHOWN])
        more = f"\n  ... and {len(faults) - SHOWN} more" if len(faults) > SHOWN else ""
        raise ValueError(f"{path}: expected questions in SQuAD's form, got {len(faults)} faults:{shown}{more}")
    return read


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file, plain or packed."""
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, got: {error}. {ADVICE['invalid UTF-8']}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON, got: {error}; check that it is the file.") from error


def _sentences(paragraph: dict[str, Any], place: str, context: str, faults: list[str]) -> list[tuple[int, int]]:
    """Return first character and end of each sentence of a paragraph, from XQuAD-R's ``sentence_breaks``."""
    last, found = 0, []
    try:
        for start, end in paragraph["sentence_breaks"]:
            if not last <= start < end <= len(context) or not context[start:end].strip():
                raise ValueError(f"[{start}, {end}]")
            last = end
            found.append((start, end))
    except (KeyError, TypeError, ValueError) as error:
        faults.append(
            f"{place}.sentence_breaks: expected [start, end] of sentences in order, in {len(context)} characters, "
            f"got {error}"
        )
        return []
    return found


def _items(parent: Any, key: str, place: str, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and content of the objects in a list; its absence is a fault, but for answers."""
    items = parent.get(key) if isinstance(parent, dict) else None
    if items is None and key == "answers":
        return
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
