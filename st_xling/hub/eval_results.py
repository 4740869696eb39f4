"""Results that the Hub's leaderboards read: ``.eval_results/st-xling.yaml`` in a model's folder.

The Hub shows a result only if its data set is a benchmark with that task. Of our results, this is Tatoeba as mteb
evaluates it: all sentences, F1 over sentence numbers. The others are in the card's ``model-index``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.constants import EVAL_RESULTS_FOLDER

from st_xling.data.test_sets import HUB_TEST_SETS
from st_xling.evaluation.results import SavedResults
from st_xling.evaluation.tatoeba import TATOEBA_GROUPS
from st_xling.utils.io import write_atomic

#: Path in a model's folder. mteb writes a file for each of its tasks, which this one does not replace.
EVAL_RESULTS_FILE = f"{EVAL_RESULTS_FOLDER}/st-xling.yaml"

_F1_TO_ENGLISH = re.compile(r"tatoeba_([a-z]{3})_to_en_weighted_f1")


def eval_result_entries(evaluations: Iterable[SavedResults], *, repo_id: str | None = None) -> list[EvalResultEntry]:
    """Return the results that are mteb's, under its task ids.

    A task is a language of mteb's Tatoeba, such as ``Tatoeba_deu-eng_test``; with all 112 languages there is also their
    mean, ``Tatoeba``. Samples of the sentences, and results after centering on the test text, are no benchmark.

    Args:
        evaluations: Saved results, oldest first; of two results of a task the later one counts.
        repo_id: Repository of the model, which is linked as the source.

    Returns:
        Entries with values in %, as mteb has them, and our signature as a note.

    Example:
        >>> figures = {"tatoeba_deu_to_en_weighted_f1": 0.95}
        >>> evaluation = SavedResults("tatoeba", figures, "tatoeba|data:tatoeba@0a1b2c3d|st-xling:1", "", [], [])
        >>> [(entry.task_id, entry.value) for entry in eval_result_entries([evaluation])]
        [('Tatoeba_deu-eng_test', 95.0)]
    """
    source_url = f"https://huggingface.co/{repo_id}" if repo_id else None
    source_name = "st-xling" if repo_id else None
    entries: dict[str, EvalResultEntry] = {}
    for evaluation in evaluations:
        is_benchmark = evaluation.task == "tatoeba" and evaluation.data_name == "tatoeba"
        if not is_benchmark or "center" in evaluation.parts:
            continue
        for task_id, percent in _mteb_values(evaluation.figures).items():
            entries[task_id] = EvalResultEntry(
                dataset_id=HUB_TEST_SETS["tatoeba"].dataset,
                task_id=task_id,
                value=percent,
                date=evaluation.date,
                source_url=source_url,
                source_name=source_name,
                notes=evaluation.signature,
            )
    return list(entries.values())


def _mteb_values(figures: Mapping[str, object]) -> dict[str, float]:
    """Return mteb's task id → its main score in %, F1 of finding English sentences."""
    languages = TATOEBA_GROUPS["laser112"]
    shares: dict[str, float] = {}
    for key, value in figures.items():
        match = _F1_TO_ENGLISH.fullmatch(key)
        is_number = isinstance(value, (int, float)) and math.isfinite(value)
        if match and match[1] in languages and is_number:
            shares[match[1]] = float(value)  # type: ignore[arg-type]
    values = {f"Tatoeba_{code}-eng_test": _percent(share) for code, share in shares.items()}
    if len(shares) == len(languages):
        values["Tatoeba"] = _percent(sum(shares.values()) / len(shares))
    return values


def _percent(share: float) -> float:
    return round(100 * share, 5)


def write_eval_results(
    folder: str | Path, evaluations: Iterable[SavedResults], *, repo_id: str | None = None
) -> Path | None:
    """Write the entries to ``.eval_results/st-xling.yaml``; without entries an earlier file is removed.

    Args:
        folder: Folder of the model.
        evaluations: As for :func:`eval_result_entries`.
        repo_id: As for :func:`eval_result_entries`.

    Returns:
        The file; ``None`` without entries.

    Raises:
        OSError: If it cannot be written; an earlier file is kept.
    """
    path = Path(folder) / EVAL_RESULTS_FILE
    entries = eval_result_entries(evaluations, repo_id=repo_id)
    if not entries:
        path.unlink(missing_ok=True)
        return None
    path.parent.mkdir(exist_ok=True)
    # `safe_dump` refuses numbers of numpy, which nobody could read, and quotes dates, which are texts.
    content = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)
    write_atomic(path, content.encode("utf-8"))
    return path
