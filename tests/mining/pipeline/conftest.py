"""One small encoder for all tests of the pipeline."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def model(make_model: Callable[..., Any]) -> Any:
    return make_model()
