"""A finished run on disk: model, log, results, and what they were computed on."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import sentence_transformers
import torch
import transformers
from sentence_transformers.base.model import BaseModel

from st_xling.training.run_folder import RunFolder
from st_xling.utils.io import read_json_object, write_atomic, write_json

if TYPE_CHECKING:
    from st_xling.data.leak import LeakReport


def save_run(
    model: BaseModel,
    folder: RunFolder,
    *,
    history: list[dict[str, Any]],
    figures: dict[str, Any],
    leak: LeakReport | None,
) -> None:
    """Write log, model and ``results.json`` (with the machine's facts), then mark the run as finished."""
    # A run that had ended before has the same model, so its evaluations stand.
    evaluations = read_json_object(folder.path / "results.json").get("evaluations") if folder.is_finished else None
    write_log(folder, history)
    folder.save_model(model)
    results: dict[str, Any] = {"training": {**figures, "machine": machine_facts()}}
    if leak is not None:
        results["leak"] = leak.as_dict()
    if evaluations is not None:
        results["evaluations"] = evaluations
    write_json(folder.path / "results.json", results)
    folder.finish()


def write_log(folder: RunFolder, history: list[dict[str, Any]]) -> None:
    """The trainer's log, one line a logged step."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in history]
    write_atomic(folder.training / "log.jsonl", ("\n".join(lines) + "\n").encode("utf-8"))


def machine_facts() -> dict[str, Any]:
    """Processor, accelerators, memory and versions of this process's machine; what cannot be found is left out.

    Returns:
        ``processor``, ``cores`` (that this process may use), ``threads`` (that torch uses), ``memory_gib``,
        ``accelerators`` (names), ``system``, and ``versions`` of Python and the libraries.
    """
    accelerators: list[str] = []
    if torch.cuda.is_available():
        accelerators = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    elif torch.backends.mps.is_available():
        accelerators = ["Apple MPS"]
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "accelerators": accelerators,
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
    try:  # platform.processor() is empty or an architecture on Linux
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
