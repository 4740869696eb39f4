"""The door every objective comes through: encode all columns once, then compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.merged_forward import merge_feature_batches
from torch import Tensor, nn

from st_xling.losses.across_processes import end_of_pass, sum_over_processes

if TYPE_CHECKING:
    from st_xling.losses.combined import CombinedLoss

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
        language_columns: Text columns, counted from 0, whose language it must be told.
        auto_options: Options that a recipe may leave to its data, by ``auto``; see :meth:`resolve_options`.
        reads_encoding: Whether it reads the columns' embeddings; if no term of a sum does, that pass is not made.
    """

    min_columns = 2
    language_columns: tuple[int, ...] = ()
    auto_options: tuple[str, ...] = ()
    reads_encoding = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @classmethod
    def resolve_options(
        cls, options: dict[str, Any], *, token_ids: Sequence[set[int]], languages: Sequence[Sequence[str]]
    ) -> dict[str, Any]:
        """A recipe's options with those that the data decide filled in, before the loss is built.

        Args:
            options: Of the constructor, by name.
            token_ids: Token ids that each text column uses.
            languages: Languages of each text column; empty where they are not known.
        """
        return options

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

    def check_columns(self, given: int) -> None:
        """Raise ``ValueError`` if the data set has too few text columns for this objective."""
        if given < self.min_columns:
            raise ValueError(
                f"{type(self).__name__} needs {self.min_columns} text columns: the data set gives {given}; "
                "add the missing column, or choose columns with .on(...)."
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Options as they were given, for the model card."""
        return {}

    @property
    def citation(self) -> str:
        """BibTeX of the paper that the objective comes from."""
        return ""

    def _as_sum(self) -> CombinedLoss:
        from st_xling.losses.combined import CombinedLoss, Term

        return CombinedLoss(self.model, [Term(self)])

    def __add__(self, other: CrossLingualLoss) -> CombinedLoss:
        return self._as_sum() + other

    def __radd__(self, other: object) -> CrossLingualLoss:
        if other == 0:  # sum([...]) starts from 0
            return self
        return NotImplemented

    def __mul__(self, weight: float) -> CombinedLoss:
        return self._as_sum() * weight

    __rmul__ = __mul__

    def on(self, *columns: int) -> CombinedLoss:
        """This objective over the given text columns, counted from 0, in the given order."""
        return self._as_sum().on(*columns)


class TokenLevelLoss(CrossLingualLoss):
    """Base of objectives that are a mean over tokens (or pairs), so that mini-batches of a batch can share it.

    A subclass implements :meth:`compute_parts`.
    """

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[Part]:
        """Sums and counts of the means that the objective averages, a fixed number of them; a count may be 0."""
        raise NotImplementedError

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> Tensor:
        return mean_of_parts(self.compute_parts(batch, labels))


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
        One dict a column, with the tokens' and the sentence's embeddings beside what was given.
    """
    if not needed and _can_do_without(model) and all(_is_padded(column) for column in columns):
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
    for given, encoded in zip(columns, batch):
        if "language" in given:
            encoded["language"] = given["language"]
    return batch


def _can_do_without(model: nn.Module) -> bool:
    """Wrappers for distributed training must see a pass, in which they prepare for the gradients."""
    return isinstance(getattr(model, "_orig_mod", model), SentenceTransformer)


def _is_padded(column: dict[str, Any]) -> bool:
    tokens = [column.get(key) for key in ("input_ids", "attention_mask")]
    return all(isinstance(part, Tensor) and part.ndim == 2 for part in tokens)
