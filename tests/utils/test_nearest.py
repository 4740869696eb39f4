"""Nearest neighbours: equal to the loops, first of equals, blind to blocks; P@1 by index."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.evaluation import nearest, retrieval_accuracy
from tests import reference_mining as reference


def test_equals_loops():
    random = np.random.default_rng(0)
    queries, corpus = random.standard_normal((9, 5)), random.standard_normal((12, 5))
    expected = []
    for query in queries:
        cosines = [reference.cosine(query, other) for other in corpus]
        expected.append(cosines.index(max(cosines)))
    assert nearest(queries, corpus).tolist() == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12))
def test_blocks_do_not_matter_and_ties_take_the_lowest_index(seed, block):
    random = np.random.default_rng(seed)
    corpus = random.standard_normal((4, 33))[random.integers(0, 4, 11)].astype(np.float32)
    queries = random.standard_normal((6, 33)).astype(np.float32)
    found = nearest(queries, corpus, block=block)
    assert found.tolist() == nearest(queries, corpus).tolist()
    for index in found:
        assert index == np.flatnonzero((corpus == corpus[index]).all(axis=1))[0]


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


@pytest.mark.parametrize(
    "queries, corpus, message",
    [
        (np.array([[1.0, 0], [0, 0]]), np.eye(2), "queries.*only zeros in row 1;"),
        (np.eye(2), np.array([[np.nan, 0], [0, 1]]), "corpus.*NaN or infinity in row 0;"),
        (np.eye(2), np.eye(3), "same dim: got 2 and 3"),
        (np.ones(2), np.eye(2), r"queries must have 2 dimensions.*got shape \(2,\)"),
    ],
)
def test_errors(queries, corpus, message):
    with pytest.raises(ValueError, match=message):
        nearest(queries, corpus)
    with pytest.raises(ValueError, match="row-aligned: got 2 and 3 rows"):
        retrieval_accuracy(np.eye(2), np.eye(3, 2) + 1)
