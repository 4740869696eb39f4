"""Pictures: cosines before and after training; saved results, for the card; scores of pairs.

They need matplotlib, of the extra ``plots``. Without it, nothing is drawn, cards and pages have no pictures, and a line
in the log says how to get them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from st_xling.evaluation.results import Row, SavedResults
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import language_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sentence_transformers import SentenceTransformer

    from st_xling.evaluation.measures import EvaluatedPairs

logger = logging.getLogger(__name__)

#: Folder of pictures in a model's folder.
PICTURES = "pictures"

#: Height of each panel in inches, and the function that draws it.
Panels: TypeAlias = "list[tuple[float, Callable[[Axes], None]]]"

# Number of pairs of sentences in a heat map.
_IN_HEAT_MAP = 14
# File of the cosines at the start of a run, until they are drawn at its end.
_START = "cosines.npy"
_BINS = 40
_MOST_ROWS = 120

# Distinct for the color-blind.
_BLUE = "#0072b2"
_ORANGE = "#e69f00"
_GREY = "#777777"
_RED = "#d55e00"


@cache
def has_matplotlib() -> bool:
    """Return whether pictures can be drawn; where they cannot, the log says so once."""
    is_installed = find_spec("matplotlib") is not None
    if not is_installed:
        logger.info('no pictures are drawn, which needs matplotlib: pip install "st-xling[plots]"')
    return is_installed


def save_figure(figure: Any, path: str | Path, *, dpi: int = 130) -> Path:
    """Write a matplotlib figure as PNG, in a folder that is created if it is missing, and return the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_writer(path) as stream:
        figure.savefig(stream, dpi=dpi, format="png", metadata={"Software": None})
    return path


class TrainingPicture:
    """Draws the cosines of the same parallel sentences before and after a training.

    Cosines of the start are in the run's ``training`` folder until then, so that a run that is resumed has them.

    Args:
        data: Name → pairs, such as development pairs; shown are the first pairs of the first data set that the font
            can draw, or of the first one if it can draw none.
        recipe: Name of the recipe, for the title.
        start: Description of the encoder before the training, for the title, such as ``"random weights"``.
    """

    def __init__(self, data: Mapping[str, Any], recipe: str, *, start: str = "") -> None:
        candidates: list[dict[str, list[str]]] = [pairs[:_IN_HEAT_MAP] for pairs in data.values()]
        drawable = [rows for rows in candidates if all(map(_can_draw, [*rows["source"], *rows["target"]]))]
        without_data: dict[str, list[str]] = {"source": [], "target": []}
        rows = [*drawable, *candidates, without_data][0]
        self.texts: list[list[str]] = [rows["source"], rows["target"]]
        #: Names of both languages, for the axes; empty if the data do not name them.
        codes = [rows.get(f"{side}_language") for side in ("source", "target")]
        self.languages = tuple(language_name(column[0]) if column else "" for column in codes)
        self.titles = (f"before: {start}" if start else "before", f"after {recipe}")

    def begin(self, model: SentenceTransformer, training: Path) -> None:
        """Save the cosines of ``model`` before the training, in the folder ``training``."""
        if self.texts[0] and has_matplotlib():
            np.save(training / _START, self._cosines(model))

    def end(self, model: SentenceTransformer, folder: Path) -> None:
        """Draw into the run's ``folder``, and remove the saved start; without a saved start, do nothing."""
        start = folder / "training" / _START
        if not start.is_file() or not has_matplotlib():
            return
        panels = dict(zip(self.titles, (np.load(start), self._cosines(model))))
        draw_cosines(panels, folder / PICTURES / "cosines.png", sources=self.texts[0], languages=self.languages)
        start.unlink()

    def _cosines(self, model: SentenceTransformer) -> np.ndarray:
        from sentence_transformers.util import cos_sim

        was_training = model.training
        vectors = [model.encode(texts, convert_to_tensor=True).float().cpu() for texts in self.texts]
        model.train(was_training)
        return cos_sim(*vectors).numpy()


def draw_cosines(
    panels: Mapping[str, np.ndarray], path: Path, *, sources: Sequence[str], languages: Sequence[str]
) -> None:
    """Draw the cosines of sentences with translations as heat maps, on which those of true pairs are the diagonal.

    Args:
        panels: Title → cosines of sources (rows) with targets. *Shape:* ``(pairs, pairs)`` each
        path: PNG to write.
        sources: The source sentences; those that the font cannot draw are labeled only by their numbers.
        languages: Names of both languages, for the axes.
    """
    from matplotlib.figure import Figure

    numbers = [str(number) for number in range(1, len(sources) + 1)]
    if all(map(_can_draw, sources)):
        row_labels = [f"{_drawable(text, most=28)}  {number}" for text, number in zip(sources, numbers)]
        width = 9.4
    else:
        row_labels = numbers
        width = 8.0
    # Numbers below the columns leave the maps their room at any length of the sentences.
    figure = Figure(figsize=(width, 3.9), layout="constrained")
    axes_of_panels = figure.subplots(1, len(panels))
    for axes, (title, cosines) in zip(axes_of_panels, panels.items()):
        axes.set_title(_drawable(title), fontsize=11)
        image = axes.imshow(cosines, vmin=0.0, vmax=1.0, cmap="magma")
        axes.set_xticks(range(len(numbers)), numbers, fontsize=8)
        y_labels = row_labels if axes is axes_of_panels[0] else numbers
        axes.set_yticks(range(len(numbers)), y_labels, fontsize=8)
        axes.set_xlabel(languages[1], fontsize=9)
        axes.tick_params(length=0)
    axes_of_panels[0].set_ylabel(languages[0], fontsize=9)
    figure.colorbar(image, ax=figure.axes, shrink=0.7, label="cosine")
    save_figure(figure, path)


