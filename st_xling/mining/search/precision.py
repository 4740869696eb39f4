"""In which precision products are taken that decide what is worth an exact look: the result is the same in any.

A processor with bfloat16 arithmetic multiplies matrices two to three times faster in it than in float32. Its products
are off by more, so more pairs get an exact look; a block where too many would is multiplied again in float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from st_xling.mining.search.side import Side, filter_error

# Products grow with one side's rows times the other's, exact looks with their sum: what the first is by the second,
# from which on the first matter more.
_LEAST_ROWS = 2500

# What bfloat16 must save: exact looks take a part of it.
_LEAST_GAIN = 1.4


@dataclass(frozen=True)
class Precision:
    """How a block is multiplied.

    Attributes:
        dtype: Of the vectors; products arrive in float32.
        error: Bound on the distance between a product and the exact cosine.
        crowd: A block is crowded when more than one pair in so many would get an exact look.
    """

    dtype: torch.dtype
    error: float
    crowd: int


def precisions(source: Side, target: Side) -> list[Precision]:
    """What to try on a block, cheapest first; the last is float32."""
    single = Precision(torch.float32, filter_error(source.dim), 64)
    rows = source.rows * target.rows / (source.rows + target.rows)
    if source.device.type != "cpu" or rows < _LEAST_ROWS or not bfloat16_pays():
        return [single]
    return [Precision(torch.bfloat16, bfloat16_error(source, target), 64), single]


def bfloat16_error(source: Side, target: Side) -> float:
    r"""Bound on the distance between a bfloat16 product of two unit vectors and their exact cosine.

    Let rounding move the vectors of either side by at most :math:`\delta_s` and :math:`\delta_t`, as measured. By
    Cauchy-Schwarz that moves a product by at most :math:`\delta_s + \delta_t + \delta_s \delta_t`. The sum is taken in
    float32, whose bound grows with the vectors' lengths; at last it is rounded to 8 digits, by at most
    :math:`2^{-9}` below 1. Above 1 the next number is :math:`1 + 2^{-7}`: what lies nearer to 1 is rounded towards the
    cosine, and nothing lies farther away while the rest of the error is below :math:`2^{-8}`.
    """
    one, other = source.rounding(torch.bfloat16), target.rounding(torch.bfloat16)
    moved = one + other + one * other
    error = moved + filter_error(source.dim) * (1 + one) * (1 + other)
    return error + (2.0**-9 if error < 2.0**-8 else 2.0**-8 * (1 + error))


@cache
def bfloat16_pays() -> bool:
    """Whether this processor multiplies matrices faster in bfloat16, found by doing so for some milliseconds."""
    single = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    half = single.bfloat16()
    # In turns, so that other work on the machine meets both; the best of each, for it can only delay.
    rounds = [(_seconds(lambda: single @ single.T), _seconds(lambda: half @ half.T)) for _ in range(4)]
    slow, fast = (min(times) for times in zip(*rounds))
    return slow > _LEAST_GAIN * fast


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
