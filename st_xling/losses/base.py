"""The base of every objective, and their weighted sums: encode all columns once, then compute."""

from __future__ import annotations

import functools
import inspect
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import merge_feature_batches
from sentence_transformers.sentence_transformer import losses as st_losses
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from st_xling.losses.gather import are_saved, average_heads, own_parameters, sum_over_processes
from st_xling.losses.rows_by_length import encode_rows
from st_xling.models.heads import new_heads
from st_xling.utils.private import uncompiled

logger = logging.getLogger(__name__)

#: One dict of tensors a text column.
Batch = list[dict[str, Tensor]]
LossValue = Tensor | dict[str, Tensor]
#: Sum over tokens (or pairs) and their number, of which a mean over several mini-batches is computed.
SumAndCount = tuple[Tensor, Tensor]

#: Features of a column that the encoder does not read; they are passed to the losses.
ASIDE = ("language",)
_SHARED_OUTPUTS = ("input_ids", "attention_mask", "token_embeddings", "sentence_embedding")


class CrossLingualLoss(nn.Module):
    """Base of all objectives; a subclass implements :meth:`compute_loss`.

    Works by itself in ``SentenceTransformer.fit([(loader, loss)])`` and in the trainer, and adds up with others over
    the same encoder pass: ``a + b``, ``0.1 * a``, ``a.on(0, 1)`` (see :class:`CombinedLoss`).

    In several processes (``accelerate launch``, ``torchrun``) the batches of all count as one: value and gradients are
    those of one process with all rows, in-batch negatives and means over tokens included. Heads that a loss owns,
    which no distributed wrapper sees, have their gradients averaged in the backward pass.

    Args:
        model: The ``SentenceTransformer`` being trained.

    Attributes:
        min_columns: Number of text columns that the objective needs.
        max_columns: Number of text columns that it reads; further ones are ignored, with a warning. ``None``: all.
        reads_encoding: Whether it reads the columns' embeddings; if no term of a sum does, that pass is skipped.
        title: Name in messages; in snake case, in the log.
        citation: BibTeX of the paper that the objective comes from.
        shared_head: Terms of a sum that name the same one train one ``head``; ``None``: a separate head, or none.

    Example:
        A new objective is one class; recipes, sums, caching and several processes work with it as it is.

        >>> from st_xling.losses import CachedLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> class DistanceLoss(CrossLingualLoss):
        ...     def compute_loss(self, batch, labels):
        ...         source, target = (column["sentence_embedding"] for column in batch[:2])
        ...         return (source - target).square().sum(dim=1).mean()
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = CachedLoss(TranslationRankingLoss(model, margin=0.3) + 0.1 * DistanceLoss(model), mini_batch_size=2)
        >>> components = loss([model.preprocess(texts) for texts in (sources, targets)])
        >>> sorted(components)
        ['distance', 'translation_ranking']
        >>> sum(components.values()).backward()
    """

    min_columns = 2
    max_columns: int | None = None
    reads_encoding = True
    _looks_for_heads = True
    _chooses_columns = False
    citation: str = ""
    shared_head: str | None = None

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.title = type(self).__name__

    @classmethod
    def resolve_options(
        cls, options: Mapping[str, Any], *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """Fill in a recipe's options that depend on the data, such as ``auto``.

        Args:
            options: Options in the recipe.
            token_ids: Token ids that each text column uses.
            languages: Languages of each text column.

        Returns:
            The constructor's options.
        """
        return dict(options)

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> LossValue:
        """Encode the columns in one pass and compute the loss.

        Args:
            sentence_features: One tokenized column a text column; each ``input_ids`` of *Shape:* ``(batch, tokens)``
            labels: Whatever the objective reads from the data set's label column. *Shape:* ``(batch,)``

        Returns:
            The loss in nats, *Shape:* ``()``; a :class:`CombinedLoss` returns a dict of weighted components.
        """
        columns = self.columns_read(list(sentence_features))
        features = [without_asides(column) for column in columns]
        batch = encode_tokenized(self.model, columns, needed=self.reads_encoding)
        for column, encoded in zip(features, batch):
            encoded["features"] = column  # type: ignore[assignment]  # for losses that encode by themselves
        value: Any = self.compute_loss(batch, labels)
        self.prepare_heads()
        if not isinstance(self.model, DistributedDataParallel):
            return value
        # DDP waits for every parameter of its forward pass, also those whose outputs the loss ignores (RTL: what lies
        # behind the token states): a gradient of zero.
        embeddings = [column["sentence_embedding"] for column in batch if "sentence_embedding" in column]
        return value + sum(column_embeddings.sum() * 0.0 for column_embeddings in embeddings)

    def prepare_heads(self) -> None:
        """Average the gradients of the loss's own weights; in the first pass, warn of those that no trainer saves."""
        average_heads(self)
        if self._looks_for_heads and not are_saved(own_parameters(self)):
            warn_once(
                f"{self.title} has weights of its own, which only CrossLingualTrainer saves in checkpoints: with "
                "another trainer they start anew when a run is resumed."
            )
            if any(head.on_pretrained for head in new_heads(self)):
                warn_once(
                    f"{self.title} has a new head, whose random weights harm a pretrained encoder: train with "
                    "CrossLingualTrainer, or call st_xling.training.warm_up_heads(trainer) before trainer.train()."
                )
        self._looks_for_heads = False

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossValue:
        """The objective on encoded columns.

        Args:
            batch: One dict a column: ``input_ids`` and ``attention_mask`` ``(batch, tokens)``, ``token_embeddings``
                ``(batch, tokens, hidden)``, ``sentence_embedding`` ``(batch, dim)``; ``language`` ``(batch,)`` where
                the data set names languages. No embeddings without ``reads_encoding``.
            labels: *Shape:* ``(batch,)``, or ``None``.
        """
        raise NotImplementedError

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> LossValue:
        """Compute the loss from embeddings, the interface of sentence-transformers' losses.

        Without the texts, equal ones are not recognized: a duplicate counts as a negative.

        Args:
            embeddings: One matrix a text column. *Shape:* ``(batch, dim)`` each
            labels: Whatever the objective reads from the data set's label column. *Shape:* ``(batch,)``

        Returns:
            As :meth:`forward`.

        Raises:
            ValueError: An objective that reads token states; too few columns.
        """
        batch = [{"sentence_embedding": at_least_float32(column)} for column in embeddings]
        return self.compute_loss(self.columns_read(batch), labels)

    def columns_read(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the columns that the objective reads; ``ValueError`` if there are too few, a warning once if more."""
        count = len(columns)
        if count < self.min_columns:
            raise ValueError(
                f"{self.title} needs {self.min_columns} text columns: the data set gives {count}; "
                "add the missing column, or choose columns with .on(...)."
            )
        if self.max_columns is not None and count > self.max_columns and not self._chooses_columns:
            warn_once(
                f"{self.title} reads {self.max_columns} text columns: the data set gives {count}, "
                "the others are ignored."
            )
        return columns[: self.max_columns]

    def get_config_dict(self) -> dict[str, Any]:
        """Return the constructor's options that are attributes of the same name, for the model card."""
        names = [name for name in inspect.signature(type(self)).parameters if name != "model"]
        values = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {name: value for name, value in values.items() if not isinstance(value, (nn.Module, Tensor))}

    def as_sum(self) -> CombinedLoss:
        """This objective as a sum of one term; a sum is returned as it is."""
        return CombinedLoss(self.model, [Term(self)])

    def __add__(self, other: nn.Module) -> CombinedLoss:
        return CombinedLoss(self.model, [*self.as_sum().term_list(), *as_loss(other).as_sum().term_list()])

    def __radd__(self, other: object) -> CrossLingualLoss:
        return self if other == 0 else as_loss(other) + self  # sum([...]) starts from 0

    def __mul__(self, weight: float) -> CombinedLoss:
        terms = self.as_sum().term_list()
        weighted = [Term(term.loss, term.weight * weight, term.columns, name=term.name) for term in terms]
        return CombinedLoss(self.model, weighted)

    __rmul__ = __mul__

    def on(self, *columns: int) -> CombinedLoss:
        """Read these text columns, counted from 0, in this order; a sum's terms choose among them."""
        return CombinedLoss(self.model, [term.on(columns) for term in self.as_sum().term_list()])


class TokenLevelLoss(CrossLingualLoss):
    """Base of objectives that are a mean over tokens (or pairs), so that mini-batches of a batch can share it.

    A subclass implements :meth:`compute_parts`.
    """

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[SumAndCount]:
        """Return sums and counts of the means that the objective averages, a fixed number; a count may be 0."""
        raise NotImplementedError

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        return mean_of_parts(self.compute_parts(batch, labels))

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> LossValue:
        raise ValueError(
            f"{self.title} reads the states of tokens, not sentence embeddings: call it with the tokenized columns."
        )


class Term(nn.Module):
    """One summand: an objective, its weight, the columns it reads (``None``: all), and its name in the log."""

    def __init__(
        self, loss: CrossLingualLoss, weight: float = 1.0, columns: tuple[int, ...] | None = None, *, name: str = ""
    ) -> None:
        super().__init__()
        if not 0 <= weight < math.inf:
            raise ValueError(f"a loss weight must be a finite number, 0 or more: got {weight!r} for {loss.title}.")
        self.loss = loss
        self.weight = float(weight)
        self.columns = columns
        self.min_columns = loss.min_columns
        self.max_columns = loss.max_columns
        if columns is not None:
            if len(columns) < loss.min_columns:
                raise ValueError(
                    f"{loss.title} needs {loss.min_columns} text columns: .on{columns} gives {len(columns)}."
                )
            if min(columns) < 0 or len(set(columns)) != len(columns):
                raise ValueError(f"columns are distinct positions counted from 0: got {columns}.")
            self.min_columns = max(columns) + 1
            self.max_columns = self.min_columns
        # TranslationRankingLoss → translation_ranking
        self.name = name or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", loss.title.removesuffix("Loss")).lower()

    def on(self, columns: tuple[int, ...]) -> Term:
        """Read ``columns``, or those of them that the term chose by their positions."""
        chosen = columns if self.columns is None else tuple(columns[column] for column in self.columns)
        return Term(self.loss, self.weight, chosen, name=self.name)

    def select(self, batch: Batch) -> Batch:
        """Return the columns that the objective reads, in its order."""
        return batch if self.columns is None else [batch[column] for column in self.columns]


class LossComponents(dict[str, Tensor]):
    """A sum's weighted components, which are added, multiplied and divided by name, as ST's wrappers do with a loss."""

    def __mul__(self, weight: float) -> LossComponents:
        return LossComponents({name: value * weight for name, value in self.items()})

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> LossComponents:
        return LossComponents({name: value / divisor for name, value in self.items()})

    def __add__(self, other: Mapping[str, Tensor] | float) -> LossComponents:
        addends: Mapping[str, Tensor | float]
        if isinstance(other, Mapping):
            addends = other
        else:  # the 0.0 that a wrapper starts from
            addends = dict.fromkeys(self, other)
        return LossComponents({name: value + addends[name] for name, value in self.items()})

    __radd__ = __add__


class CombinedLoss(CrossLingualLoss):
    """Several objectives that share the encoder's single pass; returns a dict of weighted components.

    The trainer adds the components up and logs them one by one. Made by ``+``, ``*`` and ``.on``.
    Losses of sentence-transformers can be terms, see :func:`~st_xling.losses.make`. MLM and TLM terms share one
    vocabulary head, that of the first of them, as far as their ``head`` options agree.

    Args:
        model: The ``SentenceTransformer`` that every term trains.
        terms: The summands, in order.

    Raises:
        ValueError: Terms built on different models; a weight that is negative or not finite; columns that repeat or
            lie outside the data set.

    Example:
        >>> from st_xling.losses import KoleoLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + 0.01 * KoleoLoss(model).on(1)
        >>> sorted(loss([model.preprocess(texts) for texts in (sources, targets)]))
        ['koleo', 'translation_ranking']
    """

    def __init__(self, model: nn.Module, terms: Sequence[Term]) -> None:
        super().__init__(model)
        others = [term.loss.title for term in terms if term.loss.model is not model]
        if others:
            raise ValueError(f"terms of a sum must have the same model: {', '.join(others)} was built on another one.")
        self.terms = nn.ModuleList(terms)
        heads: dict[str, nn.Module] = {}
        for term in terms:
            if (start := term.loss.shared_head) is not None:
                term.loss.head = heads.setdefault(start, term.loss.head)  # type: ignore[arg-type]
        self.names = _number_repeats([term.name for term in terms])
        self.title = " + ".join(self.names)
        citations = [term.loss.citation.strip() for term in terms]
        self.citation = "\n".join(dict.fromkeys(filter(None, citations)))
        self.min_columns = max(term.min_columns for term in terms)
        # One term that reads all columns is enough for the sum to read them.
        limits = [term.max_columns for term in terms]
        self.max_columns = None if None in limits else max(filter(None, limits))
        self.reads_encoding = any(term.loss.reads_encoding for term in terms)
        # Whoever names the columns of each term need not be told that others are ignored.
        self._chooses_columns = all(term.columns is not None for term in terms)

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossComponents:
        components = LossComponents()
        for name, term in zip(self.names, self.term_list()):
            value = term.loss.compute_loss(term.select(batch), labels)
            components[name] = term.weight * _add_components(value)
        return components

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> LossComponents:
        columns = self.columns_read([{"sentence_embedding": column} for column in embeddings])
        components = LossComponents()
        for name, term in zip(self.names, self.term_list()):
            chosen = [column["sentence_embedding"] for column in term.select(columns)]
            value = term.loss.compute_loss_from_embeddings(chosen, labels)
            components[name] = term.weight * _add_components(value)
        return components

    def term_list(self) -> list[Term]:
        """Return the summands, in order."""
        return list(self.terms)  # type: ignore[arg-type]

    def as_sum(self) -> CombinedLoss:
        return self

    def get_config_dict(self) -> dict[str, Any]:
        return {
            name: {"weight": term.weight, "columns": term.columns, **term.loss.get_config_dict()}
            for name, term in zip(self.names, self.term_list())
        }


class SentenceTransformersLoss(CrossLingualLoss):
    """One of sentence-transformers' losses as an objective of ours, see :func:`make`."""

    min_columns = 1

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(_model_of(loss))
        self.loss = loss
        self.title = type(loss).__name__
        self.citation = getattr(loss, "citation", "")
        self.reads_encoding = hasattr(loss, "compute_loss_from_embeddings")
        #: The loss within ``MatryoshkaLoss``; in a list, so that its parameters have one name.
        self._inner: list[CrossLingualLoss] = []
        if isinstance(loss, st_losses.MatryoshkaLoss):
            inner = as_loss(loss.loss)
            self._inner = [inner]
            self.reads_encoding = all(term.loss.reads_encoding for term in inner.as_sum().term_list())

    def get_config_dict(self) -> dict[str, Any]:
        return self.loss.get_config_dict() if hasattr(self.loss, "get_config_dict") else {}  # type: ignore[operator]

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> LossValue:
        if not self.reads_encoding:
            raise ValueError(f"{self.title} makes an encoder pass of its own: call it with the tokenized columns.")
        return super().compute_loss_from_embeddings(embeddings, labels)

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        loss: Any = self.loss
        if not self.reads_encoding:
            features = [dict(column["features"]) for column in batch]
            return _add_components(loss(features, labels))
        if self._inner:
            return self._compute_matryoshka_loss(batch, labels)
        embeddings = [column["sentence_embedding"] for column in batch]
        if isinstance(loss, st_losses.EmbedDistillLoss):
            labels = _teacher_columns(labels, len(batch), self.title)  # type: ignore[assignment]
        return _add_components(loss.compute_loss_from_embeddings(embeddings, labels))

    def _compute_matryoshka_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        """Compute the inner loss on the first dimensions of the embeddings, for each of the sizes."""
        loss: Any = self.loss
        sizes = list(zip(loss.matryoshka_dims, loss.matryoshka_weights))
        if 0 < loss.n_dims_per_step < len(sizes):  # drawn by torch, whose draws a cached loss repeats
            drawn = torch.randperm(len(sizes))[: loss.n_dims_per_step].tolist()
            sizes = [sizes[index] for index in drawn]
        values = []
        for size, weight in sizes:
            truncated = []
            for column in batch:
                embeddings = F.normalize(column["sentence_embedding"][:, :size], dim=1)
                truncated.append({**column, "sentence_embedding": embeddings})
            value = self._inner[0].compute_loss(truncated, labels)
            values.append(weight * _add_components(value))
        return torch.stack(values).sum()


def encodes_by_itself(loss: CrossLingualLoss) -> bool:
    """Return whether a loss of sentence-transformers runs the model itself, and not on the sum's embeddings."""
    return isinstance(loss, SentenceTransformersLoss) and not loss.reads_encoding


def as_loss(loss: Any) -> CrossLingualLoss:
    """Return ``loss``, one of sentence-transformers' as an objective of ours; ``ValueError`` for anything else."""
    if isinstance(loss, CrossLingualLoss):
        return loss
    if isinstance(loss, nn.Module) and isinstance(_model_of(loss), nn.Module):
        return SentenceTransformersLoss(loss)
    raise ValueError(f"expected a loss of st_xling or sentence-transformers that is built on a model: got {loss!r}.")


def make(loss: str | nn.Module, model: nn.Module | None = None, /, **options: Any) -> CrossLingualLoss:
    """Wrap one of sentence-transformers' losses as a term that can be weighted, summed and cached.

    Terms that compute from embeddings share the sum's encoder pass, and can be cached. ``MatryoshkaLoss`` asks its loss
    (any of ours, or a sum) at every size. The others make a separate pass. In several processes each has the batch
    and the negatives that sentence-transformers gives it.

    Args:
        loss: The name of a class of ``sentence_transformers.losses``, or such a loss.
        model: The ``SentenceTransformer`` to train, for a name.
        **options: What the class takes, for a name.

    Raises:
        ValueError: No such loss.

    Example:
        >>> from st_xling.losses import TranslationRankingLoss, make
        >>> from st_xling.models import tiny_encoder
        >>> model = tiny_encoder(["Der Hund schläft.", "The dog is sleeping."], vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + 0.1 * make("CoSENTLoss", model, scale=10.0)
        >>> loss.names
        ['translation_ranking', 'co_sent']
    """
    if not isinstance(loss, str):
        return as_loss(loss)
    kind = getattr(st_losses, loss, None)
    if kind is None:
        raise ValueError(f"sentence-transformers has no loss {loss!r}; it is one of {', '.join(st_losses.__all__)}.")
    return as_loss(kind(model, **options))


def bibtex(key: str) -> str:
    """Return an entry of ``citations.bib``: the papers that the objectives come from."""
    entries = (resources.files(__package__) / "citations.bib").read_text(encoding="utf-8").split("\n\n")
    return next(f"\n{entry.strip()}\n" for entry in entries if f"{{{key}," in entry)


@functools.cache
def warn_once(message: str) -> None:
    """Log a warning, the first time that it comes up in this process."""
    logger.warning(message)


def _number_repeats(names: Sequence[str]) -> list[str]:
    """Make names distinct: a second ``translation_ranking`` is ``translation_ranking_2``."""
    counts: Counter[str] = Counter()
    numbered = []
    for name in names:
        counts[name] += 1
        if counts[name] > 1:
            name = f"{name}_{counts[name]}"
        numbered.append(name)
    return numbered


def _model_of(loss: nn.Module) -> Any:
    """Return the model that a loss trains, by the names that ST's losses have for it, or the first one in the loss."""
    for name in ("model", "sentence_embedder", "encoder"):
        if hasattr(loss, name):
            return getattr(loss, name)
    return next((module for module in loss.children() if isinstance(module, SentenceTransformer)), None)


def _teacher_columns(labels: Tensor | None, columns: int, title: str) -> list[Tensor]:
    """Split a teacher's vectors by column: the same for all columns, or one for each, as ST's loss splits them.

    *Shape:* ``(batch, dim)`` or ``(batch, columns, dim)`` → ``(batch, dim)`` each
    """
    if labels is not None and labels.ndim == 2:
        return [labels] * columns
    if labels is not None and labels.ndim == 3 and labels.shape[1] == columns:
        return list(labels.unbind(1))
    got = "none" if labels is None else f"shape {tuple(labels.shape)}"
    raise ValueError(f"{title} needs a teacher's vectors, (batch, dim) or (batch, {columns}, dim): got {got}.")


def _add_components(value: LossValue) -> Tensor:
    return torch.stack(list(value.values())).sum() if isinstance(value, dict) else value


def mean_of_parts(parts: list[SumAndCount]) -> Tensor:
    """Average sum by count over the parts that counted anything; both are summed over all processes first."""
    totals = sum_over_processes(torch.stack([total for total, _ in parts]))
    counts = sum_over_processes(torch.stack([count for _, count in parts]))
    return (totals / counts.clamp(min=1)).sum() / (counts > 0).sum().clamp(min=1)


def without_asides(column: dict[str, Any]) -> dict[str, Any]:
    """Return the features of a column that the encoder reads, see :data:`ASIDE`."""
    return {key: value for key, value in column.items() if key not in ASIDE}


def _take_asides(column: dict[str, Any]) -> dict[str, Any]:
    """Remove the features from a column that the encoder does not read, and return them."""
    return {key: column.pop(key) for key in ASIDE if key in column}


def encode_tokenized(model: nn.Module, columns: list[dict[str, Any]], *, needed: bool = True) -> Batch:
    """Encode all tokenized columns in one pass where they preprocess alike, else one by one; the same values.

    On a CPU that pass encodes texts of similar length together, see
    :func:`~st_xling.losses.rows_by_length.encode_rows`.

    Args:
        model: A ``SentenceTransformer``, possibly wrapped for distributed training.
        columns: One feature dict a column. Entries of :data:`ASIDE` stay out of the encoder and are handed on.
        needed: Whether any loss reads the embeddings; otherwise padded columns are returned as they are.

    Returns:
        One dict a column, with the tokens' and the sentence's embeddings added to what came in.
    """
    # Wrappers for distributed training must see a pass, in which they prepare for the gradients.
    is_plain = isinstance(uncompiled(model), SentenceTransformer)
    if not needed and is_plain and all(_has_padded_tokens(column) for column in columns):
        return [dict(column) for column in columns]

    asides = [_take_asides(column) for column in columns]
    merged = merge_feature_batches(columns) if len(columns) > 1 else None
    if merged is None:  # the columns themselves: AdaptiveLayerLoss leaves layers' states in them for its next pass
        batch = [dict(model(features)) for features in columns]
    else:
        batch = _split_columns(encode_rows(model, merged), len(columns))
    for column, encoded, aside in zip(columns, batch, asides):
        column |= aside
        encoded |= aside
        encoded["sentence_embedding"] = at_least_float32(encoded["sentence_embedding"])
    return batch


def _has_padded_tokens(column: dict[str, Any]) -> bool:
    tokens = [column.get("input_ids"), column.get("attention_mask")]
    return all(isinstance(tensor, Tensor) and tensor.ndim == 2 for tensor in tokens)


def _split_columns(output: dict[str, Any], columns: int) -> Batch:
    """Split the output of a merged batch, whose columns follow each other, into one dict a column."""
    batch: Batch = [{} for _ in range(columns)]
    for key in _SHARED_OUTPUTS:
        if not isinstance(output.get(key), Tensor):
            continue
        for column, values in zip(batch, output[key].unflatten(0, (columns, -1)).unbind(0)):
            column[key] = values
    return batch


def at_least_float32(value: Tensor) -> Tensor:
    """Convert half precision to float32, in which losses are computed whatever the encoder is stored in.

    A cosine of 0.996 and one of 1 are neighbors in bfloat16.
    """
    return value.to(torch.promote_types(value.dtype, torch.float32))
