"""What a leak check found: figures, a table to read, a dictionary to keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from st_xling._version import __version__

SHOWN_EXAMPLES = 5
_HEADER = ("evaluation set", "rows", "source", "target", "both", "found in")


@dataclass(frozen=True)
class LeakExample:
    """A text that training and evaluation share.

    Attributes:
        text: As the training data spell it; of a pair, the source side.
        train: The training set that has it first.
        row: Its row there, counted from 1.
    """

    text: str
    train: str
    row: int


@dataclass(frozen=True)
class SideLeak:
    """How much of one side of an evaluation set the training data hold.

    Attributes:
        rows: Sentences (or pairs) of the evaluation set, repetitions included.
        leaked: Of these, in the training data.
        train: The same by training set, for those that hold any; a sentence counts in each that holds it.
        examples: The first few.
    """

    rows: int
    leaked: int
    train: dict[str, int]
    examples: tuple[LeakExample, ...] = ()

    @property
    def share(self) -> float:
        """Leaked rows by all rows, in [0, 1]."""
        return self.leaked / self.rows


@dataclass(frozen=True)
class LeakReport:
    """What training and evaluation data share.

    Attributes:
        sets: Evaluation set → side (``"source"``, ``"target"`` and ``"pair"``, both sides in one training row; or
            ``"text"``) → figures.
        train_rows: Training set → its rows.
        leaked_rows: Training set → its rows, counted from 0, of which a side is in an evaluation set. Ascending.
        signature: What was compared, and how.
        dropped: The leaked rows were left out of the training data.
    """

    sets: dict[str, dict[str, SideLeak]]
    train_rows: dict[str, int]
    leaked_rows: dict[str, Sequence[int]] = field(repr=False)
    signature: str
    dropped: bool = False

    @property
    def leaking(self) -> list[str]:
        """The evaluation sets of which the training data hold anything."""
        return [name for name, sides in self.sets.items() if any(side.leaked for side in sides.values())]

    def as_dropped(self) -> LeakReport:
        """The same, of training data that have been rid of the leaked rows."""
        return replace(self, dropped=True)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the list of rows, for JSON."""
        sets: dict[str, Any] = {}
        for name, sides in self.sets.items():
            sets[name] = {
                kind: {
                    "rows": side.rows,
                    "leaked": side.leaked,
                    "share": round(side.share, 6),
                    "train": side.train,
                    "examples": [vars(example) for example in side.examples],
                }
                for kind, side in sides.items()
            }
        training = {
            name: {"rows": rows, "leaked": len(self.leaked_rows[name])} for name, rows in self.train_rows.items()
        }
        return {"sets": sets, "train": training, "dropped": self.dropped, "signature": self.signature}

    def table(self) -> str:
        """One line for each evaluation set that leaks, examples, and what it means for the training rows."""
        leaking = self.leaking
        lines = [f"text in both training and evaluation data: {len(leaking)} of {len(self.sets)} evaluation sets"]
        if leaking:
            lines += _aligned([_HEADER, *(_cells(name, self.sets[name]) for name in leaking)])
            lines += self._example_lines(leaking)
        for name, rows in self.leaked_rows.items():
            if len(rows):
                done = "dropped" if self.dropped else "in question"
                lines.append(f"{name}: {len(rows):,} of {self.train_rows[name]:,} training rows {done}")
        return "\n".join([*lines, self.signature])

    def _example_lines(self, names: Iterable[str]) -> list[str]:
        shown: dict[tuple[str, int], str] = {}
        for name in names:
            for side in self.sets[name].values():
                for example in side.examples[:1]:
                    shown.setdefault((example.train, example.row), example.text)
        first = list(shown.items())[:SHOWN_EXAMPLES]
        return [f"  e.g. {train} row {row}: {text[:70]}" for (train, row), text in first]


class LeakError(ValueError):
    """Training and evaluation data share text, and that was not to be; ``report`` has the figures."""

    def __init__(self, message: str, report: LeakReport) -> None:
        super().__init__(message)
        self.report = report


def refuse_leaks(report: LeakReport) -> None:
    """Raise :class:`LeakError` if anything is shared."""
    if report.leaking:
        listed = ", ".join(report.leaking[:4]) + (", …" if len(report.leaking) > 4 else "")
        raise LeakError(
            f"training data must not hold evaluation text: {len(report.leaking)} of {len(report.sets)} evaluation sets "
            f"share some ({listed}); drop the training rows in question, or judge by other text.",
            report,
        )


def signature(train: Iterable[str], train_sha8: str, evaluation: Iterable[str], sha8: str, *, key: str) -> str:
    """What a leak check compared: names, normalised texts (eight hexadecimal digits each), rule and version."""
    parts = [f"key:{key}", "match:exact", f"train:{_names(train)}@{train_sha8}", f"data:{_names(evaluation)}@{sha8}"]
    return "|".join(["leak", *parts, f"st-xling:{__version__}"])


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ",".join(listed) if len(listed) <= 4 else f"{listed[0]}+{len(listed) - 1}"


def _cells(name: str, sides: dict[str, SideLeak]) -> tuple[str, ...]:
    first = next(iter(sides.values()))
    figures = [_figure(sides.get(kind)) for kind in ("source", "target", "pair")]
    if "text" in sides:
        figures[0] = _figure(sides["text"])
    found: dict[str, int] = {}
    for kind, side in sides.items():
        for train, count in side.train.items() if kind != "pair" else ():
            found[train] = found.get(train, 0) + count
    most = sorted(found.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{train} {count:,}" for train, count in most[:3]) + (", …" if len(most) > 3 else "")
    return (name, f"{first.rows:,}", *figures, listed)


def _figure(side: SideLeak | None) -> str:
    return "-" if side is None else f"{side.leaked:,} ({100 * side.share:.1f} %)"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for name, *middle, last in rows:
        figures = (cell.rjust(width) for cell, width in zip(middle, widths[1:]))
        lines.append("  ".join([name.ljust(widths[0]), *figures, last]).rstrip())
    return lines
