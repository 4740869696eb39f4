"""Compare several encoders: each task once for each model, resumed where it was stopped; values, tests and a page."""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from st_xling._version import __version__
from st_xling.data.spec import SpecOption, integer_at_least, read_options, split_options, unique_name
from st_xling.evaluation.compare.data import ComparisonData
from st_xling.evaluation.compare.statistics import ALPHA, MEAN, Cell, compare_values, holm, rank_label
from st_xling.evaluation.compare.tasks import TASKS, Cells, Session, Task, measure_speed
from st_xling.models import load_encoder
from st_xling.models.sidecar import model_fingerprint
from st_xling.models.view import EncoderLoadingOptions, model_options
from st_xling.utils.io import read_json_object, write_atomic, write_json
from st_xling.utils.languages import language_name
from st_xling.utils.paths import without_folders
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table
from st_xling.utils.terminal import duration, first_line

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

_TEMPLATE = Path(__file__).with_name("page.html")

# Options of a model that may follow its name, as in ``MODEL?prompt=query: &layer=7``.
_TEXT_OPTIONS = ["name", "prompt", "prompt_name", "passage_prompt", "pooling", "dtype", "backend", "revision", "device"]
_OPTIONS: dict[str, SpecOption] = dict.fromkeys(_TEXT_OPTIONS, SpecOption(str, "text"))
_OPTIONS |= dict.fromkeys(("layer", "truncate_dim", "max_length"), SpecOption(integer_at_least(1), "7, above 0"))

# Swaps of each test: enough for a p-value that remains significant after the correction over all tests.
_SWAPS, _SWAPS_PER_TEST = 10_000, 40


@dataclass(frozen=True)
class ModelSpec:
    """A model with options of its own.

    Attributes:
        name: Name in tables.
        model: Hub id or folder.
        options: See :func:`~st_xling.models.load_encoder`.
    """

    name: str
    model: str
    options: EncoderLoadingOptions = field(default_factory=EncoderLoadingOptions)


def parse_models(specs: Iterable[str], **options: Unpack[EncoderLoadingOptions]) -> list[ModelSpec]:
    """Parse the models of the command line.

    Args:
        specs: Hub ids or folders, each with its own options after ``?``, among them ``name``.
        options: Options of all models; those of a spec replace them.
    Raises:
        ValueError: An option that models do not take.
    Example:
        >>> [(each.name, dict(each.options)) for each in parse_models(["me/e5?prompt=query: ", "you/e5"], layer=7)]
        [('e5', {'layer': 7, 'prompt': 'query: '}), ('e5-2', {'layer': 7})]
    """
    models: dict[str, ModelSpec] = {}
    for spec in specs:
        place, query = split_options(spec)
        given = read_options(query, _OPTIONS, spec=spec)
        name = unique_name(given.pop("name", Path(place).name or place), models)
        # The names of _OPTIONS are those of the type.
        models[name] = ModelSpec(name, place, cast(EncoderLoadingOptions, {**options, **given}))
    return list(models.values())


