"""The batch of all processes: values and gradients as if one process held all rows; and the rows' similarities.

Two things combine. Distributed training averages the gradients of all processes, so each must hold ``processes`` times
its own share: :func:`sum_over_processes` multiplies by that. And an embedding is a negative in other processes' rows
too: :meth:`GatheredBatch.gather` brings back, and adds up, the gradient that it receives there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sentence_transformers.util.distributed import all_gather, get_rank, get_world_size
from torch import Tensor, nn
from torch.autograd import Variable
from torch.nn.parallel import DistributedDataParallel

from st_xling.utils.options import checked

Similarity = Literal["cosine", "dot"]


@dataclass(frozen=True)
class GatheredBatch:
    """Where this process's rows lie in the batch of all processes.

    Formulas are written once, for own rows and all candidates; alone, the candidates are the own rows.

    Attributes:
        sizes: Rows of each process; they may differ, as at the end of an epoch.
        rank: This process's place among them.
    """

    sizes: tuple[int, ...]
    rank: int = 0

    @classmethod
    def of(cls, own: Tensor, *, gather: bool = True) -> GatheredBatch:
        """The batch that ``own`` is this process's part of; it is the whole batch without ``gather``, or alone.

        Args:
            own: Any tensor with one row a pair. *Shape:* ``(batch, ...)``
            gather: Share the batch. The same in all processes.
        """
        if not gather or get_world_size() == 1:
            return cls((len(own),))
        sizes = all_gather(torch.tensor([len(own)], device=own.device))
        return cls(tuple(sizes.tolist()), get_rank())

    @property
    def alone(self) -> bool:
        """Whether own rows are all rows."""
        return len(self.sizes) == 1

    @property
    def total(self) -> int:
        """Rows of all processes."""
        return sum(self.sizes)

    def rows(self, device: torch.device) -> Tensor:
        """Row numbers of this process's rows among all. *Shape:* ``(batch,)``"""
        start = sum(self.sizes[: self.rank])
        return torch.arange(start, start + self.sizes[self.rank], device=device)

    def gather(self, own: Tensor) -> Tensor:
        """All processes' rows in order of rank, with gradients. *Shape:* ``(batch, ...)`` → ``(total, ...)``"""
        return own if self.alone else _Gather.apply(own, self)

    def mean(self, total: Tensor, count: int | None = None) -> Tensor:
        """A mean over all rows, from the sum over this process's rows.

        Args:
            total: *Shape:* ``()``
            count: What the sums of all processes are divided by; default: the rows.
        """
        total = total if self.alone else sum_over_processes(total)
        return total / (self.total if count is None else count)


def batch_of_pairs(source: Tensor, target: Tensor, gathered: GatheredBatch | None = None) -> GatheredBatch:
    """``gathered``, or the batch of these pairs alone; ``ValueError`` unless they are row-aligned."""
    if source.shape[0] != target.shape[0]:
        raise ValueError(
            f"source and target must be row-aligned translations: got {source.shape[0]} and {target.shape[0]} rows."
        )
    return GatheredBatch((len(source),)) if gathered is None else gathered


@checked
def similarity_matrix(source: Tensor, target: Tensor, similarity: Similarity = "cosine") -> Tensor:
    """All similarities between two sets of embeddings.

    Args:
        source: *Shape:* ``(rows, dim)``
        target: *Shape:* ``(columns, dim)``
        similarity: ``"cosine"`` or ``"dot"``.

    Returns:
        *Shape:* ``(rows, columns)``, in the embeddings' dtype, also under autocast.

    Raises:
        ValueError: Another similarity, or embeddings that are not matrices of one width.
    """
    if source.ndim != 2 or target.ndim != 2 or source.shape[1] != target.shape[1]:
        raise ValueError(
            f"expected two matrices of embeddings of one width: got {tuple(source.shape)} and {tuple(target.shape)}."
        )
    with torch.autocast(source.device.type, enabled=False):  # bfloat16 tells a cosine of 0.996 from 1 and none between
        if similarity == "cosine":
            source, target = F.normalize(source, dim=1), F.normalize(target, dim=1)
        return source @ target.T


