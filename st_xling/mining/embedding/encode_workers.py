"""Windows of sentences to vectors, in this process or in several, in the order of the windows."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np
import torch

from st_xling.mining.embedding.windows import Window

_PATIENCE_S = 5

#: Makes an encoder on a device.
Load = Callable[[str | None], Any]


def embed(encoder: Any, sentences: list[str], options: dict[str, Any], device: str | None = None) -> np.ndarray:
    """Vectors of some sentences, float32. *Shape:* ``(sentences, dim)``"""
    vectors = encoder.encode(sentences, convert_to_tensor=True, show_progress_bar=False, device=device, **options)
    return vectors.float().cpu().numpy()


def embed_in_processes(
    load: Load, windows: Iterable[Window], options: dict[str, Any], *, processes: int, device: str | None = None
) -> Generator[tuple[Window, np.ndarray]]:
    """As :func:`embed`, each window in one of several processes.

    The processes hold nothing but the encoder: they are given sentences and give vectors, so that one that is killed
    leaves nothing behind, and all end when this process does, however it ends.

    Args:
        load: Called in each process with its device.
        windows: Read ahead by at most two a process.
        options: For the encoder.
        processes: How many.
        device: For all of them; by default the GPUs in turn, else the CPU, whose threads they share.
    Raises:
        ValueError: When a process cannot load or run the encoder for a reason that the user can mend.
        ChildProcessError: When a process was killed.
        RuntimeError: For any other error of a process.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    threads = max(1, torch.get_num_threads() // processes)
    workers: dict[Connection, Any] = {}
    try:
        for number in range(processes):
            ours, theirs = context.Pipe()
            place = device or (f"cuda:{number % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu")
            process = context.Process(target=_work, args=(theirs, load, place, threads, options), daemon=True)
            process.start()
            theirs.close()
            workers[ours] = process
        yield from _in_order(workers, iter(windows))
    finally:
        for connection in workers:
            connection.close()  # an idle process then ends by itself, and tidily
        for process in workers.values():
            process.join(_PATIENCE_S)
            process.terminate()
            process.join()


def _in_order(workers: dict[Connection, Any], windows: Iterator[Window]) -> Iterator[tuple[Window, np.ndarray]]:
    idle, busy = list(workers), dict[Connection, Window]()
    given, made = deque[Window](), dict[int, np.ndarray]()
    while True:
        while given and given[0].number in made:
            window = given.popleft()
            yield window, made.pop(window.number)
        for window in islice(windows, min(len(idle), 2 * len(workers) - len(given))):
            connection = idle.pop()
            try:
                connection.send(window.sentences)  # never blocks for long: an idle process is listening
            except OSError:
                raise _killed(workers[connection]) from None
            busy[connection] = window
            given.append(window)
        if not busy:
            return
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            made[busy.pop(ready).number] = _receive(ready, workers[ready])
            idle.append(ready)


def _receive(connection: Connection, process: Any) -> np.ndarray:
    try:
        answer = connection.recv()
    except (EOFError, OSError):
        raise _killed(process) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _killed(process: Any) -> ChildProcessError:
    process.join(5)
    return ChildProcessError(
        f"a process that embeds was killed (exit status {process.exitcode}), for want of memory perhaps; run the same "
        "command again, with fewer processes or a smaller batch."
    )


def _work(connection: Connection, load: Load, device: str, threads: int, options: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent ends this process
    torch.set_num_threads(threads)
    try:
        try:
            encoder = load(device)
            while True:
                connection.send(embed(encoder, connection.recv(), options, device))
        except (EOFError, ConnectionError):  # the parent is gone
            return
        except Exception as error:
            kind = ValueError if isinstance(error, (ValueError, OSError)) else RuntimeError
            connection.recv()  # what it will not answer
            connection.send(kind(f"{type(error).__name__} in a process that embeds: {error}"))
    except (EOFError, ConnectionError):
        return


def hand_over(encoder: Any) -> Load:
    """An encoder that is there already, its weights shared between the processes as the host shares them."""
    encoder.to("cpu")
    encoder.share_memory()
    return partial(_placed, encoder)


def _placed(encoder: Any, device: str | None) -> Any:
    return encoder.to(device)
