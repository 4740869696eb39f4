"""Draw the pictures of the results page from recorded JSON: ``python .docs/draw_results.py``.

The files in ``results`` are what the page's commands write with ``--json``; in ``documents.json`` those of several
documents are together, next to Vecalign's F1.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean, stdev
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


def grouped_bars(name: str, groups: dict[str, dict[str, list[float]]], *, ylabel: str) -> None:
    """Draw a group of bars for each label, means of runs in %, with their value and standard deviation."""
    figure = Figure(figsize=(6.8, 2.6), layout="constrained")
    axes = figure.add_subplot()
    names = list(next(iter(groups.values())))
    width = 0.8 / len(names)
    for number, (series, color) in enumerate(zip(names, (BLUE, ORANGE, GREY))):
        places = [place + (number - (len(names) - 1) / 2) * width for place in range(len(groups))]
        runs = [group[series] for group in groups.values()]
        errors = [stdev(values) for values in runs] if len(runs[0]) > 1 else None
        bars = axes.bar(places, [*map(mean, runs)], width * 0.92, yerr=errors, capsize=2, color=color, label=series)
        axes.bar_label(bars, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(groups)), list(groups))
    finish(figure, name, ylabel)


def over_seeds(
    name: str, table: str, columns: dict[str, str], rows: dict[str, str]
) -> dict[str, dict[str, list[float]]]:
    """Return the values over seeds of a reproduced table: label of column → label of row → values."""
    found = recorded(name)["tables"][table]["rows"]
    return {label: {name: found[row][column] for name, row in rows.items()} for label, column in columns.items()}


def tatoeba(name: str, *ways: str) -> dict[str, float]:
    """Return the accuracy in % by language, the mean of both ways or one of them (``to``, ``from``)."""
    figures = recorded(name)["tatoeba"]
    codes = [match[1] for key in figures if (match := re.fullmatch(r"tatoeba_(\w{3})_to_en_accuracy", key))]
    return {code: 100 * sum(figures[f"tatoeba_{code}_{way}_en_accuracy"] for way in ways) / len(ways) for code in codes}


def dots(name: str, series: dict[str, dict[str, float]]) -> None:
    """Draw a dot for each language and series, the best language first."""
    first, second = series.values()
    codes = sorted(first, key=lambda code: -(first[code] + second[code]))
    figure = Figure(figsize=(6.8, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for (label, own), (color, marker) in zip(series.items(), ((BLUE, "o"), (ORANGE, "s"))):
        axes.plot(range(len(codes)), [own[code] for code in codes], marker, color=color, markersize=4, label=label)
    axes.set_xticks(range(len(codes)), codes, rotation=90)
    axes.margins(x=0.02)
    finish(figure, name, "accuracy, %")


def main() -> None:
    dots("tatoeba", {f"{way} English": tatoeba("tatoeba", way) for way in ("to", "from")})
    dots("fine_tuning", {name: tatoeba(f"e5_small_dap_{name}", "to", "from") for name in ("before", "after")})
    mined = recorded("mining")["bucc"]
    pairs = ("de-en", "fr-en", "ru-en", "zh-en")
    measures = {"precision": "precision", "recall": "recall", "F1": "f1"}
    scores = {pair: {name: [100 * mined[f"bucc_{pair}_{key}"]] for name, key in measures.items()} for pair in pairs}
    grouped_bars("mining", scores, ylabel="%")
    documents = recorded("documents")
    series = {
        name: {
            "st-xling": [100 * one["strict"]["f1"]],
            "Vecalign, same vectors": [100 * one["vecalign"]["strict"]["f1"]],
        }
        for name, one in documents.items()
    }
    grouped_bars("documents_f1", series, ylabel="strict F1, %")
    recipes = {"as it is": "as it is", "tr": "TR", "dap": "DAP"}
    columns = {"to English": "12 languages → en", "from English": "en → 12 languages"}
    trained = over_seeds("dap_heads_first", "1", columns, recipes)
    trained |= over_seeds("dap_heads_first", "3", {"mining, F1": "mean F"}, recipes)
    grouped_bars("dap_heads_first", trained, ylabel="%")
    columns = {"all": "acc@1", "within a language": "acc@1 within a language", "across": "acc@1 across languages"}
    strategies = {"xpr-merged": "XPI + merged", "xpr-mixed": "XPI + mixed"}
    grouped_bars("reranking", over_seeds("xpr_500", "3", columns, strategies), ylabel="acc@1, %")

    retrievers = {
        name: next(iter(recorded(f"e5_small_ir_{name}")["retrieval"].values())) for name in ("before", "after")
    }
    columns = {"MRR@100": "MRR@100", "Recall@100": "Recall@100"}
    found = {
        label: {name: [100 * one["figures"]["mean"][key]] for name, one in retrievers.items()}
        for label, key in columns.items()
    }
    bias = {name: [100 * one["language_bias"]["own_share"]] for name, one in retrievers.items()}
    grouped_bars("retrieval", found | {"in the query's language": bias}, ylabel="%")


if __name__ == "__main__":
    main()
