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

StepResult = TypeVar("StepResult")
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


def run_on_all(step: Callable[[], StepResult]) -> StepResult:
    """Run ``step`` in every process; if one fails, all do.

    Args:
        step: Must not wait for other processes.

    Raises:
        ValueError: What ``step`` raised in the main process, or else where it failed and how.
        AnotherProcessFailed: In the processes in which it did not fail, and in those other than the main one.
    """
    if get_world_size() == 1:
        return step()
    result: StepResult | None = None
    error: ValueError | OSError | None = None
    message: str | None = None
    try:
        result = step()
    except (ValueError, OSError) as raised:
        error = raised
        message = str(raised)
    messages = _exchange(message)
    failed_ranks = [rank for rank, text in enumerate(messages) if text is not None]
    if not failed_ranks:
        return result  # type: ignore[return-value]
    rank = failed_ranks[0]
    if not is_main():
        raise AnotherProcessFailed(messages[rank]) from error
    if error is not None:
        raise error
    raise ValueError(f"process {rank} of {get_world_size()}: {messages[rank]}")


def run_on_main(step: Callable[[], StepResult]) -> StepResult:
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


def _exchange(value: StepResult) -> list[StepResult]:
    """Return the values of all processes, by rank."""
    values: list[StepResult] = [value] * get_world_size()
    dist.all_gather_object(values, value)
    return values


def _environment(name: str, default: int) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else default
