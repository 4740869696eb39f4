"""What ``CachedLoss`` saves and costs: a batch of 1,024 pairs by batches of 64 without it.

On an encoder of BERT-base's depth and width (random weights, vocabulary 30,000, full rows of 16 tokens), forward and
backward:

- memory: peak resident size of a fresh process beyond its imports: parameters, gradients and all;
- time a sample, in turn in one process; by theory one more forward pass, 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tests.benchmarks.measure import QUICK, Ratio, Run, Shape, apart, main, peak, quotients, recipe_loss, resident, step


def build(recipe: str, model: Any, shape: Shape, mini_batch: int) -> torch.nn.Module:
    """The recipe's loss on ``model``, cached if ``mini_batch`` is above 0."""
    from st_xling.losses import CachedLoss

    loss: Any = recipe_loss(recipe, model, shape)
    return CachedLoss(loss, mini_batch_size=mini_batch) if mini_batch else loss


def memory_of_step(recipe: str, sizes: dict[str, int], rows: int, mini_batch: int) -> float:
    """Peak MiB beyond the imports."""
    before, shape = resident(), Shape(**sizes)
    model = shape.encoder()
    step(build(recipe, model, shape, mini_batch), shape.columns(model, rows))
    return peak() - before


def measure(
    run: Run, *, recipes: str = "tr,dap", layers: int | None = None, rows: int = 1024, mini_batch: int = 32
) -> Iterator[Ratio]:
    shape = QUICK if run.quick else Shape(vocabulary=30_000, tokens=16, batch=64)
    shape = shape.but(layers=layers)
    peer = f"batch of {shape.batch}"
    for recipe in recipes.split(","):
        cached, plain = (
            apart(memory_of_step, recipe, shape.as_dict(), *size) for size in ((rows, mini_batch), (shape.batch, 0))
        )
        what, note = f"{recipe}, cached batch of {rows:,}", f"{cached:,.0f} by {plain:,.0f} MiB"
        yield Ratio(f"{what}: memory", peer, cached / plain, at_most=1.0, note=note)
        model = shape.encoder()
        losses = [build(recipe, model, shape, size) for size in (mini_batch, 0)]
        small, large = shape.columns(model), shape.columns(model, rows)
        step(losses[1], small)  # warms up

        def plainly() -> None:
            for _ in range(rows // shape.batch):
                step(losses[1], small)  # noqa: B023

        calls = {"cached": lambda: step(losses[0], large), "plain": plainly}  # noqa: B023
        seconds = run.in_turn(calls, warm_up=False)
        yield Ratio(f"{what}: time a pair", peer, quotients(seconds["cached"], seconds["plain"]), at_most=1.4)


if __name__ == "__main__":
    main(measure, rounds=3, quick={"recipes": "tr", "rows": 64, "mini_batch": 4})
