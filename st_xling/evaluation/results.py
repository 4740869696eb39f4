"""Results of an evaluation as metrics and as rows; they are saved with a model, and its card is made from them.

``results.json`` in the model's folder has them in the list ``evaluations``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.utils.io import finite, read_json_object, update_json_object
from st_xling.utils.options import check_choice
from st_xling.utils.tables import Column, Row, format_rows

#: Name of the file in a model's folder.
RESULTS_FILE = "results.json"

#: Names of evaluations.
TASKS = (
    *("tatoeba", "bucc", "xsim", "precision", "reranking", "retrieval", "compare"),
    *(f"transfer-{task}" for task in ("xnli", "pawsx", "pos")),
)

_LIST = "evaluations"
_TABLE = {"columns": Column, "rows": Row}


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation.

    Attributes:
        metrics: What ``--json`` writes.
        columns: Measures of the table.
        rows: A row for each language, pair of languages or average, with a value for each column.
        signature: What the metrics depend on besides the model.
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
        task: One of :data:`TASKS`.
        figures: What ``--json`` writes of the task; NaN and infinities, which JSON does not have, as ``None``.
        signature: What they depend on besides the model.
        command: The command that computes them.
        columns: Measures of the table.
        rows: Their values.
        version: Version of st-xling.
    Raises:
        ValueError: For another task.
    """

    task: str
    figures: dict[str, Any]
    signature: str
    command: str
    columns: list[Column]
    rows: list[Row]
    version: str = __version__

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)

    @classmethod
    def of(cls, task: str, result: EvaluationResult, command: str) -> SavedResults:
        return cls(task, result.metrics, result.signature, command, result.columns, result.rows)

    @property
    def parts(self) -> dict[str, str]:
        """The ``key:value`` parts of the signature."""
        return dict(part.partition(":")[::2] for part in self.signature.split("|"))

    @property
    def data_name(self) -> str:
        """Name of the evaluated data; the task where the signature has no data."""
        return self.parts.get("data", "").rpartition("@")[0] or self.task


def save_results(folder: str | Path, saved: SavedResults) -> Path:
    """Add an evaluation to those of a model; one of the same task and signature is replaced, all else stays.

    Args:
        folder: Of the model.
        saved: The evaluation.
    Returns:
        The file.
    Raises:
        ValueError: If there is no such folder, or the file that is there is broken.
        OSError: When it cannot be written; an earlier file is kept.
    """
    path = Path(folder) / RESULTS_FILE
    if not path.parent.is_dir():
        raise ValueError(f"results are saved in a model's folder: there is no folder {folder}.")
    new = json.loads(json.dumps(finite(asdict(saved)), allow_nan=False))

    def added(content: dict[str, Any]) -> dict[str, Any]:
        _parsed(content, path)  # a broken file is not overwritten
        entries = {(entry["task"], entry["signature"]): entry for entry in content.get(_LIST, [])}
        return {**content, _LIST: [*{**entries, (saved.task, saved.signature): new}.values()]}

    update_json_object(path, added)
    return path


def read_saved_results(folder: str | Path) -> list[SavedResults]:
    """Evaluations that were saved with a model, oldest first; none if there are none.

    Raises:
        ValueError: If the file is broken.
    """
    path = Path(folder) / RESULTS_FILE
    return _parsed(read_json_object(path), path)


def _parsed(content: dict[str, Any], path: Path) -> list[SavedResults]:
    """Return the entries of the file; keys of a later version are ignored."""
    try:
        results = []
        for entry in content.get(_LIST, []):
            columns, rows = ([_known(kind, part) for part in entry[name]] for name, kind in _TABLE.items())
            results.append(_known(SavedResults, {**entry, "columns": columns, "rows": rows}))
        return results
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{path}: expected results of evaluations: {error}. Fix or remove the file.") from error


def _known(kind: Any, entry: dict[str, Any]) -> Any:
    return kind(**{part.name: entry[part.name] for part in fields(kind) if part.name in entry})
