"""The base of every objective, and their weighted sums: encode all columns once, then compute."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import merge_feature_batches
from torch import Tensor, nn

from st_xling.losses.gather import end_of_pass, sum_over_processes

Batch = list[dict[str, Tensor]]
LossValue = Tensor | dict[str, Tensor]
Part = tuple[Tensor, Tensor]

_SHARED_OUTPUTS = ("input_ids", "attention_mask", "token_embeddings", "sentence_embedding")


class CrossLingualLoss(nn.Module):
    """Base of all objectives; a subclass implements :meth:`compute_loss`.

    Works alone in ``SentenceTransformer.fit([(loader, loss)])`` and in the trainer, and adds up with others over the
    same encoder pass: ``a + b``, ``0.1 * a``, ``a.on(0, 1)`` (see :class:`CombinedLoss`).

    In several processes (``accelerate launch``, ``torchrun``) the batches of all count as one: value and gradients are
    those of one process with all rows, in-batch negatives and means over tokens included. Heads that a loss owns,
    which no distributed wrapper sees, have their gradients averaged at the end of the backward pass.

    Args:
        model: The ``SentenceTransformer`` being trained.

    Attributes:
        min_columns: Text columns that the objective needs.
        language_columns: Text columns, counted from 0, whose language it needs to know.
        reads_encoding: Whether it reads the columns' embeddings; if no term of a sum does, that pass is skipped.
        options: Names of its options that :meth:`get_config_dict` reports, each an attribute of the same name.
        citation: BibTeX of the paper that the objective comes from.
        shared_head: Terms of a sum that name the same one train one ``head``; ``None``: a head of their own, or none.

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
    language_columns: tuple[int, ...] = ()
    reads_encoding = True
    options: ClassVar[tuple[str, ...]] = ()
    citation: str = ""
    shared_head: str | None = None

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    auto_options: tuple[str, ...] = ()
    """Options that a recipe may leave to its data, as ``auto``."""

    @classmethod
    def resolve_options(
        cls,
        options: Mapping[str, Any],
        *,
        token_ids: Sequence[set[int]] = (),
        languages: Sequence[Sequence[str]] = (),
    ) -> dict[str, Any]:
        """A recipe's options as the constructor takes them: what depends on the data, such as ``auto``, is filled in.

        Args:
            options: As the recipe gives them.
            token_ids: Token ids that each text column uses.
            languages: Languages of each text column.
        """
        return dict(options)

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> LossValue:
        """Encode the columns in one pass and compute the loss.

        Args:
            sentence_features: One tokenised column a text column; each ``input_ids`` of *Shape:* ``(batch, tokens)``
            labels: Whatever the objective reads from the data set's label column. *Shape:* ``(batch,)``

        Returns:
            The loss in nats, *Shape:* ``()``; a :class:`CombinedLoss` returns a dict of weighted components.
        """
        columns = list(sentence_features)
        self.check_columns(len(columns))
        batch = encode_columns(self.model, columns, needed=self.reads_encoding)
        value = self.compute_loss(batch, labels)
        if isinstance(value, Tensor):
            return end_of_pass([value], batch, self, self.model)[0]
        return dict(zip(value, end_of_pass(list(value.values()), batch, self, self.model)))

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> LossValue:
        """The objective on encoded columns.

        Args:
            batch: One dict a column: ``input_ids`` and ``attention_mask`` ``(batch, tokens)``, ``token_embeddings``
                ``(batch, tokens, hidden)``, ``sentence_embedding`` ``(batch, dim)``, and ``language`` ``(batch,)``
                where the data set names languages. No embeddings without ``reads_encoding``.
            labels: *Shape:* ``(batch,)``, or ``None``.
        """
        raise NotImplementedError

    def check_columns(self, count: int) -> None:
        """Raise ``ValueError`` if the data set has too few text columns for this objective."""
        if count < self.min_columns:
            raise ValueError(
                f"{type(self).__name__} needs {self.min_columns} text columns: the data set gives {count}; "
                "add the missing column, or choose columns with .on(...)."
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Options as they were set, for the model card."""
        return {name: getattr(self, name) for name in self.options}

    def as_sum(self) -> CombinedLoss:
        """This objective as a sum of one term; a sum is returned as it is."""
        return CombinedLoss(self.model, [Term(self)])

    def __add__(self, other: CrossLingualLoss) -> CombinedLoss:
        return self.as_sum() + other

    def __radd__(self, other: object) -> CrossLingualLoss:
        if other == 0:  # sum([...]) starts from 0
            return self
        return NotImplemented

    def __mul__(self, weight: float) -> CombinedLoss:
        return self.as_sum() * weight

    __rmul__ = __mul__

    def on(self, *columns: int) -> CombinedLoss:
        """This objective over these text columns, counted from 0, in this order."""
        return self.as_sum().on(*columns)


class TokenLevelLoss(CrossLingualLoss):
    """Base of objectives that are a mean over tokens (or pairs), so that mini-batches of a batch can share it.

    A subclass implements :meth:`compute_parts`.
    """

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[Part]:
        """Sums and counts of the means that the objective averages, a fixed number of them; a count may be 0."""
        raise NotImplementedError

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        return mean_of_parts(self.compute_parts(batch, labels))


class Term(nn.Module):
    """One summand: an objective, its weight, the columns it reads (``None``: all), and its name in the log."""

    def __init__(
        self,
        loss: CrossLingualLoss,
        weight: float = 1.0,
        columns: tuple[int, ...] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__()
        kind = type(loss).__name__
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"a loss weight must be a finite number, 0 or more: got {weight} for {kind}.")
        if columns is not None:
            _check_positions(columns)
            if len(columns) < loss.min_columns:
                raise ValueError(f"{kind} needs {loss.min_columns} text columns: .on{columns} gives {len(columns)}.")
        self.loss, self.weight, self.columns = loss, float(weight), columns
        # TranslationRankingLoss → translation_ranking
        self.name = name or re.sub(r"(?<!^)(?=[A-Z])", "_", kind.removesuffix("Loss")).lower()

    @property
    def columns_needed(self) -> int:
        return max(self.columns) + 1 if self.columns else self.loss.min_columns

    def select(self, batch: Batch) -> Batch:
        """The columns that the objective reads, in its order."""
        return batch if self.columns is None else [batch[column] for column in self.columns]


class CombinedLoss(CrossLingualLoss):
    """Several objectives that share the encoder's single pass; returns a dict of weighted components.

    The trainer adds the components up and logs them one by one. Made by ``+``, ``*`` and ``.on``:

        >>> loss = TranslationRankingLoss(model) + 0.5 * RepresentationTranslationLoss(model)  # doctest: +SKIP

    Its MLM and TLM terms share one vocabulary head, that of the first of them, as far as their ``head`` options agree.

    Args:
        model: The ``SentenceTransformer`` that every term trains.
        terms: The summands, in order.

    Raises:
        ValueError: Terms built on different models; a weight that is negative or not finite; columns that repeat or
            lie outside the data set.
    """

    def __init__(self, model: nn.Module, terms: Sequence[Term]) -> None:
        super().__init__(model)
        others = [type(term.loss).__name__ for term in terms if term.loss.model is not model]
        if others:
            raise ValueError(
                f"all terms of a sum must be built on the same model: {', '.join(others)} was built on another one."
            )
        self.terms = nn.ModuleList(terms)
        heads: dict[str, nn.Module] = {}
        for term in terms:
            if (start := term.loss.shared_head) is not None:
                term.loss.head = heads.setdefault(start, term.loss.head)  # type: ignore[arg-type]
        # A second translation_ranking is translation_ranking_2.
        names = [term.name for term in terms]
        earlier = [names[:place].count(name) for place, name in enumerate(names)]
        self.names = [f"{name}_{count + 1}" if count else name for name, count in zip(names, earlier)]
        self.min_columns = max(term.columns_needed for term in terms)
        self.reads_encoding = any(term.loss.reads_encoding for term in terms)

    def check_columns(self, count: int) -> None:
        for name, term in zip(self.names, self.term_list()):
            if term.columns_needed > count:
                raise ValueError(
                    f"{name} looks at text column {term.columns_needed - 1} (counted from 0): "
                    f"the data set gives {count}; add the column, or choose others with .on(...)."
                )

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> dict[str, Tensor]:
        components: dict[str, Tensor] = {}
        for name, term in zip(self.names, self.term_list()):
            value = term.loss.compute_loss(term.select(batch), labels)
            assert isinstance(value, Tensor)
            components[name] = term.weight * value
        return components

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of the term called ``name``, which a schedule does before each step."""
        self.term_list()[self.names.index(name)].weight = weight

    def term_list(self) -> list[Term]:
        """The summands, in order."""
        return [term for term in self.terms if isinstance(term, Term)]

    def as_sum(self) -> CombinedLoss:
        return self

    def __add__(self, other: CrossLingualLoss) -> CombinedLoss:
        if not isinstance(other, CrossLingualLoss):
            return NotImplemented
        return CombinedLoss(self.model, [*self.term_list(), *other.as_sum().term_list()])

    def __mul__(self, weight: float) -> CombinedLoss:
        if not isinstance(weight, (int, float)):
            return NotImplemented
        terms = [Term(term.loss, term.weight * weight, term.columns, name=term.name) for term in self.term_list()]
        return CombinedLoss(self.model, terms)

    __rmul__ = __mul__

    def on(self, *columns: int) -> CombinedLoss:
        """The same sum over these columns; terms that already chose columns choose among these."""
        _check_positions(columns)
        terms = []
        for term in self.term_list():
            if term.columns is not None and max(term.columns) >= len(columns):
                raise ValueError(
                    f"{term.name} looks at column {max(term.columns)} (counted from 0) of those that .on chooses: "
                    f".on{columns} gives {len(columns)}."
                )
            chosen = columns if term.columns is None else tuple(columns[column] for column in term.columns)
            terms.append(Term(term.loss, term.weight, chosen, name=term.name))
        return CombinedLoss(self.model, terms)

    def get_config_dict(self) -> dict[str, Any]:
        return {
            name: {"weight": term.weight, "columns": term.columns, **term.loss.get_config_dict()}
            for name, term in zip(self.names, self.term_list())
        }

    @property
    def citation(self) -> str:  # type: ignore[override]
        citations = [term.loss.citation.strip() for term in self.term_list()]
        return "\n".join(dict.fromkeys(citation for citation in citations if citation))


def mean_of_parts(parts: list[Part]) -> Tensor:
    """The average, over the parts that counted anything, of sum by count; both are summed over all processes first."""
    totals = sum_over_processes(torch.stack([total for total, _ in parts]))
    counts = sum_over_processes(torch.stack([count for _, count in parts]))
    return (totals / counts.clamp(min=1)).sum() / (counts > 0).sum().clamp(min=1)


def encode_columns(model: nn.Module, columns: list[dict[str, Any]], *, needed: bool = True) -> Batch:
    """Encode all columns in one pass where they preprocess alike, else one by one; same values either way.

    Args:
        model: A ``SentenceTransformer``, possibly wrapped for distributed training.
        columns: One feature dict a column. A ``language`` entry stays out of the encoder and is handed on.
        needed: Whether the embeddings are read by anybody; otherwise padded columns come back as they are.

    Returns:
        One dict a column, with the tokens' and the sentence's embeddings beside what came in.
    """
    # Wrappers for distributed training must see a pass, in which they prepare for the gradients.
    unwrapped = isinstance(getattr(model, "_orig_mod", model), SentenceTransformer)
    if not needed and unwrapped and all(_is_padded(column) for column in columns):
        return [dict(column) for column in columns]
    texts = [{key: value for key, value in column.items() if key != "language"} for column in columns]
    merged = merge_feature_batches(texts) if len(texts) > 1 else None
    if merged is None:
        batch = [dict(model(features)) for features in texts]
    else:
        output = model(merged)
        shared = [key for key in _SHARED_OUTPUTS if isinstance(output.get(key), Tensor)]
        rows = [output[key].unflatten(0, (len(texts), -1)).unbind(0) for key in shared]
        batch = [dict(zip(shared, values)) for values in zip(*rows)]
    for column, encoded in zip(columns, batch):
        if "language" in column:
            encoded["language"] = column["language"]
    return batch


def _is_padded(column: dict[str, Any]) -> bool:
    tokens = [column.get(key) for key in ("input_ids", "attention_mask")]
    return all(isinstance(part, Tensor) and part.ndim == 2 for part in tokens)


def _check_positions(columns: tuple[int, ...]) -> None:
    if not columns or min(columns) < 0 or len(set(columns)) != len(columns):
        raise ValueError(f"columns are distinct positions counted from 0: got {columns}.")
