"""Training in processes of its own, which can be told when to die."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.processes import Ended

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.training.preload"])


class Death(NamedTuple):
    """A signal that the process sends to itself in a step, so that the moment is the same in every run of the tests."""

    step: int
    number: int = signal.SIGKILL


def stop_at(patch: pytest.MonkeyPatch, trainer: type, step: int, number: int | None = None) -> None:
    """Ctrl-C, or a signal, when a step begins, counted from 1 over all of the process."""
    seen, original = 0, trainer.training_step  # type: ignore[attr-defined]

    def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == step and number is not None:
            os.kill(os.getpid(), number)
        elif seen == step:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    patch.setattr(trainer, "training_step", training_step)


def st_xling(
    arguments: Sequence[str],
    folder: Path,
    death: Death | None = None,
    timeout: float = 120,
    before: Callable[[], None] | None = None,
) -> Ended:
    """Run ``st-xling`` in a fresh process, whose streams are kept in ``folder``; ``before`` is called in it first.

    The exit status is negative for a signal that killed it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    streams = [folder / "stdout.txt", folder / "stderr.txt"]
    child = CONTEXT.Process(target=_run, args=(list(arguments), [str(path) for path in streams], death, before))
    child.start()
    child.join(timeout)
    if child.is_alive():
        child.kill()
        child.join()
    return Ended(child.exitcode, *(path.read_text(encoding="utf-8") for path in streams))


def _run(arguments: list[str], streams: list[str], death: Death | None, before: Callable[[], None] | None) -> None:
    for number, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))
    import torch

    from st_xling.cli import main

    torch.set_num_threads(1)
    # As in a terminal, also where the tests run in the background, which makes children deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if death is not None:
        from st_xling.training import CrossLingualTrainer

        stop_at(pytest.MonkeyPatch(), CrossLingualTrainer, *death)
    if before is not None:
        before()
    status = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
