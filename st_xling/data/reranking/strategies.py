"""The paper's three ways to train on a set and its translations: merged, cascade, mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.reranking.aligned import AlignedPairs, known_languages, require_languages
from st_xling.data.reranking.labelled import in_languages
from st_xling.data.reranking.shares import even_counts, spread

if TYPE_CHECKING:
    from datasets import Dataset


def merged(pairs: AlignedPairs, *, seed: int = 0) -> list[Dataset]:
    r"""One stage: every pair in every language, :math:`D^{en} \cup D^{zh}`, shuffled; L x M rows, all mono-language.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included.
        seed: Of the order.
    Raises:
        ValueError: Fewer than two languages, or no pairs.
    """
    require_languages(pairs, "merged training")
    codes = np.repeat(np.arange(len(pairs.languages)), len(pairs))
    rows = np.tile(np.arange(len(pairs)), len(pairs.languages))
    order = np.random.default_rng(seed).permutation(len(rows))
    return [in_languages(pairs, rows[order], codes[order], codes[order])]


def cascade(pairs: AlignedPairs, *, order: Sequence[str] | None = None, seed: int = 0) -> list[Dataset]:
    """One stage a language, M rows each: first :math:`D^{en}`, then :math:`D^{zh}` from the model of the first.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included.
        order: All languages, the first to train on first; by default as they stand in ``pairs``.
        seed: Of the order of the rows in each stage.
    Raises:
        ValueError: Fewer than two languages, or no pairs; ``order`` is not all languages, once each.
    """
    require_languages(pairs, "cascade training")
    languages = pairs.languages if order is None else known_languages(order, pairs.languages)
    if len(languages) != len(pairs.languages):
        raise ValueError(f"cascade's order must name each of {', '.join(pairs.languages)}: got {', '.join(languages)}.")
    rng = np.random.default_rng(seed)
    stages = []
    for language in languages:
        code = np.full(len(pairs), pairs.languages.index(language))
        stages.append(in_languages(pairs, rng.permutation(len(pairs)), code, code))
    return stages


def mixed(pairs: AlignedPairs, *, seed: int = 0) -> list[Dataset]:
    r"""One stage: the queries of an aligned pair, in every language, all with its passage in one language, drawn.

    For two languages these are, of 2M rows, M mono-language and M mix-language: the two samples of pair ``i`` are
    either :math:`(q^{en}, p^{zh}), (q^{zh}, p^{zh})` or :math:`(q^{en}, p^{en}), (q^{zh}, p^{en})`, each for M/2 of the
    pairs (figure 3). For L languages it is the passage language that is shared still: L x M rows, M of them
    mono-language, and each language shows M/L of the passages. The languages share M evenly, the first in ``pairs``
    take the remainder; so they do, within one or two pairs, among the relevant pairs and among the others.

    Args:
        pairs: M aligned pairs in L >= 2 languages, negatives included.
        seed: Of the passage languages and the order.
    Raises:
        ValueError: Fewer than two languages, or no pairs.
    """
    require_languages(pairs, "mixed training")
    rng = np.random.default_rng(seed)
    count = len(pairs.languages)
    shown = spread(even_counts(len(pairs), count), np.asarray(pairs.labels), rng)
    rows = np.tile(np.arange(len(pairs)), count)
    asked = np.repeat(np.arange(count), len(pairs))
    order = rng.permutation(len(rows))
    return [in_languages(pairs, rows[order], asked[order], shown[rows[order]])]


STRATEGIES: dict[str, Callable[..., list[Dataset]]] = {"merged": merged, "cascade": cascade, "mixed": mixed}
"""By the names that recipes use; all three give L x M rows over their stages."""
