"""The adapter over sentence vectors: one or two layers while training, stock modules once it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Dense, Normalize
from torch import Tensor, nn

from st_xling.models.view import Centre, Centring, fit_centring

Network = Literal["linear", "tanh", "relu", "two-layer"]

_ACTIVATIONS: dict[str, tuple[type[nn.Module], ...]] = {
    "linear": (nn.Identity,),
    "tanh": (nn.Tanh,),
    "relu": (nn.ReLU,),
    "two-layer": (nn.Tanh, nn.Identity),
}
_IN = "sentence_embedding"


def check_network(network: str, dropout: float) -> None:
    """Raise ``ValueError`` for options that :class:`Adapter` does not know."""
    if network not in get_args(Network):
        raise ValueError(f"network must be one of {get_args(Network)}: got {network!r}.")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1): got {dropout}; the paper's is 0.2.")


class Adapter(nn.Module):
    """A siamese layer: both languages' sentence vectors go through the same weights.

    Args:
        dim: Width of the vectors, in and out.
        network: ``"linear"`` (the paper's best), ``"tanh"``, ``"relu"``, or ``"two-layer"``: tanh, then linear.
        dropout: Of the outputs of each layer, while training.

    Source:
        Huang et al. 2023 (mBERT-SF), equation 1 and figure 5; table 6 compares the networks.
    """

    def __init__(self, dim: int, *, network: Network = "linear", dropout: float = 0.2) -> None:
        super().__init__()
        check_network(network, dropout)
        # The host's modules from the start: what is trained is what is published.
        self.stages = nn.ModuleList(Dense(dim, dim, activation_function=kind()) for kind in _ACTIVATIONS[network])
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """*Shape:* ``(batch, dim)`` → the same"""
        for stage in self.stages:
            vectors = self.dropout(stage({_IN: vectors})[_IN])
        return vectors


@dataclass(frozen=True)
class FittedAdapter:
    """An adapter, and the means of its unit vectors over the training text.

    Attributes:
        adapter: Trained, without dropout; ``None``: the vectors as they are, to be centred alone.
        centring: ``None``: vectors are brought to unit length alone.
    """

    adapter: Adapter | None
    centring: Centring | None

    @torch.no_grad()
    def __call__(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Adapt, normalise, centre, normalise. *Shape:* ``(texts, dim)`` → the same, of length 1

        Args:
            vectors: Sentence vectors of one language.
            language: Centred by its mean; by the joint one where it has none.
        """
        adapted = vectors if self.adapter is None else self.adapter(vectors)
        return F.normalize(adapted, dim=-1) if self.centring is None else self.centring(adapted, language)

    def stock_modules(self) -> list[Any]:
        """The same as modules of sentence-transformers, to follow an encoder's pooling."""
        stages = [] if self.adapter is None else list(self.adapter.stages)
        return [*stages, *([Normalize()] if self.centring is None else self.centring.modules())]


@torch.no_grad()
def centred(
    adapter: Adapter | None, vectors: Tensor, languages: Sequence[str], centre: Centre = "per_language"
) -> FittedAdapter:
    """The adapter with the means of what it makes of the training text, see :func:`fit_centring`.

    Args:
        adapter: Trained; ``None``: the identity.
        vectors: Sentence vectors of the training text. *Shape:* ``(texts, dim)``
        languages: Of each of its texts.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``.
    """
    if adapter is not None:
        adapter.eval()
    return FittedAdapter(adapter, fit_centring(vectors if adapter is None else adapter(vectors), languages, centre))
