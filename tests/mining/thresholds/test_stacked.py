"""Stacked sets read like their concatenation."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.thresholds.stacked import Stacked

PARTS = [np.arange(15.0, dtype=np.float32).reshape(5, 3), torch.arange(6.0).reshape(2, 3).half(), np.ones((4, 3))]
WHOLE = np.concatenate([np.asarray(part) for part in PARTS])


@given(st.integers(0, 13), st.integers(0, 13), st.lists(st.integers(0, 10)))
def test_equals_concatenation(start, stop, rows):
    stacked = Stacked(PARTS)
    assert stacked.shape == (11, 3)
    assert np.array_equal(stacked[start:stop], WHOLE[start:stop])
    assert np.array_equal(stacked[np.array(rows, dtype=np.int64)], WHOLE[np.array(rows, dtype=np.int64)])
