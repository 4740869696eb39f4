"""Approximate neighbours: exact in what they compare, complete in number, and near enough in what they find."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import GuardOptions, calibrate, mine, mine_texts, neighbours, score_pairs, write_store, xsim
from st_xling.mining.search.approximate import approximate_neighbours
from st_xling.mining.search.find import find_neighbours
from st_xling.utils.cosines import exact_cosines, fixed_point
from tests.mining.search.test_neighbours import embeddings, small_integers

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


def test_few_probes_find_less_and_the_sample_shows_it():
    source, target = embeddings(2000, 0, 24), embeddings(2000, 1, 24)
    few, many = (approximate_neighbours(source, target, cells=40, probes=p, recall_sample=500) for p in (1, 12))
    exact = neighbours(source, target)
    for found in (few, many):
        assert found.recall == pytest.approx(shares(found, exact), abs=0.04)
    assert max(few.recall) < 0.6 < 0.8 < min(many.recall)
    assert_exact_where_found(few, source, target)


@settings(max_examples=30, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4), st.integers(1, 6), st.integers(0, 9))
def test_with_all_cells_equals_exact_even_under_ties(source, target, k, cells, seed):
    found = approximate_neighbours(source, target, k=k, cells=cells, probes=cells, seed=seed)
    for one, other in zip(sides(found), neighbours(source, target, k=k)):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert one.indices.tobytes() == other.indices.tobytes()
    assert found.recall == (1.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4), st.integers(1, 6), st.integers(0, 9))
def test_rows_compared_with_too_few_are_completed(source, target, k, cells, seed):
    """One probe of cells that hold few: no list may lack, repeat or invent a neighbour."""
    assert_exact_where_found(
        approximate_neighbours(source, target, k=k, cells=cells, probes=1, seed=seed), source, target
    )


def test_k_as_large_as_a_side():
    source, target = embeddings(50, 0), embeddings(7, 1)
    found = approximate_neighbours(source, target, k=7, cells=5, probes=1)
    assert found.completed[0] == 50  # no cell holds all targets
    for one, other in zip(sides(found), neighbours(source, target, k=7)):
        if one is found.forward:
            assert one.indices.tobytes() == other.indices.tobytes()
    assert_exact_where_found(found, source, target)


@pytest.mark.parametrize("distinct", [1, 3])
def test_of_many_duplicates_the_first_are_found(distinct):
    """All sentences equal, or nearly all: the cells degenerate, products cannot choose, indices must."""
    rows = embeddings(distinct, 3, 64)
    source, target = np.tile(rows, (1500 // distinct, 1)), np.tile(rows, (1200 // distinct, 1))
    found = approximate_neighbours(source, target, cells=8, probes=2)
    for one, other in zip(sides(found), neighbours(source, target)):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert one.indices.tobytes() == other.indices.tobytes()


def test_duplicates_among_others_go_by_index():
    source, target = clustered(800, 1), clustered(600, 2)
    target[300:] = target[:300]
    found = approximate_neighbours(source, target, cells=12, probes=3)
    assert_exact_where_found(found, source, target)
    best = found.forward.indices[:, 0]
    assert (best < 300).all()  # its copy, 300 further on, is as near
    assert (found.forward.indices[:, 1] == best + 300).all()


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
        for one, other in zip(sides(found), sides(expected)):
            assert one.similarities.tobytes() == other.similarities.tobytes()
            assert one.indices.tobytes() == other.indices.tobytes()


def test_a_seed_repeats_and_another_differs():
    source, target = embeddings(1500, 0, 24), embeddings(1500, 1, 24)
    one, same, other = (approximate_neighbours(source, target, cells=40, probes=2, seed=seed) for seed in (0, 0, 1))
    assert one.forward.indices.tobytes() == same.forward.indices.tobytes()
    assert one.recall == same.recall
    assert one.forward.indices.tobytes() != other.forward.indices.tobytes()


def test_no_sample_no_recall():
    found = approximate_neighbours(embeddings(50, 0), embeddings(50, 1), recall_sample=0)
    assert found.recall is None
    assert str(found) == "recall not measured"


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


def test_bad_rows_are_named():
    bad = embeddings(5, 0)
    bad[2] = 0
    with pytest.raises(ValueError, match="target_embeddings.*only zeros in row 2"):
        approximate_neighbours(embeddings(5, 1), bad, k=1)


def test_as_a_method_of_the_search(capsys, monkeypatch):
    source, target = clustered(900, 1), clustered(700, 2)
    expected = approximate_neighbours(source, target)
    found = find_neighbours(source, target, method="approximate", progress=True)
    assert f"approximate: {expected}" in capsys.readouterr().err
    assert found[0].indices.tobytes() == expected.forward.indices.tobytes()
    exact = find_neighbours(source, target, method="auto", progress=True)
    assert "auto: exact search of 900 x 700 sentences of dim 24 (1.5e+07 mult" in capsys.readouterr().err
    assert exact[0].indices.tobytes() == neighbours(source, target)[0].indices.tobytes()
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 10**7)
    find_neighbours(source, target, method="auto", progress=True)
    assert "auto: approximate search of 900 x 700" in capsys.readouterr().err


def test_pairs_of_two_texts(tmp_path, monkeypatch):
    """From files to pairs, with the method that ``auto`` chose in the signature."""
    rows, signatures = clustered(400, 1), {}
    options = {"guards": GuardOptions().with_flags(limits=[], off=["all"])}
    for side, offset in (("source", 0.0), ("target", 0.3)):
        (tmp_path / side).write_text("".join(f"{side} ทดสอบ {row}\n" for row in range(400)), encoding="utf-8")
        write_store(tmp_path / f"{side}.store", rows + offset)
        options[f"{side}_embeddings"] = tmp_path / f"{side}.store"
    texts = tmp_path / "source", tmp_path / "target"
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 10**6)
    for method in ("exact", "approximate", "auto"):
        signatures[method] = mine_texts(*texts, tmp_path / method, method=method, **options).signature
    assert "|method:exact|" in signatures["exact"]
    assert signatures["approximate"] == signatures["auto"] and "|method:approximate|" in signatures["auto"]
    lines = {method: set((tmp_path / method).read_text(encoding="utf-8").splitlines()) for method in signatures}
    assert lines["approximate"] == lines["auto"]
    assert len(lines["exact"] & lines["approximate"]) >= 0.99 * len(lines["exact"]) > 300


@pytest.mark.parametrize("method", ["approximate", "auto"])
def test_as_a_method_of_whatever_searches(method, capsys, monkeypatch):
    """Mining, scores, xsim and calibration say the recall of the search they ran; with all cells it is exact."""
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 10**6)
    source, target = clustered(900, 1), clustered(900, 1) + np.float32(0.3)
    options = {"method": method, "progress": True}
    recall = "approximate: recall of exact neighbours: source side 1.0000"
    mined, exact = mine(source, target, **options), mine(source, target)
    assert recall in capsys.readouterr().err
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


def test_mined_pairs_of_few_probes_are_nearly_all(monkeypatch):
    """With cells of 20 sentences, 40 of 200 are looked at: what is missed is little."""
    monkeypatch.setattr("st_xling.mining.search.approximate.ROWS_PER_CELL", 20)
    random = np.random.default_rng(0)
    source = random.standard_normal((2000, 24), dtype=np.float32)
    target = source + 0.5 * random.standard_normal((2000, 24), dtype=np.float32)
    exact, found = mine(source, target), mine(source, target, method="approximate")
    pairs = [set(zip(one.source_indices.tolist(), one.target_indices.tolist())) for one in (exact, found)]
    assert len(pairs[0] & pairs[1]) >= 0.95 * len(pairs[0])
    assert exact.scores.tobytes() != found.scores.tobytes()
