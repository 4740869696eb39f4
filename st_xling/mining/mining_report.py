"""What a mining run did, in figures and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from st_xling.mining.planted_threshold import PlantedThreshold


@dataclass(frozen=True, kw_only=True)
class MiningReport:
    """Figures of one run.

    Attributes:
        pairs: That were written.
        rejected: Pairs that guards turned down, by reason code.
        rows: Lines of each side.
        blank: Of these, without a sentence.
        distinct: Sentences that were mined.
        threshold: That pairs were kept from; ``None`` for all.
        calibration: Where the threshold comes from, if it was estimated.
        signature: One line that says what was done with what.
    """

    pairs: int
    rejected: Mapping[str, int]
    rows: Mapping[str, int]
    blank: Mapping[str, int]
    distinct: Mapping[str, int]
    threshold: float | None
    calibration: PlantedThreshold | None
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Figures, as JSON can write them."""
        figures = asdict(self)
        del figures["signature"]
        return figures

    def lines(self) -> list[str]:
        """The figures for a reader."""
        lines = [
            f"{side}: {self.rows[side]:,} lines, {self.distinct[side]:,} distinct sentences"
            + (f", {blank:,} blank lines" if (blank := self.blank[side]) else "")
            for side in self.rows
        ]
        if (found := self.calibration) is not None:
            (precision, *ends), (recall, *others) = found.precision, found.recall
            lines.append(
                f"threshold {found.threshold:.4f} from {found.planted:,} planted pairs; before guards, precision about "
                f"{precision:.3f} [{ends[0]:.3f}, {ends[1]:.3f}], recall about {recall:.3f} "
                f"[{others[0]:.3f}, {others[1]:.3f}]"
            )
        if self.rejected:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items())
            lines.append(f"turned down by guards: {reasons}")
        return lines
