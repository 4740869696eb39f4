"""Translation, search and old languages: what a training gains and loses, by the tasks of a comparison.

:func:`measure_axes` evaluates one model, :func:`compare_axes` the same items before and after a training, with an
interval of the difference and a paired test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from st_xling.evaluation.compare.data import ComparisonData
from st_xling.evaluation.compare.run import describe_model, run_task
from st_xling.evaluation.compare.statistics import MEAN, ItemResults, Measure, compare_values, holm
from st_xling.evaluation.compare.tasks import COMPARISON_TASKS, LabelResults, Session
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.languages import canonical_language, language_name
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.utils.resumable import ResumableFolder

TRANSLATION = "translation"
OLD_LANGUAGES = "translation, other languages"
RETRIEVAL = "retrieval"
MIXED_POOL = "retrieval, mixed pool"

_BEFORE = "before"
_AFTER = "after"

# File of the results of the start, in the folder ``training`` of a run.
_BEFORE_FILE = "before.json"


class _Part(NamedTuple):
    """Results of a task whose labels are those of one axis.

    Attributes:
        axis: Name of the axis.
        task: Name of the task.
        has: Returns whether a label belongs to the axis.
    """

    axis: str
    task: str
    has: Callable[[str], bool]


class AxisChange(TypedDict):
    """An axis before and after a training, as JSON has it.

    Attributes:
        axis: Name of the axis.
        measure: Name of the measure, a fraction of which higher is better.
        labels: Languages, or pairs of the languages of questions and passages, of which the values are the mean.
        before: Value before.
        after: Value after.
        difference: After minus before.
        low: Lower end of its 95 % bootstrap interval.
        high: Upper end.
        p: p-value of a paired permutation test, corrected for the number of axes.
    """

    axis: str
    measure: str
    labels: list[str]
    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class AxisResults:
    """Results of one model on all axes.

    Attributes:
        axes: Name of the axis → label → results of its items.
    """

    axes: Mapping[str, LabelResults]

    def value(self, axis: str, labels: Collection[str] | None = None) -> float:
        """Return the mean of an axis over its labels, or over some of them. In [0, 1]"""
        measure = axis_measure(axis)
        values: list[float] = []
        for label, results in self.axes[axis].items():
            if labels is None or label in labels:
                values.append(float(measure.value(measure.table(results).sum(axis=0))))
        return sum(values) / len(values)

    def passage_languages(self) -> list[str]:
        """Return the languages of the passages of :data:`RETRIEVAL`."""
        return list(dict.fromkeys(passage_language(label) for label in self.axes.get(RETRIEVAL, ())))


def passage_language(label: str) -> str:
    """Return the language of the passages of a label of :data:`RETRIEVAL`.

    Example:
        >>> passage_language("deu-eng"), passage_language("eng")
        ('eng', 'eng')
    """
    return label.rpartition("-")[2]


def axis_measure(axis: str) -> Measure:
    """Return the measure of an axis, the first of its task."""
    tasks = {TRANSLATION: "tatoeba", OLD_LANGUAGES: "tatoeba", RETRIEVAL: "retrieval", MIXED_POOL: "pool"}
    return COMPARISON_TASKS[tasks[axis]].measures[0]


def measure_axes(
    model: SentenceTransformer,
    data: ComparisonData,
    *,
    name: str,
    old_languages: Collection[str] | None = None,
    learned_languages: Collection[str] | None = None,
    folder: ResumableFolder | None = None,
    within: str = "",
    show_progress_bar: bool = False,
) -> AxisResults:
    """Evaluate an encoder on every axis that the data allow.

    Args:
        model: The encoder.
        data: Translation pairs and retrieval sets, from
            :func:`~st_xling.evaluation.compare.load_comparison_data`.
        name: Name of the model, of its files in ``folder``.
        old_languages: Languages whose pairs are an axis of their own; others are those that were learned.
        learned_languages: The same from the other side: all others are old. ``None`` with ``old_languages=None``: all
            pairs are one axis.
        folder: Folder for results: those of a model and data that were measured before are read.
        within: Folder in it for their files.
        show_progress_bar: Whether to show a progress bar.

    Raises:
        ValueError: No pairs and no sets.
    """
    old = {canonical_language(code) for code in old_languages or ()}
    learned = None if learned_languages is None else {canonical_language(code) for code in learned_languages}

    def is_old(label: str) -> bool:
        return label in old or (learned is not None and label not in learned)

    parts = (
        _Part(TRANSLATION, "tatoeba", lambda label: not is_old(label)),
        _Part(OLD_LANGUAGES, "tatoeba", is_old),
        _Part(RETRIEVAL, "retrieval", lambda label: True),
        _Part(MIXED_POOL, "pool", lambda label: True),
    )
    session = Session(model, data, show_progress_bar=show_progress_bar)
    facts = describe_model(name, name, model)
    results_of_tasks: dict[str, LabelResults] = {}
    axes: dict[str, LabelResults] = {}
    for part in parts:
        task = COMPARISON_TASKS[part.task]
        if not getattr(data, task.needs):
            continue
        if part.task not in results_of_tasks:
            results_of_tasks[part.task] = run_task(part.task, task, session, facts, folder, within=within)
        chosen = {label: items for label, items in results_of_tasks[part.task].items() if part.has(label)}
        if chosen:
            axes[part.axis] = chosen
    if not axes:
        raise ValueError("translation pairs with English, or passages with queries, are needed: got neither.")
    return AxisResults(axes)


def compare_axes(
    before: AxisResults, after: AxisResults, *, samples: int = 1000, swaps: int = 10_000, seed: int = 0
) -> list[AxisChange]:
    """Compare the means of each axis before and after a training, on the same items.

    Args:
        before: Results of the start.
        after: Results of the trained model, on the same data.
        samples: Samples of the bootstrap.
        swaps: Random swaps of each permutation test.
        seed: Seed of all draws.

    Returns:
        A row for each axis, in their order; p-values are corrected by Holm over all of them.
    """
    changes: list[AxisChange] = []
    for axis, results in before.axes.items():
        measure = axis_measure(axis)
        both = {_AFTER: after.axes[axis], _BEFORE: results}
        values, tests = compare_values(measure, both, seed=seed, samples=samples, swaps=swaps)
        label = MEAN if len(results) > 1 else next(iter(results))
        [test] = [test for test in tests if test["label"] == label]
        changes.append(
            {
                "axis": axis,
                "measure": measure.name,
                "labels": list(results),
                "before": float(values[_BEFORE][label][0]),
                "after": float(values[_AFTER][label][0]),
                "difference": float(test["difference"]),
                "low": float(test["low"]),
                "high": float(test["high"]),
                "p": float(test["p"]),
            }
        )
    for change, p in zip(changes, holm([change["p"] for change in changes])):
        change["p"] = float(p)
    return changes


class BeforeAfter:
    """Measures an encoder before and after its training, for ``results.json`` and the card.

    Results of the start are in the run's ``training`` folder, so that a run that is resumed has them.

    Args:
        data: Translation pairs and retrieval sets, from
            :func:`~st_xling.evaluation.compare.load_comparison_data`.
        learned_languages: Languages of the training data: the pairs of others are an axis of their own.
    """

    def __init__(self, data: ComparisonData, learned_languages: Collection[str] | None = None) -> None:
        self.data = data
        self.learned_languages = learned_languages

    def begin(self, model: SentenceTransformer, training: Path) -> None:
        """Measure the model before its first step, and save the results in the folder ``training``."""
        axes = self._measure(model, "before").axes
        content: dict[str, Any] = {}
        for axis, results in axes.items():
            content[axis] = {label: vars(items) for label, items in results.items()}
        text = json.dumps(content, default=np.ndarray.tolist)
        write_atomic(training / _BEFORE_FILE, text.encode("utf-8"))

    def end(self, model: SentenceTransformer, folder: Path) -> dict[str, Any]:
        """Measure the trained model, and add the comparison to ``results.json`` in the run's folder.

        Returns:
            ``changes``, see :class:`AxisChange`, and ``signature``.

        Raises:
            ValueError: The start was not measured, as in a run that was begun without.
        """
        path = folder / "training" / _BEFORE_FILE
        if not path.is_file():
            raise ValueError(
                f"{path} is missing, the measures before training: the run was begun without --measure; evaluate its "
                "start and the result by st-xling compare."
            )
        saved = json.loads(path.read_text(encoding="utf-8"))
        axes: dict[str, dict[str, ItemResults]] = {}
        for axis, items_of_labels in saved.items():
            axes[axis] = {label: ItemResults(**items) for label, items in items_of_labels.items()}
        changes = compare_axes(AxisResults(axes), self._measure(model, "after"))
        content = {"changes": changes, "signature": axes_signature(self.data, changes)}
        results = read_json_object(folder / "results.json")
        write_json(folder / "results.json", {**results, "before_after": content})
        return content

    def _measure(self, model: SentenceTransformer, name: str) -> AxisResults:
        was_training = model.training
        results = measure_axes(model, self.data, name=name, learned_languages=self.learned_languages)
        model.train(was_training)
        return results


def axes_signature(data: ComparisonData, changes: list[AxisChange], *, samples: int = 1000, seed: int = 0) -> str:
    """Return the signature of a comparison before and after a training."""
    return sign(
        "axes",
        languages=list(data.pairs) or None,
        passages=[retrieval_set.language for retrieval_set in data.sets] or None,
        measures=list(dict.fromkeys(change["measure"] for change in changes)),
        interval=f"bootstrap,0.95,{samples}",
        tests=f"swaps,holm,{len(changes)}",
        seed=seed,
        data=f"{data.name}@{sha8(data.sha8)}",
    )


def axes_rows(changes: list[AxisChange]) -> list[list[str]]:
    """Return the rows of the table: axis with measure, before, after, difference with interval, p."""
    rows: list[list[str]] = []
    for change in changes:
        difference = f"{100 * change['difference']:+.1f}"
        interval = f"[{100 * change['low']:+.1f}, {100 * change['high']:+.1f}]"
        rows.append(
            [
                f"{change['axis']}: {change['measure']}",
                f"{100 * change['before']:.1f}",
                f"{100 * change['after']:.1f}",
                f"{difference} {interval}",
                f"{change['p']:.2g}",
            ]
        )
    return rows


AXES_HEAD = ["in %", "before", "after", "difference, 95 % interval", "p"]
"""Head of the table of :func:`axes_rows`."""


def axes_table(content: Mapping[str, Any]) -> str:
    """Format the rows of ``results.json["before_after"]`` as plain text, with its signature."""
    changes = list(content["changes"])
    lines = [format_table(AXES_HEAD, axes_rows(changes))]
    for change in changes:
        if len(change["labels"]) > 1:
            lines.append(f"{change['axis']}: mean of {', '.join(map(label_name, change['labels']))}")
    return "\n".join([*lines, content["signature"]])


def label_name(label: str) -> str:
    """Return the name of a language, or of those of questions and passages.

    Example:
        >>> label_name("deu"), label_name("deu-eng")
        ('German', 'German in English')
    """
    return " in ".join(language_name(code) for code in label.split("-"))
