"""What a cross-encoder is trained by: strategy, negatives, head, loss and training options."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from st_xling.models.cross_encoder import Head
from st_xling.training.recipe import TrainingOptions
from st_xling.training.reranker.ranking_losses import RankingLoss

XPI = "xpi"


@dataclass(frozen=True)
class NegativeOptions:
    """Pairs of label 0 that are drawn.

    Attributes:
        per_positive: For each positive pair; ``None``: 1, or none where the data label negatives.
        hard: So many of these out of the same group, e.g. paragraphs of the same article.
    """

    per_positive: int | None = None
    hard: int = 0


@dataclass(frozen=True)
class SentenceOptions:
    """What XPI makes of parallel text.

    Attributes:
        size: Rows drawn of all parallel text; ``None``: all. The paper's: 100,000.
        mono_positives: Two sentences of one language that mean the same: ``"identical"`` or ``"thinned"``.
    """

    size: int | None = None
    mono_positives: str = "identical"


@dataclass(frozen=True)
class PairOptions:
    """How a pair becomes tokens. ``None`` keeps what the model has."""

    max_length: int | None = None


@dataclass(frozen=True)
class CrossEncoderRecipe:
    """A named way to train a cross-encoder.

    Attributes:
        strategy: ``"xpi"``, or how translated query-passage pairs are put together: ``STRATEGIES``.
        xpi: The recipe of the stage before, whose encoder is kept and whose head is not; ``None``: none.
    """

    name: str
    summary: str
    strategy: str
    negatives: NegativeOptions = field(default_factory=NegativeOptions)
    sentences: SentenceOptions = field(default_factory=SentenceOptions)
    head: Head = "cls"
    loss: RankingLoss = field(default_factory=RankingLoss)
    model: PairOptions = field(default_factory=PairOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    xpi: CrossEncoderRecipe | None = None

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
