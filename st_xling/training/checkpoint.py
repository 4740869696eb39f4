"""Checkpoints that are complete, and the loss's own parameters in them.

``done.json`` is the last file that is written to a checkpoint, so one that was cut off is never resumed. It holds the
seconds of training up to there.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from st_xling.models.lora import unlike_tensors
from st_xling.utils.io import atomic_path, is_disk_full, read_json_object, write_json

logger = logging.getLogger(__name__)

DONE = "done.json"
BASE = "base"
LOSS_STATE_NAME = "loss.safetensors"
_CHECKPOINT = re.compile(r"checkpoint-\d+")


def mark_complete(checkpoint: Path, *, seconds: float = 0.0) -> None:
    """Write ``done.json``, once all other files of a checkpoint are written.

    Args:
        checkpoint: Its folder.
        seconds: Of training so far.
    """
    write_json(checkpoint / DONE, {"seconds": round(seconds, 3)})


def is_complete(checkpoint: Path) -> bool:
    """Return whether a checkpoint is complete."""
    return (checkpoint / DONE).is_file()


def seconds_at(folder: Path | str | None) -> float:
    """Seconds of training up to a checkpoint; 0 for none."""
    if folder is None or not is_complete(Path(folder)):
        return 0.0
    return float(read_json_object(Path(folder) / DONE).get("seconds") or 0.0)


def newest_checkpoint(folder: Path) -> Path | None:
    """The newest complete ``checkpoint-N`` in the folder of a run, or of one of its stages."""
    return next((checkpoint for _, checkpoint in reversed(_by_step(folder)) if is_complete(checkpoint)), None)


def step_of(checkpoint: Path) -> int:
    """The optimizer steps made up to it."""
    return int(checkpoint.name.rpartition("-")[2])


def remove_earlier(checkpoint: Path, *, keep: int | None, best: str | Path | None = None) -> None:
    """Remove complete checkpoints of fewer steps beyond those to be kept, and all incomplete ones of fewer steps.

    transformers' own removal goes by the folders' times, and by their names where these are close.

    Args:
        checkpoint: The newest, complete.
        keep: How many to keep, it and the best one included; ``None``: all.
        best: Never removed.
    """
    if keep is None:
        return
    # The newest is what a run resumes from, the best what it ends with: neither counts for removal.
    protected = {checkpoint.name} if best is None else {checkpoint.name, Path(best).name}
    earlier = [
        path for step, path in _by_step(checkpoint.parent) if step < step_of(checkpoint) and path.name not in protected
    ]
    room = max(0, keep - len(protected))
    complete = [path for path in earlier if is_complete(path)]
    spared = complete[-room:] if room else []
    for path in earlier:
        if path not in spared:
            shutil.rmtree(path, ignore_errors=True)


def forget_last_call(model: Any) -> None:
    """Take truncation and padding of the last call out of a model's tokenizers, before they are saved.

    Fast tokenizers keep both and save them in ``tokenizer.json``, from where they come back as settings: files would
    depend on what was last encoded, and a resumed run would end with others than an undisturbed one.
    """
    modules = [model, *model.modules()] if hasattr(model, "modules") else [model]
    for module in modules:
        backend = getattr(getattr(module, "tokenizer", None), "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()


@contextlib.contextmanager
def enough_room(path: Path, checkpoints: Path) -> Iterator[None]:
    """Raise what libraries raise for a full disk as ``OSError``, with the file and what to do.

    Args:
        path: Of the file or folder that is written.
        checkpoints: Folder of those that the run can go on from.
    """
    try:
        yield
    except Exception as error:
        if not is_disk_full(error):
            raise
        number = error.errno if isinstance(error, OSError) and error.errno else errno.ENOSPC
        last = newest_checkpoint(checkpoints)
        state = "there is no checkpoint yet" if last is None else f"{last} is kept"
        again = "run the same command again" if last is None else "resume with --resume"
        raise OSError(number, f"no space left on the device for {path}; {state}. Make room and {again}") from error


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
    if unlike := unlike_tensors(state, saved):
        raise ValueError(
            f"{path} does not fit this loss: {', '.join(unlike[:5])} are missing, unknown or of another shape; "
            "resume with the recipe that wrote it."
        )
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(saved[name])


def _by_step(folder: Path) -> list[tuple[int, Path]]:
    return sorted((step_of(path), path) for path in folder.glob("*") if _CHECKPOINT.fullmatch(path.name))
