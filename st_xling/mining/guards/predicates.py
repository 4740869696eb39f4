"""Candidate pairs, and the guards that look at their texts or neighbours: copies, near copies, lengths, hubs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

from st_xling.mining.mine import MinedPairs
from st_xling.mining.search.exact import Neighbours

#: Sentences that are remembered: a sentence is in several candidates, most of them near.
REMEMBERED = 1 << 14

_TATWEEL = "\N{ARABIC TATWEEL}"

#: Latin letters that one character of a dense script stands for. Least squares over a thousand translations each gives
#: 3.7 for a Chinese character, 4.4 for a Japanese one, 1.7 for kana and 2.7 for a Hangul syllable.
HAN, KANA, HANGUL = 3.5, 1.7, 2.5

_HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]+")
_FIRST_DENSE = re.compile("[\u1100-\u11ff\u2e80-\U0003ffff]")


class Candidate(NamedTuple):
    """One pair that mining proposes: two texts, their score (unit of the margin), and their rows in the two corpora."""

    source: str
    target: str
    score: float
    source_index: int
    target_index: int


class Verdict(NamedTuple):
    """Why a guard turns a pair down.

    Attributes:
        value: What was measured, as JSON can write it.
        limit: What it was measured against; ``None`` where a guard has no limit.
    """

    value: Any
    limit: float | None


@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """Some candidates, as columns.

    Attributes:
        sources, targets: Texts. *Length:* ``pairs``
        scores: float64. *Shape:* ``(pairs,)``
        source_indices, target_indices: Rows of the two corpora, int64. *Shape:* ``(pairs,)``
    """

    sources: list[str]
    targets: list[str]
    scores: np.ndarray
    source_indices: np.ndarray
    target_indices: np.ndarray

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def of(cls, pairs: MinedPairs, sources: Sequence[str], targets: Sequence[str]) -> CandidateBatch:
        """Mined pairs with their texts, which are read from anything that has the text of a row."""
        return cls(
            [sources[row] for row in pairs.source_indices.tolist()],
            [targets[row] for row in pairs.target_indices.tolist()],
            pairs.scores,
            pairs.source_indices,
            pairs.target_indices,
        )

    @cached_property
    def letters(self) -> tuple[list[str], list[str]]:
        """The :func:`letter_key` of every source and of every target."""
        return [letter_key(text) for text in self.sources], [letter_key(text) for text in self.targets]

    def select(self, rows: Sequence[int]) -> CandidateBatch:
        """The candidates at ``rows``, in that order; letters that are known already are taken along."""
        index = np.asarray(rows, dtype=np.int64)
        some = CandidateBatch(
            [self.sources[row] for row in rows],
            [self.targets[row] for row in rows],
            self.scores[index],
            self.source_indices[index],
            self.target_indices[index],
        )
        if "letters" in self.__dict__:
            some.__dict__["letters"] = tuple([keys[row] for row in rows] for keys in self.letters)
        return some

    def __getitem__(self, row: int) -> Candidate:
        texts = self.sources[row], self.targets[row]
        return Candidate(*texts, float(self.scores[row]), int(self.source_indices[row]), int(self.target_indices[row]))


class Guard(Protocol):
    """Turns pairs down for one reason.

    Attributes:
        reason: The code that rejects carry.
    """

    reason: ClassVar[str]

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        """One verdict a pair, ``None`` for a pair that may stay. Depends on nothing but the pair itself."""
        ...


def candidate_batches(candidates: Iterable[Candidate], *, batch_pairs: int = 8192) -> Iterator[CandidateBatch]:
    """Cut a stream of candidates into batches, in order; one batch is in memory at a time.

    Args:
        candidates: Any iterable, of any length.
        batch_pairs: Pairs a batch; memory, never a verdict, depends on it.
    Raises:
        ValueError: If ``batch_pairs`` is below 1.
    """
    if batch_pairs < 1:
        raise ValueError(f"batch_pairs must be at least 1: got {batch_pairs}; 8192 is the usual choice.")
    stream = iter(candidates)
    while rows := list(islice(stream, batch_pairs)):
        sources, targets, scores, source_indices, target_indices = zip(*rows)
        yield CandidateBatch(
            list(sources),
            list(targets),
            np.asarray(scores, dtype=np.float64),
            np.asarray(source_indices, dtype=np.int64),
            np.asarray(target_indices, dtype=np.int64),
        )


class _Essential(dict[int, int | None]):
    """A table for ``str.translate`` that looks a character up the first time it is met: itself, or None to drop it."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        essential = unicodedata.category(character)[0] in "LMN" and character != _TATWEEL
        self[code] = code if essential else None
        return self[code]


_ESSENTIAL = _Essential()


