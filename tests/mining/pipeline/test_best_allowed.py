"""Choosing among allowed neighbours: equals plain loops over all candidates, and asks about each pair once."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from st_xling.mining import RETRIEVALS, MinedPairs, Neighbours, margin_scores, mine, neighbours
from st_xling.mining.mine import best_pairs


def sides(sources: int, targets: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of which many agree, so that there are ties, and one part negative."""
    random = np.random.default_rng(seed)
    return tuple(random.integers(-1, 3, (rows, 4)) + np.array([2, 0, 0, 0.5]) for rows in (sources, targets))


def columns(pairs: MinedPairs) -> list[tuple[float, int, int]]:
    return list(zip(pairs.scores.tolist(), pairs.source_indices.tolist(), pairs.target_indices.tolist()))


def by_definition(
    forward: Neighbours, backward: Neighbours, forbidden: set[tuple[int, int]], margin: str, retrieval: str
) -> list[tuple[float, int, int]]:
    """All candidates that are allowed and have a score; each sentence's best of its own list; then the retrieval."""

    def score(source: int, target: int, cosine: float) -> float:
        means = (forward.means[source], backward.means[target])
        return float(margin_scores(cosine, *means, margin=margin))

    def best(own: Neighbours, turned: bool) -> set[tuple[float, int, int]]:
        chosen = set()
        for row, (others, cosines) in enumerate(zip(own.indices.tolist(), own.similarities.tolist())):
            found = []
            for other, cosine in zip(others, cosines):
                pair = (other, row) if turned else (row, other)
                if pair not in forbidden and (value := score(*pair, cosine)) > -np.inf:
                    found.append((-value, other, pair))
            if found:
                value, _, pair = min(found)
                chosen.add((-value, *pair))
        return chosen

    from_source, from_target = best(forward, False), best(backward, True)
    together = {
        "forward": from_source,
        "backward": from_target,
        "intersect": from_source & from_target,
        "max": from_source | from_target,
    }[retrieval]
    ordered = sorted(together, key=lambda pair: (-pair[0], *pair[1:]))
    if retrieval != "max":
        return ordered
    kept: list[tuple[float, int, int]] = []
    for pair in ordered:
        if all(pair[1] != other[1] and pair[2] != other[2] for other in kept):
            kept.append(pair)
    return kept


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize(("margin", "share"), [("ratio", 0.3), ("distance", 0.7), ("ratio", 1.0), ("absolute", 0.0)])
def test_by_definition(retrieval: str, margin: str, share: float) -> None:
    for seed in range(8):
        forward, backward = neighbours(*sides(13, 17, seed), k=4)
        random = np.random.default_rng(seed)
        forbidden = {pair for pair in product(range(13), range(17)) if random.random() < share}
        asked: list[tuple[int, int]] = []

        def allow(pairs: MinedPairs, forbidden=forbidden, asked=asked) -> np.ndarray:
            some = list(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist()))
            asked.extend(some)
            return np.array([pair not in forbidden for pair in some], dtype=bool)

        found = best_pairs(forward, backward, allow=allow, margin=margin, retrieval=retrieval)
        assert columns(found) == by_definition(forward, backward, forbidden, margin, retrieval)
        assert len(asked) == len(set(asked))


@pytest.mark.parametrize("retrieval", RETRIEVALS)
def test_without_a_ban_it_is_mine(retrieval: str) -> None:
    source, target = sides(40, 30, 3)
    for threshold in (None, 1.01):
        expected = mine(source, target, k=3, retrieval=retrieval, threshold=threshold)
        found = best_pairs(*neighbours(source, target, k=3), retrieval=retrieval, threshold=threshold)
        assert columns(found) == columns(expected)


def test_pairs_below_the_threshold_are_not_asked_about() -> None:
    lowest = []

    def allow(pairs: MinedPairs) -> np.ndarray:
        lowest.append(pairs.scores.min())
        return np.zeros(len(pairs), dtype=bool)

    found = best_pairs(*neighbours(*sides(40, 30, 3), k=3), allow=allow, threshold=1.01)
    assert len(found) == 0 and min(lowest) >= 1.01
