"""Large batches in small memory: any sum of objectives, encoded mini-batch by mini-batch, with the same gradients."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import RandContext, _create_minibatch, _minibatch_ranges
from sentence_transformers.sentence_transformer.losses import adaptive_layer, matryoshka
from sentence_transformers.util.distributed import get_world_size
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from st_xling.losses.base import (
    ASIDE,
    Batch,
    CombinedLoss,
    Components,
    CrossLingualLoss,
    LossValue,
    Part,
    Term,
    TokenLevelLoss,
    as_loss,
    encode_columns,
    encodes_by_itself,
    mean_of_parts,
)
from st_xling.losses.gather import sum_over_processes
from st_xling.losses.translation_ranking import text_ids


class CachedLoss(CrossLingualLoss):
    """Wraps a loss so that only one mini-batch's activations are alive at a time (GradCache).

    First every mini-batch is encoded without gradients; sentence-level terms then see the whole batch's embeddings,
    token-level terms add up over the mini-batches. In the backward pass each mini-batch is encoded again, with the same
    dropout, and receives its share of both gradients. Value and gradients are those of the uncached loss, for one more
    encoder pass.

    Args:
        loss: Any objective or sum of objectives, sentence-transformers' own included if they compute from embeddings.
        mini_batch_size: Rows encoded at a time; even, so that mini-batches halve as the batch does.

    Raises:
        ValueError: A size that is odd or below 2; a loss that makes an encoder pass of its own; a cache inside of
            ``MatryoshkaLoss``; training under DeepSpeed, whose engine owns the gradients.

    References:
        - Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup

    Requirements:
        1. Columns with one tensor row a text. A ``StaticEmbedding`` keeps no activations: its loss is computed at once.

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

    def __init__(self, loss: nn.Module, *, mini_batch_size: int = 32) -> None:
        loss = as_loss(loss)
        super().__init__(loss.model)
        if mini_batch_size < 2 or mini_batch_size % 2:
            raise ValueError(f"mini_batch_size must be an even number, 2 or more: got {mini_batch_size}.")
        if own := [term.loss.title for term in loss.as_sum().term_list() if encodes_by_itself(term.loss)]:
            raise ValueError(
                f"{', '.join(own)} makes an encoder pass of its own, which cannot be cached: leave it out of the sum, "
                "or train without the cache (sentence-transformers has cached losses of its own)."
            )
        self.loss, self.title, self.citation = loss, loss.title, loss.citation
        self.min_columns, self.max_columns = loss.min_columns, loss.max_columns
        self.mini_batch_size, self.reads_encoding = mini_batch_size, loss.reads_encoding

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> LossValue:
        if any(type(module).__name__ == "DeepSpeedEngine" for module in (self.model, *self.model.children())):
            raise ValueError("CachedLoss runs its own backward passes, which DeepSpeed does not see: drop the cache.")
        if isinstance(self.model.forward, (matryoshka.ForwardDecorator, adaptive_layer.ForwardDecorator)):
            # Their changes to the model's forward pass are undone when the second pass comes.
            raise ValueError(
                "a cached loss cannot be wrapped: put the cache outside, as in CachedLoss(MatryoshkaLoss(model, loss, "
                "matryoshka_dims)), or drop it, as for AdaptiveLayerLoss."
            )
        columns = list(sentence_features)
        if any("offsets" in column for column in columns):
            return self.loss(columns, labels)
        columns = self.columns_read(columns)
        self.prepare_heads()
        total = self.loss.as_sum()
        # Sentence-level terms first.
        named = sorted(zip(total.names, total.term_list()), key=lambda entry: isinstance(entry[1].loss, TokenLevelLoss))
        # Embeddings are computed without gradients, so that autograd would see nothing to differentiate: a leaf that
        # requires a gradient keeps the node in the graph, whose backward pass then runs the second one.
        anchor = torch.ones((), requires_grad=True)
        values = _Replay.apply(_TwoPasses(self, [term for _, term in named], columns, labels), anchor)
        components = Components(zip((name for name, _ in named), values.unbind()))
        return components if isinstance(self.loss, CombinedLoss) else values.sum()

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossValue:
        """The wrapped loss on columns that are already encoded: nothing is left to cache."""
        return self.loss.compute_loss(batch, labels)

    def get_config_dict(self) -> dict[str, Any]:
        return {"mini_batch_size": self.mini_batch_size, **self.loss.get_config_dict()}

    def as_sum(self) -> CombinedLoss:
        raise ValueError("wrap the whole sum: CachedLoss(a + b) instead of CachedLoss(a) + b.")


