"""Layers side by side: how well each matches translations as it is, centred, and under a trained adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from st_xling.models.load import Pooling
from st_xling.models.view import Centre
from st_xling.training.adapter.fit import Fit, fit_adapter, languages_of
from st_xling.training.adapter.layer_vectors import Column
from st_xling.training.adapter.network import centred
from st_xling.training.adapter.recipe import AdapterRecipe
from st_xling.training.adapter.vector_cache import VectorCache

STAGES = ("untrained", "centred", "trained")


class Judge(Protocol):
    """An evaluator that can judge vectors, as ``PrecisionEvaluator``."""

    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]]
    languages: Mapping[str, tuple[str | None, str | None]]
    primary_measure: str
    at: tuple[int, ...]

    def judge(self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]: ...


@dataclass(frozen=True)
class LayerRow:
    """What is made of one or more columns: their mean.

    Attributes:
        label: ``"7"``; ``"all"``: the mean over all layers; ``"cls"``: the last layer's first token.
        columns: Averaged.
    """

    label: str
    columns: tuple[Column, ...]

    @property
    def layer(self) -> int | None:
        """The layer, where an encoder cut to it gives these vectors."""
        return self.columns[0].layer if len(self.columns) == 1 else None


@dataclass(frozen=True)
class LayerResult:
    """One row of the table.

    Attributes:
        row: What was trained on.
        fit: The adapter, its steps and losses.
        figures: Of each of ``STAGES`` the evaluator's metrics; empty without one.
        centred_by: What gave the figures of ``centred``: the better one of ``"joint"`` and ``"per_language"``.
    """

    row: LayerRow
    fit: Fit = field(repr=False)
    figures: dict[str, dict[str, float]]
    centred_by: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"layer": self.row.label, **self.figures, "centred_by": self.centred_by}


def sweep_rows(layers: int, pooling: Pooling = "mean") -> list[LayerRow]:
    """The rows of the paper's table 8: every layer, the mean over all of them, the last layer's CLS."""
    each = [LayerRow(str(layer), (Column(layer, pooling),)) for layer in range(1, layers + 1)]
    rows = [*each, LayerRow("all", tuple(row.columns[0] for row in each))]
    return rows if pooling == "cls" else [*rows, LayerRow("cls", (Column(layers, "cls"),))]


def try_layer(
    row: LayerRow, pairs: Any, recipe: AdapterRecipe, cache: VectorCache, judge: Judge | None = None
) -> LayerResult:
    """Train on one row of the table and judge it.

    Args:
        row: What to train on; the cache has it for the texts of ``pairs`` and of the judge.
        pairs: A ``Dataset`` with ``source`` and ``target``.
        recipe: Network, loss and training options.
        cache: Sentence vectors.
        judge: Judges the vectors of its pairs.
    """
    device = cache.model.device

    def vectors(texts: Sequence[str]) -> Tensor:
        columns = [cache.read(texts, column) for column in row.columns]
        return torch.from_numpy(np.mean(columns, axis=0, dtype=np.float32)).to(device)

    source, target = vectors(pairs["source"][:]), vectors(pairs["target"][:])
    fit = fit_adapter(source, target, recipe, pairs=pairs, description=f"{recipe.name}, layer {row.label}")
    if judge is None:
        return LayerResult(row, fit, {})
    sides = {name: (vectors(left), vectors(right)) for name, (left, right) in judge.pairs.items()}

    def judged(make: Callable[[Tensor, str | None], Tensor]) -> dict[str, float]:
        return judge.judge(
            {
                name: (_array(make(left, judge.languages[name][0])), _array(make(right, judge.languages[name][1])))
                for name, (left, right) in sides.items()
            }
        )

    # What an adapter has to beat is the better way to centre, whichever its own is.
    text, languages = torch.cat([source, target]), languages_of(pairs, len(source))
    ways: tuple[Centre, ...] = ("per_language", "joint")
    centrings = {way: judged(centred(None, text, languages, way)) for way in ways}
    best = max(centrings, key=lambda way: centrings[way][judge.primary_measure])
    stages = (judged(lambda side, _: side), centrings[best], judged(fit.fitted))
    return LayerResult(row, fit, dict(zip(STAGES, stages)), best)


def best_row(results: Sequence[LayerResult], measure: str) -> LayerResult:
    """The row of a single layer whose adapter is best by ``measure``; the lowest layer of equals."""
    single = [result for result in results if result.row.layer is not None and result.row.label != "cls"]
    return max(single, key=lambda result: result.figures["trained"][measure])


def layer_table(results: Sequence[LayerResult], at: Sequence[int] = (1, 5)) -> str:
    """Layer x P@N, mean of both directions, in percent: one line a row, without a final newline.

    The last column is how the vectors without an adapter were centred: by the better of both ways.
    """
    heads = [f"{stage} P@{n}" for stage in STAGES for n in at]
    lines = ["layer  " + "  ".join(heads) + "  centred by"]
    for result in results:
        values = [100 * result.figures[stage][f"mean_p@{n}"] for stage in STAGES for n in at]
        cells = "  ".join(f"{value:{len(head)}.1f}" for head, value in zip(heads, values))
        lines.append(f"{result.row.label:>5}  {cells}  {result.centred_by}")
    return "\n".join(lines)


def _array(vectors: Tensor) -> np.ndarray:
    return vectors.cpu().numpy()
