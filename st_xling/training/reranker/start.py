"""What the first stage of a run begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer

from st_xling.data.text_columns import column_texts
from st_xling.models.cross_encoder import cross_encoder, tiny_cross_encoder
from st_xling.training.reranker.stages import Stage

Start = str | SentenceTransformer | CrossEncoder
"""Hub id, folder, a loaded model, or ``"tiny"``."""


def start_model(plan: Sequence[Stage], model: Start, tiny: Mapping[str, Any]) -> CrossEncoder:
    """A cross-encoder by the recipe of the last stage.

    Args:
        plan: The stages; a tiny model's vocabulary is of the text of all.
        model: What the caller named.
        tiny: Options of :func:`~st_xling.models.tiny_encoder`, for ``"tiny"``.
    Raises:
        ValueError: A model that does not fit, or a tiny one whose head is to be kept.
    """
    recipe = plan[-1].recipe
    seed, max_length = recipe.training.seed, recipe.model.max_length
    if model != "tiny":
        return cross_encoder(model, head=recipe.head, max_length=max_length, seed=seed)
    if recipe.head == "keep":
        raise ValueError("the model 'tiny' has no head to keep: got head 'keep'; take 'cls' or 'pooler'.")
    shape: dict[str, Any] = {"seed": seed, "max_length": max_length or 128, **tiny}
    texts = (text for stage in plan for text in column_texts(stage.pairs, "query", "passage"))
    built = tiny_cross_encoder(texts, head=recipe.head, **shape)
    built.model_card_data.base_model = None
    return built
