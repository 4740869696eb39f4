"""What of a run's outputs is kept in a notebook, and of which kinds outputs are."""

from __future__ import annotations

from typing import Any

import nbformat

# What a viewer without the kernel cannot show.
_WIDGET = "application/vnd.jupyter.widget-view+json"


def kept_outputs(outputs: list[Any]) -> list[Any]:
    """Outputs without what differs from run to run or is of no use later: stderr (warnings, progress) and widgets.

    What was printed bit by bit becomes one piece; the terminal of a shell command ends its lines by ``\\r\\n``.
    """
    kept: list[Any] = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            text = output.text.replace("\r\n", "\n")
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += text
                continue
            output = nbformat.from_dict({**output, "text": text})
        elif _WIDGET in output.get("data", {}):
            continue
        kept.append(nbformat.from_dict(output))
    return kept


def kinds(outputs: list[Any]) -> list[str]:
    """Of each output that is kept: ``stdout``, or the richest of its forms, such as ``image/png``."""
    return [
        output.name if output.output_type == "stream" else _richest(output.get("data", {}))
        for output in kept_outputs(outputs)
    ]


def printed(notebook: Any) -> str:
    """All that the cells of a notebook printed, and their results as text."""
    parts = []
    for cell in notebook.cells:
        for output in kept_outputs(cell.get("outputs", [])):
            if output.output_type == "stream":
                parts.append(output.text)
            parts += [text for form, text in output.get("data", {}).items() if form in ("text/plain", "text/markdown")]
    return "\n".join(parts)


def pictures(notebook: Any) -> list[str]:
    """The PNGs of a notebook, in base64."""
    data = (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    return [forms["image/png"] for forms in data if "image/png" in forms]


def _richest(data: Any) -> str:
    return next((form for form in ("image/png", "text/markdown", "text/html") if form in data), "text/plain")
