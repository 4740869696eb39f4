"""Guard ``unaligned``: words of one sentence have no partner in the other, as where text was cut or added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from st_xling.mining.guards.predicates import CandidateBatch, Verdict
from st_xling.mining.guards.prefilter import load_once

#: A single word without a partner is common in free translations.
LEAST_WORDS = 2


@dataclass(frozen=True, eq=False)
class UnalignedGuard:
    """Turns down a pair of which too many content words have no partner in the other sentence.

    Which words have none :func:`~st_xling.mining.explain_pairs` says. It costs one encoding of both sentences a pair,
    hence it is off unless a limit is set, and looks last.

    Args:
        model: An encoder of both languages, or the Hub id or folder of one: that by which is mined does.
        limit: Turn down from this share on of words without a partner, and at least two, of source or target, in
            (0, 1]. Of 600 German-English pairs, by multilingual-e5-small, 0.15 turns down 1.3 % of the sound ones, and
            76 % of those to which half a sentence was added, 65 % of those that lost two thirds, 14 % of those that
            lost one, 84 % of those that are no translations.
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
            raise ValueError(f"unaligned must lie in (0, 1]: got {self.limit}; 0.15 is a start.")
        from st_xling.models import backbone

        if isinstance(self.model, str):
            object.__setattr__(self, "model", load_once(self.model))
        backbone(self.model)  # raises for a model without token states

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        from st_xling.mining.explain import explain_pairs

        languages = {"source_language": self.source_language, "target_language": self.target_language}
        verdicts: list[Verdict | None] = []
        for pair in explain_pairs(self.model, batch.sources, batch.targets, **languages).pairs:  # type: ignore[arg-type]
            counts = [
                sum(bool(one.reason) for one in words if one.content)
                for words in (pair.source_words, pair.target_words)
            ]
            lacks = any(n >= LEAST_WORDS and 1 - share >= self.limit for n, share in zip(counts, pair.shares))
            value = {side: round(1 - share, 4) for side, share in zip(("source", "target"), pair.shares)}
            verdicts.append(Verdict(value, self.limit) if lacks else None)
        return verdicts
