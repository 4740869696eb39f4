"""What ``CachedLoss`` saves and costs: ``python -m tests.benchmarks.cached``.

A cached batch of 1,024 pairs against uncached batches of 64, on an encoder of BERT-base's depth and width (random
weights, vocabulary 30,000, full rows of 16 tokens), forward and backward:

- memory: peak resident size of a fresh process beyond its imports: parameters, gradients and all (target: the cached
  batch within the uncached one);
- time a sample: one cached batch between two halves of as many samples in uncached batches, in one process (target: at
  most 1.4x; by theory one more forward pass, 1.33x).

``--quick`` runs a toy, to see that all is well.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch

from tests.benchmarks.measure import QUICK, Shape, apart, backward, peak, resident, spread

UNCACHED, CACHED, MINI_BATCH = 64, 1024, 32


def build(recipe: str, model: Any, shape: Shape, mini_batch: int) -> torch.nn.Module:
    """The recipe's loss on ``model``, cached if ``mini_batch`` is above 0."""
    from st_xling.losses import CachedLoss
    from st_xling.training import load_recipe
    from st_xling.training.encoder import build_loss

    ids = set(range(shape.target_vocabulary))
    loss = build_loss(load_recipe(recipe), model, token_ids=[ids, ids], languages=[["de"], ["en"]])
    return CachedLoss(loss, mini_batch_size=mini_batch) if mini_batch else loss


def peak_of_step(recipe: str, shape: Shape, rows: int, mini_batch: int) -> float:
    """Peak MiB of a step in this process, beyond its imports."""
    import transformers.models.bert.modeling_bert  # noqa: F401  # part of every process, not of the step

    import st_xling.training.encoder  # noqa: F401

    before = resident()
    model = shape.encoder()
    loss = build(recipe, model, shape, mini_batch)
    backward(loss(shape.columns(model, rows), None))
    return peak() - before


def time_per_sample(
    recipe: str, shape: Shape, rows: int, mini_batch: int, rounds: int, clock: Callable[[], float]
) -> list[float]:
    """Seconds a sample, cached by uncached, one ratio a round."""
    model = shape.encoder()
    plain = build(recipe, model, shape, 0)
    cached = build(recipe, model, shape, mini_batch)
    small, large = shape.columns(model), shape.columns(model, rows)

    def seconds(loss: torch.nn.Module, columns: list[dict[str, torch.Tensor]], times: int) -> float:
        started = clock()
        for _ in range(times):
            loss.zero_grad()
            backward(loss(columns, None))
        return clock() - started

    seconds(plain, small, 1)  # warms up
    half = rows // shape.batch // 2
    ratios = []
    for number in range(rounds):
        before, own, after = seconds(plain, small, half), seconds(cached, large, 1), seconds(plain, small, half)
        apiece = own / rows, (before + after) / (2 * half * shape.batch)
        ratios.append(apiece[0] / apiece[1])
        told = f"cached {1000 * apiece[0]:.1f}, uncached {1000 * apiece[1]:.1f} ms a sample"
        print(f"  {recipe}, round {number + 1}: {told}", file=sys.stderr)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recipes", default="tr,dap", help="comma-separated (default: %(default)s)")
    parser.add_argument("--mini-batch", type=int, default=MINI_BATCH, help="rows encoded at a time (default: 32)")
    parser.add_argument("--layers", type=int, help="of the encoder (default: 12)")
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("--cpu-time", action="store_true", help="processor time: for a busy machine, with --threads 1")
    parser.add_argument("--quick", action="store_true", help="a toy shape: figures without meaning")
    parser.add_argument("--apart", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.apart:
        recipe, shape, rows, mini_batch = arguments.apart
        print(json.dumps(peak_of_step(recipe, Shape(**json.loads(shape)), int(rows), int(mini_batch))))
        return
    rows, mini_batch, shape = CACHED, arguments.mini_batch, Shape(vocabulary=30_000, tokens=16, batch=UNCACHED)
    if arguments.quick:
        rows, mini_batch, shape = 64, 4, QUICK
    if arguments.layers:
        shape = replace(shape, layers=arguments.layers)
    threads = ["--threads", str(torch.get_num_threads())]
    for recipe in arguments.recipes.split(","):
        cached, plain = (
            apart("tests.benchmarks.cached", ["--apart", recipe, json.dumps(asdict(shape)), *map(str, size), *threads])
            for size in ((rows, mini_batch), (shape.batch, 0))
        )
        rounds = 2 if arguments.quick else arguments.rounds
        clock = time.process_time if arguments.cpu_time else time.perf_counter
        ratios = time_per_sample(recipe, shape, rows, mini_batch, rounds, clock)
        print(f"{recipe}: cached batch of {rows:,} in mini-batches of {mini_batch} by uncached batch of {shape.batch}")
        print(f"  peak memory:   {cached:,.0f} / {plain:,.0f} MiB = {cached / plain:.2f}   (at most 1.00)")
        print(f"  time a sample: {spread(ratios)}   (at most 1.40)")
    print(f"{shape}, {torch.get_num_threads()} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()
