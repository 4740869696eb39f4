"""Compare a slim encoder with its source on the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.models.encode import encode
from st_xling.models.slim.vocabulary import token_ids
from st_xling.utils.nearest import retrieval_accuracy

Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]

SAME = 0.9999
"""Cosine from which two embeddings count as the same."""


def parity(
    before: SentenceTransformer,
    after: SentenceTransformer,
    texts: Sequence[str] = (),
    *,
    pairs: Pairs | None = None,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> dict[str, Any]:
    """Compare an encoder with the one that it was made from.

    Args:
        before: The source.
        after: The encoder made from it.
        texts: Texts of any language.
        pairs: Name → translations, row by row, which are also evaluated by translation retrieval.
        batch_size: Maximum batch size; chosen for the device by default.
        show_progress_bar: Show a bar while encoding.
    Returns:
        ``texts``: number of distinct ones. ``cosine_mean``, ``cosine_min``: of a text's two embeddings; of separate
        encoders, over both. ``same_share``: share of cosines of at least 0.9999. ``same_tokens_share``: share of texts
        with the same tokens. ``unknown_share``: share of unknown tokens, ``before`` and ``after``. ``retrieval``: pair
        of languages → accuracies (P@1) of finding the target (``forward``) and the source (``back``), ``before`` and
        ``after``.
    Raises:
        ValueError: If there is no text, or the embeddings have different widths.
    """
    pairs = pairs or {}
    distinct = list(dict.fromkeys([*texts, *(text for columns in pairs.values() for side in columns for text in side)]))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    models = {"before": before, "after": after}
    # Alone and behind each prompt, whose end may change how a text begins.
    prompted = [prompt + text for prompt in ("", *filter(None, before.prompts.values())) for text in distinct]
    rows = [
        [model.tokenizer.convert_ids_to_tokens(ids) for ids in token_ids(model.tokenizer, prompted)]
        for model in models.values()
    ]
    same_tokens = np.array([one == other for one, other in zip(*rows)]).reshape(-1, len(distinct)).all(axis=0)
    unknown = {}
    for when, model in models.items():
        numbers = [number for ids in token_ids(model.tokenizer, distinct) for number in ids]
        unknown[when] = numbers.count(model.tokenizer.unk_token_id) / max(1, len(numbers))

    cosines = []
    # Of separate encoders, plain text goes through that of documents.
    for role in ("query", "text") if isinstance(before[0], Router) else ("text",):
        options: dict[str, Any] = {"role": role, "batch_size": batch_size, "show_progress_bar": show_progress_bar}
        vectors = {when: encode(model, distinct, **options) for when, model in models.items()}
        old, new = (each.astype(np.float64) for each in vectors.values())
        if old.shape != new.shape:
            raise ValueError(f"embeddings of one width are needed: got {old.shape[1]} and {new.shape[1]}.")
        cosines.append((old * new).sum(axis=1) / (np.linalg.norm(old, axis=1) * np.linalg.norm(new, axis=1)))
    rows_of = {text: row for row, text in enumerate(distinct)}
    retrieval: dict[str, dict[str, dict[str, float]]] = {}
    for name, columns in pairs.items():
        chosen = [[rows_of[text] for text in side] for side in columns]
        found = {when: retrieval_accuracy(*(each[own] for own in chosen)) for when, each in vectors.items()}
        ways = enumerate(("forward", "back"))
        retrieval[name] = {way: {when: values[place] for when, values in found.items()} for place, way in ways}
    whole = np.stack(cosines)
    return {
        "texts": len(distinct),
        "cosine_mean": float(whole.mean()),
        "cosine_min": float(whole.min()),
        "same_share": float((whole >= SAME).mean()),
        "same_tokens_share": float(same_tokens.mean()),
        "unknown_share": unknown,
        "retrieval": retrieval,
    }
