"""The papers' definitions as plain loops over Python floats: slow, obvious, and independent of the library."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b))


def cosine(a: Vector, b: Vector) -> float:
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def log_softmax(logits: Vector, index: int) -> float:
    highest = max(logits)
    return logits[index] - highest - math.log(math.fsum(math.exp(value - highest) for value in logits))


def translation_ranking(
    source: Sequence[Vector],
    target: Sequence[Vector],
    *,
    margin: float = 0.0,
    scale: float = 20.0,
    similarity: str = "cosine",
    bidirectional: bool = True,
    source_ids: Sequence[int] | None = None,
    target_ids: Sequence[int] | None = None,
) -> float:
    """DAP, equation 5, with LaBSE's margin and the mean of both directions; equal texts are no negatives."""
    measure = {"cosine": cosine, "dot": dot}[similarity]
    size = len(source)

    def same(i: int, j: int) -> bool:
        texts = (source_ids, target_ids)
        return i != j and any(ids is not None and ids[i] == ids[j] for ids in texts)

    def logit(i: int, j: int) -> float:
        return scale * (measure(source[i], target[j]) - (margin if i == j else 0.0))

    total = 0.0
    for i in range(size):
        allowed = [j for j in range(size) if not same(i, j)]
        total -= log_softmax([logit(i, j) for j in allowed], allowed.index(i))
        if bidirectional:
            total -= log_softmax([logit(j, i) for j in allowed], allowed.index(i))
    return total / (2 * size if bidirectional else size)


def vocabulary_cross_entropy(
    hidden: Sequence[Vector], weight: Sequence[Vector], bias: Vector, labels: Sequence[int]
) -> float:
    """Mean over the labelled rows of −log softmax(W h + b)[label]."""
    losses = [
        -log_softmax([dot(row, state) + b for row, b in zip(weight, bias)], label)
        for state, label in zip(hidden, labels)
        if label != -100
    ]
    return math.fsum(losses) / len(losses)
