"""The picture of dual alignment: token states of parallel sentences, flattened to two dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from st_xling.utils.io import atomic_writer

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def token_states(model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int = 64) -> Tensor:
    """Last-layer states of all tokens but the special ones.

    Args:
        model: An encoder with token embeddings.
        sentences: Texts of one language.
        batch_size: Texts encoded at a time.

    Returns:
        *Shape:* ``(tokens of all sentences, hidden)``, float32 on the CPU
    """
    rows = model.encode(list(sentences), output_value="token_embeddings", batch_size=batch_size)
    return torch.cat([row[1:-1].float().cpu() for row in rows])  # without CLS and SEP


def token_points(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Two sides' token states on the first two principal components of both together.

    Args:
        source: From :func:`token_states`. *Shape:* ``(tokens, hidden)``
        target: Of the translations. *Shape:* ``(other tokens, hidden)``

    Returns:
        *Shape:* ``(tokens, 2)`` and ``(other tokens, 2)``
    """
    points = principal_components(torch.cat([source, target]))
    return points[: len(source)], points[len(source) :]


def draw_token_states(
    panels: Mapping[str, tuple[Tensor, Tensor]], path: str | Path, *, languages: tuple[str, str] = ("source", "target")
) -> Path:
    """Draw one panel a model; both languages of a panel share their first two principal components.

    Args:
        panels: Title → token states of the two sides, from :func:`token_states`. *Shape:* ``(tokens, hidden)`` each
        path: PNG to write, in a folder that is made where it is missing.
        languages: Names of the two sides, for the legend.

    Returns:
        ``path``.

    Source:
        Li et al. 2023 (DAP), figure 1: 100 Tatoeba pairs, principal component analysis.
    """
    points = {title: token_points(*sides) for title, sides in panels.items()}
    return draw_token_points(points, path, languages=languages)


def draw_token_points(
    panels: Mapping[str, tuple[Tensor, Tensor]], path: str | Path, *, languages: tuple[str, str] = ("source", "target")
) -> Path:
    """The same of points, from :func:`token_points`. *Shape:* ``(tokens, 2)`` each"""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(panels), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (title, sides) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), place)
        for name, part, marker in zip(languages, sides, "o^"):
            axes.scatter(part[:, 0], part[:, 1], s=9, alpha=0.55, marker=marker, label=name, linewidths=0)
        axes.set_title(title)
        axes.set_xticks([])
        axes.set_yticks([])
        if place == 1:
            axes.legend(frameon=False, loc="best")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path) as stream:
        figure.savefig(stream, dpi=130, format="png", metadata={"Software": None})
    return path


def principal_components(states: Tensor) -> Tensor:
    """Coordinates on the first two principal components. *Shape:* ``(rows, dim)`` → ``(rows, 2)``"""
    centred = states.double() - states.double().mean(dim=0)
    _, directions = torch.linalg.eigh(centred.T @ centred)
    # eigh sorts ascending and leaves the sign open: fix it, so that pictures of one model agree.
    top = directions[:, -2:].flip(1)
    top = top * top.gather(0, top.abs().argmax(dim=0, keepdim=True)).sign()
    return centred @ top
