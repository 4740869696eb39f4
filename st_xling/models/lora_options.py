"""What a recipe says of its adapters, under ``training.lora``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ALL_LINEAR = "all-linear"


@dataclass(frozen=True)
class LoraOptions:
    """Low-rank adapters beside frozen weights: ``W x + alpha / rank · B A x``, of which ``A`` and ``B`` are trained.

    Attributes:
        rank: Rows of ``A``.
        alpha: Scale of the adapters, as a multiple of ``1 / rank``.
        dropout: Of the adapters' input, in [0, 1).
        target_modules: Names of the layers to adapt (ends of dotted names), or ``"all-linear"``: every linear layer of
            attention and feed-forward, which for BERT and XLM-R are ``query``, ``key``, ``value`` and ``dense``.
        merge: Fold the adapters into the weights at the end; otherwise they are published as adapters.

    Source:
        Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models; all linear layers: Dettmers et al. 2023.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.05
    target_modules: str | Sequence[str] = ALL_LINEAR
    merge: bool = True


def check_lora(options: LoraOptions) -> LoraOptions:
    """The options as they came, or ``ValueError`` with the one that is out of range."""
    targets = options.target_modules
    named = isinstance(targets, (list, tuple)) and bool(targets) and all(isinstance(name, str) for name in targets)
    wrong = {
        "rank": options.rank < 1,
        "alpha": not 0 < options.alpha < math.inf,
        "dropout": not 0 <= options.dropout < 1,
        "target_modules": not (targets == ALL_LINEAR or named),
    }
    for key, bad in wrong.items():
        if bad:
            hint = f" ('{ALL_LINEAR}', or a list such as [query, value])" if key == "target_modules" else ""
            raise ValueError(f"training.lora.{key} is out of range{hint}: got {getattr(options, key)!r}.")
    return options
