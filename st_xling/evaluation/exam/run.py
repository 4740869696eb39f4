"""An exam of several encoders: each task once a model, resumed where it was stopped; then what can be said of them."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling._version import __version__
from st_xling.data.spec import SpecOption, integer_at_least, read_options, split_options, unique_name
from st_xling.evaluation.exam.compare import ALPHA, MEAN, Cell, Measure, compare, holm, ranking
from st_xling.evaluation.exam.data import PARTS, ExamData
from st_xling.evaluation.exam.tasks import ALL, KIND, OF, TASKS, NotExaminedError, Session, Task
from st_xling.models import load_encoder
from st_xling.models.fingerprint import model_fingerprint
from st_xling.models.view import model_options
from st_xling.utils.console import duration
from st_xling.utils.io import finite, read_json_object, write_atomic, write_json
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

#: Options of a model that may stand behind its name, as ``MODEL?prompt=query: &layer=7``.
OPTIONS = {
    **{name: SpecOption(str, "text") for name in ("name", "prompt", "prompt_name", "passage_prompt", "pooling")},
    **{name: SpecOption(str, "text") for name in ("dtype", "backend", "revision", "device")},
    **{
        name: SpecOption(integer_at_least(1), "7, a number above 0") for name in ("layer", "truncate_dim", "max_length")
    },
}

#: Of a budget, what encoding may take; the rest is for searching, and for what the estimate misses.
_FOR_ENCODING = 0.75

#: Swaps of each test: enough for a p-value that survives the correction over all of them.
_SWAPS, _SWAPS_A_TEST = 10_000, 40

#: Measured in each run, so that models are compared in one.
_ALWAYS = ("speed", "size")


@dataclass(frozen=True)
class Examinee:
    """A model, used in its own way.

    Attributes:
        name: In tables.
        model: Hub id, folder, or a loaded model.
        options: Of :func:`~st_xling.models.load_encoder`.
    """

    name: str
    model: str | SentenceTransformer
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> SentenceTransformer:
        return load_encoder(self.model, **self.options) if isinstance(self.model, str) else self.model


def parse_examinees(specs: Iterable[str], **options: Any) -> list[Examinee]:
    """Models of the command line.

    Args:
        specs: Hub ids or folders, with options of each behind ``?``, among them ``name``.
        options: Of all models; those of a spec stand in their place.
    Raises:
        ValueError: An option that models do not take.
    Example:
        >>> [(each.name, dict(each.options)) for each in parse_examinees(["me/e5?prompt=query: ", "you/e5"], layer=7)]
        [('e5', {'layer': 7, 'prompt': 'query: '}), ('e5-2', {'layer': 7})]
    """
    models: dict[str, Examinee] = {}
    for spec in specs:
        place, query = split_options(spec)
        own = read_options(query, OPTIONS, spec=spec)
        name = unique_name(own.pop("name", Path(place).name or place), models)
        merged = {**options, **own}
        if {"prompt", "prompt_name"} <= merged.keys():  # the model's own choice stands in the place of the common one
            merged = {key: value for key, value in merged.items() if key in own or not key.startswith("prompt")}
        models[name] = Examinee(name, place, merged)
    return list(models.values())


@dataclass(frozen=True)
class ExamReport:
    """What came out.

    Attributes:
        content: As JSON has it: ``models``, ``tasks`` with values, comparisons and orders, ``not_examined``, and how
            it was done.
    """

    content: dict[str, Any]

    @property
    def signature(self) -> str:
        return self.content["signature"]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.content

    def page(self) -> str:
        """HTML that needs nothing else."""
        from st_xling.evaluation.exam.page import exam_page

        return exam_page(self.content)

    def scores(self, name: str) -> dict[str, dict[str, float]]:
        """Of one model, for its card: measure → value and ends of the interval, of those that are shares."""
        return {
            f"{task['title']}: {measure['name']}": dict(zip(("value", "low", "high"), value))
            for task in self.content["tasks"].values()
            for measure in task["measures"]
            if measure["unit"] == "%" and measure["interval"]
            if (value := measure["values"].get(name, {}).get(task["overall"])) is not None
        }

    def table(self) -> str:
        """Means with intervals, the order of models, differences, and what was not examined."""
        names = [model["name"] for model in self.content["models"]]
        rows, gaps = [], []
        for task in self.content["tasks"].values():
            for measure in task["measures"]:
                overall = [measure["values"].get(name, {}).get(task["overall"]) for name in names]
                text = measure.get("ranking", {}).get("text", "")
                rows.append(
                    [f"{task['title']}: {measure['name']}", *(shown(measure, value) for value in overall), text]
                )
                gaps += [
                    [f"{rows[-1][0]}, {gap['first']} − {gap['second']}", *shown_difference(measure, gap)]
                    for gap in measure.get("comparisons", ())
                    if gap["label"] == task["overall"]
                ]
        one = len(names) == 1
        lines = [
            format_table(["measure", *names, *([] if one else ["order"])], [row[:-1] if one else row for row in rows])
        ]
        if gaps:
            lines += ["", format_table(["difference of means", "", "p"], gaps)]
        for model in self.content["models"]:
            search = f"; search{_used(model['search'])}" if model["search"] != model["options"] else ""
            lines.append(f"{model['name']}: {model['model']}{_used(model['options'])}{search}")
        lines += [
            f"mean of {task['title']}: {', '.join(task['labels'])}"
            for task in self.content["tasks"].values()
            if len(task["labels"]) > 1
        ]
        return "\n".join([*lines, *_remarks(self.content["not_examined"], self.content["sample"]), self.signature])


def _remarks(not_examined: Iterable[Mapping[str, str]], sample: str) -> list[str]:
    lines = [f"not examined: {each['what']}: {each['why']}" for each in not_examined]
    return [*lines, f"sample: {sample}"] if sample else lines


def _used(options: Mapping[str, str]) -> str:
    return "".join(f", {name.replace('_', ' ')} {value!r}" for name, value in options.items())


def shown(measure: Mapping[str, Any], value: Sequence[float] | None) -> str:
    """A value with its interval, ``-`` without one."""
    if value is None:
        return "-"
    factor, decimals = (100 if measure["unit"] == "%" else 1), measure["decimals"]
    point, low, high = (f"{factor * number:,.{decimals}f}" for number in value[:3])
    return f"{point} [{low}, {high}]" if measure["interval"] else point


def shown_difference(measure: Mapping[str, Any], gap: Mapping[str, Any]) -> tuple[str, str]:
    """A difference with its interval, and the corrected p."""
    factor, decimals = (100 if measure["unit"] == "%" else 1), measure["decimals"]
    point, low, high = (f"{factor * gap[name]:+.{decimals}f}" for name in ("difference", "low", "high"))
    return f"{point} [{low}, {high}]", f"{gap['p_corrected']:.2g}"


def examine(
    examinees: Sequence[Examinee],
    data: ExamData,
    *,
    tasks: Collection[str] | None = None,
    out: str | Path | None = None,
    budget: float | None = None,
    samples: int = 1000,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> ExamReport:
    """Examine encoders by the same items, and say which is better where, and whether that can be trusted.

    Args:
        examinees: The models, each with its own prompts and options.
        data: Of :func:`load_exam_data`; draws are by its seed.
        tasks: Names; all by default.
        out: Folder of what is done, from which an exam that was stopped goes on, and of the page ``exam.html``.
        budget: Minutes; where all items would take longer, each model is examined by the same sample of them.
        samples: Of the bootstrap.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one.
    Returns:
        Values with bootstrap intervals, paired tests corrected by Holm over all of them, and the order that they allow.
    Raises:
        ValueError: No model, two of one name, unknown tasks, no task that the data allow, a budget of nothing, no
            samples.
    """
    chosen = _chosen(tasks, examinees, budget)
    if samples < 1:
        raise ValueError(f"samples of a bootstrap must be 1 or more: got {samples}; 1000 is the usual choice.")
    folder = None if out is None else Path(out)
    if folder is not None:
        (folder / "results").mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    whole = data.only({task.needs for task in chosen.values()} - {""} or set(PARTS))
    missing = [{"what": what, "why": why} for _, what, why in whole.missing]
    measured = [name for name in _ALWAYS if name in chosen or (name == "speed" and budget is not None)]
    models, results = _begin(examinees, whole, measured, batch_size)
    data = whole
    if budget is not None:
        data = whole.sampled(_share(budget, whole, models, results, time.perf_counter() - start, folder))
    for each, known in zip(examinees, models):
        session: Session | None = None
        for name, task in chosen.items():
            if name in _ALWAYS or not _fed(task, data):
                continue
            part = data.sha8.get(task.needs) or data.sha8
            depends = [known["sha8"], known["options"], known["search"], name, part, data.seed, task.parts]
            depends += [task.depends(known["model"])] if task.depends else []
            fingerprint = sha8([*depends, __version__])
            path = None if folder is None else folder / "results" / f"{_file_name(each.name)}.{name}.json"
            stored = {} if path is None else _read(path)
            if stored.get("fingerprint") == fingerprint:
                results[each.name][name] = stored
                continue
            session = session or Session(each.load(), data, known["model"], each.name, batch_size, show_progress_bar)
            try:
                result = {"fingerprint": fingerprint, **_run(name, session)}
            except ValueError as error:
                missing.append({"what": f"{task.title}: {each.name}", "why": str(error).rstrip(".")})
                if not isinstance(error, NotExaminedError):
                    logger.warning("%s: %s failed: %s", each.name, name, error)
                continue
            results[each.name][name] = result
            if path is not None:
                write_atomic(path, json.dumps(result).encode("utf-8"))  # long lists: a number a line would be long
    report = ExamReport(_content(models, chosen, results, data, whole, missing, samples))
    report.content["seconds"] = round(time.perf_counter() - start, 1)
    if folder is not None:
        write_json(folder / "exam.json", report.content)
        write_atomic(folder / "exam.html", report.page().encode("utf-8"))
    return report


def _chosen(tasks: Collection[str] | None, examinees: Sequence[Examinee], budget: float | None) -> dict[str, Task]:
    """The tasks by these names, once all that was asked for is possible."""
    chosen = {name: task for name, task in TASKS.items() if tasks is None or name in tasks}
    unknown = sorted({*(tasks or ())} - {*TASKS})
    if unknown or not chosen:
        raise ValueError(f"tasks must be among {', '.join(TASKS)}: got {', '.join(unknown) or 'none'}.")
    names = [each.name for each in examinees]
    if not names or len({*names}) < len(names):
        raise ValueError(f"an exam takes one model or more, of different names: got {', '.join(names) or 'none'}.")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be minutes above 0: got {budget:g}; leave it out to examine by all items.")
    return chosen


def _fed(task: Task, data: ExamData) -> bool:
    return not task.needs or bool(getattr(data, task.needs))


def _unfed(task: Task) -> dict[str, str]:
    return {"what": task.title, "why": f"no data for it ({task.needs})"}


def _begin(
    examinees: Sequence[Examinee],
    data: ExamData,
    measured: Sequence[str],
    batch_size: int | None,
) -> tuple[list[dict[str, Any]], dict[str, dict[str, dict[str, Any]]]]:
    """Facts of each model, and what it gives in some tasks; all load before the first is examined."""
    models, results = [], {}
    for each in examinees:
        model = each.load()
        place = each.model if isinstance(each.model, str) else each.name
        facts: dict[str, Any] = {"name": each.name, "model": place, "sha8": model_fingerprint(model)[:8]}
        models.append({**facts, "options": model_options(model), "search": model_options(model, retrieval=True)})
        session = Session(model, data, place, each.name, batch_size)
        results[each.name] = {name: _run(name, session) for name in measured}
    return models, results


def _run(name: str, session: Session) -> dict[str, Any]:
    """What a task noted, for JSON."""
    start = time.perf_counter()
    session.notes.clear()
    cells = TASKS[name].run(session)
    seconds = time.perf_counter() - start
    logger.info("%s: %s, %s", session.name, name, duration(seconds))
    columns = {
        label: {column: np.asarray(values).astype(float).tolist() for column, values in cell.columns.items()}
        for label, cell in cells.items()
    }
    return finite(
        {
            "seconds": round(seconds, 2),
            "notes": list(session.notes),
            "cells": {label: {"items": cell.items, "columns": columns[label]} for label, cell in cells.items()},
        }
    )


def _read(path: Path) -> dict[str, Any]:
    """What an earlier run left; nothing where it is not whole."""
    try:
        return read_json_object(path)
    except ValueError:
        return {}


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name)


def _share(
    minutes: float, data: ExamData, models: Sequence[Any], results: Mapping[str, Any], spent: float, folder: Path | None
) -> float:
    """Of all items, those that the models encode in time; what a run has begun with stays."""
    key = sha8([minutes, data.sha8, data.seed, [[model["sha8"], model["options"]] for model in models]])
    stored = {} if folder is None else _read(folder / "sample.json")
    if stored.get("key") == key:
        return stored["share"]
    pace = sum(map(_pace, results.values()))  # of all models together
    seconds = _FOR_ENCODING * max(0.0, 60 * minutes - spent)
    low, high = 0.0, 1.0
    whole = pace * data.work()
    if whole > seconds:
        for _ in range(7):  # a sample has a least size, so its work is no share of the whole
            middle = (low + high) / 2
            low, high = (middle, high) if pace * data.sampled(middle).work() <= seconds else (low, middle)
    else:
        low = 1.0
    takes = pace * data.sampled(low).work()
    logger.info("to embed all would take %s; a sample takes %s", duration(whole), duration(takes))
    if takes > seconds and low < 1:
        logger.warning("the least sample takes longer than the budget: about %s", duration(takes / _FOR_ENCODING))
    if folder is not None:
        write_json(folder / "sample.json", {"key": key, "share": low})
    return low


def _pace(done: Mapping[str, Any]) -> float:
    """Seconds that a model takes for a unit of work."""
    columns = done["speed"]["cells"][ALL]["columns"]
    return sum(columns["seconds"]) / sum(columns["work"])


def _sample_text(data: ExamData, whole: ExamData) -> str:
    if data.share >= 1:
        return ""
    counts = [f"{data.counts[name]:,} of {n:,} {name}" for name, n in whole.counts.items() if n]
    return f"{', '.join(counts)}; the same for all models (seed {data.seed})"


def _content(
    models: list[dict[str, Any]],
    tasks: Mapping[str, Task],
    results: Mapping[str, Mapping[str, dict[str, Any]]],
    data: ExamData,
    whole: ExamData,
    missing: list[dict[str, str]],
    samples: int,
) -> dict[str, Any]:
    """Values, tests and orders, of what each task noted."""
    cells: dict[str, dict[str, dict[str, Cell]]] = {}
    for name in tasks:
        own = {
            model: {label: Cell(cell["items"], cell["columns"]) for label, cell in done[name]["cells"].items()}
            for model, done in results.items()
            if name in done
        }
        if own:
            cells[name] = own
        elif not _fed(tasks[name], data):
            missing.append(_unfed(tasks[name]))
    if not cells:
        why = "; ".join(f"{each['what']}: {each['why']}" for each in missing)
        raise ValueError(f"nothing could be examined: {why}.")
    tests = sum(
        measure.tested
        * (len(by_label := next(iter(own.values()))) + (len(by_label) > 1))
        * len([*combinations(own, 2)])
        for name, own in cells.items()
        for measure in tasks[name].measures
    )
    swaps = max(_SWAPS, _SWAPS_A_TEST * tests)
    contents: dict[str, Any] = {}
    comparisons: list[dict[str, Any]] = []
    for name, own in cells.items():
        task, labels = tasks[name], list(next(iter(own.values())))
        content = contents[name] = {
            **{"title": task.title, "what": task.what, "labels": labels},
            "overall": _overall(labels),
            "measures": [],
            "kinds": [],
            "notes": {model: results[model][name]["notes"] for model in own},
            "seconds": {model: results[model][name]["seconds"] for model in own},
            "signatures": {},
        }
        # Of kinds that are not made of every language, or every model, the mean is over those that have them.
        cell_rows = [cell for by_label in own.values() for cell in by_label.values()]
        kinds = dict.fromkeys(name for cell in cell_rows for name in cell.columns if name.startswith(KIND))
        for measure in task.measures:
            content["measures"].append(_entry(measure, own, data.seed, samples, swaps))
            comparisons += content["measures"][-1].get("comparisons", ())
        for kind in kinds:
            within = [label for label in labels if kind in next(iter(own.values()))[label].columns]
            some = {model: {label: cells_of[label] for label in within} for model, cells_of in own.items()}
            name_of = kind.removeprefix(KIND)
            bottom = OF + name_of if OF + name_of in cell_rows[labels.index(within[0])].columns else "1"
            measure = Measure(name_of, (kind,), (bottom,), higher=task.measures[0].higher)
            content["kinds"].append(
                {**_entry(measure, some, data.seed, samples, swaps), "labels": within, "overall": _overall(within)}
            )
        for model in models:
            if model["name"] in own:
                named = f"{data.name}@{data.sha8.get(task.needs) or sha8(data.sha8)}"
                parts = {"task": name, "languages": labels, **task.parts, "seed": data.seed}
                used = "search" if task.needs == "pool" else "options"
                content["signatures"][model["name"]] = sign("exam", **parts, data=named, model=model[used])
    for test, p in zip(comparisons, holm([test["p"] for test in comparisons])):
        test["p_corrected"] = float(p)
        test["distinguishable"] = bool(p < ALPHA)
    for content in contents.values():
        for measure in content["measures"]:
            if "comparisons" in measure:
                measure["ranking"] = _order(measure, content["overall"])
                measure["orders"] = {label: _order(measure, label)["groups"] for label in content["labels"]}
    sampled = _sample_text(data, whole)
    parts = {
        **{"tasks": list(contents), "interval": f"bootstrap,0.95,{samples}", "tests": f"swaps,holm,{tests}"},
        **{"sample": f"{data.share:.3g}" if sampled else None, "seed": data.seed},
    }
    named = f"{data.name}@{sha8(data.sha8)}"
    for model in models:
        model["signature"] = sign("exam", **parts, data=named, model=model["options"])
    return {
        "models": models,
        "tasks": contents,
        "not_examined": missing,
        "sample": sampled,
        "tests": tests,
        "swaps": swaps,
        "samples": samples,
        "signature": sign("exam", **parts, data=named),
    }


def _overall(labels: Sequence[str]) -> str:
    return MEAN if len(labels) > 1 else labels[0]


def _entry(measure: Measure, cells: Any, seed: int, samples: int, swaps: int) -> dict[str, Any]:
    """A measure with its values and tests, for JSON."""
    values, comparisons = compare(measure, cells, seed=seed, samples=samples, swaps=swaps)
    tests = {"comparisons": [each._asdict() for each in comparisons]} if comparisons else {}
    return {**measure._asdict(), "values": values, **tests}


def _order(measure: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Of models, by the tests of a label; a bias below 0, against a language, is not better than one above."""
    means = {model: values[label][0] for model, values in measure["values"].items()}
    found = [test for test in measure["comparisons"] if test["label"] == label and test["distinguishable"]]
    better, across = set(), []
    for test in found:
        pair = test["first"], test["second"]
        if not measure["higher"] and min(means[name] for name in pair) < 0:
            across.append(pair)
        else:
            better.add(pair if (test["difference"] > 0) == measure["higher"] else pair[::-1])
    order = ranking(means, better, higher=measure["higher"])
    if across:
        differing = ", ".join(" and ".join(pair) for pair in across)
        told = f"{differing} differ, but a value below 0 is not better"
        order["text"] = told if order["text"] == "not distinguishable" else f"{order['text']}; {told}"
    return order
