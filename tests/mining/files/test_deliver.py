"""Where a result may go, and that nothing but a file is ever replaced."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from st_xling.mining.files.deliver import check_outputs, deliver, work_folder


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


def test_what_would_be_lost(tmp_path: Path) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("x")
    (tmp_path / "link").symlink_to(text)
    check_outputs(out, tmp_path / "rejects", [text])
    check_outputs(io.BytesIO(), None, [text])
    for name in (text, tmp_path / "link", tmp_path / "." / "text"):
        with pytest.raises(ValueError, match="out must be a file of its own: .* is the input"):
            check_outputs(name, None, [text])
    with pytest.raises(ValueError, match="rejects must be a file of its own: .* is out already"):
        check_outputs(out, out, [text])
    with pytest.raises(ValueError, match="rejects must be a file: .* is a folder"):
        check_outputs(out, tmp_path, [text])
