"""Adapters (LoRA and its kin) that peft has put into a model: found, folded into the weights below, taken out."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


def has_adapters(module: nn.Module) -> bool:
    """Whether peft has wrapped any layer of ``module``."""
    return next(_adapted(module), None) is not None


def merge_adapters(module: M) -> M:
    """Fold the active adapters into the layers they wrap and take them out, in place; values stay as they were.

    Args:
        module: Anything that contains wrapped layers. Layers whose adapters are switched off are unwrapped alone.

    Returns:
        ``module``, without a trace of peft. Its weights are as trainable as they were, usually frozen.

    Raises:
        ValueError: Merging would give weights that are not finite.
    """
    for _, name, layer in list(_adapted(module)):
        if hasattr(layer, "modules_to_save"):  # a head that is trained in full: its trained copy takes its place
            layer.original_module = layer.modules_to_save[layer.active_adapter]
        elif not layer.disable_adapters and not layer.merged:
            try:
                layer.merge(safe_merge=True)
            except ValueError as error:
                raise ValueError(f"the adapters of {name} cannot be merged: {error}") from error
    return _take_out(module)


def without_adapters(model: M) -> M:
    """The base model below the adapters: another module, of the very same weights, for saving.

    Args:
        model: A ``SentenceTransformer`` whose adapters are not merged.
    """
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    card = getattr(model, "model_card_data", None)  # it knows the trainer
    return _take_out(copy.deepcopy(model, {**shared, id(card): card}))


def plain_copy(layer: M) -> M:
    """A trainable copy that computes what ``layer`` does, without adapters and sharing nothing with it."""
    return merge_adapters(copy.deepcopy(layer)).requires_grad_(True)


def _take_out(module: M) -> M:
    for parent, name, layer in list(_adapted(module)):
        below = layer.original_module if hasattr(layer, "original_module") else layer.get_base_layer()
        setattr(parent, name, below)
    for part in module.modules():
        if getattr(part, "_hf_peft_config_loaded", False):
            setattr(part, "_hf_peft_config_loaded", False)  # noqa: B010
            del part.peft_config
    return module


def _adapted(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Wrapped layers with their parents and their names there; not those inside another wrapped layer."""
    if sys.modules.get("peft") is None:  # nobody can have wrapped anything
        return
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import ModulesToSaveWrapper

    for name, child in module.named_children():
        if isinstance(child, (BaseTunerLayer, ModulesToSaveWrapper)):
            yield module, name, child
        else:
            yield from _adapted(child)
