"""Metrics for Hugging Face ``evaluate``, thin over ``st_xling.evaluation`` and ``st_xling.mining``.

- ``bucc_mining``: precision, recall and F1 of mined pairs
- ``tatoeba``: translation retrieval from embeddings: P@1, mteb's weighted F1, xsim error
- ``xpr_ranking``: acc@k, MRR, MAP and nDCG of ranked candidates

Each is a folder as ``evaluate`` expects it. After ``import st_xling``, ``evaluate.load("bucc_mining")``
finds it by name; ``evaluate.load(st_xling.metrics.path("bucc_mining"))`` by path, without asking the network first.

``evaluate.load(name)`` looks in ``./name``, on the Hub, and at last in its modules cache, in
``evaluate_modules/metrics/evaluate-metric--NAME/<64 characters>/NAME.py``. There :func:`write_shims` puts a few lines
that import the metric from this package, or name what to install where it is gone. They are written
when ``st_xling`` is imported, so nothing heavier than the standard library may be imported here.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import sys
from pathlib import Path

from st_xling._version import __version__

#: Names for ``evaluate.load``.
NAMES = ("bucc_mining", "tatoeba", "xpr_ranking")

__all__ = ["NAMES", "path"]


def path(name: str) -> str:
    """Return the folder of a metric, for ``evaluate.load``.

    Args:
        name: One of :data:`NAMES`.

    Returns:
        Absolute path.

    Raises:
        ValueError: On an unknown name.
    """
    if name not in NAMES:
        raise ValueError(f"name must be one of {', '.join(NAMES)}: got {name!r}.")
    return str(Path(__file__).resolve().parent / name)


def _is_about_others(record: logging.LogRecord) -> bool:
    """Return false for evaluate's message that one of our metrics "couldn't be found … remotely".

    Our metrics are meant to be found in the cache, and the message reads like a failure.
    """
    message = record.getMessage()
    named = re.search(r"found locally at evaluate-metric--(\w+),", message)
    return named is None or named[1] not in NAMES


def write_shims() -> None:
    """Put the shims into evaluate's modules cache, where they are missing or of another version.

    A cache that cannot be written is left alone: ``evaluate.load`` by path, or of a module found elsewhere, is not
    affected, and importing ``st_xling`` must never fail for it.
    """
    logging.getLogger("evaluate.loading").addFilter(_is_about_others)  # once: the same filter is not added again
    for name in NAMES:
        folder = modules_cache() / "evaluate_modules" / "metrics" / f"evaluate-metric--{name}"
        # One path for all versions, so that the shim of another version is replaced.
        shim = folder / hashlib.sha256(f"st-xling/{name}".encode()).hexdigest() / f"{name}.py"
        text = shim_text(name).encode()
        with contextlib.suppress(OSError):
            if not shim.is_file() or shim.read_bytes() != text:
                shim.parent.mkdir(parents=True, exist_ok=True)
                temporary = shim.with_name(f".{os.getpid()}.tmp")
                temporary.write_bytes(text)
                temporary.replace(shim)


def modules_cache() -> Path:
    """Return the folder where ``evaluate`` keeps modules, by its rules but without importing it."""
    config = sys.modules.get("evaluate.config")
    if config is not None and hasattr(config, "HF_MODULES_CACHE"):
        return Path(config.HF_MODULES_CACHE)
    # As evaluate/config.py, down to what it expands and what not: HF_HOME yes, HF_MODULES_CACHE no.
    default_home = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "huggingface")  # noqa: PTH118
    home = os.path.expanduser(os.getenv("HF_HOME", default_home))  # noqa: PTH111
    return Path(os.getenv("HF_MODULES_CACHE", os.path.join(home, "modules")))  # noqa: PTH118


def shim_text(name: str) -> str:
    """Return the content of a shim, which may outlive the package in the cache."""
    class_name = "".join(word.capitalize() for word in name.split("_"))
    return f'''"""Written by st-xling {__version__}: the metric itself is in the installed package."""
try:
    from st_xling.metrics.{name}.{name} import {class_name}  # noqa: F401
except ModuleNotFoundError as error:
    if error.name.partition(".")[0] != "st_xling":
        raise
    raise ImportError(
        "the metric {name} is part of st-xling, which this Python does not have (any more): "
        f"pip install st-xling, or remove {{__file__}}"
    ) from error
'''
