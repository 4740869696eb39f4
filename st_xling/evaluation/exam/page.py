"""The result of an exam as one page of HTML, which needs no network, no script and no font."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.evaluation.exam.run import shown, shown_difference
from st_xling.utils.languages import language_name
from st_xling.utils.paths import without_folders

_TEMPLATE = Path(__file__).with_name("page.html")


class Axis:
    """From values to places on a line, in percent of its width.

    Args:
        values: What has to be on it.
        zero: 0 as well, in the middle.
    """

    def __init__(self, values: Iterable[float], *, zero: bool = False) -> None:
        ends = list(values)
        self.low, self.high = min(ends), max(ends)
        if zero:
            self.high = max(abs(self.low), abs(self.high))
            self.low = -self.high
        room = 0.06 * (self.high - self.low) or abs(self.high) * 0.1 or 0.01
        self.low, self.high = self.low - room, self.high + room

    def __call__(self, value: float) -> float:
        """Where a value stands, in [0, 100]."""
        return round(100 * (value - self.low) / (self.high - self.low), 2)


def _axis(measure: Mapping[str, Any], label: str) -> Axis:
    """Of a measure's values with their intervals."""
    return Axis(number for values in measure["values"].values() if label in values for number in values[label][:3])


def _gap_axis(gaps: Iterable[Mapping[str, Any]]) -> Axis:
    return Axis((gap[end] for gap in gaps for end in ("low", "high", "difference")), zero=True)


def _heat(measure: Mapping[str, Any], labels: Iterable[str]) -> dict[str, dict[str, float]]:
    """Model → language → how good a value is among all of the measure, from 0 to 1."""
    values = {model: {label: own[label][0] for label in labels} for model, own in measure["values"].items()}
    numbers = [number for own in values.values() for number in own.values()]
    low, high = min(numbers), max(numbers)
    sign = 1 if measure["higher"] else -1
    start = low if measure["higher"] else high
    return {
        model: {label: sign * (number - start) / (high - low) if high > low else 0.5 for label, number in own.items()}
        for model, own in values.items()
    }


def _outcomes(measure: Mapping[str, Any], overall: str) -> list[dict[str, Any]]:
    """Of each two models: the difference of the means, and in which languages which one is better."""
    outcomes = []
    for gap in measure["comparisons"]:
        if gap["label"] != overall:
            continue
        pair = gap["first"], gap["second"]
        won: dict[str, list[str]] = {pair[0]: [], pair[1]: [], "": []}
        for other in measure["comparisons"]:
            if (other["first"], other["second"]) == pair and other["label"] != overall:
                ahead = pair[(other["difference"] > 0) != measure["higher"]]
                won[ahead if other["distinguishable"] else ""].append(other["label"])
        ahead = pair[(gap["difference"] > 0) != measure["higher"]]
        outcomes.append({**gap, "ahead": ahead, "won": won, "shown": shown_difference(measure, gap)})
    return outcomes


def _main(task: Mapping[str, Any]) -> list[Any]:
    """The measures that sum a task up: its first one, and those that are tested."""
    return [each for place, each in enumerate(task["measures"]) if not place or each["tested"]]


def exam_page(content: Mapping[str, Any]) -> str:
    """The page of an exam.

    Args:
        content: Of :meth:`ExamReport.as_dict`.
    """
    from jinja2 import Environment

    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    names = [model["name"] for model in content["models"]]
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        exam=content,
        names=names,
        colour={name: place % 8 for place, name in enumerate(names)},
        shown=shown,
        place=without_folders,
        axis=_axis,
        number=lambda measure, number: shown({**measure, "interval": False}, [number] * 3),
        gap_axis=_gap_axis,
        heat=_heat,
        outcomes=_outcomes,
        items=lambda measure, labels: [next(iter(measure["values"].values()))[label][3] for label in labels],
        main=_main,
        more=lambda task: [each for each in task["measures"] if each not in _main(task)],
        compared=[
            (task, measure)
            for task in content["tasks"].values()
            for measure in task["measures"]
            if "comparisons" in measure
        ],
        language=lambda code: language_name(code) if "-" not in code else code,
        version=__version__,
    )
