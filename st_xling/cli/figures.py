"""Figures as JSON, for ``--json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_figures(path: Path | None, content: Any) -> None:
    """Write ``content`` to ``path``, whose folder is made where it is missing; nothing for ``None``."""
    if path is not None:
        from st_xling.utils.io import write_json

        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)
