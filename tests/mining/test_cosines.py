"""Cosines: near the true ones, equal for equal rows in any block and place."""

import numpy as np
import pytest
import torch

from st_xling.utils.cosines import STEPS, rounded_cosines, unit_vectors
from tests import reference_mining as reference


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
    rows = np.array([[3.0, 4.0], [3e-140, 4e-140], [3e140, 4e140]])
    np.testing.assert_allclose(unit_vectors(rows), [[0.6, 0.8]] * 3, rtol=1e-12)
