"""One question-answering file a language → questions and paragraphs, aligned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from st_xling.data.reranking.align_questions import align_questions
from st_xling.data.reranking.question_answering import QuestionAnswering
from st_xling.data.squad_form import read_squad


def read_question_answering(paths: Mapping[str, str | Path]) -> QuestionAnswering:
    """The same questions from one file a language: XQuAD, MLQA, BiPaR, all in SQuAD's form.

    Files that run parallel (the same articles, paragraphs and questions in the same places, and no id that says
    otherwise) are aligned by place; others by question id, which leaves out what is not in every file. A paragraph that
    a file repeats is one paragraph. Relevant is the paragraph that the question belongs to, which must hold the answer;
    another that happens to hold the same words ("three") is not, though the paper's wording would allow it. Questions
    without an answer, or whose answer is not in their paragraph in some language, are left out and counted.

    Args:
        paths: Language → ``.json`` or ``.json.gz``.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: No file; a file that is not of this form; files that cannot be aligned; no question is left.
    """
    if not paths:
        raise ValueError("expected a file for each language: got none; pass e.g. {'en': 'xquad.en.json'}.")
    files = {language: read_squad(path) for language, path in paths.items()}
    first = next(iter(files.values()))
    aligned = align_questions(files)
    if not aligned.questions:
        raise ValueError(
            f"no question is left of {', '.join(str(path) for path in paths.values())}: "
            + "; ".join(f"{kind} {count}" for kind, count in aligned.faults.items())
        )
    units = [unit[0] for unit in aligned.passages]  # paragraphs of the first file
    named: dict[str, int] = {}
    articles = []
    for paragraph in units:
        number = first.paragraph_articles[paragraph]
        articles.append(named.setdefault(first.titles[number] or f"article {number}", len(named)))
    titles, met = list(named), [0] * len(named)
    ids = []
    for article in articles:
        ids.append(f"{titles[article]}/{met[article]}")
        met[article] += 1
    return QuestionAnswering(
        {
            code: [file.questions[row[place]].text for row, _ in aligned.questions]
            for place, (code, file) in enumerate(files.items())
        },
        {
            code: [file.paragraphs[unit[place]] for unit in aligned.passages]
            for place, (code, file) in enumerate(files.items())
        },
        [first.questions[row[0]].identity or f"question {row[0]}" for row, _ in aligned.questions],
        [passage for _, passage in aligned.questions],
        ids,
        articles,
        titles,
        aligned.faults,
    )