@lru_cache(maxsize=REMEMBERED)
def letter_key(text: str) -> str:
    """Letters, marks and digits of a text after NFKC and case folding; equal keys are copies of each other.

    White space, punctuation, symbols, emoji, invisible characters and the Arabic tatweel go. Marks stay, for in many
    scripts they are vowels. Case folding can undo NFKC, hence NFKC on both sides of it.

    Source:
        Unicode Standard, section 3.13, "toNFKC_Casefold".
    Example:
        >>> letter_key("Ｃａｆe\u0301 — Nº 5!")
        'caféno5'
    """
    if text.isascii():
        return text.lower().translate(_ESSENTIAL)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # What is dropped may have stood between a letter and its mark.
    return unicodedata.normalize("NFC", folded.translate(_ESSENTIAL))


@dataclass(frozen=True)
class CopyGuard:
    """Turns down a pair whose sides have the same letters, marks and digits, in the same order.

    Compared are :func:`letter_key` of both sides, so that case, width, spacing and punctuation
    do not hide a copy. Two sides without any letter or digit ("…" and "!!!") are equal too: they translate nothing.
    A copy gets a cosine near 1 from any encoder and would lead every list of mined pairs. It has no option: a copy is
    one or is not.
    """

    reason: ClassVar[str] = "copy"

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        return [Verdict(1.0, None) if source == target else None for source, target in zip(*batch.letters)]


@dataclass(frozen=True)
class NearCopyGuard:
    r"""Turns down a pair whose letters can be made equal by few insertions and deletions.

    .. math:: \mathrm{similarity}(x, y) = 1 - \frac{\mathrm{indel}(x, y)}{|x| + |y|}
        = \frac{2\,\mathrm{LCS}(x, y)}{|x| + |y|}

    over the :func:`letter_key` of both sides, so lines of names, numbers or addresses that
    differ in punctuation or a digit are caught whatever the script. Two texts in different scripts share few
    characters and stay far below any sensible limit. Exact copies have similarity 1: switched on alone, this guard
    catches them as well.

    Args:
        limit: Turn down from this similarity on, in (0, 1]. Of true pairs, 0.85 turns down one in 500 for Spanish and
            German with English, most of them names ("Errol Flynn war reich."); 0.8 twice as many. Raise it for
            dialects.
    Source:
        rapidfuzz, ``Indel.normalized_similarity``.
    """

    limit: float = 0.85
    reason: ClassVar[str] = "near_copy"

    def __post_init__(self) -> None:
        if not 0 < self.limit <= 1:
            raise ValueError(f"near_copy must lie in (0, 1]: got {self.limit}; 0.85 is the usual choice.")

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        sources, targets = batch.letters
        # Below the cutoff rapidfuzz stops early and says 0; workers=1 leaves the cores to the encoder.
        similarities = process.cpdist(
            sources,
            targets,
            scorer=Indel.normalized_similarity,
            score_cutoff=self.limit,
            dtype=np.float64,
            workers=1,
        )
        return [
            Verdict(round(similarity, 4), self.limit) if similarity >= self.limit else None
            for similarity in similarities.tolist()
        ]


@lru_cache(maxsize=REMEMBERED)
def weighted_length(text: str) -> float:
    """Length of a text in Latin letters: characters of its NFC form, those of dense scripts counted several times.

    The scale follows the characters, not a named language, so that mixed lines ("我用 Python 写") need no special case.
    Other scripts need none: their translations into English are between 0.9 and 1.2 times as long.
    """
    if text.isascii():
        return float(len(text))
    text = unicodedata.normalize("NFC", text)
    length = float(len(text))
    if _FIRST_DENSE.search(text):
        for pattern, weight in ((_HAN, HAN), (_KANA, KANA), (_HANGUL, HANGUL)):
            length += (weight - 1) * sum(map(len, pattern.findall(text)))
    return length


@dataclass(frozen=True)
class LengthRatioGuard:
    r"""Turns down a pair of very different lengths.

    .. math:: \mathrm{ratio}(x, y) = \frac{\max(|x|, |y|) + c}{\min(|x|, |y|) + c}

    with lengths by :func:`weighted_length`. The constant :math:`c` makes short sentences lenient: "Да." and "Yes, of
    course." pass, the same ratio over a hundred characters does not.

    Args:
        limit: Turn down above this ratio, above 1.
        slack_chars: The constant :math:`c`, in weighted characters, 0 or more.
    Source:
        Gale and Church 1993 for characters as the measure of length; the additive constant stands in for their
        variance, which grows with length.
    """

    limit: float = 2.5
    slack_chars: float = 15.0
    reason: ClassVar[str] = "length_ratio"

    def __post_init__(self) -> None:
        if not self.limit > 1:
            raise ValueError(f"length_ratio must be above 1: got {self.limit}; 2.5 is the usual choice.")
        if not self.slack_chars >= 0:
            raise ValueError(f"slack_chars must be 0 or more: got {self.slack_chars}; 15 is the usual choice.")

    def ratio(self, source: str, target: str) -> float:
        """The ratio of two texts, 1 or more; infinite when one is empty and there is no slack."""
        short, long = sorted((weighted_length(source) + self.slack_chars, weighted_length(target) + self.slack_chars))
        if short == 0:
            return 1.0 if long == 0 else float("inf")
        return long / short

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        ratios = map(self.ratio, batch.sources, batch.targets)
        return [Verdict(round(ratio, 3), self.limit) if ratio > self.limit else None for ratio in ratios]


