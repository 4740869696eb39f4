"""How much memory there is, and how much a piece of work takes."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from torch.profiler import ProfilerActivity, profile

MIB = 2**20
GPU_SHARE = 0.9
CPU_SHARE = 0.8
"""Of the free memory; the rest is headroom."""

_CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


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
