"""Draw the pictures of the results page from recorded JSON: ``python .docs/draw_results.py``.

The files in ``results`` are what the page's commands write with ``--json``; in ``documents.json`` those of several
documents are together, next to Vecalign's F1.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from st_xling.evaluation.pictures import save_figure

FOLDER = Path(__file__).parent
PICTURES = FOLDER.parent / "st_xling" / "docs" / "pictures"
BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#777777"  # distinct for the color-blind


def recorded(name: str) -> Any:
    return json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))


def finish(figure: Figure, name: str, ylabel: str) -> None:
    (axes,) = figure.axes
    axes.set_ylabel(ylabel, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    save_figure(figure, PICTURES / f"{name}.png", dpi=130)


def grouped_bars(name: str, groups: dict[str, dict[str, float]], *, ylabel: str) -> None:
    """Draw a group of bars for each label, with the value above each bar."""
    figure = Figure(figsize=(6.8, 2.6), layout="constrained")
    axes = figure.add_subplot()
    names = list(next(iter(groups.values())))
    width = 0.8 / len(names)
    for number, (series, color) in enumerate(zip(names, (BLUE, ORANGE, GREY))):
        places = [place + (number - (len(names) - 1) / 2) * width for place in range(len(groups))]
        values = [100 * group[series] for group in groups.values()]
        bars = axes.bar(places, values, width * 0.92, color=color, label=series)
        axes.bar_label(bars, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(groups)), list(groups))
    finish(figure, name, ylabel)


def draw_tatoeba() -> None:
    """Draw a dot for each language and direction, the best language first."""
    figures = recorded("tatoeba")["tatoeba"]
    found = {
        match[1]: figures[key] for key in figures if (match := re.fullmatch(r"tatoeba_(\w{3})_to_en_accuracy", key))
    }
    both = {code: (to, figures[f"tatoeba_{code}_from_en_accuracy"]) for code, to in found.items()}
    codes = sorted(both, key=lambda code: -sum(both[code]))
    figure = Figure(figsize=(6.8, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for way, (label, color, marker) in enumerate((("to English", BLUE, "o"), ("from English", ORANGE, "s"))):
        values = [100 * both[code][way] for code in codes]
        axes.plot(range(len(codes)), values, marker, color=color, markersize=4, label=label)
    axes.set_xticks(range(len(codes)), codes, rotation=90)
    axes.margins(x=0.02)
    finish(figure, "tatoeba", "accuracy, %")


def main() -> None:
    draw_tatoeba()
    documents = recorded("documents")
    series = {
        name: {"st-xling": one["strict"]["f1"], "Vecalign, same vectors": one["vecalign"]["strict"]["f1"]}
        for name, one in documents.items()
    }
    grouped_bars("documents_f1", series, ylabel="strict F1, %")


if __name__ == "__main__":
    main()
