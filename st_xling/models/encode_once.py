"""Embeddings of several lists of texts, each distinct text encoded once; each by the mean of its language."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from st_xling.models.centre import Centre, centred_model, fit_centring, language_routes
from st_xling.utils.languages import UNKNOWN, canonical_language

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)


def encode_once(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]],
    *,
    tasks: Sequence[str | None] | None = None,
    **options: Any,
) -> list[np.ndarray]:
    """Embeddings of each column's texts; equal texts have equal vectors, in whatever batch they would have fallen.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        columns: Lists of texts.
        tasks: Of each column: the route of the model that encodes it, see :func:`language_tasks`.
        options: Of ``encode``.
    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    tasks = [None] * len(columns) if tasks is None else tasks
    encoded: dict[int, np.ndarray] = {}
    for task in dict.fromkeys(tasks):
        places = [place for place, own in enumerate(tasks) if own == task]
        texts = sorted({text for place in places for text in columns[place]})
        route: Any = {} if task is None else {"task": task}
        embeddings = model.encode(texts, convert_to_numpy=True, **route, **options)
        row = {text: index for index, text in enumerate(texts)}
        for place in places:
            encoded[place] = np.asarray(embeddings[[row[text] for text in columns[place]]])
    return [encoded[place] for place in range(len(columns))]


def language_tasks(model: Any, languages: Sequence[str | None]) -> tuple[list[str | None], bool]:
    """Routes of a model that is centred by language, for text in these languages.

    Returns:
        A task of ``encode`` for each language (``None``: the joint mean, or a model without such routes), and whether a
        language lacks a mean of its own in a model that has some; a warning names those.
    """
    routes = language_routes(model)
    tasks = [routes.get(canonical_language(code or "")) for code in languages]
    joint = bool(routes) and None in tasks
    if joint:
        lacking = sorted({str(code) for code, task in zip(languages, tasks) if task is None})
        logger.warning(
            "the model has means of %s: text of %s is centred by their joint mean",
            ", ".join(routes.values()),
            ", ".join(lacking),
        )
    return tasks, joint


def centred_by_text(
    model: SentenceTransformer, texts: Sequence[str], languages: Sequence[str], centre: Centre, **options: Any
) -> SentenceTransformer:
    """``model`` centred by the means of a text, instead of those that it was saved with.

    Args:
        model: An encoder; it stays as it is.
        texts: Of all languages.
        languages: Of each of ``texts``.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``.
        options: Of ``encode``.
    Raises:
        ValueError: Text whose language is not known, where each language is to have its mean.
    """
    bare = centred_model(model, None)
    if centre == "none":
        return bare
    if centre == "per_language" and UNKNOWN in languages:
        raise ValueError("a mean for each language needs the languages of the text: got und; name them (zh-vi=PATH).")
    (vectors,) = encode_once(bare, [texts], **options)
    return centred_model(bare, fit_centring(torch.from_numpy(vectors), languages, centre))
