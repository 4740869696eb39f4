"""Distributed helpers: several processes train as one; the main one logs and writes, and an error ends all of them.

``accelerate launch --multi_gpu --num_processes 2 -m st_xling.cli train …``, or ``torchrun --nproc-per-node 2 -m …``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.distributed as dist
from sentence_transformers.util.distributed import get_rank, get_world_size

Result = TypeVar("Result")
MAIN = 0


class AnotherProcessFailed(ValueError):
    """Raised in the processes other than the one that failed, which reports why itself."""


def init_distributed() -> None:
    """Join the other processes, if a launcher started several; on CPUs they communicate by gloo."""
    if _environment("WORLD_SIZE", 1) == 1:
        return
    from accelerate import PartialState

    if not torch.accelerator.is_available():
        os.environ.setdefault("ACCELERATE_USE_CPU", "true")  # otherwise ST trains N models side by side
    PartialState(cpu=os.environ.get("ACCELERATE_USE_CPU", "false").lower() in ("1", "true", "yes"))


def process_count() -> int:
    """Processes that train together."""
    return get_world_size()


def is_main() -> bool:
    """Return whether this process logs and writes; known from the environment before :func:`init_distributed`."""
    return (get_rank() if get_world_size() > 1 else _environment("RANK", MAIN)) == MAIN


def run_on_all(step: Callable[[], Result]) -> Result:
    """Run ``step`` in every process; if one fails, all do.

    Args:
        step: Must not wait for other processes.

    Raises:
        ValueError: What ``step`` raised in the main process, or else where it failed and how.
        AnotherProcessFailed: In the processes in which it did not fail, and in those other than the main one.
    """
    if get_world_size() == 1:
        return step()
    error = result = None
    try:
        result = step()
    except (ValueError, OSError) as fault:
        error = fault
    faults = _exchange(None if error is None else str(error))
    failed = [rank for rank, fault in enumerate(faults) if fault is not None]
    if not failed:
        return result  # type: ignore[return-value]
    if not is_main():
        raise AnotherProcessFailed(faults[failed[0]]) from error
    if error is not None:
        raise error
    raise ValueError(f"process {failed[0]} of {get_world_size()}: {faults[failed[0]]}")


def run_on_main(step: Callable[[], Result]) -> Result:
    """Run ``step`` in the main process while the others wait; all get its result (of plain types) or its error."""
    result = run_on_all(lambda: step() if is_main() else None)
    if get_world_size() > 1:
        result = _exchange(result)[MAIN]
    return result  # type: ignore[return-value]


def end_process(status: int) -> int:
    """Return the exit status; one of several processes ends here.

    torch joins gloo's thread while it holds the GIL when a group is destroyed, as at the interpreter's end; that thread
    may be waiting for the GIL to let go of its last piece of work, and both then wait for ever.
    """
    if get_world_size() == 1:
        return status
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _exchange(own: Result) -> list[Result]:
    everyone: list[Result] = [own] * get_world_size()
    dist.all_gather_object(everyone, own)
    return everyone


def _environment(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default
