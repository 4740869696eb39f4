"""Which question, and which paragraph, of one file is which of another's."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from st_xling.data.leak_key import text_hashes
from st_xling.data.squad_form import SquadFile

logger = logging.getLogger(__name__)

Row = tuple[int, ...]
"""One number for each file."""


@dataclass(frozen=True)
class AlignedQuestions:
    """What the files have in common.

    Attributes:
        passages: The paragraph of each file that says the same; no paragraph, and no text, stands in two rows.
        questions: The question of each file that says the same, and the row of ``passages`` that answers it.
        faults: How many were left out, and why, by language where it is one file's matter.
    """

    passages: list[Row]
    questions: list[tuple[Row, int]]
    faults: Counter[str]


def align_questions(files: Mapping[str, SquadFile]) -> AlignedQuestions:
    """Align by place where the files run parallel, else by question id.

    Where questions disagree on which paragraphs belong together, the most questions win, and the others are left out.

    Args:
        files: Language → what its file holds.
    Raises:
        ValueError: The files neither run parallel nor share ids; an id comes twice where ids are needed.
    """
    faults: Counter[str] = Counter()
    if _run_parallel(files):
        questions = [(number,) * len(files) for number in range(len(_first(files).questions))]
        paragraphs = [(number,) * len(files) for number in range(len(_first(files).paragraphs))]
    else:
        questions, paragraphs = _by_id(files, faults), []
    # A paragraph that a file repeats goes by the place where it comes first.
    firsts = [_first_places(file.paragraphs) for file in files.values()]
    asked = [
        tuple(first[file.questions[number].paragraph] for first, file, number in zip(firsts, files.values(), question))
        for question in questions
    ]
    votes = Counter({tuple(first[number] for first, number in zip(firsts, row)): 0 for row in paragraphs})
    votes.update(asked)
    passages = _one_to_one(votes, len(files))
    places = {row: place for place, row in enumerate(passages)}
    kept = []
    for question, row in zip(questions, asked):
        bad = [
            f"{language}: {file.questions[number].fault}"
            for (language, file), number in zip(files.items(), question)
            if file.questions[number].fault
        ]
        if row not in places:
            bad.append("question whose paragraphs are not each other's translations")
        faults.update(bad)
        if not bad:
            kept.append((question, places[row]))
    if faults:
        told = ", ".join(f"{count} x {kind}" for kind, count in faults.items())
        logger.warning("%d questions kept of these files, left out: %s", len(kept), told)
    return AlignedQuestions(passages, kept, faults)


def _first(files: Mapping[str, SquadFile]) -> SquadFile:
    return next(iter(files.values()))


def _run_parallel(files: Mapping[str, SquadFile]) -> bool:
    first, *others = files.values()
    ids = [question.identity for question in first.questions]
    for other in others:
        theirs = [question.identity for question in other.questions]
        if first.shape() != other.shape() or (theirs != ids and (set(ids) & set(theirs)) - {""}):
            return False
    return True


def _by_id(files: Mapping[str, SquadFile], faults: Counter[str]) -> list[Row]:
    places: list[dict[str, int]] = []
    for file in files.values():
        known: dict[str, int] = {}
        for number, question in enumerate(file.questions):
            if not question.identity or question.identity in known:
                what = "comes twice" if question.identity else "is missing"
                raise ValueError(
                    f"{file.path}: the files do not run parallel, so each question needs an id of its own: the id "
                    f"{question.identity!r} of question {number} {what}; give every question one."
                )
            known[question.identity] = number
        places.append(known)
    shared = [identity for identity in places[0] if all(identity in known for known in places[1:])]
    if not shared:
        got = ", ".join(
            f"{len(file.titles)} articles, {len(file.paragraphs)} paragraphs and {len(file.questions)} questions in "
            f"{language}"
            for language, file in files.items()
        )
        raise ValueError(f"expected files that run parallel or share question ids: got {got}, and no shared id.")
    for language, known in zip(files, places):
        if len(known) > len(shared):
            faults[f"{language}: question that is not in every file"] = len(known) - len(shared)
    return [tuple(known[identity] for known in places) for identity in shared]


def _first_places(texts: list[str]) -> list[int]:
    seen: dict[int, int] = {}
    return [seen.setdefault(key, place) for place, key in enumerate(text_hashes(texts).tolist())]


def _one_to_one(votes: Counter[Row], width: int) -> list[Row]:
    """The rows of most votes in which no paragraph comes twice, in the order of the first file."""
    taken: list[set[int]] = [set() for _ in range(width)]
    chosen = []
    for row, _ in votes.most_common():  # equal votes: the first stays first
        if not any(number in column for number, column in zip(row, taken)):
            chosen.append(row)
            for number, column in zip(row, taken):
                column.add(number)
    return sorted(chosen)
