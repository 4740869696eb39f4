"""Neighbours: equal to the loops, exact under ties, and blind to blocks, order, scale and dtype."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from st_xling.mining import mine, neighbours, score_pairs, xsim
from tests import reference_mining as reference

pytestmark = pytest.mark.usefixtures("each_precision")


def embeddings(rows, seed, dim=7):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def small_integers(max_rows=9):
    """Few distinct directions, so that duplicates and tied cosines abound."""
    shapes = st.tuples(st.integers(4, max_rows), st.just(3))
    return arrays(np.int8, shapes, elements=st.integers(-1, 1)).map(lambda a: np.where(a.any(1)[:, None], a, 1.0))


def test_equals_loops():
    source, target = embeddings(13, 0), embeddings(9, 1)
    cosines = [[reference.cosine(s, t) for t in target] for s in source]
    for result, rows in zip(neighbours(source, target, k=3), (cosines, list(zip(*cosines)))):
        expected = reference.best_neighbours(rows, 3)
        assert result.indices.tolist() == [[j for _, j in row] for row in expected]
        np.testing.assert_allclose(result.similarities, [[c for c, _ in row] for row in expected], atol=1e-7)
        np.testing.assert_allclose(result.means, [sum(c for c, _ in row) / 3 for row in expected], atol=1e-7)


def test_shapes_and_dtypes():
    forward, backward = neighbours(embeddings(6, 0), embeddings(5, 1))
    assert forward.similarities.shape == forward.indices.shape == (6, 4)
    assert backward.similarities.shape == backward.indices.shape == (5, 4)
    assert forward.similarities.dtype == np.float32
    assert forward.indices.dtype == np.int64


@settings(max_examples=60, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4), st.integers(1, 10), st.integers(1, 10))
def test_blocks_do_not_change_a_bit_even_under_ties(source, target, k, block_rows, block_columns):
    whole = neighbours(source, target, k=k)
    blocks = neighbours(source, target, k=k, block_rows=block_rows, block_columns=block_columns)
    for one, other in zip(whole, blocks):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert one.indices.tobytes() == other.indices.tobytes()


@pytest.mark.parametrize("block_rows, block_columns", [(1, 1), (7, 13), (64, 3), (300, 300)])
def test_blocks_do_not_change_a_bit_at_real_width(block_rows, block_columns):
    """384 dimensions, where BLAS kernels do differ in their last bit from one block shape to another."""
    source, target = embeddings(120, 0, 384), embeddings(90, 1, 384)
    target[60:] = target[:30]
    for one, other in zip(
        neighbours(source, target, k=5),
        neighbours(source, target, k=5, block_rows=block_rows, block_columns=block_columns),
    ):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert one.indices.tobytes() == other.indices.tobytes()


@settings(max_examples=60, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4))
def test_best_first_and_ties_by_lowest_index(source, target, k):
    for result, others in zip(neighbours(source, target, k=k), (target, source)):
        for values, indices in zip(result.similarities, result.indices):
            keys = list(zip(-values, indices))
            assert keys == sorted(keys)
            assert len(set(indices.tolist())) == k <= len(others)
    # Fewer neighbours are the beginning of more: no equal candidate with a lower index was left out.
    all_of_smaller_side = min(len(source), len(target))
    for few, many in zip(neighbours(source, target, k=k), neighbours(source, target, k=all_of_smaller_side)):
        assert few.indices.tolist() == many.indices[:, :k].tolist()


def test_of_many_duplicates_the_first_are_found():
    target = np.repeat(embeddings(2, 3, 384), 500, axis=0)[np.random.default_rng(0).permutation(1000)]
    forward, _ = neighbours(target[:1], target, k=1, block_columns=77)
    same = np.flatnonzero((target == target[0]).all(axis=1))
    assert forward.indices[0].tolist() == same[:1].tolist()
    forward, _ = neighbours(target[:4], target, k=4, block_columns=77)
    assert forward.indices[0].tolist() == same[:4].tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4))
def test_permuting_targets_permutes_indices(seed, k):
    source, target = embeddings(6, seed), embeddings(8, seed + 1)
    order = np.random.default_rng(seed).permutation(8)
    before, after = neighbours(source, target, k=k)[0], neighbours(source, target[order], k=k)[0]
    assert before.similarities.tobytes() == after.similarities.tobytes()
    assert np.array_equal(before.indices, order[after.indices])


def test_swapping_languages_swaps_results():
    source, target = embeddings(6, 0), embeddings(8, 1)
    for one, other in zip(neighbours(source, target), reversed(neighbours(target, source))):
        assert one.similarities.tobytes() == other.similarities.tobytes()
        assert np.array_equal(one.indices, other.indices)


@pytest.mark.parametrize("factor", [2.0**-140, 2.0**-20, 2.0**120])
def test_length_does_not_matter(factor):
    source, target = embeddings(6, 0), embeddings(8, 1)
    scaled = neighbours(source.astype(np.float64) * factor, target)[0]
    assert scaled.similarities.tobytes() == neighbours(source, target)[0].similarities.tobytes()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dtypes_are_read_as_they_are(dtype):
    source, target = (torch.from_numpy(embeddings(n, n)).to(dtype).requires_grad_() for n in (6, 8))
    forward, _ = neighbours(source, target)
    expected, _ = neighbours(source.detach().double().numpy(), target.detach().double().numpy())
    assert forward.similarities.tobytes() == expected.similarities.tobytes()
    assert np.array_equal(forward.indices, expected.indices)


def test_memory_order_does_not_matter():
    source, target = embeddings(60, 0, 50), embeddings(80, 1, 50)
    one, other = neighbours(source, target)[0], neighbours(np.asfortranarray(source), target[::-1][::-1])[0]
    assert one.similarities.tobytes() == other.similarities.tobytes()


def test_identical_vectors_have_cosine_one():
    rows = embeddings(200, 5, 768)
    np.testing.assert_allclose(neighbours(rows, rows, k=1)[0].similarities, 1.0, atol=2e-7)


@pytest.mark.parametrize(
    "source, target, k, message",
    [
        (np.eye(3), np.eye(3), 4, r"k must be smaller than the corpus.*k=4 for 3 source and 3 target.*lower k or mine"),
        (np.eye(5, 3) + 1, np.eye(3), 4, r"k=4 for 5 source and 3 target"),
        (np.eye(3), np.eye(3), 0, "k must be at least 1: got k=0"),
        (np.eye(3), np.eye(4), 1, "same dim: got 3 and 4"),
        (np.ones(3), np.eye(3), 1, r"source_embeddings must have 2 dimensions.*\(3,\)"),
        (np.eye(3), np.ones((2, 3, 3)), 1, r"target_embeddings must have 2 dimensions.*\(2, 3, 3\)"),
        (np.eye(3), np.empty((0, 3)), 1, r"target_embeddings must hold at least one vector.*\(0, 3\)"),
        (np.array([[1.0, 0], [0, 0], [0, 1]]), np.eye(2), 1, "source_embeddings.*only zeros in row 1;"),
        (np.eye(2), np.array([[1, np.nan], [0, np.inf]]), 1, "target_embeddings.*NaN or infinity in rows 0, 1;"),
        (np.eye(2), np.zeros((9, 2)), 1, "only zeros in rows 0, 1, 2, 3, 4 and 4 more"),
    ],
)
def test_errors(source, target, k, message):
    with pytest.raises(ValueError, match=message):
        neighbours(source, target, k=k)


def test_block_error():
    with pytest.raises(ValueError, match="block_rows=0"):
        neighbours(np.eye(2), np.eye(2), k=1, block_rows=0)


def test_import_stays_light():
    code = "import sys, st_xling.mining; sys.exit('sentence_transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _forms() -> dict[str, Any]:
    rows = np.random.default_rng(3).integers(1, 9, (9, 4)).astype(np.float32)
    float8 = [torch.from_numpy(rows).to(kind) for kind in (torch.float8_e4m3fn, torch.float8_e5m2)]
    return {
        "reversed": rows[::-1].copy()[::-1],
        "reversed columns": rows[:, ::-1].copy()[:, ::-1],
        "list": rows.tolist(),
        "rows": list(rows),
        "tuple": tuple(map(tuple, rows.tolist())),
        "whole numbers": rows.astype(np.int16),
        "e4m3": float8[0],
        "big endian": rows.astype(">f4"),
    }


@pytest.mark.parametrize("form", _forms())
def test_any_form_of_vectors(form: str) -> None:
    """Also a single row seen backwards, of which numpy keeps the negative stride."""
    given = _forms()[form]
    rows = np.asarray(given.float() if isinstance(given, torch.Tensor) else given, dtype=np.float32)
    for size in (9, 1):
        some = given[:size]
        if form == "reversed" and size == 1:
            some = np.lib.stride_tricks.as_strided(rows[:1].copy(), strides=(-16, 4))
        plain = np.ascontiguousarray(rows[:size])
        k = min(3, size)
        expected, found = mine(plain, plain, k=k), mine(some, some, k=k)
        np.testing.assert_array_equal(found.scores, expected.scores)
        np.testing.assert_array_equal(score_pairs(some, some, k=k), score_pairs(plain, plain, k=k))
        assert xsim(some, some, k=k) == xsim(plain, plain, k=k)
        np.testing.assert_array_equal(neighbours(some, some, k=k)[0].indices, neighbours(plain, plain, k=k)[0].indices)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((3, 2), dtype=np.complex64), "must hold real numbers: got complex64"),
        (torch.ones(3, 2, dtype=torch.complex64), "must hold dense real numbers: got torch.complex64"),
        (torch.ones(3, 2).to_sparse(), "must hold dense real numbers: got torch.sparse_coo"),
        (np.array([["a", "b"]] * 3), "must hold real numbers: got <U1"),
        ([[1.0, 2.0], [1.0], [3.0, 4.0]], "must be vectors of one length"),
        ({"a": 1}, "must be an array of numbers: got dict"),
        (np.float32(3), "source_embeddings"),
    ],
)
def test_what_is_no_matrix_of_numbers(bad: Any, message: str) -> None:
    for call in (neighbours, mine, score_pairs, xsim):
        with pytest.raises(ValueError, match=message):
            call(bad, np.ones((3, 2)), k=1)
