"""Train adapters (LoRA): added before training, saved with every checkpoint, merged into the weights at the end.

The folder of a run contains adapters next to the model that they change:

======================================  ====================================================================
``training/base/``                      the model before training
``training/checkpoint-N/``              adapters, modules after the transformer, ``loss.safetensors``
``adapter_model.safetensors`` on top    with ``merge: false``; otherwise the merged model as usual
======================================  ====================================================================
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from sentence_transformers.base.model import BaseModel
from torch import nn
from transformers import PreTrainedModel

from st_xling.models.backbones import token_encoder
from st_xling.models.training_dtype import to_float32
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.lora_options import LoraOptions

NAME = "default"
CONFIG = "adapter_config.json"
_POOLER = r"(.*\.)?pooler\..*"  # BERT's pooler, which no sentence embedding of ours passes through
ModuleT = TypeVar("ModuleT", bound=nn.Module)


def has_adapters(module: nn.Module) -> bool:
    """Return whether peft has wrapped any layer of ``module``."""
    return next(_adapted_layers(module), None) is not None


def merge_adapters(module: ModuleT) -> ModuleT:
    """Merge the active adapters into the layers they wrap, in place, and remove them.

    Args:
        module: Anything that contains wrapped layers. Layers whose adapters are disabled are only unwrapped.

    Returns:
        ``module``, without peft. Its weights are as trainable as they were, usually frozen.

    Raises:
        ValueError: Merging would give weights that are not finite.
    """
    for _, _, layer in list(_adapted_layers(module)):
        if hasattr(layer, "modules_to_save"):  # a head that is trained in full: its trained copy replaces it
            layer.original_module = layer.modules_to_save[layer.active_adapter]
        elif not layer.disable_adapters and not layer.merged:
            layer.merge(safe_merge=True)
    return _unwrap_layers(module)


def merge_lora(model: BaseModel) -> None:
    """Merge the adapters of a model and make all its weights trainable.

    Weights of 16 bits become float32, so that they are not rounded to what they were before.
    """
    to_float32(model)
    merge_adapters(model)
    token_encoder(model).requires_grad_(True)


def without_adapters(model: ModuleT) -> ModuleT:
    """Return the base model below adapters that are not merged, which shares its weights with ``model``."""
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    card = getattr(model, "model_card_data", None)  # it knows the trainer
    return _unwrap_layers(copy.deepcopy(model, {**shared, id(card): card}))


def plain_copy(layer: ModuleT) -> ModuleT:
    """Return a trainable copy that computes what ``layer`` does, without adapters and sharing nothing with it."""
    return merge_adapters(copy.deepcopy(layer)).requires_grad_(True)


def _unwrap_layers(module: ModuleT) -> ModuleT:
    for parent, name, layer in list(_adapted_layers(module)):
        below = layer.original_module if hasattr(layer, "original_module") else layer.get_base_layer()
        setattr(parent, name, below)
    for child in module.modules():
        if isinstance(child, PreTrainedModel) and getattr(child, "peft_config", None):
            # No layer has adapters any more: this removes their configuration.
            child.delete_adapter(list(child.peft_config))
    return module


def _adapted_layers(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Wrapped layers with their parents and names; not those inside another wrapped layer."""
    if sys.modules.get("peft") is None:  # no layer can have been wrapped
        return
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import ModulesToSaveWrapper

    for name, child in module.named_children():
        if isinstance(child, (BaseTunerLayer, ModulesToSaveWrapper)):
            yield module, name, child
        else:
            yield from _adapted_layers(child)


def check_start(model: BaseModel, options: LoraOptions | None, *, ready_made: bool) -> None:
    """Merge the adapters that a model to start from already has.

    Args:
        model: A model that was loaded, or is a ready-made one.
        options: Adapters that it will get, if any.
        ready_made: Whether the model belongs to the caller, and is not changed.

    Raises:
        ValueError: A ready-made model with adapters; adapters to be kept, over others that are merged.
    """
    if not has_adapters(model):
        return
    if ready_made:
        raise ValueError("expected a model without adapters: merge them, with st_xling.models.lora.merge_adapters.")
    if options is not None and not options.merge:
        raise ValueError(
            "adapters are kept apart from a base that has none: the model to start from has some; start from its base, "
            "or train with --lora, which merges."
        )
    merge_lora(model)


