"""The papers' definitions as plain loops over Python floats: slow, obvious, and independent of the library."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

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
    """Mean over the rows of −log softmax(W h + b)[label]."""
    losses = []
    for state, label in zip(hidden, labels):
        logits = [dot(row, state) + b for row, b in zip(weight, bias)]
        losses.append(-log_softmax(logits, label))
    return math.fsum(losses) / len(losses)


def transform(states: Any, head: Any) -> Any:
    """BERT's prediction transform, dense → GELU → LayerNorm, of each state. *Shape:* ``(tokens, hidden)``"""
    rows = []
    for state in states:
        x = head.dense.weight @ state + head.dense.bias
        x = x * (1 + torch.erf(x / math.sqrt(2))) / 2
        x = (x - x.mean()) / (((x - x.mean()) ** 2).mean() + head.norm.eps).sqrt()
        rows.append(x * head.norm.weight + head.norm.bias)
    return torch.stack(rows)


def semantic_contrastive(source: Sequence[Vector], target: Sequence[Vector], *, temperature: float) -> float:
    """Hu et al. 2023, equation 2: each of the 2N sentences picks its translation among the 2N - 1 others."""
    sentences = [*source, *target]
    size = len(source)
    total = 0.0
    for i in range(2 * size):
        others = [k for k in range(2 * size) if k != i]
        translation = i + size if i < size else i - size
        logits = [cosine(sentences[i], sentences[k]) / temperature for k in others]
        total -= log_softmax(logits, others.index(translation))
    return total / (2 * size)


def koleo(embeddings: Sequence[Vector]) -> float:
    """Sablayrolles et al. 2019, equation 2, of unit vectors; at least 1e-4 apart."""
    units = []
    for row in embeddings:
        length = math.sqrt(dot(row, row))
        units.append([value / length for value in row])
    nearest = []
    for i, unit in enumerate(units):
        others = [other for j, other in enumerate(units) if j != i]
        nearest.append(min(math.dist(unit, other) for other in others))
    return -sum(math.log(max(distance, 1e-4)) for distance in nearest) / len(units)


def language_contrastive(
    source: Sequence[Vector], target: Sequence[Vector], others: Sequence[Vector] | None = None
) -> float:
    """Hu et al. 2023, equation 3, as a mean over pairs, over other sentences and over the two logarithms."""
    sentences = [*source, *target, *(others or [])]
    size = len(source)
    logs = []
    for i in range(size):
        for k in range(len(sentences)):
            if k in (i, i + size):
                continue
            logits = [cosine(source[i], sentences[k]), cosine(target[i], sentences[k])]
            logs += [-log_softmax(logits, 0), -log_softmax(logits, 1)]
    return math.fsum(logs) / len(logs)


def distance_between(a: Vector, b: Vector, distance: str) -> float:
    if distance == "cosine":
        return 1 - cosine(a, b)
    # torch's pairwise distance adds 1e-6 to every difference
    differences = [abs(x - y + 1e-6) for x, y in zip(a, b)]
    return math.fsum(differences) if distance == "manhattan" else math.sqrt(math.fsum(d * d for d in differences))


def siamese_contrastive(
    source: Sequence[Vector], target: Sequence[Vector], *, margin: float, distance: str, negatives: str
) -> float:
    """mBERT-SF, equation 2, with the negatives of table 13; as many negative terms as positive ones."""
    size = len(source)
    terms = []
    for i in range(size):
        terms.append(distance_between(source[i], target[i], distance) ** 2 / 2)
        if negatives == "none":  # table 9: only parallel pairs
            continue
        distances = [distance_between(source[i], target[j], distance) for j in range(size) if j != i]
        hinges = [max(0.0, margin - d) ** 2 / 2 for d in distances]
        if negatives == "average":
            terms.append(sum(hinges) / len(hinges))
        else:
            chosen = {"worst": max(distances), "hardest": min(distances)}[negatives]
            terms.append(hinges[distances.index(chosen)])
    return math.fsum(terms) / len(terms)


def word_alignment(
    target_to_source: Sequence, source_to_target: Sequence, source_mask: Sequence, target_mask: Sequence
) -> float:
    """AMBER, equation 5, for a batch of nested lists (batch, heads, rows, columns)."""
    losses = []
    for to_source, to_target, xs, ys in zip(target_to_source, source_to_target, source_mask, target_mask):
        x = [j for j, kept in enumerate(xs) if kept]
        y = [i for i, kept in enumerate(ys) if kept]
        traces = []
        for h in range(len(to_source)):
            products = [to_source[h][i][j] * to_target[h][j][i] for i, j in product(y, x)]
            traces.append(math.fsum(products))
        losses.append(1 - sum(traces) / len(traces) / min(len(x), len(y)))
    return sum(losses) / len(losses)


def every_third(input_ids: Any, maskable: Any, *, mask_id: int, **options: Any) -> tuple[Any, Any]:
    """``mask_tokens`` whose masks depend on the words alone: a definition, or another batch, can repeat them."""
    hidden = maskable & (input_ids % 3 == 0)
    return input_ids.masked_fill(hidden, mask_id), hidden
