"""Where a result may go, and that nothing but a file is ever replaced."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from st_xling.utils.work_folder import deliver, work_folder


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "made"
    path.write_bytes(b"pairs")
    return path


def test_a_file_is_made_or_replaced(made: Path, tmp_path: Path) -> None:
    deliver(made, tmp_path / "deep" / "new")
    assert (tmp_path / "deep" / "new").read_bytes() == b"pairs" and not made.exists()
    made.write_bytes(b"more")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "new")
    deliver(made, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "deep" / "new").read_bytes() == b"more"


def test_a_pipe_is_written_into_and_stays_one(made: Path, tmp_path: Path) -> None:
    """As a device would be: with a root's rights, a rename would put a file in its place."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with work_folder(pipe, None, {}) as folder:
        assert tmp_path not in folder.path.parents
        deliver(made, pipe)
    reader.join(30)
    assert read == [b"pairs"] and pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "pipe"]


def test_a_stream(made: Path) -> None:
    stream = io.BytesIO()
    deliver(made, stream)
    assert stream.getvalue() == b"pairs"


def test_what_is_copied_stays(made: Path, tmp_path: Path) -> None:
    for _ in range(2):
        deliver(made, tmp_path / "out", keep=True)
        assert (tmp_path / "out").read_bytes() == made.read_bytes() == b"pairs"
