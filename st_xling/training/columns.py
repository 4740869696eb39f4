"""Do the data have what the losses look at? Asked before training, not by its first step."""

from __future__ import annotations

from typing import Any

from torch import nn

from st_xling.data.text_columns import text_columns
from st_xling.losses import CachedLoss
from st_xling.losses.base import CrossLingualLoss
from st_xling.training.collator import LANGUAGE_SUFFIX

NOT_TEXT = ("label", "labels", "score", "scores", "dataset_name", "return_loss")
"""Columns that the host keeps for itself."""


def check_columns(loss: nn.Module, dataset: Any) -> None:
    """Raise ``ValueError`` unless the data set has the columns that every term of ``loss`` looks at.

    Args:
        loss: One of ours, a sum, or cached; what other losses need, they say themselves.
        dataset: A ``Dataset`` or ``IterableDataset``; a stream that does not know its columns passes.
    """
    inner = loss.loss if isinstance(loss, CachedLoss) else loss
    if not isinstance(inner, CrossLingualLoss) or not getattr(dataset, "features", None):
        return
    texts = text_columns(dataset, without=NOT_TEXT)
    shown = f"the data have {len(texts)}: {', '.join(texts) or 'none'}"
    total = inner.as_sum()
    for name, term in zip(total.names, total.term_list()):
        if term.columns_needed > len(texts):
            wanted = list(term.columns) if term.columns else list(range(term.columns_needed))
            missing = ", ".join(str(column) for column in wanted if column >= len(texts))
            raise ValueError(
                f"{name} looks at text columns {', '.join(map(str, wanted))} (counted from 0) and lacks {missing}: "
                f"{shown}; add the column, or choose others with 'columns:' in the recipe or .on(...)."
            )
        seen = texts if term.columns is None else [texts[column] for column in term.columns]
        told = [seen[column] + LANGUAGE_SUFFIX for column in term.loss.language_columns]
        lacking = [column for column in told if column not in dataset.features]
        if lacking:
            raise ValueError(
                f"{name} is told the language of {', '.join(told)} and lacks {', '.join(lacking)}: the data have "
                f"{', '.join(dataset.features)}; add the column, or leave out the loss's languages=."
            )
