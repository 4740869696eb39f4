"""Normalize sentence vectors: center them by language, remove languages, whiten, reduce dimensions.

All steps are saved as modules of sentence-transformers.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router
from torch import Tensor, nn

from st_xling.models.encoding import Role, count_truncated, encode, own_prompt, warn_of_truncated
from st_xling.models.view import rebuilt
from st_xling.utils.languages import UNKNOWN, match_language
from st_xling.utils.options import Center, check_choice

logger = logging.getLogger(__name__)


#: Route of text whose language is not named; ``encode`` without a task takes it.
JOINT = "joint"


@dataclass(frozen=True)
class Centering:
    """Unit length, minus a mean, unit length again.

    Languages differ by an offset that a mean of all cannot remove, so each may have a separate mean.

    Attributes:
        joint: Mean for text whose language is not named. *Shape:* ``(dim,)``
        languages: Mean of each language. *Shape of each:* ``(dim,)``; empty: ``joint`` for all.

    Source:
        VecMap (Artetxe et al. 2018), option ``unit center unit``, which centers each language's matrix by itself;
        Huang et al. 2023 (mBERT-SF), section 4.2.
    """

    joint: Tensor
    languages: Mapping[str, Tensor]

    def __call__(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Center by the language's mean, or by ``joint`` where it has none. *Shape:* ``(texts, dim)`` → the same"""
        name = match_language(language or "", self.languages)
        mean = self.joint if name is None else self.languages[name]
        return F.normalize(F.normalize(vectors, dim=-1) - mean.to(vectors), dim=-1)

    def modules(self) -> list[nn.Module]:
        """Modules of sentence-transformers that compute the same after a pooling.

        With means by language, the middle one is a ``Router``: ``encode(texts, task="zh")`` subtracts the mean of
        ``zh``; ``encode``, ``encode_query`` and ``encode_document`` subtract the joint one. The router raises an error
        for other tasks, which names those it has.
        """
        means = {JOINT: self.joint, **self.languages}
        routes = {name: [_dense(torch.eye(len(mean)), -mean)] for name, mean in means.items()}
        middle: nn.Module = routes[JOINT][0]
        if self.languages:
            roles = {(task, None): JOINT for task in ("query", "document")}
            middle = Router(routes, default_route=JOINT, route_mappings=roles)  # type: ignore[arg-type]
        return [Normalize(), middle, Normalize()]


@torch.no_grad()
def fit_centering(vectors: Tensor, languages: Sequence[str], center: Center = "per_language") -> Centering | None:
    """Compute means of unit vectors by language; in the joint mean, languages have equal weight.

    Args:
        vectors: Sentence embeddings, of any length. *Shape:* ``(texts, dim)``
        languages: Language of each text.
        center: ``"per_language"``, ``"joint"`` or ``"none"``, see :class:`Centering`.

    Returns:
        The centering; ``None`` for ``"none"``.

    Raises:
        ValueError: An unknown ``center``, or another number of languages than of texts.
    """
    check_choice("center", center, Center)
    if center == "none":
        return None
    rows_by_language = _rows_by_language(languages, len(vectors))
    units = F.normalize(vectors, dim=-1)
    means = {code: units[rows].mean(dim=0) for code, rows in rows_by_language.items()}
    joint = torch.stack([*means.values()]).mean(dim=0)
    if center == "joint":
        return Centering(joint, {})
    return Centering(joint, means)


def find_centering(model: SentenceTransformer) -> Centering | None:
    """Return the centering of a model that ends with the modules of :meth:`Centering.modules`, else ``None``."""
    modules: list[Any] = list(model)[-3:]
    if [isinstance(module, Normalize) for module in modules] != [True, False, True]:
        return None
    routes: dict[str, Any] = {JOINT: [modules[1]]}
    if isinstance(modules[1], Router):
        routes = {name: list(parts) for name, parts in modules[1].sub_modules.items()}  # type: ignore[call-overload]
    if JOINT not in routes or not all(len(parts) == 1 and _is_shift(parts[0]) for parts in routes.values()):
        return None
    means = {name: -parts[0].linear.bias.detach() for name, parts in routes.items()}
    return Centering(means.pop(JOINT), means)


def apply_centering(model: SentenceTransformer, centering: Centering | None) -> SentenceTransformer:
    """Replace the centering at the end of ``model``, if any, by another one; weights before it are shared.

    Args:
        model: An encoder, which is not changed.
        centering: The new centering; ``None`` for none.
    """
    modules = list(model)
    if find_centering(model) is not None:
        modules = modules[:-3]
    if centering is not None:
        modules += centering.modules()
    return rebuilt(model, modules)


