"""The cross-encoder of the second stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


def load_reranker(model: Any, device: str | None = None) -> tuple[CrossEncoder, str | None]:
    """A cross-encoder, and the name it was loaded by, if it was.

    Args:
        model: One, or its Hub id or folder.
        device: Where to put one that is loaded; by default a GPU where there is one.
    Raises:
        ValueError: If nothing can be loaded at that name, or what is there has no trained head of one score.
    """
    from st_xling.models.cross_encoder import cross_encoder

    if not isinstance(model, str):
        return model, None
    try:
        return cross_encoder(model, head="keep", device=device), model
    except ValueError as error:
        raise ValueError(
            f"expected a cross-encoder with a trained head of one score at {model!r}; st-xling train xpr-mixed makes "
            f"one ({error})"
        ) from error
