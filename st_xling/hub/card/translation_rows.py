"""Rows of kept figures of translation retrieval and mining."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from st_xling.evaluation.results import KeptFigures
from st_xling.hub.card.judged import Column, Judged, data_name, signature_field


def tatoeba(kept: KeptFigures) -> Judged:
    from st_xling.evaluation.results import tatoeba_results

    name = data_name(kept, "tatoeba")
    found = tatoeba_results(kept.figures, name=_prefix(kept.figures, "to_en_accuracy").removesuffix("_"))
    return Judged(
        title="Translation retrieval" if name != "tatoeba" else "Tatoeba",
        task=("sentence-similarity", "Translation retrieval"),
        data=(name, "Tatoeba" if name == "tatoeba" else name),
        columns=(
            Column("to English", "accuracy", shown=True),
            Column("from English", "accuracy", shown=True),
            Column("mean"),
        ),
        rows={row.label: [row.to_en, row.from_en, row.mean] for row in found},
        averages=frozenset(row.label for row in found if row.is_average or row.label == "all"),
        note="Accuracy in %: how often the nearest sentence is the translation.",
    )


def bucc(kept: KeptFigures) -> Judged:
    name, prefix = data_name(kept, "bucc"), _prefix(kept.figures, "f1")
    stem = re.compile(re.escape(prefix) + "(.+)_f1")
    pairs = [match[1] for key in kept.figures if (match := stem.fullmatch(key))]
    order = ("precision", "recall", "f1", "threshold", "n_mined", "n_correct", "n_gold")
    rows = {pair: [kept.figures.get(f"{prefix}{pair}_{figure}") for figure in order] for pair in pairs}
    limits = {pair: values[3] for pair, values in rows.items()}
    if len(pairs) > 1:
        rows["all"] = [kept.figures[f"{prefix}{figure}"] for figure in order[:3]] + [None] * 4
    if not pairs:
        raise ValueError("no pair of languages")
    source = signature_field(kept.signature, "threshold") or "unknown"
    return Judged(
        title="Bitext mining",
        task=("sentence-similarity", "Bitext mining"),
        data=(name, "BUCC" if name == "bucc" else name),
        split=signature_field(kept.signature, "split"),
        columns=(
            Column("precision", "precision"),
            Column("recall", "recall"),
            Column("F1", "f1", shown=True),
            Column("threshold", percent=False),
            *(Column(head, percent=False) for head in ("mined", "correct", "gold")),
        ),
        rows=rows,
        averages=frozenset({"all"} if len(pairs) > 1 else ()),
        arguments={pair: {"threshold": limit, "threshold_source": source} for pair, limit in limits.items()},
        note=f"Precision, recall and F1 in % of the pairs that score at least the threshold ({source}).",
        histograms=kept.figures.get("histograms") or {},
    )


def xsim(kept: KeptFigures) -> Judged:
    rows = {label: [found["to_en_error"], found["from_en_error"]] for label, found in kept.figures.items()}
    return Judged(
        title="Similarity search by margin (xsim)",
        task=("sentence-similarity", "Similarity search"),
        data=(data_name(kept, "xsim"), data_name(kept, "xsim")),
        columns=(Column("error to English", "xsim_error"), Column("error from English", "xsim_error")),
        rows=rows,
        averages=frozenset({"all"}),
        note="Errors in %: how often the best match by margin is not the translation; lower is better.",
    )


def precision(kept: KeptFigures) -> Judged:
    name = data_name(kept, "precision")
    prefix = _prefix({key.partition("@")[0]: 0 for key in kept.figures}, "mean_p")
    form = re.compile(re.escape(prefix) + r"(?:(.+)_)?(source_to_target|target_to_source)_p@(\d+)")
    found = {match.groups(): value for key, value in kept.figures.items() if (match := form.fullmatch(key))}
    labels, at = (list(dict.fromkeys(key[place] for key in found)) for place in (0, 2))
    ways = {"source_to_target": "→", "target_to_source": "←"}
    rows = {label or "all": [found[label, way, n] for n in at for way in ways] for label in labels}
    if len(rows) == 2:
        rows.pop("all", None)  # the average of one pair
    if not rows:
        raise ValueError("no figure")
    return Judged(
        title="Translation matching",
        task=("sentence-similarity", "Translation matching"),
        data=(name, name),
        columns=tuple(
            Column(f"P@{n} {arrow}", f"precision_at_{n}", shown=n == at[0]) for n in at for arrow in ways.values()
        ),
        rows=rows,
        averages=frozenset({"all"}),
        note="How often the translation is among the N nearest sentences, in %, from the first language to the second "
        "(→) and back (←).",
    )


def _prefix(figures: Mapping[str, Any], ending: str) -> str:
    """What stands before the names of all metrics: they are the shortest where they are averages."""
    return min((key for key in figures if key.endswith(ending)), key=len).removesuffix(ending)
