"""Draw the pictures of the results page from recorded JSON: ``python .docs/draw_results.py``.

The files in ``results`` are what the page's commands write with ``--json``, or the benchmark ``aligners`` with
``--table``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib.figure import Figure

from st_xling.evaluation.pictures import draw_front, save_figure

FOLDER = Path(__file__).parent
PICTURES = FOLDER.parent / "st_xling" / "docs" / "pictures"

# Distinct for the color-blind.
BLUE = "#0072b2"
ORANGE = "#e69f00"
GREY = "#777777"
COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#d55e00", "#56b4e9")


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


def grouped_bars(name: str, groups: dict[str, dict[str, list[float]]], *, ylabel: str) -> None:
    """Draw a group of bars for each label, means of runs in %, with their value and standard deviation."""
    figure = Figure(figsize=(6.8, 2.6), layout="constrained")
    axes = figure.add_subplot()
    names = list(next(iter(groups.values())))
    width = 0.8 / len(names)
    for number, (series, color) in enumerate(zip(names, (BLUE, ORANGE, GREY))):
        offset = (number - (len(names) - 1) / 2) * width
        positions = [group + offset for group in range(len(groups))]
        runs = [group[series] for group in groups.values()]
        means = [mean(values) for values in runs]
        errors = [stdev(values) for values in runs] if len(runs[0]) > 1 else None
        bars = axes.bar(positions, means, width * 0.92, yerr=errors, capsize=2, color=color, label=series)
        axes.bar_label(bars, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(groups)), list(groups))
    finish(figure, name, ylabel)


def over_seeds(
    name: str, table: str, columns: dict[str, str], rows: dict[str, str]
) -> dict[str, dict[str, list[float]]]:
    """Return the values over seeds of a reproduced table: label of column → label of row → values."""
    values = recorded(name)["tables"][table]["rows"]
    groups = {}
    for column_label, column in columns.items():
        groups[column_label] = {row_label: values[row][column] for row_label, row in rows.items()}
    return groups


def tatoeba(name: str, *ways: str) -> dict[str, float]:
    """Return the accuracy in % by language, the mean of both ways or one of them (``to``, ``from``)."""
    figures = recorded(name)["tatoeba"]
    codes = [match[1] for key in figures if (match := re.fullmatch(r"tatoeba_(\w{3})_to_en_accuracy", key))]
    accuracies = {}
    for code in codes:
        values = [figures[f"tatoeba_{code}_{way}_en_accuracy"] for way in ways]
        accuracies[code] = 100 * sum(values) / len(values)
    return accuracies


def dots(name: str, series: dict[str, dict[str, float]]) -> None:
    """Draw a dot for each language and series, the best language first."""
    first, second = series.values()
    codes = sorted(first, key=lambda code: -(first[code] + second[code]))
    figure = Figure(figsize=(6.8, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for (label, accuracies), (color, marker) in zip(series.items(), ((BLUE, "o"), (ORANGE, "s"))):
        values = [accuracies[code] for code in codes]
        axes.plot(range(len(codes)), values, marker, color=color, markersize=4, label=label)
    axes.set_xticks(range(len(codes)), codes, rotation=90)
    axes.margins(x=0.02)
    finish(figure, name, "accuracy, %")


def draw_mining() -> None:
    figures = recorded("mining")["bucc"]
    scores = {}
    for pair in ("de-en", "fr-en", "ru-en", "zh-en"):
        scores[pair] = {
            "precision": [100 * figures[f"bucc_{pair}_precision"]],
            "recall": [100 * figures[f"bucc_{pair}_recall"]],
            "F1": [100 * figures[f"bucc_{pair}_f1"]],
        }
    grouped_bars("mining", scores, ylabel="%")


def draw_scores() -> None:
    """Draw README's picture: how scores tell translations, by the gold, from other mined pairs.

    It is read at the width of a phone, so its text is large.
    """
    counts = recorded("mined_scores")
    edges = [counts["start"] + counts["width"] * number for number in range(len(counts["right"]) + 1)]
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.stairs(counts["wrong"], edges, fill=True, color="#b5b5b5")
    axes.stairs(counts["right"], edges, fill=True, color=BLUE, alpha=0.85)
    axes.axvline(counts["threshold"], color="#d55e00", linewidth=2.5)
    axes.text(counts["threshold"] + 0.002, 300, "estimated\nthreshold", color="#d55e00", fontsize=15, va="center")
    axes.text(1.003, 12, "other pairs", fontsize=15, ha="center")
    axes.text(1.066, 13, "translations", color=BLUE, fontsize=15, ha="center")
    axes.set_yscale("log")
    axes.set_ylim(0.7, 900)
    axes.set_yticks([1, 10, 100], ["1", "10", "100"])
    axes.minorticks_off()
    axes.set_xlim(0.96, 1.10)
    axes.set_xticks([0.96, 1.0, 1.04, 1.08])
    axes.tick_params(labelsize=14)
    axes.set_xlabel("score of a mined pair", fontsize=15)
    axes.set_ylabel("pairs", fontsize=15)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    save_figure(figure, PICTURES / "mined_scores.png", dpi=130)


def draw_documents() -> None:
    """Draw the strict and the lax F1 of each language and aligner, one next to the other."""
    rows = recorded("documents")["rows"]
    labels = {label: label.removesuffix(", tests") for label in rows if label != "Text+Berg, dev"}
    aligners = {"st-xling": ("st-xling", BLUE, "o"), "bertalign": ("Bertalign", ORANGE, "s")}
    aligners["vecalign"] = ("Vecalign", GREY, "^")
    figure = Figure(figsize=(6.8, 2.9), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, kind in zip(panels, ("strict", "lax")):
        for name, (legend, color, marker) in aligners.items():
            values = [100 * rows[label][name][kind]["f1"] for label in labels]
            axes.plot(range(len(labels)), values, marker, color=color, markersize=5, label=legend)
        axes.set_title(kind, fontsize=9)
        axes.set_xticks(range(len(labels)), list(labels.values()), rotation=45, ha="right", rotation_mode="anchor")
        axes.tick_params(labelsize=8)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
    panels[0].set_ylabel("F1, %", fontsize=9)
    panels[1].legend(frameon=False, fontsize=8, loc="lower right")
    save_figure(figure, PICTURES / "documents_f1.png", dpi=130)


def draw_heads_first() -> None:
    recipes = {"as it is": "as it is", "tr": "TR", "dap": "DAP"}
    columns = {"to English": "12 languages → en", "from English": "en → 12 languages"}
    trained = over_seeds("dap_heads_first", "1", columns, recipes)
    trained |= over_seeds("dap_heads_first", "3", {"mining, F1": "mean F"}, recipes)
    grouped_bars("dap_heads_first", trained, ylabel="%")


def draw_reranking() -> None:
    columns = {name: name for name in ("acc@1", "acc@10", "MRR")}
    strategies = {"xpr-merged": "XPI + merged", "xpr-mixed": "XPI + mixed"}
    grouped_bars("reranking", over_seeds("xpr_500", "3", columns, strategies), ylabel="%")


def draw_retrieval() -> None:
    scores: dict[str, dict[str, list[float]]] = {"MRR@100": {}, "Recall@100": {}, "in the query's language": {}}
    for name in ("before", "after"):
        (results,) = recorded(f"e5_small_ir_{name}")["retrieval"].values()
        for metric in ("MRR@100", "Recall@100"):
            scores[metric][name] = [100 * results["figures"]["mean"][metric]]
        scores["in the query's language"][name] = [100 * results["language_bias"]["own_share"]]
    grouped_bars("retrieval", scores, ylabel="%")


def draw_first_stage() -> None:
    """Draw a curve for each text: time in % of the full run, and the share of its pairs that two stages keep."""
    figure = Figure(figsize=(6.8, 3.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"kept": "all pairs", "right_kept": "pairs that are right"}
    texts = recorded("first_stage")
    for axes, (field, title) in zip(panels, titles.items()):
        for (name, points), color, marker in zip(texts.items(), COLORS, "osD^vP"):
            full, *others = points
            others = sorted(others, key=lambda point: point["seconds"])
            times = [100 * point["seconds"] / full["seconds"] for point in [*others, full]]
            kept = [100 * point[field] for point in [*others, full]]
            axes.plot(times, kept, color=color, marker=marker, markersize=4, linewidth=1.2, label=name)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("time, % of the full run", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
    panels[0].set_ylabel("kept, %", fontsize=9)
    panels[1].legend(frameon=False, fontsize=8)
    save_figure(figure, PICTURES / "first_stage.png", dpi=130)


def draw_realigned() -> None:
    merged = recorded("realigned_merge")["merge"]
    draw_front(merged["front"], merged["weight"], PICTURES / "realigned.png")


def main() -> None:
    dots("tatoeba", {f"{way} English": tatoeba("tatoeba", way) for way in ("to", "from")})
    dots("fine_tuning", {name: tatoeba(f"e5_small_dap_{name}", "to", "from") for name in ("before", "after")})
    draw_mining()
    draw_scores()
    draw_documents()
    draw_heads_first()
    draw_reranking()
    draw_retrieval()
    draw_first_stage()
    draw_realigned()


if __name__ == "__main__":
    main()
