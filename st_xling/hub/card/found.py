"""What can be seen only where a run was made: which names were ids of the Hub. Looked at once, then kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from st_xling.hub.card.sources import hub_data_sets

_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_NO_MODEL = ("tiny", "a loaded model")


def look_around(run: Mapping[str, Any]) -> dict[str, Any]:
    """``base_model``: the Hub id that training started from; ``data``: what :func:`hub_data_sets` says."""
    start = run.get("model")
    is_id = isinstance(start, str) and start not in _NO_MODEL and _MODEL_ID.fullmatch(start) is not None
    base = start if is_id and not Path(str(start)).exists() else None
    return {"base_model": base, "data": hub_data_sets(run)}
