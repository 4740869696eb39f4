"""Results of translation retrieval as mteb's result files, for its leaderboard and tables.

mteb's bitext tasks (Tatoeba, FLORES, NTREX, …) search as we do and report another measure: F1 over sentence numbers,
see :func:`~st_xling.evaluation.weighted_f1`. Both are in the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from st_xling.evaluation.results import EvaluationResult, SavedResults
from st_xling.utils.languages import canonical_language, hub_language
from st_xling.utils.options import require


def to_mteb(
    results: EvaluationResult | SavedResults | Mapping[str, float],
    folder: str | Path,
    *,
    model_name: str,
    revision: str = "no_revision_available",
    task: str = "Tatoeba",
    split: str = "test",
) -> Path:
    """Write results of :class:`TatoebaEvaluator` or :class:`PrecisionEvaluator` as a result file of mteb.

    Args:
        results: As the evaluator returns them, from a call or ``evaluate``, or as they are saved with a model.
        folder: Cache of mteb, which ``mteb.ResultCache(folder).load_results()`` reads.
        model_name: Name of the model, such as ``"intfloat/multilingual-e5-small"``.
        revision: Commit of the model.
        task: mteb's bitext task whose sentences were used, such as ``"Tatoeba"`` or ``"NTREXBitextMining"``. That they
            are the same sentences is not checked.
        split: Split of the task.
    Returns:
        The file, ``folder/results/{model}/{revision}/{task}.json``, with ``f1``, which is the main score, and
        ``accuracy`` for each of the task's pairs of languages that was evaluated, in mteb's direction.
    Raises:
        ValueError: If mteb is not installed or has no such task of bitext, or no pair of its languages was evaluated.
    Source:
        mteb 2.26.24, ``AbsTaskBitextMining``.
    Example:
        >>> metrics = {"tatoeba_deu_to_en_weighted_f1": 0.97, "tatoeba_deu_to_en_accuracy": 0.98}
        >>> to_mteb(metrics, "mteb", model_name="user/my-encoder")  # doctest: +SKIP
        PosixPath('mteb/results/user__my-encoder/no_revision_available/Tatoeba.json')
    """
    mteb: Any = require("mteb", "writing results for mteb", extra="mteb")
    try:
        bitext = mteb.get_task(task)
    except KeyError as error:
        raise ValueError(f"expected the name of a task of mteb, such as Tatoeba: {error.args[0]}") from error
    metadata = bitext.metadata
    if metadata.type != "BitextMining":
        raise ValueError(f"expected a bitext mining task of mteb, such as Tatoeba: {task} is of type {metadata.type}.")
    figures: Any = getattr(results, "metrics", None) or getattr(results, "figures", results)
    found: dict[str, dict[str, float]] = {}
    for key, f1 in figures.items():
        name = key.removesuffix("_weighted_f1")
        accuracy = figures.get(f"{name}_accuracy", figures.get(f"{name}_p@1"))
        if name != key and accuracy is not None:
            values = {"f1": f1, "accuracy": accuracy, "recall": accuracy, "main_score": f1}
            found |= dict.fromkeys(_endings(name), values)  # a metric begins with any name of its evaluator
    subsets = metadata.hf_subsets_to_langscripts
    languages = {subset: tuple(canonical_language(code) for code in codes) for subset, codes in subsets.items()}
    alike = Counter(languages.values())
    scores = {}
    for subset, pair in languages.items():
        spellings = [tuple(subset.split("-", 1))]
        if alike[pair] == 1:  # else they differ in script alone, which only the whole name has
            spellings += [pair, tuple(map(hub_language, pair))]
        names = [name for one in spellings if len(one) == 2 for name in _names(*one)]
        if known := [found[name] for name in names if name in found]:
            scores[subset] = known[0]
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


def _endings(key: str) -> list[str]:
    """Return a key, and what follows each underscore in it."""
    parts = key.split("_")
    return ["_".join(parts[start:]) for start in range(len(parts))]


def _names(source: str, target: str) -> list[str]:
    """Return the metrics of searching ``target`` for the translations of ``source``, without the evaluator's name."""
    names = [f"{source}-{target}_source_to_target", f"{target}-{source}_target_to_source"]
    names += [f"{source}_to_en"] if target == "eng" else []
    return names + ([f"{target}_from_en"] if source == "eng" else [])
