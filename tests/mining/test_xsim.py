"""xsim: the loops, repeated sentences, sources without an answer, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import MARGINS, Xsim, xsim
from st_xling.utils.cosines import retrieval_accuracy
from tests import reference_mining as reference


def noisy(rows, seed, noise=1.2, dim=6):
    random = np.random.default_rng(seed)
    source = random.standard_normal((rows, dim)) + 0.5
    return source, source + noise * random.standard_normal((rows, dim))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.integers(1, 5), st.integers(5, 15))
def test_equals_loops(seed, margin, k, rows):
    source, target = noisy(rows, seed)
    found = xsim(source, target, k=k, margin=margin)
    assert found == Xsim(reference.xsim_errors(source, target, k=k, margin=margin), rows)
    assert found.error_rate + found.accuracy == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("k", [1, 4])
def test_absolute_is_plain_retrieval(k):
    source, target = noisy(60, seed=1)
    assert xsim(source, target, k=k, margin="absolute").accuracy == retrieval_accuracy(source, target)[0]
    assert 0 < xsim(source, target, k=k, margin="absolute").errors < 60


def test_repeated_sentences():
    """Rows 0 and 2 are one sentence: the first is found for both, an error by index."""
    rows = np.eye(3)[[0, 1, 0]] + 0.1
    assert xsim(rows, rows, k=2, margin="absolute") == Xsim(1, 3)


def test_no_meaningful_ratio_is_an_error():
    assert xsim(np.eye(3) + 0.1, -np.eye(3) - 0.1, k=2) == Xsim(3, 3)


def test_errors():
    with pytest.raises(ValueError, match="row-aligned: got 3 and 2 rows"):
        xsim(np.eye(3), np.eye(2, 3), k=1)
    with pytest.raises(ValueError, match="ratio, distance, absolute"):
        xsim(np.eye(3), np.eye(3), k=1, margin="l2")
