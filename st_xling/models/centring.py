"""Centring by language: each language's mean taken off, as modules of sentence-transformers, and text encoded so."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router
from torch import Tensor, nn

from st_xling.models.encode import Role, encode
from st_xling.models.view import rebuilt
from st_xling.utils.languages import UNKNOWN, match_language

logger = logging.getLogger(__name__)

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
        name = match_language(language or "", self.languages)
        mean = (self.joint if name is None else self.languages[name]).to(vectors)
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
    stages: dict[str, Any] = {JOINT: [modules[1]]}
    if isinstance(modules[1], Router):
        routes: Any = modules[1].sub_modules
        stages = {name: list(parts) for name, parts in routes.items()}
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


def language_routes(model: Any) -> list[str]:
    """Return the languages that a model centred by language has means of: tasks of ``encode``."""
    modules: list[Any] = list(model)[1:] if isinstance(model, nn.Sequential) else []
    names = {name for module in modules if isinstance(module, Router) for name in module.sub_modules} - {JOINT}
    return sorted(names)


def language_route(model: Any, language: str) -> str:
    """The task of ``encode`` for a language.

    Raises:
        ValueError: A language without a mean of its own, or a model without such means.
    """
    routes = language_routes(model)
    if (route := match_language(language, routes)) is None:
        raise ValueError(
            f"language must be one that the model has a mean of: got {language!r}, and it has "
            f"{', '.join(routes) or 'none, being not centred by language'}; leave it out."
        )
    return route


def in_language(model: SentenceTransformer, language: str) -> SentenceTransformer:
    """The model with a language's modules in the place of the routes that have one, see :func:`language_routes`."""
    modules: list[Any] = []
    for place, module in enumerate(model):
        routed = place and isinstance(module, Router) and language in module.sub_modules
        modules += module.sub_modules[language] if routed else [module]  # type: ignore[index]
    return rebuilt(model, modules)


def _minus(mean: Tensor) -> Dense:
    dim = len(mean)
    weight, bias = torch.eye(dim, dtype=mean.dtype), -mean.detach().cpu()
    return Dense(dim, dim, activation_function=nn.Identity(), init_weight=weight, init_bias=bias)


def _is_shift(module: Any) -> bool:
    if not isinstance(module, Dense) or module.linear.bias is None or module.in_features != module.out_features:
        return False
    weight = module.linear.weight
    return torch.equal(weight, torch.eye(len(weight), dtype=weight.dtype, device=weight.device))


def encode_once(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]],
    *,
    tasks: Sequence[str | None] | None = None,
    role: Role = "text",
    **options: Any,
) -> list[np.ndarray]:
    """Embeddings of each column's texts; equal texts have equal vectors, in whatever batch they would have fallen.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        columns: Lists of texts.
        tasks: Of each column: the route of the model that encodes it, see :func:`language_tasks`.
        role: ``"query"`` or ``"document"``: as ``encode_query`` or ``encode_document`` embed.
        options: Of :func:`~st_xling.models.encode.encode`.
    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    tasks = [None] * len(columns) if tasks is None else tasks
    encoded: dict[int, np.ndarray] = {}
    for task in dict.fromkeys(tasks):
        places = [place for place, own in enumerate(tasks) if own == task]
        texts = sorted({text for place in places for text in columns[place]})
        # By modules and not by a task of encode: encode_query and encode_document have tasks of their own.
        centred = model if task is None else in_language(model, task)
        embeddings = encode(centred, texts, role=role, **options)
        row = {text: index for index, text in enumerate(texts)}
        for place in places:
            encoded[place] = np.asarray(embeddings[[row[text] for text in columns[place]]])
    return [encoded[place] for place in range(len(columns))]


def language_tasks(model: Any, languages: Sequence[str | None]) -> tuple[list[str | None], bool]:
    """Routes of a model that is centred by language, for text in these languages.

    Returns:
        A task of ``encode`` for each language (``None``: the joint mean, or a model without such routes), and whether a
        language lacks a mean of its own in a model that has some; a warning names those.
    """
    routes = language_routes(model)
    tasks = [match_language(code or "", routes) for code in languages]
    joint = bool(routes) and None in tasks
    if joint:
        lacking = sorted({code or "no named language" for code, task in zip(languages, tasks) if task is None})
        logger.warning(
            "the model has means of %s: text of %s is centred by their joint mean; languages are named "
            "by the data, or by --source-language, --target-language and --language",
            ", ".join(routes),
            ", ".join(lacking),
        )
    return tasks, joint


def centred_by_text(
    model: SentenceTransformer, texts: Sequence[str], languages: Sequence[str], centre: Centre, **options: Any
) -> SentenceTransformer:
    """``model`` centred by the means of a text, instead of those that it was saved with.

    Args:
        model: An encoder; it stays as it is.
        texts: Of all languages.
        languages: Of each of ``texts``.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``.
        options: Of ``encode``.
    Raises:
        ValueError: Text whose language is not known, where each language is to have its mean.
    """
    bare = centred_model(model, None)
    if centre == "none":
        return bare
    if centre == "per_language" and UNKNOWN in languages:
        raise ValueError("a mean for each language needs the languages of the text: got und; name them (zh-vi=PATH).")
    (vectors,) = encode_once(bare, [texts], **options)
    return centred_model(bare, fit_centring(torch.from_numpy(vectors), languages, centre))
