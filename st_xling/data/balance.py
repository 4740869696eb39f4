"""Shares of the languages: by an exponent or a temperature, and the rows of an epoch that keep to them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from st_xling.utils.languages import UNKNOWN

LANGUAGE_COLUMNS = ("source_language", "target_language")


def language_shares(
    rows: Sequence[float], *, alpha: float | None = None, temperature: float | None = None
) -> list[float]:
    r"""Share of each language in the batches.

    .. math:: p_i = n_i^\alpha / \sum_j n_j^\alpha, \quad \alpha = 1 / \tau

    Args:
        rows: Rows :math:`n_i` of each language.
        alpha: Exponent in [0, 1]: 1 leaves the data as it is, 0 makes all languages equal. Devlin et al. 2019 took 0.7
            for multilingual BERT, Conneau et al. 2020 took 0.3 for XLM-R.
        temperature: Its inverse :math:`\tau`, at least 1; exactly one of the two, or neither for the data as it is.
    Raises:
        ValueError: Both are given, or one is out of range; there is no language, or one without rows.
    Example:
        >>> language_shares([900, 100], alpha=0.5)
        [0.75, 0.25]
    """
    exponent = check_balance(alpha, temperature)
    if not rows or not all(count > 0 for count in rows):
        raise ValueError(f"every language needs rows to draw: got {list(rows)}; leave the empty ones out.")
    powers = [float(count) ** exponent for count in rows]
    return [power / math.fsum(powers) for power in powers]


def check_balance(alpha: float | None, temperature: float | None) -> float:
    """The exponent that one of the two gives; 1 if neither is given."""
    if alpha is not None and temperature is not None:
        raise ValueError(
            f"languages are balanced by an exponent or by a temperature: got alpha {alpha} and temperature "
            f"{temperature}; leave one out (temperature = 1 / alpha)."
        )
    if alpha is not None and not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie in [0, 1]: got {alpha}; 1 is the data as it is, 0 all languages alike.")
    if temperature is not None and not 1 <= temperature <= math.inf:
        raise ValueError(f"temperature must be at least 1, the data as it is: got {temperature}; higher is more even.")
    return 1.0 if temperature is None and alpha is None else float(alpha if alpha is not None else 1 / temperature)  # type: ignore[operator]


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that add up to ``total`` and differ from their exact share by less than one (largest remainder)."""
    exact = [total * share for share in shares]
    counts = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for index in by_remainder[: total - sum(counts)]:
        counts[index] += 1
    return counts


def pair_rows(dataset: Any) -> dict[tuple[str, str], np.ndarray]:
    """Row numbers of each pair of languages, in the order in which the pairs first come.

    Raises:
        ValueError: The data set lacks a language column, or a row its language.
    """
    numbers: dict[tuple[str, str], int] = {}
    groups = np.concatenate([np.zeros(0, np.int64), *_pair_numbers(dataset, numbers)])
    return {pair: np.flatnonzero(groups == number) for pair, number in numbers.items()}


def count_pairs(dataset: Any) -> dict[tuple[str, str], int]:
    """Return the number of rows of each pair of languages; order and errors as of :func:`pair_rows`."""
    numbers: dict[tuple[str, str], int] = {}
    counts: Counter[int] = Counter()
    for places in _pair_numbers(dataset, numbers):
        counts.update(dict(enumerate(np.bincount(places).tolist())))
    return {pair: counts[number] for pair, number in numbers.items()}


def _pair_numbers(dataset: Any, numbers: dict[tuple[str, str], int]) -> Iterator[np.ndarray]:
    """The number of each row's pair of languages, batch by batch; ``numbers`` learns the pairs."""
    import pyarrow.compute as pc

    missing = [name for name in LANGUAGE_COLUMNS if name not in dataset.column_names]
    if missing:
        raise ValueError(
            f"balancing languages and batches of one pair need the columns {' and '.join(LANGUAGE_COLUMNS)}: the data "
            f"set has {', '.join(dataset.column_names)}; add them, or leave these options out."
        )
    first = 0
    for batch in dataset.select_columns(list(LANGUAGE_COLUMNS)).with_format("arrow").iter(batch_size=100_000):
        # One text for both, which Arrow numbers at once; no language code holds a tab.
        joined = pc.binary_join_element_wise(*(batch[name] for name in LANGUAGE_COLUMNS), "\t").combine_chunks()
        if joined.null_count:
            row = first + pc.index(joined.is_null(), True).as_py()
            raise ValueError(
                f"row {row} of the data set has no language: name it, or {UNKNOWN!r} where it is not known."
            )
        first += len(joined)
        encoded = joined.dictionary_encode()
        pairs = [text.partition("\t")[::2] for text in encoded.dictionary.to_pylist()]
        places = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs])
        yield places[encoded.indices.to_numpy()]


def draw(rows: np.ndarray, count: int, *, epoch: int, seed: Sequence[int]) -> np.ndarray:
    """The rows that one language gives to one epoch.

    They are a stretch of an endless row of shuffled passes: epoch ``e`` takes places ``e · count`` to
    ``(e + 1) · count``. So a small language is repeated evenly, a large one continues where the last epoch stopped, and
    any epoch can be drawn without those before it.

    Args:
        rows: Row numbers of the language.
        count: How many to draw.
        epoch: Counted from 0.
        seed: Numbers that belong to the run and the language.
    """
    first, end = epoch * count, (epoch + 1) * count
    passes = range(first // len(rows), -(-end // len(rows)))
    drawn = np.concatenate([rows[shuffled(len(rows), [*seed, number])] for number in passes] or [rows[:0]])
    start = first - passes.start * len(rows)
    return drawn[start : start + count]


def shuffled(count: int, seed: Sequence[int]) -> np.ndarray:
    """A permutation that is a function of the numbers in ``seed``. *Shape:* ``(count,)``"""
    # A sequence of seeds keeps [0, 1] and [1, 0] apart, which a sum would not.
    return np.random.default_rng([number % 2**64 for number in seed]).permutation(count)
