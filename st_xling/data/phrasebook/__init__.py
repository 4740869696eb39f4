"""The phrasebook: everyday sentences in six languages with word alignments and fixed splits, shipped as package data.

The text is read from ``phrases.parquet``. ``README.md`` next to it is its data card. Nothing needs to be downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = [
    "LANGUAGES",
    "SPLITS",
    "MiningSet",
    "PhrasePassages",
    "mining_phrases",
    "parallel_phrases",
    "phrase_passages",
    "phrase_sentences",
]

LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")
SPLITS = ("train", "dev", "test")


def check_language(language: str) -> str:
    """Return ``language``; raise a ``ValueError`` that lists the languages unless it is one of them."""
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}: got {language!r}.")
    return language


@cache
def _column(name: str) -> list[str]:
    """Read a column of the Parquet file, in the order of its rows."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    # Bytes, as Arrow's threads would read a Python file under the lock of the interpreter: where the process ends
    # right after, one of them is now and then still waiting for it, and aborts the process.
    file = pyarrow.BufferReader((files(__package__) / "phrases.parquet").read_bytes())
    return ParquetFile(file).read(columns=[name])[name].to_pylist()


@cache
def _rows_of_split(kind: str, split: str) -> tuple[int, ...]:
    """Find the rows of one kind (``sentence``, ``question`` or ``passage``) and split."""
    rows = enumerate(zip(_column("kind"), _column("split")))
    return tuple(row for row, kind_and_split in rows if kind_and_split == (kind, split))


