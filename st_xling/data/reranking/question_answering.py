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
    codes, files = list(paths), [read_squad(path) for path in paths.values()]
    first, *others = files
    faults: Counter[str] = Counter()
    if all(_runs_parallel(first, other) for other in others):
        rows = [(number,) * len(files) for number in range(len(first.questions))]
        paragraphs = [(number,) * len(files) for number in range(len(first.paragraphs))]
    else:
        rows = _rows_by_id(files, faults)
        paragraphs = sorted({_paragraphs(files, row) for row in rows})
    # Paragraphs that are alike in some language are one passage, shown as where it comes first.
    columns = [text_hashes(file.paragraphs)[list(own)] for file, own in zip(files, zip(*paragraphs))]
    classes = joined_classes(columns)
    shown = np.unique(classes, return_index=True)[1]
    alike = np.all([column == column[shown][classes] for column in columns], axis=0)
    passage_of = {row: number for row, number, is_same in zip(paragraphs, classes.tolist(), alike.tolist()) if is_same}
    kept: list[tuple[int, ...]] = []
    for row in rows:
        questions = [file.questions[number] for file, number in zip(files, row)]
        bad = [f"{code}: {question.fault}" for code, question in zip(codes, questions) if question.fault]
        if _paragraphs(files, row) not in passage_of:
            bad.append("question whose paragraphs are not each other's translations")
        faults.update(bad)
        if not bad:
            kept.append(row)
    counts = ", ".join(f"{count} x {kind}" for kind, count in faults.items())
    if not kept:
        raise ValueError(f"no question is left of {', '.join(map(str, paths.values()))}: {counts}")
    if faults:
        logger.warning("%d questions are left of these files, without: %s", len(kept), counts)
    queries = {code: [file.questions[row].text for row in own] for code, file, own in zip(codes, files, zip(*kept))}
    places = [paragraphs[number] for number in shown.tolist()]
    passages = {code: [file.paragraphs[row] for row in own] for code, file, own in zip(codes, files, zip(*places))}
    # The own paragraph of each question, then those of questions that read the same.
    own = [passage_of[_paragraphs(files, row)] for row in kept]
    of_class: dict[int, dict[int, None]] = {}
    same = same_text_classes(queries.values()).tolist()
    for number, passage in zip(same, own):
        of_class.setdefault(number, {})[passage] = None
    relevant = [list(dict.fromkeys([passage, *of_class[number]])) for number, passage in zip(same, own)]
    known: dict[str | int, int] = {}  # articles of one title are one
    of_passages = [first.paragraph_articles[place[0]] for place in places]
    articles = [known.setdefault(first.titles[number] or number, len(known)) for number in of_passages]
    return AlignedQuestions(queries, passages, relevant, articles=articles)


def _paragraphs(files: Sequence[SquadFile], row: Sequence[int]) -> tuple[int, ...]:
    """Return the number of a question's paragraph in each file."""
    return tuple(file.questions[number].paragraph for file, number in zip(files, row))


def _runs_parallel(one: SquadFile, other: SquadFile) -> bool:
    """Return whether articles, paragraphs and questions are in the same order, and no id contradicts that."""
    ids, other_ids = ([question.identity for question in file.questions] for file in (one, other))
    places, other_places = ([question.paragraph for question in file.questions] for file in (one, other))
    parallel = one.paragraph_articles == other.paragraph_articles and places == other_places
    return parallel and (ids == other_ids or not (set(ids) & set(other_ids)) - {""})


def _rows_by_id(files: Sequence[SquadFile], faults: Counter[str]) -> list[tuple[int, ...]]:
    """Return the numbers of the questions that every file has, and count the others."""
    places = [{question.identity: number for number, question in enumerate(file.questions)} for file in files]
    for file, known in zip(files, places):
        if len(known) < len(file.questions) or "" in known:
            raise ValueError(f"{file.path}: expected files that run parallel, or an id of its own for every question")
    shared = [identity for identity in places[0] if all(identity in known for known in places[1:])]
    if not shared:
        raise ValueError(f"expected files that run parallel or share question ids: {files[0].path} shares none.")
    if lacking := sum(len(known) - len(shared) for known in places):
        faults["question that is not in every file"] = lacking
    return [tuple(known[identity] for known in places) for identity in shared]


def phrase_questions(book: DataSpec, languages: Iterable[str], *, split: str) -> AlignedQuestions:
    """Load the same questions and passages of the phrasebook in several languages, each question about one passage.

    Args:
        book: Spec of the phrasebook.
        languages: Codes.
        split: Split of a spec that names none.
    """
    found = phrase_passages(languages, **phrase_sample(book, split=split, passages=True))
    rows = range(len(found.ids))
    articles = [row // _PHRASES_PER_ARTICLE for row in rows]
    return AlignedQuestions(found.questions, found.passages, [[row] for row in rows], articles=articles)
