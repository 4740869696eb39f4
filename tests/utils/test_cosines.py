"""Nearest neighbors, P@1 and P@N: equal to the loops, first of equals, blind to blocks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.evaluation import precision_at, retrieval_accuracy, translation_ranks
from st_xling.utils.cosines import STEPS, nearest, rounded_cosines, unit_vectors
from tests import reference_mining as reference


def test_equals_loops():
    random = np.random.default_rng(0)
    source, target = random.standard_normal((9, 5)), random.standard_normal((9, 5))
    cosines = [[reference.cosine(query, other) for other in target] for query in source]
    orders = [sorted(range(9), key=lambda place, row=row: (-row[place], place)) for row in cosines]
    assert nearest(source, target).tolist() == [order[0] for order in orders]
    assert nearest(source[:4], target).tolist() == [order[0] for order in orders[:4]]
    ranks = [order.index(row) for row, order in enumerate(orders)]
    assert translation_ranks(source, target).tolist() == ranks
    forward, backward = precision_at(source, target, at=(1, 3, 9))
    assert forward == {n: sum(rank < n for rank in ranks) / 9 for n in (1, 3, 9)}
    assert backward == precision_at(target, source, at=(1, 3, 9))[0]
    assert forward[9] == backward[9] == 1.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12))
def test_blocks_do_not_matter_and_ties_take_the_lowest_index(seed, block):
    random = np.random.default_rng(seed)
    corpus = random.standard_normal((4, 33))[random.integers(0, 4, 11)].astype(np.float32)
    queries = corpus + random.standard_normal((11, 33)).astype(np.float32)
    found, ranks = nearest(queries, corpus), translation_ranks(queries, corpus)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("st_xling.utils.cosines._BLOCK", block)
        assert nearest(queries, corpus).tolist() == found.tolist()
        assert translation_ranks(queries, corpus).tolist() == ranks.tolist()
    for index in found:
        assert index == np.flatnonzero((corpus == corpus[index]).all(axis=1))[0]
    assert ((ranks == 0) == (found == np.arange(11))).all()
    forward, backward = precision_at(queries, corpus, at=(1,))
    assert (forward[1], backward[1]) == retrieval_accuracy(queries, corpus)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    random = np.random.default_rng(0)
    queries, corpus = (torch.from_numpy(random.standard_normal((n, 8))).to(dtype) for n in (5, 9))
    assert nearest(queries, corpus).tolist() == nearest(queries.double().numpy(), corpus.double().numpy()).tolist()


def test_retrieval_accuracy_by_hand():
    """Targets 0 and 1 are the same vector: source 1 finds target 0, a miss; both targets find source 0, one miss."""
    source = np.array([[1.0, 0], [1, 0.1], [0, 1]])
    target = np.array([[1.0, 0], [1, 0], [0, 1]])
    assert retrieval_accuracy(source, target) == pytest.approx((2 / 3, 2 / 3))
    assert retrieval_accuracy(source[:1], target[:1]) == (1.0, 1.0)


def test_errors():
    with pytest.raises(ValueError, match="queries.*only zeros in row 1;"):
        nearest(np.array([[1.0, 0], [0, 0]]), np.eye(2))
    with pytest.raises(ValueError, match="corpus.*NaN or infinity in row 0;"):
        nearest(np.eye(2), np.array([[np.nan, 0], [0, 1]]))
    with pytest.raises(ValueError, match="same dim: got 2 and 3"):
        nearest(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="row-aligned: got 2 and 3 rows"):
        retrieval_accuracy(np.eye(2), np.eye(3, 2) + 1)


@pytest.mark.parametrize("dim", [1, 3, 384, 1024])
def test_near_the_definition(dim):
    random = np.random.default_rng(dim)
    first, second = random.standard_normal((5, dim)), random.standard_normal((4, dim))
    cosines = rounded_cosines(unit_vectors(first) @ unit_vectors(second).T)
    np.testing.assert_allclose(cosines, [[reference.cosine(a, b) for b in second] for a in first], atol=1e-7)
    assert cosines.dtype == np.float32 and (cosines * STEPS == np.rint(cosines * STEPS)).all()


def test_the_order_of_a_sum_does_not_matter():
    random = np.random.default_rng(0)
    rows = random.standard_normal((50, 257))
    rows[::2] = rows[0]
    unit, order = unit_vectors(rows), random.permutation(257)
    whole = rounded_cosines(unit @ unit.T)
    np.testing.assert_array_equal(rounded_cosines(unit[:, order] @ unit[:, order].T), whole)
    np.testing.assert_array_equal(rounded_cosines(unit[:7] @ unit[3:4].T), whole[:7, 3:4])
    assert (whole[:, ::2] == whole[:, :1]).all()


def test_equal_rows_have_equal_unit_vectors_in_any_place():
    rows = np.random.default_rng(1).standard_normal((50, 129)).astype(np.float32)
    whole = unit_vectors(rows)
    for row in range(50):
        np.testing.assert_array_equal(unit_vectors(rows, row, row + 1)[0], whole[row])
        np.testing.assert_array_equal(unit_vectors(torch.from_numpy(rows)[row : row + 1])[0], whole[row])


def test_long_and_short_vectors_keep_their_direction():
    """The square of 1e-140 is no float64, and that of 1e140 is near its end: such rows became zero or infinite."""
    rows = np.array([[3.0, 4.0], [3e-140, 4e-140], [3e140, 4e140]])
    np.testing.assert_allclose(unit_vectors(rows), [[0.6, 0.8]] * 3, rtol=1e-12)
