"""Checks of a recipe's settings that need no torch, so that a typing error is named within a second.

The recipe's own reader checks everything again, once the libraries are loaded (:mod:`st_xling.training.recipe`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, get_type_hints

from st_xling.training.options import AdapterArguments, EncoderArguments, check_numbers
from st_xling.training.recipe_files import check_keys, read_options, read_recipe, read_value, set_key
from st_xling.utils.built_sizes import check_sizes, check_static_sizes
from st_xling.utils.lora_options import LoraOptions
from st_xling.utils.options import nearest_name
from st_xling.utils.private import dataclass_fields

TRACKERS: dict[str, tuple[str, ...]] = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "wandb": ("wandb",),
    "azure_ml": ("azureml",),
    "clearml": ("clearml",),
    "codecarbon": ("codecarbon",),
    "comet_ml": ("comet_ml",),
    "dagshub": ("dagshub",),
    "dvclive": ("dvclive",),
    "flyte": ("flytekit",),
    "kubeflow": (),
    "mlflow": ("mlflow",),
    "neptune": ("neptune",),
    "swanlab": ("swanlab",),
    "trackio": ("trackio",),
}
"""Experiment trackers of transformers, by their names in ``report_to`` → packages, one of which is needed."""

_IN_EXTRA = ("tensorboard", "wandb")
_NO_TRACKER = ("none", "all")

_SECTIONS = (
    *("name", "summary", "start", "tiny", "losses", "loss", "arguments", "data", "model", "bare"),
    *("adapter", "retrieval", "strategy", "negatives", "sentences", "head"),
)
"""Sections of recipes of any kind."""

_ARGUMENT_FILES = (
    ("transformers", "training_args.py"),
    ("sentence_transformers", "base/training_args.py"),
    ("sentence_transformers", "sentence_transformer/training_args.py"),
    ("sentence_transformers", "cross_encoder/training_args.py"),
)


def check_settings(name_or_path: str, overrides: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for a section or training argument that no recipe has, or a tracker that is not installed.

    Args:
        name_or_path: Name of a recipe, or path of its YAML file.
        overrides: Dotted key → value, as of ``--set``.
    """
    raw = read_recipe(name_or_path)
    for key, value in overrides.items():
        set_key(raw, key, value)
    check_keys(raw, _SECTIONS, "the recipe")
    arguments = raw.get("arguments") or {}
    if isinstance(arguments, Mapping):  # otherwise named below
        check_numbers(arguments, "arguments.")
        _check_values(arguments)
    names: list[str] = []
    for package, module in _ARGUMENT_FILES:
        names += dataclass_fields(package, module)
    if names:  # otherwise the libraries have moved their files, and the recipe's reader finds the fault
        our_fields = (*dataclasses.fields(EncoderArguments), *dataclasses.fields(AdapterArguments))
        our_names = [entry.name for entry in our_fields]
        check_keys(arguments, [*our_names, *names], "arguments")
        check_trackers(arguments.get("report_to"))


def _check_values(arguments: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for a value that the annotation of a field of ours excludes."""
    hints = get_type_hints(EncoderArguments)
    for name, value in arguments.items():
        if name == "lora" and isinstance(value, Mapping):
            LoraOptions(**read_options(LoraOptions, dict(value), "arguments.lora"))
        elif name in hints and not name.endswith("_strategy"):  # YAML reads a plain no as false
            read_value(value, hints[name], f"arguments.{name}")


def check_tiny_sizes(options: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for sizes that no small encoder has, or options that it does not take.

    Args:
        options: Those of ``--tiny``, by name.
    """
    sizes = {name: value for name, value in options.items() if name != "pooling"}
    check_sizes(**read_options(check_sizes, sizes, "tiny"))


def check_sizes_of_static(options: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for sizes that no static encoder has, or options that it does not take.

    Args:
        options: Those of ``--static``, by name.
    """
    check_static_sizes(**read_options(check_static_sizes, dict(options), "static"))


def check_trackers(report_to: str | Sequence[str] | None) -> None:
    """Raise ``ValueError`` for an experiment tracker that transformers does not know, or that is not installed.

    Args:
        report_to: transformers' training argument: a name, or a list of names.
    """
    trackers = [report_to] if isinstance(report_to, str) else report_to or []
    for name in trackers:
        if name in _NO_TRACKER:
            continue
        if name not in TRACKERS:
            raise ValueError(f"arguments.report_to has no tracker {name!r}{nearest_name(str(name), TRACKERS)}")
        packages = TRACKERS[name]
        if packages and not any(_is_installed(package) for package in packages):
            requirement = '"st-xling[logging]"' if name in _IN_EXTRA else packages[0]
            raise ValueError(
                f"arguments.report_to={name} needs the package {packages[0]}, which is not installed: pip install "
                f"{requirement}."
            )


def _is_installed(package: str) -> bool:
    # A folder that merely has the name, such as the ./wandb that wandb writes its runs to, is a namespace package.
    spec = find_spec(package)
    return spec is not None and (spec.origin is not None or package == "azureml")
