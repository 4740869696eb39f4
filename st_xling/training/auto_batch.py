"""``--mini-batch-size auto``: the largest mini-batch that fits the memory, found by trying steps before training.

On a GPU, real steps are made: the recipe's batch, every row the longest text of its column, with room kept for the
optimiser's state; the size doubles until memory runs out, then a bisection narrows it down. On a CPU, where running out
would end the process, two small steps are measured and extrapolated linearly to the memory that is free. Weights,
gradients, optimiser and random state are afterwards as before.

What it does not know: what other programs will take later, fragmentation beyond the headroom, and on a CPU memory that
does not grow in proportion to the rows.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from sentence_transformers.util.distributed import get_world_size
from torch.profiler import ProfilerActivity, profile
from tqdm.auto import tqdm

from st_xling.losses import CachedLoss
from st_xling.losses.base import CrossLingualLoss

MIB = 2**20
GPU_SHARE = 0.9
CPU_SHARE = 0.8
"""Of the free memory; the rest is headroom."""

_CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
ALLOCATOR, OVERHEAD = 1.6, 64 * MIB
"""Bytes that a process on a CPU takes for a byte that torch asks for, and what it takes besides: about what the
resident set grew by in steps of BERT-type encoders (1.2 to 1.6 bytes)."""
ADAM_STATES = 2
"""Tensors that AdamW keeps beside each trained weight, from its first step on."""
SMALL, LARGE = 2, (16, 8, 4)
"""Rows of the two steps that are measured on a CPU; the larger is the first that the smaller one promises to fit."""

Row = Mapping[str, Any]


def choose_mini_batch(trainer: Any, row: Row, *, batch_size: int, budget_mib: int = 0) -> int:
    """The largest mini-batch whose training step fits.

    Args:
        trainer: Ready to train, its loss not yet cached.
        row: A row of the data set with the longest text of each side.
        batch_size: Rows of a step.
        budget_mib: Memory in MiB that a step may add to the model's; 0: nearly all that is free.

    Returns:
        An even number of rows below ``batch_size``, or 0: the whole batch fits and needs no cache.

    Raises:
        ValueError: Not even two rows fit; several processes, whose steps wait for each other and would wait for ever
            for one that ran out of memory; a device that is neither a CUDA GPU nor a CPU.
    """
    device = trainer.args.device
    if get_world_size() > 1:
        raise ValueError(
            "mini_batch_size: auto works in one process: find the number there, and give it to all "
            f"{get_world_size()} processes with --mini-batch-size."
        )
    if device.type not in ("cuda", "cpu"):
        raise ValueError(f"mini_batch_size: auto knows CUDA GPUs and CPUs: got {device.type}; give a number.")
    measure = _fits_gpu if device.type == "cuda" else _fits_cpu
    with _undone(trainer, device):
        budget = free_memory(device) if not budget_mib else budget_mib * MIB
        fits = measure(trainer, row, batch_size, budget)
        largest = largest_that_fits(fits, batch_size)
    if largest is None:
        raise ValueError(
            f"a step with mini-batches of two rows needs more than the {budget // MIB:,} MiB that are to be had; "
            "shorten model.max_length, train with --lora, or take a smaller model."
        )
    size = 0 if largest >= batch_size else largest
    outcome = "the whole batch fits" if size == 0 else f"mini-batches of {size} rows fit"
    tqdm.write(f"batches of {batch_size} rows: {outcome} into {budget // MIB:,} MiB", file=sys.stderr)
    return size


def largest_that_fits(fits: Callable[[int], bool], most: int) -> int | None:
    """``most`` if it fits, else the largest even number below it that does, if what fits is all below what does not.

    Args:
        fits: Tried about ``2 log2(most)`` times.
        most: Above 0.

    Returns:
        ``None`` if not even 2 fit.
    """
    if fits(most):
        return most
    # Invariant: `good` rows fit (0 always do), `bad` rows do not; both even.
    good, bad = 0, most + most % 2
    while 2 * max(good, 1) < bad:
        size = 2 * max(good, 1)
        if not fits(size):
            bad = size
            break
        good = size
    # Bisection over even numbers, as CachedLoss takes them.
    while bad - good > 2:
        middle = (good + bad) // 4 * 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good or None


def _fits_gpu(trainer: Any, row: Row, batch_size: int, budget: int) -> Callable[[int], bool]:
    index = trainer.args.device.index or 0
    total = torch.cuda.get_device_properties(index).total_memory

    def attempt(size: int) -> bool:
        try:
            state = torch.empty(_optimizer_bytes(trainer), dtype=torch.uint8, device=trainer.args.device)
            _step(trainer, row, batch_size, size)
            torch.cuda.synchronize(index)
            del state
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error):
                return False
            raise
        return True

    def fits(size: int) -> bool:
        before = getattr(torch.cuda, "get_per_process_memory_fraction", lambda _: 1.0)(index)  # torch 2.8
        # The allocator itself refuses more than the budget, so that other processes keep their memory.
        cap = (torch.cuda.memory_allocated(index) + budget) / total
        torch.cuda.set_per_process_memory_fraction(min(1.0, cap), index)
        try:
            return attempt(size)
        finally:
            _clear_gradients(trainer)
            clear_device_cache(garbage_collection=True)
            torch.cuda.set_per_process_memory_fraction(before, index)

    clear_device_cache(garbage_collection=True)
    return fits


def _fits_cpu(trainer: Any, row: Row, batch_size: int, budget: int) -> Callable[[int], bool]:
    # A straight line through two measured steps; what is fixed (optimiser, similarities) is added by formula.
    peak = _peak(trainer, row, SMALL)
    slope = peak / SMALL
    large = next((rows for rows in LARGE if slope * rows <= budget), None)
    if large is not None:
        slope = min(slope, max(0.0, (_peak(trainer, row, large) - peak) / (large - SMALL)))
    fixed = peak + _optimizer_bytes(trainer) + _pairwise_bytes(trainer, batch_size)
    return lambda size: OVERHEAD + ALLOCATOR * (fixed + slope * (size - SMALL)) <= budget


def _step(trainer: Any, row: Row, rows: int, size: int) -> None:
    """Forward and backward pass over ``rows`` rows, ``size`` at a time; a second one where gradients accumulate."""
    for _ in range(min(2, trainer.args.gradient_accumulation_steps)):
        _pass(trainer, row, rows, size)


def _pass(trainer: Any, row: Row, rows: int, size: int) -> None:
    inputs = trainer._prepare_inputs(trainer.data_collator([dict(row) for _ in range(rows)]))
    features, labels = trainer.collect_features(inputs)
    loss = trainer.loss if size >= rows else CachedLoss(trainer.loss, mini_batch_size=size)
    trainer.model.train()
    with trainer.compute_loss_context_manager():
        value = loss(features, labels)
        total = torch.stack(list(value.values())).sum() if isinstance(value, dict) else value
    total.backward()


def _peak(trainer: Any, row: Row, rows: int) -> int:
    peak = most_allocated(lambda: _step(trainer, row, rows, rows))
    _clear_gradients(trainer)
    return peak


def _optimizer_bytes(trainer: Any) -> int:
    trained = {id(part): part for module in (trainer.model, trainer.loss) for part in module.parameters()}
    return ADAM_STATES * sum(part.numel() * part.element_size() for part in trained.values() if part.requires_grad)


def _pairwise_bytes(trainer: Any, batch_size: int) -> int:
    """What sentence-level terms hold of the whole batch: some square matrices, and the embeddings, in float32."""
    width = trainer.model.get_embedding_dimension() or 0
    loss: CrossLingualLoss = trainer.loss
    return 4 * 8 * len(loss.as_sum().term_list()) * batch_size * (batch_size + 2 * width)


def _clear_gradients(trainer: Any) -> None:
    for module in (trainer.model, trainer.loss):
        module.zero_grad(set_to_none=True)


@contextmanager
def _undone(trainer: Any, device: torch.device) -> Iterator[None]:
    """Leaves random state, gradients and mode as they were."""
    training = trainer.model.training
    index = [device.index or 0] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=index):
            yield
    finally:
        _clear_gradients(trainer)
        trainer.model.train(training)


def most_allocated(work: Callable[[], None]) -> int:
    """Most bytes of CPU memory that torch has allocated at once during ``work``, counted one by one.

    (What the process has resident tells less: memory that was freed before is used again without a trace.)
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # some builds of torch announce each profile on stderr
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
        path = Path(folder) / "trace.json"
        record.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    steps = [(event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"]
    return max(itertools.accumulate(size for _, size in sorted(steps)), default=0)


def free_memory(device: torch.device) -> int:
    """Bytes that may be filled on a CUDA GPU or a CPU, headroom left out."""
    if device.type == "cuda":
        index = device.index or 0
        unused = torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)
        return int(GPU_SHARE * (torch.cuda.mem_get_info(index)[0] + unused))
    return int(CPU_SHARE * min(psutil.virtual_memory().available, container_room()))


def container_room(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Bytes that the control group of this container has left; without one, infinity."""
    for limit, used in _CGROUP_FILES:
        try:
            return max(0, int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return float("inf")
