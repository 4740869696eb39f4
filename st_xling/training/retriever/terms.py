"""A sum whose terms each encode their own columns, alone or all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from st_xling.losses.base import CombinedLoss


class TermByTermLoss(CombinedLoss):
    """A :class:`CombinedLoss` with an encoder pass for each term, over the term's columns.

    Long passages are then not the length to which parallel sentences are padded, and a term can be computed while the
    others' activations do not exist. Value and gradient are those of the single pass, but for dropout's draws.

    Attributes:
        only: Name of the term to compute; ``None``: all.
    """

    only: str | None = None

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> dict[str, Tensor]:
        columns = list(sentence_features)
        self.check_columns(len(columns))
        components: dict[str, Tensor] = {}
        for name, term in zip(self.names, self.term_list()):
            if self.only in (None, name):
                seen = columns if term.columns is None else [columns[column] for column in term.columns]
                components[name] = term.weight * term.loss([dict(column) for column in seen], labels)
        return components
