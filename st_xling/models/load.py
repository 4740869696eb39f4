"""Load models of the Hub or of a folder as sentence-transformers does; errors are one line that names the model."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from transformers import PreTrainedConfig

from st_xling.utils.options import Backend, Dtype, Pooling, check_choice
from st_xling.utils.signature import Loaded, loaded

Model = TypeVar("Model", bound=BaseModel)


def cast_to_saved_dtype(model: Model) -> Model:
    """The same model, its weights of the type that it was loaded to compute in: to be changed, not to encode."""
    if dtype := loaded(model).options.get("dtype"):
        model.to(getattr(torch, dtype))
    return model


def mark_loaded(model: Model) -> Model:
    """The same model, made here or to be trained: what it is now is its own, and signatures need not name it."""
    cast_to_saved_dtype(model).st_xling_loaded = Loaded()  # type: ignore[assignment]
    return model


def load_sentence_transformer(
    kind: type[Model],
    name_or_path: str | None = None,
    *,
    revision: str | None = None,
    dtype: Dtype | None = None,
    backend: Backend = "torch",
    trust_remote_code: bool = False,
    **options: Any,
) -> Model:
    """``kind(name_or_path, **options)``, as every model here is made or loaded.

    The Hub is asked about models of the Hub alone. For its card, ST would ask it for a model with the *folder's* name
    as well, and send the user's token along.

    Args:
        kind: ``SentenceTransformer`` or ``CrossEncoder``.
        name_or_path: Hub id or folder; ``None`` with ``modules``.
        revision: Branch, tag or commit of the Hub.
        dtype: Type of the weights, and so of all that is computed with them; ``None``: as saved.
        backend: Library that runs the transformer; ``"openvino"`` needs optimum.
        trust_remote_code: Let the model's own code run.
        **options: As ``kind`` takes them.
    Raises:
        ValueError: See :func:`loading`; options that exclude each other.
    """
    if name_or_path is None:
        return kind(model_card_data=kind.model_card_data_class(local_files_only=True), **options)
    for name, value, known in (("dtype", dtype, Dtype), ("backend", backend, Backend)):
        if value is not None:
            check_choice(name, value, known)
    if backend != "torch" and dtype is not None:
        raise ValueError(f"dtype (--dtype) is for the backend torch: got {dtype} for {backend}; leave it out.")
    is_folder = Path(name_or_path).is_dir()
    if is_folder and revision is not None:
        raise ValueError(
            f"revision (--revision) is for models of the Hub: got {revision!r} for the folder {name_or_path}."
        )
    with loading(name_or_path):
        if is_folder:
            # Not local_files_only for the model itself: the base of adapters may be of the Hub.
            options["model_card_data"] = kind.model_card_data_class(local_files_only=True)
        if dtype is not None:
            options["model_kwargs"] = {**options.get("model_kwargs", {}), "dtype": getattr(torch, dtype)}
        options |= {"revision": revision, "backend": backend, "trust_remote_code": trust_remote_code}
        model = kind(name_or_path, **options)
        _check_vocabulary(model)
    said = {
        "backend": None if backend == "torch" else backend,
        "revision": revision,
        "trust_remote_code": "yes" if trust_remote_code else None,
    }
    model.st_xling_loaded = Loaded(str(name_or_path), {key: value for key, value in said.items() if value})  # type: ignore[assignment]
    return model


def _check_vocabulary(model: BaseModel) -> None:
    """Raise ``ValueError`` for tokens without an embedding, which would fail in the middle of a run."""
    encoder: Any = getattr(model[0], "auto_model", None)
    embeddings = encoder.get_input_embeddings() if hasattr(encoder, "get_input_embeddings") else None
    if not isinstance(embeddings, torch.nn.Embedding) or not hasattr(model.tokenizer, "__len__"):
        return
    if (tokens := len(model.tokenizer)) > embeddings.num_embeddings:
        raise ValueError(
            f"its tokenizer has {tokens} tokens, its embeddings {embeddings.num_embeddings} rows: take the tokenizer "
            "that it was trained with, or save it after resize_token_embeddings."
        )


@contextlib.contextmanager
def loading(name_or_path: str | Path) -> Iterator[None]:
    """Load a model within: all that can go wrong is a ``ValueError``.

    Raises:
        ValueError: Naming the model and the cause. A damaged folder makes the libraries raise whatever its content
            leads them to (``KeyError``, ``RecursionError``, ``UnpicklingError``, …), so everything counts but memory
            that ran out and interrupts.
    """
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError, _NotLoadable):
        raise
    except Exception as error:
        if "trust_remote_code=True" in str(error):
            raise _NotLoadable(
                f"{str(name_or_path)!r} is made of code that comes with it: {_own_code(name_or_path, error)}. It would "
                "run with all your rights on this machine; read it, and if you trust it pass trust_remote_code=True "
                "(--trust-remote-code)."
            ) from error
        if "pip install" in str(error):  # it names what is missing and how to get it
            raise _NotLoadable(f"{str(name_or_path)!r}: {str(error).strip().splitlines()[0]}") from error
        kind = "folder" if Path(name_or_path).is_dir() else "Hub id or folder"
        raise _NotLoadable(
            f"no encoder could be loaded from the {kind} {str(name_or_path)!r}: {_cause(error)} Check the name."
        ) from error


class _NotLoadable(ValueError):
    """Already worded, where one block is within another."""


def _own_code(name_or_path: str | Path, error: BaseException) -> str:
    """The classes that a model's files name: modules of ST in ST's error, others in the configuration."""
    if module := re.search(r"module class '([^']+)'", str(error)):
        return module[1]
    with contextlib.suppress(Exception):
        content, _ = PreTrainedConfig.get_config_dict(name_or_path)
        return ", ".join(map(str, content["auto_map"].values()))
    return "classes of its own"


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
    if model.max_seq_length != math.inf:  # a bag of static embeddings has no positions to save
        model.max_seq_length = max_length


def longest_input(model: BaseModel) -> int | None:
    """Tokens that the encoder's positions reach, special tokens included; ``None`` where they have no end."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    padding_idx = getattr(getattr(model[0].auto_model, "embeddings", None), "padding_idx", None) if config else None
    return None if positions is None else positions - (0 if padding_idx is None else padding_idx + 1)


def _cause(error: BaseException) -> str:
    """One line: the kind of error is named where its message alone means little, as a ``KeyError``'s."""
    lines = str(error).strip().splitlines() or [""]
    kind = "" if isinstance(error, (OSError, ValueError)) and lines[0] else f"{type(error).__name__}: "
    return f"{kind}{lines[0][:500]}".rstrip(".: ") + "."
