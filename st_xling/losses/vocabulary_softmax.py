"""Cross-entropy over a vocabulary whose full logits never exist."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from st_xling.models.heads import VocabularyHead

CHUNK_BYTES = 64 * 1024 * 1024


def vocabulary_cross_entropy(
    hidden: Tensor, weight: Tensor, labels: Tensor, *, bias: Tensor, chunk_rows: int | None = None
) -> Tensor:
    r"""Mean cross-entropy of ``hidden @ weight.T + bias``, a few rows of logits at a time.

    .. math:: L = -\frac{1}{N} \sum_i \log \mathrm{softmax}(W h_i + b)_{y_i}

    Args:
        hidden: States to classify. *Shape:* ``(tokens, dim)``
        weight: One row a class. *Shape:* ``(classes, dim)``
        labels: Class of each state. *Shape:* ``(tokens,)``
        bias: Added to the logits. *Shape:* ``(classes,)``
        chunk_rows: Rows of logits alive at a time. Default: as many as 64 MiB of float32 hold, at least 32.

    Returns:
        Mean loss in nats; zero, with a zero gradient, of no states. *Shape:* ``()``
    """
    rows = max(32, CHUNK_BYTES // (4 * weight.shape[0])) if chunk_rows is None else chunk_rows
    return _ChunkedCrossEntropy.apply(hidden, weight, labels, bias, rows)


def head_cross_entropy(
    head: VocabularyHead, word_embeddings: nn.Embedding, states: Tensor, token_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Sum of the cross-entropies of tokens under a vocabulary head, and how many were scored.

    Args:
        head: Its ``target_vocabulary`` selects the tokens that are scored.
        word_embeddings: The encoder's, which a tied head scores with.
        states: *Shape:* ``(tokens, hidden)``
        token_ids: What the tokens are. *Shape:* ``(tokens,)``

    Returns:
        The sum in nats and the count. *Shape:* ``()`` both
    """
    labels = head.labels(token_ids)
    scored = labels != -100
    count = scored.sum()
    weight = head.output_weight(word_embeddings)
    mean = vocabulary_cross_entropy(head(states[scored]), weight, labels[scored], bias=head.bias)
    return mean * count, count


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Each chunk's gradient is taken while its logits are at hand: three matrix products, as without chunks.

    torch 2.13's ``linear_cross_entropy`` does the same but leaves a second copy of the weight's gradient behind, which
    at a vocabulary of 250,000 is larger than everything that chunking saves at a thousand tokens.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor, bias: Tensor, rows: int) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            loss, gradients = _loss_and_gradients(hidden, weight, labels, bias, rows, ctx.needs_input_grad)
        ctx.gradients = gradients
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise RuntimeError(
                "a vocabulary cross-entropy can be differentiated once: its gradients are handed over in the first "
                "backward pass. Compute the loss again instead of retaining the graph."
            )
        # Handed over, so that autograd takes the buffers instead of copying them.
        hidden, weight, bias = ctx.gradients
        for gradient in ctx.gradients:
            if gradient is not None:
                gradient.mul_(grad_output)
        ctx.gradients = None
        return hidden, weight, None, bias, None


def _loss_and_gradients(
    hidden: Tensor, weight: Tensor, labels: Tensor, bias: Tensor, rows: int, needed: tuple[bool, ...]
) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """Compute the mean loss, and its gradients by ``hidden``, ``weight`` and ``bias`` where they are needed.

    ``needed`` is one flag per argument of :meth:`_ChunkedCrossEntropy.forward`.
    """
    # Sums are kept in float32 at least; matrix products stay in the states' dtype.
    low = hidden.dtype in (torch.bfloat16, torch.float16)
    exact = torch.float32 if low else hidden.dtype
    scorer = weight.to(hidden.dtype)
    offset = bias.to(exact)
    grad_hidden = torch.empty_like(hidden) if needed[0] else None
    grad_weight = torch.zeros_like(weight, dtype=exact) if needed[1] else None
    grad_bias = torch.zeros_like(bias, dtype=exact) if needed[3] else None
    total = torch.zeros((), dtype=exact, device=hidden.device)
    count = max(1, len(hidden))
    for start in range(0, len(hidden), rows):
        states = hidden[start : start + rows]
        classes = labels[start : start + rows]
        logits = (states @ scorer.T).to(exact).add_(offset)
        true = logits.gather(1, classes[:, None])
        highest = logits.amax(dim=1, keepdim=True)
        error = logits.sub_(highest).exp_()  # in the memory of the logits, which are gone
        sums = error.sum(dim=1, keepdim=True)
        total += (sums.log() + highest - true).sum()
        if not any(needed):
            continue
        # d loss / d logits: (softmax - one-hot) / tokens
        error.div_(sums * count)
        error[torch.arange(len(classes), device=classes.device), classes] -= 1 / count
        if grad_bias is not None:
            grad_bias += error.sum(dim=0)
        error = error.to(hidden.dtype)
        if grad_hidden is not None:
            torch.mm(error, scorer, out=grad_hidden[start : start + rows])
        if grad_weight is not None and not low:
            grad_weight.addmm_(error.T, states)
        elif grad_weight is not None:
            grad_weight += error.T @ states
    if grad_hidden is not None:
        grad_hidden = grad_hidden.to(hidden.dtype)
    if grad_weight is not None:
        grad_weight = grad_weight.to(weight.dtype)
    if grad_bias is not None:
        grad_bias = grad_bias.to(bias.dtype)
    return total / count, (grad_hidden, grad_weight, grad_bias)
