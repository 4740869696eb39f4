"""Question answering in several languages as re-ranking: files in SQuAD's form, and the phrasebook's questions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.data.phrasebook import phrase_passages
from st_xling.data.reranking.pairs import AlignedPairs, draw_apart, pick, same_text_classes
from st_xling.data.reranking.pools import CandidatePools, candidate_pools
from st_xling.data.spec import DataSpec, phrase_sample
from st_xling.data.squad_form import SquadFile, read_squad
from st_xling.data.text_columns import text_hashes

logger = logging.getLogger(__name__)

_PHRASES_PER_ARTICLE = 5  # as many passages as an article of XQuAD has

_Row = tuple[int, ...]  # one number for each file


@dataclass(frozen=True)
class QuestionAnswering:
    """Questions and the paragraphs of articles, each in every language; row ``i`` has the same meaning in each.

    As re-ranking, every paragraph is a candidate for every question, which is relevant to one at least: pairs to train
    on, and pools to be tested on, cut by article.

    Attributes:
        questions: Language → questions. *Shape:* ``(questions,)`` each
        passages: Language → paragraphs, no two alike. *Shape:* ``(passages,)`` each
        question_ids: *Shape:* ``(questions,)``
        question_passages: Number of the paragraph that holds the answer. *Shape:* ``(questions,)``
        passage_ids: Article and number in it, ``Super_Bowl_50/0``. *Shape:* ``(passages,)``
        passage_articles: Number of each paragraph's article. *Shape:* ``(passages,)``
        faults: Reasons for skipped rows, with counts, as ``"zh: answer not in its paragraph"``.
    """

    questions: Mapping[str, Sequence[str]]
    passages: Mapping[str, Sequence[str]]
    question_ids: Sequence[str]
    question_passages: Sequence[int]
    passage_ids: Sequence[str]
    passage_articles: Sequence[int]
    faults: Mapping[str, int] = field(default_factory=dict)

    def split(self, shares: Mapping[str, float], *, seed: int = 0) -> dict[str, QuestionAnswering]:
        """Divide by article, so that no paragraph, nor its neighbor, is in two parts.

        Args:
            shares: Name → share of the articles; they sum to 1. Every part gets an article at least. The last parts are
                dealt first: a test share is the same articles, but for rounding, however the rest is cut.
            seed: Of the shuffle.
        Raises:
            ValueError: Shares that do not sum to 1; fewer articles than parts.
        """
        articles = np.unique(self.passage_articles)
        parts = deal(len(articles), shares, seed)
        return {name: self.only_articles(articles[numbers]) for name, numbers in parts.items()}

    def only_questions(self, rows: Iterable[int]) -> QuestionAnswering:
        """Return some of the questions, by number; every paragraph stays, as a candidate."""
        chosen = list(rows)
        return replace(
            self,
            questions=pick(self.questions, chosen),
            question_ids=[self.question_ids[row] for row in chosen],
            question_passages=[self.question_passages[row] for row in chosen],
        )

    def only_articles(self, numbers: np.ndarray) -> QuestionAnswering:
        """Return the questions and paragraphs of some articles; raise ``ValueError`` if there is no question."""
        shown = np.flatnonzero(np.isin(self.passage_articles, numbers)).tolist()
        places = {row: place for place, row in enumerate(shown)}
        questions = [row for row, passage in enumerate(self.question_passages) if passage in places]
        if not questions:
            raise ValueError(f"expected articles with questions: got {len(numbers)} articles without any; take more.")
        return replace(
            self.only_questions(questions),
            passages=pick(self.passages, shown),
            question_passages=[places[self.question_passages[row]] for row in questions],
            passage_ids=[self.passage_ids[row] for row in shown],
            passage_articles=[self.passage_articles[row] for row in shown],
        )

    def relevant(self) -> list[list[int]]:
        """Return the relevant paragraphs of each question: its own, and those of questions that read the same."""
        classes = same_text_classes(list(self.questions.values())).tolist()
        of_class: dict[int, set[int]] = {}
        for number, passage in zip(classes, self.question_passages):
            of_class.setdefault(number, set()).add(passage)
        return [sorted(of_class[number]) for number in classes]

    def aligned_pairs(self, *, negatives_per_positive: int = 1, seed: int = 0) -> AlignedPairs:
        """Make pairs to train on: each question with its own paragraph, label 1, then with drawn ones, label 0.

        Args:
            negatives_per_positive: Paragraphs of this set that do not answer the question; also those that no question
                is about.
            seed: Seed of the draw.
        Raises:
            ValueError: If there are too few other paragraphs.
        """
        # Forbidden are all relevant paragraphs, also those of questions that read the same.
        questions, own = np.arange(len(self.question_ids)), np.asarray(self.question_passages)
        forbidden = [(query, passage) for query, passages in enumerate(self.relevant()) for passage in passages]
        drawn = draw_apart(
            questions,
            np.array(forbidden, np.int64).reshape(-1, 2),
            len(self.passage_ids),
            each=negatives_per_positive,
            seed=seed,
        )
        queries = [*questions.tolist(), *np.repeat(questions, negatives_per_positive).tolist()]
        passages = [*own.tolist(), *drawn.ravel().tolist()]
        labels = [1] * len(questions) + [0] * drawn.size
        return AlignedPairs(pick(self.questions, queries), pick(self.passages, passages), labels)

    def pools(self, **options: Any) -> CandidatePools:
        """Make pools to test on: all paragraphs of this set for each question.

        Args:
            **options: Languages, ``max_candidates``, ``without_relevant`` and ``seed`` of
                :func:`~st_xling.data.reranking.pools.candidate_pools`.
        """
        return candidate_pools(
            self.questions,
            self.passages,
            self.relevant(),
            query_ids=self.question_ids,
            passage_ids=self.passage_ids,
            **options,
        )


def read_question_answering(paths: Mapping[str, str | Path]) -> QuestionAnswering:
    """Read the same questions from one file a language: XQuAD, MLQA, BiPaR, all in SQuAD's form.

    Files that run parallel (the same articles, paragraphs and questions in the same order, and no id that contradicts
    this) are aligned by place; others by question id, which leaves out what is not in every file. A paragraph that
    a file repeats is one paragraph. Relevant is the paragraph that the question belongs to, which must hold the answer;
    another that happens to hold the same words ("three") is not, though the paper's wording would allow it. Questions
    without an answer, or whose answer is not in their paragraph in some language, are skipped and counted.

    Args:
        paths: Language → ``.json``, plain or packed.
    Raises:
        FileNotFoundError: A file is not there.
        ValueError: No file; a file that is not of this form; files that cannot be aligned; no question is left.
    """
    files = {language: read_squad(path) for language, path in paths.items()}
    passages, questions, faults = _aligned(files)
    if not questions:
        raise ValueError(
            f"no question is left of {', '.join(str(path) for path in paths.values())}: "
            + "; ".join(f"{kind} {count}" for kind, count in faults.items())
        )
    # Articles and names as in the first file; a paragraph is named by its article and its number there.
    first = next(iter(files.values()))
    titles: dict[str, int] = {}
    counts: Counter[str] = Counter()
    articles, ids = [], []
    for row in passages:
        number = first.paragraph_articles[row[0]]
        title = first.titles[number] or f"article {number}"
        articles.append(titles.setdefault(title, len(titles)))
        ids.append(f"{title}/{counts[title]}")
        counts[title] += 1
    return QuestionAnswering(
        {
            code: [file.questions[row[place]].text for row, _ in questions]
            for place, (code, file) in enumerate(files.items())
        },
        {code: [file.paragraphs[row[place]] for row in passages] for place, (code, file) in enumerate(files.items())},
        [first.questions[row[0]].identity or f"question {row[0]}" for row, _ in questions],
        [passage for _, passage in questions],
        ids,
        articles,
        faults,
    )


def _aligned(files: Mapping[str, SquadFile]) -> tuple[list[_Row], list[tuple[_Row, int]], Counter[str]]:
    """Align paragraphs, and questions with the place of the paragraphs that answer them, and count faults.

    Questions are aligned by place where the files run parallel, else by id. Where they disagree on which paragraphs
    belong together, the most questions win, and the others are skipped and counted.
    """
    first, *others = files.values()
    faults: Counter[str] = Counter()
    if all(_runs_parallel(first, other) for other in others):
        questions = [(number,) * len(files) for number in range(len(first.questions))]
        paragraphs = [(number,) * len(files) for number in range(len(first.paragraphs))]
    else:
        questions, paragraphs = _by_id(files, faults), []
    # A paragraph that a file repeats goes by the place where it comes first.
    first_places = []
    for file in files.values():
        seen: dict[int, int] = {}
        hashes = text_hashes(file.paragraphs).tolist()
        first_places.append([seen.setdefault(key, place) for place, key in enumerate(hashes)])
    answers = [
        tuple(own[file.questions[number].paragraph] for own, file, number in zip(first_places, files.values(), row))
        for row in questions
    ]
    # Rows of paragraphs that might belong together, each with the number of questions in them.
    votes = Counter({tuple(own[number] for own, number in zip(first_places, row)): 0 for row in paragraphs})
    votes.update(answers)
    # The rows of most votes in which no paragraph comes twice; of equal votes the first stays first.
    taken: list[set[int]] = [set() for _ in files]
    passages = []
    for row, _ in votes.most_common():
        if not any(number in column for number, column in zip(row, taken)):
            passages.append(row)
            for number, column in zip(row, taken):
                column.add(number)
    passages.sort()
    places = {row: place for place, row in enumerate(passages)}
    aligned = []
    for question, answer in zip(questions, answers):
        bad = [
            f"{language}: {file.questions[number].fault}"
            for (language, file), number in zip(files.items(), question)
            if file.questions[number].fault
        ]
        if answer not in places:
            bad.append("question whose paragraphs are not each other's translations")
        faults.update(bad)
        if not bad:
            aligned.append((question, places[answer]))
    if faults:
        counts = ", ".join(f"{count} x {kind}" for kind, count in faults.items())
        logger.warning("%d questions are left of these files, without: %s", len(aligned), counts)
    return passages, aligned, faults


def _runs_parallel(one: SquadFile, other: SquadFile) -> bool:
    """Return whether articles, paragraphs and questions are in the same order, and no id contradicts that."""
    ids, other_ids = ([question.identity for question in file.questions] for file in (one, other))
    places, other_places = ([question.paragraph for question in file.questions] for file in (one, other))
    parallel = one.paragraph_articles == other.paragraph_articles and places == other_places
    return parallel and (ids == other_ids or not (set(ids) & set(other_ids)) - {""})


def _by_id(files: Mapping[str, SquadFile], faults: Counter[str]) -> list[_Row]:
    """Return the numbers of the questions that every file has, and count the others."""
    places = []
    for file in files.values():
        known = {question.identity: number for number, question in enumerate(file.questions)}
        if len(known) < len(file.questions) or "" in known:
            raise ValueError(
                f"{file.path}: the files do not run parallel, so each question needs an id of its own: got "
                f"{len(known)} ids for {len(file.questions)} questions; give every question one."
            )
        places.append(known)
    shared = [identity for identity in places[0] if all(identity in known for known in places[1:])]
    if not shared:
        got = ", ".join(f"{len(known)} ids in {language}" for language, known in zip(files, places))
        raise ValueError(f"expected files that run parallel or share question ids: got {got}, and no shared id.")
    for language, known in zip(files, places):
        if len(known) > len(shared):
            faults[f"{language}: question that is not in every file"] = len(known) - len(shared)
    return [tuple(known[identity] for known in places) for identity in shared]


def deal(total: int, shares: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
    """Divide the numbers below ``total``, shuffled, by shares that sum to 1; each part gets one at least.

    Largest remainders round up. The last part is dealt first, so that it stays what it is, but for rounding, however
    the rest is cut.

    Raises:
        ValueError: If there are fewer numbers than parts.
    """
    names = list(shares)[::-1]
    exact = np.array([total * shares[name] for name in names])
    if total < len(names):
        raise ValueError(f"cannot cut {total} into {len(names)} parts of at least one; ask for fewer parts.")
    counts = np.maximum(1, (exact + 1e-9).astype(int))
    while counts.sum() != total:
        step = 1 if counts.sum() < total else -1
        gaps = step * (exact - counts)
        counts[int(np.argmax(np.where((step > 0) | (counts > 1), gaps, -np.inf)))] += step
    order = np.random.default_rng(seed).permutation(total)
    parts = dict(zip(names, np.split(order, np.cumsum(counts)[:-1])))
    return {name: parts[name] for name in shares}


def phrase_questions(book: DataSpec, languages: Iterable[str], *, split: str) -> QuestionAnswering:
    """Load the same questions and passages of the phrasebook in several languages, each question about one passage.

    Args:
        book: Spec of the phrasebook.
        languages: Codes.
        split: Split of a spec that names none.
    """
    generated = phrase_passages(languages, **phrase_sample(book, split=split, passages=True))
    rows = range(len(generated.ids))
    return QuestionAnswering(
        questions=generated.questions,
        passages=generated.passages,
        question_ids=generated.ids,
        question_passages=list(rows),
        passage_ids=generated.ids,
        passage_articles=[row // _PHRASES_PER_ARTICLE for row in rows],
    )
