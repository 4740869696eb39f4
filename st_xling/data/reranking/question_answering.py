"""Question answering in several languages as re-ranking: files in SQuAD's form, and the phrasebook's questions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from st_xling.data.phrasebook import phrase_passages
from st_xling.data.reranking.pairs import joined_classes, same_text_classes
from st_xling.data.reranking.pools import AlignedQuestions
from st_xling.data.spec import DataSpec, phrase_sample
from st_xling.data.squad_form import SquadFile, read_squad
from st_xling.data.text_cells import text_hashes

logger = logging.getLogger(__name__)

_PHRASES_PER_ARTICLE = 5  # as many passages as an article of XQuAD has


def read_question_answering(paths: Mapping[str, str | Path]) -> AlignedQuestions:
    """Read the same questions from one file a language: XQuAD, MLQA, BiPaR, all in SQuAD's form.

    Files that run parallel (the same articles, paragraphs and questions in the same order, and no id that contradicts
    this) are aligned by place; others by question id, which ignores what is not in every file. A paragraph that a file
    repeats is one paragraph. Relevant are the paragraph that the question belongs to, which must contain the answer,
    and those of questions that read the same; another that happens to contain the same words ("three") is not, though
    the paper's wording would allow it. Questions without an answer, or whose answer is not in their paragraph in some
    language, are skipped, and a warning counts them.

    Args:
        paths: Language → ``.json``, plain or packed.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file that is not of this form; files that cannot be aligned; no question is left.
    """
    files = {code: read_squad(path) for code, path in paths.items()}
    first, *others = files.values()
    faults: Counter[str] = Counter()
    if all(_runs_parallel(first, other) for other in others):
        rows = [(number,) * len(files) for number in range(len(first.questions))]
        paragraphs = [(number,) * len(files) for number in range(len(first.paragraphs))]
    else:
        rows = _rows_by_id(list(files.values()), faults)
        paragraphs = sorted({_paragraph_numbers(files.values(), row) for row in rows})
    shown_paragraphs, passage_numbers = _distinct_passages(files, paragraphs)
    kept = _faultless_rows(files, rows, passage_numbers, faults)
    counts = ", ".join(f"{count} x {kind}" for kind, count in faults.items())
    if not kept:
        raise ValueError(f"no question is left of {', '.join(map(str, paths.values()))}: {counts}")
    if faults:
        logger.warning("%d questions are left of these files, without: %s", len(kept), counts)

    queries = {}
    passages = {}
    for index, (code, file) in enumerate(files.items()):
        queries[code] = [file.questions[row[index]].text for row in kept]
        passages[code] = [file.paragraphs[paragraph[index]] for paragraph in shown_paragraphs]

    # The question's own paragraph first, then those of questions that read the same.
    own_passages = [passage_numbers[_paragraph_numbers(files.values(), row)] for row in kept]
    question_classes = same_text_classes(queries.values()).tolist()
    passages_of_class: dict[int, dict[int, None]] = {}
    for question_class, passage in zip(question_classes, own_passages):
        passages_of_class.setdefault(question_class, {})[passage] = None
    relevant = []
    for question_class, passage in zip(question_classes, own_passages):
        relevant.append(list(dict.fromkeys([passage, *passages_of_class[question_class]])))

    article_numbers: dict[str | int, int] = {}  # articles of one title are one
    articles = []
    for paragraph in shown_paragraphs:
        article = first.paragraph_articles[paragraph[0]]
        articles.append(article_numbers.setdefault(first.titles[article] or article, len(article_numbers)))
    return AlignedQuestions(queries, passages, relevant, articles=articles)


def _distinct_passages(
    files: Mapping[str, SquadFile], paragraphs: Sequence[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], int]]:
    """Join paragraphs that are alike in some language to one passage, shown by the first of them.

    Args:
        files: Language → file.
        paragraphs: Numbers of aligned paragraphs, one in each file.

    Returns:
        The paragraphs that are shown, and passage numbers; paragraphs that are alike in some languages but not in all
        have no number, since they are not each other's translations.
    """
    hashes = []
    for index, file in enumerate(files.values()):
        numbers = [paragraph[index] for paragraph in paragraphs]
        hashes.append(text_hashes(file.paragraphs)[numbers])
    classes = joined_classes(hashes)
    first_rows = np.unique(classes, return_index=True)[1]
    is_same = np.all([column == column[first_rows][classes] for column in hashes], axis=0)
    passage_numbers = {}
    for paragraph, number, same in zip(paragraphs, classes.tolist(), is_same.tolist()):
        if same:
            passage_numbers[paragraph] = number
    return [paragraphs[row] for row in first_rows.tolist()], passage_numbers


def _faultless_rows(
    files: Mapping[str, SquadFile],
    rows: Sequence[tuple[int, ...]],
    passage_numbers: Mapping[tuple[int, ...], int],
    faults: Counter[str],
) -> list[tuple[int, ...]]:
    """Return the questions without a fault in any language, and count the faults of the others."""
    kept = []
    for row in rows:
        row_faults = []
        for (code, file), number in zip(files.items(), row):
            if fault := file.questions[number].fault:
                row_faults.append(f"{code}: {fault}")
        if _paragraph_numbers(files.values(), row) not in passage_numbers:
            row_faults.append("question whose paragraphs are not each other's translations")
        faults.update(row_faults)
        if not row_faults:
            kept.append(row)
    return kept


def _paragraph_numbers(files: Iterable[SquadFile], row: Sequence[int]) -> tuple[int, ...]:
    """Return the number of a question's paragraph in each file."""
    return tuple(file.questions[number].paragraph for file, number in zip(files, row))


