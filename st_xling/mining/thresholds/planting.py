"""Known translations hidden in a text: what became of them when it was mined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from st_xling.mining.mine import MinedPairs
from st_xling.mining.thresholds.stacked import Stacked
from st_xling.utils.cosines import Embeddings


@dataclass(frozen=True, eq=False)
class Planting:
    """Which rows of a planted set went where, behind the text's own rows.

    Attributes:
        texts: Rows of the text, source and target.
        pairs: Rows planted on both sides: translations to be found.
        decoys: Rows planted on the source side alone, and on the target side alone: whatever they are paired with is
            wrong.
    """

    texts: tuple[int, int]
    pairs: np.ndarray
    decoys: tuple[np.ndarray, np.ndarray]

    @classmethod
    def draw(cls, texts: tuple[int, int], planted: int, *, decoys: float, seed: int) -> Planting:
        """Toss which rows become pairs, and which ones decoys, half of them on either side."""
        order = np.random.default_rng(seed).permutation(planted)
        a_side = max(1, round(planted * decoys / 2))
        return cls(texts, order[2 * a_side :], (order[:a_side], order[a_side : 2 * a_side]))

    def sides(self, texts: tuple[Embeddings, Embeddings], planted: tuple[Embeddings, Embeddings]) -> list[Stacked]:
        """Both sides to mine: the text, the pairs, that side's decoys."""
        return [
            Stacked([text, plants[self.pairs], plants[alone]])
            for text, plants, alone in zip(texts, planted, self.decoys)
        ]

    def scores(self, mined: MinedPairs, side: int) -> dict[str, np.ndarray]:
        """Best score of each sentence of one side in a mined pair, minus infinity without one.

        Args:
            mined: Pairs of both :meth:`sides`.
            side: 0 for sources, 1 for targets.
        Returns:
            ``text``: of the text's sentences; ``right``: of planted pairs' sentences with their partner; ``wrong``:
            with anything else; ``decoy``: of decoys.
        """
        own, other = (mined.source_indices, mined.target_indices)[:: 1 if side == 0 else -1]
        n, m = self.texts[side], len(self.pairs)
        best = np.full(n + m + len(self.decoys[side]), -np.inf)
        np.maximum.at(best, own, mined.scores)
        partners = (own >= n) & (own < n + m) & (own - n == other - self.texts[1 - side])
        right = np.full(m, -np.inf)
        np.maximum.at(right, own[partners] - n, mined.scores[partners])
        wrong = np.full(m, -np.inf)
        others = (own >= n) & (own < n + m) & ~partners
        np.maximum.at(wrong, own[others] - n, mined.scores[others])
        return {"text": best[:n], "right": right, "wrong": wrong, "decoy": best[n + m :]}
