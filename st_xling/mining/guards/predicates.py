"""Candidate pairs, and the guards that look at their texts or neighbours: copies, near copies, lengths, hubs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
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

# Added to either length, in weighted characters.
_SLACK_CHARS = 15.0

_HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]+")
_FIRST_DENSE = re.compile("[\u1100-\u11ff\u2e80-\U0003ffff]")


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
    """Pairs that mining proposes, and their texts.

    Attributes:
        pairs: Scores, and rows of the two corpora.
        sources: Texts. *Length:* ``pairs``
        targets: Theirs.
    """

    pairs: MinedPairs
    sources: list[str]
    targets: list[str]

    @classmethod
    def of(cls, pairs: MinedPairs, sources: Sequence[str], targets: Sequence[str]) -> CandidateBatch:
        """With texts from anything that has the text of a row."""
        return cls(
            pairs,
            [sources[row] for row in pairs.source_indices.tolist()],
            [targets[row] for row in pairs.target_indices.tolist()],
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def select(self, rows: np.ndarray) -> CandidateBatch:
        """The candidates at these indices, in that order."""
        texts = ([some[row] for row in rows.tolist()] for some in (self.sources, self.targets))
        return CandidateBatch(self.pairs.select(rows), *texts)


class Guard(Protocol):
    """Turns pairs down for one reason.

    Attributes:
        reason: The code that rejects carry.
    """

    reason: ClassVar[str]

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        """One verdict a pair, ``None`` for a pair that may stay. Depends on nothing but the pair itself."""
        ...


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
        keys = zip(map(letter_key, batch.sources), map(letter_key, batch.targets))
        return [Verdict(1.0, None) if one == other else None for one, other in keys]


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
        # Below the cutoff rapidfuzz stops early and says 0; workers=1 leaves the cores to the encoder.
        similarities = process.cpdist(
            [letter_key(text) for text in batch.sources],
            [letter_key(text) for text in batch.targets],
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

    with lengths by :func:`weighted_length`. The constant :math:`c`, 15 characters, makes short sentences lenient: "Да."
    and "Yes, of course." pass, the same ratio over a hundred characters does not.

    Args:
        limit: Turn down above this ratio, above 1.
    Source:
        Gale and Church 1993 for characters as the measure of length; the additive constant stands in for their
        variance, which grows with length.
    """

    limit: float = 2.5
    reason: ClassVar[str] = "length_ratio"

    def __post_init__(self) -> None:
        if not self.limit > 1:
            raise ValueError(f"length_ratio must be above 1: got {self.limit}; 2.5 is the usual choice.")

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        lengths = np.array([[*map(weighted_length, texts)] for texts in (batch.sources, batch.targets)]) + _SLACK_CHARS
        ratios = (lengths.max(axis=0) / lengths.min(axis=0)).tolist()
        return [Verdict(round(ratio, 3), self.limit) if ratio > self.limit else None for ratio in ratios]


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
        of_sources = np.bincount(backward.indices.ravel(), minlength=len(forward.indices))
        of_targets = np.bincount(forward.indices.ravel(), minlength=len(backward.indices))
        return cls(of_sources.astype(np.int32), of_targets.astype(np.int32), forward.indices.shape[1])


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
        sides = (
            ("source", batch.pairs.source_indices, source, target),
            ("target", batch.pairs.target_indices, target, source),
        )
        for side, indices, own, other in sides:
            limit = self.bound(own, other)
            occurrences = own[indices]
            for row in np.flatnonzero(occurrences > limit).tolist():
                verdicts[row] = verdicts[row] or Verdict({"side": side, "neighbour_of": int(occurrences[row])}, limit)
        return verdicts
