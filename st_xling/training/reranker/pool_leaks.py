"""The leak check of a cross-encoder's run: against the pools that judge its stages, before anything is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from st_xling.data.reranking.pools import pool_texts
from st_xling.training.leak_check import OnLeak, check_leaks
from st_xling.training.reranker.stages import Stage

if TYPE_CHECKING:
    from st_xling.data.leak import Texts
    from st_xling.data.leak_report import LeakReport

_SIDES = {"query": "source", "passage": "target"}


def check_pool_leaks(
    plan: Sequence[Stage], evaluation: Mapping[str, Texts] | None = None, *, on_leak: OnLeak = "report"
) -> tuple[list[Stage], LeakReport | None]:
    """Look in the pairs of every stage, on either side, for what judges any of them; say on stderr what is found.

    Args:
        plan: The stages. Of evaluators with ``pools``, such as :class:`~st_xling.evaluation.RerankingEvaluator`, the
            queries and the relevant passages are looked for; of others nothing.
        evaluation: Further texts to look for, by name.
        on_leak: ``"report"``, ``"drop"`` (pairs of which a side is such a text) or ``"fail"``.
    Returns:
        The stages to train, and what was found; ``None`` where there is nothing to compare with.
    Raises:
        LeakError: Something is shared, and ``on_leak`` is ``"fail"``.
        ValueError: As :func:`~st_xling.training.leak_check.check_leaks`.
    """
    judges = {id(stage.evaluator): stage for stage in reversed(plan)}  # one evaluator may judge several stages
    judged: dict[str, Texts] = {}
    for stage in reversed(judges.values()):
        for part in getattr(stage.evaluator, "evaluators", None) or [stage.evaluator]:
            name = f"{stage.recipe.name} {getattr(part, 'name', '') or 'pools'}"
            judged |= {f"{name} {what}": texts for what, texts in pool_texts(getattr(part, "pools", ())).items()}
    data = {stage.name: stage.pairs.rename_columns(_SIDES) for stage in plan}
    kept, report = check_leaks(data, evaluation={**judged, **(evaluation or {})}, on_leak=on_leak)
    if report is None or not report.dropped:
        return list(plan), report
    back = {ours: theirs for theirs, ours in _SIDES.items()}
    return [dataclasses.replace(stage, pairs=kept[stage.name].rename_columns(back)) for stage in plan], report
