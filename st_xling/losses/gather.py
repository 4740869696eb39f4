"""The batch of all processes: values and gradients as if one process held all rows; and the rows' similarities.

Two things combine. Distributed training averages the gradients of all processes, so each must hold ``processes`` times
its share: :func:`sum_over_processes` multiplies by that. And an embedding is a negative in other processes' rows
too: :meth:`GatheredBatch.gather` brings back, and adds up, the gradient that it receives there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sentence_transformers.util.distributed import all_gather, get_rank, get_world_size
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

Similarity = Literal["cosine", "dot"]

#: Weights of losses whose gradients are averaged over the processes, see :func:`average_heads`.
_averaged = WeakTensorKeyDictionary()
#: Weights of losses that a trainer saves, see :func:`mark_saved`.
_saved = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class GatheredBatch:
    """Where this process's rows lie in the batch of all processes.

    Formulas are written once, for this process's rows and all candidates; in one process, both are the same rows.

    Attributes:
        sizes: Rows of each process; they may differ, as at the end of an epoch.
        rank: This process's place among them.
    """

    sizes: tuple[int, ...]
    rank: int = 0

    @classmethod
    def of(cls, rows: Tensor) -> GatheredBatch:
        """Find the batch that ``rows``, one a pair, are this process's part of. *Shape:* ``(batch, ...)``"""
        if get_world_size() == 1:
            return cls((len(rows),))
        sizes = all_gather(torch.tensor([len(rows)], device=rows.device))
        return cls(tuple(sizes.tolist()), get_rank())

    @property
    def alone(self) -> bool:
        """True if there is only this process."""
        return len(self.sizes) == 1

    @property
    def total(self) -> int:
        """Rows of all processes."""
        return sum(self.sizes)

    def rows(self, device: torch.device) -> Tensor:
        """Row numbers of this process's rows among all. *Shape:* ``(batch,)``"""
        start = sum(self.sizes[: self.rank])
        return torch.arange(start, start + self.sizes[self.rank], device=device)

    def gather(self, rows: Tensor) -> Tensor:
        """Gather all processes' rows by rank, with gradients. *Shape:* ``(batch, ...)`` → ``(total, ...)``"""
        if self.alone:
            return rows
        # Collectives take equal shapes, and processes may differ in rows: every row is zero in all processes but one.
        before = sum(self.sizes[: self.rank])
        after = sum(self.sizes[self.rank + 1 :])
        zeros = rows.new_zeros(before + after, *rows.shape[1:])
        return sum_over_processes(torch.cat([zeros[:before], rows, zeros[before:]]))

    def mean(self, total: Tensor, count: int | None = None) -> Tensor:
        """Compute a mean over all rows, from the sum over this process's rows.

        Args:
            total: *Shape:* ``()``
            count: Divisor of the sum over all processes; default: the rows.
        """
        total = total if self.alone else sum_over_processes(total)
        return total / (self.total if count is None else count)


def batch_of_pairs(source: Tensor, target: Tensor) -> GatheredBatch:
    """Find the batch that pairs are part of, of all processes; ``ValueError`` unless they are row-aligned."""
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned translations: got {source.shape[0]} and {target.shape[0]} rows."
        )
    return GatheredBatch.of(source)


def similarity_matrix(source: Tensor, target: Tensor, similarity: Similarity = "cosine") -> Tensor:
    """Compute all similarities between two sets of embeddings.

    Args:
        source: *Shape:* ``(rows, dim)``
        target: *Shape:* ``(columns, dim)``
        similarity: ``"cosine"`` or ``"dot"``.

    Returns:
        *Shape:* ``(rows, columns)``, in the embeddings' dtype, also under autocast.

    Raises:
        ValueError: Embeddings that are not matrices of one width.
    """
    if source.ndim != 2 or target.ndim != 2 or source.shape[1] != target.shape[1]:
        raise ValueError(
            f"expected two matrices of embeddings of one width: got {tuple(source.shape)} and {tuple(target.shape)}."
        )
    with torch.autocast(source.device.type, enabled=False):  # bfloat16 tells a cosine of 0.996 from 1 and none between
        if similarity == "cosine":
            source = F.normalize(source, dim=1)
            target = F.normalize(target, dim=1)
        return source @ target.T


def sum_over_processes(values: Tensor) -> Tensor:
    """Sum every process's tensor; gradients are summed, too, and so ready to be averaged over the processes.

    *Shape:* any, equal in all processes
    """
    return _Sum.apply(values) if get_world_size() > 1 else values


def average_heads(loss: nn.Module) -> None:
    """Average the gradients of the parameters that are the loss's and not its model's, in each backward pass.

    No distributed wrapper looks after them. Under ``no_sync`` gradients add up, and the pass that synchronizes averages
    their sums. Every process must use the same heads in a pass.

    Args:
        loss: With ``model``, as it was wrapped.
    """
    if get_world_size() == 1:
        return

    def average(parameter: Tensor) -> None:
        if getattr(loss.model, "require_backward_grad_sync", True):
            assert parameter.grad is not None
            dist.all_reduce(parameter.grad.div_(get_world_size()))

    for parameter in own_parameters(loss):
        if parameter not in _averaged:  # a sum may share the head of a loss that was used before
            parameter.register_post_accumulate_grad_hook(average)
            _averaged[parameter] = True


def own_parameters(loss: nn.Module) -> list[Tensor]:
    """Return the trained parameters that are the loss's and not its model's."""
    of_model = {id(parameter) for parameter in loss.model.parameters()}  # type: ignore[union-attr]
    trained = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    return [parameter for parameter in trained if id(parameter) not in of_model]


def mark_saved(weights: Iterable[Tensor]) -> None:
    """Record that a trainer saves these weights of a loss with its checkpoints, so that no loss warns of them."""
    for weight in weights:
        _saved[weight] = True


def are_saved(weights: Iterable[Tensor]) -> bool:
    """Return whether all of these weights were :func:`mark_saved`."""
    return all(weight in _saved for weight in weights)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Sum.forward(ctx, gradient)
