"""Options of adapters; without torch, so that the command line can be checked at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from st_xling.utils.options import check_installed, check_number, check_option


@dataclass(frozen=True)
class LoraOptions:
    """Low-rank adapters next to frozen weights: ``W x + alpha / rank · B A x``, of which ``A`` and ``B`` are trained.

    Attributes:
        rank: Rows of ``A``.
        alpha: Scale of the adapters, as a multiple of ``1 / rank``.
        dropout: Dropout of the adapters' input, in [0, 1).
        target_modules: Names of the layers to adapt (last parts of dotted names), or ``"all-linear"``: every linear
            layer of attention and feed-forward, for BERT and XLM-R ``query``, ``key``, ``value`` and ``dense``.
        merge: Fold the adapters into the weights at the end; otherwise they are published as adapters.

    Raises:
        ValueError: A value out of its range, or the extra ``lora`` is not installed.

    Source:
        Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models; all linear layers: Dettmers et al. 2023.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.05
    target_modules: str | Sequence[str] = "all-linear"
    merge: bool = True

    def __post_init__(self) -> None:
        check_installed("peft", "LoRA", extra="lora")
        check_option(self.rank, int, "lora.rank")
        check_number("lora.rank", self.rank, least=1)
        check_option(self.alpha, float | int, "lora.alpha")
        check_number("lora.alpha", self.alpha)
        check_option(self.dropout, float | int, "lora.dropout")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"lora.dropout must be in [0, 1): got {self.dropout}.")
