"""Signatures: what a figure depends on besides the model, in one line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from st_xling._version import __version__


def sha8(content: Any) -> str:
    """Eight hex digits that change with any text, number or order in ``content``, which JSON must be able to hold."""
    written = json.dumps(content, ensure_ascii=False)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def sign(*parts: str, data: str, view: Iterable[str] = ()) -> str:
    """A signature.

    Args:
        parts: Of the measure: its name, then ``key:value``.
        data: ``name@sha8`` of the data.
        view: What of the encoder was not its own, of :class:`~st_xling.models.view.View`.

    Example:
        >>> sign("xsim", "k:4", data="tatoeba@01234567", view=["layer:7"]).rpartition("|")[0]
        'xsim|k:4|layer:7|data:tatoeba@01234567'
    """
    return "|".join([*parts, *view, f"data:{data}", f"st-xling:{__version__}"])
