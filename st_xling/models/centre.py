"""Centring of sentence embeddings: unit length, less a mean, unit length; and the stock modules that do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router
from torch import Tensor, nn

from st_xling.models.view import rebuilt
from st_xling.utils.languages import canonical_language

Centre = Literal["per_language", "joint", "none"]

JOINT = "joint"
"""Route of text whose language is not named; ``encode`` without a task takes it."""


@dataclass(frozen=True)
class Centring:
    """Unit length, less a mean, unit length again.

    Languages differ by an offset that a mean of all cannot remove, so each may have a mean of its own.

    Attributes:
        joint: For text whose language is not named. *Shape:* ``(dim,)``
        languages: Language → its own mean. *Shape of each:* ``(dim,)``; empty: ``joint`` for all.

    Source:
        VecMap (Artetxe et al. 2018), option ``unit center unit``, which centres each language's matrix by itself;
        Huang et al. 2023 (mBERT-SF), section 4.2.
    """

    joint: Tensor
    languages: Mapping[str, Tensor]

    def __call__(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Centre by the language's mean, or by ``joint`` where it has none. *Shape:* ``(texts, dim)`` → the same"""
        own = {canonical_language(name): mean for name, mean in self.languages.items()}
        mean = own.get(canonical_language(language or ""), self.joint).to(vectors)
        return F.normalize(F.normalize(vectors, dim=-1) - mean, dim=-1)

    def modules(self) -> list[Any]:
        """The same as modules of sentence-transformers, to follow a pooling.

        With means by language their middle is a ``Router``: ``encode(texts, task="zh")`` takes the mean of ``zh``;
        ``encode``, ``encode_query`` and ``encode_document`` take the joint one; a task that is no language of it is an
        error of the router's, which names those it has.
        """
        middle: Any = _minus(self.joint)
        if self.languages:
            routes = {JOINT: [middle], **{language: [_minus(mean)] for language, mean in self.languages.items()}}
            roles = {(task, None): JOINT for task in ("query", "document")}
            middle = Router(routes, default_route=JOINT, route_mappings=roles)  # type: ignore[arg-type]
        return [Normalize(), middle, Normalize()]


@torch.no_grad()
def fit_centring(vectors: Tensor, languages: Sequence[str], centre: Centre = "per_language") -> Centring | None:
    """Means of unit vectors, by language; the joint mean has each language count alike.

    Args:
        vectors: Sentence embeddings of some text, of any length. *Shape:* ``(texts, dim)``
        languages: Of each of the texts.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``, see :class:`Centring`.

    Returns:
        ``None`` for ``"none"``.

    Raises:
        ValueError: No text, or an unknown ``centre``.
    """
    check_centre(centre)
    if centre == "none":
        return None
    if not len(vectors) or len(vectors) != len(languages):
        raise ValueError(f"means need text with its languages: got {len(vectors)} vectors, {len(languages)} languages.")
    rows: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        rows.setdefault(language, []).append(row)
    units = F.normalize(vectors, dim=-1)
    means = {language: units[own].mean(dim=0) for language, own in rows.items()}
    return Centring(torch.stack([*means.values()]).mean(dim=0), means if centre == "per_language" else {})


def check_centre(centre: str) -> None:
    """Raise ``ValueError`` for what is no way to centre."""
    if centre not in get_args(Centre):
        raise ValueError(f"centre must be one of {', '.join(get_args(Centre))}: got {centre!r}.")


def saved_centring(model: SentenceTransformer) -> Centring | None:
    """The centring of a model that ends with the modules of :meth:`Centring.modules`; of others ``None``."""
    modules: list[Any] = list(model)[-3:]
    if len(modules) < 3 or not (isinstance(modules[0], Normalize) and isinstance(modules[2], Normalize)):
        return None
    routes = {name: list(parts) for name, parts in modules[1].sub_modules.items()} if _routes(modules[1]) else {}
    stages = routes or {JOINT: [modules[1]]}
    if JOINT not in stages or not all(len(parts) == 1 and _is_shift(parts[0]) for parts in stages.values()):
        return None
    means = {name: -parts[0].linear.bias.detach() for name, parts in stages.items()}
    return Centring(means.pop(JOINT), means)


def centred_model(model: SentenceTransformer, centring: Centring | None) -> SentenceTransformer:
    """``model`` with this centring for the one it ends with, if any; the weights before it are shared.

    Args:
        model: An encoder; it stays as it is.
        centring: ``None``: no centring.
    """
    before = list(model)[: -3 if saved_centring(model) is not None else None]
    return rebuilt(model, [*before, *([] if centring is None else centring.modules())])


def language_routes(model: Any) -> dict[str, str]:
    """Languages (as ``canonical_language`` has them) → the task of ``encode``, of a model centred by language."""
    modules: list[Any] = list(model)[1:] if isinstance(model, nn.Sequential) else []
    names = {name for module in modules if _routes(module) for name in module.sub_modules} - {JOINT}
    return {canonical_language(name): name for name in sorted(names)}


def _minus(mean: Tensor) -> Dense:
    dim = len(mean)
    weight, bias = torch.eye(dim, dtype=mean.dtype), -mean.detach().cpu()
    return Dense(dim, dim, activation_function=nn.Identity(), init_weight=weight, init_bias=bias)


def _is_shift(module: Any) -> bool:
    if not isinstance(module, Dense) or module.linear.bias is None or module.in_features != module.out_features:
        return False
    weight = module.linear.weight
    return torch.equal(weight, torch.eye(len(weight), dtype=weight.dtype, device=weight.device))


def _routes(module: Any) -> bool:
    return isinstance(module, Router)