def add_lora(model: BaseModel, options: LoraOptions, *, base: Path, seed: int = 0) -> None:
    """Freeze the transformer inside ``model`` and add new adapters, which change nothing yet, to its layers.

    Losses that copy layers have to be built before: they copy plain ones. Modules after the transformer, and what the
    losses own, stay as trainable as they are.

    Args:
        model: A plain ``SentenceTransformer`` or ``CrossEncoder``.
        options: Shape of the adapters.
        base: Folder in which the model is saved as it is now, for checkpoints to name; nothing is written there.
        seed: Seed of ``A``; ``B`` starts at zero. The global random state is not changed.

    Raises:
        ValueError: Layers that the model lacks, or adapters that it has already.
    """
    from peft import LoraConfig

    first = next(iter(model.children()), None)
    if not isinstance(getattr(first, "auto_model", None), nn.Module):
        raise ValueError(
            f"LoRA adapts the layers of a transformer: the first module is {type(first).__name__}, which has none; "
            "train without it."
        )
    transformer = token_encoder(model)
    _check_targets(transformer, options.target_modules)
    heads = _classification_heads(transformer)
    has_pooler = any(re.fullmatch(_POOLER, name) for name, _ in transformer.named_modules())
    excluded = _POOLER if has_pooler else None  # peft warns where there is nothing to exclude
    task_type = "SEQ_CLS" if heads else "FEATURE_EXTRACTION"
    config = LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,  # type: ignore[arg-type]
        lora_dropout=options.dropout,
        target_modules=options.target_modules,  # type: ignore[arg-type]
        exclude_modules=excluded,
        modules_to_save=heads or None,
        task_type=task_type,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.add_adapter(config, NAME)
    for weight in transformer.parameters():  # transformers gives adapters the type of the frozen weights
        if weight.requires_grad:
            weight.data = weight.data.to(torch.promote_types(weight.dtype, torch.float32))
    name_base(model, str(base.resolve()))


def _check_targets(transformer: nn.Module, targets: str | Sequence[str]) -> None:
    """Raise ``ValueError`` for names that no linear layer has: peft adapts those that it finds, without a warning."""
    if isinstance(targets, str):  # "all-linear", or a pattern: peft raises where nothing matches
        return
    linear = [name for name, module in transformer.named_modules() if isinstance(module, nn.Linear)]
    linear = [name for name in linear if not re.fullmatch(_POOLER, name)]
    unknown = [target for target in targets if not _names_any(target, linear)]
    if unknown:
        last_names = sorted({name.rpartition(".")[2] for name in linear})
        raise ValueError(
            f"target_modules must name linear layers of {type(transformer).__name__}: it has {', '.join(last_names)}, "
            f"got {', '.join(unknown)}."
        )


def _names_any(target: str, names: Sequence[str]) -> bool:
    """Return whether a dotted name ends with ``target``: ``output.dense`` with ``dense``."""
    return any(f".{name}".endswith(f".{target}") for name in names)


def name_base(model: BaseModel, name: str) -> None:
    """Record the model that the adapters belong to: a Hub id, or a folder."""
    token_encoder(model).peft_config[NAME].base_model_name_or_path = name  # type: ignore[union-attr, index]


def end_lora(model: BaseModel, options: LoraOptions, *, start: str | None, base: Path) -> None:
    """Merge the adapters, or name their base where they are published by themselves.

    Args:
        model: The trained model.
        options: ``merge`` decides.
        start: Model that training started from; a Hub id becomes the base. ``None`` if it is not known.
        base: The folder with that model, which is the base otherwise.
    """
    if options.merge:
        merge_lora(model)
    elif start is not None and not Path(start).exists():  # a Hub id
        name_base(model, start)
    else:
        name_base(model, str(base.resolve()))


