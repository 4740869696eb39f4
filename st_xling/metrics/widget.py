"""The page of a metric's Space: JSON in, results out.

``evaluate``'s own widget is made for gradio 3, which needs numpy 1 and so cannot be installed beside this package; and
it reads a table, whereas a row of ours is a whole corpus.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluate.utils.gradio import parse_readme


def figures(metric: Any, texts: Sequence[str], options: str = "") -> dict[str, Any]:
    """Compute ``metric`` from what was typed.

    Args:
        metric: From ``evaluate.load``.
        texts: JSON lists, one for each of the metric's inputs, in their order.
        options: A JSON object with further arguments of ``compute``, or nothing.

    Raises:
        ValueError: Text that is not such JSON, or what the metric refuses.
    """
    inputs = {name: _parse(name, text, list) for name, text in zip(input_names(metric), texts, strict=True)}
    extra = _parse("options", options, dict) if options.strip() else {}
    try:
        return metric.compute(**inputs, **extra)
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"the metric does not take this: {error}.") from error


def input_names(metric: Any) -> list[str]:
    """What the metric is computed from: predictions, references."""
    features = metric.features
    return list(features[0] if isinstance(features, list) else features)


def page(metric: Any, folder: str | Path) -> Any:
    """The page, to be launched: the metric's card below, its worked cases as examples.

    Args:
        metric: From ``evaluate.load``.
        folder: The Space's, with ``README.md`` and ``tests.py``.

    Returns:
        A ``gradio.Interface``.
    """
    import gradio

    names = input_names(metric)
    cases = runpy.run_path(str(Path(folder) / "tests.py"))["test_cases"]

    def compute(*texts: str) -> dict[str, Any]:
        try:
            return figures(metric, texts[:-1], texts[-1])
        except ValueError as error:
            raise gradio.Error(str(error)) from error

    return gradio.Interface(
        fn=compute,
        inputs=[gradio.Textbox(label=f"{name}, as JSON", lines=4) for name in [*names, "options"]],
        outputs=gradio.JSON(label=metric.name),
        examples=[[*(json.dumps(case[name]) for name in names), json.dumps(case.get("options", {}))] for case in cases],
        cache_examples=False,
        title=f"Metric: {metric.name}",
        description=metric.info.description,
        article=parse_readme(str(Path(folder) / "README.md")),
    )


def _parse(name: str, text: str, kind: type) -> Any:
    expected = "a list" if kind is list else "an object"
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} must be {expected} in JSON: {error}.") from error
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {expected} in JSON: got {type(value).__name__}.")
    return value
