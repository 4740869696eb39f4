"""Values with intervals from what was noted of each item, paired tests of models, and the order that they allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from st_xling.evaluation.ranking import bootstrap_means

#: Values in the table, and in the random swaps of a test, looked at together.
_AT_ONCE = 2**22

MEAN = "mean"
"""Label of the macro average over languages."""

ALPHA = 0.05

_ROUNDING = 1e-9


class Measure(NamedTuple):
    """A ratio of two sums over items, so that shares, F1 and speeds are resampled alike; or the skewness of a column.

    Attributes:
        name: Of the measure.
        top: Columns whose sum is the numerator.
        bottom: Those of the denominator; ``"1"`` counts items.
        higher: Whether higher is better.
        unit: ``"%"``: fractions in percent; otherwise what stands behind the number.
        decimals: Shown.
        tested: Whether models are compared by it.
        interval: Whether items are a sample of something.
    """

    name: str
    top: tuple[str, ...]
    bottom: tuple[str, ...] = ("1",)
    higher: bool = True
    unit: str = "%"
    decimals: int = 1
    tested: bool = False
    interval: bool = True

    def table(self, cell: Cell) -> np.ndarray:
        """What is summed. *Shape:* ``(items, 2)``, or ``(items, 4)`` of skewness"""
        columns = {name: np.asarray(column, np.float64) for name, column in cell.columns.items()}
        columns["1"] = np.ones(len(next(iter(columns.values()))))
        if not self.bottom:
            return np.stack([columns[self.top[0]] ** power for power in range(4)], axis=1)
        return np.stack([np.sum([columns[name] for name in part], axis=0) for part in (self.top, self.bottom)], axis=1)

    def value(self, sums: np.ndarray) -> np.ndarray:
        """The measure from sums, or means, of :meth:`table`; 0 where nothing can be divided by."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.bottom:
                values = sums[..., 0] / sums[..., 1]
            else:
                _, first, second, third = np.moveaxis(sums / sums[..., :1], -1, 0)
                variance = second - first**2
                values = (third - 3 * first * second + 2 * first**3) / np.maximum(variance, 1e-12) ** 1.5
        return np.nan_to_num(values, posinf=0.0, neginf=0.0)


@dataclass(frozen=True)
class Cell:
    """What a model did with the items of one language.

    Attributes:
        items: Digest of the items in their order: cells of one digest are resampled alike, so that translations of one
            question into several languages are drawn together.
        columns: Name → a number for each item.
    """

    items: str
    columns: Mapping[str, ArrayLike]

    def __len__(self) -> int:
        return len(np.asarray(next(iter(self.columns.values()))))


class Comparison(NamedTuple):
    """One test.

    Attributes:
        label: A language, or :data:`MEAN`.
        first: Name of a model.
        second: Of another.
        difference: First less second.
        low: Lower end of its interval.
        high: Upper end.
        p: Two-sided.
    """

    label: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float


class Values(NamedTuple):
    """A measure of all models.

    Attributes:
        values: Model → label → value, ends of the interval, items.
        comparisons: Of each label, between each two models.
    """

    values: dict[str, dict[str, tuple[float, float, float, int]]]
    comparisons: list[Comparison]