def _draw(kind: str, split: str, size: int, seed: int) -> list[int]:
    """Draw rows of one kind and split; a smaller size gives the first rows of a larger one."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}: got {split!r}")
    rows = list(_rows_of_split(kind, split))
    if size > len(rows):
        raise ValueError(f"the {split} split has {len(rows)} different {kind}s: got size={size}; lower size.")
    if seed != 0:
        # Seed 0 is the order of the file. Other seeds begin with its second half, so that up to half of the rows can
        # be drawn with seed 0 and with another seed without an overlap.
        rng = Random(f"phrasebook:{split}:{seed}")
        middle = len(rows) // 2
        second_half = rows[middle:]
        first_half = rows[:middle]
        rng.shuffle(second_half)
        rng.shuffle(first_half)
        rows = second_half + first_half
    return rows[:size]


def _texts(language: str, rows: Iterable[int]) -> list[str]:
    """Return the texts of rows; they are stored as tokens with spaces between them."""
    cells = _column(language)
    texts = [cells[row] for row in rows]
    if language == "zh":
        texts = [text.replace(" ", "") for text in texts]
    return texts


def _align(source: str, target: str) -> list[list[int]]:
    """Pair the tokens of two sentences that share a slot.

    Args:
        source: Slots of the source sentence: for every token the letters of what it expresses, ``-`` for nothing.
        target: Slots of the target sentence.

    Returns:
        Pairs ``[source index, target index]``, sorted.
    """
    targets_of_slot: dict[str, list[int]] = {}
    for j, slots in enumerate(target.split()):
        for slot in slots.strip("-"):
            targets_of_slot.setdefault(slot, []).append(j)
    pairs: set[tuple[int, int]] = set()
    for i, slots in enumerate(source.split()):
        for slot in slots:
            pairs.update((i, j) for j in targets_of_slot.get(slot, ()))
    return [[i, j] for i, j in sorted(pairs)]


def phrase_sentences(language: str, *, split: str = "train", size: int = 1000, seed: int = 0) -> list[str]:
    """Load sentences of one language.

    Args:
        language: One of :data:`LANGUAGES`.
        split: ``train``, ``dev`` or ``test``.
        size: Number of sentences.
        seed: Which sample to draw, see :func:`parallel_phrases`.

    Raises:
        ValueError: If the language or split is unknown, or ``size`` is above the size of the split.

    Example:
        >>> phrase_sentences("en", size=1)
        ['She knows that we can eat the oranges tomorrow.']
    """
    return _texts(check_language(language), _draw("sentence", split, size, seed))


def parallel_phrases(
    source: str = "de", target: str = "en", *, split: str = "train", size: int = 1000, seed: int = 0
) -> Dataset:
    """Load parallel sentences with their word alignment.

    The same split, size and seed give the same meanings, row by row, for every pair of languages; a smaller size gives
    the first rows of a larger one. No sentence is in two splits, in any language, and none occurs twice.

    Args:
        source: Source language, one of :data:`LANGUAGES`.
        target: Target language.
        split: ``train`` (15,000 sentences), ``dev`` (3,000) or ``test`` (3,000).
        size: Number of pairs.
        seed: Which sample to draw. 0 takes the first rows of the split; any other seed shuffles the split and takes
            the rows of its second half first.

    Returns:
        A dataset with columns ``source``, ``target``, ``source_language``, ``target_language``, ``alignment`` (pairs
        of token indices), ``source_tokens`` and ``target_tokens``. Tokens are what spaces separate; in Chinese, words.

    Raises:
        ValueError: If a language or split is unknown, or ``size`` is above the size of the split.

    Example:
        >>> row = parallel_phrases("zh", "en", size=10)[0]
        >>> sorted(row)[:3]
        ['alignment', 'source', 'source_language']
    """
    import pyarrow
    from datasets import Dataset, Features, Sequence, Value

    check_language(source)
    check_language(target)
    rows = _draw("sentence", split, size, seed)
    source_slots = [_column(f"{source}_slots")[row] for row in rows]
    target_slots = [_column(f"{target}_slots")[row] for row in rows]
    columns: dict[str, list[Any]] = {
        "source": _texts(source, rows),
        "target": _texts(target, rows),
        "source_language": [source] * size,
        "target_language": [target] * size,
        "alignment": list(map(_align, source_slots, target_slots)),
        "source_tokens": [_column(source)[row].split() for row in rows],
        "target_tokens": [_column(target)[row].split() for row in rows],
    }
    features = Features(
        {
            "source": Value("string"),
            "target": Value("string"),
            "source_language": Value("string"),
            "target_language": Value("string"),
            "alignment": Sequence(Sequence(Value("int64"))),
            "source_tokens": Sequence(Value("string")),
            "target_tokens": Sequence(Value("string")),
        }
    )
    # Straight to Arrow: from_dict would inspect every value again.
    return Dataset(pyarrow.Table.from_pydict(columns, schema=features.arrow_schema))


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
    source: str = "de", target: str = "en", *, split: str = "test", size: int = 1000, gold: int = 100, seed: int = 0
) -> MiningSet:
    """Make two corpora of which some sentences are translations of each other.

    Args:
        source: Language of the source corpus, one of :data:`LANGUAGES`.
        target: Language of the target corpus.
        split: ``train``, ``dev`` or ``test``; its sentences are those that :func:`parallel_phrases` draws with this
            seed.
        size: Sentences of each corpus.
        gold: How many of them have their translation in the other corpus.
        seed: Which sample to draw.

    Returns:
        The corpora, each shuffled, and the pairs.

    Raises:
        ValueError: If a language or split is unknown, ``gold`` is above ``size``, or the split has fewer than
            ``2 * size - gold`` sentences.

    Example:
        >>> corpora = mining_phrases("de", "en", size=50, gold=5)
        >>> len(corpora.source), len(corpora.target), len(corpora.gold)
        (50, 50, 5)
    """
    check_language(source)
    check_language(target)
    if gold > size:
        raise ValueError(f"gold must be at most size: got gold={gold} for size={size}; lower gold or raise size.")
    needed = 2 * size - gold
    # The first sentences are shared; the others are dealt to one corpus or the other.
    rows = _draw("sentence", split, needed, seed)
    rng = Random(f"mining:{split}:{size}:{gold}:{seed}")
    source_meanings = list(range(size))
    target_meanings = [*range(gold), *range(size, needed)]
    rng.shuffle(source_meanings)
    rng.shuffle(target_meanings)
    target_indices = {meaning: index for index, meaning in enumerate(target_meanings)}
    return MiningSet(
        source=_texts(source, [rows[meaning] for meaning in source_meanings]),
        target=_texts(target, [rows[meaning] for meaning in target_meanings]),
        gold=[(index, target_indices[meaning]) for index, meaning in enumerate(source_meanings) if meaning < gold],
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
    """Load passages and their questions.

    The question of passage ``i`` is answered by a sentence of passage ``i`` and of no other, in any language: the
    answer is stated once in the whole split, also inside longer sentences, and no two sentences mean the same. No
    question or sentence of a split is in another split, nor in the other splits of :func:`parallel_phrases`. Split,
    size and seed give the same meanings for every choice of languages; a smaller size gives the first passages of a
    larger one.

    Args:
        languages: Any of :data:`LANGUAGES`.
        split: ``train`` (2,400 passages), ``dev`` (600) or ``test`` (600).
        size: Number of passages, and of questions.
        seed: Which sample to draw, see :func:`parallel_phrases`.

    Raises:
        ValueError: If a language or split is unknown, or ``size`` is above the size of the split.

    Example:
        >>> phrases = phrase_passages(["de", "en"], size=3)
        >>> len(phrases.passages["de"]), phrases.ids[2]
        (3, 'train-0-2')
    """
    languages = list(dict.fromkeys(map(check_language, languages)))
    # There are as many questions as passages, in the same order, so that equal seeds draw question and passage alike.
    questions = _draw("question", split, size, seed)
    passages = _draw("passage", split, size, seed)
    return PhrasePassages(
        ids=[f"{split}-{seed}-{number}" for number in range(size)],
        questions={code: _texts(code, questions) for code in languages},
        passages={code: _texts(code, passages) for code in languages},
    )
