"""The pictures of a card that are drawn from saved results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from st_xling.evaluation.pictures import save_figure
from st_xling.evaluation.results import Row, SavedResults
from st_xling.hub.markdown import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = "pictures"
ACCURACY, SCORES = "accuracy_by_language.png", "score_histogram.png"

_BLUE, _ORANGE, _GREY, _RED = "#0072b2", "#e69f00", "#777777", "#d55e00"  # distinct for the color-blind
_DPI = 110
_MOST_ROWS = 120


def draw_pictures(folder: Path, evaluations: Sequence[tuple[str, SavedResults]]) -> None:
    """Draw what saved results can be drawn of; a picture of results that are no longer there is removed.

    Args:
        folder: Of the model.
        evaluations: Titles, with the results.
    """
    for name, draw in ((ACCURACY, _bars), (SCORES, _histograms)):
        path, figure = folder / FOLDER / name, draw(evaluations)
        if figure is None:
            path.unlink(missing_ok=True)
            continue
        save_figure(figure, path, dpi=_DPI)


def draw_scores(path: Path, scores: Sequence[float | None], threshold: float | None = None) -> None:
    """Draw a histogram of the scores of pairs, and the threshold that they passed."""
    values = np.array([score for score in scores if score is not None], dtype=float)
    counts, edges = np.histogram(values[np.isfinite(values)], bins=40)

    def panel(axes: Axes) -> None:
        axes.stairs(counts, edges, fill=True, color=_BLUE)
        if threshold is not None:
            axes.axvline(threshold, color="black", linewidth=1, linestyle="--", label=f"threshold {threshold:.3f}")
        axes.set_ylabel("pairs", fontsize=8)
        _finish(axes, "Scores of the pairs", "score", legend=int(threshold is not None))

    figure = _drawn([2.4], [panel])
    assert figure is not None
    save_figure(figure, path, dpi=_DPI)


def _bars(evaluations: Sequence[tuple[str, SavedResults]]) -> Figure | None:
    """A panel an evaluation, a bar a language and measure; those of one language alone say nothing as a picture."""
    panels, heights = [], []
    for title, result in evaluations:
        rows = [row for row in result.rows or () if not row.average][:_MOST_ROWS]
        columns = {place: column.name for place, column in enumerate(result.columns or ()) if column.picture}
        if rows and columns:
            row_inches = 0.11 + 0.13 * len(columns) if len(rows) <= 40 else 0.06 + 0.1 * len(columns)
            heights.append(1.0 + row_inches * len(rows))
            panels.append(partial(_bar_panel, title=title, rows=rows, columns=columns))
    return _drawn(heights, panels)


def _bar_panel(axes: Axes, *, title: str, rows: list[Row], columns: dict[int, str]) -> None:
    places, thick = np.arange(len(rows)), 0.8 / len(columns)
    for number, (column, color) in enumerate(zip(columns, (_BLUE, _ORANGE, _GREY, _RED) * len(columns))):
        values = [100 * (row.values[column] or 0.0) for row in rows]
        heights = places + (number - (len(columns) - 1) / 2) * thick
        axes.barh(heights, values, height=thick * 0.92, color=color, label=one_line(columns[column]))
        for height, value in zip(heights, values):
            axes.text(min(value, 100) + 0.8, height, f"{value:.1f}", va="center", fontsize=7, color="#333333")
    axes.set_yticks(places, [_drawable(row.label) for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(0, 107)
    axes.set_xticks(range(0, 101, 20))
    only = f": {next(iter(columns.values()))}" if len(columns) == 1 else ""
    _finish(axes, _drawable(f"{title}{only}"), "%", legend=len(columns) if len(columns) > 1 else 0)


def _histograms(evaluations: Sequence[tuple[str, SavedResults]]) -> Figure | None:
    """A panel a pair of languages: how candidate pairs score, and from where on they are kept."""
    panels = []
    for _, result in evaluations:
        thresholds = {row.label: row.arguments.get("threshold") for row in result.rows or ()}
        for pair, histogram in (result.figures.get("histograms") or {}).items():
            panels.append(partial(_score_panel, pair=pair, histogram=histogram, threshold=thresholds.get(pair)))
    return _drawn([2.1] * len(panels), panels)


def _score_panel(axes: Axes, *, pair: str, histogram: dict, threshold: float | None) -> None:
    correct, wrong = np.asarray(histogram["correct"]), np.asarray(histogram["wrong"])
    edges = np.linspace(histogram["low"], histogram["high"], len(correct) + 1)
    # On a logarithmic scale, since most candidates are no translations; side by side, since stacks would lie there.
    axes.stairs(wrong, edges, fill=True, color=_ORANGE, alpha=0.55, label="other candidate pairs")
    axes.stairs(correct, edges, color=_BLUE, linewidth=1.8, label="translations")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2 * max(2, correct.max(initial=1), wrong.max(initial=1)))
    if threshold is not None:
        axes.axvline(threshold, color="black", linewidth=1, linestyle="--", label=f"threshold {threshold:.3f}")
    axes.set_ylabel("pairs", fontsize=8)
    _finish(axes, _drawable(pair), "score", legend=3)


def _finish(axes: Axes, title: str, unit: str, *, legend: int) -> None:
    """Title, axes and a legend of so many columns, above the panel."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(unit, fontsize=8)
    axes.tick_params(labelsize=8)
    if legend:
        axes.legend(frameon=False, fontsize=8, ncols=legend, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)


def _drawn(heights: list[float], panels: Sequence[Callable[[Axes], None]]) -> Figure | None:
    """The panels one below the other; ``None`` without any."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not panels:
        return None
    figure = Figure(figsize=(6.8, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for place, panel in enumerate(panels):
        panel(figure.add_subplot(grid[place]))
    return figure


def _drawable(text: str) -> str:
    """As a picture can show it: the font has no Chinese, and a dollar sign would open a formula."""
    shown = "".join(sign if sign.isprintable() and ord(sign) < 0x2E80 else "?" for sign in one_line(text))
    return shown.replace("$", r"\$")[:40]
