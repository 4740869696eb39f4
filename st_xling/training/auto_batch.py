"""``--mini-batch-size auto``: the largest mini-batch that fits a GPU's memory, found by trying steps before training.

Real steps are made: the recipe's batch, every row the longest text of its column, with room kept for the optimiser's
state; a bisection finds the size at which memory runs out. Weights, gradients, optimiser and random state are
afterwards as before. (On a CPU, running out would end the process.)

What it does not know: what other programs will take later, and fragmentation beyond the headroom.
"""

from __future__ import annotations

import bisect
import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size
from sentence_transformers.util.distributed import get_world_size

from st_xling.losses import CachedLoss

logger = logging.getLogger(__name__)

MIB = 2**20
GPU_SHARE = 0.9
"""Of the free memory; the rest is headroom."""

ADAM_STATES = 2
"""Tensors that AdamW keeps beside each trained weight, from its first step on."""

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
        ValueError: Not even two rows fit; a device that is no CUDA GPU; several processes, whose steps wait for each
            other and would wait for ever for one that ran out of memory.
    """
    device, training = trainer.args.device, trainer.model.training
    if device.type != "cuda" or get_world_size() > 1:
        where = f"got {get_world_size()} processes" if get_world_size() > 1 else f"got {device.type}"
        raise ValueError(
            f"auto tries steps until a GPU's memory runs out, in one process: {where}; give a number of rows, such as "
            "--mini-batch-size 32."
        )
    index = device.index or 0
    try:
        with torch.random.fork_rng(devices=[index]):
            clear_device_cache(garbage_collection=True)
            budget = budget_mib * MIB or _free_memory(index)
            largest = largest_that_fits(lambda size: _fits(trainer, row, batch_size, size, budget), batch_size)
    finally:
        trainer.model.train(training)
    if largest is None:
        raise ValueError(
            f"a step with mini-batches of two rows needs more than the {budget // MIB:,} MiB that are to be had; "
            "shorten model.max_length, train with --lora, or take a smaller model."
        )
    size = 0 if largest >= batch_size else largest
    outcome = "the whole batch fits" if size == 0 else f"mini-batches of {size} rows fit"
    logger.info(f"batches of {batch_size} rows: {outcome} into {budget // MIB:,} MiB")
    return size


def largest_that_fits(fits: Callable[[int], bool], most: int) -> int | None:
    """``most`` if it fits, else the largest even number below it that does, if what fits is all below what does not.

    Args:
        fits: Tried about ``log2(most)`` times.
        most: Above 0.

    Returns:
        ``None`` if not even 2 fit.
    """
    if fits(most):
        return most
    # CachedLoss takes even numbers; what fits is all below what does not, so that halving finds the border.
    sizes = range(2, most, 2)
    fitting = bisect.bisect_left(sizes, True, key=lambda size: not fits(size))
    return sizes[fitting - 1] if fitting else None


def _fits(trainer: Any, row: Row, rows: int, size: int, budget: int) -> bool:
    index = trainer.args.device.index or 0
    total = torch.cuda.get_device_properties(index).total_memory
    before = getattr(torch.cuda, "get_per_process_memory_fraction", lambda _: 1.0)(index)  # torch 2.8
    # The allocator itself refuses more than the budget, so that other processes keep their memory.
    cap = (torch.cuda.memory_allocated(index) + budget) / total
    torch.cuda.set_per_process_memory_fraction(min(1.0, cap), index)
    try:
        state = torch.empty(_optimizer_bytes(trainer), dtype=torch.uint8, device=trainer.args.device)
        step(trainer, row, rows, size)
        torch.cuda.synchronize(index)
        del state
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError) or should_reduce_batch_size(error):
            return False
        raise
    finally:
        for module in (trainer.model, trainer.loss):
            module.zero_grad(set_to_none=True)
        clear_device_cache(garbage_collection=True)
        torch.cuda.set_per_process_memory_fraction(before, index)
    return True


def step(trainer: Any, row: Row, rows: int, size: int) -> None:
    """Forward and backward pass over ``rows`` rows, ``size`` at a time; a second one where gradients accumulate."""
    loss = trainer.loss if size >= rows else CachedLoss(trainer.loss, mini_batch_size=size)
    trainer.model.train()
    for _ in range(min(2, trainer.args.gradient_accumulation_steps)):
        inputs = trainer._prepare_inputs(trainer.data_collator([dict(row) for _ in range(rows)]))
        features, labels = trainer.collect_features(inputs)
        with trainer.compute_loss_context_manager():
            value = loss(features, labels)
            total = torch.stack(list(value.values())).sum() if isinstance(value, dict) else value
        total.backward()


def _optimizer_bytes(trainer: Any) -> int:
    trained = {id(part): part for module in (trainer.model, trainer.loss) for part in module.parameters()}
    return ADAM_STATES * sum(part.numel() * part.element_size() for part in trained.values() if part.requires_grad)


def _free_memory(index: int) -> int:
    """Bytes that may be filled on a GPU, headroom left out."""
    unused = torch.cuda.memory_reserved(index) - torch.cuda.memory_allocated(index)
    return int(GPU_SHARE * (torch.cuda.mem_get_info(index)[0] + unused))
