"""Words of translations that belong together, by an encoder's similarities and by counts over all pairs of a corpus."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from torch import Tensor

# Chosen on 200 phrasebook pairs of each of five languages with English that no figure is reported on.
TEMPERATURE = 0.1  # of cosines, where they become probabilities
NO_PARTNER = 0.2  # probability that a word has none, before anything is counted
ROUNDS = 3
SURE = 0.5  # mean of both directions' probabilities from which two words are linked
LIKELY = 0.4  # probability in one direction from which a word joins the link next to it

PART = 16_000_000
"""Pairs of words that are counted together, which bounds the memory: some 40,000 sentence pairs of 20 words."""

Links = list[tuple[int, int]]


def link_by_corpus(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[Links]:
    r"""Links of all pairs, from the similarities of their words and from how often these are linked in other pairs.

    With the similarities alone each word chooses its partner among those of the other sentence, or none:
    :math:`p(i \mid j) \propto e^{s_{ij} / \tau}`. Over all pairs that gives expected counts of links, by them
    :math:`t(w \mid v)`, how often the word *v* goes with *w*; and :math:`p(i \mid j) \propto e^{s_{ij} / \tau} \,
    t(w_j \mid v_i)` makes new ones. So words that are near by chance are set right by the other pairs, and a word that
    is always said by two keeps both. Both directions are learned apart; words are linked where the mean of both is
    above one half, then grown: a word without a link joins the link next to it if one direction would. A large corpus
    is counted in parts of :data:`PART` pairs of words, in at most about 1.6 GB of memory.

    Args:
        sources: Words of each pair's source.
        targets: Words of its target.
        similarities: Those of their words, see :func:`~st_xling.models.word_similarities`; NaN for a word that the
            encoder did not read. *Shape:* each ``(source words, target words)``

    Returns:
        For each pair, sorted positions ``(source word, target word)``.

    Source:
        Brown et al. 1993, The Mathematics of Statistical Machine Translation, section 4.2 (model 1), here with a prior;
        Koehn et al. 2003, Statistical Phrase-Based Translation, section 3.1 (growing).
    """
    # Words beyond the encoder's length, which have no similarities, are never linked.
    read = [own[: _read_rows(own), : _read_rows(own.T)] for own in similarities]
    sources = [words[: own.shape[0]] for words, own in zip(sources, read)]
    targets = [words[: own.shape[1]] for words, own in zip(targets, read)]
    parts = np.cumsum([own.numel() for own in read]) // PART
    links: list[Links] = []
    for part in np.unique(parts):
        rows = np.flatnonzero(parts == part)
        links += _link_part([sources[row] for row in rows], [targets[row] for row in rows], [read[row] for row in rows])
    return links


def _read_rows(similarities: Tensor) -> int:
    """Count the rows up to the last one that is not all NaN."""
    known = (~similarities.isnan()).any(dim=1).nonzero()
    return int(known[-1]) + 1 if len(known) else 0


def _link_part(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], similarities: Sequence[Tensor]
) -> list[Links]:
    """Return the links of pairs that are counted together."""
    shapes = [tuple(own.shape) for own in similarities]
    if not any(rows * columns for rows, columns in shapes):
        return [[] for _ in shapes]
    source_kinds, target_kinds = _kinds(sources), _kinds(targets)
    # Every cell of every pair's matrix, one after the other: which words of the corpus it belongs to.
    starts = np.cumsum([(0, 0), *shapes], axis=0)
    cells = [np.indices(shape).reshape(2, -1) + start[:, None] for shape, start in zip(shapes, starts)]
    source, target = np.concatenate(cells, axis=1)
    cosines = np.concatenate([own.numpy().ravel() for own in similarities])
    prior = np.exp((np.nan_to_num(cosines, nan=-np.inf) - 1) / TEMPERATURE)
    width = target_kinds.max() + 1
    pairs, together = np.unique(source_kinds[source] * width + target_kinds[target], return_inverse=True)
    backward = _choices(prior, source, source_kinds, together, pairs % width)
    forward = _choices(prior, target, target_kinds, together, pairs // width)
    ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    return [
        _grown(one.reshape(shape), other.reshape(shape))
        for one, other, shape in zip(np.split(forward, ends), np.split(backward, ends), shapes)
    ]


def _kinds(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """A number for each word of the corpus, the same for the same word, without case and punctuation around it."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(_bare(word), len(numbers)) for words in sentences for word in words], np.int64)


def _bare(word: str) -> str:
    inner = [place for place, character in enumerate(word) if unicodedata.category(character)[0] not in "PS"]
    return word[inner[0] : inner[-1] + 1].casefold() if inner else word


def _choices(
    prior: np.ndarray, chooser: np.ndarray, kinds: np.ndarray, together: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Compute by expectation maximization, for each cell, the probability that its one word chooses the other.

    Args:
        prior: Prior probability of each cell, up to a factor.
        chooser: Each cell's word that chooses.
        kinds: The kind of each of these words.
        together: Each cell's pair of kinds.
        chosen: The kind that is chosen, of each pair of kinds.
    """
    words, number = len(kinds), kinds.max() + 1
    share = (1 - NO_PARTNER) * prior / np.maximum(np.bincount(chooser, prior, words), 1e-30)[chooser]
    goes_with, alone = np.ones(len(chosen)), np.ones(number)
    for last in range(ROUNDS + 1):
        weight, none = share * goes_with[together], NO_PARTNER * alone[kinds]
        total = np.bincount(chooser, weight, words) + none
        weight, none = weight / total[chooser], none / total
        if last == ROUNDS:
            break
        # Counts of the chooser's kind by the chosen one's, or by none; one more, evenly, for kinds that are rare.
        pairs = np.bincount(together, weight)
        goes_with = (pairs + 1 / number) / (np.bincount(chosen, pairs)[chosen] + 1)
        alone = (np.bincount(kinds, none) + 1 / number) / (none.sum() + 1)
    return weight


def _grown(forward: np.ndarray, backward: np.ndarray) -> Links:
    linked, likely = (forward + backward) / 2 > SURE, np.maximum(forward, backward) > LIKELY
    while True:
        neighbor = np.zeros_like(linked)
        neighbor[1:] |= linked[:-1]
        neighbor[:-1] |= linked[1:]
        neighbor[:, 1:] |= linked[:, :-1]
        neighbor[:, :-1] |= linked[:, 1:]
        free = ~linked.any(axis=1, keepdims=True) | ~linked.any(axis=0, keepdims=True)
        more = likely & neighbor & free & ~linked
        if not more.any():
            return [(i, j) for i, j in np.argwhere(linked).tolist()]
        linked |= more