def compare(
    measure: Measure, cells: Mapping[str, Mapping[str, Cell]], *, seed: int = 0, samples: int = 1000, swaps: int = 10000
) -> Values:
    """Values with bootstrap intervals, and paired permutation tests.

    A test swaps the two models' results of each item by a coin, and counts how often the difference is then at least as
    large as the measured one. The mean over languages is tested by the mean of these differences.

    Args:
        measure: What is compared.
        cells: Model → language → what was noted; the same languages and items for all models.
        seed: Of all draws.
        samples: Of the bootstrap.
        swaps: Of a test.
    Source:
        Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3; Noreen 1989, "Computer-Intensive
        Methods for Testing Hypotheses", chapter 2 (approximate randomisation).
    """
    models = list(cells)
    labels = list(cells[models[0]])
    pairs = list(combinations(models, 2)) if measure.tested else []
    point: dict[str, dict[str, float]] = {model: {} for model in models}
    drawn: dict[str, dict[str, np.ndarray]] = {model: {} for model in models}
    swapped: dict[tuple[str, str], dict[str, np.ndarray]] = {pair: {} for pair in pairs}
    for label in labels:
        tables = {model: measure.table(cells[model][label]) for model in models}
        key = [seed, int(cells[models[0]][label].items, 16)]
        joined = np.concatenate(list(tables.values()), axis=1)
        parts = np.split(bootstrap_means(joined, samples=samples, seed=key), len(models), axis=1)
        for model, part in zip(models, parts):
            point[model][label] = float(measure.value(tables[model].sum(axis=0)))
            drawn[model][label] = measure.value(part)
        for pair, differences in zip(pairs, _swapped(measure, tables, pairs, key, swaps)):
            swapped[pair][label] = differences
    if len(labels) > 1:
        for model in models:
            point[model][MEAN] = float(np.mean(list(point[model].values())))
            drawn[model][MEAN] = np.mean(list(drawn[model].values()), axis=0)
        for pair in pairs:
            swapped[pair][MEAN] = np.mean(list(swapped[pair].values()), axis=0)
    comparisons = []
    for first, second in pairs:
        for label, by_chance in swapped[first, second].items():
            gap = point[first][label] - point[second][label]
            extreme = np.count_nonzero(np.abs(by_chance) >= abs(gap) - _ROUNDING)
            ends = _interval(drawn[first][label] - drawn[second][label])
            comparisons.append(Comparison(label, first, second, gap, *ends, (1 + extreme) / (1 + swaps)))
    counts = {label: len(cells[models[0]][label]) for label in labels}
    counts[MEAN] = sum(counts.values())
    values = {
        model: {label: (value, *_interval(drawn[model][label]), counts[label]) for label, value in point[model].items()}
        for model in models
    }
    return Values(values, comparisons)


def _interval(drawn: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(drawn, [100 * ALPHA / 2, 100 - 100 * ALPHA / 2])
    return float(low), float(high)


def _swapped(
    measure: Measure, tables: Mapping[str, np.ndarray], pairs: Sequence[tuple[str, str]], key: Sequence[int], swaps: int
) -> np.ndarray:
    """Differences of each two models after random swaps. *Shape:* ``(pairs, swaps)``"""
    result = np.empty((len(pairs), swaps))
    both = [(tables[one], tables[other]) for one, other in pairs]
    # Items that both models did alike stay what they are: only the others are swapped, and looked at.
    differing = [np.flatnonzero((first != second).any(axis=1)) for first, second in both]
    for start, coins in _coins(len(next(iter(tables.values()))), swaps if pairs else 0, key):
        for place, ((first, second), rows) in enumerate(zip(both, differing)):
            moved = coins[:, rows].astype(np.float64) @ (first - second)[rows]
            gaps = measure.value(first.sum(axis=0) - moved) - measure.value(second.sum(axis=0) + moved)
            result[place, start : start + len(coins)] = gaps
    return result


def _coins(items: int, swaps: int, key: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    """The first swap, and a coin for each item and swap, whatever the models. *Shape:* ``(some swaps, items)``"""
    generator = np.random.default_rng([*key, 1])
    step = max(1, _AT_ONCE // max(1, items))
    for start in range(0, swaps, step):
        octets = generator.integers(256, size=(min(step, swaps - start), -(-items // 8)), dtype=np.uint8)
        yield start, np.unpackbits(octets, axis=1, count=items)


def holm(p_values: ArrayLike) -> np.ndarray:
    """p-values of several tests, corrected so that one false finding among all has at most the level's probability.

    Args:
        p_values: *Shape:* ``(tests,)``
    Returns:
        *Shape:* ``(tests,)``
    Source:
        Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure".
    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return corrected


def ranking(means: Mapping[str, float], better: set[tuple[str, str]], *, higher: bool = True) -> dict[str, Any]:
    """The order of models that the tests allow.

    Args:
        means: Model → value.
        better: ``(better model, worse model)``, for each test that found a difference.
        higher: Whether higher is better.
    Returns:
        ``groups``: lists of models, best first, each model of one better than each of the next; and ``text``.
    Example:
        >>> ranking({"a": 0.9, "b": 0.8, "c": 0.7}, {("a", "b"), ("a", "c")})["text"]
        'a > b = c'
    """
    order = sorted(means, key=lambda model: -means[model] if higher else means[model])
    cuts = [
        place
        for place in range(1, len(order))
        if all((one, other) in better for one in order[:place] for other in order[place:])
    ]
    groups = [order[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(order)])]
    # Between two of a group a difference may have been found that leaves a third in between.
    loose = [f"{one} > {other}" for group in groups for one, other in combinations(group, 2) if (one, other) in better]
    text = " > ".join(" = ".join(group) for group in groups)
    if len(groups) == 1:
        text = f"no order, but {', '.join(loose)}" if loose else "not distinguishable"
    elif loose:
        text += f" ({', '.join(loose)})"
    return {"groups": groups, "text": text}
