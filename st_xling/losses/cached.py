"""Large batches in small memory: any sum of objectives, encoded mini-batch by mini-batch, with the same gradients.

Sums of sentence-level terms use the gradient cache of sentence-transformers (``CachedLossMixin``). Token-level terms
need the token states of each mini-batch while they are alive, which that cache does not keep: sums with one of them
use a cache of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import torch
from sentence_transformers.base.losses.gradcache import CachedLossMixin, RandContext
from sentence_transformers.base.losses.merged_forward import merge_feature_batches
from sentence_transformers.sentence_transformer.losses import adaptive_layer, matryoshka
from sentence_transformers.util.distributed import get_world_size
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from st_xling.losses.base import (
    ASIDE,
    Batch,
    CombinedLoss,
    CrossLingualLoss,
    LossComponents,
    LossValue,
    SumAndCount,
    Term,
    TokenLevelLoss,
    as_loss,
    at_least_float32,
    encode_tokenized,
    encodes_by_itself,
    mean_of_parts,
    without_asides,
)
from st_xling.losses.gather import own_parameters, sum_over_processes
from st_xling.losses.mini_batches import (
    MiniBatchSize,
    cut_mini_batch,
    is_padded,
    order_by_length,
    row_lengths,
    take_rows,
)
from st_xling.losses.translation_ranking_loss import text_ids
from st_xling.models.fast_linear import in_backward_pass

#: Rows that stay together where token-level terms read a batch: RepresentationTranslationLoss, in both directions,
#: rebuilds the target of even rows and the source of odd ones.
ROWS_IN_TURN = 2

SPENT = "a cached loss can be backpropagated once: its second pass has already run."


class CachedLoss(CrossLingualLoss):
    """Wraps a loss so that only one mini-batch's activations are alive at a time (GradCache).

    First every mini-batch is encoded without gradients; sentence-level terms then see the whole batch's embeddings,
    token-level terms add up over the mini-batches. In the backward pass each mini-batch is encoded again, with the same
    dropout, and receives its share of both gradients. Value and gradients are those of the uncached loss, for one more
    encoder pass. Texts of like length are encoded together, so that little is computed on padding (with token-level
    terms: in mini-batches of tokens). A batch that fits into one mini-batch is encoded once.

    Args:
        loss: Any objective or sum of objectives, also of sentence-transformers if they compute from embeddings.
        mini_batch_size: Rows encoded at a time; even, so that mini-batches halve as the batch does.
        mini_batch_num_tokens: Tokens encoded at a time instead, padding included: short texts then share larger
            mini-batches, which is faster, and long ones cannot exhaust the memory. Set it to as many as fit.
            (sentence-transformers' option of this name does not count padding.)

    Raises:
        ValueError: A size that is odd or below 2, tokens below 1; a loss that makes a separate encoder pass; a cache
            inside of ``MatryoshkaLoss``; training under DeepSpeed, whose engine owns the gradients; columns without
            padding for token-level terms. In the backward pass: components that were weighted after the loss.

    References:
        - Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup

    Requirements:
        1. A ``StaticEmbedding`` keeps no activations: its loss is computed at once.

    Inputs:
        +-------------------+-------------------+
        | Texts             | Labels            |
        +===================+===================+
        | those of ``loss`` | those of ``loss`` |
        +-------------------+-------------------+

    Relations:
        - Gradient accumulation saves as much memory but ranks only within each small batch.

    Example:
        >>> from st_xling.losses import CachedLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = CachedLoss(TranslationRankingLoss(model), mini_batch_num_tokens=16_384)
        >>> loss([model.preprocess(texts) for texts in (sources, targets)]).backward()
    """

    def __init__(self, loss: nn.Module, *, mini_batch_size: int = 32, mini_batch_num_tokens: int | None = None) -> None:
        loss = as_loss(loss)
        super().__init__(loss.model)
        if mini_batch_size < 2 or mini_batch_size % 2:
            raise ValueError(f"mini_batch_size must be an even number, 2 or more: got {mini_batch_size}.")
        if mini_batch_num_tokens is not None and mini_batch_num_tokens < 1:
            raise ValueError(
                f"mini_batch_num_tokens must be 1 or more: got {mini_batch_num_tokens}; leave it out to count rows."
            )
        by_themselves = [term.loss.title for term in loss.as_sum().term_list() if encodes_by_itself(term.loss)]
        if by_themselves:
            raise ValueError(
                f"{', '.join(by_themselves)} makes an encoder pass of its own, which cannot be cached: leave it out of "
                "the sum, or train without the cache (sentence-transformers has cached losses of its own)."
            )
        self.loss = loss
        self.title = loss.title
        self.citation = loss.citation
        self.min_columns = loss.min_columns
        self.max_columns = loss.max_columns
        self.reads_encoding = loss.reads_encoding
        self.mini_batch_size = mini_batch_size
        self.mini_batch_num_tokens = mini_batch_num_tokens

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> LossValue:
        if any(type(module).__name__ == "DeepSpeedEngine" for module in (self.model, *self.model.children())):
            raise ValueError("CachedLoss runs its own backward passes, which DeepSpeed does not see: drop the cache.")
        wrappers = (matryoshka.ForwardDecorator, adaptive_layer.ForwardDecorator)
        if isinstance(self.model.forward, wrappers):
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
        if any(isinstance(term.loss, TokenLevelLoss) for term in total.term_list()):
            components = _with_token_level_terms(self, total, columns, labels)
        else:
            components = _with_sentence_level_terms(self, total, columns, labels)
        if components is None:  # one mini-batch is the whole batch: one pass is enough
            return self.loss(columns, labels)
        if isinstance(self.loss, CombinedLoss):
            return components
        return torch.stack(list(components.values())).sum()

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossValue:
        """The wrapped loss on columns that are already encoded: nothing is left to cache."""
        return self.loss.compute_loss(batch, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> LossValue:
        return self.loss.compute_loss_from_embeddings(embeddings, labels)

    def on_terms(self, terms: list[Term]) -> CachedLoss:
        """Return some of the wrapped loss's terms as a sum, cached with the same options."""
        return CachedLoss(
            CombinedLoss(self.loss.model, terms),
            mini_batch_size=self.mini_batch_size,
            mini_batch_num_tokens=self.mini_batch_num_tokens,
        )

    def get_config_dict(self) -> dict[str, Any]:
        options: dict[str, Any] = {"mini_batch_size": self.mini_batch_size}
        if self.mini_batch_num_tokens is not None:
            options = {"mini_batch_num_tokens": self.mini_batch_num_tokens}
        return {**options, **self.loss.get_config_dict()}

    def as_sum(self) -> CombinedLoss:
        raise ValueError("wrap the whole sum: CachedLoss(a + b) instead of CachedLoss(a) + b.")


def _with_sentence_level_terms(
    cached: CachedLoss, total: CombinedLoss, columns: list[dict[str, Any]], labels: Tensor | None
) -> LossComponents | None:
    """Both passes by sentence-transformers' gradient cache; ``None`` where there is one mini-batch."""
    batch = _SentenceCache(cached, total, columns)
    # Without pools the cache splits the columns by itself, into a number that is not known here.
    has_one_mini_batch = bool(batch.pools) and len(batch.features) == 1
    if _all_processes_have(has_one_mini_batch, _device(columns)):
        return None
    value = batch.forward_cached(batch.features, labels)
    values = batch.values
    if torch.is_grad_enabled():
        values = _Values.apply(batch, value, *batch.heads)
    return LossComponents(zip(total.names, values.unbind()))


@dataclass(frozen=True)
class _Pool:
    """Columns whose texts are encoded together, sorted by length.

    Attributes:
        columns: Number of columns.
        sorted_rows: For each text in the columns' order, its row among the sorted ones. *Shape:*
            ``(columns · batch,)``
        mini_batches: Number of mini-batches.
    """

    columns: int
    sorted_rows: Tensor
    mini_batches: int


class _SentenceCache(CachedLossMixin, nn.Module):
    """One batch in sentence-transformers' gradient cache.

    That cache splits each column by itself, in the order of its rows. Here the texts of all columns are sorted by
    length and split first, and each mini-batch is handed over as a column that is encoded in one piece. Columns without
    padding are split by sentence-transformers.

    Attributes:
        features: What the cache encodes: mini-batches, or whole columns without padding.
        values: The weighted value of each term, once it has been computed. *Shape:* ``(terms,)``
        heads: Trained weights of the losses, such as a projection.
        head_gradients: Gradients of the sum of the values by ``heads``.
    """

    def __init__(self, cached: CachedLoss, total: CombinedLoss, columns: list[dict[str, Any]]) -> None:
        super().__init__()
        self.model = cached.model
        self.total = total
        self.columns = columns
        self.heads = own_parameters(cached)
        self.head_gradients: list[Tensor] = []
        self.values = torch.zeros(0)
        self.autocast = _current_autocast(_device(columns))
        self.pools: list[_Pool] = []
        self.features = [without_asides(column) for column in columns]
        if all(is_padded(column) for column in self.features):
            self._split(MiniBatchSize(cached.mini_batch_size, cached.mini_batch_num_tokens))
            self.mini_batch_size = max(len(features["attention_mask"]) for features in self.features)
        else:
            self.mini_batch_size = cached.mini_batch_size
            self.mini_batch_num_tokens = cached.mini_batch_num_tokens

    def _split(self, size: MiniBatchSize) -> None:
        """Replace the columns' features by those of mini-batches."""
        merged = merge_feature_batches(self.features) if len(self.features) > 1 else None
        pools = self.features if merged is None else [merged]
        columns = len(self.features) // len(pools)
        # So many rows of the data set are so many texts of each column.
        size = replace(size, rows=size.rows * columns)
        self.features = []
        for pool in pools:
            lengths = row_lengths(pool)
            order = order_by_length(lengths)
            ordered = take_rows(pool, order)
            widths = lengths[order].tolist()
            ranges = size.split(widths)
            self.features += [cut_mini_batch(ordered, begin, end, widths[begin]) for begin, end in ranges]
            self.pools.append(_Pool(columns, order.argsort(), len(ranges)))

    def embed_minibatch(
        self,
        sentence_feature: dict[str, Tensor],
        begin: int,
        end: int,
        with_grad: bool,
        copy_random_state: bool,
        random_state: RandContext | None = None,
    ) -> tuple[Tensor, RandContext | None]:
        # Autograd runs the second pass outside of the caller's autocast. Weights that were cast without gradients must
        # not be taken from autocast's cache by a pass with them.
        with self.autocast(cache_enabled=with_grad), in_backward_pass():
            return super().embed_minibatch(sentence_feature, begin, end, with_grad, copy_random_state, random_state)

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        batch = []
        for features, embeddings in zip(self.columns, self._columns_of(reps)):
            column = {**features, "sentence_embedding": at_least_float32(embeddings)}
            if "cu_seq_lens_q" in features:  # tokens of several texts stand in one row: only numbers are per text
                column["text_ids"] = text_ids(column)
            batch.append(_read_by_sentence_level(column))
        components = self.total.compute_loss(batch, labels)
        values = torch.stack([at_least_float32(value) for value in components.values()])
        self.values = values.detach()
        if not with_backward:
            return values.sum()
        leaves = list(chain.from_iterable(reps))
        gradients = _gradients(values.sum(), [*leaves, *self.heads])
        for leaf, gradient in zip(leaves, gradients):
            leaf.grad = gradient
        self.head_gradients = gradients[len(leaves) :]
        return self.values.sum()

    def _columns_of(self, reps: list[list[Tensor]]) -> list[Tensor]:
        """Put the embeddings of the mini-batches into the columns' order. *Shape:* ``(batch, dim)`` each"""
        if not self.pools:
            return [torch.cat(mini_batches) for mini_batches in reps]
        columns: list[Tensor] = []
        first = 0
        for pool in self.pools:
            mini_batches = reps[first : first + pool.mini_batches]
            first += pool.mini_batches
            embeddings = torch.cat(list(chain.from_iterable(mini_batches)))[pool.sorted_rows]
            columns += embeddings.unflatten(0, (pool.columns, -1)).unbind(0)
        return columns


class _Values(torch.autograd.Function):
    """Return the values of terms whose gradients are cached; their gradients start the second pass.

    The cache only has the gradient of their sum, which it scales by the gradient of ``total``.
    """

    @staticmethod
    def forward(ctx: Any, batch: _SentenceCache, total: Tensor, *heads: Tensor) -> Tensor:
        ctx.batch = batch
        return batch.values.clone()

    @staticmethod
    def backward(ctx: Any, by_values: Tensor) -> tuple[Tensor | None, ...]:
        batch = ctx.batch
        ctx.batch = None
        if batch is None:
            raise RuntimeError(SPENT)
        if not torch.equal(by_values, by_values[:1].expand_as(by_values)):
            raise ValueError(
                f"components of a cached loss must be summed as they are: got the weights {by_values.tolist()}; weight "
                "its terms instead, as in CachedLoss(a + 0.1 * b)."
            )
        scale = by_values[0]
        return None, scale, *(scale.to(gradient.dtype) * gradient for gradient in batch.head_gradients)


def _gradients(total: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Differentiate; zeros for inputs that the total does not depend on."""
    if not total.requires_grad:
        return [torch.zeros_like(tensor) for tensor in inputs]
    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    return [torch.zeros_like(tensor) if gradient is None else gradient for tensor, gradient in zip(inputs, gradients)]


def _with_token_level_terms(
    cached: CachedLoss, total: CombinedLoss, columns: list[dict[str, Any]], labels: Tensor | None
) -> LossComponents | None:
    """Both passes by the cache of this module; ``None`` where there is one mini-batch."""
    named_terms = list(zip(total.names, total.term_list()))
    named_terms.sort(key=lambda named: isinstance(named[1].loss, TokenLevelLoss))  # sentence-level terms first
    names, terms = zip(*named_terms)
    batch = _TokenCache(cached, list(terms), columns, labels)
    if _all_processes_have(len(batch.ranges) == 1, batch.device):
        return None
    # Embeddings are computed without gradients, so that autograd would see nothing to differentiate: a leaf that
    # requires a gradient keeps the node in the graph, whose backward pass then runs the second one.
    anchor = torch.ones((), requires_grad=True)
    values = _Replay.apply(batch, anchor)
    return LossComponents(zip(names, values.unbind()))


class _TokenCache:
    """Both passes over one batch, for sums that have token-level terms.

    Attributes:
        embeddings: The sentence embeddings of every column, cut from the graph. *Shape:* ``(batch, dim)`` each
        counts: For each token-level term, the counts of its parts over the whole batch, of all processes.
    """

    def __init__(
        self, cached: CachedLoss, terms: list[Term], columns: list[dict[str, Any]], labels: Tensor | None
    ) -> None:
        self.terms = terms
        self.sentence_terms = [term for term in terms if not isinstance(term.loss, TokenLevelLoss)]
        self.token_terms = terms[len(self.sentence_terms) :]
        if not all(is_padded(without_asides(column)) for column in columns):
            titles = ", ".join(term.loss.title for term in self.token_terms)
            raise ValueError(
                f"{titles} in a cached loss needs padded columns of tokens: train with unpad_inputs=False."
            )
        self.model = cached.model
        self.reads_encoding = cached.reads_encoding
        self.labels = labels
        lengths = torch.stack([row_lengths(column) for column in columns])
        longest = lengths.amax(dim=0)
        # Rows are encoded in this order; sentence-level terms read them in the batch's. By length, mini-batches of rows
        # would hide other words than they do in the order of the batch, for the same seed.
        self.order = torch.arange(len(longest), device=longest.device)
        if cached.mini_batch_num_tokens is not None:
            self.order = order_by_length(longest, unit=ROWS_IN_TURN)
        self.columns = [take_rows(column, self.order) for column in columns]
        self.ordered_labels = None if labels is None else labels[self.order]
        size = MiniBatchSize(cached.mini_batch_size, cached.mini_batch_num_tokens)
        self.ranges = size.split(longest[self.order].tolist(), columns=len(columns), unit=ROWS_IN_TURN)
        self.lengths = lengths[:, self.order].tolist()

        self.device = longest.device
        self.autocast = _current_autocast(self.device)
        # One random state a mini-batch, and one for the sentence-level terms behind them.
        self.random: list[RandContext] = []

    def first_pass(self) -> Tensor:
        """Return the weighted value of every term, without gradients. *Shape:* ``(terms,)``"""
        tensors = []
        for column in self.columns:
            tensors += [value for value in column.values() if isinstance(value, Tensor)]
        embeddings: list[Batch] = []
        parts: list[list[list[SumAndCount]]] = []  # mini-batch → token-level term → its parts
        for start, end in self.ranges:
            self.random.append(RandContext(*tensors))
            batch, token_parts = self._mini_batch(start, end)
            parts.append(token_parts)
            embeddings.append([_read_by_sentence_level(column) for column in batch])
        # Back from the order in which rows are encoded into that of the batch.
        rows = self.order.argsort()
        self.embeddings = [take_rows(_stack(list(column)), rows) for column in zip(*embeddings)]
        totals = [_add_mini_batches(list(term_parts)) for term_parts in zip(*parts)]
        # A token-level mean divides by counts of the whole batch, which its mini-batches' gradients need later on.
        self.counts = []
        for term_totals in totals:
            counts = torch.stack([count for _, count in term_totals])
            self.counts.append(sum_over_processes(counts))
        self.random.append(RandContext(*tensors))
        values = self._sentence_values(self.embeddings)
        values += [mean_of_parts(term_totals) for term_totals in totals]
        return torch.stack([term.weight * at_least_float32(value) for term, value in zip(self.terms, values)])

    def second_pass(self, gradient: Tensor) -> None:
        """Add the gradient of ``gradient @ values`` to the parameters. ``gradient`` *Shape:* ``(terms,)``"""
        # Sentence-level terms: the gradient of the whole batch's loss by the cached embeddings, left in their .grad.
        leaves = [dict(column) for column in self.embeddings]
        for leaf in leaves:
            if "sentence_embedding" in leaf:
                leaf["sentence_embedding"] = leaf["sentence_embedding"].detach().requires_grad_()
        if self.sentence_terms:
            with self.random[-1], self.autocast():
                values = self._sentence_values(leaves)
                weighted = [
                    by_value * term.weight * at_least_float32(value)
                    for by_value, term, value in zip(gradient, self.sentence_terms, values)
                ]
                total = torch.stack(weighted)
            total.sum().backward()
        cached = [self._cached_gradient(leaf) for leaf in leaves]
        token_gradient = gradient[len(self.sentence_terms) :]

        # Each mini-batch again, under the same dropout, now with a graph: the chain rule from there to the parameters.
        for number, (start, end) in enumerate(self.ranges):
            is_last = number + 1 == len(self.ranges)
            without_exchange: Any = nullcontext()
            if isinstance(self.model, DistributedDataParallel) and not is_last:
                # Processes exchange gradients once, with the last mini-batch.
                without_exchange = self.model.no_sync()
            with without_exchange:
                with self.random[number], self.autocast(), in_backward_pass():
                    surrogate = self._surrogate(cached, token_gradient, start, end)
                if surrogate.requires_grad:
                    surrogate.backward()

    def _cached_gradient(self, leaf: dict[str, Tensor]) -> Tensor | None:
        """Return the gradient by a column's embeddings, its rows in the order in which they are encoded."""
        embeddings = leaf.get("sentence_embedding")
        if embeddings is None:  # no term reads them, so they were not computed
            return None
        if embeddings.grad is not None:
            return embeddings.grad[self.order]
        # DDP waits for what the loss ignores, too.
        return torch.zeros_like(embeddings) if isinstance(self.model, DistributedDataParallel) else None

    def _surrogate(self, cached: list[Tensor | None], gradient: Tensor, start: int, end: int) -> Tensor:
        """Return a number whose gradient is this mini-batch's share of the loss's.

        With the cached gradient G held constant, the gradient of ``(E * G).sum()`` by the parameters is G dE, the chain
        rule through this mini-batch's embeddings E. Token-level sums are scaled as the whole batch's mean scales them.
        """
        batch, parts = self._mini_batch(start, end)
        total = torch.zeros((), device=self.device)
        for column, column_gradient in zip(batch, cached):
            if column_gradient is not None:
                total = total + (column["sentence_embedding"] * column_gradient[start:end]).sum()
        for term_parts, counts, scale, term in zip(parts, self.counts, gradient, self.token_terms):
            used = counts.gt(0).sum().clamp(min=1)
            # Times the processes, since gradients are averaged over them and these counts are of all.
            for (value, _), count in zip(term_parts, counts):
                share = at_least_float32(value) / count.clamp(min=1) / used
                total = total + get_world_size() * term.weight * scale * share
        return total

    def _mini_batch(self, start: int, end: int) -> tuple[Batch, list[list[SumAndCount]]]:
        """Encode rows ``start`` to ``end``, and compute the parts of each token-level term on them."""
        columns = [
            cut_mini_batch(column, start, end, max(lengths[start:end]))
            for column, lengths in zip(self.columns, self.lengths)
        ]
        batch = encode_tokenized(self.model, columns, needed=self.reads_encoding)
        labels = None if self.ordered_labels is None else self.ordered_labels[start:end]
        terms: Any = self.token_terms
        return batch, [term.loss.compute_parts(term.select(batch), labels) for term in terms]

    def _sentence_values(self, batch: Batch) -> list[Tensor]:
        return [term.loss.compute_loss(term.select(batch), self.labels) for term in self.sentence_terms]  # type: ignore[misc]


class _Replay(torch.autograd.Function):
    """Return the first pass's values, and start the second pass when their gradient arrives."""

    @staticmethod
    def forward(ctx: Any, batch: _TokenCache, anchor: Tensor) -> Tensor:
        ctx.batch = batch
        return batch.first_pass()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None]:
        batch = ctx.batch
        ctx.batch = None
        if batch is None:
            raise RuntimeError(SPENT)
        with torch.enable_grad():
            batch.second_pass(gradient)
        return None, None


def _all_processes_have(one_mini_batch: bool, device: torch.device) -> bool:
    """Return whether each process has one mini-batch: all must take the same way, or they wait for each other."""
    has_several = torch.tensor(not one_mini_batch, dtype=torch.float32, device=device)
    return not bool(sum_over_processes(has_several))


def _current_autocast(device: torch.device) -> Callable[..., torch.autocast]:
    """Return what restores the autocast of the caller, in a backward pass."""
    kind = device.type
    return partial(torch.autocast, kind, dtype=torch.get_autocast_dtype(kind), enabled=torch.is_autocast_enabled(kind))


def _device(columns: list[dict[str, Any]]) -> torch.device:
    return next(value.device for value in columns[0].values() if isinstance(value, Tensor))


def _read_by_sentence_level(column: dict[str, Any]) -> dict[str, Tensor]:
    """Keep what sentence-level terms read: embeddings, and the tokens by which they know equal texts."""
    keys = ("text_ids",) if "text_ids" in column else ("input_ids", "attention_mask")
    return {key: column[key] for key in (*keys, "sentence_embedding", *ASIDE) if key in column}


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


def _add_mini_batches(mini_batches: list[list[SumAndCount]]) -> list[SumAndCount]:
    """Add up each part of a term over the mini-batches."""
    totals = []
    for part in zip(*mini_batches):
        sums, counts = zip(*part)
        totals.append((torch.stack(sums).sum(), torch.stack(counts).sum()))
    return totals