def own_base(folder: str | Path) -> Path | None:
    """The base model that a run keeps next to adapters: of the trained model, or of one of its checkpoints.

    Args:
        folder: Folder of a model, in or with the folder ``training`` of its run, wherever that was moved.

    Returns:
        Folder of the base; ``None`` without adapters, or where no base is kept.
    """
    path = Path(folder).resolve()
    if not (path / CONFIG).is_file():
        return None
    candidates = [path / "training" / "base"]
    candidates += sorted(path.glob("training/stage-*/base"), key=_stage_number, reverse=True)
    if path.name.startswith("checkpoint-"):
        candidates.append(path.parent / "base")
    # `modules.json` is written with the model, so that a folder with it is complete.
    return next((base for base in candidates if (base / "modules.json").is_file()), None)


def _stage_number(base: Path) -> int:
    """The number of a stage, from the path of its base: stage-10 comes after stage-9."""
    return int(base.parent.name.rpartition("-")[2])


@contextlib.contextmanager
def adapters_on_own_base(folder: str) -> Iterator[str]:
    """Yield the path to load a folder from, so that its adapters find the base that their run keeps.

    ``adapter_config.json`` names the base by the path that it had when it was saved, or on the Hub. transformers would
    look nowhere else, so a folder that was moved, or whose first base was deleted, could not be loaded. The path that
    is yielded is a temporary folder of links with another ``adapter_config.json``.

    Args:
        folder: Folder or Hub id of any model; one without adapters, or next to which no base is kept, is yielded as it
            is.

    Raises:
        ValueError: Adapters of a folder that is missing.
    """
    base = own_base(folder)
    config = read_json_object(Path(folder) / CONFIG)
    if base is None:
        named = config.get("base_model_name_or_path") or ""
        if Path(named).is_absolute() and not Path(named).exists():
            raise ValueError(
                f"its adapters belong to the model in {named}, which is missing: restore that folder, or copy it to "
                f"{Path(folder) / 'training' / 'base'}"
            )
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="st-xling-") as parent:
        view = Path(parent) / Path(folder).resolve().name  # cards are called by the folder's name
        view.mkdir()
        for path in Path(folder).resolve().iterdir():
            if path.name != CONFIG:
                (view / path.name).symlink_to(path)
        write_json(view / CONFIG, {**config, "base_model_name_or_path": str(base)})
        yield str(view)


def load_adapters(model: BaseModel, checkpoint: str | Path) -> None:
    """Load the adapters of a checkpoint, and its modules after the transformer, into a model with adapters.

    The base model is not read: ``model`` has it, wherever the checkpoint's folder was moved to.
    """
    from peft import set_peft_model_state_dict

    entries = json.loads((Path(checkpoint) / "modules.json").read_text(encoding="utf-8"))
    for entry, module in list(zip(entries, model))[1:]:
        kind: Any = type(module)
        saved = kind.load(str(checkpoint), subfolder=entry["path"], local_files_only=True)
        module.load_state_dict(saved.state_dict())
    weights = load_file(Path(checkpoint) / entries[0]["path"] / "adapter_model.safetensors")
    state = {key.removeprefix("base_model.model."): value for key, value in weights.items()}
    set_peft_model_state_dict(token_encoder(model), state, adapter_name=NAME)


def trained_share(model: nn.Module) -> str:
    """Describe how much of ``model`` is trained: ``"123,456 of 9,876,543 weights (1.2 %)"``."""
    total = sum(parameter.numel() for parameter in model.parameters())
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return f"{trained:,} of {total:,} weights ({100 * trained / total:.1f} %)"


def _classification_heads(transformer: nn.Module) -> list[str]:
    """Return what a sequence-classification model has after its encoder's layers, to be trained in full."""
    base = getattr(transformer, "base_model", transformer)
    if base is transformer:
        return []
    names = []
    if isinstance(getattr(base, "pooler", None), nn.Module):
        names.append("pooler")
    for name, child in transformer.named_children():
        if child is not base and any(True for _ in child.parameters()):
            names.append(name)
    return names
