"""One process that has loaded everything and forks another for each attempt to encode or mine, which may die of it."""

from __future__ import annotations

import os
import resource
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.training.children import CONTEXT


@dataclass(frozen=True)
class Attempt:
    """How one process is to fare.

    Attributes:
        largest_file: The kernel refuses it more bytes a file.
        calls: The function of ``st_xling.mining`` that it calls with the encoder as ``model``.
    """

    largest_file: int | None = None
    calls: str = "encode"


class Nursery:
    """Forks attempts to encode or mine; a context manager.

    Args:
        model: Folder of an encoder.
    """

    def __init__(self, model: Path) -> None:
        self._ours, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=_serve, args=(theirs, str(model)), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ours.close()
        self._process.join(10)
        self._process.kill()

    def encode(self, attempt: Attempt, options: dict[str, Any], timeout: float = 60) -> tuple[int, str]:
        """Exit status (negative: the signal that killed it), and the error."""
        self._ours.send((attempt, options))
        assert self._ours.poll(timeout), "no answer from the nursery"
        return self._ours.recv()


def _serve(connection: Connection, model: str) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would not survive a fork
    import torch
    import tqdm.auto

    import st_xling.mining.pipeline.mine_texts
    import st_xling.mining.pipeline.score_texts  # noqa: F401
    from st_xling.models import load_encoder

    torch.set_num_threads(1)
    encoder = load_encoder(model, device="cpu")
    for kind in (tqdm.std.tqdm, tqdm.auto.tqdm):  # a lock shared with one that was killed would never open again
        kind.set_lock(threading.RLock())
    while True:
        try:
            attempt, options = connection.recv()
        except EOFError:
            return
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            _attempt(attempt, encoder, options, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            message = pipe.read().decode()
        connection.send((os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), message))


def _attempt(attempt: Attempt, encoder: Any, options: dict[str, Any], write: int) -> None:
    from st_xling import mining

    status = 1
    try:
        if attempt.largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (attempt.largest_file, attempt.largest_file))
        getattr(mining, attempt.calls)(model=encoder, **options)
        status = 0
    except BaseException as error:
        os.write(write, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(status)
