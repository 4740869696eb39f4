"""Values of all models with bootstrap intervals, paired permutation tests, and the order that the tests allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from st_xling.evaluation.measures import AT_ONCE, resample

if TYPE_CHECKING:
    from typing_extensions import NotRequired

MEAN = "mean"
"""Label of the macro average over languages."""

ALPHA = 0.05


class Measure(NamedTuple):
    """A ratio of two sums over items, so that shares, F1 and speeds are resampled alike.

    Attributes:
        name: Name of the measure.
        top: Columns whose sum is the numerator.
        bottom: Columns whose sum is the denominator; ``"1"`` counts items.
        higher: Whether higher is better.
        unit: ``"%"``: fractions, shown in percent; otherwise ``""``.
        decimals: Number of decimals shown.
        tested: Whether models are tested by it.
        interval: Whether the items are a sample, so that the value has an interval.
    """

    name: str
    top: tuple[str, ...]
    bottom: tuple[str, ...] = ("1",)
    higher: bool = True
    unit: str = "%"
    decimals: int = 1
    tested: bool = False
    interval: bool = True

    def table(self, results: ItemResults) -> np.ndarray:
        """Return the summands of each item. *Shape:* ``(items, 2)``"""
        columns = {name: np.asarray(column, np.float64) for name, column in results.columns.items()}
        columns["1"] = np.ones(len(results))
        numerators = np.sum([columns[name] for name in self.top], axis=0)
        denominators = np.sum([columns[name] for name in self.bottom], axis=0)
        return np.stack([numerators, denominators], axis=1)

    def value(self, sums: np.ndarray) -> np.ndarray:
        """Compute the measure from sums of :meth:`table` in the last axis; 0 where the denominator is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(sums[..., 0] / sums[..., 1], posinf=0.0, neginf=0.0)


@dataclass(frozen=True)
class ItemResults:
    """Results of a model on the items of one language.

    Attributes:
        items: Digest of the items in their order. Results of equal digests are resampled together, such as those of
            translations of the same questions into several languages.
        columns: Name → a number for each item.
    """

    items: str
    columns: Mapping[str, ArrayLike]

    def __len__(self) -> int:
        return len(np.asarray(next(iter(self.columns.values()))))


#: Label → value, lower and upper end of its interval, number of items.
LabelValues: TypeAlias = dict[str, tuple[float, float, float, int]]


class PairedTest(TypedDict):
    """A test of two models by one measure.

    Attributes:
        label: A language, or :data:`MEAN`.
        first: Name of the first model.
        second: Name of the second model.
        difference: Value of the first model minus that of the second.
        low: Lower end of the interval of the difference.
        high: Upper end.
        p: p-value, two-sided and not corrected.
        p_corrected: The same, corrected for all tests of the comparison.
        significant: Whether the corrected p-value is below :data:`ALPHA`.
    """

    label: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: NotRequired[float]
    significant: NotRequired[bool]


class Ranking(TypedDict):
    """Order of models.

    Attributes:
        groups: Lists of models, best first, each model of one better than each of the next.
        text: The same as text, such as ``"a > b = c"``.
    """

    groups: list[list[str]]
    text: str


class MeasureContent(TypedDict):
    """Values and tests of a measure, as the report has them; see :class:`Measure` for the first keys.

    Attributes:
        values: Model → values.
        comparisons: Tests, if models are tested by the measure.
        ranking: Order of the models by the mean.
        orders: Label → groups of the order, see :class:`Ranking`.
    """

    name: str
    top: tuple[str, ...]
    bottom: tuple[str, ...]
    higher: bool
    unit: str
    decimals: int
    tested: bool
    interval: bool
    values: dict[str, LabelValues]
    comparisons: NotRequired[list[PairedTest]]
    ranking: NotRequired[Ranking]
    orders: NotRequired[dict[str, list[list[str]]]]


