"""Cosines on a grid: near the true ones, equal to the last bit for equal rows, exact by construction."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from st_xling.utils.cosines import FRACTION_BITS, exact_cosines, fixed_point
from tests import reference_mining as reference


@pytest.mark.parametrize("dim", [1, 3, 384, 1024])
def test_near_the_definition(dim):
    random = np.random.default_rng(dim)
    first, second = random.standard_normal((5, dim)), random.standard_normal((4, dim))
    cosines = exact_cosines(fixed_point(first), fixed_point(second))
    np.testing.assert_allclose(cosines, [[reference.cosine(a, b) for b in second] for a in first], atol=1e-7)
    assert cosines.dtype == np.float32


def test_sums_are_exact():
    """The same integers multiplied and added as Python fractions, then rounded once."""
    random = np.random.default_rng(0)
    first, second = fixed_point(random.standard_normal((3, 257))), fixed_point(random.standard_normal((3, 257)))
    for i, row in enumerate(exact_cosines(first, second)):
        for j, value in enumerate(row):
            exact = sum(Fraction(int(a)) * Fraction(int(b)) for a, b in zip(first[i], second[j]))
            assert value == np.float32(float(exact / 4**FRACTION_BITS))


def test_equal_rows_have_equal_grid_points_wherever_they_stand():
    rows = np.random.default_rng(1).standard_normal((50, 129)).astype(np.float32)
    whole = fixed_point(rows)
    for row in range(50):
        assert whole[row].tobytes() == fixed_point(rows, row, row + 1)[0].tobytes()
        assert whole[row].tobytes() == fixed_point(torch.from_numpy(rows)[row : row + 1])[0].tobytes()


def test_extreme_lengths_keep_their_direction():
    rows = np.array([[3.0, 4.0], [3e-320, 4e-320], [3e307, 4e307]])
    grid = fixed_point(rows)
    np.testing.assert_allclose(grid / 2.0**FRACTION_BITS, [[0.6, 0.8]] * 3, rtol=1e-3)


def test_no_negative_zero():
    cosines = exact_cosines(fixed_point(np.array([[1.0, 0.0]])), fixed_point(np.array([[-0.0, -1.0]])))
    assert not np.signbit(cosines).any()