class _TwoPasses:
    """Both passes over one batch.

    Attributes:
        embeddings: The sentence embeddings of every column, cut from the graph. *Shape:* ``(batch, dim)`` each
        counts: For each token-level term, the counts of its parts over the whole batch, of all processes.
    """

    def __init__(
        self, cached: CachedLoss, terms: list[Term], columns: list[dict[str, Any]], labels: Tensor | None
    ) -> None:
        self.model, self.columns, self.labels = cached.model, columns, labels
        self.reads_encoding = cached.reads_encoding
        self.terms = terms
        self.sentence_terms = [term for term in terms if not isinstance(term.loss, TokenLevelLoss)]
        self.token_terms = terms[len(self.sentence_terms) :]
        self.ranges = _minibatch_ranges(columns[0], cached.mini_batch_size)
        self.device = next(value.device for value in columns[0].values() if isinstance(value, Tensor))
        # Autograd runs backward passes outside the caller's autocast: the second pass restores it.
        kind = self.device.type
        dtype, enabled = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        self.autocast = partial(torch.autocast, kind, dtype=dtype, enabled=enabled)
        # One random state a mini-batch, and one for the sentence-level terms behind them.
        self.random: list[RandContext] = []

    def first_pass(self) -> Tensor:
        """Return the weighted value of every term, without gradients. *Shape:* ``(terms,)``"""
        tensors = [value for column in self.columns for value in column.values() if isinstance(value, Tensor)]
        embeddings: list[Batch] = []
        parts: list[list[list[Part]]] = []  # mini-batch → token-level term → its parts
        for start, end in self.ranges:
            self.random.append(RandContext(*tensors))
            batch, token_parts = self._mini_batch(start, end)
            parts.append(token_parts)
            embeddings.append([_sentence_level(column) for column in batch])
        self.embeddings = [_stack([batch[column] for batch in embeddings]) for column in range(len(self.columns))]
        totals = [_add_up([mini_batch[place] for mini_batch in parts]) for place in range(len(self.token_terms))]
        # A token-level mean divides by counts of the whole batch, which its mini-batches' gradients need later on.
        self.counts = [sum_over_processes(torch.stack([count for _, count in term])) for term in totals]
        self.random.append(RandContext(*tensors))
        values = [*self._sentence_values(self.embeddings), *(mean_of_parts(term) for term in totals)]
        return torch.stack([term.weight * _exact(value) for term, value in zip(self.terms, values)])

    def second_pass(self, gradient: Tensor) -> None:
        """Add the gradient of ``gradient @ values`` to the parameters. ``gradient`` *Shape:* ``(terms,)``"""
        # Sentence-level terms: the gradient of the whole batch's loss by the cached embeddings, left in their .grad.
        leaves = [dict(column) for column in self.embeddings]
        for leaf in leaves:
            if "sentence_embedding" in leaf:
                leaf["sentence_embedding"] = leaf["sentence_embedding"].detach().requires_grad_()
        if self.sentence_terms:
            with self.random[-1], self.autocast():
                values = zip(gradient, self.sentence_terms, self._sentence_values(leaves))
                torch.stack([part * term.weight * _exact(value) for part, term, value in values]).sum().backward()

        # Each mini-batch again, under the same dropout, now with a graph: the chain rule from there to the parameters.
        for place, (start, end) in enumerate(self.ranges):
            wrapped = isinstance(self.model, DistributedDataParallel) and place + 1 < len(self.ranges)
            # Processes exchange gradients once, with the last mini-batch.
            with self.model.no_sync() if wrapped else nullcontext():  # type: ignore[operator]
                with self.random[place], self.autocast():
                    surrogate = self._surrogate(leaves, gradient[len(self.sentence_terms) :], start, end)
                if surrogate.requires_grad:
                    surrogate.backward()

    def _surrogate(self, leaves: Batch, gradient: Tensor, start: int, end: int) -> Tensor:
        """Return a number whose gradient is this mini-batch's share of the loss's.

        With the cached gradient G held constant, the gradient of ``(E * G).sum()`` by the parameters is G dE, the chain
        rule through this mini-batch's embeddings E. Token-level sums are scaled as the whole batch's mean scales them.
        """
        batch, parts = self._mini_batch(start, end)
        total = torch.zeros((), device=self.device)
        for column, leaf in zip(batch, leaves):
            if "sentence_embedding" not in leaf:
                continue  # no term reads it, so it was not computed
            cached = leaf["sentence_embedding"].grad
            if cached is None and isinstance(self.model, DistributedDataParallel):
                cached = torch.zeros_like(leaf["sentence_embedding"])  # DDP waits for what the loss ignores, too
            if cached is not None:
                total = total + (_exact(column["sentence_embedding"]) * _exact(cached[start:end])).sum()
        for own, counts, scale, term in zip(parts, self.counts, gradient, self.token_terms):
            used = counts.gt(0).sum().clamp(min=1)
            # Times the processes, since gradients are averaged over them and these counts are of all.
            for (value, _), count in zip(own, counts):
                total = total + get_world_size() * term.weight * scale * _exact(value) / count.clamp(min=1) / used
        return total

    def _mini_batch(self, start: int, end: int) -> tuple[Batch, list[list[Part]]]:
        """Encode rows ``start`` to ``end``, and compute the parts of each token-level term on them."""
        columns = []
        for column in self.columns:
            # ST's function cuts what belongs to a tokenized column; what losses read besides is cut here.
            features = {key: value for key, value in column.items() if key not in ASIDE}
            aside = {key: column[key][start:end] for key in ASIDE if key in column}
            columns.append({**_create_minibatch(features, start, end), **aside})
        batch = encode_columns(self.model, columns, needed=self.reads_encoding)
        labels = None if self.labels is None else self.labels[start:end]
        losses: Any = self.token_terms
        return batch, [term.loss.compute_parts(term.select(batch), labels) for term in losses]

    def _sentence_values(self, batch: Batch) -> list[Tensor]:
        return [term.loss.compute_loss(term.select(batch), self.labels) for term in self.sentence_terms]  # type: ignore[misc]


