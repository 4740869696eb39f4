"""Compare several encoders: each task once for each model, resumed where it was stopped; values, tests and a page."""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from st_xling._version import __version__
from st_xling.data.spec import SpecOption, integer_at_least, read_options, split_options, unique_name
from st_xling.evaluation.compare.data import ComparisonData
from st_xling.evaluation.compare.statistics import (
    ALPHA,
    MEAN,
    ItemResults,
    LabelValues,
    Measure,
    MeasureContent,
    PairedTest,
    compare_values,
    holm,
    rank_label,
)
from st_xling.evaluation.compare.tasks import COMPARISON_TASKS, ComparisonTask, LabelResults, Session, measure_speed
from st_xling.models import load_encoder
from st_xling.models.sidecar import model_fingerprint
from st_xling.models.view import EncoderLoadingOptions, model_options
from st_xling.utils.io import file_crc32, write_atomic, write_json
from st_xling.utils.languages import language_name
from st_xling.utils.paths import without_folders
from st_xling.utils.resumable import ResumableFolder
from st_xling.utils.signature import sha8, sign
from st_xling.utils.tables import format_table
from st_xling.utils.terminal import duration

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

_TEMPLATE = Path(__file__).with_name("page.html")

# Options of a model that may follow its name, as in ``MODEL?prompt=query: &layer=7``.
_TEXT_OPTIONS = ["name", "prompt", "prompt_name", "passage_prompt", "pooling", "dtype", "backend", "revision", "device"]
_MODEL_OPTIONS: dict[str, SpecOption] = dict.fromkeys(_TEXT_OPTIONS, SpecOption(str, "text"))
_MODEL_OPTIONS |= dict.fromkeys(("layer", "truncate_dim", "max_length"), SpecOption(integer_at_least(1), "7, above 0"))

# Number of swaps of each test: this many, or so many times the number of all tests if that is more, so that a p-value
# can remain significant after the correction over all tests.
_SWAPS = 10_000
_SWAPS_PER_TEST = 40


class ModelFacts(TypedDict):
    """A compared model, as the report has it.

    Attributes:
        name: Name in tables.
        model: Hub id or folder.
        sha8: Eight digits of its fingerprint.
        options: Parts of the signature, see :func:`~st_xling.models.view.model_options`.
        search: The same where queries and passages are distinguished.
    """

    name: str
    model: str
    sha8: str
    options: dict[str, str]
    search: dict[str, str]


class TaskContent(TypedDict):
    """Results of a task, as the report has them.

    Attributes:
        title: Title in tables.
        what: Description of the measured ability, in a sentence.
        labels: Languages, or the label of all items.
        overall: The label that sums them up.
        measures: The first sums the task up; others explain it.
        signatures: Model → signature.
    """

    title: str
    what: str
    labels: list[str]
    overall: str
    measures: list[MeasureContent]
    signatures: dict[str, str]


class ComparisonContent(TypedDict):
    """Everything that the report has.

    Attributes:
        models: The compared models.
        tasks: Name → results.
        not_compared: What could not be compared, and the reasons.
        tests: Number of all tests.
        swaps: Random swaps of each test.
        samples: Samples of the bootstrap.
        signature: Signature of the comparison.
    """

    models: list[ModelFacts]
    tasks: dict[str, TaskContent]
    not_compared: list[str]
    tests: int
    swaps: int
    samples: int
    signature: str


@dataclass(frozen=True)
class ModelSpec:
    """A model with its own options.

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
        >>> [(spec.name, dict(spec.options)) for spec in parse_models(["me/e5?prompt=query: ", "you/e5"], layer=7)]
        [('e5', {'layer': 7, 'prompt': 'query: '}), ('e5-2', {'layer': 7})]
    """
    models: dict[str, ModelSpec] = {}
    for spec in specs:
        model, query = split_options(spec)
        own_options = read_options(query, _MODEL_OPTIONS, spec=spec)
        name = unique_name(own_options.pop("name", Path(model).name or model), models)
        # The names of _MODEL_OPTIONS are those of the type.
        models[name] = ModelSpec(name, model, cast(EncoderLoadingOptions, {**options, **own_options}))
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
    chosen = _choose_tasks(tasks)
    names = [spec.name for spec in models]
    if not names or len({*names}) < len(names):
        raise ValueError(f"expected one model or more, of different names: got {', '.join(names) or 'none'}.")
    missing = list(data.missing)
    for name, task in list(chosen.items()):
        if task.needs and not getattr(data, task.needs):
            missing.append(f"{task.title}: no data for it ({task.needs})")
            del chosen[name]
    if not chosen:
        raise ValueError(f"nothing could be compared: {'; '.join(missing)}.")

    with _open_results_folder(out) as folder:
        encoders = {spec.name: load_encoder(spec.model, **spec.options) for spec in models}
        results: dict[str, dict[str, LabelResults]] = {name: {} for name in chosen}
        if "speed" in chosen:
            results["speed"] = measure_speed(encoders, data, batch_size=batch_size)
        facts: list[ModelFacts] = []
        for spec in models:
            encoder = encoders[spec.name]
            facts.append(describe_model(spec.name, spec.model, encoder))
            session = Session(encoder, data, batch_size, show_progress_bar)
            for name, task in chosen.items():
                if task.run is not None:
                    results[name][spec.name] = run_task(name, task, session, facts[-1], folder)

        report = ComparisonReport(_compute_content(facts, chosen, results, data, missing, samples))
        if out is not None:
            write_json(Path(out) / "compare.json", report.content)
            write_atomic(Path(out) / "compare.html", report.page().encode("utf-8"))
        return report


