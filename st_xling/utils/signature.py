"""Signatures: what a metric depends on, in one line; and how a model was loaded, which they name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from st_xling._version import __version__
from st_xling.utils.lazy_model import LazyModel, Loaded

#: Value of a part of a signature; ``None`` omits the part.
SignaturePart: TypeAlias = "str | float | Iterable[object] | None"


def sha8(content: Any) -> str:
    """Return eight hex digits that change with any text, number or order in ``content``, which must fit into JSON."""
    written = json.dumps(content, ensure_ascii=False)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def sign(*names: str, data: str | None = None, model: Mapping[str, str] | None = None, **parts: SignaturePart) -> str:
    """Return a signature: the measure, what else it depends on, how the model was used, the data, our version.

    Args:
        names: Name of the measure, and parts that need no key.
        data: ``name@sha8`` of the data, where any is named.
        model: Result of :func:`~st_xling.models.view.model_options`.
        parts: Other facts by key, in order; lists are joined by commas, ``None`` is omitted.

    Example:
        >>> sign("xsim", k=4, at=[1, 5], dim=None, data="tatoeba@01234567", model={"layer": "7"}).rpartition("|")[0]
        'xsim|k:4|at:1,5|layer:7|data:tatoeba@01234567'
    """
    fields = list(names)
    for key, value in {**parts, **(model or {}), "data": data}.items():
        if value is None:
            continue
        if isinstance(value, Iterable) and not isinstance(value, str):
            value = ",".join(map(str, value))
        fields.append(f"{key}:{value}")
    return "|".join([*fields, f"st-xling:{__version__}"])


def loaded(model: Any) -> Loaded:
    """Return how ``model`` was loaded; nothing is known of one that was made or loaded elsewhere.

    Args:
        model: A model of sentence-transformers, or a :class:`LazyModel`.
    """
    if isinstance(model, LazyModel):
        return model.loaded
    card_data = getattr(model, "model_card_data", None)
    record = getattr(card_data, "loaded", None)
    return record if isinstance(record, Loaded) else Loaded()


def name_of(model: Any) -> str | None:
    """Return the Hub id or folder of a model that was loaded, or is yet to be; ``None``: it was made here."""
    if isinstance(model, str):
        return model
    return loaded(model).name or None
