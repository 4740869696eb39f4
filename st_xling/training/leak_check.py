"""The leak check of a training run: against all that it will be evaluated on, before anything is trained."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from st_xling.data.leak import LeakReport, drop_leaks, leaks, refuse_leaks
from st_xling.data.reranking.pools import pool_texts
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.leak import Texts

logger = logging.getLogger(__name__)

OnLeak = Literal["report", "drop", "fail"]


def check_leaks(
    data: Mapping[str, Dataset],
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    *,
    on_leak: OnLeak = "report",
) -> tuple[Mapping[str, Dataset], LeakReport | None]:
    """Compare training data with what evaluates the run, and log what they share.

    Args:
        data: Name → training data set.
        evaluator: Its texts are looked for, see :func:`evaluation_texts`.
        evaluation: Further texts to look for, by name.
        on_leak: ``"report"`` only reports; ``"drop"`` leaves out training rows that hold such a text in either column;
            ``"fail"`` stops the run.

    Returns:
        The data to train on, and what was found; ``None`` where there is nothing to compare with.

    Raises:
        LeakError: Something is shared, and ``on_leak`` is ``"fail"``.
        ValueError: Dropping would leave a data set empty, or there is nothing to check against though asked for.
    """
    check_choice("on_leak", on_leak, OnLeak)
    texts = {**evaluation_texts(evaluator), **(evaluation or {})}
    if not texts:
        if on_leak != "report":
            raise ValueError(f"on_leak={on_leak!r} needs evaluation data to check against: got none; name some.")
        return data, None
    report = leaks(data, texts, progress=True)
    # Rows go from the training data alone: what evaluates the model stays as it is.
    if on_leak == "drop" and report.leaking:
        data, report = drop_leaks(data, report), dataclasses.replace(report, dropped=True)
    logger.log(logging.WARNING if report.leaking and on_leak == "report" else logging.INFO, "%s", report.table())
    if on_leak == "fail":
        refuse_leaks(report)
    return data, report


def evaluation_texts(evaluator: Any) -> dict[str, Texts]:
    """Return the texts of an evaluator, or of each of a sequence of them, by name.

    Of ``sets`` of questions these are the queries (collections of passages are searched by many sets), of ``pools``
    the queries and the relevant passages, of aligned ``pairs`` both sides, e.g. ``dev deu``.
    """
    texts: dict[str, Texts] = {}
    for part in getattr(evaluator, "evaluators", None) or [evaluator]:
        name, pairs = getattr(part, "name", "") or "evaluation", getattr(part, "pairs", None)
        # An evaluator of retrieval has pools too, of passages: its sets come first.
        if sets := getattr(part, "sets", ()):
            for group in sets:
                for code, queries in group.queries.items():
                    texts[f"{name} {group.language}, queries {code}"] = list(queries.values())
        elif pools := getattr(part, "pools", ()):
            texts |= {f"{name} {what}": parts for what, parts in pool_texts(pools).items()}
        elif isinstance(pairs, Mapping):
            texts |= {f"{name} {language}": sides for language, sides in pairs.items()}
    return texts
