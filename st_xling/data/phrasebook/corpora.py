"""Data of the phrasebook: one meaning in six languages; parallel text, corpora to mine, passages with questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from st_xling.data.phrasebook import chinese, english, french, german, spanish, vietnamese
from st_xling.data.phrasebook.grammar import Phrase, align
from st_xling.data.phrasebook.meanings import Meaning
from st_xling.data.phrasebook.sampler import (
    check_size,
    check_split,
    draw_meaning,
    draw_meanings,
    draw_question,
    split_of,
)

if TYPE_CHECKING:
    from datasets import Dataset

_RENDERERS = {
    "en": english.render,
    "de": german.render,
    "fr": french.render,
    "es": spanish.render,
    "vi": vietnamese.render,
    "zh": chinese.render,
}
LANGUAGES = tuple(_RENDERERS)

_OTHER_SENTENCES = (1, 3)  # of a passage, besides the one that answers its question: at least, at most


def check_language(language: str) -> None:
    """Raise a ``ValueError`` that lists the languages unless ``language`` is one of them."""
    if language not in _RENDERERS:
        near = language.lower()[:2]
        hint = f"did you mean {near!r}?" if near in _RENDERERS else "use one of these ISO 639-1 codes."
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}: got {language!r}; {hint}")


def render(meaning: Meaning, language: str) -> Phrase:
    """Say a meaning in a language.

    Args:
        meaning: What to say.
        language: One of :data:`LANGUAGES`.
    Returns:
        The sentence, its tokens, and for each token the slots of the meaning that it realises.
    Raises:
        ValueError: If the language is unknown.
    Example:
        >>> from st_xling.data.phrasebook import Clause, Meaning, NounPhrase, render
        >>> render(Meaning(Clause(NounPhrase("cat", "this", 3), "sleep", "progressive")), "zh").text
        '这三只猫正在睡觉。'
    """
    check_language(language)
    return _RENDERERS[language](meaning)


def check_pair(source: str, target: str) -> None:
    """Raise a ``ValueError`` unless source and target are two different known languages."""
    check_language(source)
    check_language(target)
    if source == target:
        raise ValueError(f"source and target must differ: got {source!r} for both; choose two languages.")


def parallel_phrases(
    source: str = "de",
    target: str = "en",
    *,
    split: str = "train",
    size: int = 1000,
    seed: int = 0,
    distinct: bool = True,
) -> Dataset:
    """Generate parallel sentences with their word alignment.

    The same split, size and seed give the same meanings, row by row, for every pair of languages; a smaller size gives
    the first rows of a larger one. No meaning belongs to two splits, whatever the seed, so no test sentence is seen in
    training, in any language.

    Args:
        source: Source language, one of :data:`LANGUAGES`.
        target: Target language.
        split: ``train``, ``dev`` or ``test``.
        size: Number of pairs.
        seed: Which sample to draw.
        distinct: Whether every sentence comes once.
    Returns:
        A dataset with columns ``source``, ``target``, ``source_language``, ``target_language``, ``alignment`` (pairs
        of token indices), ``source_tokens`` and ``target_tokens``. Tokens are what spaces separate; in Chinese, words.
    Raises:
        ValueError: If a language or split is unknown, the languages are equal, or ``size`` is below 1.
    Example:
        >>> row = parallel_phrases("zh", "en", size=10)[0]
        >>> sorted(row)[:3]
        ['alignment', 'source', 'source_language']
    """
    import pyarrow
    from datasets import Dataset, Features, Sequence, Value

    check_pair(source, target)
    meanings = draw_meanings(split, size, seed, distinct=distinct)
    sources = [render(meaning, source) for meaning in meanings]
    targets = [render(meaning, target) for meaning in meanings]
    text, words, links = Value("string"), Sequence(Value("string")), Sequence(Sequence(Value("int64")))
    columns: dict[str, tuple[Any, list[Any]]] = {
        "source": (text, [phrase.text for phrase in sources]),
        "target": (text, [phrase.text for phrase in targets]),
        "source_language": (text, [source] * size),
        "target_language": (text, [target] * size),
        "alignment": (links, [align(left, right) for left, right in zip(sources, targets)]),
        "source_tokens": (words, [phrase.tokens for phrase in sources]),
        "target_tokens": (words, [phrase.tokens for phrase in targets]),
    }
    schema = Features({name: kind for name, (kind, _) in columns.items()}).arrow_schema
    # Straight to Arrow: from_dict would look at every value again, and take as long as the rendering.
    return Dataset(pyarrow.Table.from_pydict({name: cells for name, (_, cells) in columns.items()}, schema=schema))


@dataclass(frozen=True)
class MiningSet:
    """Comparable text with a known answer.

    Args:
        source: Sentences in one language, all different.
        target: Sentences in the other, all different.
        gold: Index pairs ``(source, target)`` of the translations, by source index; no other pair is one.
    """

    source: list[str]
    target: list[str]
    gold: list[tuple[int, int]]


def mining_phrases(
    source: str = "de",
    target: str = "en",
    *,
    split: str = "test",
    size: int = 1000,
    gold: int = 100,
    seed: int = 0,
) -> MiningSet:
    """Generate two corpora of which some sentences are translations of each other.

    Args:
        source: Language of the source corpus, one of :data:`LANGUAGES`.
        target: Language of the target corpus.
        split: ``train``, ``dev`` or ``test``; its meanings are the ones :func:`parallel_phrases` draws with this seed.
        size: Sentences of each corpus.
        gold: How many of them have their translation in the other corpus.
        seed: Which sample to draw.
    Returns:
        The corpora, each shuffled, and the pairs.
    Raises:
        ValueError: If a language or split is unknown, the languages are equal, ``size`` is below 1, or ``gold`` is
            negative or above ``size``.
    Example:
        >>> corpora = mining_phrases("de", "en", size=50, gold=5)
        >>> len(corpora.source), len(corpora.target), len(corpora.gold)
        (50, 50, 5)
    """
    check_pair(source, target)
    check_size(size)
    if not 0 <= gold <= size:
        raise ValueError(
            f"gold must lie between 0 and size: got gold={gold} for size={size}; lower gold or raise size."
        )
    # The first meanings are shared; the rest are dealt to one corpus or the other.
    meanings = draw_meanings(split, 2 * size - gold, seed)
    rng = Random(f"mining:{split}:{size}:{gold}:{seed}")
    left = list(range(size))
    right = [*range(gold), *range(size, 2 * size - gold)]
    rng.shuffle(left)
    rng.shuffle(right)
    where = {meaning: index for index, meaning in enumerate(right)}
    return MiningSet(
        source=[render(meanings[meaning], source).text for meaning in left],
        target=[render(meanings[meaning], target).text for meaning in right],
        gold=[(index, where[meaning]) for index, meaning in enumerate(left) if meaning < gold],
    )


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
        >>> generated = phrase_passages(["de", "en"], size=3)
        >>> len(generated.passages["de"]), generated.ids[2]
        (3, 'train-0-2')
    """
    languages = list(dict.fromkeys(languages))
    for language in languages:
        check_language(language)
    check_split(split)
    check_size(size)
    drawn = draw_passages(split, size, seed)
    passages = {
        code: [
            ("" if code == "zh" else " ").join(render(sentence, code).text for sentence in sentences)
            for _, sentences in drawn
        ]
        for code in languages
    }
    return PhrasePassages(
        ids=[f"{split}-{seed}-{number}" for number in range(size)],
        questions={code: [render(question, code).text for question, _ in drawn] for code in languages},
        passages=passages,
    )


