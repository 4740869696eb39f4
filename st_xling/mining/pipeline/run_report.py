"""What the reports of mining and scoring share: figures, a line on rejects, and the signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from st_xling._version import __version__
from st_xling.mining.guards import PairGuards
from st_xling.mining.pipeline.guarded_pairs import guard_signature
from st_xling.mining.pipeline.options import PairOptions
from st_xling.mining.vectors import VectorMakers, model_names


class RunReport:
    """A frozen dataclass of the figures of one run, its ``signature`` among them."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    rejected: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Figures, as JSON can write them."""
        figures = asdict(self)
        del figures["signature"]
        return figures

    def reject_lines(self) -> list[str]:
        """How many pairs each guard turned down, for a reader; none without rejects."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items())
        return [f"turned down by guards: {reasons}"] if reasons else []


def run_signature(
    command: str,
    asked: PairOptions,
    makers: VectorMakers,
    judge: PairGuards,
    *,
    method: str,
    threshold: str | None = None,
    choice: tuple[str, ...] = (),
    texts: list[str],
) -> str:
    """One line that says what was done with what.

    Args:
        command: What was done.
        asked: Options.
        makers: What gave the vectors.
        judge: Guards; those that could not work are left out.
        method: By which neighbours were searched.
        threshold: What to say of it; by default the one that was asked for.
        choice: Further words on how pairs were chosen.
        texts: Names and hashes.
    """
    given = "none" if asked.threshold is None else f"{asked.threshold:g}"
    words = [
        *(command, f"model:{model_names(makers)}", f"margin:{asked.margin}", f"k:{asked.k}", *choice),
        *(f"method:{method}", f"guards:{guard_signature(asked.guards, list(judge.idle))}"),
        *(f"threshold:{threshold or given}", "duplicates:folded", *texts, f"st-xling:{__version__}"),
    ]
    return "|".join(words)