@contextmanager
def _open_results_folder(out: str | Path | None) -> Iterator[ResumableFolder | None]:
    """Yield the folder for results of finished tasks, a step for each model and task; ``None`` without ``out``.

    It is the same for all models and data: each step has a fingerprint of everything that it depends on.
    """
    if out is None:
        yield None
        return
    path = Path(out) / "results"
    with ResumableFolder(path, name="the folder of results", instead="choose another folder (--out)") as folder:
        folder.begin({"command": "compare"})
        yield folder


def _choose_tasks(names: Collection[str] | None) -> dict[str, ComparisonTask]:
    """Return the tasks of these names, in the order of the page; all for ``None``."""
    unknown = sorted({*(names or ())} - {*COMPARISON_TASKS})
    chosen = {name: task for name, task in COMPARISON_TASKS.items() if names is None or name in names}
    if unknown or not chosen:
        raise ValueError(f"tasks must be among {', '.join(COMPARISON_TASKS)}: got {', '.join(unknown) or 'none'}.")
    return chosen


def describe_model(name: str, model: str, encoder: SentenceTransformer) -> ModelFacts:
    """Describe a model for the report.

    Args:
        name: Name in tables.
        model: Hub id or folder.
        encoder: The model, loaded.
    """
    return {
        "name": name,
        "model": model,
        "sha8": model_fingerprint(encoder)[:8],
        "options": model_options(encoder),
        "search": model_options(encoder, retrieval=True),
    }


def run_task(
    name: str,
    task: ComparisonTask,
    session: Session,
    model: ModelFacts,
    folder: ResumableFolder | None,
    *,
    within: str = "",
) -> LabelResults:
    """Run a task of one model, unless an earlier run has finished it.

    Args:
        name: Name of the task.
        task: The task.
        session: The model, over the data.
        model: Facts of the model, on which its results depend.
        folder: Folder for results; ``None``: they are not kept.
        within: Folder in it for their files, such as ``"training/before/"``.
    """
    assert task.run is not None
    data_digest = session.data.sha8.get(task.needs) or session.data.sha8
    model_content = [model["sha8"], model["options"], model["search"]]
    fingerprint = sha8([model_content, name, data_digest, session.data.seed, task.parts, __version__])
    # With the digits of the name: "a/b" and "a-b" must not share a file.
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", model["name"])
    step = f"{stem}-{sha8(model['name'])}.{name}"
    file = f"{within}{step}.json"
    results = None if folder is None else _load_results(folder, step, file, fingerprint)
    if results is not None:
        return results

    start = time.perf_counter()
    try:
        results = task.run(session)
    except ValueError as error:
        raise ValueError(f"{task.title}, {model['name']}: {error}") from error
    logger.info("%s: %s, %s", model["name"], name, duration(time.perf_counter() - start))
    if folder is not None:
        content = {label: vars(items) for label, items in results.items()}
        text = json.dumps(content, default=np.ndarray.tolist)
        (folder.path / file).parent.mkdir(parents=True, exist_ok=True)
        with folder.writing(step, file, checksum=True, fingerprint=fingerprint) as path:
            path.write_text(text, encoding="utf-8")
    return results


def _load_results(folder: ResumableFolder, step: str, file: str, fingerprint: str) -> LabelResults | None:
    """Return the results of an earlier run; ``None`` if there are none, or of other models, data or versions.

    A damaged file, such as one that was cut short or edited, is named in a warning.
    """
    entry = folder.steps.get(step, {})
    if entry.get("files") != [file] or entry.get("fingerprint") != fingerprint:
        return None
    path = folder.path / file
    if file_crc32(path) != entry.get("crc32"):
        logger.warning("%s is damaged, so that its task runs again: its checksum is of other content", path.name)
        return None
    content = json.loads(path.read_text(encoding="utf-8"))
    return {label: ItemResults(**items) for label, items in content.items()}