def _runs_parallel(first: SquadFile, other: SquadFile) -> bool:
    """Return whether articles, paragraphs and questions are in the same order, and no id contradicts that."""
    paragraphs = [question.paragraph for question in first.questions]
    other_paragraphs = [question.paragraph for question in other.questions]
    if first.paragraph_articles != other.paragraph_articles or paragraphs != other_paragraphs:
        return False
    ids = [question.identity for question in first.questions]
    other_ids = [question.identity for question in other.questions]
    shared = set(ids) & set(other_ids) - {""}
    return ids == other_ids or not shared


def _rows_by_id(files: Sequence[SquadFile], faults: Counter[str]) -> list[tuple[int, ...]]:
    """Return the numbers of the questions that every file has, and count the others."""
    rows_by_id = []
    for file in files:
        rows_by_id.append({question.identity: number for number, question in enumerate(file.questions)})
    for file, rows in zip(files, rows_by_id):
        if len(rows) < len(file.questions) or "" in rows:
            raise ValueError(f"{file.path}: expected files that run parallel, or an id of its own for every question")
    first, *others = rows_by_id
    shared = [identity for identity in first if all(identity in rows for rows in others)]
    if not shared:
        raise ValueError(f"expected files that run parallel or share question ids: {files[0].path} shares none.")
    if missing := sum(len(rows) - len(shared) for rows in rows_by_id):
        faults["question that is not in every file"] = missing
    aligned = []
    for identity in shared:
        aligned.append(tuple(rows[identity] for rows in rows_by_id))
    return aligned


def phrase_questions(book: DataSpec, languages: Iterable[str], *, split: str) -> AlignedQuestions:
    """Load the same questions and passages of the phrasebook in several languages, each question about one passage.

    Args:
        book: Spec of the phrasebook.
        languages: Codes.
        split: Split of a spec that names none.
    """
    phrases = phrase_passages(languages, **phrase_sample(book, split=split, passages=True))
    rows = range(len(phrases.ids))
    relevant = [[row] for row in rows]
    articles = [row // _PHRASES_PER_ARTICLE for row in rows]
    return AlignedQuestions(phrases.questions, phrases.passages, relevant, articles=articles)
