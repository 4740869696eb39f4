"""Approximate neighbours: exact in what they compare, complete in number, and near enough in what they find."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import calibrate, mine, neighbours, score_pairs, xsim
from st_xling.mining.search.approximate import approximate_neighbours
from st_xling.utils.cosines import exact_cosines, fixed_point
from tests.mining.search.test_exact import embeddings, small_integers

pytestmark = pytest.mark.usefixtures("each_precision")


def clustered(rows, seed, dim=24, centres=40):
    """Translations near each other, in topics, either side moved by an offset of its own as languages are."""
    shared = np.random.default_rng(7)
    topics = shared.standard_normal((centres, dim))
    meaning = topics[shared.integers(0, centres, rows)] + 0.5 * shared.standard_normal((rows, dim))
    own = np.random.default_rng(seed)
    return (meaning + 0.1 * own.standard_normal((rows, dim)) + own.standard_normal(dim)).astype(np.float32)


def sides(found):
    return found.forward, found.backward


def assert_equal(found, expected):
    for one, other in zip(found, expected):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert one.indices.tobytes() == other.indices.tobytes()


def assert_exact_where_found(found, source, target):
    """Every score is the exact cosine of its pair; each list is of different rows, best first, lowest index first."""
    for result, own, other in zip(sides(found), (source, target), (target, source)):
        cosines = exact_cosines(fixed_point(own), fixed_point(other))
        assert result.indices.min() >= 0 and result.indices.max() < len(other)
        np.testing.assert_array_equal(result.similarities, np.take_along_axis(cosines, result.indices, axis=1))
        for values, indices in zip(result.similarities.tolist(), result.indices.tolist()):
            keys = [(-value, index) for value, index in zip(values, indices)]
            assert keys == sorted(set(keys))


def shares(found, exact):
    return [np.mean((e.indices[:, :, None] == f.indices[:, None]).any(2)) for f, e in zip(sides(found), exact)]


def test_finds_nearly_all_and_says_how_many():
    source, target = clustered(3000, 1), clustered(2600, 2)
    found = approximate_neighbours(source, target, cells=40, probes=10, recall_sample=3000)
    assert min(shares(found, neighbours(source, target))) >= 0.99
    assert found.recall == pytest.approx(shares(found, neighbours(source, target)), abs=1e-12)
    assert found.sampled == (3000, 2600)
    assert str(found).startswith("recall of exact neighbours: source side 0.99")
    assert_exact_where_found(found, source, target)
    few = approximate_neighbours(source, target, cells=40, probes=1, recall_sample=500)
    assert few.recall == pytest.approx(shares(few, neighbours(source, target)), abs=0.04)
    assert max(few.recall) < 0.97
    assert_exact_where_found(few, source, target)


@settings(max_examples=30, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4), st.integers(1, 6), st.integers(0, 9))
def test_with_all_cells_equals_exact_even_under_ties(source, target, k, cells, seed):
    found = approximate_neighbours(source, target, k=k, cells=cells, probes=cells, seed=seed)
    assert_equal(sides(found), neighbours(source, target, k=k))
    assert found.recall == (1.0, 1.0)
    # One probe of cells that hold few: no list may lack, repeat or invent a neighbour.
    few = approximate_neighbours(source, target, k=k, cells=cells, probes=1, seed=seed)
    assert_exact_where_found(few, source, target)


@pytest.mark.parametrize("distinct", [1, 3])
def test_of_many_duplicates_the_first_are_found(distinct):
    """All sentences equal, or nearly all: the cells degenerate, products cannot choose, indices must."""
    rows = embeddings(distinct, 3, 64)
    source, target = np.tile(rows, (1500 // distinct, 1)), np.tile(rows, (1200 // distinct, 1))
    found = approximate_neighbours(source, target, cells=8, probes=2)
    assert_equal(sides(found), neighbours(source, target))


def test_memory_maps_and_small_memory_change_nothing(tmp_path):
    source, target = clustered(3000, 1, dim=64), clustered(2600, 2, dim=64)
    expected = approximate_neighbours(source, target, cells=20, probes=5)
    maps = []
    for name, side in (("source", source), ("target", target)):
        np.save(tmp_path / f"{name}.npy", side)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    for found in (
        approximate_neighbours(*maps, cells=20, probes=5, memory_mib=1),
        approximate_neighbours(*map(torch.from_numpy, (source, target)), cells=20, probes=5),
    ):
        assert_equal(sides(found), sides(expected))


def test_a_seed_repeats_and_another_differs():
    source, target = embeddings(1500, 0, 24), embeddings(1500, 1, 24)
    one, same, other = (approximate_neighbours(source, target, cells=40, probes=2, seed=seed) for seed in (0, 0, 1))
    assert one.forward.indices.tobytes() == same.forward.indices.tobytes()
    assert one.recall == same.recall
    assert one.forward.indices.tobytes() != other.forward.indices.tobytes()
    assert str(approximate_neighbours(source, target, recall_sample=0)) == "recall not measured"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"k": 4}, "k=4 for 5 source and 3 target"),
        ({"k": 1, "probes": 0}, "probes must be at least 1: got 0"),
        ({"k": 1, "cells": 0}, "cells must be at least 1: got 0"),
        ({"k": 1, "recall_sample": -1}, "recall_sample must be at least 0: got -1"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        approximate_neighbours(embeddings(5, 0), embeddings(3, 1), **options)
    bad = embeddings(5, 0)
    bad[2] = 0
    with pytest.raises(ValueError, match="target_embeddings.*only zeros in row 2"):
        approximate_neighbours(embeddings(5, 1), bad, k=1)


@pytest.mark.parametrize("method", ["approximate", "auto"])
def test_as_a_method_of_whatever_searches(method, capsys, monkeypatch):
    """Mining, scores, xsim and calibration say the recall of the search they ran; with all cells it is exact."""
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 10**6)
    source, target = clustered(900, 1), clustered(900, 1) + np.float32(0.3)
    options = {"method": method, "progress": True}
    recall = "approximate: recall of exact neighbours: source side 1.0000"
    mined, exact = mine(source, target, **options), mine(source, target)
    logged = capsys.readouterr().err
    assert recall in logged and ("auto: approximate search of 900 x 900" in logged) == (method == "auto")
    assert mined.scores.tobytes() == exact.scores.tobytes() and len(mined) > 500
    assert score_pairs(source, target, **options).tobytes() == score_pairs(source, target).tobytes()
    assert recall in capsys.readouterr().err
    assert xsim(source, target, **options) == xsim(source, target)
    assert recall in capsys.readouterr().err
    planted = source[:200], target[:200]
    found = calibrate(source[200:], target[200:], *planted, **options)
    assert recall in capsys.readouterr().err
    assert found.precision.tobytes() == calibrate(source[200:], target[200:], *planted).precision.tobytes()
    with pytest.raises(ValueError, match="method must be one of exact, approximate, auto: got 'fast'"):
        mine(source, target, method="fast")