def _compute_content(
    models: list[ModelFacts],
    tasks: Mapping[str, ComparisonTask],
    results: Mapping[str, Mapping[str, LabelResults]],
    data: ComparisonData,
    missing: list[str],
    samples: int,
) -> ComparisonContent:
    """Compute values, tests and orders from the results, task → model → language → items."""
    n_tests = sum(_count_tests(tasks[name], results_of_task) for name, results_of_task in results.items())
    swaps = max(_SWAPS, _SWAPS_PER_TEST * n_tests)
    contents: dict[str, TaskContent] = {}
    for name, results_of_task in results.items():
        labels = [*next(iter(results_of_task.values()))]
        contents[name] = _describe_task(name, tasks[name], models, labels, data)
        for measure in tasks[name].measures:
            values, comparisons = compare_values(measure, results_of_task, seed=data.seed, samples=samples, swaps=swaps)
            contents[name]["measures"].append(_describe_measure(measure, values, comparisons))
    _rank_models(contents)
    signature = sign(
        "compare",
        tasks=contents,
        interval=f"bootstrap,{1 - ALPHA:g},{samples}",
        tests=f"swaps,holm,{n_tests}",
        seed=data.seed,
        data=f"{data.name}@{sha8(data.sha8)}",
    )
    return {
        "models": models,
        "tasks": contents,
        "not_compared": missing,
        "tests": n_tests,
        "swaps": swaps,
        "samples": samples,
        "signature": signature,
    }


def _count_tests(task: ComparisonTask, results: Mapping[str, LabelResults]) -> int:
    """Count the tests of a task: of each two models, by each tested measure, for each language and their mean."""
    n_languages = len(next(iter(results.values())))
    n_labels = n_languages + 1 if n_languages > 1 else 1
    n_measures = sum(measure.tested for measure in task.measures)
    return n_measures * n_labels * math.comb(len(results), 2)


def _describe_task(
    name: str, task: ComparisonTask, models: Sequence[ModelFacts], labels: list[str], data: ComparisonData
) -> TaskContent:
    """Return the content of a task, still without measures."""
    repeats = data.repeats if task.needs == "pairs" else None
    data_digest = data.sha8.get(task.needs) or sha8(data.sha8)
    signatures: dict[str, str] = {}
    for model in models:
        options = model["search"] if task.needs == "pool" else model["options"]
        signatures[model["name"]] = sign(
            "compare",
            task=name,
            languages=labels,
            **task.parts,
            repeats=repeats,
            seed=data.seed,
            data=f"{data.name}@{data_digest}",
            model=options,
        )
    return {
        "title": task.title,
        "what": task.what,
        "labels": labels,
        "overall": MEAN if len(labels) > 1 else labels[0],
        "measures": [],
        "signatures": signatures,
    }


def _describe_measure(
    measure: Measure, values: dict[str, LabelValues], comparisons: list[PairedTest]
) -> MeasureContent:
    """Return the content of a measure, still without an order of the models."""
    content: MeasureContent = {
        "name": measure.name,
        "top": measure.top,
        "bottom": measure.bottom,
        "higher": measure.higher,
        "unit": measure.unit,
        "decimals": measure.decimals,
        "tested": measure.tested,
        "interval": measure.interval,
        "values": values,
    }
    if comparisons:
        content["comparisons"] = comparisons
    return content


def _rank_models(contents: Mapping[str, TaskContent]) -> None:
    """Correct the p-values of all tests together, and add the order that they allow to each tested measure."""
    tested: list[tuple[TaskContent, MeasureContent]] = []
    comparisons: list[PairedTest] = []
    for content in contents.values():
        for measure in content["measures"]:
            if "comparisons" in measure:
                tested.append((content, measure))
                comparisons += measure["comparisons"]
    corrected = holm([test["p"] for test in comparisons])
    for test, p in zip(comparisons, corrected):
        test["p_corrected"] = float(p)
        test["significant"] = bool(p < ALPHA)
    for content, measure in tested:
        measure["ranking"] = rank_label(measure, content["overall"])
        measure["orders"] = {label: rank_label(measure, label)["groups"] for label in content["labels"]}


