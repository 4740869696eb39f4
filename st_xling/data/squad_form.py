"""Question-answering files in SQuAD's form, one language a file; of two translations also the paragraphs, as pairs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from st_xling.data.check import ADVICE, is_unicode
from st_xling.utils.json_text import RepeatedKey, parse_json
from st_xling.utils.text import read_bytes

NO_ANSWER = "question without an answer"
NOT_IN_PARAGRAPH = "answer not in its paragraph"


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        identity: Its id in the file; ``""`` if there is none.
        text: The question.
        paragraph: Number of its paragraph in the file.
        fault: Why no paragraph is known to answer it, or ``""``.
        sentence: Number of the sentence of the paragraph in which its first answer begins, where sentences are read.
    """

    identity: str
    text: str
    paragraph: int
    fault: str = ""
    sentence: int | None = None


@dataclass
class SquadFile:
    """Content of a file, in its order.

    Attributes:
        path: The file.
        titles: Titles of its articles; ``""`` where it gives none.
        paragraphs: Texts of all paragraphs.
        paragraph_articles: Number of the article of each paragraph. *Shape:* ``(paragraphs,)``
        questions: The questions.
        sentences: First character and end of each sentence, by paragraph; empty lists unless they are read.
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
        ValueError: It is not JSON, or not of this form: the message has the place, such as ``data[3].paragraphs[0]``.
    """
    content = read_json(path)
    squad_file = SquadFile(str(path))
    where = "data"
    try:
        for article_number, article in enumerate(content["data"]):
            squad_file.titles.append(str(article.get("title") or ""))
            for paragraph_number, paragraph in enumerate(article["paragraphs"]):
                where = f"data[{article_number}].paragraphs[{paragraph_number}]"
                context = _check_text(paragraph["context"])
                spans = _sentence_spans(paragraph["sentence_breaks"], context) if sentences else []
                number_in_file = len(squad_file.paragraphs)
                questions = [_read_question(entry, number_in_file, context, spans) for entry in paragraph["qas"]]
                squad_file.paragraphs.append(context)
                squad_file.paragraph_articles.append(article_number)
                squad_file.sentences.append(spans)
                squad_file.questions += questions
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}: expected questions in SQuAD's form, got in {where}: {problem}") from error
    if not squad_file.questions:
        raise ValueError(f"{path}: expected questions in SQuAD's form, got no question")
    return squad_file


def _read_question(entry: dict[str, Any], paragraph: int, context: str, spans: list[tuple[int, int]]) -> Question:
    answers = entry.get("answers") or []
    fault = ""
    sentence = None
    if not answers or entry.get("is_impossible"):
        fault = NO_ANSWER
    elif not any(answer["text"].strip() and answer["text"] in context for answer in answers):
        fault = NOT_IN_PARAGRAPH
    elif spans:
        sentence = _sentence_of(answers[0].get("answer_start"), spans)
    identity = "" if entry.get("id") is None else str(entry["id"])
    return Question(identity, _check_text(entry["question"]), paragraph, fault, sentence)


def _sentence_of(answer_start: Any, spans: list[tuple[int, int]]) -> int:
    """Return the number of the sentence in which an answer begins."""
    for number, (start, end) in enumerate(spans):
        if answer_start in range(start, end):
            return number
    raise ValueError(f"answer_start: expected a place in a sentence, got {answer_start!r}")


def _sentence_spans(breaks: Any, context: str) -> list[tuple[int, int]]:
    """Return first character and end of each sentence of a paragraph, from XQuAD-R's ``sentence_breaks``."""
    spans = [(start, end) for start, end in breaks]
    end_before = 0
    for start, end in spans:
        is_in_order = end_before <= start < end <= len(context)
        if not is_in_order or not context[start:end].strip():
            raise ValueError(f"sentence_breaks: expected spans in {len(context)} characters, got [{start}, {end}]")
        end_before = end
    return spans


def _check_text(text: str) -> str:
    """Return a text; raise ``ValueError`` if it is blank, or cannot be encoded."""
    if not text.strip():
        raise ValueError("expected text, got a blank")
    if not is_unicode(text):
        raise ValueError("expected text, got half a surrogate pair")
    return text


def read_json(path: str | Path) -> Any:
    """Return the content of a JSON file, plain or packed."""
    try:
        return parse_json(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8, got: {error}. {ADVICE['invalid UTF-8']}") from error
    except (json.JSONDecodeError, RepeatedKey, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON, got: {error}; check that it is the file.") from error
