"""``st-xling info``: what a bug report needs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer

from st_xling._version import __version__
from st_xling.cli.app import LOOK_UP, Command, app
from st_xling.cli.results import write_results

VARIABLES = (
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "HF_ENDPOINT",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "ST_XLING_DATA",
)
"""Variables of the environment that change what commands do; none of them is a secret."""
WITHOUT_USE_HERE = ("docs", "notebooks", "test")
"""Extras for work on st-xling itself."""


def installed(packages: Sequence[str]) -> dict[str, str | None]:
    """Return the version of each package, ``None`` if it is not installed. Nothing is imported."""
    versions: dict[str, str | None] = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def requirements() -> tuple[list[str], list[str]]:
    """Return the packages that st-xling requires, and those of its extras, in the order of its own list."""
    try:
        lines = requires("st-xling") or []
    except PackageNotFoundError:  # run from its folder, not installed
        lines = []
    required: list[str] = []
    optional: list[str] = []
    for line in lines:
        package = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        extra = re.search(r'extra == "([\w-]+)"', line)
        if extra is None:
            required.append(package)
        elif extra[1] not in WITHOUT_USE_HERE:
            optional.append(package)
    return required, [package for package in dict.fromkeys(optional) if package not in (*required, "st-xling")]


def devices() -> list[str]:
    """Describe the devices that PyTorch sees, those that commands choose by default first."""
    import torch

    names: list[str] = []
    for index in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_properties(index)
        names.append(f"cuda:{index}, {gpu.name}, {gpu.total_memory / 2**30:.0f} GiB")
    if torch.backends.mps.is_available():
        names.append("mps")
    names.append(f"cpu, {torch.get_num_threads()} threads of {os.cpu_count()} cores")
    return names


def caches() -> dict[str, Path]:
    """Return the folders that keep what was downloaded or computed."""
    from datasets.config import HF_DATASETS_CACHE
    from huggingface_hub.constants import HF_HUB_CACHE

    from st_xling.training.sentence_vectors import cache_folder

    return {
        "models and data": Path(HF_HUB_CACHE),
        "data sets as read": Path(HF_DATASETS_CACHE),
        "sentence embeddings": cache_folder(None),
    }


def shown(text: str | Path) -> str:
    """Return a path in the user's home with ``~`` instead, since it goes into a public report."""
    return re.sub(rf"^{re.escape(str(Path.home()))}(?=/|$)", "~", str(text))


def facts() -> dict[str, dict[str, str]]:
    """Return all facts by heading."""
    from st_xling.utils.precision import bfloat16_speedup
    from st_xling.utils.terminal import hide_passwords

    required, optional = requirements()
    numbered = {"st-xling": __version__, "Python": platform.python_version()}
    for package, number in installed(required).items():
        numbered[package] = number or "missing"
    extras = {package: number or "not installed" for package, number in installed(optional).items()}
    device_names = devices()
    kind = device_names[0].partition(",")[0].partition(":")[0]
    machine = {
        "system": platform.platform(),
        "devices": "; ".join(device_names),
        "bfloat16": f"{bfloat16_speedup(kind):.1f} times as fast as float32 ({kind})",
    }
    environment = {name: hide_passwords(shown(os.environ[name])) for name in VARIABLES if name in os.environ}
    folders: dict[str, str] = {}
    for name, path in caches().items():
        folders[name] = shown(path) if path.exists() else f"{shown(path)} (not there yet)"
    return {
        "versions": numbered,
        "optional packages": extras,
        "machine": machine,
        "environment": environment or {"none": "of the variables that change what commands do is set"},
        "caches": folders,
    }


@app.command("info", cls=Command, rich_help_panel=LOOK_UP)
def info(context: typer.Context) -> None:
    """Print versions, devices, threads and caches, for a bug report.

    Nothing is downloaded or sent. Folders in your home begin with ~, so that the report can be made public.

    \b
    examples:
      st-xling info
      st-xling info --json info.json
    """
    collected = facts()
    blocks: list[str] = []
    for heading, entries in collected.items():
        width = max(map(len, entries))
        lines = [f"  {name:<{width}}  {value}" for name, value in entries.items()]
        blocks.append("\n".join([heading, *lines]))
    print("\n\n".join(blocks))
    write_results(context, collected)
