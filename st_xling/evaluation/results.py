"""Results of an evaluation as metrics and as rows, saved with a model for its card, or as result files of mteb.

``results.json`` in the model's folder has them in the list ``evaluations``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling._version import __version__
from st_xling.utils.io import check_shape, finite, read_json_object, update_json_object
from st_xling.utils.languages import canonical_language, hub_language
from st_xling.utils.options import require
from st_xling.utils.tables import Column, Row, format_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Name of the file in a model's folder.
RESULTS_FILE = "results.json"

#: Name of data that nobody named; never that of a task, which is called like a benchmark.
UNNAMED = "unnamed"

_LIST = "evaluations"
_DIGITS = re.compile(r"[0-9a-f]{8}")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation.

    Attributes:
        metrics: The metrics, as ``--json`` writes them.
        columns: Measures of the table.
        rows: A row for each language, pair of languages or average, with a value for each column.
        signature: Everything that the metrics depend on besides the model.
    """

    metrics: dict[str, Any]
    columns: list[Column]
    rows: list[Row]
    signature: str

    def table(self, head: str = "language") -> str:
        """Format the rows as plain text; ``head`` is the head of their labels."""
        return format_rows(head, self.columns, self.rows)


@dataclass(frozen=True)
class SavedResults:
    """One evaluation of a model, as it is saved with it.

    Attributes:
        task: Name of the evaluation, such as ``"tatoeba"``; see :data:`st_xling.hub.card_facts.TASKS`.
        figures: The metrics, as ``--json`` writes them; NaN and infinities, which JSON does not have, as ``None``.
        signature: Everything that they depend on besides the model.
        command: The command that computes them.
        columns: Measures of the table.
        rows: Their values.
        version: Version of st-xling.
        date: Day of the evaluation (UTC), such as ``"2026-03-31"``; ``None``: not recorded.
    """

    task: str
    figures: dict[str, Any]
    signature: str
    command: str
    columns: list[Column]
    rows: list[Row]
    version: str = __version__
    date: str | None = None

    @classmethod
    def of(cls, task: str, result: EvaluationResult, command: str) -> SavedResults:
        """Describe a result of ``task`` that ``command`` computed today."""
        today = datetime.now(timezone.utc).date().isoformat()
        return cls(task, result.metrics, result.signature, command, result.columns, result.rows, date=today)

    @property
    def parts(self) -> dict[str, str]:
        """The ``key:value`` parts of the signature."""
        return dict(part.partition(":")[::2] for part in self.signature.split("|"))

    @property
    def data_name(self) -> str:
        """Name of the evaluated data, as in the signature, without the digits that identify it."""
        data = self.parts.get("data", "")
        if "@" in data:
            name = data.rpartition("@")[0]
        elif _DIGITS.fullmatch(data):  # only digits: nobody named the data
            name = ""
        else:
            name = data
        return name or UNNAMED


def save_results(folder: str | Path, saved: SavedResults) -> Path:
    """Add an evaluation to those of a model; one of the same task and signature is replaced, the others stay.

    Args:
        folder: Folder of the model.
        saved: The evaluation.

    Returns:
        The file.

    Raises:
        ValueError: If there is no such folder, or the file that is there is broken.
        OSError: When it cannot be written; an earlier file is kept.
    """
    path = Path(folder) / RESULTS_FILE
    if not path.parent.is_dir():
        raise ValueError(f"results are saved with a model: there is no folder {folder}.")
    new = json.loads(json.dumps(finite(asdict(saved)), allow_nan=False))

    def add_evaluation(content: dict[str, Any]) -> dict[str, Any]:
        _read_entries(content, path)
        entries = {(entry["task"], entry["signature"]): entry for entry in content.get(_LIST, [])}
        entries[saved.task, saved.signature] = new
        return {**content, _LIST: list(entries.values())}

    update_json_object(path, add_evaluation)
    return path


def read_saved_results(folder: str | Path) -> list[SavedResults]:
    """Read the evaluations that were saved with a model, oldest first; none if there are none."""
    path = Path(folder) / RESULTS_FILE
    return _read_entries(read_json_object(path), path)


def _read_entries(content: dict[str, Any], path: Path) -> list[SavedResults]:
    """Return the evaluations in a file; raise ``ValueError`` if one lacks a part or has one of another type."""
    check_shape(content, {_LIST: [{"task": str, "signature": str, "columns": [dict], "rows": [dict]}]}, path)
    results = []
    try:
        for entry in content.get(_LIST, []):
            columns = [Column(**_select_fields(column, Column)) for column in entry["columns"]]
            rows = [Row(**_select_fields(row, Row)) for row in entry["rows"]]
            values = _select_fields(entry, SavedResults)
            values.update(columns=columns, rows=rows)
            results.append(SavedResults(**values))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected evaluations as st-xling evaluate --keep writes them, got one with other keys ({error}); "
            "restore the file, or remove it."
        ) from error
    return results


