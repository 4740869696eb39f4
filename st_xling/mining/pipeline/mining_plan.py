"""What mining will take, in figures and in lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SearchCost:
    """What one way to search takes.

    Attributes:
        seconds: To search once.
        memory_bytes: Beyond the encoder's.
    """

    seconds: float
    memory_bytes: int


@dataclass(frozen=True, kw_only=True)
class MiningPlan:
    """Estimates.

    Attributes:
        rows: Lines of each side, duplicates and blank ones not yet told apart.
        dim: Of the vectors.
        method: How neighbours are searched: what was asked for, or what ``"auto"`` picks.
        device: Where.
        encode_seconds: To embed what has no embeddings yet.
        search_seconds: To search.
        memory_bytes: Beyond the encoder's.
        disk_bytes: For the work and the pairs, at most.
        disk_free_bytes: Where the work is to be kept.
        automatic: Whether ``"auto"`` picked the method.
        calibrate_seconds: To estimate a threshold, at most; 0 where none is to be.
        searches: What each method would take, by name; a cluster has only the exact one.
        guard_seconds: For the guards to look at candidates.
    """

    rows: dict[str, int]
    dim: int
    method: str
    device: str
    encode_seconds: float
    search_seconds: float
    memory_bytes: int
    disk_bytes: int
    disk_free_bytes: int
    automatic: bool
    calibrate_seconds: float
    searches: dict[str, SearchCost]
    guard_seconds: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The plan for a reader."""
        picked = ", picked by auto" if self.automatic else ""
        calibrating = f", up to {_duration(self.calibrate_seconds)} to calibrate" if self.calibrate_seconds else ""
        times = f"about {_duration(self.encode_seconds)} to embed, {_duration(self.search_seconds)} to search"
        times += f", {_duration(self.guard_seconds)} for the guards" if self.guard_seconds else ""
        short = " — not enough" if self.disk_bytes > self.disk_free_bytes else ""
        return [
            *(f"{side}: {rows:,} lines" for side, rows in self.rows.items()),
            f"search: {self.method}, dim {self.dim}, on {self.device}{picked}",
            f"time: {times}{calibrating}",
            f"memory: about {_size(self.memory_bytes)} beyond the encoder's",
            f"disk: up to {_size(self.disk_bytes)} of {_size(self.disk_free_bytes)} free{short}",
            *(
                f"{method} instead: about {_duration(cost.seconds)} to search, {_size(cost.memory_bytes)}"
                + (", some neighbours missed" if method == "approximate" else "")
                for method, cost in self.searches.items()
                if method != self.method
            ),
        ]


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB" if count < 10 * 2**30 else f"{count / 2**30:,.0f} GiB"
