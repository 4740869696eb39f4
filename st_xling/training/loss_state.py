"""What a loss owns and the host forgets: heads, language embeddings, vocabularies."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from st_xling.utils.io import atomic_path

LOSS_STATE_NAME = "loss.safetensors"


def own_state(loss: nn.Module, model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers of ``loss`` that are not the model's, by their names within the loss.

    Args:
        loss: An objective that holds ``model``, plain or wrapped for distributed training.
        model: The ``SentenceTransformer`` being trained.

    Returns:
        Name → tensor, sharing memory with the loss; empty for an objective without a head.
    """
    shared = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    named = [*loss.named_parameters(), *loss.named_buffers()]  # each tensor once, under its first name
    return {name: tensor for name, tensor in named if id(tensor) not in shared}


def save_loss_state(loss: nn.Module, model: nn.Module, folder: str | Path) -> Path | None:
    """Write :func:`own_state` to ``folder/loss.safetensors``; nothing is written where nothing is owned."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in own_state(loss, model).items()}
    if not state:
        return None
    path = Path(folder) / LOSS_STATE_NAME
    with atomic_path(path) as temporary:
        save_file(state, temporary)
    return path


def load_loss_state(loss: nn.Module, model: nn.Module, folder: str | Path) -> None:
    """Restore what :func:`save_loss_state` wrote, in place.

    Raises:
        ValueError: The file is missing, or holds other tensors than this loss owns; the message names them.
    """
    state = own_state(loss, model)
    path = Path(folder) / LOSS_STATE_NAME
    if not state and not path.exists():
        return
    if not path.exists():
        raise ValueError(
            f"expected the loss's own parameters in {path}: it is missing, so the checkpoint was written without "
            f"{', '.join(sorted(state)[:3])}, …; resume with the recipe that wrote it, or start anew."
        )
    saved = load_file(path)
    unlike = sorted(
        name
        for name in state.keys() | saved.keys()
        if name not in state or name not in saved or state[name].shape != saved[name].shape
    )
    if unlike:
        raise ValueError(
            f"{path} does not fit this loss: {', '.join(unlike[:5])} are missing, unknown or of another shape; "
            "resume with the recipe that wrote it."
        )
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(saved[name])
