"""Guard ``unaligned``: words of one sentence have no partner in the other, as where text was cut or added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from st_xling.mining.guards.predicates import CandidateBatch, Verdict
from st_xling.mining.guards.prefilter import load_once


@dataclass(frozen=True, eq=False)
class UnalignedGuard:
    """Turns down a pair of which too many content words have no partner in the other sentence.

    Which words have none :func:`~st_xling.mining.explain_pairs` says. It costs one encoding of both sentences a pair,
    hence it is off unless a limit is set, and looks last.

    Args:
        model: An encoder of both languages, or the Hub id or folder of one: that by which is mined does.
        limit: Turn down from this share on of words without a partner, of source or target, in (0, 1].
        source_language: Code, for copied words that belong to the other language.
        target_language: The same of the targets.
    Raises:
        ValueError: If no model can be loaded at that name, or it gives no token states.
    """

    model: Any
    limit: float
    source_language: str | None = None
    target_language: str | None = None
    reason: ClassVar[str] = "unaligned"

    def __post_init__(self) -> None:
        if not 0 < self.limit <= 1:
            raise ValueError(f"unaligned must lie in (0, 1]: got {self.limit}; 0.5 is a start.")
        from st_xling.models import backbone

        if isinstance(self.model, str):
            object.__setattr__(self, "model", load_once(self.model))
        backbone(self.model)  # raises for a model without token states

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        from st_xling.mining.explain import explain_pairs

        languages = {"source_language": self.source_language, "target_language": self.target_language}
        verdicts: list[Verdict | None] = []
        for pair in explain_pairs(self.model, batch.sources, batch.targets, **languages).pairs:  # type: ignore[arg-type]
            lacking = {side: round(1 - share, 4) for side, share in zip(("source", "target"), pair.shares)}
            verdicts.append(Verdict(lacking, self.limit) if max(lacking.values()) >= self.limit else None)
        return verdicts
