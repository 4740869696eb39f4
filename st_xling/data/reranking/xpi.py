"""XPI's mixed-language set: pairs of sentences, in one language or two, that mean the same or do not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from st_xling.data.reranking.aligned import AlignedPairs, require_languages
from st_xling.data.reranking.labelled import in_languages
from st_xling.data.reranking.language_pairs import by_language_pair
from st_xling.data.reranking.negatives import with_negatives
from st_xling.data.reranking.shares import even_counts, spread
from st_xling.data.reranking.thinned import thinned
from st_xling.data.text_columns import column_texts

if TYPE_CHECKING:
    from datasets import Dataset

MonoPositives = Literal["identical", "thinned"]


def xpi_pairs(pairs: AlignedPairs, *, negatives_per_positive: int = 1, seed: int = 0) -> Dataset:
    r"""The set :math:`S^{mix}` of the paper, from :math:`S^{en}, S^{zh}` or more languages.

    Negatives are drawn first; of the N pairs that there are then, each comes once: for two languages N/4 en-en, N/4
    zh-zh and N/2 with one side in each language, a coin tossed per pair for which. For L languages N/2 are
    mono-language, shared evenly by the L languages, and N/2 mix-language, shared evenly by the L(L-1)/2 pairs of
    languages. Where N or a share does not divide, the mix-language pairs take the odd one, then the first languages or
    language pairs, in the order of ``pairs``, the remainder. The shares hold for either label, within a pair or two.

    Args:
        pairs: Pairs of sentences in L >= 2 languages: 1 where they mean the same. Labelled negatives are kept.
        negatives_per_positive: Other rows' sentences, in the place of ``y``, for each pair of label 1; never one that
            is known to mean the same, see :func:`~st_xling.data.reranking.negatives.draw_negatives`, ``symmetric``.
        seed: Of negatives, forms, tosses and order.
    Returns:
        Rows of ``query``, ``passage``, ``label``, ``query_language``, ``passage_language``, shuffled.
    Raises:
        ValueError: Fewer than two languages; no pair; too few other sentences for the negatives.
    Source:
        Section IV-B-2 and table 1. The paper does not say how its negatives come about, nor how many there are.
    """
    require_languages(pairs, "cross-lingual paraphrase identification")
    full = with_negatives(pairs, negatives_per_positive=negatives_per_positive, symmetric=True, seed=seed)
    rng = np.random.default_rng([seed, 1])
    first, second = _forms(full, rng)
    order = rng.permutation(len(full))
    return in_languages(full, order, first[order], second[order])


def xpi_pairs_from_parallel(
    data: Mapping[str, Dataset],
    *,
    size: int | None = None,
    negatives_per_positive: int = 1,
    mono_positives: MonoPositives = "identical",
    seed: int = 0,
) -> Dataset:
    """The same from parallel text, as the paper makes it from 100,000 rows of the UN corpus.

    A row of parallel text gives one pair that means the same, in two languages; each pair of languages gets the
    proportions of :func:`xpi_pairs` for itself. So a quarter of the pairs of de-en is German-German: of its positives
    the paper leaves open where the second German sentence comes from, since a row has only one. By its construction (a
    pair is translated as a whole, or one side of it) it is the sentence itself, which is what ``"identical"`` does; it
    keeps labels and forms balanced, but teaches little. ``"thinned"``, ours, leaves out about a seventh of the words of
    the second copy. Real paraphrases in several languages are better than both: pass them to :func:`xpi_pairs`.

    Args:
        data: Name → parallel text with ``source``, ``target`` and their languages, of any number of language pairs.
        size: Rows of parallel text to draw from all; by default all.
        negatives_per_positive: Drawn among the rows of the same pair of languages.
        mono_positives: The second side of a pair in one language: ``"identical"`` or ``"thinned"``.
        seed: Of all draws.
    Returns:
        As :func:`xpi_pairs`; ``(1 + negatives_per_positive) x size`` rows.
    Raises:
        ValueError: A stream; a row whose two languages are the same or unknown; ``size`` beyond the rows that there
            are; too few rows of a language pair for the negatives.
    """
    import datasets

    if mono_positives not in get_args(MonoPositives):
        raise ValueError(f"mono_positives must be one of {get_args(MonoPositives)}: got {mono_positives!r}.")
    parts = []
    for number, (codes, sides) in enumerate(by_language_pair(data, size=size, seed=seed).items()):
        texts = dict(zip(codes, sides))
        pairs = AlignedPairs(texts, texts, [1] * len(sides[0]))
        full = with_negatives(pairs, negatives_per_positive=negatives_per_positive, symmetric=True, seed=seed + number)
        rng = np.random.default_rng([seed, number, 2])
        first, second = _forms(full, rng)
        part = in_languages(full, np.arange(len(full)), first, second)
        if mono_positives == "thinned":
            changed = np.flatnonzero((first == second) & np.asarray(full.labels, bool)).tolist()
            passages = list(column_texts(part, "passage"))
            for row in changed:
                passages[row] = thinned(passages[row], rng)
            names = part.column_names
            part = part.remove_columns("passage").add_column("passage", passages).select_columns(names)
        parts.append(part)
    joined = datasets.concatenate_datasets(parts)
    return joined.select(np.random.default_rng([seed, 3]).permutation(len(joined)))


def _forms(pairs: AlignedPairs, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Language of either side of each pair, as places in ``pairs.languages``. *Shape:* ``(pairs,)`` each"""
    languages = len(pairs.languages)
    crossed = list(combinations(range(languages), 2))
    mono = len(pairs) // 2
    counts = even_counts(mono, languages) + even_counts(len(pairs) - mono, len(crossed))
    form = spread(counts, np.asarray(pairs.labels), rng)
    sides = np.array([*((code, code) for code in range(languages)), *crossed])[form]
    heads = rng.random(len(pairs)) < 0.5
    return np.where(heads, sides[:, 0], sides[:, 1]), np.where(heads, sides[:, 1], sides[:, 0])
