"""The leak check of a training run: against all that it will be judged by, before anything is trained."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from tqdm.auto import tqdm

from st_xling.data.leak import LeakReport, drop_leaks, leaks, refuse_leaks

if TYPE_CHECKING:
    from datasets import Dataset

    from st_xling.data.leak import Texts

OnLeak = Literal["report", "drop", "fail"]


def check_leaks(
    data: Mapping[str, Dataset],
    evaluator: Any = None,
    evaluation: Mapping[str, Texts] | None = None,
    *,
    on_leak: OnLeak = "report",
) -> tuple[Mapping[str, Dataset], LeakReport | None]:
    """Compare training data with what judges the run, and say on stderr what they share.

    Args:
        data: Name → training data set.
        evaluator: Its aligned ``pairs`` are looked for; of a sequence of evaluators, those of each.
        evaluation: Further texts to look for, by name.
        on_leak: ``"report"`` only tells; ``"drop"`` leaves out training rows of which a side is in the evaluation data;
            ``"fail"`` stops the run.

    Returns:
        The data to train on, and what was found; ``None`` where there is nothing to compare with.

    Raises:
        LeakError: Something is shared, and ``on_leak`` is ``"fail"``.
        ValueError: Dropping would leave a data set empty, or there is nothing to check against though asked for.
    """
    if on_leak not in get_args(OnLeak):
        raise ValueError(f"on_leak must be one of {get_args(OnLeak)}: got {on_leak!r}.")
    judged = {**judging_texts(evaluator), **(evaluation or {})}
    if not judged:
        if on_leak != "report":
            raise ValueError(f"on_leak={on_leak!r} needs evaluation data to check against: got none; name some.")
        return data, None
    report = leaks(data, judged, progress=True)
    if on_leak == "drop" and report.leaking:
        data, report = drop_leaks(data, report), report.as_dropped()
    tqdm.write(report.table(), file=sys.stderr)
    if on_leak == "fail":
        refuse_leaks(report)
    return data, report


def judging_texts(evaluator: Any) -> dict[str, Texts]:
    """What an evaluator judges by, where it keeps aligned ``pairs`` by language, e.g. ``dev deu``."""
    texts: dict[str, Texts] = {}
    for part in getattr(evaluator, "evaluators", None) or [evaluator]:
        pairs = getattr(part, "pairs", None)
        if isinstance(pairs, Mapping):
            prefix = getattr(part, "name", "") or "evaluation"
            texts |= {f"{prefix} {language}": sides for language, sides in pairs.items()}
    return texts
