"""Options that a model was loaded with, known without importing sentence-transformers, which takes seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Loaded:
    """Options of loading; :func:`~st_xling.models.load.load_sentence_transformer` leaves it with the model.

    Attributes:
        name: Hub id or folder, as the user named it.
        options: What is not as the model was saved, by the name that signatures have for it.
    """

    name: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def loaded(model: Any) -> Loaded:
    """Return how ``model`` was loaded; nothing is known of one that was made or loaded elsewhere."""
    return getattr(model, "st_xling_loaded", Loaded())


def name_of(model: Any) -> str | None:
    """Hub id or folder of a model that was loaded, or is yet to be; ``None``: it was made here."""
    return model if isinstance(model, str) else loaded(model).name or None
