"""Training by adapters (LoRA): put in before, kept with every checkpoint, merged into the weights at the end.

Adapters live in the run's folder beside the model that they change:

======================================  ====================================================================
``training/base/``                      the model as training found it
``training/checkpoint-N/``              adapters, modules after the transformer, ``loss.safetensors``
``adapter_model.safetensors`` on top    with ``merge: false``; otherwise the merged model stands there as usual
======================================  ====================================================================
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from sentence_transformers.base.model import BaseModel
from torch import nn

from st_xling.models.adapters import has_adapters, merge_adapters
from st_xling.models.backbone import token_encoder
from st_xling.models.lora_options import LoraOptions

if TYPE_CHECKING:
    from peft import LoraConfig

NAME = "default"
WEIGHTS_NAME = "adapter_model.safetensors"
_POOLER = r"(.*\.)?pooler\..*"
"""BERT's pooler, which no sentence embedding of ours passes through."""


def require_peft() -> None:
    """Raise ``ValueError`` unless peft, an extra of ours, can be imported."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        raise ValueError("adapters need peft, which is not installed: pip install st-xling[lora].") from error


def check_start(model: BaseModel, options: LoraOptions | None, *, given: bool) -> None:
    """Merge the adapters that a model to start from brings along: training goes on from what it computes.

    Args:
        model: What a name or a folder gave, or a model that was ``given`` ready-made.
        options: Which adapters it will get, if any.
        given: Ready-made models are not changed behind their owner's back.

    Raises:
        ValueError: A ready-made model with adapters; adapters to be kept apart, over others that are merged.
    """
    if not has_adapters(model):
        return
    if given:
        raise ValueError(
            "expected a model without adapters: got one that has some; merge them with "
            "st_xling.models.adapters.merge_adapters, and let training.lora make new ones."
        )
    if options is not None and not options.merge:
        raise ValueError(
            "adapters are kept apart from a base that has none: the model to start from is made of adapters itself; "
            "train with --lora, which merges, or start from its base."
        )
    merge_lora(model)


def add_lora(model: BaseModel, options: LoraOptions, *, base: Path, seed: int = 0) -> None:
    """Freeze the transformer inside ``model`` and put fresh adapters, which change nothing yet, beside its layers.

    Losses that copy layers are built before: they copy plain ones. Modules after the transformer stay as trainable as
    they are, and so does what the losses own.

    Args:
        model: A plain ``SentenceTransformer`` or ``CrossEncoder``.
        options: Which adapters.
        base: Where the model is kept as it is now, for checkpoints to name; nothing is written there.
        seed: Of ``A``; ``B`` starts at zero. Other randomness is left alone.

    Raises:
        ValueError: peft is missing, no layer or the word embeddings are called so, or the model has adapters already.
    """
    require_peft()
    transformer = token_encoder(model)
    if has_adapters(model):
        raise ValueError("the model has adapters already: merge them, or leave out training.lora.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model.add_adapter(_config(options, heads=classification_heads(transformer)), NAME)
        except ValueError as error:
            transformer._hf_peft_config_loaded = False  # type: ignore[assignment]
            linear = {name.rpartition(".")[2] for name, part in transformer.named_modules() if type(part) is nn.Linear}
            raise ValueError(
                f"training.lora.target_modules={options.target_modules!r} fits no layer of "
                f"{type(transformer).__name__}: its linear layers are called {', '.join(sorted(linear)) or 'nothing'}."
            ) from error
    if any("embedding" in name and name.endswith("base_layer") for name, _ in transformer.named_modules()):
        merge_lora(model)  # as it came: fresh adapters change nothing
        raise ValueError(
            "training.lora.target_modules must leave the embeddings alone, which the losses' heads read: got "
            f"{options.target_modules!r}; name layers of attention and feed-forward."
        )
    name_base(model, str(base.resolve()))


def name_base(model: BaseModel, name: str) -> None:
    """Record the model that the adapters belong to: a Hub id, or a folder."""
    token_encoder(model).peft_config[NAME].base_model_name_or_path = name  # type: ignore[union-attr, index]


def end_lora(model: BaseModel, options: LoraOptions, *, start: str, base: Path) -> None:
    """What is published: the merged model, or adapters that name their base.

    Args:
        model: The trained model.
        options: Whether to merge.
        start: What training started from; a Hub id is named as the base.
        base: The folder with that model, named otherwise: adapters stay usable as long as it stays where it is.
    """
    if options.merge:
        merge_lora(model)
    else:
        name_base(model, str(base.resolve()) if start == "tiny" or Path(start).exists() else start)


def merge_lora(model: BaseModel) -> None:
    """Fold the adapters into the weights: a plain, trainable model that computes the same."""
    merge_adapters(model)
    token_encoder(model).requires_grad_(True)


def load_adapters(model: BaseModel, checkpoint: str | Path) -> None:
    """Restore what a checkpoint holds of a model with adapters: these, and the modules after the transformer.

    The base model is not looked for: ``model`` has it, wherever the checkpoint's folder was moved to.

    Raises:
        ValueError: The checkpoint holds no adapters, or other ones than the model.
    """
    from peft import get_peft_model_state_dict, set_peft_model_state_dict

    transformer: Any = token_encoder(model)
    name = transformer.active_adapters()[0]
    entries = json.loads((Path(checkpoint) / "modules.json").read_text(encoding="utf-8"))
    for entry, module in zip(entries, model):
        if module is not model[0]:
            kind: Any = type(module)
            saved = kind.load(str(checkpoint), subfolder=entry["path"], local_files_only=True)
            module.load_state_dict(saved.state_dict())
    path = Path(checkpoint) / entries[0]["path"] / WEIGHTS_NAME
    if not path.is_file():
        raise ValueError(f"expected adapters in {path}: it is missing; resume with the recipe that wrote it.")
    state = {key.removeprefix("base_model.model."): value for key, value in load_file(path).items()}
    own = get_peft_model_state_dict(transformer, adapter_name=name)
    unlike = sorted(
        key
        for key in own.keys() | state.keys()
        if key not in own or key not in state or own[key].shape != state[key].shape
    )
    if unlike:
        raise ValueError(
            f"{path} does not fit this model's adapters: {', '.join(unlike[:3])} are missing, unknown or of another "
            "shape; resume with the recipe that wrote it."
        )
    set_peft_model_state_dict(transformer, state, adapter_name=name)


def trained_share(model: nn.Module) -> str:
    """How much of ``model`` is trained, for people: ``"123,456 of 9,876,543 weights (1.2 %)"``."""
    sizes = [(part.numel(), part.requires_grad) for part in model.parameters()]
    trained, total = sum(size for size, learns in sizes if learns), sum(size for size, _ in sizes)
    return f"{trained:,} of {total:,} weights ({100 * trained / total:.1f} %)"


def classification_heads(transformer: nn.Module) -> list[str]:
    """Names of what a sequence-classification model has after its encoder's layers: trained in full, saved in full."""
    base = getattr(transformer, "base_model", transformer)
    if base is transformer:
        return []
    pooler = ["pooler"] if isinstance(getattr(base, "pooler", None), nn.Module) else []
    after = [
        name for name, part in transformer.named_children() if part is not base and any(True for _ in part.parameters())
    ]
    return [*pooler, *after]


def _config(options: LoraOptions, *, heads: list[str]) -> LoraConfig:
    from peft import LoraConfig

    targets = options.target_modules
    return LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,  # type: ignore[arg-type]
        lora_dropout=options.dropout,
        target_modules=targets if isinstance(targets, str) else list(targets),
        exclude_modules=_POOLER,
        modules_to_save=heads or None,
        task_type="SEQ_CLS" if heads else "FEATURE_EXTRACTION",
    )
