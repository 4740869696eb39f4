"""Names of devices, and what they compute in."""

from __future__ import annotations

import logging
from pathlib import Path

from st_xling.utils.failures import first_line

logger = logging.getLogger(__name__)

_CPU_FACTS = Path("/proc/cpuinfo")
_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # of Intel and AMD, the last of ARM


def cpu_has_bfloat16() -> bool | None:
    """Return whether the processor has bfloat16 instructions; ``None`` where that is unknown, as on macOS."""
    try:
        facts = _CPU_FACTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return not _BFLOAT16.isdisjoint(facts.split())


def warn_of_slow_bfloat16(device: str) -> None:
    """Warn where ``device`` is a processor that has to emulate bfloat16."""
    if device == "cpu" and cpu_has_bfloat16() is False:
        logger.warning(
            "bfloat16 on a processor without instructions for it, which can be ten times slower than float32: "
            "leave bfloat16 out, or compute on another machine."
        )


def check_device(name: str) -> None:
    """Raise unless this machine and this build of PyTorch have the device.

    Args:
        name: As PyTorch spells it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``.
    Raises:
        ValueError: For a name that is none, or a device that is not there.
    """
    import torch

    try:
        torch.zeros(1, device=torch.device(name))
    except Exception as error:  # AssertionError, RuntimeError or NotImplementedError, by device
        there = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        there += ["mps"] if torch.backends.mps.is_available() else []
        raise ValueError(
            f"device must be one of this machine's ({', '.join(there)}): got {name!r} ({first_line(error)})."
        ) from error
