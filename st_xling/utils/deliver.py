"""Where results go: a file that is replaced in one step, or a stream; and where the work on them is kept meanwhile."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeGuard

from st_xling.utils.io import atomic_writer, move_into_place
from st_xling.utils.work_folder import WorkFolder

Output = str | Path | IO[bytes]


def work_path(out: Output, work: str | Path | None) -> str | Path | None:
    """The folder of the work: ``work``, else beside ``out``; ``None`` for a stream, which has a temporary one."""
    return work if work is not None else f"{out}.work" if _is_file_name(out) else None


@contextmanager
def work_folder(out: Output, work: str | Path | None, task: dict[str, Any]) -> Iterator[WorkFolder]:
    """The folder where work on ``out`` is kept: ``work``, else beside it, else, for a stream, a temporary one.

    Args:
        out: A file, or what is written like a stream.
        work: Chosen folder.
        task: As for :class:`~st_xling.utils.work_folder.WorkFolder`.
    """
    path = work_path(out, work)
    if path is None:
        with tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True) as temporary:
            with WorkFolder(Path(temporary) / "work", task) as folder:
                yield folder
        return
    with WorkFolder(Path(path), task) as folder:
        yield folder


def deliver(made: Path, out: Output, *, keep: bool = False) -> None:
    """Move a finished file to where it is wanted, or copy it to the stream.

    Args:
        made: The file.
        out: Where it is wanted.
        keep: Copy it to a file as well: what a journal speaks of must not go before the journal does.
    """
    if not _is_file_name(out):
        with made.open("rb") as stream, contextlib.ExitStack() as stack:
            sink = stack.enter_context(Path(out).open("wb")) if isinstance(out, (str, Path)) else out
            shutil.copyfileobj(stream, sink)
            sink.flush()
        return
    path = Path(out).resolve()  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    if not keep:
        move_into_place(made, path)
        return
    with made.open("rb") as stream, atomic_writer(path, size=made.stat().st_size) as copy:
        shutil.copyfileobj(stream, copy)


def _is_file_name(out: Output) -> TypeGuard[str | Path]:
    """Whether it may be replaced: a device or a pipe (``/dev/null``) may not, it is written into."""
    return isinstance(out, (str, Path)) and (Path(out).is_file() or not Path(out).exists())
