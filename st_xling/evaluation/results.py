"""Evaluations saved with a model: the list ``evaluations`` in its ``results.json``, from which its card is made.

Each entry holds what the evaluator returned and, for tables and metadata, the same numbers as rows and columns. The
evaluators' flat dicts are read here alone: by :func:`tatoeba_results`, :func:`bucc_results` and ``_TABLES``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.utils.checks import check_choice
from st_xling.utils.io import finite, read_json_object, update_json_object
from st_xling.utils.tables import format_table

#: Name of the file in a model's folder.
RESULTS_FILE = "results.json"

#: What a BUCC evaluator says of each language pair.
BUCC_METRICS = ("precision", "recall", "f1", "threshold", "n_mined", "n_gold", "n_correct")

_LIST = "evaluations"


@dataclass(frozen=True)
class TatoebaResult:
    """Accuracy of one language, group or of all languages together.

    Attributes:
        label: Language code, group name, or ``"all"`` for the macro average.
        to_en: Fraction of sentences that retrieve their English translation, in [0, 1].
        from_en: Fraction of English sentences that retrieve their translation, in [0, 1].
        is_average: Whether this is a macro average over languages.
    """

    label: str
    to_en: float
    from_en: float
    is_average: bool = False

    @property
    def mean(self) -> float:
        """Mean of the two directions, in [0, 1]."""
        return (self.to_en + self.from_en) / 2


def tatoeba_results(metrics: Mapping[str, float], *, name: str = "tatoeba") -> list[TatoebaResult]:
    """Rows behind the metrics of a :class:`~st_xling.evaluation.TatoebaEvaluator`: languages, groups, then ``"all"``.

    Args:
        metrics: What the evaluator returned; other keys are ignored.
        name: The evaluator's ``name``, the prefix of its keys.
    Raises:
        ValueError: When no key has this prefix.
    """
    prefix = f"{name}_" if name else ""
    languages: list[TatoebaResult] = []
    averages: list[TatoebaResult] = []
    overall: list[TatoebaResult] = []
    for key, to_en in metrics.items():
        if not (key.startswith(prefix) and key.endswith("to_en_accuracy")):
            continue
        label = key[len(prefix) : -len("to_en_accuracy")].rstrip("_")
        stem = f"{prefix}{label}_" if label else prefix
        # Only averages have a mean key of their own.
        is_average = f"{stem}mean_accuracy" in metrics
        row = TatoebaResult(label or "all", to_en, metrics[f"{stem}from_en_accuracy"], is_average)
        (overall if not label else averages if is_average else languages).append(row)
    if not overall:
        raise ValueError(_foreign_metrics(f"{prefix}to_en_accuracy", metrics))
    return languages + averages + overall


def tatoeba_table(metrics: Mapping[str, float], *, name: str = "tatoeba") -> str:
    """The metrics as plain text: one row a language or average, percent with one decimal.

    Args:
        metrics: What the evaluator returned, fractions.
        name: The evaluator's ``name``.
    Returns:
        Lines joined by newlines, without a final one.
    Example:
        >>> one = {"deu_to_en_accuracy": 0.99, "deu_from_en_accuracy": 0.98}
        >>> print(tatoeba_table({**one, "to_en_accuracy": 0.99, "from_en_accuracy": 0.98}, name=""))
        language  to en  from en  mean
        deu        99.0     98.0  98.5
        ------------------------------
        all        99.0     98.0  98.5
    """
    rows = [
        [row.label, 100 * row.to_en, 100 * row.from_en, 100 * row.mean] for row in tatoeba_results(metrics, name=name)
    ]
    groups = sum(row.is_average and row.label != "all" for row in tatoeba_results(metrics, name=name))
    return format_table(["language", "to en", "from en", "mean"], rows, summary=groups + 1)


def bucc_results(metrics: Mapping[str, Any], *, name: str = "bucc") -> dict[str, dict[str, Any]]:
    """Language pair → :data:`BUCC_METRICS`, then ``"mean"`` → precision, recall and F1.

    Args:
        metrics: What a :class:`~st_xling.evaluation.BuccEvaluator` returned; other keys are ignored.
        name: The evaluator's ``name``, the prefix of its keys.
    Raises:
        ValueError: When no key has this prefix.
    """
    prefix, suffix = f"{name}_" if name else "", "_f1"
    own = [key for key in metrics if key.startswith(prefix) and key.endswith(suffix)]
    # The average's own key is prefix and suffix alone.
    pairs = [pair for key in own if (pair := key[len(prefix) : -len(suffix)])]
    if not pairs or f"{prefix}f1" not in metrics:
        raise ValueError(_foreign_metrics(f"{prefix}f1 and that of pairs", metrics))
    results = {pair: {metric: metrics.get(f"{prefix}{pair}_{metric}") for metric in BUCC_METRICS} for pair in pairs}
    return {**results, "mean": {metric: metrics[f"{prefix}{metric}"] for metric in BUCC_METRICS[:3]}}


def bucc_table(metrics: Mapping[str, float], *, name: str = "bucc") -> str:
    """One row a language pair, then the macro average; percent with one decimal.

    Args:
        metrics: What a :class:`~st_xling.evaluation.BuccEvaluator` returned.
        name: The evaluator's ``name``.
    Returns:
        Lines joined by newlines, without a final one.
    Raises:
        ValueError: When no key has this prefix.
    Example:
        >>> counts = {"de-en_n_mined": 4, "de-en_n_correct": 3, "de-en_n_gold": 6, "de-en_threshold": 1.06}
        >>> shares = {"de-en_precision": 0.75, "de-en_recall": 0.5, "de-en_f1": 0.6}
        >>> print(bucc_table({**counts, **shares, "precision": 0.75, "recall": 0.5, "f1": 0.6}, name=""))
        pair   threshold  mined  correct  gold  precision  recall    F1
        de-en     1.0600      4        3     6       75.0    50.0  60.0
        ---------------------------------------------------------------
        mean                                         75.0    50.0  60.0
    """
    rows = []
    for pair, result in bucc_results(metrics, name=name).items():
        counts = [""] * 4
        if pair != "mean":
            counts = [f"{result['threshold']:.4f}", *(f"{result[f'n_{count}']:.0f}" for count in _COUNTS)]
        rows.append([pair, *counts, *(100 * result[metric] for metric in BUCC_METRICS[:3])])
    return format_table(["pair", "threshold", *_COUNTS, "precision", "recall", "F1"], rows, summary=1)


_COUNTS = ("mined", "correct", "gold")


def _foreign_metrics(expected: str, metrics: Mapping[str, Any]) -> str:
    first = ", ".join(sorted(metrics)[:3]) or "no metrics"
    return f"metrics must hold {expected}: got {first}; pass the evaluator's own dict and its name."


@dataclass(frozen=True)
class Column:
    """One measure of an evaluation.

    Attributes:
        name: Head of the table.
        metric: Its id in a card's metadata; ``None``: it does not appear there.
        percent: Whether values are fractions, shown in percent.
        picture: Whether the bar chart of languages shows it.
    """

    name: str
    metric: str | None = None
    percent: bool = True
    picture: bool = False


@dataclass(frozen=True)
class Row:
    """The results of one language, pair of languages or average.

    Attributes:
        label: Which.
        values: One a column; ``None`` where there is none.
        average: Whether it is an average over other rows.
        arguments: What the metadata say beside the signature, such as the threshold.
        intervals: Lower and upper end, one a column; empty without intervals.
    """

    label: str
    values: list[float | None]
    average: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    intervals: list[list[float]] = field(default_factory=list)


Table = tuple[list[Column], list[Row]]


@dataclass(frozen=True)
class KeptFigures:
    """One evaluation of a model, as it is saved with it.

    Attributes:
        task: One of :data:`TASKS`.
        figures: What ``--json`` writes of the task; NaN and infinities, which JSON does not know, as ``None``.
        signature: What they depend on besides the model.
        command: Which gives them again.
        version: Of st-xling.
        columns: Measures; ``None``: as ``figures`` have them.
        rows: Their values; ``None``: as ``figures`` have them.
    Raises:
        ValueError: For another task.
    """

    task: str
    figures: dict[str, Any]
    signature: str
    command: str
    version: str = __version__
    columns: list[Column] | None = None
    rows: list[Row] | None = None

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        if self.columns is None or self.rows is None:
            columns, rows = _table(self.task, self.figures, self.parts)
            object.__setattr__(self, "columns", columns)
            object.__setattr__(self, "rows", rows)

    @property
    def parts(self) -> dict[str, str]:
        """The ``key:value`` parts of the signature."""
        return dict(part.partition(":")[::2] for part in self.signature.split("|"))

    @property
    def data_name(self) -> str:
        """What the model was evaluated on; the task where the signature names no data."""
        return self.parts.get("data", "").rpartition("@")[0] or self.task


def keep_figures(folder: str | Path, kept: KeptFigures) -> Path:
    """Add an evaluation to those of a model; one of the same task and signature is replaced, all else stays.

    Args:
        folder: Of the model.
        kept: The evaluation.
    Returns:
        The file.
    Raises:
        ValueError: If there is no such folder, the file that is there is broken, or metrics are not JSON's.
        OSError: When it cannot be written; what was there then stands.
    """
    path = Path(folder) / RESULTS_FILE
    if not path.parent.is_dir():
        raise ValueError(f"results are saved in a model's folder: there is no folder {folder}.")
    try:
        new = json.loads(json.dumps(finite(asdict(kept)), allow_nan=False))
    except TypeError as error:
        raise ValueError(f"metrics must be what JSON can write: {error}.") from error

    def added(content: dict[str, Any]) -> dict[str, Any]:
        _parsed(content, path)  # a broken file is not written over
        entries = list(content.get(_LIST, []))
        for place, entry in enumerate(entries):
            if (entry["task"], entry["signature"]) == (kept.task, kept.signature):
                entries[place] = new
                break
        else:
            entries.append(new)
        return {**content, _LIST: entries}

    update_json_object(path, added)
    return path


def read_kept_figures(folder: str | Path) -> list[KeptFigures]:
    """Evaluations that were saved with a model, oldest first; none if there are none.

    Raises:
        ValueError: If the file is broken.
    """
    path = Path(folder) / RESULTS_FILE
    return _parsed(read_json_object(path), path)


def _parsed(content: dict[str, Any], path: Path) -> list[KeptFigures]:
    """The entries of the file; all faults in one error."""
    entries, results = content.get(_LIST, []), []
    faults = [] if isinstance(entries, list) else [f"{_LIST!r} must be a list, got {type(entries).__name__}"]
    for number, entry in enumerate(entries if not faults else [], 1):
        try:
            results.append(_entry(entry))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            faults.append(f"number {number}: {f'{error} is missing' if isinstance(error, KeyError) else error}")
    if faults:
        raise ValueError(f"{path}: expected results of evaluations: {'; '.join(faults)}. Mend or remove the file.")
    return results


def _entry(entry: Any) -> KeptFigures:
    """One evaluation."""
    if not isinstance(entry, dict):
        raise ValueError(f"expected an object, got {entry!r}")
    words = {name: entry[name] for name in ("task", "figures", "signature", "command", "version")}
    table: dict[str, Any] = {
        name: [_known(kind, part) for part in entry[name]] for name, kind in (("columns", Column), ("rows", Row))
    }
    return KeptFigures(**words, **table)


def _known(kind: Any, entry: dict[str, Any]) -> Any:
    """Keys that are not known here, of a later version, are left out."""
    return kind(**{part.name: entry[part.name] for part in fields(kind) if part.name in entry})


def _table(task: str, metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    """Metrics as rows and columns; those that are not of the form of their task under their own names."""
    try:
        return _TABLES[task](metrics, parts)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return [Column("value", "value", percent=False)], [Row(name, [value]) for name, value in _numbers(metrics)]


def _tatoeba(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    columns = [Column(f"{way} English", "accuracy", picture=True) for way in ("to", "from")]
    results = tatoeba_results(metrics, name=_evaluator_name(metrics, "to_en_accuracy"))
    rows = [
        Row(result.label, [result.to_en, result.from_en, result.mean], result.is_average or result.label == "all")
        for result in results
    ]
    return [*columns, Column("mean")], rows


def _bucc(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    results = bucc_results(metrics, name=_evaluator_name(metrics, "f1"))
    mean, source = results.pop("mean"), parts.get("threshold", "unknown")
    names = [*BUCC_METRICS[:4], *(f"n_{count}" for count in _COUNTS)]
    rows = [
        Row(
            pair,
            [result[name] for name in names],
            arguments={"threshold": result["threshold"], "threshold_source": source},
        )
        for pair, result in results.items()
    ]
    if len(rows) > 1:
        rows.append(Row("all", [*mean.values(), None, None, None, None], average=True))
    shares = [Column("precision", "precision"), Column("recall", "recall"), Column("F1", "f1", picture=True)]
    return [*shares, *(Column(name, percent=False) for name in ("threshold", *_COUNTS))], rows


def _xsim(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    columns = [Column(f"error {way} English", "xsim_error") for way in ("to", "from")]
    rows = [
        Row(label, [result["to_en_error"], result["from_en_error"]], average=label == "all")
        for label, result in metrics.items()
    ]
    if "to_en_plus_plus" in metrics["all"]:
        columns.append(Column("xsim++ to English", "xsim_plus_plus_error"))
        for row in rows:
            row.values.append(metrics[row.label]["to_en_plus_plus"]["error"])
    return columns, rows


def _precision(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    prefix = min((key for key in metrics if "mean_p@" in key), key=len).partition("mean_p@")[0]
    form = re.compile(re.escape(prefix) + r"(?:(.+)_)?(source_to_target|target_to_source)_p@(\d+)")
    values = {match.groups(): value for key, value in metrics.items() if (match := form.fullmatch(key))}
    labels, at = (list(dict.fromkeys(key[place] for key in values)) for place in (0, 2))
    ways = {"source_to_target": "→", "target_to_source": "←"}
    columns = [Column(f"P@{n} {arrow}", f"precision_at_{n}", picture=n == at[0]) for n in at for arrow in ways.values()]
    rows = [
        Row(label or "all", [values[label, way, n] for n in at for way in ways], average=label is None)
        for label in labels
        if label is not None or len(labels) != 2  # the average of one pair is that pair
    ]
    return columns, rows


def _reranking(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    overall, matrix = metrics["overall"], metrics.get("matrix", {})
    names = [name for name, value in overall.items() if isinstance(value, dict)]
    columns = [
        Column(
            name if name.startswith("acc") else name.upper(),
            name.replace("acc@", "accuracy_at_"),
            picture=name == names[0],
        )
        for name in names
    ]
    intervals = [[overall[name]["low"], overall[name]["high"]] for name in names]
    rows = [Row("all", [overall[name]["mean"] for name in names], average=True, intervals=intervals)]
    for query, others in matrix.items():
        rows += [
            Row(f"{query} → {other}", [result[name]["mean"] for name in names]) for other, result in others.items()
        ]
    return columns, rows


def _retrieval(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    # Another system's metrics stand beside the model's in the table, and are no metric of the model.
    systems = {name: metrics[name]["figures"] for name in sorted(metrics, key=lambda name: name == "BM25")}
    own, *_ = systems
    measures = list(next(iter(systems[own].values())))
    columns = [
        Column(
            f"{name} {measure}" if name == "BM25" else measure,
            None if name == "BM25" else measure.lower().replace("@", "_at_"),
            picture=measure == measures[0],
        )
        for name in systems
        for measure in measures
    ]
    rows = [
        Row(label, [results[label][measure] for results in systems.values() for measure in measures], label == "mean")
        for label in systems[own]
    ]
    return columns, rows


def _transfer(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    measures = list(metrics["average"])
    columns = [Column("F1" if name == "f1" else name, name, picture=name == measures[0]) for name in measures]
    rows = [Row(language, [result[name] for name in measures]) for language, result in metrics["languages"].items()]
    for label, key in (("mean", "average"), ("mean of languages not trained on", "zero_shot_average")):
        rows.append(Row(label, [metrics[key][name] for name in measures], average=True))
    return columns, rows


def _compare(metrics: dict[str, Any], parts: dict[str, str]) -> Table:
    rows = [Row(label, [each["value"]], intervals=[[each["low"], each["high"]]]) for label, each in metrics.items()]
    return [Column("score", "score")], rows


_TABLES: dict[str, Callable[[dict[str, Any], dict[str, str]], Table]] = {
    "tatoeba": _tatoeba,
    "bucc": _bucc,
    "xsim": _xsim,
    "precision": _precision,
    "reranking": _reranking,
    "retrieval": _retrieval,
    "compare": _compare,
    **{f"transfer-{task}": _transfer for task in ("xnli", "pawsx", "pos", "panx")},
}

#: What an evaluation may be of.
TASKS = tuple(_TABLES)


def _evaluator_name(metrics: Mapping[str, Any], ending: str) -> str:
    """The evaluator's name stands before all keys; the shortest are those of averages."""
    return min((key for key in metrics if key.endswith(ending)), key=len).removesuffix(ending).removesuffix("_")


def _numbers(metrics: Any, stem: str = "") -> list[tuple[str, float]]:
    if isinstance(metrics, Mapping):
        return [number for name, part in metrics.items() for number in _numbers(part, f"{stem}{name} ")]
    known = isinstance(metrics, (int, float)) and not isinstance(metrics, bool)
    return [(stem.strip(), float(metrics))] if known else []
