"""Two encoders on the same text: do they say the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.models.slim.count_tokens import token_ids
from st_xling.models.view import encode_once
from st_xling.utils.nearest import retrieval_accuracy

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]

SAME = 0.9999
"""A cosine from which two embeddings count as the same."""


@dataclass(frozen=True)
class Change:
    """One figure of both encoders."""

    before: float
    after: float


@dataclass(frozen=True)
class Parity:
    """How two encoders agree on some text.

    Attributes:
        texts: Distinct texts.
        cosine_mean: Of a text's two embeddings, over all texts and, of separate encoders, over both.
        cosine_min: The least of them.
        same_share: Share of those of 0.9999 or more.
        largest_difference: Of any number in an embedding.
        same_tokens_share: Share of texts that are cut into the same tokens.
        tokens_per_text: Special tokens not counted.
        unknown_share: Of tokens that stand for what no piece spells.
        retrieval: Pair of languages → accuracies (P@1) of finding the target (``forward``) and the source (``back``).
    """

    texts: int
    cosine_mean: float
    cosine_min: float
    same_share: float
    largest_difference: float
    same_tokens_share: float
    tokens_per_text: Change
    unknown_share: Change
    retrieval: dict[str, dict[str, Change]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def parity(
    before: SentenceTransformer,
    after: SentenceTransformer,
    texts: Sequence[str] = (),
    *,
    pairs: Pairs | None = None,
    batch_size: int = 64,
    show_progress_bar: bool = False,
) -> Parity:
    """Compare an encoder with the one that it was made from.

    Args:
        before: The source.
        after: What was made of it.
        texts: Text of any language.
        pairs: Name → translations, row by row; their texts are compared as well, and translation retrieval is judged.
        batch_size: Texts encoded at a time.
        show_progress_bar: Whether to show one while encoding.

    Raises:
        ValueError: No text at all; embeddings of different widths, or that are zero or not finite.
    """
    pairs = pairs or {}
    distinct = list(dict.fromkeys([*texts, *(text for sides in pairs.values() for side in sides for text in side)]))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
    columns = [distinct, *(list(side) for sides in pairs.values() for side in sides)]
    old, new = encode_once(before, columns, **options), encode_once(after, columns, **options)
    compared = [(old[0], new[0])]
    if _has_routes(before):  # what was compared is one route; this is the other
        compared.append((before.encode_query(distinct, **options), after.encode_query(distinct, **options)))
    if any(left.shape != right.shape for left, right in compared):
        raise ValueError(f"embeddings of one width are needed: got {old[0].shape[1]} and {new[0].shape[1]}.")
    cosines = np.concatenate([_cosines(left, right) for left, right in compared])
    retrieval = {}
    for place, name in enumerate(pairs):
        row = 1 + 2 * place
        was, became = (retrieval_accuracy(side[row], side[row + 1]) for side in (old, new))
        retrieval[name] = {"forward": Change(was[0], became[0]), "back": Change(was[1], became[1])}
    return Parity(
        texts=len(distinct),
        cosine_mean=float(cosines.mean()),
        cosine_min=float(cosines.min()),
        same_share=float((cosines >= SAME).mean()),
        largest_difference=max(float(np.abs(left - right).max()) for left, right in compared),
        retrieval=retrieval,
        **_tokens(before.tokenizer, after.tokenizer, distinct),
    )


def _has_routes(model: SentenceTransformer) -> bool:
    from sentence_transformers.sentence_transformer.modules import Router

    return isinstance(model[0], Router)


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of rows, in float64. *Shape:* ``(texts, dim)`` twice → ``(texts,)``"""
    left, right = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise ValueError("embeddings must be finite and not zero: got some that are not; look at the model's weights.")
    return (left * right).sum(axis=1) / lengths


def _tokens(before: Any, after: Any, texts: list[str]) -> dict[str, Any]:
    old, new = token_ids(before, texts), token_ids(after, texts)
    same = [before.convert_ids_to_tokens(a) == after.convert_ids_to_tokens(b) for a, b in zip(old, new)]
    figures = []
    for tokenizer, rows in ((before, old), (after, new)):
        tokens = sum(map(len, rows))
        unknown = sum(number == tokenizer.unk_token_id for row in rows for number in row)
        figures.append((tokens / len(texts), unknown / max(1, tokens)))
    (length, unknown_before), (length_after, unknown_after) = figures
    return {
        "same_tokens_share": sum(same) / len(texts),
        "tokens_per_text": Change(length, length_after),
        "unknown_share": Change(unknown_before, unknown_after),
    }
