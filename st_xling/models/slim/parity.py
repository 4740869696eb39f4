"""Two encoders on the same text: do they compute the same? And the rows of a stream on which that is checked."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.models.slim.vocabulary import token_ids
from st_xling.models.view import encode_once
from st_xling.utils.nearest import retrieval_accuracy

Item = TypeVar("Item")
Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]

SAME = 0.9999
"""A cosine from which two embeddings count as the same."""

MOST_ROWS = 1000
"""Of one source, whatever the share: so many are enough, and are soon encoded."""


@dataclass(frozen=True)
class Change:
    """One number of both encoders."""

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
        pairs: Name → translations, row by row; compared as well, and evaluated by translation retrieval.
        batch_size: Texts encoded at a time.
        show_progress_bar: Whether to show one while encoding.

    Raises:
        ValueError: No text at all; embeddings of different widths, or that are zero or not finite.
    """
    pairs = pairs or {}
    both = [list(column) for columns in pairs.values() for column in columns]
    distinct = list(dict.fromkeys([*texts, *(text for column in both for text in column)]))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
    old, new = (encode_once(model, [distinct, *both], **options) for model in (before, after))
    compared = [(old[0], new[0])]
    if isinstance(before[0], Router):  # what was compared is one route; this is the other
        compared.append((before.encode_query(distinct, **options), after.encode_query(distinct, **options)))
    if any(left.shape != right.shape for left, right in compared):
        raise ValueError(f"embeddings of one width are needed: got {old[0].shape[1]} and {new[0].shape[1]}.")
    cosines = np.concatenate([_cosines(left, right) for left, right in compared])
    retrieval = {}
    for place, name in enumerate(pairs):
        row = 1 + 2 * place
        was, became = (retrieval_accuracy(vectors[row], vectors[row + 1]) for vectors in (old, new))
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
    counts = [sum(map(len, rows)) for rows in (old, new)]
    unknown = [
        sum(number == tokenizer.unk_token_id for row in rows for number in row) / max(1, count)
        for tokenizer, rows, count in zip((before, after), (old, new), counts)
    ]
    return {
        "same_tokens_share": sum(same) / len(texts),
        "tokens_per_text": Change(*(count / len(texts) for count in counts)),
        "unknown_share": Change(*unknown),
    }


def check_hold_out(hold_out: float) -> None:
    """Raise ``ValueError`` unless this is a share in [0, 1) or a whole number of rows."""
    if not (0 <= hold_out < 1 or (hold_out >= 1 and float(hold_out).is_integer())):
        raise ValueError(
            f"hold_out must be a share in [0, 1) or a whole number of rows: got {hold_out:g}; 0.05 is usual."
        )


def set_apart(
    rows: Iterable[Item], hold_out: float, held: list[Item], *, seed: int = 0, most: int = MOST_ROWS
) -> Iterator[Item]:
    """Pass rows on, but for some.

    Args:
        rows: Of a length that need not be known.
        hold_out: The share of them to keep out, no more than ``most`` rows; or, from 1 on, their number.
        held: Where they go; complete once all others have been passed on.
        seed: Of the draw.
        most: Rows that a share may amount to.
    """
    check_hold_out(hold_out)
    draw = random.Random(seed)
    share, places = (hold_out, most) if hold_out < 1 else (1.0, int(hold_out))
    drawn = 0
    for row in rows:
        if draw.random() < share:
            drawn += 1
            if len(held) < places:
                held.append(row)
                continue
            place = draw.randrange(drawn)
            if place < places:  # the one that it replaces is passed on in its stead
                held[place], row = row, held[place]
        yield row


def sampled(rows: Iterable[Item], size: int, sample: list[Item], *, seed: int = 0) -> Iterator[Item]:
    """Pass all rows on, and put ``size`` of them, each as likely as any other, into ``sample``."""
    draw = random.Random(seed)
    for number, row in enumerate(rows, 1):
        if len(sample) < size:
            sample.append(row)
        elif (place := draw.randrange(number)) < size:
            sample[place] = row
        yield row
