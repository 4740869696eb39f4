"""Cross-entropy over a vocabulary whose full logits never exist."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

try:  # torch 2.13 computes the gradient chunk by chunk in the forward pass: no second softmax in the backward one
    from torch.nn import LinearCrossEntropyOptions
except ImportError:  # pragma: no cover - depends on the installed torch
    LinearCrossEntropyOptions = None  # type: ignore[assignment, misc]

CHUNK_BYTES = 64 * 1024 * 1024


def vocabulary_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    *,
    bias: Tensor | None = None,
    chunk_rows: int | None = None,
) -> Tensor:
    r"""Mean cross-entropy of ``hidden @ weight.T + bias``, a few rows of logits at a time.

    .. math:: L = -\frac{1}{|S|} \sum_{i \in S} \log \mathrm{softmax}(W h_i + b)_{y_i}, \quad S = \{i : y_i \ne -100\}

    Args:
        hidden: States to classify. *Shape:* ``(tokens, dim)``
        weight: One row a class. *Shape:* ``(classes, dim)``
        labels: Class of each state, -100 to leave it out. *Shape:* ``(tokens,)``
        bias: Added to the logits. *Shape:* ``(classes,)``
        chunk_rows: Rows of logits alive at a time. Default: as many as 64 MiB of float32 hold.

    Returns:
        Mean loss in nats; zero, with a zero gradient, when every label is -100. *Shape:* ``()``

    Raises:
        ValueError: Shapes that do not fit each other.
    """
    if hidden.ndim != 2 or hidden.shape[0] != labels.shape[0] or hidden.shape[1] != weight.shape[1]:
        raise ValueError(
            "expected hidden (tokens, dim), weight (classes, dim) and labels (tokens,): got "
            f"{tuple(hidden.shape)}, {tuple(weight.shape)} and {tuple(labels.shape)}."
        )
    kept = labels != -100
    if not bool(kept.all()):
        hidden, labels = hidden[kept], labels[kept]
    if len(labels) == 0:
        return hidden.sum() * 0.0 + weight.sum() * 0.0
    rows = max(1, CHUNK_BYTES // (4 * weight.shape[0])) if chunk_rows is None else chunk_rows
    if LinearCrossEntropyOptions is not None and not torch.is_autocast_enabled(hidden.device.type):
        options = LinearCrossEntropyOptions(batch_chunk_size=min(rows, len(labels)))
        return F.linear_cross_entropy(hidden, weight, labels, linear_bias=bias, options=options)
    return _checkpointed(hidden, weight, labels, bias, rows)


def _checkpointed(hidden: Tensor, weight: Tensor, labels: Tensor, bias: Tensor | None, rows: int) -> Tensor:
    """The same value where torch lacks the fused operator: each chunk's logits are made again in the backward pass."""

    def chunk(part: Tensor, classes: Tensor) -> Tensor:
        logits = F.linear(part, weight, bias)
        if logits.dtype in (torch.bfloat16, torch.float16):
            logits = logits.float()
        return F.cross_entropy(logits, classes, reduction="sum")

    losses = [
        checkpoint(chunk, part, classes, use_reentrant=False)
        for part, classes in zip(hidden.split(rows), labels.split(rows))
    ]
    return torch.stack(losses).sum() / len(labels)