def count_occurrences(neighbour_indices: Iterable[np.ndarray], size: int) -> np.ndarray:
    """How often each sentence occurs in the neighbour lists of the other corpus.

    Args:
        neighbour_indices: Blocks of neighbour lists, such as ``[neighbours.indices]`` or slices of it; any shape.
            Negative indices, by which approximate indexes say "none", are not counted.
        size: Sentences of the corpus that the indices point into.
    Returns:
        Counts, int32. *Shape:* ``(size,)``
    Raises:
        ValueError: If an index lies beyond ``size``.
    """
    counts = np.zeros(size, dtype=np.int32)
    for block in neighbour_indices:
        rows = np.ravel(block).astype(np.int64)
        rows = rows[rows >= 0]
        if rows.max(initial=-1) >= size:
            raise ValueError(f"expected neighbours below {size}, got {rows.max()}; pass the size of their corpus.")
        # bincount would make an array of the corpus's size for every block.
        indices, occurrences = np.unique(rows, return_counts=True)
        counts[indices] += occurrences.astype(np.int32)
    return counts


@dataclass(frozen=True, eq=False)
class NeighbourCounts:
    """How often each sentence is a neighbour.

    Attributes:
        source: Occurrences of each source in the targets' neighbour lists. *Shape:* ``(sources,)``
        target: Occurrences of each target in the sources' neighbour lists. *Shape:* ``(targets,)``
        k: Neighbours a list.
    """

    source: np.ndarray
    target: np.ndarray
    k: int

    @classmethod
    def of(cls, forward: Neighbours, backward: Neighbours) -> NeighbourCounts:
        """Counts of both directions of :func:`~st_xling.mining.neighbours`."""
        sources, k = forward.indices.shape
        targets = len(backward.indices)
        return cls(count_occurrences([backward.indices], sources), count_occurrences([forward.indices], targets), k)


@dataclass(frozen=True, eq=False)
class HubGuard:
    r"""Turns down a pair of which a side is a hub.

    A target :math:`y` occurs in the :math:`k`-neighbour lists of :math:`N_k(y)` sources; over all targets the mean is
    :math:`k|S|/|T|`. It is a hub when

    .. math:: N_k(y) > \mathrm{limit} \cdot k \cdot \max(1, |S|/|T|)

    and a source likewise, with the corpora swapped. The maximum keeps the bound from falling below ``limit * k`` where
    the other corpus is small, for there a few chance occurrences are many times the mean. In a space of many dimensions
    some points are near to everything; a generic line ("Read more") then wins sources that have no translation.

    Args:
        counts: Occurrences in both corpora: ``4`` bytes a sentence.
        limit: How many times the mean a sentence may occur, at least 1. At 20, hubs are one sentence in 200, and 0 to
            2.4 % of the gold pairs are lost, measured with a linear encoder (latent semantic analysis) on three mining
            sets; better encoders have fewer hubs.
    Source:
        Radovanović, Nanopoulos and Ivanović 2010, "Hubs in Space", section 2, for :math:`N_k`.
    """

    counts: NeighbourCounts
    limit: float = 20.0
    reason: ClassVar[str] = "hub"

    def __post_init__(self) -> None:
        if not self.limit >= 1:
            raise ValueError(f"hub must be at least 1: got {self.limit}; 20 is the usual choice.")

    def bound(self, own: np.ndarray, other: np.ndarray) -> float:
        """Occurrences up to which a sentence is no hub, by the counts of its corpus and of the other."""
        return self.limit * self.counts.k * max(1.0, len(other) / max(1, len(own)))

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        verdicts: list[Verdict | None] = [None] * len(batch)
        source, target = self.counts.source, self.counts.target
        sides = (("source", batch.source_indices, source, target), ("target", batch.target_indices, target, source))
        for side, indices, own, other in sides:
            limit = self.bound(own, other)
            occurrences = own[indices]
            for row in np.flatnonzero(occurrences > limit).tolist():
                verdicts[row] = verdicts[row] or Verdict({"side": side, "neighbour_of": int(occurrences[row])}, limit)
        return verdicts
