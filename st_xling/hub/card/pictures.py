"""The pictures of a card: which there are, and those that are drawn from kept figures."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from st_xling.hub.card.escaping import one_line
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.judged import Judged
from st_xling.utils.io import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = "pictures"
ACCURACY, SCORES, TOKENS = "accuracy_by_language.png", "score_histogram.png", "token_states.png"

_BLUE, _ORANGE, _GREY, _RED = "#0072b2", "#e69f00", "#777777", "#d55e00"  # told apart by the colour-blind
_DPI = 110
_MOST_ROWS = 120


def picture(facts: CardFacts, name: str, what: str) -> list[str]:
    """The Markdown of a picture, if it is there."""
    return [f"![{what}]({FOLDER}/{name})"] if (facts.folder / FOLDER / name).is_file() else []


def draw_pictures(facts: CardFacts) -> list[Path]:
    """Draw what kept figures can be drawn of; a picture of figures that are no longer there is removed."""
    drawn = []
    for name, draw in ((ACCURACY, _bars), (SCORES, _histograms)):
        path, figure = facts.folder / FOLDER / name, draw(facts)
        if figure is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(exist_ok=True)
        stream = io.BytesIO()
        figure.savefig(stream, dpi=_DPI, format="png", metadata={"Software": None})
        write_atomic(path, stream.getvalue())
        drawn.append(path)
    return drawn


def _bars(facts: CardFacts) -> Figure | None:
    """A panel an evaluation, a bar a language and measure; those of one language alone say nothing as a picture."""
    panels = [(found, _labels(found)) for _, found in facts.judged]
    panels = [(found, labels) for found, labels in panels if labels and any(column.shown for column in found.columns)]
    if not panels:
        return None
    heights = [0.5 + _row_inches(len(_shown(found)), len(labels)) * len(labels) for found, labels in panels]
    return _drawn(
        6.8,
        [height + 0.5 for height in heights],
        [lambda axes, found=found, labels=labels: _bar_panel(axes, found, labels) for found, labels in panels],  # type: ignore[misc]
    )


def _row_inches(bars: int, rows: int) -> float:
    return 0.11 + 0.13 * bars if rows <= 40 else 0.06 + 0.1 * bars


def _labels(found: Judged) -> list[str]:
    return [label for label in found.rows if label not in found.averages][:_MOST_ROWS]


def _shown(found: Judged) -> list[int]:
    return [place for place, column in enumerate(found.columns) if column.shown]


def _bar_panel(axes: Axes, found: Judged, labels: list[str]) -> None:
    columns, rows = _shown(found), np.arange(len(labels))
    thick = 0.8 / len(columns)
    for number, (place, colour) in enumerate(zip(columns, (_BLUE, _ORANGE, _GREY, _RED) * len(columns))):
        values = [100 * (found.rows[label][place] or 0.0) for label in labels]
        where = rows + (number - (len(columns) - 1) / 2) * thick
        axes.barh(where, values, height=thick * 0.92, color=colour, label=one_line(found.columns[place].head))
        for at, value in zip(where, values):
            axes.text(min(value, 100) + 0.8, at, f"{value:.1f}", va="center", fontsize=7, color="#333333")
    axes.set_yticks(rows, [_drawable(label) for label in labels], fontsize=8)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_xlim(0, 107)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("%", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    one = f": {found.columns[columns[0]].head}" if len(columns) == 1 else ""
    axes.set_title(_drawable(f"{found.title}{one}"), fontsize=10, loc="left")
    if len(columns) > 1:
        axes.legend(
            frameon=False, fontsize=8, ncols=len(columns), loc="lower right", bbox_to_anchor=(1, 1), borderpad=0
        )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _histograms(facts: CardFacts) -> Figure | None:
    """A panel a pair of languages: how candidate pairs score, and from where on they are kept."""
    panels = [
        (pair, histogram, found.arguments.get(pair, {}).get("threshold"))
        for _, found in facts.judged
        for pair, histogram in found.histograms.items()
    ]
    if not panels:
        return None
    return _drawn(
        6.8,
        [2.1] * len(panels),
        [lambda axes, panel=panel: _score_panel(axes, *panel) for panel in panels],  # type: ignore[misc]
    )


def _score_panel(axes: Axes, pair: str, histogram: dict, threshold: float | None) -> None:
    correct, wrong = np.asarray(histogram["correct"]), np.asarray(histogram["wrong"])
    edges = np.linspace(histogram["low"], histogram["high"], len(correct) + 1)
    # On a logarithmic scale, since most candidates are no translations; side by side, since stacks would lie there.
    axes.stairs(wrong, edges, fill=True, color=_ORANGE, alpha=0.55, label="other candidate pairs")
    axes.stairs(correct, edges, color=_BLUE, linewidth=1.8, label="translations")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2 * max(2, correct.max(initial=1), wrong.max(initial=1)))
    if threshold is not None:
        axes.axvline(threshold, color="black", linewidth=1, linestyle="--", label=f"threshold {threshold:.3f}")
    axes.set_title(_drawable(pair), fontsize=10, loc="left")
    axes.set_xlabel("score", fontsize=8)
    axes.set_ylabel("pairs", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _drawn(width: float, heights: list[float], panels: list[Callable[[Axes], None]]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for place, panel in enumerate(panels):
        panel(figure.add_subplot(grid[place]))
    return figure


def _drawable(text: str) -> str:
    """As a picture can show it: the font has no Chinese, and a dollar sign would open a formula."""
    shown = "".join(sign if sign.isprintable() and ord(sign) < 0x2E80 else "?" for sign in one_line(text))
    return shown.replace("$", r"\$")[:40]
