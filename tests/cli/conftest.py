"""A small encoder in a folder, for commands that write beside it."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def encoder(saved_encoder: Path, tmp_path: Path) -> Path:
    """A folder of its own for each test, without a card."""
    folder = Path(shutil.copytree(saved_encoder, tmp_path / "my-encoder"))
    (folder / "README.md").unlink()
    return folder
