"""What a scoring run did, in figures and in one line."""

from __future__ import annotations

from dataclasses import dataclass

from st_xling.mining.pipeline.run_report import RunReport


@dataclass(frozen=True, kw_only=True)
class ScoreReport(RunReport):
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

    def lines(self) -> list[str]:
        """The figures for a reader."""
        return [f"{self.pairs:,} pairs, {self.below:,} below the threshold", *self.reject_lines()]
