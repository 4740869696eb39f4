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
    """Eight hex digits that change with any text, number or order in ``content``, which JSON must be able to hold."""
    written = json.dumps(content, ensure_ascii=False)
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def sign(*names: str, data: str | None = None, model: Mapping[str, str] | None = None, **parts: SignaturePart) -> str:
    """A signature: the measure, what else it depends on, how the model was used, the data, our version.

    Args:
        names: Name of the measure, and parts that need no key.
        data: ``name@sha8`` of the data, where any is named.
        model: Result of :func:`~st_xling.models.view.model_options`.
        parts: The rest by key, in order; lists are joined by commas, ``None`` is omitted.

    Example:
        >>> sign("xsim", k=4, at=[1, 5], dim=None, data="tatoeba@01234567", model={"layer": "7"}).rpartition("|")[0]
        'xsim|k:4|at:1,5|layer:7|data:tatoeba@01234567'
    """
    listed = {key: value for key, value in {**parts, **(model or {}), "data": data}.items() if value is not None}
    written = [
        f"{key}:{value if isinstance(value, str) or not isinstance(value, Iterable) else ','.join(map(str, value))}"
        for key, value in listed.items()
    ]
    return "|".join([*names, *written, f"st-xling:{__version__}"])


def loaded(model: Any) -> Loaded:
    """Return how ``model`` was loaded; nothing is known of one that was made or loaded elsewhere.

    Args:
        model: A model of sentence-transformers, or a :class:`LazyModel`.
    """
    if isinstance(model, LazyModel):
        return model.loaded
    how = getattr(getattr(model, "model_card_data", None), "loaded", None)
    return how if isinstance(how, Loaded) else Loaded()


def name_of(model: Any) -> str | None:
    """Hub id or folder of a model that was loaded, or is yet to be; ``None``: it was made here."""
    return model if isinstance(model, str) else loaded(model).name or None
