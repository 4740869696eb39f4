"""Guard ``prefilter``: by static embeddings, which cost a table look-up a token, the two sides lie far apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from st_xling.mining.guards.predicates import REMEMBERED, CandidateBatch, Verdict


@dataclass(frozen=True, eq=False)
class PrefilterGuard:
    """Turns down a pair whose static embeddings have a low cosine.

    A text without a token that the model knows has no vector: its pairs are left to other guards.

    Args:
        model: A ``SentenceTransformer`` of static embeddings of both languages, or the Hub id or folder of one.
        limit: Turn down below this cosine, in (-1, 1). What suits depends on the model: ``python -m
            tests.benchmarks.cascade`` measures it.
    Raises:
        ValueError: If no model can be loaded at that name, or its embeddings are not static.
    """

    model: Any
    limit: float = 0.2
    reason: ClassVar[str] = "prefilter"
    _vectors: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not -1 < self.limit < 1:
            raise ValueError(f"prefilter must lie in (-1, 1): got {self.limit}; 0.2 is a start.")
        if isinstance(self.model, str):
            object.__setattr__(self, "model", load_once(self.model))
        kind = type(self.model[0]).__name__
        if kind != "StaticEmbedding":
            raise ValueError(
                f"prefilter_model (--prefilter) must be a model of static embeddings: got a {kind}, which takes as "
                "long as the encoder whose work it is to save; give it as the model, or a cross-encoder by --rescore."
            )

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        texts = dict.fromkeys([*batch.sources, *batch.targets])
        if len(self._vectors) + len(texts) > 2 * REMEMBERED:
            self._vectors.clear()
        if new := [text for text in texts if text not in self._vectors]:
            from st_xling.models.encode import encode

            self._vectors.update(zip(new, encode(self.model, new, normalize_embeddings=True)))
        cosines = [float(self._vectors[one] @ self._vectors[other]) for one, other in zip(batch.sources, batch.targets)]
        return [
            Verdict(round(cosine, 4), self.limit)
            if cosine < self.limit and self._vectors[source].any() and self._vectors[target].any()
            else None
            for cosine, source, target in zip(cosines, batch.sources, batch.targets)
        ]


@lru_cache(maxsize=2)
def load_once(name: str) -> Any:
    """The model of a guard, by Hub id or folder."""
    from st_xling.models import load_encoder

    return load_encoder(name, device="cpu")
