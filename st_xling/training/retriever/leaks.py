"""The leak check of a retriever's run: against the queries that judge it, before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from st_xling.training.leak_check import OnLeak, check_leaks
from st_xling.training.retriever.sources import RetrievalSources

if TYPE_CHECKING:
    from st_xling.data.leak import LeakReport, Texts


def check_query_leaks(
    sources: RetrievalSources,
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    *,
    on_leak: OnLeak = "report",
) -> tuple[RetrievalSources, LeakReport | None]:
    """Look in all sources, on either side, for what judges the run; say on stderr what is found.

    Args:
        sources: What is trained on.
        evaluator: Of one with ``sets``, such as :class:`~st_xling.evaluation.retrieval.RetrievalEvaluator`, the queries
            are looked for; the passages are not, since collections are searched by many sets of questions.
        evaluation: Further texts to look for, by name.
        on_leak: ``"report"``, ``"drop"`` (rows of which a side is such a text) or ``"fail"``.
    Returns:
        What to train on, and what was found; ``None`` where there is nothing to compare with.
    Raises:
        LeakError: Something is shared, and ``on_leak`` is ``"fail"``.
        ValueError: As :func:`~st_xling.training.leak_check.check_leaks`.
    """
    judged: dict[str, Texts] = {
        f"{getattr(part, 'name', '') or 'evaluation'} {found.language}, queries {code}": list(asked.values())
        for part in getattr(evaluator, "evaluators", None) or [evaluator]
        for found in getattr(part, "sets", ())
        for code, asked in found.queries.items()
    }
    roles = {"queries": sources.queries, "parallel": sources.parallel, "others": sources.others}
    data = {f"{role}:{name}": part for role, parts in roles.items() for name, part in parts.items()}
    kept, report = check_leaks(data, evaluator, {**judged, **(evaluation or {})}, on_leak=on_leak)
    if report is None or not report.dropped:
        return sources, report
    return RetrievalSources(
        **{role: {name: kept[f"{role}:{name}"] for name in parts} for role, parts in roles.items()}
    ), report