def center_by_text(
    model: SentenceTransformer,
    texts: Sequence[str],
    languages: Sequence[str],
    center: Center,
    *,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> SentenceTransformer:
    """Center ``model`` by the means of a text, instead of those that it was saved with.

    Args:
        model: An encoder, which is not changed.
        texts: Texts of all languages.
        languages: Language of each text.
        center: ``"per_language"``, ``"joint"`` or ``"none"``.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding.

    Raises:
        ValueError: Text of an unknown language, where each language needs a mean.
    """
    bare = apply_centering(model, None)
    if center == "per_language" and UNKNOWN in languages:
        raise ValueError("a mean for each language needs the languages of the text: got und; name them (zh-vi=PATH).")
    # The means are of untruncated embeddings: a model cuts to truncate_dim after its last module.
    untruncated = rebuilt(bare, list(bare))
    untruncated.truncate_dim = None
    (vectors,) = encode_columns(untruncated, [texts], batch_size=batch_size, show_progress_bar=show_progress_bar)
    return apply_centering(bare, fit_centering(torch.from_numpy(vectors), languages, center))


def language_routes(model: Any) -> list[str]:
    """Return the languages that a model centered by language has means of: tasks of ``encode``."""
    modules: list[Any] = list(model)[1:] if isinstance(model, nn.Sequential) else []
    routes: set[str] = set()
    for module in modules:
        if isinstance(module, Router):
            routes.update(module.sub_modules)
    return sorted(routes - {JOINT})


def language_route(model: Any, language: str) -> str:
    """Return the task of ``encode`` for a language.

    Raises:
        ValueError: A language that has no mean, or a model without means by language.
    """
    routes = language_routes(model)
    route = match_language(language, routes)
    if route is None:
        available = ", ".join(routes) or "none, since it is not centered by language"
        raise ValueError(
            f"language must be one that the model has a mean of: got {language!r}, and it has {available}; "
            "leave it out."
        )
    return route


def in_language(model: SentenceTransformer, language: str) -> SentenceTransformer:
    """Replace routers that have a route for ``language`` by that route, see :func:`language_routes`."""
    modules: list[Any] = []
    for index, module in enumerate(model):
        # The first module may be a router between encoders: its routes are no languages.
        if index > 0 and isinstance(module, Router) and language in module.sub_modules:
            modules += module.sub_modules[language]  # type: ignore[arg-type]
        else:
            modules.append(module)
    return rebuilt(model, modules)


def language_tasks(model: Any, languages: Sequence[str | None]) -> tuple[list[str | None], bool]:
    """Choose routes of a model that is centered by language, for text in these languages.

    Returns:
        A task of ``encode`` for each language (``None``: the joint mean, or a model without such routes), and whether a
        language has no mean in a model that has some; a warning names those.
    """
    routes = language_routes(model)
    tasks = [match_language(code or "", routes) for code in languages]
    uses_joint_mean = bool(routes) and None in tasks
    if uses_joint_mean:
        lacking = sorted({code or "no named language" for code, task in zip(languages, tasks) if task is None})
        logger.warning(
            "the model has means of %s: text of %s is centered by their joint mean; languages are named by the data, "
            "or by --source-language, --target-language and --language",
            ", ".join(routes),
            ", ".join(lacking),
        )
    return tasks, uses_joint_mean


def encode_columns(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]],
    *,
    tasks: Sequence[str | None] | None = None,
    role: Role = "text",
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> list[np.ndarray]:
    """Encode columns of texts; equal texts are encoded once, so that they have equal vectors.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        columns: Lists of texts.
        tasks: Route of the model that encodes each column, see :func:`language_tasks`.
        role: ``"query"`` or ``"document"``: as ``encode_query`` or ``encode_document`` embed.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one, and to warn of texts that are cut.

    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    tasks = [None] * len(columns) if tasks is None else tasks
    texts_by_task: dict[str | None, set[str]] = {}
    for task, column in zip(tasks, columns):
        texts_by_task.setdefault(task, set()).update(column)

    embeddings: dict[str | None, np.ndarray] = {}
    row_of_text: dict[str | None, dict[str, int]] = {}
    for task, distinct in texts_by_task.items():
        texts = sorted(distinct)
        # By modules and not by a task of encode: encode_query and encode_document set a task themselves.
        routed = model if task is None else in_language(model, task)
        embeddings[task] = encode(routed, texts, role=role, batch_size=batch_size, show_progress_bar=show_progress_bar)
        if show_progress_bar:
            warn_of_truncated(count_truncated(model, texts, own_prompt(model, role)), len(texts), model)
        row_of_text[task] = {text: row for row, text in enumerate(texts)}

    encoded_columns = []
    for task, column in zip(tasks, columns):
        rows = [row_of_text[task][text] for text in column]
        encoded_columns.append(embeddings[task][rows])
    return encoded_columns


def encode_by_language(
    model: SentenceTransformer,
    columns: Sequence[Sequence[str]],
    languages: Sequence[str | None],
    *,
    role: Role = "text",
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> list[np.ndarray]:
    """Encode columns of texts, each by the mean of its language where the model is centered by language.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        columns: Lists of texts.
        languages: Language of each column; ``None``: not known.
        role: ``"query"`` or ``"document"``: as ``encode_query`` or ``encode_document`` embed.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one, and to warn of texts that are cut.

    Returns:
        One array a column. *Shape:* ``(texts, dim)``
    """
    tasks, _ = language_tasks(model, languages)
    return encode_columns(
        model, columns, tasks=tasks, role=role, batch_size=batch_size, show_progress_bar=show_progress_bar
    )


@dataclass(frozen=True)
class Postprocessing:
    """Unit length, then the fitted steps, in order.

    Attributes:
        centering: The first step, if any.
        projections: Linear maps to unit length, by a short description: modules of sentence-transformers.

    Example:
        >>> steps = fit_postprocessing(torch.eye(4), ["de", "en"] * 2, center="joint")
        >>> steps.stages(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), None)["centered"].norm()
        tensor(1.)
    """

    centering: Centering | None
    projections: Mapping[str, Sequence[nn.Module]]

    @torch.no_grad()
    def stages(self, vectors: Tensor, language: str | None) -> dict[str, Tensor]:
        """Return the vectors after each step, by its name; a centering is called ``"centered"``.

        *Shape:* ``(texts, dim)`` → the same, or fewer dimensions
        """
        vectors = F.normalize(vectors, dim=-1)
        stages = {}
        if self.centering is not None:
            vectors = self.centering(vectors, language)
            stages["centered"] = vectors
        for name, modules in self.projections.items():
            vectors = nn.Sequential(*modules)({"sentence_embedding": vectors})["sentence_embedding"]
            stages[name] = vectors
        return stages

    def apply(self, model: SentenceTransformer) -> SentenceTransformer:
        """Append the steps to ``model``, in place of its centering; weights before them are shared."""
        centered = apply_centering(model, self.centering)
        first = [Normalize()] if self.centering is None else []
        return rebuilt(centered, [*centered, *first, *itertools.chain(*self.projections.values())])


@torch.no_grad()
def fit_postprocessing(
    vectors: Tensor,
    languages: Sequence[str],
    *,
    center: Center | Centering | None = "none",
    remove_languages: bool = False,
    whiten: bool = False,
    dim: int | None = None,
) -> Postprocessing:
    r"""Fit steps one after the other, each on the output of the one before.

    - **center**: unit vectors minus a mean, see :class:`Centering`.
    - **languages removed**: :math:`x - U U^T x`, with :math:`U` the directions in which the languages' means differ, by
      a singular value decomposition; needs no language when text is encoded.
    - **whitened**: :math:`\Lambda^{-1/2} V^T (x - \mu)`, with :math:`V \Lambda V^T` the covariance as Ledoit and Wolf
      shrink it; **dim** without it: :math:`V^T (x - \mu)` (PCA). Directions of most variance come first, and the first
      ``dim`` are kept.

    Args:
        vectors: Sentence embeddings of some text. *Shape:* ``(texts, dim)``
        languages: Language of each text.
        center: ``"per_language"``, ``"joint"``, ``"none"``, or a fitted centering.
        remove_languages: Remove the languages' directions.
        whiten: Whiten.
        dim: Number of dimensions to keep; all by default.

    Raises:
        ValueError: Nothing to do, more dimensions than there are, too few texts, or another number of languages.
    Source:
        Huang et al. 2023 (mBERT-SF), section 4.2; Xie et al. 2022 (LSAR), "Discovering Low-rank Subspaces for
        Language-agnostic Multilingual Representations"; Su et al. 2021, "Whitening Sentence Representations for Better
        Semantics and Faster Retrieval"; Ledoit and Wolf 2004.

    Example:
        >>> vectors = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
        >>> steps = fit_postprocessing(vectors, ["de", "en"] * 20, center="joint", whiten=True, dim=2)
        >>> {name: tuple(stage.shape) for name, stage in steps.stages(vectors, "de").items()}
        {'centered': (40, 4), 'whitened, 2 dimensions': (40, 2)}
    """
    width = vectors.shape[1]
    if center in (None, "none") and dim is None and not (remove_languages or whiten):
        raise ValueError("nothing to do: ask for a centering, languages removed, whitening or fewer dimensions.")
    if dim is not None and not 1 <= dim <= width:
        raise ValueError(f"dim must be from 1 to {width}, the model's dimensions: got {dim}.")
    needed = width if whiten else dim or 0  # dim is at most the width
    if needed and len(vectors) <= needed:
        verb = "whitening" if whiten else "choosing"
        raise ValueError(f"{verb} {needed} dimensions needs more texts than that: got {len(vectors)}; give more.")
    # A small model's covariances need float64.
    units = F.normalize(vectors.double(), dim=-1)
    rows_by_language = _rows_by_language(languages, len(vectors))
    if isinstance(center, Centering) or center is None:
        centering = center
    else:
        centering = fit_centering(units, languages, center)
    if centering is not None:
        means = {code: mean.float() for code, mean in centering.languages.items()}
        centering = Centering(centering.joint.float(), means)
        for code, rows in rows_by_language.items():
            units[rows] = centering(units[rows], code)
    projections = {}
    if remove_languages:
        projection = _fit_language_removal(units, rows_by_language)
        projections["languages removed"] = [_dense(projection, torch.zeros(width)), Normalize()]
        units = F.normalize(units @ projection.double().T, dim=-1)
    if whiten or dim is not None:
        steps = []
        if whiten:
            steps.append("whitened")
        if dim is not None:
            steps.append(f"{dim} dimensions")
        mean = units.mean(dim=0)
        directions = _fit_directions(units, mean, whiten=whiten, dim=dim)
        projections[", ".join(steps)] = [_dense(directions, -(directions @ mean)), Normalize()]
    return Postprocessing(centering, projections)


def _fit_language_removal(units: Tensor, rows_by_language: Mapping[str, list[int]]) -> Tensor:
    """Fit the projection away from the directions in which the languages' means differ. *Shape:* ``(dim, dim)``"""
    centers = torch.stack([units[rows].mean(dim=0) for rows in rows_by_language.values()])
    _, scales, directions = torch.linalg.svd(centers - centers.mean(dim=0), full_matrices=False)
    removed = directions[scales > 1e-6 * scales[0].clamp(min=1e-6)]
    return torch.eye(units.shape[1]) - (removed.T @ removed).float()