@dataclass(frozen=True)
class ComparisonReport:
    """The result of :func:`compare_models`: as a table, and as a page of HTML without scripts, fonts or network.

    Attributes:
        content: Models, tasks with values, tests and orders, and settings, as they are written as JSON.
    """

    content: ComparisonContent

    @property
    def signature(self) -> str:
        return self.content["signature"]

    def table(self) -> str:
        """Format the means with intervals, the order of models, the differences, and what was not compared."""
        names = [model["name"] for model in self.content["models"]]
        head = ["measure", *names]
        if len(names) > 1:  # one model has no order
            head.append("order")
        rows: list[list[str]] = []
        differences: list[list[str]] = []
        for task in self.content["tasks"].values():
            for measure in task["measures"]:
                title = f"{task['title']}: {measure['name']}"
                values = [format_value(measure, measure["values"][name][task["overall"]]) for name in names]
                order = measure["ranking"]["text"] if "ranking" in measure else ""
                rows.append([title, *values, order][: len(head)])
                for test in measure.get("comparisons", ()):
                    if test["label"] == task["overall"]:
                        pair = f"{title}, {test['first']} − {test['second']}"
                        differences.append([pair, *format_difference(measure, test)])
        lines = [format_table(head, rows)]
        if differences:
            lines += ["", format_table(["difference of means", "", "p"], differences)]
        for model in self.content["models"]:
            line = f"{model['name']}: {model['model']}{_format_options(model['options'])}"
            if model["search"] != model["options"]:
                line += f"; search{_format_options(model['search'])}"
            lines.append(line)
        for task in self.content["tasks"].values():
            if len(task["labels"]) > 1:
                lines.append(f"mean of {task['title']}: {', '.join(task['labels'])}")
        lines += [f"not compared: {reason}" for reason in self.content["not_compared"]]
        return "\n".join([*lines, self.signature])

    def page(self) -> str:
        """Render a page of HTML that needs nothing else."""
        from jinja2 import Environment

        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
        names = [model["name"] for model in self.content["models"]]
        tested: list[tuple[TaskContent, MeasureContent]] = []
        for task in self.content["tasks"].values():
            tested += [(task, measure) for measure in task["measures"] if "comparisons" in measure]
        return template.render(
            comparison=self.content,
            names=names,
            color={name: number % 8 for number, name in enumerate(names)},
            value=format_value,
            difference=format_difference,
            strip=_place_on_line,
            ends=_axis_ends,
            path=without_folders,
            items=_count_items,
            main=_main_measures,
            tested=tested,
            language=lambda code: language_name(code) if "-" not in code else code,
            version=__version__,
        )


def _format_options(options: Mapping[str, str]) -> str:
    return "".join(f", {name.replace('_', ' ')} {value!r}" for name, value in options.items())


def _count_items(measure: MeasureContent, labels: Iterable[str]) -> list[int]:
    """Return the number of items of each label, which is the same for all models."""
    values = next(iter(measure["values"].values()))
    return [values[label][3] for label in labels]


def _main_measures(task: TaskContent) -> list[MeasureContent]:
    """Return the first measure of a task, which sums it up, and the others by which models are tested."""
    first, *others = task["measures"]
    return [first, *(measure for measure in others if measure["tested"])]


def format_value(measure: MeasureContent, value: Sequence[float], sign: str = "") -> str:
    """Format a value with the ends of its interval; ``sign="+"`` shows the sign of each number, as of a difference."""
    factor = 100 if measure["unit"] == "%" else 1
    numbers = [f"{factor * number:{sign},.{measure['decimals']}f}" for number in value[:3]]
    point, low, high = numbers
    return f"{point} [{low}, {high}]" if measure["interval"] else point


def format_difference(measure: MeasureContent, test: PairedTest) -> tuple[str, str]:
    """Format a difference with its interval, and the corrected p."""
    numbers = [test["difference"], test["low"], test["high"]]
    return format_value(measure, numbers, sign="+"), f"{test['p_corrected']:.2g}"


def _axis(measure: MeasureContent, label: str) -> tuple[float, float]:
    """Return both ends of a measure's axis: 0 and 100 % of a share, else 0 and the greatest value.

    Models may then be compared by length, over all measures of the page.
    """
    numbers: list[float] = []
    for values in measure["values"].values():
        numbers += values[label][:3]
    if measure["unit"] == "%":
        numbers.append(1.0)
    return min(0.0, *numbers), max(0.0, *numbers) or 1.0


def _axis_ends(measure: MeasureContent, label: str) -> tuple[str, str]:
    """Format both ends of a measure's axis."""
    factor, unit = (100, " %") if measure["unit"] == "%" else (1, "")
    low, high = _axis(measure, label)
    return f"{factor * low:.3g}{unit}", f"{factor * high:.3g}{unit}"


def _place_on_line(measure: MeasureContent, label: str) -> list[dict[str, Any]]:
    """Place each model's value and interval on the measure's axis, in percent of its width."""
    start, end = _axis(measure, label)
    lines: list[dict[str, Any]] = []
    for model, values in measure["values"].items():
        triple = values[label][:3]
        point, low, high = [round(100 * (number - start) / (end - start), 2) for number in triple]
        lines.append({"name": model, "text": format_value(measure, triple), "at": point, "low": low, "high": high})
    return lines
