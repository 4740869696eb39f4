"""What a run was computed on: the facts that a model card tells of its cost. No names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import sentence_transformers
import torch
import transformers


def machine_facts() -> dict[str, Any]:
    """Processor, accelerators, memory and versions of this process's machine; what cannot be found is left out.

    Returns:
        ``processor``, ``cores`` (that this process may use), ``threads`` (that torch uses), ``memory_gib``,
        ``accelerators`` (names), ``system``, and ``versions`` of Python and the libraries.
    """
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": _cores(),
        "threads": torch.get_num_threads(),
        "memory_gib": _memory_gib(),
        "accelerators": _accelerators(),
        "system": f"{platform.system()} {platform.machine()}".strip(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "sentence-transformers": sentence_transformers.__version__,
        },
    }
    return {name: fact for name, fact in facts.items() if fact}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says
        return os.cpu_count() or 0


def _memory_gib() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return 0.0


def _accelerators() -> list[str]:
    if torch.cuda.is_available():
        return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return ["Apple MPS"] if torch.backends.mps.is_available() else []