def compare_values(
    measure: Measure,
    results: Mapping[str, Mapping[str, ItemResults]],
    *,
    seed: int = 0,
    samples: int = 1000,
    swaps: int = 10000,
) -> tuple[dict[str, LabelValues], list[PairedTest]]:
    """Compute values with percentile bootstrap intervals over items, and paired permutation tests.

    A test swaps the two models' results of each item at random, and counts how often the difference is then at least as
    large as the measured one; all swaps are enumerated where there are no more than ``swaps``. The mean over languages
    is tested by the mean of these differences.

    Args:
        measure: The measure that is compared.
        results: Model → language → results; the same languages and items for all models.
        seed: Seed of all draws.
        samples: Samples of the bootstrap.
        swaps: Random swaps of each test.

    Returns:
        Model → values; and a test of each two models for each label, whose p-value is not corrected.
    Source:
        Efron and Tibshirani 1993, "An Introduction to the Bootstrap", section 13.3; Noreen 1989, "Computer-Intensive
        Methods for Testing Hypotheses", chapter 2 (approximate randomization).
    """
    models = list(results)
    # The items of a language are the same for all models.
    languages = results[models[0]]
    labels = [*languages, MEAN] if len(languages) > 1 else [*languages]
    # Label → summands of each model's items. Shape: (models, items, 2)
    tables: dict[str, np.ndarray] = {}
    for label in languages:
        tables[label] = np.stack([measure.table(by_language[label]) for by_language in results.values()])
    n_tested = len(models) if measure.tested else 0
    firsts, seconds = np.triu_indices(n_tested, 1)
    # A row for each model, then for each pair of models; in a row a triple for each label.
    numbers = _values_and_differences(measure, tables, languages, firsts, seconds, samples=samples, seed=seed).tolist()

    counts = [len(language) for language in languages.values()]
    counts.append(sum(counts))
    values: dict[str, LabelValues] = {}
    for model, triples in zip(models, numbers):
        values[model] = {label: (*triple, count) for label, triple, count in zip(labels, triples, counts)}
    comparisons: list[PairedTest] = []
    for first, second, triples in zip(firsts, seconds, numbers[len(models) :]):
        tables_of_pair = {label: table[[first, second]] for label, table in tables.items()}
        p_values = _permutation_p(measure, tables_of_pair, languages, seed=seed, swaps=swaps).tolist()
        for label, (difference, low, high), p in zip(labels, triples, p_values):
            comparisons.append(
                {
                    "label": label,
                    "first": models[first],
                    "second": models[second],
                    "difference": difference,
                    "low": low,
                    "high": high,
                    "p": p,
                }
            )
    return values, comparisons


def _values_and_differences(
    measure: Measure,
    tables: Mapping[str, np.ndarray],
    languages: Mapping[str, ItemResults],
    firsts: np.ndarray,
    seconds: np.ndarray,
    *,
    samples: int,
    seed: int,
) -> np.ndarray:
    """Compute the value of each model and the difference of each pair of models, with the ends of their intervals.

    Args:
        measure: The measure.
        tables: Label → summands of each model's items. *Shape:* ``(models, items, 2)`` each
        languages: Label → results of any model.
        firsts: Indices of the first models of the pairs.
        seconds: Indices of the second models of the pairs.
        samples: Samples of the bootstrap.
        seed: Seed of the draw.

    Returns:
        Value, lower and upper end. *Shape:* ``(models + pairs, labels, 3)``
    """

    def compute(sums: Sequence[np.ndarray]) -> np.ndarray:
        """Compute them from sums of each language, *shape:* ``(models, …, 2)``, as ``(models + pairs, …, labels)``."""
        values = _append_mean([measure.value(sums_of_language) for sums_of_language in sums])
        return np.concatenate([values, values[firsts] - values[seconds]])

    low = high = points = compute([table.sum(axis=1) for table in tables.values()])
    # A language of one item has nothing to resample.
    sizes = {language.items: len(language) for language in languages.values() if len(language) > 1}
    if measure.interval and sizes:

        def compute_samples(times: Sequence[np.ndarray]) -> np.ndarray:
            times_by_items = dict(zip(sizes, times))
            once = np.ones((len(times[0]), 1))
            sums = [times_by_items.get(languages[label].items, once) @ table for label, table in tables.items()]
            return np.moveaxis(compute(sums), 1, -1)

        low, high = resample([*sizes.values()], compute_samples, samples=samples, seed=seed)
    return np.stack([points, low, high], axis=-1)