def compare_models(
    models: Sequence[ModelSpec],
    data: ComparisonData,
    *,
    tasks: Collection[str] | None = None,
    out: str | Path | None = None,
    samples: int = 1000,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> ComparisonReport:
    """Compare encoders by the same items: which is better where, and is the difference significant?

    All models are loaded together, so that their speed is measured by turns.

    Args:
        models: The models, each with its own prompts and options.
        data: From :func:`load_comparison_data`; draws use its seed.
        tasks: Names; all by default.
        out: Folder for results, from which a stopped comparison is resumed, and for the page ``compare.html``.
        samples: Samples of the bootstrap.
        batch_size: Maximum batch size; chosen for the device by default.
        show_progress_bar: Whether to show a progress bar.
    Returns:
        Values with bootstrap intervals, paired tests corrected by Holm over all of them, and the order that they allow.
    Raises:
        ValueError: No model, two of one name, unknown tasks, no task that the data allow, no samples.
    """
    chosen = {name: task for name, task in TASKS.items() if tasks is None or name in tasks}
    unknown = sorted({*(tasks or ())} - {*TASKS})
    if unknown or not chosen:
        raise ValueError(f"tasks must be among {', '.join(TASKS)}: got {', '.join(unknown) or 'none'}.")
    names = [each.name for each in models]
    if not names or len({*names}) < len(names):
        raise ValueError(f"expected one model or more, of different names: got {', '.join(names) or 'none'}.")
    lacking = {name: task for name, task in chosen.items() if task.needs and not getattr(data, task.needs)}
    missing = [*data.missing, *(f"{task.title}: no data for it ({task.needs})" for task in lacking.values())]
    chosen = {name: task for name, task in chosen.items() if name not in lacking}
    if not chosen:
        raise ValueError(f"nothing could be compared: {'; '.join(missing)}.")
    folder = None if out is None else Path(out)
    if folder is not None:
        (folder / "results").mkdir(parents=True, exist_ok=True)
    loaded = {each.name: load_encoder(each.model, **each.options) for each in models}
    cells: dict[str, dict[str, Cells]] = {name: {} for name in chosen}
    if "speed" in chosen:
        cells["speed"] = measure_speed(loaded, data, batch_size=batch_size)
    facts: list[dict[str, Any]] = []
    for each in models:
        model = loaded[each.name]
        known = {"name": each.name, "model": each.model, "sha8": model_fingerprint(model)[:8]}
        facts.append({**known, "options": model_options(model), "search": model_options(model, retrieval=True)})
        session = Session(model, data, batch_size, show_progress_bar)
        for name, task in chosen.items():
            if task.run is not None:
                cells[name][each.name] = _run_task(name, task, session, facts[-1], folder)
    report = ComparisonReport(_content(facts, chosen, cells, data, missing, samples))
    if folder is not None:
        write_json(folder / "compare.json", report.content)
        write_atomic(folder / "compare.html", report.page().encode("utf-8"))
    return report


def _run_task(name: str, task: Task, session: Session, known: Mapping[str, Any], folder: Path | None) -> Cells:
    """Run a task of one model, unless an earlier run has finished it."""
    assert task.run is not None
    model = known["name"]
    part = session.data.sha8.get(task.needs) or session.data.sha8
    used = [known["sha8"], known["options"], known["search"]]
    fingerprint = sha8([used, name, part, session.data.seed, task.parts, __version__])
    # With the digits of the name: "a/b" and "a-b" must not share a file.
    stem = f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', model)}-{sha8(model)}"
    path = folder / "results" / f"{stem}.{name}.json" if folder else None
    cells = _stored_cells(path, fingerprint) if path else None
    if cells is None:
        start = time.perf_counter()
        try:
            cells = task.run(session)
        except ValueError as error:
            raise ValueError(f"{task.title}, {model}: {error}") from error
        logger.info("%s: %s, %s", model, name, duration(time.perf_counter() - start))
        if path:
            columns = {label: vars(cell) for label, cell in cells.items()}
            plain = json.loads(json.dumps(columns, default=np.ndarray.tolist))
            write_json(path, {"fingerprint": fingerprint, "sha8": sha8(plain), "cells": plain})
    return cells


def _stored_cells(path: Path, fingerprint: str) -> Cells | None:
    """Return the results of an earlier run; ``None`` if there are none, or of other models, data or versions.

    A damaged file, such as one that was cut short or edited, is named in a warning.
    """
    try:
        stored = read_json_object(path)
        if stored.get("fingerprint") != fingerprint:
            return None
        if stored.get("sha8") != sha8(stored.get("cells")):
            raise ValueError("its checksum is of other content")
    except ValueError as error:
        logger.warning("%s is damaged, so that its task runs again: %s", path.name, first_line(error))
        return None
    return {label: Cell(**cell) for label, cell in stored["cells"].items()}


def _content(
    models: list[dict[str, Any]],
    tasks: Mapping[str, Task],
    cells: Mapping[str, Mapping[str, Cells]],
    data: ComparisonData,
    missing: list[str],
    samples: int,
) -> dict[str, Any]:
    """Compute values, tests and orders from the results, task → model → language → items."""
    tests = 0
    for name, own in cells.items():
        languages = len(next(iter(own.values())))
        n_tested = sum(measure.tested for measure in tasks[name].measures)
        tests += n_tested * (languages + (languages > 1)) * math.comb(len(own), 2)
    swaps = max(_SWAPS, _SWAPS_PER_TEST * tests)
    contents: dict[str, Any] = {}
    comparisons: list[dict[str, Any]] = []
    for name, own in cells.items():
        task, labels = tasks[name], list(next(iter(own.values())))
        measures = []
        for measure in task.measures:
            values, tested = compare_values(measure, own, seed=data.seed, samples=samples, swaps=swaps)
            measures.append({**measure._asdict(), "values": values, **({"comparisons": tested} if tested else {})})
            comparisons += tested
        named = f"{data.name}@{data.sha8.get(task.needs) or sha8(data.sha8)}"
        repeats = data.repeats if task.needs == "pairs" else None
        parts = {"task": name, "languages": labels, **task.parts, "repeats": repeats, "seed": data.seed}
        used = "search" if task.needs == "pool" else "options"
        contents[name] = {
            "title": task.title,
            "what": task.what,
            "labels": labels,
            "overall": MEAN if len(labels) > 1 else labels[0],
            "measures": measures,
            "signatures": {each["name"]: sign("compare", **parts, data=named, model=each[used]) for each in models},
        }
    for test, p in zip(comparisons, holm([test["p"] for test in comparisons])):
        test["p_corrected"] = float(p)
        test["significant"] = bool(p < ALPHA)
    for content in contents.values():
        for tested in (each for each in content["measures"] if "comparisons" in each):
            tested["ranking"] = rank_label(tested, content["overall"])
            tested["orders"] = {label: rank_label(tested, label)["groups"] for label in content["labels"]}
    signature = sign(
        "compare",
        tasks=contents,
        interval=f"bootstrap,{1 - ALPHA:g},{samples}",
        tests=f"swaps,holm,{tests}",
        seed=data.seed,
        data=f"{data.name}@{sha8(data.sha8)}",
    )
    return {
        "models": models,
        "tasks": contents,
        "not_compared": missing,
        "tests": tests,
        "swaps": swaps,
        "samples": samples,
        "signature": signature,
    }


@dataclass(frozen=True)
class ComparisonReport:
    """The result of :func:`compare_models`: as a table, and as a page of HTML without scripts, fonts or network.

    Attributes:
        content: What JSON gets: ``models``, ``tasks`` with values, comparisons and orders, ``not_compared``, and the
            settings.
    """

    content: dict[str, Any]

    @property
    def signature(self) -> str:
        return self.content["signature"]

    def table(self) -> str:
        """Format the means with intervals, the order of models, the differences, and what was not compared."""
        names = [model["name"] for model in self.content["models"]]
        rows, gaps = [], []
        for task in self.content["tasks"].values():
            for measure in task["measures"]:
                title = f"{task['title']}: {measure['name']}"
                row = [title, *(format_value(measure, measure["values"][name][task["overall"]]) for name in names)]
                rows.append([*row, measure.get("ranking", {}).get("text", "")])
                for gap in measure.get("comparisons", ()):
                    if gap["label"] == task["overall"]:
                        gaps.append([f"{title}, {gap['first']} − {gap['second']}", *format_difference(measure, gap)])
        # One model has no order.
        width = len(names) + 1 + (len(names) > 1)
        lines = [format_table(["measure", *names, "order"][:width], [row[:width] for row in rows])]
        if gaps:
            lines += ["", format_table(["difference of means", "", "p"], gaps)]
        for model in self.content["models"]:
            search = f"; search{_used(model['search'])}" if model["search"] != model["options"] else ""
            lines.append(f"{model['name']}: {model['model']}{_used(model['options'])}{search}")
        for task in self.content["tasks"].values():
            if len(task["labels"]) > 1:
                lines.append(f"mean of {task['title']}: {', '.join(task['labels'])}")
        lines += [f"not compared: {each}" for each in self.content["not_compared"]]
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
            path=without_folders,
            items=lambda measure, labels: [next(iter(measure["values"].values()))[label][3] for label in labels],
            main=lambda task: [each for place, each in enumerate(task["measures"]) if not place or each["tested"]],
            tested=[(task, each) for task in tasks for each in task["measures"] if "comparisons" in each],
            language=lambda code: language_name(code) if "-" not in code else code,
            version=__version__,
        )


def _used(options: Mapping[str, str]) -> str:
    return "".join(f", {name.replace('_', ' ')} {value!r}" for name, value in options.items())


def format_value(measure: Mapping[str, Any], value: Sequence[float], sign: str = "") -> str:
    """Format a value with the ends of its interval; ``sign="+"`` shows the sign of each number, as of a difference."""
    factor, decimals = (100 if measure["unit"] == "%" else 1), measure["decimals"]
    point, low, high = (f"{factor * number:{sign},.{decimals}f}" for number in value[:3])
    return f"{point} [{low}, {high}]" if measure["interval"] else point


def format_difference(measure: Mapping[str, Any], gap: Mapping[str, Any]) -> tuple[str, str]:
    """Format a difference with its interval, and the corrected p."""
    numbers = [gap["difference"], gap["low"], gap["high"]]
    return format_value(measure, numbers, sign="+"), f"{gap['p_corrected']:.2g}"


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
