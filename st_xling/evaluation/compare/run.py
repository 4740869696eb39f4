"""Compare several encoders: each task once for each model, resumed where it was stopped; then values and tests."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling._version import __version__
from st_xling.data.spec import SpecOption, integer_at_least, read_options, split_options, unique_name
from st_xling.evaluation.compare.data import ComparisonData
from st_xling.evaluation.compare.report import ComparisonReport
from st_xling.evaluation.compare.statistics import ALPHA, MEAN, Cell, Measure, compare_values, holm, rank_label
from st_xling.evaluation.compare.tasks import ALL, TASKS, Cells, Session, Task, measure_speed
from st_xling.models import load_encoder
from st_xling.models.sidecar import model_fingerprint
from st_xling.models.view import model_options
from st_xling.utils.console import duration
from st_xling.utils.io import finite, read_json_object, write_atomic, write_json
from st_xling.utils.signature import sha8, sign

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

#: Options of a model that may follow its name, as in ``MODEL?prompt=query: &layer=7``.
OPTIONS = {
    **{name: SpecOption(str, "text") for name in ("name", "prompt", "prompt_name", "passage_prompt", "pooling")},
    **{name: SpecOption(str, "text") for name in ("dtype", "backend", "revision", "device")},
    **{
        name: SpecOption(integer_at_least(1), "7, a number above 0") for name in ("layer", "truncate_dim", "max_length")
    },
}

#: Swaps of each test: enough for a p-value that remains significant after the correction over all tests.
_SWAPS, _SWAPS_PER_TEST = 10_000, 40


@dataclass(frozen=True)
class ModelSpec:
    """A model with options of its own.

    Attributes:
        name: Name in tables.
        model: Hub id, folder, or a loaded model.
        options: Options of :func:`~st_xling.models.load_encoder`.
    """

    name: str
    model: str | SentenceTransformer
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> SentenceTransformer:
        return load_encoder(self.model, **self.options) if isinstance(self.model, str) else self.model


def parse_models(specs: Iterable[str], **options: Any) -> list[ModelSpec]:
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
        own = read_options(query, OPTIONS, spec=spec)
        name = unique_name(own.pop("name", Path(place).name or place), models)
        merged = {**options, **own}
        if {"prompt", "prompt_name"} <= merged.keys():  # the model's own choice replaces the common one
            merged = {key: value for key, value in merged.items() if key in own or not key.startswith("prompt")}
        models[name] = ModelSpec(name, place, merged)
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
    if samples < 1:
        raise ValueError(f"samples of a bootstrap must be 1 or more: got {samples}; 1000 is the usual choice.")
    folder = None if out is None else Path(out)
    if folder is not None:
        (folder / "results").mkdir(parents=True, exist_ok=True)
    needs = {task.needs for task in chosen.values()} - {""}
    missing = [{"what": what, "why": why} for part, what, why in data.missing if not needs or part in needs]
    for name, task in [*chosen.items()]:
        if task.needs and not getattr(data, task.needs):
            missing.append({"what": task.title, "why": f"no data for it ({task.needs})"})
            del chosen[name]
    loaded = {each.name: each.load() for each in models}
    facts, results = [], {}
    speeds = measure_speed(loaded, data, batch_size=batch_size) if "speed" in chosen else {}
    for each in models:
        model = loaded[each.name]
        folder_or_id = each.model if isinstance(each.model, str) else ""
        known: dict[str, Any] = {
            "name": each.name,
            "model": folder_or_id or each.name,
            "sha8": model_fingerprint(model)[:8],
        }
        known |= {"options": model_options(model), "search": model_options(model, retrieval=True)}
        facts.append(known)
        session = Session(model, data, folder_or_id, batch_size, show_progress_bar)
        results[each.name] = _results(each.name, session, chosen, known, folder, missing)
        if each.name in speeds:
            results[each.name]["speed"] = {ALL: speeds[each.name]}
    report = ComparisonReport(_content(facts, chosen, results, data, missing, samples))
    if folder is not None:
        write_json(folder / "compare.json", report.content)
        write_atomic(folder / "compare.html", report.page().encode("utf-8"))
    return report


def _results(
    name: str,
    session: Session,
    tasks: Mapping[str, Task],
    known: Mapping[str, Any],
    folder: Path | None,
    missing: list[dict[str, str]],
) -> dict[str, Cells]:
    """Run the tasks of one model, but for those that an earlier run finished; ``missing`` gets those that fail."""
    results, file_name = {}, re.sub(r"[^\w.-]+", "-", name)
    for task_name, task in tasks.items():
        if task.run is None:  # measured for all models together
            continue
        part = session.data.sha8.get(task.needs) or session.data.sha8
        model = [known["sha8"], known["options"], known["search"], session.trained_on]
        fingerprint = sha8([model, task_name, part, session.data.seed, task.parts, __version__])
        path = folder / "results" / f"{file_name}.{task_name}.json" if folder else None
        stored = _read(path) if path else {}
        if stored.get("fingerprint") != fingerprint:
            try:
                start = time.perf_counter()
                cells = task.run(session)
            except ValueError as error:
                missing.append({"what": f"{task.title}: {name}", "why": str(error).rstrip(".")})
                logger.info("%s: %s failed: %s", name, task_name, error)
                continue
            logger.info("%s: %s, %s", name, task_name, duration(time.perf_counter() - start))
            stored = finite({"fingerprint": fingerprint, "cells": {label: _plain(own) for label, own in cells.items()}})
            if path:
                write_atomic(path, json.dumps(stored).encode("utf-8"))
        results[task_name] = {label: Cell(**cell) for label, cell in stored["cells"].items()}
    return results


def _plain(cell: Cell) -> dict[str, Any]:
    """Return a cell for JSON."""
    columns = {name: np.asarray(values, np.float64).tolist() for name, values in cell.columns.items()}
    return {"items": cell.items, "columns": columns}


def _read(path: Path) -> dict[str, Any]:
    """Read what an earlier run saved; nothing where it is incomplete."""
    try:
        return read_json_object(path)
    except ValueError:
        return {}


def _content(
    models: list[dict[str, Any]],
    tasks: Mapping[str, Task],
    results: Mapping[str, Mapping[str, Cells]],
    data: ComparisonData,
    missing: list[dict[str, str]],
    samples: int,
) -> dict[str, Any]:
    """Compute values, tests and orders from the results of each model."""
    cells = {
        name: {model: done[name] for model, done in results.items() if name in done}
        for name in tasks
        if any(name in done for done in results.values())
    }
    if not cells:
        why = "; ".join(f"{each['what']}: {each['why']}" for each in missing)
        raise ValueError(f"nothing could be compared: {why}.")
    tests = sum(_number_of_tests(measure, own) for name, own in cells.items() for measure in tasks[name].measures)
    swaps = max(_SWAPS, _SWAPS_PER_TEST * tests)
    contents: dict[str, Any] = {}
    comparisons: list[dict[str, Any]] = []
    for name, own in cells.items():
        task, labels = tasks[name], list(next(iter(own.values())))
        measures = []
        for measure in task.measures:
            values, tested = compare_values(measure, own, seed=data.seed, samples=samples, swaps=swaps)
            measures.append({**measure._asdict(), "values": values})
            if tested:
                measures[-1]["comparisons"] = [each._asdict() for each in tested]
                comparisons += measures[-1]["comparisons"]
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
            "signatures": {
                model["name"]: sign("compare", **parts, data=named, model=model[used])
                for model in models
                if model["name"] in own
            },
        }
    for test, p in zip(comparisons, holm([test["p"] for test in comparisons])):
        test["p_corrected"] = float(p)
        test["significant"] = bool(p < ALPHA)
    for content in contents.values():
        for measure in content["measures"]:
            if "comparisons" in measure:
                measure["ranking"] = rank_label(measure, content["overall"])
                measure["orders"] = {label: rank_label(measure, label)["groups"] for label in content["labels"]}
    parts = {
        "tasks": list(contents),
        "interval": f"bootstrap,{1 - ALPHA:g},{samples}",
        "tests": f"swaps,holm,{tests}",
        "seed": data.seed,
    }
    named = f"{data.name}@{sha8(data.sha8)}"
    for model in models:
        model["signature"] = sign("compare", **parts, data=named, model=model["options"])
    return {
        "models": models,
        "tasks": contents,
        "not_compared": missing,
        "tests": tests,
        "swaps": swaps,
        "samples": samples,
        "signature": sign("compare", **parts, data=named),
    }


def _number_of_tests(measure: Measure, cells: Mapping[str, Mapping[str, Cell]]) -> int:
    labels = len(next(iter(cells.values())))
    return measure.tested * (labels + (labels > 1)) * (len(cells) * (len(cells) - 1) // 2)