@lru_cache(maxsize=8)  # each language of a set needs the same
def draw_passages(split: str, size: int, seed: int) -> tuple[tuple[Meaning, tuple[Meaning, ...]], ...]:
    """Questions, and the meanings of their passages."""
    return tuple(islice(_passages(split, seed), size))


def _passages(split: str, seed: int) -> Iterator[tuple[Meaning, tuple[Meaning, ...]]]:
    rng = Random(f"phrasebook passages:{split}:{seed}")
    stated: set[str] = set()  # keys of all clauses so far
    answered: set[str] = set()  # of those that questions ask for
    meanings: set[str] = set()
    while True:
        question = draw_question(rng)
        answer = replace(question, question=False)
        if question.main.key in stated or split_of(question) != split or split_of(answer) != split:
            continue
        answered.add(question.main.key)
        meanings.add(answer.key)
        sentences: list[Meaning] = []
        count = rng.randint(*_OTHER_SENTENCES)
        while len(sentences) < count:
            other = draw_meaning(rng)
            clauses = {clause.key for clause in (other.main, other.other) if clause}
            # No other sentence of the set may state what a question asks, or repeat a sentence.
            if other.question or other.key in meanings or clauses & answered or split_of(other) != split:
                continue
            meanings.add(other.key)
            stated |= clauses
            sentences.append(other)
        stated.add(question.main.key)
        sentences.insert(rng.randint(0, count), answer)
        yield question, tuple(sentences)
