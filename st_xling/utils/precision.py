"""Whether bfloat16 is faster than float32 on a device, by measurement.

A processor's flags do not tell: an Intel Xeon with ``avx512_bf16`` but without AMX multiplies matrices at 0.65 of the
speed of float32, an AMD EPYC with the same flag at 4 times, and one without any flag at 0.1.
"""

from __future__ import annotations

import functools
import logging
import math
import time

import torch

logger = logging.getLogger(__name__)

# Rows, inner dimension and columns of the products: a block of sentence embeddings on a processor, where this takes a
# millisecond, and enough to keep a GPU busy.
_SIZES = {"cpu": (256, 384, 512)}
_GPU_SIZE = (2048, 2048, 2048)

# The fastest of so many products counts: others may have shared the processor.
_REPEATS = 5

# Processors without fast bfloat16 reach 0.1 to 0.8, others 2 to 10: in the gap between, noise decides nothing.
_CLEARLY_FASTER = 1.5


def prefers_bfloat16(device: str = "cpu") -> bool:
    """Return whether products of bfloat16 matrices are clearly faster on a device, at least 1.5 times."""
    return bfloat16_speedup(device) >= _CLEARLY_FASTER


@functools.cache
def bfloat16_speedup(device: str = "cpu") -> float:
    """Measure how many times as fast as in float32 a device multiplies matrices in bfloat16, once in a process.

    This takes some milliseconds. The matrices are constant, so that no random state changes.

    Args:
        device: Type of the device, such as ``"cpu"`` or ``"cuda"``.

    Returns:
        The ratio of both times; 0 if the device has no bfloat16.
    """
    try:
        with torch.inference_mode(), torch.autocast(device, enabled=False):
            float32_seconds = _fastest_product(device, torch.float32)
            bfloat16_seconds = _fastest_product(device, torch.bfloat16)
    except (RuntimeError, TypeError):  # PyTorch knows no such product, or no autocast, for this device
        return 0.0
    return float32_seconds / bfloat16_seconds


def _fastest_product(device: str, dtype: torch.dtype) -> float:
    """Return the seconds that the fastest of some products takes."""
    rows, inner, columns = _SIZES.get(device, _GPU_SIZE)
    first = torch.full((rows, inner), 1 / 16, dtype=dtype, device=device)
    second = torch.full((columns, inner), 1 / 16, dtype=dtype, device=device)
    product = torch.empty((rows, columns), dtype=dtype, device=device)
    fastest = math.inf
    for _ in range(1 + _REPEATS):  # the first prepares the kernel, and is never the fastest
        _synchronize(device)
        started = time.perf_counter()
        torch.mm(first, second.T, out=product)
        _synchronize(device)
        fastest = min(fastest, time.perf_counter() - started)
    return fastest


def _synchronize(device: str) -> None:
    """Wait for what an accelerator was given to do."""
    if device != "cpu":
        torch.accelerator.synchronize()


def warn_of_slow_bfloat16(device: str) -> None:
    """Warn where a device is slower in bfloat16 than in float32."""
    speedup = bfloat16_speedup(device)
    if speedup >= 0.9:  # 1 but for noise
        return
    device_name = "this processor" if device == "cpu" else f"this device ({device})"
    logger.warning(
        "%s multiplies matrices in bfloat16 at %.2g times the speed of float32: leave bfloat16 out, or compute on "
        "another machine.",
        device_name,
        speedup,
    )
