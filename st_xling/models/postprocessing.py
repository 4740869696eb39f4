"""Post-processing of sentence vectors as stock modules: centring, languages removed, whitening, fewer dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from torch import Tensor, nn

from st_xling.models.centring import Centre, Centring, centred_model, fit_centring
from st_xling.models.view import rebuilt


@dataclass(frozen=True)
class Projection:
    """A linear map, and unit length.

    Attributes:
        weight: *Shape:* ``(out, dim)``
        bias: *Shape:* ``(out,)``
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, vectors: Tensor) -> Tensor:
        """*Shape:* ``(texts, dim)`` → ``(texts, out)``"""
        return F.normalize(F.linear(vectors, self.weight.to(vectors), self.bias.to(vectors)), dim=-1)

    def modules(self) -> list[Any]:
        """The same as modules of sentence-transformers."""
        out, dim = self.weight.shape
        weight, bias = (part.detach().cpu().float().contiguous() for part in (self.weight, self.bias))
        return [Dense(dim, out, activation_function=nn.Identity(), init_weight=weight, init_bias=bias), Normalize()]


@dataclass(frozen=True)
class Postprocessing:
    """Unit length, then what was fitted, in order.

    Attributes:
        centring: ``None``: none.
        projections: What each does, in a few words → it.

    Example:
        >>> steps = Postprocessing(None, {"first half": Projection(torch.eye(2, 4), torch.zeros(2))})
        >>> steps.stages(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), None)
        {'first half': tensor([[0.6000, 0.8000]])}
    """

    centring: Centring | None
    projections: Mapping[str, Projection]

    def stages(self, vectors: Tensor, language: str | None) -> dict[str, Tensor]:
        """Vectors after each step, by its name; ``"centred"`` is the first where there is a centring.

        *Shape:* ``(texts, dim)`` → the same, or fewer dimensions
        """
        vectors = F.normalize(vectors, dim=-1)
        result = {}
        if self.centring is not None:
            vectors = result["centred"] = self.centring(vectors, language)
        for name, projection in self.projections.items():
            vectors = result[name] = projection(vectors)
        return result

    def apply(self, model: SentenceTransformer) -> SentenceTransformer:
        """``model`` with these modules at its end, in place of its own centring; the weights before are shared."""
        centred = centred_model(model, self.centring)
        last = [] if self.centring is not None else [Normalize()]
        for projection in self.projections.values():
            last += projection.modules()
        return rebuilt(centred, [*centred, *last])


@torch.no_grad()
def fit_postprocessing(
    vectors: Tensor,
    languages: Sequence[str],
    *,
    centre: Centre | Centring | None = "none",
    remove_languages: bool = False,
    whiten: bool = False,
    dim: int | None = None,
) -> Postprocessing:
    r"""Fit steps one after the other, each on what the one before leaves.

    - **centre**: unit vectors less a mean, see :class:`~st_xling.models.centring.Centring`.
    - **languages removed**: :math:`x - U U^T x`, with :math:`U` the directions in which the languages' means differ, by
      a singular value decomposition; needs no language when text is encoded.
    - **whitened**: :math:`\Lambda^{-1/2} V^T (x - \mu)`, with :math:`V \Lambda V^T` the covariance as Ledoit and Wolf
      shrink it; **dim** without it: :math:`V^T (x - \mu)` (PCA). Directions of most variance come first, and ``dim``
      of them stay.

    Args:
        vectors: Sentence embeddings of some text. *Shape:* ``(texts, dim)``
        languages: Of each of the texts.
        centre: ``"per_language"``, ``"joint"``, ``"none"``, or a centring that is there already.
        remove_languages: Whether to.
        whiten: Whether to.
        dim: Dimensions that stay; all by default.
    Raises:
        ValueError: Nothing to do, one language alone to be removed, more dimensions than there are, or fewer texts
            than that takes.
    Source:
        Huang et al. 2023 (mBERT-SF), section 4.2; Xie et al. 2022 (LSAR), "Discovering Low-rank Subspaces for
        Language-agnostic Multilingual Representations"; Su et al. 2021, "Whitening Sentence Representations for Better
        Semantics and Faster Retrieval"; Ledoit and Wolf 2004.
    Example:
        >>> vectors = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
        >>> steps = fit_postprocessing(vectors, ["de", "en"] * 20, centre="joint", whiten=True, dim=2)
        >>> {name: tuple(stage.shape) for name, stage in steps.stages(vectors, "de").items()}
        {'centred': (40, 4), 'whitened, 2 dimensions': (40, 2)}
    """
    width = vectors.shape[1]
    if centre in (None, "none") and dim is None and not (remove_languages or whiten):
        raise ValueError("nothing to do: ask for a centring, languages removed, whitening or fewer dimensions.")
    if dim is not None and not 1 <= dim <= width:
        raise ValueError(f"dim must be from 1 to {width}, the model's dimensions: got {dim}.")
    if whiten and len(vectors) <= width:
        raise ValueError(f"whitening {width} dimensions needs more texts than that: got {len(vectors)}; give more.")
    if dim is not None and len(vectors) <= dim:
        raise ValueError(f"choosing {dim} dimensions needs more texts than that: got {len(vectors)}; give more.")
    if remove_languages and len(set(languages)) < 2:
        raise ValueError(f"removing languages' subspace needs two or more: got {', '.join({*languages}) or 'none'}.")
    # A small model's covariances need float64.
    units = F.normalize(vectors.double(), dim=-1)
    centring = centre if isinstance(centre, Centring) or centre is None else fit_centring(units, languages, centre)
    rows = {code: [row for row, own in enumerate(languages) if own == code] for code in dict.fromkeys(languages)}
    if centring is not None:
        centring = Centring(centring.joint.float(), {code: mean.float() for code, mean in centring.languages.items()})
        for code, own in rows.items():
            units[own] = centring(units[own], code)
    projections = {}
    if remove_languages:
        means = torch.stack([units[own].mean(dim=0) for own in rows.values()])
        _, scales, directions = torch.linalg.svd(means - means.mean(dim=0), full_matrices=False)
        away = directions[scales > 1e-6 * scales[0].clamp(min=1e-6)]
        projections["languages removed"] = Projection(torch.eye(width) - (away.T @ away).float(), torch.zeros(width))
        units = projections["languages removed"](units)
    if whiten or dim is not None:
        from sklearn.covariance import ledoit_wolf

        mean = units.mean(dim=0)
        centred = units - mean
        covariance = centred.T @ centred / len(units)
        if whiten:
            covariance = torch.from_numpy(ledoit_wolf(centred.numpy(), assume_centered=True)[0])
        variances, vectors_of = torch.linalg.eigh(covariance)
        chosen = vectors_of.flip(1)[:, :dim].T
        if whiten:
            chosen = chosen / variances.flip(0)[:dim, None].clamp(min=1e-12).sqrt()
        name = ", ".join((["whitened"] if whiten else []) + ([f"{dim} dimensions"] if dim is not None else []))
        projections[name] = Projection(chosen.float(), -(chosen @ mean).float())
    return Postprocessing(centring, projections)
