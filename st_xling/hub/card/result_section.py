"""The results of a card: a table for each evaluation, with its signature and the command that gives it again."""

from __future__ import annotations

from st_xling.evaluation.results import KeptFigures
from st_xling.hub.card.escaping import fenced, plain, span, table
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.judged import Column, Judged
from st_xling.hub.card.pictures import ACCURACY, SCORES, picture
from st_xling.hub.card.run_command import shown_command


def result_section(facts: CardFacts) -> str:
    """All evaluations and the thresholds, or that there are none."""
    parts = ["## Results"]
    if not facts.judged:
        parts.append("No evaluation was kept with the model (`st-xling evaluate … --keep`).")
    for kept, found in facts.judged:
        parts += _evaluation(kept, found, facts.options.repo_id)
    parts += picture(facts, ACCURACY, "Bar chart: figures of each language and direction")
    if facts.thresholds:
        parts += ["### Thresholds for mining", _thresholds(facts)]
        parts.append("`st-xling mine` takes them from `mining.json` by itself.")
    parts += picture(facts, SCORES, "Histogram: scores of correct and wrong candidate pairs, and the threshold")
    return "\n\n".join(parts)


def figure_table(found: Judged) -> str:
    """Rows of one evaluation, averages in bold."""
    rows = []
    for label, values in found.rows.items():
        ranges = found.ranges.get(label) or [None] * len(values)
        cells = [_cell(value, column, ends) for value, column, ends in zip(values, found.columns, ranges)]
        bold = "**" if label in found.averages else ""
        rows.append([f"{bold}{plain(label)}{bold}", *cells])
    heads = ["", *(plain(column.head) for column in found.columns)]
    return table(heads, rows, numbers=len(found.columns))


def _evaluation(kept: KeptFigures, found: Judged, repo_id: str | None) -> list[str]:
    name = "" if found.data[1] in (found.title, "Tatoeba", "BUCC") else f" ({plain(found.data[1])})"
    command = shown_command(kept.command, repo_id=repo_id)
    return [
        f"### {plain(found.title)}{name}",
        *([found.note] if found.note else []),
        figure_table(found),
        f"Signature: {span(kept.signature)}",
        *(["To get it again:", fenced(command, "bash")] if command else []),
    ]


def _cell(value: float | None, column: Column, ends: tuple[float, float] | None) -> str:
    if value is None:
        return "–"
    if not column.percent:
        return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1 else f"{value:.4f}"
    interval = "" if ends is None else f" ({100 * ends[0]:.1f}–{100 * ends[1]:.1f})"
    return f"{100 * value:.1f}{interval}"


def _thresholds(facts: CardFacts) -> str:
    def percent(share: float | None) -> str:
        return "–" if share is None else f"{100 * share:.1f}"

    rows = [
        [
            plain(pair),
            f"{found.threshold:.4f}",
            *(percent(share) for share in (found.precision, found.recall, found.f1)),
            plain(f"{found.margin} margin, k {found.k}, {found.retrieval}"),
        ]
        for pair, found in facts.thresholds.items()
    ]
    shown = table(["pair", "threshold", "precision %", "recall %", "F1 %", "mined by"], rows)
    signatures = dict.fromkeys(span(found.signature) for found in facts.thresholds.values())
    return f"{shown}\n\nSignature: {', '.join(signatures)}"
