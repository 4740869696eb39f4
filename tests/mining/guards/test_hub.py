"""Hubs: counts against plain loops, the bound by hand, both sides."""

import numpy as np
import pytest

from st_xling.mining import neighbours
from st_xling.mining.guards import HubGuard, NeighbourCounts, count_occurrences
from tests.mining.guards.batches import verdicts


def test_counts_equal_loops_in_any_blocks():
    lists = np.random.default_rng(0).integers(-1, 30, (200, 4))
    expected = [sum(row == index for line in lists.tolist() for row in line) for index in range(30)]
    assert count_occurrences([lists], 30).tolist() == expected
    assert count_occurrences(np.array_split(lists, 7), 30).tolist() == expected
    assert count_occurrences([], 3).tolist() == [0, 0, 0]


def test_index_beyond_size():
    with pytest.raises(ValueError, match="expected neighbours below 3, got 3"):
        count_occurrences([np.array([[0, 3]])], 3)


def test_hub_of_real_neighbours():
    """Target 0 is the mean of all sources, so it is in the list of each; nothing else is."""
    random = np.random.default_rng(0)
    sources = random.normal(size=(200, 64)) + 1.0
    targets = np.concatenate([np.ones((1, 64)), random.normal(size=(199, 64))])
    counts = NeighbourCounts.of(*neighbours(sources, targets, k=2))
    assert counts.target[0] == 200
    guard = HubGuard(counts, limit=20)
    first, second = verdicts(guard, ("a", "b"), ("c", "d"))
    assert first == ({"side": "target", "neighbour_of": 200}, 40.0)
    assert (second is None) == (counts.target[1] <= 40 and counts.source[1] <= 40)


def test_bound_on_sides_of_different_size():
    """k 4, 10 sources, 1000 targets: a source may occur 20 * 4 * 100 times, a target 20 * 4."""
    counts = NeighbourCounts(np.zeros(10, np.int32), np.zeros(1000, np.int32), 4)
    guard = HubGuard(counts)
    assert guard.bound(counts.source, counts.target) == 8000
    assert guard.bound(counts.target, counts.source) == 80


def test_limit_itself_is_no_hub_and_source_is_named_first():
    counts = NeighbourCounts(np.array([9, 8], np.int32), np.array([9, 9], np.int32), 2)
    one, two = verdicts(HubGuard(counts, limit=4), ("a", "b"), ("c", "d"))
    assert one.value["side"] == "source"
    assert two == ({"side": "target", "neighbour_of": 9}, 8.0)
    counts = NeighbourCounts(np.array([8, 8], np.int32), np.array([8, 8], np.int32), 2)
    assert verdicts(HubGuard(counts, limit=4), ("a", "b"), ("c", "d")) == [None, None]


def test_limit():
    with pytest.raises(ValueError, match="hub must be at least 1: got 0.5"):
        HubGuard(NeighbourCounts(np.zeros(1), np.zeros(1), 4), limit=0.5)
