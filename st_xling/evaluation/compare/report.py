"""The result of a comparison: as a table, and as one page of HTML without scripts, fonts or network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.evaluation.results import EvaluationResult
from st_xling.utils.languages import language_name
from st_xling.utils.paths import without_folders
from st_xling.utils.tables import Column, Row, format_table

_TEMPLATE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class ComparisonReport:
    """The result of :func:`~st_xling.evaluation.compare.compare_models`.

    Attributes:
        content: What JSON gets: ``models``, ``tasks`` with values, comparisons and orders, ``not_compared``, and the
            settings.
    """

    content: dict[str, Any]

    @property
    def signature(self) -> str:
        return self.content["signature"]

    def as_dict(self) -> dict[str, Any]:
        """Return the content, for JSON."""
        return self.content

    def result(self, name: str) -> EvaluationResult:
        """Return the shares of one model with their intervals, for its card."""
        metrics = {
            f"{task['title']}: {measure['name']}": dict(zip(("value", "low", "high"), value))
            for task in self.content["tasks"].values()
            for measure in task["measures"]
            if measure["unit"] == "%" and measure["interval"]
            if (value := measure["values"].get(name, {}).get(task["overall"])) is not None
        }
        rows = [Row(label, [own["value"]], intervals=[[own["low"], own["high"]]]) for label, own in metrics.items()]
        (signature,) = (model["signature"] for model in self.content["models"] if model["name"] == name)
        return EvaluationResult(metrics, [Column("score", "score")], rows, signature)

    def table(self) -> str:
        """Format the means with intervals, the order of models, the differences, and what was not compared."""
        names = [model["name"] for model in self.content["models"]]
        rows, gaps = [], []
        for task in self.content["tasks"].values():
            for measure in task["measures"]:
                title = f"{task['title']}: {measure['name']}"
                overall = [measure["values"].get(name, {}).get(task["overall"]) for name in names]
                row = [title, *(format_value(measure, value) for value in overall)]
                rows.append([*row, measure.get("ranking", {}).get("text", "")] if len(names) > 1 else row)
                gaps += [
                    [f"{title}, {gap['first']} − {gap['second']}", *format_difference(measure, gap)]
                    for gap in measure.get("comparisons", ())
                    if gap["label"] == task["overall"]
                ]
        lines = [format_table(["measure", *names, *(["order"] if len(names) > 1 else [])], rows)]
        if gaps:
            lines += ["", format_table(["difference of means", "", "p"], gaps)]
        for model in self.content["models"]:
            search = f"; search{_used(model['search'])}" if model["search"] != model["options"] else ""
            lines.append(f"{model['name']}: {model['model']}{_used(model['options'])}{search}")
        for task in self.content["tasks"].values():
            if len(task["labels"]) > 1:
                lines.append(f"mean of {task['title']}: {', '.join(task['labels'])}")
        lines += [f"not compared: {each['what']}: {each['why']}" for each in self.content["not_compared"]]
        return "\n".join([*lines, self.signature])

    def page(self) -> str:
        """Render a page of HTML that needs nothing else."""
        from jinja2 import Environment

        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        names = [model["name"] for model in self.content["models"]]
        tasks = self.content["tasks"].values()
        return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
            comparison=self.content,
            names=names,
            color={name: place % 8 for place, name in enumerate(names)},
            value=format_value,
            difference=format_difference,
            strip=_strip,
            heat=_heat,
            path=without_folders,
            items=lambda measure, labels: [next(iter(measure["values"].values()))[label][3] for label in labels],
            main=lambda task: [each for place, each in enumerate(task["measures"]) if not place or each["tested"]],
            tested=[(task, each) for task in tasks for each in task["measures"] if "comparisons" in each],
            language=lambda code: language_name(code) if "-" not in code else code,
            version=__version__,
        )


def _used(options: Mapping[str, str]) -> str:
    return "".join(f", {name.replace('_', ' ')} {value!r}" for name, value in options.items())


def format_value(measure: Mapping[str, Any], value: Sequence[float] | None) -> str:
    """Format a value with its interval; ``-`` without a value."""
    if value is None:
        return "-"
    factor, decimals = (100 if measure["unit"] == "%" else 1), measure["decimals"]
    point, low, high = (f"{factor * number:,.{decimals}f}" for number in value[:3])
    return f"{point} [{low}, {high}]" if measure["interval"] else point


def format_difference(measure: Mapping[str, Any], gap: Mapping[str, Any]) -> tuple[str, str]:
    """Format a difference with its interval, and the corrected p."""
    factor, decimals = (100 if measure["unit"] == "%" else 1), measure["decimals"]
    point, low, high = (f"{factor * gap[name]:+.{decimals}f}" for name in ("difference", "low", "high"))
    return f"{point} [{low}, {high}]", f"{gap['p_corrected']:.2g}"


def _strip(measure: Mapping[str, Any], label: str) -> list[dict[str, Any]]:
    """Place each model's value and interval on a line, in percent of its width."""
    values = {model: own[label][:3] for model, own in measure["values"].items()}
    numbers = [number for own in values.values() for number in own]
    room = 0.06 * (max(numbers) - min(numbers)) or abs(max(numbers)) * 0.1 or 0.01
    start, width = min(numbers) - room, max(numbers) - min(numbers) + 2 * room
    strips = []
    for model, own in values.items():
        point, low, high = (round(100 * (number - start) / width, 2) for number in own)
        strips.append({"name": model, "text": format_value(measure, own), "at": point, "low": low, "high": high})
    return strips


def _heat(measure: Mapping[str, Any], labels: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return model → language → how good a value is among all of the measure, from 0 to 1."""
    sign = 1 if measure["higher"] else -1
    values = {model: {label: sign * own[label][0] for label in labels} for model, own in measure["values"].items()}
    numbers = [number for own in values.values() for number in own.values()]
    low, high = min(numbers), max(numbers)
    return {
        model: {label: (number - low) / (high - low) if high > low else 0.5 for label, number in own.items()}
        for model, own in values.items()
    }