def _append_mean(values: Sequence[np.ndarray]) -> np.ndarray:
    """Stack the values of each language in the last axis, with their mean where there are several."""
    stacked = np.stack(values, axis=-1)
    if len(values) == 1:
        return stacked
    return np.concatenate([stacked, stacked.mean(axis=-1, keepdims=True)], axis=-1)


def _permutation_p(
    measure: Measure, tables: Mapping[str, np.ndarray], languages: Mapping[str, ItemResults], *, seed: int, swaps: int
) -> np.ndarray:
    """Return the two-sided p-value of each label. *Shape:* ``(labels,)``"""
    from scipy.stats import permutation_test

    # Swapping an item for which both models do the same changes nothing, so only the others are drawn.
    differing = {language.items: np.zeros(len(language), dtype=bool) for language in languages.values()}
    for label, (first, second) in tables.items():
        differing[languages[label].items] |= (first != second).any(axis=1)
    # The differing items of all languages have their signs one after the other; items → slice of the signs.
    slices: dict[str, slice] = {}
    total = 0
    for items, rows in differing.items():
        n_differing = int(rows.sum())
        slices[items] = slice(total, total + n_differing)
        total += n_differing

    def statistic(signs: np.ndarray, axis: int) -> np.ndarray:
        gaps = []
        for label, (first, second) in tables.items():
            items = languages[label].items
            half = (first.sum(axis=0) + second.sum(axis=0)) / 2
            # With sign 1 an item stays with its model, with -1 it is swapped.
            moved = signs[..., slices[items]] @ (first - second)[differing[items]] / 2
            gaps.append(measure.value(half + moved) - measure.value(half - moved))
        # Rounded, so that differences that are equal but for the order of additions count as equal.
        return np.round(np.abs(_append_mean(gaps)), 9)

    if total < 2:  # swapping one item turns the difference around, and its size stays
        n_labels = len(tables) + 1 if len(tables) > 1 else 1
        return np.ones(n_labels)
    return permutation_test(
        [np.ones(total)],
        statistic,
        permutation_type="samples",
        n_resamples=swaps,
        batch=max(1, AT_ONCE // total),
        vectorized=True,
        alternative="greater",
        rng=np.random.default_rng([seed, 1]),
    ).pvalue


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct the p-values of several tests, so that one false finding among all has at most the level's probability.

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
    # The least p-value is multiplied by the number of tests, the next one by one less; none falls below an earlier one.
    scaled = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1.0, scaled)
    return corrected


def rank_label(measure: MeasureContent, label: str) -> Ranking:
    """Return the order of models that the tests of one label allow.

    A bias below 0, against a language, is not better than one above.

    Args:
        measure: The measure, of which ``values``, ``comparisons`` with ``significant``, and ``higher`` are used.
        label: A language, or :data:`MEAN`.

    Example:
        >>> values = {"a": {"deu": [0.9]}, "b": {"deu": [0.8]}}
        >>> test = {"label": "deu", "first": "a", "second": "b", "difference": 0.1, "significant": True}
        >>> rank_label({"values": values, "comparisons": [test], "higher": True}, "deu")["text"]
        'a > b'
    """
    means = {model: values[label][0] for model, values in measure["values"].items()}
    # Pairs of a model and a significantly worse one.
    better: set[tuple[str, str]] = set()
    for test in measure["comparisons"]:
        first = test["first"]
        second = test["second"]
        is_comparable = measure["higher"] or min(means[first], means[second]) >= 0
        if test["label"] == label and test["significant"] and is_comparable:
            is_first_better = (test["difference"] > 0) == measure["higher"]
            pair = (first, second) if is_first_better else (second, first)
            better.add(pair)

    order = sorted(means, key=lambda model: means[model], reverse=measure["higher"])
    groups = [order[:1]]
    for rank, model in enumerate(order[1:], 1):
        # A new group begins where every model so far is better than every later one.
        if better.issuperset(product(order[:rank], order[rank:])):
            groups.append([])
        groups[-1].append(model)
    text = " > ".join(" = ".join(group) for group in groups)
    return {"groups": groups, "text": text if len(groups) > 1 else "not distinguishable"}