class _Replay(torch.autograd.Function):
    """Return the first pass's values, and start the second pass when their gradient arrives."""

    @staticmethod
    def forward(ctx: Any, run: _TwoPasses, anchor: Tensor) -> Tensor:
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
    """Convert to float32 at least, so that small shares add up."""
    return value.to(torch.promote_types(value.dtype, torch.float32))


def _sentence_level(column: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keep what sentence-level terms read: embeddings, and the tokens by which they know equal texts."""
    keys = ("input_ids", "attention_mask", "sentence_embedding", *ASIDE)
    if "cu_seq_lens_q" in column:  # without padding, tokens of several texts stand in one row: only numbers stack
        column = {"text_ids": text_ids(column), **{key: column[key] for key in keys[2:] if key in column}}  # type: ignore[dict-item]
    return {key: column[key].detach() for key in ("text_ids", *keys) if key in column}


def _stack(columns: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Join the rows of all mini-batches, padded to one width."""
    stacked = {}
    for key in columns[0]:
        values = [column[key] for column in columns]
        if key in ("input_ids", "attention_mask"):
            width = max(value.shape[1] for value in values)
            values = [nn.functional.pad(value, (0, width - value.shape[1])) for value in values]
        stacked[key] = torch.cat(values)
    return stacked


def _add_up(mini_batches: list[list[Part]]) -> list[Part]:
    totals = (zip(*parts) for parts in zip(*mini_batches))  # of each part, its sums and its counts
    return [(torch.stack(sums).sum(), torch.stack(counts).sum()) for sums, counts in totals]