class Candidates(NamedTuple):
    """Sentences to rank, or to be ranked.

    Attributes:
        embeddings: *Shape:* ``(candidates, dim)``
        ids: Equal numbers mark equal texts. *Shape:* ``(candidates,)``
        partner_ids: Those of their translations. *Shape:* ``(candidates,)``
    """

    embeddings: Tensor
    ids: Tensor | None = None
    partner_ids: Tensor | None = None

    def gathered(self, batch: GatheredBatch) -> Candidates:
        """Those of all processes, where each has one of every row of the batch."""
        return Candidates(*(None if part is None else batch.gather(part) for part in self))  # type: ignore[arg-type]


def sum_over_processes(own: Tensor) -> Tensor:
    """The sum of every process's tensor, the same in each; the gradient is ``own``'s, ready to be averaged.

    *Shape:* any, equal in all processes
    """
    return _Sum.apply(own) if get_world_size() > 1 else own


def own_parameters(loss: nn.Module, model: nn.Module) -> list[nn.Parameter]:
    """Trained parameters of ``loss`` that are not the model's: heads, which no distributed wrapper looks after."""
    theirs = {id(parameter) for parameter in model.parameters()}
    return [part for part in loss.parameters() if part.requires_grad and id(part) not in theirs]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its mean over all processes; what has none anywhere keeps none.

    Accumulated gradients may have been averaged before: the mean of equal parts is that part.
    """
    trained = list(parameters)
    if not trained or get_world_size() == 1:
        return
    used = torch.tensor([part.grad is not None for part in trained], dtype=torch.int32, device=trained[0].device)
    dist.all_reduce(used, op=dist.ReduceOp.MAX)
    works = []
    for part, is_used in zip(trained, used.tolist()):
        if is_used:
            part.grad = torch.zeros_like(part) if part.grad is None else part.grad.div_(get_world_size())
            works.append(dist.all_reduce(part.grad, async_op=True))
    for work in works:
        work.wait()


def end_of_pass(
    values: Sequence[Tensor], columns: Sequence[dict[str, Tensor]], loss: nn.Module, model: nn.Module
) -> list[Tensor]:
    """The loss's values as they came; their backward pass also does what gradients need across processes.

    Heads are averaged when it is over (under ``no_sync``, in the pass that synchronises). And since DDP waits for every
    parameter that its forward pass used, also those that the loss leaves out (RTL: what lies behind the token states),
    they get a gradient of zero.

    Args:
        values: The loss, or its components. *Shape:* ``()`` each
        columns: The encoder's output.
        loss: Owner of the heads.
        model: What encoded the columns, as it was wrapped.
    """
    if get_world_size() == 1 or not torch.is_grad_enabled():
        return list(values)
    wrapped = isinstance(model, DistributedDataParallel)
    heads = own_parameters(loss, model) if getattr(model, "require_backward_grad_sync", True) else []
    outputs = [column["sentence_embedding"] for column in columns if "sentence_embedding" in column] if wrapped else []
    return list(_EndOfPass.apply(heads, len(values), *values, *outputs))


class _Gather(torch.autograd.Function):
    """ST's ``all_gather_with_grad`` for processes whose rows differ in number, which collectives do not take."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, batch: GatheredBatch) -> Tensor:
        ctx.batch = batch
        most = max(batch.sizes)
        padded = torch.cat([own, own.new_zeros(most - len(own), *own.shape[1:])])
        gathered = [torch.empty_like(padded) for _ in batch.sizes]
        dist.all_gather(gathered, padded)
        return torch.cat([part[:size] for part, size in zip(gathered, batch.sizes)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total.split(ctx.batch.sizes)[ctx.batch.rank], None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        total = own.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * get_world_size()


class _EndOfPass(torch.autograd.Function):
    """First in the backward pass, and so able to book a place at its end."""

    @staticmethod
    def forward(ctx: Any, heads: list[nn.Parameter], count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.heads, ctx.outputs = heads, [(output.shape, output.dtype, output.device) for output in tensors[count:]]
        return tuple(value.clone() for value in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        heads = ctx.heads
        # DDP's own last step waits there too; by then all its messages are on their way, in every process.
        Variable._execution_engine.queue_callback(lambda: average_gradients(heads))
        nothing = (torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.outputs)
        return (None, None, *gradients, *nothing)
