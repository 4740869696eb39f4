"""Figures of an evaluation as rows and columns: what tables, pictures and metadata of a card are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.evaluation.results import KeptFigures


@dataclass(frozen=True)
class Column:
    """One measure.

    Attributes:
        head: Of the table.
        metric: Its id in the metadata; ``None``: not told there.
        percent: Whether values are fractions, shown in percent.
        shown: Whether the picture of languages has it.
    """

    head: str
    metric: str | None = None
    percent: bool = True
    shown: bool = False


@dataclass(frozen=True)
class Judged:
    """One evaluation.

    Attributes:
        title: Heading.
        task: Type and name of the task, in the metadata.
        data: Type and name of the data.
        split: Of the data.
        columns: Measures.
        rows: Label → a value a column, ``None`` where there is none.
        averages: Labels that are no language or pair of languages.
        arguments: Label → what the metadata say beside the signature, such as the threshold.
        ranges: Label → column → lower and upper end of an interval.
        note: One sentence on what the figures mean.
        histograms: Language pair → scores of candidate pairs, as :class:`ScoreHistogram` gives them.
    """

    title: str
    task: tuple[str, str]
    data: tuple[str, str]
    columns: tuple[Column, ...]
    rows: dict[str, list[float | None]]
    split: str | None = None
    averages: frozenset[str] = frozenset()
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    ranges: dict[str, list[tuple[float, float] | None]] = field(default_factory=dict)
    note: str = ""
    histograms: dict[str, Any] = field(default_factory=dict)


def signature_field(signature: str, name: str) -> str | None:
    """A part of a signature: ``split`` of ``bucc|split:test`` is ``"test"``."""
    return next((part.partition(":")[2] for part in signature.split("|") if part.startswith(f"{name}:")), None)


def data_name(kept: KeptFigures, default: str) -> str:
    """What the figures were measured on; a name may hold ``@``."""
    return (signature_field(kept.signature, "data") or default).rpartition("@")[0] or default