def _fit_directions(units: Tensor, mean: Tensor, *, whiten: bool, dim: int | None) -> Tensor:
    """Fit the ``dim`` directions of most variance, scaled to variance 1 for whitening. *Shape:* ``(dim, width)``"""
    from sklearn.covariance import ledoit_wolf

    if whiten:
        covariance = torch.from_numpy(ledoit_wolf((units - mean).numpy(), assume_centered=True)[0])
    else:
        covariance = torch.cov(units.T, correction=0)
    variances, directions = torch.linalg.eigh(covariance)  # ascending
    chosen = directions.flip(1)[:, :dim].T
    if whiten:
        chosen = chosen / variances.flip(0)[:dim, None].clamp(min=1e-12).sqrt()
    return chosen


def _rows_by_language(languages: Sequence[str], total: int) -> dict[str, list[int]]:
    if len(languages) != total:
        raise ValueError(f"languages must have one for each text: got {len(languages)} for {total} vectors.")
    rows: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        rows.setdefault(language, []).append(row)
    return rows


def _dense(weight: Tensor, bias: Tensor) -> Dense:
    outputs, inputs = weight.shape
    weight = weight.detach().cpu().float().contiguous()
    bias = bias.detach().cpu().float().contiguous()
    return Dense(inputs, outputs, activation_function=nn.Identity(), init_weight=weight, init_bias=bias)


def _is_shift(module: Any) -> bool:
    """Return whether a module only adds a vector, as that of :meth:`Centering.modules`."""
    if not isinstance(module, Dense) or module.linear.bias is None or module.in_features != module.out_features:
        return False
    weight = module.linear.weight
    return torch.equal(weight, torch.eye(len(weight), dtype=weight.dtype, device=weight.device))
