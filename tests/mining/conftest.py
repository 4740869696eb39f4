"""Measuring memory; searches in either precision."""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from st_xling.mining.search import corpus_matrix


@pytest.fixture(scope="module", params=[False, True], ids=["float32", "bfloat16"])
def each_precision(request: pytest.FixtureRequest) -> Iterator[None]:
    """Searches of any size take their first products in float32, or in bfloat16."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_matrix, "_LEAST_ROWS", 0)
        patch.setattr(corpus_matrix, "prefers_bfloat16", lambda: request.param)
        yield


@pytest.fixture
def peak_growth() -> Callable[[Callable[[], Any]], int]:
    """Bytes that Python and numpy held at most during a call, beyond those they held before."""

    def measure(call: Callable[[], Any]) -> int:
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure
