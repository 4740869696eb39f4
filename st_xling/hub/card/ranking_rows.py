"""Rows of kept figures of passages ranked, of transfer, and of what is not known here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from st_xling.evaluation.results import KeptFigures
from st_xling.hub.card.judged import Column, Judged, data_name


def reranking(kept: KeptFigures) -> Judged:
    overall = kept.figures["overall"]
    names = [name for name, value in overall.items() if isinstance(value, dict)]
    cells = {"all": overall} | {
        f"{asked} → {other}": cell
        for asked, row in kept.figures.get("matrix", {}).items()
        for other, cell in row.items()
    }
    return Judged(
        title="Passage re-ranking",
        task=("text-ranking", "Passage re-ranking"),
        data=(data_name(kept, "reranking"), data_name(kept, "reranking")),
        columns=tuple(
            Column(
                name if name.startswith("acc") else name.upper(),
                name.replace("acc@", "accuracy_at_"),
                shown=name == names[0],
            )
            for name in names
        ),
        rows={label: [cell[name]["mean"] for name in names] for label, cell in cells.items()},
        averages=frozenset({"all"}),
        ranges={"all": [(overall[name]["low"], overall[name]["high"]) for name in names]},
        note="In %; of pairs of languages, the query's comes first and only candidates in the other are ranked. In "
        "brackets: bootstrap interval.",
    )


def retrieval(kept: KeptFigures) -> Judged:
    systems = {name: found["figures"] for name, found in kept.figures.items()}
    own = next((name for name in systems if name != "BM25"), None)
    order = [name for name in (own, "BM25") if name in systems]
    measures = list(next(iter(systems[order[0]].values())))
    labels = list(systems[order[0]])
    return Judged(
        title="Passage retrieval",
        task=("text-retrieval", "Passage retrieval"),
        data=(data_name(kept, "retrieval"), data_name(kept, "retrieval")),
        columns=tuple(
            Column(
                measure if name == own else f"{name} {measure}",
                _metric(measure) if name == own else None,
                shown=measure == measures[0],
            )
            for name in order
            for measure in measures
        ),
        rows={label: [systems[name][label][measure] for name in order for measure in measures] for label in labels},
        averages=frozenset({"mean"}),
        note="In %, by language of the queries; of two codes the second is that of the passages.",
    )


def transfer(kept: KeptFigures) -> Judged:
    names = {"xnli": "XNLI", "pawsx": "PAWS-X", "pos": "part-of-speech tagging", "panx": "PAN-X"}
    task = kept.figures.get("task") or kept.task.partition("-")[2]
    measures = list(kept.figures["average"])
    rows = {language: [found[measure] for measure in measures] for language, found in kept.figures["languages"].items()}
    for label, key in (("mean", "average"), ("mean of languages not trained on", "zero_shot_average")):
        rows[label] = [kept.figures[key][measure] for measure in measures]
    kind = "token-classification" if task in ("pos", "panx") else "text-classification"
    return Judged(
        title=f"Zero-shot transfer: {names.get(task, task)}",
        task=(kind, f"Zero-shot transfer ({names.get(task, task)})"),
        data=(task, names.get(task, task)),
        columns=tuple(Column(name if name != "f1" else "F1", name, shown=name == measures[0]) for name in measures),
        rows=rows,
        averages=frozenset(list(rows)[-2:]),
        note="In %, of a copy of this encoder that was fine-tuned on one language and judged in all.",
    )


def plain_figures(kept: KeptFigures) -> Judged:
    """Numbers under their own names."""
    numbers = {key: value for key, value in _flat(kept.figures).items()}
    return Judged(
        title=kept.task,
        task=("other", kept.task),
        data=(data_name(kept, kept.task), data_name(kept, kept.task)),
        columns=(Column("value", "value", percent=False),),
        rows={key: [value] for key, value in numbers.items()},
    )


def _flat(figures: Any, stem: str = "") -> dict[str, float]:
    if isinstance(figures, Mapping):
        return {key: value for name, part in figures.items() for key, value in _flat(part, f"{stem}{name} ").items()}
    known = isinstance(figures, (int, float)) and not isinstance(figures, bool)
    return {stem.strip(): float(figures)} if known else {}


def _metric(measure: str) -> str:
    return measure.lower().replace("@", "_at_")
