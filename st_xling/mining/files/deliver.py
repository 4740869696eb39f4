"""Where results go: a file that is replaced in one step, or a stream; and where the work on them is kept meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

from st_xling.mining.files.work_folder import WorkFolder
from st_xling.utils.io import move_into_place

Output = str | Path | IO[bytes]


def check_outputs(out: Output, rejects: str | Path | None, inputs: Sequence[str | Path]) -> None:
    """Raise if a result cannot be a file there, or would replace what it is made from.

    Raises:
        ValueError: Naming the file.
    """
    outputs = {"out": out, "rejects": rejects}
    taken = {Path(path).resolve(): f"the input {path}" for path in inputs}
    for name, path in outputs.items():
        if isinstance(path, (str, Path)) and Path(path).is_dir():
            raise ValueError(f"{name} must be a file: {path} is a folder; name a file in it.")
        if path is None or not _is_file_name(path):
            continue
        where = Path(path).resolve()
        if where in taken:
            raise ValueError(f"{name} must be a file of its own: {path} is {taken[where]}; choose another name.")
        taken[where] = f"{name} already"


@contextmanager
def work_folder(out: Output, work: str | Path | None, task: dict[str, Any]) -> Iterator[WorkFolder]:
    """The folder where work on ``out`` is kept: ``work``, else beside it, else, for a stream, a temporary one.

    Args:
        out: A file, or what is written like a stream.
        work: Chosen folder.
        task: As for :class:`~st_xling.mining.files.work_folder.WorkFolder`.
    """
    if work is None and not _is_file_name(out):
        with tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True) as temporary:
            with WorkFolder(Path(temporary) / "work", task) as folder:
                yield folder
        return
    path = Path(work) if work is not None else Path(f"{out}.work")
    with WorkFolder(path, task) as folder:
        yield folder


def deliver(made: Path, out: Output) -> None:
    """Move a finished file to where it is wanted, or copy it to the stream."""
    if _is_file_name(out):
        path = Path(out).resolve()  # a link stays a link
        path.parent.mkdir(parents=True, exist_ok=True)
        move_into_place(made, path)
        return
    with made.open("rb") as stream, contextlib.ExitStack() as stack:
        sink = stack.enter_context(Path(out).open("wb")) if isinstance(out, (str, Path)) else out
        shutil.copyfileobj(stream, sink)
        sink.flush()


def _is_file_name(out: Output) -> TypeGuard[str | Path]:
    """Whether it may be replaced: a device or a pipe (``/dev/null``) may not, it is written into."""
    return isinstance(out, (str, Path)) and (Path(out).is_file() or not Path(out).exists())
