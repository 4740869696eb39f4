"""A small encoder in a folder, for commands that write beside it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def saved(make_model: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved once; to be read, not written."""
    path = tmp_path_factory.mktemp("models") / "my-encoder"
    make_model().save_pretrained(str(path))
    return path


@pytest.fixture
def encoder(saved: Path, tmp_path: Path) -> Path:
    """A folder of its own for each test, without the host's card."""
    folder = Path(shutil.copytree(saved, tmp_path / "my-encoder"))
    (folder / "README.md").unlink()
    return folder
