"""One encoder for queries and passages, or two behind the host's ``Router``."""

from __future__ import annotations

import copy
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.models.view import rebuilt

ROUTES = {"query": "query"}
"""Columns that the query encoder reads; the passage encoder reads all others."""


def separate_encoders(encoder: SentenceTransformer) -> SentenceTransformer:
    """A model with two encoders that start out alike: ``encode_query`` uses one, ``encode_document`` the other.

    Plain ``encode`` uses the passage encoder. A model that has routes already comes back as it is.

    Args:
        encoder: What both start from; its modules become the passage encoder.
    Raises:
        ValueError: Routes of other names.
    """
    if has_routes(encoder):
        routes = list(encoder[0].sub_modules)  # type: ignore[arg-type]
        if set(routes) != {"query", "document"}:
            raise ValueError(f"separate encoders need the routes query and document: got {', '.join(routes)}.")
        return encoder
    modules: list[Any] = list(encoder)
    router = Router.for_query_document(
        query_modules=copy.deepcopy(modules),
        document_modules=modules,
        default_route="document",
    )
    return rebuilt(encoder, [router])


def has_routes(encoder: SentenceTransformer) -> bool:
    """Whether the encoder has a ``Router``."""
    return isinstance(encoder[0], Router)
