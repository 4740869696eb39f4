"""Linear layers in float32, on processors where torch takes the slower of the two libraries that it has.

Three quarters of a training step on a CPU are products of linear layers. torch computes them by MKL, which only uses
AVX-512 on Intel's processors. oneDNN, which torch has too, uses it on all: on one core of an AMD EPYC (Zen 5) these
products take half the time, and a step of translation ranking two thirds.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from st_xling.utils.private import onednn_linear

#: Smaller weights, and fewer rows, are left to torch: so small a product takes less time than calling another one.
MIN_WEIGHTS = 128 * 128
MIN_ROWS = 8

#: Rows, inputs and outputs of the product that is measured: a feed-forward layer of a small encoder.
_MEASURED_SHAPE = (256, 384, 1536)
_MEASURED_CALLS = 5

#: oneDNN is twice as fast where MKL has no AVX-512, and else about as fast: in the gap between, noise decides nothing.
_MIN_SPEEDUP = 1.4

_active: ContextVar[bool] = ContextVar("active", default=False)


@contextlib.contextmanager
def fast_linear_layers() -> Iterator[None]:
    """Within it, this thread computes linear layers in float32 on a CPU by the library that is faster there.

    Values and gradients are the same up to rounding. Autocast, other types and devices, small layers, and layers with
    a subclass of ``Tensor`` are left to torch.
    """
    if not onednn_is_faster():
        yield
        return
    token = _active.set(True)
    try:
        with _ByOneDnn():
            yield
    finally:
        _active.reset(token)


@contextlib.contextmanager
def in_backward_pass() -> Iterator[None]:
    """Within it, layers that a backward pass computes again are computed as in the forward pass.

    torch leaves its function modes in backward passes, so that the second pass of a cached loss would be slow.
    """
    if not _active.get():
        yield
        return
    with _ByOneDnn():
        yield


def recomputes_layers(model: nn.Module) -> bool:
    """Return whether gradient checkpointing is on, which must compute layers again as torch did the first time."""
    return any(getattr(module, "gradient_checkpointing", False) for module in model.modules())


@functools.cache
def onednn_is_faster() -> bool:
    """Measure whether oneDNN is clearly faster in a product of an encoder's size, once in a process (20 ms)."""
    if not torch.backends.mkldnn.is_available():
        return False
    rows, inputs, outputs = _MEASURED_SHAPE
    states = torch.full((rows, inputs), 1 / 16)  # constant, so that no random state changes
    weight = torch.full((outputs, inputs), 1 / 16)
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        torch_seconds = _least_seconds(lambda: F.linear(states, weight))
        onednn_seconds = _least_seconds(lambda: onednn_linear(states, weight, None))
    return torch_seconds >= _MIN_SPEEDUP * onednn_seconds


def _least_seconds(product: Callable[[], Tensor]) -> float:
    """Return the seconds of the fastest of some calls: others may have shared the processor."""
    least = math.inf
    for _ in range(1 + _MEASURED_CALLS):  # the first prepares the kernel, and is never the fastest
        started = time.perf_counter()
        product()
        least = min(least, time.perf_counter() - started)
    return least


class _ByOneDnn(TorchFunctionMode):
    """Calls oneDNN in place of ``torch.nn.functional.linear``."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is F.linear and not kwargs and len(args) == 3 and _is_large_and_plain(*args):
            return _OneDnnLinear.apply(*args)
        return func(*args, **(kwargs or {}))


def _is_large_and_plain(states: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    if weight.ndim != 2 or weight.numel() < MIN_WEIGHTS or torch.is_autocast_enabled("cpu"):
        return False
    if states.ndim < 2 or states.numel() < MIN_ROWS * weight.shape[1]:
        return False
    tensors = [states, weight] if bias is None else [states, weight, bias]
    return all(
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.dtype == torch.float32
        and tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        for tensor in tensors
    )


class _OneDnnLinear(torch.autograd.Function):
    """``states @ weight.T + bias``, whose gradients are two products of the same kind."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(states, weight)
        return onednn_linear(states, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        states, weight = ctx.saved_tensors
        rows = gradient.flatten(end_dim=-2)
        by_states = by_weight = by_bias = None
        if ctx.needs_input_grad[0]:
            by_states = onednn_linear(gradient, weight.t(), None)
        if ctx.needs_input_grad[1]:
            by_weight = onednn_linear(rows.t(), states.flatten(end_dim=-2).t(), None)
        if ctx.needs_input_grad[2]:
            by_bias = rows.sum(dim=0)
        return by_states, by_weight, by_bias
