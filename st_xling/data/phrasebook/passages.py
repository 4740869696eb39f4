"""Short passages with a question to each, alike in every language, for retrieval and re-ranking."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from random import Random

from st_xling.data.phrasebook.meanings import Clause, Meaning
from st_xling.data.phrasebook.render import check_language, render
from st_xling.data.phrasebook.sampler import draw_meaning, draw_question
from st_xling.data.phrasebook.splits import check_size, check_split, split_of

TRAINING_PASSAGES = 2000
"""Passages of the training split, where nothing else is said."""

HELD_OUT_PASSAGES = 300
"""The same, of the other splits."""

OTHER_SENTENCES = (1, 3)
"""Of a passage, besides the one that answers its question: at least, at most."""


@dataclass(frozen=True)
class PhrasePassages:
    """Passages of a few sentences, and for each a question that one of its sentences answers.

    Attributes:
        ids: Of passage and question alike, ``test-0-17``: split, seed and number; the same meanings in every language.
        questions: Language → questions. *Shape:* ``(passages,)`` each
        passages: Language → passages. *Shape:* ``(passages,)`` each
    """

    ids: list[str]
    questions: dict[str, list[str]]
    passages: dict[str, list[str]]


def phrase_passages(
    languages: Iterable[str], *, split: str = "train", size: int = 1000, seed: int = 0
) -> PhrasePassages:
    """Generate passages and their questions.

    The question of passage ``i`` is answered by a sentence of passage ``i`` and of no other, in any language: what is
    asked is stated once in the whole set, also inside longer sentences, and no two sentences mean the same. Questions,
    their answers and all other sentences are meanings of the split, so that none of them is in another split, nor in
    the other splits of :func:`~st_xling.data.phrasebook.parallel_phrases`. Split, size and seed give the same meanings
    for every choice of languages; a smaller size gives the first passages of a larger one.

    Args:
        languages: Any of :data:`LANGUAGES`.
        split: ``train``, ``dev`` or ``test``.
        size: Number of passages, and of questions.
        seed: Which sample to draw.
    Raises:
        ValueError: If a language or split is unknown, or ``size`` is below 1.
    Example:
        >>> found = phrase_passages(["de", "en"], size=3)
        >>> len(found.passages["de"]), found.ids[2]
        (3, 'train-0-2')
    """
    languages = list(dict.fromkeys(languages))
    for language in languages:
        check_language(language)
    check_split(split)
    check_size(size)
    drawn = _draw(split, size, seed)
    return PhrasePassages(
        ids=[f"{split}-{seed}-{number}" for number in range(size)],
        questions={code: [render(asked, code).text for asked, _ in drawn] for code in languages},
        passages={code: [_joined(sentences, code) for _, sentences in drawn] for code in languages},
    )


@lru_cache(maxsize=8)  # each language of a set asks for the same
def _draw(split: str, size: int, seed: int) -> tuple[tuple[Meaning, tuple[Meaning, ...]], ...]:
    return tuple(islice(_stream(split, seed), size))


def _stream(split: str, seed: int) -> Iterator[tuple[Meaning, tuple[Meaning, ...]]]:
    """Questions with the sentences of their passages, without an end."""
    rng = Random(f"phrasebook passages:{split}:{seed}")
    said: set[str] = set()  # keys of all clauses so far
    answered: set[str] = set()  # of those that questions ask for
    meanings: set[str] = set()
    while True:
        asked = draw_question(rng)
        answer = replace(asked, question=False)
        if asked.main.key in said or split_of(asked) != split or split_of(answer) != split:
            continue
        answered.add(asked.main.key)
        meanings.add(answer.key)
        others: list[Meaning] = []
        wanted = rng.randint(*OTHER_SENTENCES)
        while len(others) < wanted:
            other = draw_meaning(rng)
            clauses = {clause.key for clause in _clauses(other)}
            if other.question or other.key in meanings or clauses & answered or split_of(other) != split:
                continue
            meanings.add(other.key)
            said |= clauses
            others.append(other)
        said.add(asked.main.key)
        others.insert(rng.randint(0, wanted), answer)
        yield asked, tuple(others)


def _clauses(meaning: Meaning) -> list[Clause]:
    return [meaning.main, *([meaning.other] if meaning.other else [])]


def _joined(sentences: Iterable[Meaning], language: str) -> str:
    return ("" if language == "zh" else " ").join(render(sentence, language).text for sentence in sentences)
