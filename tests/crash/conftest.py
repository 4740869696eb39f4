"""One process that forks all runs, and the input of all jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.jobs import write_inputs
from tests.crash.points import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with Zygote() as process:
        yield process


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    folder = tmp_path_factory.mktemp("inputs") / "job"
    folder.mkdir()
    write_inputs(folder, zygote)
    return folder