def draw_points(
    panels: Mapping[str, tuple[np.ndarray, np.ndarray]], path: Path, *, languages: Sequence[str], joined: bool
) -> None:
    """Draw points of two languages in the plane, one panel for each model.

    Args:
        panels: Title → points of source and target. *Shape of each:* ``(points, 2)``
        path: PNG to write.
        languages: Names of both languages, for the legend.
        joined: Join points of equal rows by a line, as those of translations.
    """
    if not has_matplotlib():
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.0 * len(panels), 3.8), layout="constrained")
    for axes, (title, points) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items()):
        axes.set_title(_drawable(title), fontsize=11)
        if joined:
            axes.plot(*np.stack(points).transpose(2, 0, 1), color="0.75", linewidth=0.7, zorder=0)
        for name, side, color, marker in zip(languages, points, (_BLUE, _ORANGE), "o^"):
            size = 26 if joined else 9
            axes.scatter(*side.T, s=size, alpha=0.6, color=color, marker=marker, label=name, linewidths=0)
        axes.set(xticks=[], yticks=[])
    figure.axes[0].legend(frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_front(front: Sequence[Mapping[str, Any]], chosen: float, path: str | Path) -> None:
    """Draw retrieval against translation, a point for each weight at which two models were merged.

    Args:
        front: Points with ``weight``, ``translation``, ``retrieval`` and ``kept``, see
            :class:`~st_xling.evaluation.compare.front.FrontPoint`, by rising weight.
        chosen: Weight that was chosen.
        path: PNG to write.
    """
    from matplotlib.figure import Figure

    # Without passages, what is kept are old languages.
    has_retrieval = all(point["retrieval"] is not None for point in front)
    kept_name = "retrieval, MRR@100 in %" if has_retrieval else "translation of old languages, accuracy in %"
    kept: list[float] = []
    for point in front:
        values = [point["retrieval"]] if has_retrieval else list(point["kept"].values())
        kept.append(100 * sum(values) / len(values))
    translation = [100 * point["translation"] for point in front]

    figure = Figure(figsize=(5.6, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(kept, translation, color="0.75", linewidth=1, zorder=0)
    for point, x, y in zip(front, kept, translation):
        is_chosen = point["weight"] == chosen
        color = _ORANGE if is_chosen else _BLUE
        axes.scatter([x], [y], s=64 if is_chosen else 36, color=color, zorder=2)
        label = f"{point['weight']:g}, chosen" if is_chosen else f"{point['weight']:g}"
        axes.annotate(label, (x, y), textcoords="offset points", xytext=(7, 5), fontsize=8, color="#333333")
    axes.margins(0.16)
    axes.set_ylabel("translation, accuracy in %", fontsize=8)
    _finish(axes, "Shares of the trained model, merged with its start", kept_name, legend=0)
    save_figure(figure, path)


def score_histogram(pairs: EvaluatedPairs, *, bins: int = _BINS) -> dict[str, Any]:
    """Count mined pairs, at least one, by score: few enough numbers to be saved with a model.

    Returns:
        ``low``: score at which the first bin begins; ``high``: score at which the last one ends, and which is part of
        it; ``correct``: pairs in the gold, a bin each; ``wrong``: the others.
    """
    low = float(pairs.scores.min())
    high = float(pairs.scores.max())
    if high <= low:
        high = low + 1.0
    edges = np.linspace(low, high, bins + 1)
    correct, _ = np.histogram(pairs.scores[pairs.is_correct], bins=edges)
    wrong, _ = np.histogram(pairs.scores[~pairs.is_correct], bins=edges)
    return {
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "correct": correct.tolist(),
        "wrong": wrong.tolist(),
    }


def draw_results(folder: Path, evaluations: Sequence[tuple[str, SavedResults]]) -> None:
    """Draw saved results into a model's folder: measures by language, and scores of mined pairs.

    A picture of results that no longer exist is removed.

    Args:
        folder: Folder of the model.
        evaluations: Titles, with the results.
    """
    if not has_matplotlib():
        return
    bars: Panels = []
    histograms: Panels = []
    for title, result in evaluations:
        rows = [row for row in result.rows if not row.average][:_MOST_ROWS]
        columns = {index: column.name for index, column in enumerate(result.columns) if column.picture}
        if rows and columns:
            row_inches = 0.11 + 0.13 * len(columns) if len(rows) <= 40 else 0.06 + 0.1 * len(columns)
            panel = partial(_draw_bars, title=title, rows=rows, columns=columns)
            bars.append((1.0 + row_inches * len(rows), panel))
        thresholds = {row.label: row.arguments.get("threshold") for row in result.rows}
        for pair, counts in (result.figures.get("histograms") or {}).items():
            edges = np.linspace(counts["low"], counts["high"], len(counts["correct"]) + 1)
            series = {"other candidate pairs": counts["wrong"], "translations": counts["correct"]}
            panel = partial(_draw_histogram, title=pair, edges=edges, series=series, threshold=thresholds.get(pair))
            histograms.append((2.1, panel))
    for name, panels in (("accuracy_by_language.png", bars), ("score_histogram.png", histograms)):
        if panels:
            _save_panels(panels, folder / PICTURES / name)
        else:
            (folder / PICTURES / name).unlink(missing_ok=True)


def draw_scores(path: Path, scores: Sequence[float | None], threshold: float | None = None) -> None:
    """Draw a histogram of the scores of pairs, and the threshold that they passed."""
    if not has_matplotlib():
        return
    values = np.array([score for score in scores if score is not None], dtype=float)
    counts, edges = np.histogram(values[np.isfinite(values)], bins=_BINS)
    series = {"pairs": counts}
    panel = partial(_draw_histogram, title="Scores of the pairs", edges=edges, series=series, threshold=threshold)
    _save_panels([(2.4, panel)], path)


def _draw_bars(axes: Axes, *, title: str, rows: list[Row], columns: dict[int, str]) -> None:
    """Draw a bar for each language and measure."""
    row_positions = np.arange(len(rows))
    thickness = 0.8 / len(columns)
    colors = (_BLUE, _ORANGE, _GREY, _RED) * len(columns)
    for number, (index, color) in enumerate(zip(columns, colors)):
        values = [100 * (row.values[index] or 0.0) for row in rows]
        # The bars of a row are centered around its position.
        positions = row_positions + (number - (len(columns) - 1) / 2) * thickness
        bars = axes.barh(positions, values, height=thickness * 0.92, color=color, label=columns[index])
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=7, color="#333333")
    axes.set_yticks(row_positions, [_drawable(row.label) for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.set_xlim(0, 107)
    axes.set_xticks(range(0, 101, 20))
    if len(columns) == 1:
        (column_name,) = columns.values()
        _finish(axes, _drawable(f"{title}: {column_name}"), "%", legend=0)
    else:
        _finish(axes, _drawable(title), "%", legend=len(columns))


def _draw_histogram(
    axes: Axes, *, title: str, edges: np.ndarray, series: Mapping[str, Any], threshold: float | None
) -> None:
    """Draw counts of pairs by score, and the threshold; the last series as a line over the one before it."""
    for number, (name, counts) in enumerate(series.items()):
        if number == 0:
            axes.stairs(counts, edges, label=name, fill=True, color=_ORANGE, alpha=0.55)
        else:
            axes.stairs(counts, edges, label=name, color=_BLUE, linewidth=1.8)
    if len(series) > 1:  # most candidates are no translations
        axes.set_yscale("log")
        axes.set_ylim(0.7, 2 * max(2, *map(max, series.values())))
    if threshold is not None:
        axes.axvline(threshold, color="black", linewidth=1, linestyle="--", label=f"threshold {threshold:.3f}")
    axes.set_ylabel("pairs", fontsize=8)
    _finish(axes, _drawable(title), "score", legend=3)


def _finish(axes: Axes, title: str, unit: str, *, legend: int) -> None:
    """Set the title and the axes, and draw a legend of ``legend`` columns above the panel."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(unit, fontsize=8)
    axes.tick_params(labelsize=8)
    if legend:
        axes.legend(frameon=False, fontsize=8, ncols=legend, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0)
    axes.spines[["top", "right"]].set_visible(False)


def _save_panels(panels: Panels, path: Path) -> None:
    """Draw panels one below the other."""
    from matplotlib.figure import Figure

    heights = [height for height, _ in panels]
    figure = Figure(figsize=(6.8, sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (_, panel) in zip(grid[:, 0], panels):
        panel(axes)
    save_figure(figure, path, dpi=110)


def _can_draw(text: str) -> bool:
    """Return whether the font has all characters: Latin, Greek and Cyrillic letters, and common signs."""
    for character in " ".join(text.split()):
        code = ord(character)
        if not character.isprintable() or not (code < 0x0590 or 0x1E00 <= code < 0x2E80):
            return False
    return True


def _drawable(text: str, *, most: int = 40) -> str:
    """Return a text as a picture can show it."""
    if not _can_draw(text):
        return "…"
    line = " ".join(text.split())
    shown = line if len(line) <= most else f"{line[: most - 2]}…"
    return shown.replace("$", r"\$")  # a dollar sign would open a formula