def _select_fields(entry: Mapping[str, Any], kind: type[Column | Row | SavedResults]) -> dict[str, Any]:
    """Return the values that ``kind`` has a field for: a later version may save more, which stays in the file."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in entry.items() if name in names}


def mteb_name(model: str | Path | SentenceTransformer) -> str:
    """Return a name for mteb that no other model has.

    mteb calls every model of a folder ``no_model_name/available`` and returns the cached results of the first for the
    second. Set the name before: ``model.model_card_data.model_name = mteb_name(model)``.

    Args:
        model: Folder of a model, or a loaded one, which is named by its weights and settings; or a name that is no
            folder, such as ``"intfloat/multilingual-e5-small"``, which stays as it is.

    Example:
        >>> mteb_name("user/my-encoder")  # without such a folder; of one, local/my-encoder-1f0c3a9e
        'user/my-encoder'
    """
    from st_xling.models.sidecar import model_fingerprint, saved_fingerprint

    if not isinstance(model, (str, Path)):
        return f"local/model-{model_fingerprint(model)[:8]}"
    folder = Path(model)
    if not folder.is_dir():
        return str(model)
    folder_name = _NOT_IN_NAMES.sub("_", folder.resolve().name)  # mteb does not keep spaces
    return f"local/{folder_name}-{str(saved_fingerprint(str(folder)))[:8]}"


def to_mteb(
    results: Mapping[str, float],
    folder: str | Path,
    *,
    model_name: str | Path | SentenceTransformer,
    task: str,
    revision: str = "no_revision_available",
    split: str = "test",
) -> Path:
    """Write results of :class:`TatoebaEvaluator` or :class:`PrecisionEvaluator` as a result file of mteb.

    mteb's bitext tasks search as we do and report F1 over sentence numbers, see
    :func:`~st_xling.evaluation.weighted_f1`. The file has both measures.

    Args:
        results: As the evaluator returns them.
        folder: Cache of mteb, which ``mteb.ResultCache(folder).load_results()`` reads.
        model_name: Name of the model, such as ``"intfloat/multilingual-e5-small"``; or its folder, or the loaded model,
            which is called by :func:`mteb_name`: mteb takes results of one name for those of one model.
        task: mteb's bitext task whose sentences were used, such as ``"Tatoeba"`` or ``"NTREXBitextMining"``. That they
            are the same sentences is not checked, so there is no default.
        revision: Commit of the model.
        split: Split of the task.

    Returns:
        The file, ``folder/results/{model}/{revision}/{task}.json``, with ``f1``, which is the main score, and
        ``accuracy`` for each of the task's pairs of languages that was evaluated, in mteb's direction.

    Raises:
        ValueError: If mteb is not installed, or no pair of the task's languages was evaluated.
        KeyError: If mteb has no such task.
    Source:
        mteb 2.26.24, ``AbsTaskBitextMining``.

    Example:
        >>> metrics = {"tatoeba_deu_to_en_weighted_f1": 0.97, "tatoeba_deu_to_en_accuracy": 0.98}
        >>> to_mteb(metrics, "mteb", model_name="user/my-encoder", task="Tatoeba")  # doctest: +SKIP
        PosixPath('mteb/results/user__my-encoder/no_revision_available/Tatoeba.json')
    """
    mteb: Any = require("mteb", "writing results for mteb", extra="mteb")
    model_name = mteb_name(model_name)
    bitext = mteb.get_task(task)
    subsets = bitext.metadata.hf_subsets_to_langscripts
    languages = {subset: tuple(map(canonical_language, codes)) for subset, codes in subsets.items()}
    subsets_per_pair = Counter(languages.values())
    scores = {}
    for subset, pair in languages.items():
        spellings = [tuple(subset.split("-", 1))]
        if subsets_per_pair[pair] == 1:  # otherwise subsets differ only in script, which only the full name has
            spellings += [pair, tuple(map(hub_language, pair))]
        scored = _find_subset_scores(results, spellings)
        if scored is not None:
            f1, accuracy = scored
            scores[subset] = {"f1": f1, "accuracy": accuracy, "recall": accuracy, "main_score": f1}
    if not scores:
        raise ValueError(
            f"no result is of a pair of {task}, such as {', '.join([*subsets][:3])}; evaluate these with "
            "TatoebaEvaluator or PrecisionEvaluator."
        )
    result = mteb.TaskResult.from_task_results(bitext, {split: scores}, evaluation_time=0.0)
    result.evaluation_time = None
    cache = mteb.ResultCache(Path(folder))
    cache.save_to_cache(result, model_name, revision)
    return Path(cache.get_task_result_path(task, model_name, revision))


def _find_subset_scores(
    results: Mapping[str, float], spellings: Sequence[tuple[str, ...]]
) -> tuple[float, float] | None:
    """Return F1 and accuracy of a pair of languages; ``None`` if it was not evaluated.

    Args:
        results: Metrics of an evaluator.
        spellings: The ways in which the pair of languages may be written.
    """
    endings: list[str] = []
    for spelling in spellings:
        if len(spelling) == 2:
            # A metric begins with any name of its evaluator.
            endings += [f"_{name}" for name in _metric_names(*spelling)]
    for key, f1 in results.items():
        name = key.removesuffix("_weighted_f1")
        accuracy = results.get(f"{name}_accuracy", results.get(f"{name}_p@1"))
        if name != key and accuracy is not None and f"_{name}".endswith(tuple(endings)):
            return f1, accuracy
    return None


def _metric_names(source: str, target: str) -> list[str]:
    """Return the metrics of searching ``target`` for the translations of ``source``, without the evaluator's name."""
    names = [f"{source}-{target}_source_to_target", f"{target}-{source}_target_to_source"]
    if target == "eng":
        names.append(f"{source}_to_en")
    if source == "eng":
        names.append(f"{target}_from_en")
    return names
