"""A weighted sum of objectives over one encoder pass."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from st_xling.losses.base import Batch, CrossLingualLoss
from st_xling.losses.translation_language_modeling import TranslationLanguageModelingLoss


class Term(nn.Module):
    """One summand: an objective, its weight, the columns it looks at (``None``: all), and its name in the log."""

    def __init__(
        self,
        loss: CrossLingualLoss,
        weight: float = 1.0,
        columns: tuple[int, ...] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(
                f"a loss weight must be a finite number, 0 or more: got {weight} for {type(loss).__name__}."
            )
        if columns is not None:
            _check_positions(columns)
        if columns is not None and len(columns) < loss.min_columns:
            raise ValueError(
                f"{type(loss).__name__} needs {loss.min_columns} text columns: .on{columns} gives {len(columns)}."
            )
        self.loss, self.weight, self.columns = loss, float(weight), columns
        self.name = name or _name_of(type(loss).__name__)

    @property
    def columns_needed(self) -> int:
        return max(self.columns) + 1 if self.columns else self.loss.min_columns


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
        strangers = [type(term.loss).__name__ for term in terms if term.loss.model is not model]
        if strangers:
            raise ValueError(
                f"all terms of a sum must be built on the same model: {', '.join(strangers)} was built on another one."
            )
        self.terms = nn.ModuleList(terms)
        _share_heads([term.loss for term in terms])
        self.names = _distinct_names([term.name for term in terms])
        self.min_columns = max(term.columns_needed for term in terms)
        self.reads_encoding = any(term.loss.reads_encoding for term in terms)

    def check_columns(self, given: int) -> None:
        for name, term in zip(self.names, self.terms):
            if term.columns_needed > given:  # type: ignore[operator]
                raise ValueError(
                    f"{name} looks at text column {int(term.columns_needed) - 1} (counted from 0): "  # type: ignore[arg-type]
                    f"the data set gives {given}; add the column, or choose others with .on(...)."
                )

    def compute_loss(self, batch: Batch, labels: Tensor | None) -> dict[str, Tensor]:
        components: dict[str, Tensor] = {}
        for name, term in zip(self.names, self.terms):
            assert isinstance(term, Term)
            seen = batch if term.columns is None else [batch[column] for column in term.columns]
            value = term.loss.compute_loss(seen, labels)
            assert isinstance(value, Tensor)
            components[name] = term.weight * value
        return components

    def set_weight(self, name: str, weight: float) -> None:
        """Change the weight of the term called ``name``, which a schedule does before each step."""
        self._terms()[self.names.index(name)].weight = weight

    def __add__(self, other: CrossLingualLoss) -> CombinedLoss:
        if not isinstance(other, CrossLingualLoss):
            return NotImplemented
        return CombinedLoss(self.model, [*self._terms(), *other._as_sum()._terms()])

    def __mul__(self, weight: float) -> CombinedLoss:
        if not isinstance(weight, (int, float)):
            return NotImplemented
        return CombinedLoss(
            self.model, [Term(t.loss, t.weight * weight, t.columns, name=t.name) for t in self._terms()]
        )

    __rmul__ = __mul__

    def on(self, *columns: int) -> CombinedLoss:
        """The same sum over the given columns; terms that already chose columns choose among these."""
        _check_positions(columns)
        terms = []
        for term in self._terms():
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
            for name, term in zip(self.names, self._terms())
        }

    @property
    def citation(self) -> str:
        return "\n".join(dict.fromkeys(term.loss.citation.strip() for term in self._terms() if term.loss.citation))

    def _as_sum(self) -> CombinedLoss:
        return self

    def _terms(self) -> list[Term]:
        return [term for term in self.terms if isinstance(term, Term)]


def _share_heads(losses: Sequence[CrossLingualLoss]) -> None:
    first: dict[str, nn.Module] = {}
    for loss in losses:
        if isinstance(loss, TranslationLanguageModelingLoss):
            loss.head = first.setdefault(loss.head_start, loss.head)  # type: ignore[assignment]


def _check_positions(columns: tuple[int, ...]) -> None:
    if not columns or min(columns) < 0 or len(set(columns)) != len(columns):
        raise ValueError(f"columns are distinct positions counted from 0: got {columns}.")


def _name_of(class_name: str) -> str:
    """``TranslationRankingLoss`` → ``translation_ranking``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name.removesuffix("Loss")).lower()


def _distinct_names(names: Sequence[str]) -> list[str]:
    """The names as they came; a second ``translation_ranking`` is ``translation_ranking_2``."""
    distinct: list[str] = []
    for place, name in enumerate(names):
        taken = names[:place].count(name)
        distinct.append(name if taken == 0 else f"{name}_{taken + 1}")
    return distinct
