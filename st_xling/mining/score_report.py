"""What a scoring run did, in figures and in one line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """Figures of one run.

    Attributes:
        pairs: Lines of the file.
        kept: Lines that were written.
        below: Lines below the threshold, those without a score among them.
        rejected: Lines that guards turned down, by reason code.
        signature: One line that says what was done with what.
    """

    pairs: int
    kept: int
    below: int
    rejected: dict[str, int]
    signature: str

    def as_dict(self) -> dict[str, Any]:
        figures = asdict(self)
        del figures["signature"]
        return figures

    def lines(self) -> list[str]:
        """The figures for a reader."""
        lines = [f"{self.pairs:,} pairs, {self.below:,} below the threshold"]
        if self.rejected:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items())
            lines.append(f"turned down by guards: {reasons}")
        return lines
