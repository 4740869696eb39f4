"""Large batches in small memory: any sum of objectives, encoded mini-batch by mini-batch, with the same gradients."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import RandContext, _create_minibatch
from sentence_transformers.util.distributed import get_world_size
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from st_xling.losses.across_processes import average_gradients, own_parameters, sum_over_processes
from st_xling.losses.base import (
    Batch,
    CrossLingualLoss,
    LossValue,
    Part,
    TokenLevelLoss,
    encode_columns,
    mean_of_parts,
)
from st_xling.losses.combined import CombinedLoss, Term


class CachedLoss(CrossLingualLoss):
    """Wraps a loss so that only one mini-batch's activations are alive at a time (GradCache).

    First every mini-batch is encoded without gradients; sentence-level terms then see the whole batch's embeddings,
    token-level terms add up over the mini-batches. In the backward pass each mini-batch is encoded again, with the same
    dropout, and receives its share of both gradients. Value and gradients are those of the uncached loss, for one more
    encoder pass.

    Args:
        loss: Any objective or sum of objectives.
        mini_batch_size: Rows encoded at a time; even, so that mini-batches halve as the batch does.

    Raises:
        ValueError: A size that is odd or below 2; training under DeepSpeed, whose engine owns the gradients.

    References:
        - Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup

    Requirements:
        1. Columns with one tensor row a text: padded batches.

    Inputs:
        +-------------------+-------------------+
        | Texts             | Labels            |
        +===================+===================+
        | those of ``loss`` | those of ``loss`` |
        +-------------------+-------------------+

    Relations:
        - Gradient accumulation saves as much memory but ranks only within each small batch.

    Example:
        >>> loss = CachedLoss(TranslationRankingLoss(model) + RepresentationTranslationLoss(model))  # doctest: +SKIP
    """

    def __init__(self, loss: CrossLingualLoss, *, mini_batch_size: int = 32) -> None:
        super().__init__(loss.model)
        if mini_batch_size < 2 or mini_batch_size % 2:
            raise ValueError(f"mini_batch_size must be an even number, 2 or more: got {mini_batch_size}.")
        self.loss = loss
        self.mini_batch_size = mini_batch_size
        self.min_columns, self.reads_encoding = loss.min_columns, loss.reads_encoding

    def check_columns(self, given: int) -> None:
        self.loss.check_columns(given)

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> LossValue:
        if any(type(module).__name__ == "DeepSpeedEngine" for module in (self.model, *self.model.children())):
            raise ValueError(
                "CachedLoss runs its own backward passes, which DeepSpeed's engine does not see: train it with plain "
                "or distributed PyTorch, or drop the cache."
            )
        columns = list(sentence_features)
        self.check_columns(len(columns))
        total = self.loss._as_sum()
        values = _Replay.apply(_Run(self, total, columns, labels), torch.ones((), requires_grad=True))
        components = dict(zip(total.names, values.unbind()))
        return components if isinstance(self.loss, CombinedLoss) else values.sum()

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossValue:
        """The wrapped loss on columns that are already encoded: nothing is left to cache."""
        return self.loss.compute_loss(batch, labels)

    def get_config_dict(self) -> dict[str, Any]:
        return {"mini_batch_size": self.mini_batch_size, **self.loss.get_config_dict()}

    @property
    def citation(self) -> str:
        return self.loss.citation

    def _as_sum(self) -> CombinedLoss:
        raise ValueError("wrap the whole sum: CachedLoss(a + b) instead of CachedLoss(a) + b.")


class _Run:
    """One batch's way through both passes.

    Attributes:
        embeddings: The sentence embeddings of every column, cut from the graph. *Shape:* ``(batch, dim)`` each
        counts: For each token-level term, the counts of its parts over the whole batch, of all processes.
    """

    def __init__(
        self, cached: CachedLoss, total: CombinedLoss, columns: list[dict[str, Any]], labels: Tensor | None
    ) -> None:
        self.model, self.columns, self.labels = cached.model, columns, labels
        self.reads_encoding = cached.reads_encoding
        self.heads = own_parameters(cached, cached.model)
        self.terms: list[Term] = total._terms()
        self.token_level = [isinstance(term.loss, TokenLevelLoss) for term in self.terms]
        rows, size = len(columns[0]["input_ids"]), cached.mini_batch_size
        self.ranges = [(start, min(start + size, rows)) for start in range(0, rows, size)]
        self.device = columns[0]["input_ids"].device
        kind = self.device.type
        dtype, enabled = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        self.autocast = (kind, dtype, enabled)
        self.random: list[RandContext] = []

    def first_pass(self) -> Tensor:
        """The weighted value of every term, without gradients. *Shape:* ``(terms,)``"""
        embeddings: list[Batch] = []
        parts: list[list[list[Part]]] = []
        for start, end in self.ranges:
            self.random.append(RandContext(*self._tensors()))
            batch, token_parts = self._mini_batch(start, end)
            parts.append(token_parts)
            embeddings.append([_sentence_level(column) for column in batch])
        self.embeddings = [_stack([batch[column] for batch in embeddings]) for column in range(len(self.columns))]
        totals = [_add_up([mini_batch[place] for mini_batch in parts]) for place in range(sum(self.token_level))]
        self.counts = [sum_over_processes(torch.stack([count for _, count in term])) for term in totals]
        self.random.append(RandContext(*self._tensors()))
        whole, token = iter(self._sentence_terms(self.embeddings)), iter(totals)
        values = [mean_of_parts(next(token)) if is_token else next(whole) for is_token in self.token_level]
        return torch.stack([term.weight * _exact(value) for term, value in zip(self.terms, values)])

    def second_pass(self, gradient: Tensor) -> None:
        """Add the gradient of ``gradient @ values`` to the parameters. ``gradient`` *Shape:* ``(terms,)``"""
        scales = [term.weight * part for term, part in zip(self.terms, gradient)]
        sentence_scales = [scale for scale, token in zip(scales, self.token_level) if not token]
        token_scales = [scale for scale, token in zip(scales, self.token_level) if token]
        leaves = [
            {
                key: part.detach().requires_grad_() if key == "sentence_embedding" else part
                for key, part in column.items()
            }
            for column in self.embeddings
        ]
        if sentence_scales:
            with self.random[-1], torch.autocast(self.autocast[0], self.autocast[1], enabled=self.autocast[2]):
                values = self._sentence_terms(leaves)
                torch.stack([scale * _exact(value) for scale, value in zip(sentence_scales, values)]).sum().backward()
        for place, (start, end) in enumerate(self.ranges):
            last = place + 1 == len(self.ranges)
            with self._synchronised(last):
                with self.random[place], torch.autocast(self.autocast[0], self.autocast[1], enabled=self.autocast[2]):
                    batch, parts = self._mini_batch(start, end)
                    surrogate = self._surrogate(batch, leaves, parts, token_scales, start, end)
                if surrogate.requires_grad:
                    surrogate.backward()
        if getattr(self.model, "require_backward_grad_sync", True):
            average_gradients(self.heads)

    def _surrogate(
        self,
        batch: Batch,
        leaves: Batch,
        parts: list[list[Part]],
        scales: list[Tensor],
        start: int,
        end: int,
    ) -> Tensor:
        """A number whose gradient is this mini-batch's share of the loss's."""
        total = torch.zeros((), device=self.device)
        for column, leaf in zip(batch, leaves):
            if "sentence_embedding" not in leaf:
                continue  # nobody reads it, so it was not computed
            cached = leaf["sentence_embedding"].grad
            if cached is None and isinstance(self.model, DistributedDataParallel):
                cached = torch.zeros_like(leaf["sentence_embedding"])  # it waits for what the loss leaves out, too
            if cached is not None:
                total = total + (_exact(column["sentence_embedding"]) * _exact(cached[start:end])).sum()
        for term_parts, counts, scale in zip(parts, self.counts, scales):
            used = counts.gt(0).sum().clamp(min=1)
            for (value, _), count in zip(term_parts, counts):  # times the processes, whose gradients are averaged
                total = total + get_world_size() * scale * _exact(value) / count.clamp(min=1) / used
        return total

    def _mini_batch(self, start: int, end: int) -> tuple[Batch, list[list[Part]]]:
        columns = []
        for column in self.columns:
            features = {key: value for key, value in column.items() if key != "language"}
            cut = _create_minibatch(features, start, end)
            columns.append({**cut, "language": column["language"][start:end]} if "language" in column else cut)
        batch = encode_columns(self.model, columns, needed=self.reads_encoding)
        labels = None if self.labels is None else self.labels[start:end]
        parts = []
        for term, token in zip(self.terms, self.token_level):
            if token:
                assert isinstance(term.loss, TokenLevelLoss)
                parts.append(term.loss.compute_parts(_chosen(term, batch), labels))
        return batch, parts

    def _sentence_terms(self, batch: Batch) -> list[Tensor]:
        values = []
        for term, token in zip(self.terms, self.token_level):
            if not token:
                value = term.loss.compute_loss(_chosen(term, batch), self.labels)
                assert isinstance(value, Tensor)
                values.append(value)
        return values

    def _synchronised(self, last: bool) -> AbstractContextManager[Any]:
        """Gradients are exchanged between processes once, with the last mini-batch."""
        if isinstance(self.model, DistributedDataParallel) and not last:
            return self.model.no_sync()
        return nullcontext()

    def _tensors(self) -> list[Tensor]:
        return [value for column in self.columns for value in column.values() if isinstance(value, Tensor)]


class _Replay(torch.autograd.Function):
    """Hands the first pass's values out, and starts the second pass when their gradient arrives."""

    @staticmethod
    def forward(ctx: Any, run: _Run, anchor: Tensor) -> Tensor:
        ctx.run = run
        return run.first_pass()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None]:
        run, ctx.run = ctx.run, None
        if run is None:
            raise RuntimeError("a cached loss can be backpropagated once: its second pass has already run.")
        with torch.enable_grad():
            run.second_pass(gradient)
        return None, None


def _exact(value: Tensor) -> Tensor:
    """At least float32, so that small shares add up."""
    return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value


def _chosen(term: Term, batch: Batch) -> Batch:
    return batch if term.columns is None else [batch[column] for column in term.columns]


def _sentence_level(column: dict[str, Tensor]) -> dict[str, Tensor]:
    """What sentence-level terms read: embeddings, and the tokens by which they tell equal texts."""
    kept = ("input_ids", "attention_mask", "sentence_embedding", "language")
    return {key: column[key].detach() for key in kept if key in column}


def _stack(columns: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The rows of all mini-batches, padded to one width."""
    stacked = {}
    for key in columns[0]:
        values = [column[key] for column in columns]
        width = max(value.shape[1] for value in values) if key in ("input_ids", "attention_mask") else None
        if width is not None:
            values = [nn.functional.pad(value, (0, width - value.shape[1])) for value in values]
        stacked[key] = torch.cat(values)
    return stacked


def _add_up(mini_batches: list[list[Part]]) -> list[Part]:
    sums = [torch.stack([value for value, _ in parts]).sum() for parts in zip(*mini_batches)]
    counts = [torch.stack([count for _, count in parts]).sum() for parts in zip(*mini_batches)]
    return list(zip(sums, counts))
