"""The paper's three ways to train on a set and its translations: merged, cascade, mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from st_xling.data.reranking.pairs import AlignedPairs, known_languages

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
    return [pairs.in_languages(rows[order], codes[order], codes[order])]


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
        stages.append(pairs.in_languages(rng.permutation(len(pairs)), code, code))
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
    # One passage language for all samples of a pair, in even shares.
    shown = spread(even_counts(len(pairs), count), np.asarray(pairs.labels), rng)
    rows = np.tile(np.arange(len(pairs)), count)
    query_codes = np.repeat(np.arange(count), len(pairs))
    order = rng.permutation(len(rows))
    return [pairs.in_languages(rows[order], query_codes[order], shown[rows[order]])]


STRATEGIES: dict[str, Callable[..., list[Dataset]]] = {"merged": merged, "cascade": cascade, "mixed": mixed}
"""By the names that recipes use; all three give L x M rows over their stages."""


def require_languages(pairs: AlignedPairs, what: str) -> None:
    """Refuse pairs in fewer languages than ``what`` mixes, or without rows."""
    if len(pairs.languages) < 2:
        raise ValueError(
            f"{what} needs aligned pairs in at least 2 languages: got {len(pairs.languages)} "
            f"({', '.join(pairs.languages)}); add a translation of the same pairs."
        )
    if not len(pairs):
        raise ValueError(f"{what} needs aligned pairs: got none; check the files.")


def even_counts(total: int, parts: int) -> list[int]:
    """``total`` over ``parts``, as evenly as whole numbers can be; the first parts take the remainder.

    Example:
        >>> even_counts(8, 3)
        [3, 3, 2]
    """
    return [total // parts + (part < total % parts) for part in range(parts)]


def spread(counts: Sequence[int], labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A form for each row: form ``f`` exactly ``counts[f]`` times, in like proportion for either label.

    Rows are shuffled within their label and meet a sequence in which every form recurs at even distances; so among the
    rows of one label the share of a form is its share overall, but for a row or two where forms are few.

    Args:
        counts: Rows of each form; they sum to the number of rows.
        labels: 0 or 1. *Shape:* ``(rows,)``
        rng: What shuffles.
    Returns:
        Numbers of forms. *Shape:* ``(rows,)``
    """
    assert sum(counts) == len(labels), (counts, len(labels))
    forms = np.repeat(np.arange(len(counts)), counts)
    due = np.concatenate([np.zeros(0), *((np.arange(count) + 0.5) / count for count in counts if count)])
    # Relevant rows first, in a random order within the label; they meet forms that recur at even distances.
    shuffled = rng.permutation(len(labels))
    rows = shuffled[np.argsort(-np.asarray(labels)[shuffled], kind="stable")]
    chosen = np.empty(len(labels), np.int64)
    chosen[rows] = forms[np.argsort(due, kind="stable")]
    return chosen
