"""Short names for data in signatures."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha8(content: Any) -> str:
    """Eight hex digits that change with any text, number or order in ``content``, which JSON must be able to hold."""
    written = json.dumps(content, ensure_ascii=False)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:8]
