"""What a mining run did, in figures and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from st_xling.mining.pipeline.run_report import RunReport
from st_xling.mining.pipeline.taken_threshold import TakenThreshold
from st_xling.mining.thresholds.planted_threshold import PlantedThreshold


@dataclass(frozen=True, kw_only=True)
class MiningReport(RunReport):
    """Figures of one run.

    Attributes:
        pairs: That were written.
        rejected: Pairs that guards turned down, by reason code.
        rows: Lines of each side.
        blank: Of these, without a sentence.
        distinct: Sentences that were mined.
        threshold: That pairs were kept from; ``None`` for all.
        published: Where the threshold comes from, if it is the model's own.
        calibration: Where the threshold comes from, if it was estimated.
        rescored: What a cross-encoder made of the pairs: ``kept``, ``below`` its threshold, ``cut`` to its length, and
            ``too_long`` for it; ``None`` without one.
        signature: One line that says what was done with what.
    """

    pairs: int
    rejected: Mapping[str, int]
    rows: Mapping[str, int]
    blank: Mapping[str, int]
    distinct: Mapping[str, int]
    threshold: float | None
    published: TakenThreshold | None
    calibration: PlantedThreshold | None
    rescored: Mapping[str, int] | None
    signature: str

    def lines(self) -> list[str]:
        """The figures for a reader."""
        lines = [
            f"{side}: {self.rows[side]:,} lines, {self.distinct[side]:,} distinct sentences"
            + (f", {blank:,} blank lines" if (blank := self.blank[side]) else "")
            for side in self.rows
        ]
        if self.published is not None:
            lines.append(self.published.line())
        if (found := self.calibration) is not None:
            (precision, *ends), (recall, *others) = found.precision, found.recall
            lines.append(
                f"threshold {found.threshold:.4f} from {found.planted:,} planted pairs; before guards, precision about "
                f"{precision:.3f} [{ends[0]:.3f}, {ends[1]:.3f}], recall about {recall:.3f} "
                f"[{others[0]:.3f}, {others[1]:.3f}]"
            )
        lines += self.reject_lines()
        if (counts := self.rescored) is not None:
            lines.append(
                f"re-scored: {counts['kept']:,} kept, {counts['below']:,} below the threshold, "
                f"{counts['too_long']:,} left out as their source fills the model; {counts['cut']:,} targets cut"
            )
        return lines
