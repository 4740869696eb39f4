"""Any Hub or local encoder, with the pooling and the length of our choice."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.sentence_transformer.modules import Transformer

from st_xling.utils.hub_requests import limited_requests

Pooling = Literal["mean", "cls", "max"]
Model = TypeVar("Model", bound=BaseModel)

logger = logging.getLogger(__name__)


def load_encoder(
    name_or_path: str,
    *,
    pooling: Pooling | None = None,
    max_length: int | None = None,
    device: str | None = None,
) -> SentenceTransformer:
    """A sentence encoder from a sentence-transformers model or a bare transformer.

    Args:
        name_or_path: Hub id or folder.
        pooling: ``"mean"``, ``"cls"`` or ``"max"``; ``None`` keeps what the model has, or means over a bare
            transformer's tokens.
        max_length: Tokens a text is cut to, special tokens included; ``None`` keeps the model's own.
        device: Where to put it; ``None`` lets ST choose.

    Weights in ``pytorch_model.bin`` are read where there is no ``model.safetensors``, as transformers does: tensors
    alone, and a file that would run code is refused.

    Raises:
        ValueError: Unknown pooling, a length the encoder's positions do not reach, or nothing loadable at that name;
            adapters, and no peft to read them.
    """
    if pooling is not None and pooling not in get_args(Pooling):
        raise ValueError(f"pooling must be one of {get_args(Pooling)}: got {pooling!r}.")
    with loading(name_or_path):
        model = _load(name_or_path, pooling, device)
    if max_length is not None:
        limit_length(model, max_length)
    return model


def st_model(kind: type[Model], name_or_path: str | None = None, **options: Any) -> Model:
    """``kind(name_or_path, **options)``, as every model here is made or loaded.

    The Hub is asked about models of the Hub alone. For its card, ST would ask it for a model with the *folder's* name
    as well, and send the user's token along.

    Args:
        kind: ``SentenceTransformer`` or ``CrossEncoder``.
        name_or_path: Hub id or folder; ``None`` with ``modules``.
        **options: As ``kind`` takes them.
    Raises:
        ValueError: As :func:`loading`.
    """
    if name_or_path is None:
        return kind(model_card_data=kind.model_card_data_class(local_files_only=True), **options)
    with loading(name_or_path):
        if Path(name_or_path).is_dir():
            # Not local_files_only for the model itself: the base of adapters may be of the Hub.
            options["model_card_data"] = kind.model_card_data_class(local_files_only=True)
        model = kind(name_or_path, **options)
        if not isinstance(model.max_seq_length, (int, float, type(None))):  # all else in files is used by now
            raise ValueError(f"max_seq_length must be a number: got {model.max_seq_length!r}.")
        return model


@contextlib.contextmanager
def loading(name_or_path: str | Path) -> Iterator[None]:
    """Load a model within: requests to the Hub end in time, and all that can go wrong is a ``ValueError``.

    Raises:
        ValueError: Naming the model and the cause. A damaged folder makes the libraries raise whatever its content
            leads them to (``KeyError``, ``RecursionError``, ``UnpicklingError``, …), so everything counts but memory
            that ran out and interrupts.
    """
    try:
        with limited_requests():
            yield
    except (MemoryError, torch.OutOfMemoryError, _NotLoadable):
        raise
    except (Exception, _panic()) as error:
        if isinstance(error, ImportError) and "peft" in str(error).lower():
            raise _NotLoadable(
                f"{str(name_or_path)!r} is made of adapters, which need peft: it is not installed; "
                "pip install st-xling[lora]."
            ) from error
        kind = "folder" if Path(name_or_path).is_dir() else "Hub id or folder"
        raise _NotLoadable(
            f"no encoder could be loaded from the {kind} {str(name_or_path)!r}: {_cause(error)} "
            "Check the name; to build a small encoder from your own text, use 'tiny'."
        ) from error


class _NotLoadable(ValueError):
    """Already worded, where one block is within another."""


def _panic() -> type[BaseException]:
    """What a fault in Rust raises, here of tokenizers: no ``Exception``, and of no importable name."""
    return next((kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException"), Exception)


def _load(name_or_path: str, pooling: Pooling | None, device: str | None) -> SentenceTransformer:
    folder = Path(name_or_path)
    if folder.is_dir() and not (folder / "modules.json").exists():
        # A bare transformer, loaded module by module so that ST does not announce a model made up on the spot.
        transformer = Transformer(name_or_path)
        head = PoolingModule(transformer.get_embedding_dimension(), pooling_mode=pooling or "mean")
        return st_model(SentenceTransformer, modules=[transformer, head], device=device)
    model = st_model(SentenceTransformer, name_or_path, device=device)
    if pooling is not None:
        set_pooling(model, pooling)
    return model


def set_pooling(model: SentenceTransformer, pooling: Pooling) -> None:
    """Put a pooling of this kind where the model has its first, or ``ValueError`` if it has none."""
    places = [place for place, module in enumerate(model) if isinstance(module, PoolingModule)]
    if not places:
        raise ValueError(f"it has no pooling module to set to {pooling!r}.")
    model[places[0]] = PoolingModule(model[0].get_embedding_dimension(), pooling_mode=pooling)  # type: ignore[operator]


def limit_length(model: BaseModel, max_length: int) -> None:
    """Cut what ``model`` reads to ``max_length`` tokens, or ``ValueError`` if its positions do not reach that far."""
    if max_length < 3:
        raise ValueError(f"max_length must leave room for CLS, SEP and a word: got {max_length}; 32 suits sentences.")
    reach = longest_input(model)
    if reach is not None and max_length > reach:
        raise ValueError(f"max_length must be at most {reach}, this encoder's positions: got {max_length}.")
    model.max_seq_length = max_length


def longest_input(model: BaseModel) -> int | None:
    """Tokens that the encoder's positions reach, special tokens included; ``None`` where they have no end."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    padding_idx = getattr(getattr(model[0].auto_model, "embeddings", None), "padding_idx", None) if config else None
    return None if positions is None else positions - (0 if padding_idx is None else padding_idx + 1)


def _cause(error: BaseException) -> str:
    """One line: the kind of error is named where its message alone says little, as a ``KeyError``'s."""
    lines = str(error).strip().splitlines() or [""]
    kind = "" if isinstance(error, (OSError, ValueError)) and lines[0] else f"{type(error).__name__}: "
    return f"{kind}{lines[0][:500]}".rstrip(".: ") + "."
