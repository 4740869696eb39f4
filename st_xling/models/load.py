"""Load models of the Hub or of a folder as sentence-transformers does; errors are one line that names the model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.model import BaseModel
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from torch import nn

from st_xling.models.backbones import is_causal, token_encoder
from st_xling.models.lora import adapters_on_own_base
from st_xling.models.token_rows import prepare_tokenizer
from st_xling.utils.lazy_model import Loaded
from st_xling.utils.options import Backend, Dtype, Pooling
from st_xling.utils.signature import loaded
from st_xling.utils.terminal import first_line

PAIR_TOKENS = 512
"""Maximum number of tokens of a text, special tokens included, in training on sentence pairs; a default."""

NO_LENGTH = 10**9
"""Maximum lengths from here on mean none: transformers has 10 to the 30th for tokenizers without one."""

Model = TypeVar("Model", bound=BaseModel)


class LoadingOptions(TypedDict, total=False):
    """Options by which any model is loaded, see :func:`load_sentence_transformer`."""

    revision: str | None
    dtype: Dtype | None
    backend: Backend
    trust_remote_code: bool


@dataclass
class EncoderCardData(SentenceTransformerModelCardData):
    """What sentence-transformers knows of an encoder for its card, and how the encoder was loaded.

    A copy of a model, or one that another process unpickles, so still knows how it was loaded.
    """

    loaded: Loaded = field(default=Loaded(), init=False, repr=False)


@dataclass
class CrossEncoderCardData(CrossEncoderModelCardData):
    """The same of a cross-encoder, see :class:`EncoderCardData`."""

    loaded: Loaded = field(default=Loaded(), init=False, repr=False)


def card_data(kind: type[BaseModel], *, local_files_only: bool = True) -> EncoderCardData | CrossEncoderCardData:
    """Return the card data of a new model.

    Args:
        kind: Class of the model.
        local_files_only: Never ask the Hub. For the card of a folder, ST would ask it for a model with the *folder's*
            name, and send the user's token along.
    """
    if issubclass(kind, CrossEncoder):
        return CrossEncoderCardData(local_files_only=local_files_only)
    return EncoderCardData(local_files_only=local_files_only)


def set_loaded(model: BaseModel, how: Loaded) -> None:
    """Set how ``model`` counts as loaded, see :func:`~st_xling.utils.signature.loaded`.

    Raises:
        TypeError: For a model that was neither loaded nor made here.
    """
    card: Any = model.model_card_data
    if not isinstance(card, (EncoderCardData, CrossEncoderCardData)):
        raise TypeError(f"expected a model of load_encoder: got one whose card data are a {type(card).__name__}.")
    card.loaded = how


def cast_to_saved_dtype(model: Model) -> Model:
    """The same model, its weights of the type that it was loaded to compute in: to be changed, not to encode."""
    if dtype := loaded(model).options.get("dtype"):
        model.to(getattr(torch, dtype))
    return model


def keep_lower_case(model: BaseModel) -> None:
    """Let a model that reads all text in lower case do so after it is saved, too.

    ST reads ``do_lower_case`` from ``sentence_bert_config.json`` and does not save it: a copy would read capitals, for
    which a vocabulary in lower case has no pieces.
    """
    for module in model.modules():
        if isinstance(module, Transformer) and module.do_lower_case:
            module.config_keys = list(dict.fromkeys([*module.config_keys, "do_lower_case"]))


def mark_loaded(model: Model) -> Model:
    """The same model, made here or to be trained: as it is now it will be saved, and signatures need not name it."""
    cast_to_saved_dtype(model)
    if loaded(model) != Loaded():
        set_loaded(model, Loaded())
    return model


def load_sentence_transformer(
    kind: type[Model],
    name_or_path: str,
    *,
    device: str | None = None,
    revision: str | None = None,
    dtype: Dtype | None = None,
    backend: Backend = "torch",
    trust_remote_code: bool = False,
) -> Model:
    """Load a model as every model here is loaded; the Hub is only asked about models of the Hub.

    Args:
        kind: ``SentenceTransformer`` or ``CrossEncoder``.
        name_or_path: Hub id or folder.
        device: Device to put it on; ``None`` lets ST choose.
        revision: Branch, tag or commit of the Hub.
        dtype: Type of the weights, and so of all that is computed with them; ``None``: as saved.
        backend: Library that runs the transformer; ``"openvino"`` needs optimum.
        trust_remote_code: Let code run that comes with the model.

    Raises:
        ValueError: A revision of a folder; else see :func:`loading`.
    """
    is_folder = Path(name_or_path).is_dir()
    if is_folder and revision is not None:
        raise ValueError(
            f"revision (--revision) is for models of the Hub: got {revision!r} for the folder {name_or_path}."
        )
    model_kwargs = None if dtype is None else {"dtype": getattr(torch, dtype)}
    with loading(name_or_path):
        with adapters_on_own_base(name_or_path) as path:
            model = kind(
                path,
                device=device,
                model_kwargs=model_kwargs,
                revision=revision,
                backend=backend,
                trust_remote_code=trust_remote_code,
                # Not local_files_only for the model itself: the base of adapters may be of the Hub.
                model_card_data=card_data(kind, local_files_only=is_folder),
            )
        prepare_tokenizer(model)
        keep_lower_case(model)
    signed: dict[str, str] = {}
    if backend != "torch":
        signed["backend"] = backend
    if revision:
        signed["revision"] = revision
    if trust_remote_code:
        signed["trust_remote_code"] = "yes"
    set_loaded(model, Loaded(str(name_or_path), signed))
    return model


def model_of(kind: type[Model], modules: Sequence[nn.Module], *, device: str | None = None) -> Model:
    """Make a model of modules.

    Args:
        kind: ``SentenceTransformer`` or ``CrossEncoder``.
        modules: Modules of sentence-transformers, in order.
        device: Device to put it on; ``None`` lets ST choose.
    """
    return kind(modules=list(modules), device=device, model_card_data=card_data(kind))


@contextlib.contextmanager
def loading(name_or_path: str | Path) -> Iterator[None]:
    """Load a model within: all that can go wrong is a ``ValueError``.

    Raises:
        ValueError: Naming the model and the cause. A damaged folder makes the libraries raise whatever its content
            leads them to (``KeyError``, ``RecursionError``, ``UnpicklingError``, …), so everything counts but memory
            that ran out and interrupts.
    """
    name = repr(str(name_or_path))
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError, _NotLoadable):
        raise
    except Exception as error:
        # The kind of error is named where its message means little by itself, as a KeyError's.
        text = first_line(error)
        has_plain_message = isinstance(error, (OSError, ValueError)) and bool(str(error).strip())
        if not has_plain_message:
            text = f"{type(error).__name__}: {text}"
        if "trust_remote_code=True" in str(error):
            message = (
                f"{name} is made of code that comes with it. It would run with all your rights on this machine; read "
                "it, and if you trust it pass trust_remote_code=True (--trust-remote-code)."
            )
        elif "pip install" in str(error):  # it names what is missing and how to get it
            message = f"{name}: {text}"
        else:
            kind = "folder" if Path(name_or_path).is_dir() else "Hub id or folder"
            message = f"no encoder could be loaded from the {kind} {name}: {text[:500].rstrip('.: ')}. Check the name."
        raise _NotLoadable(message) from error


class _NotLoadable(ValueError):
    """Already worded, where one block is within another."""


def set_pooling(model: SentenceTransformer, pooling: str) -> None:
    """Put a pooling of this kind where the model has its first.

    Raises:
        ValueError: The model has no pooling module, or is a decoder, whose first token sees no other.
    """
    poolings = [index for index, module in enumerate(model) if isinstance(module, PoolingModule)]
    if not poolings:
        raise ValueError(f"it has no pooling module to set to {pooling!r}.")
    if pooling == "cls" and is_causal(token_encoder(model)):
        raise ValueError(
            f"pooling 'cls' gives all texts one embedding: {type(token_encoder(model)).__name__} is a decoder, whose "
            "first token sees no other; take 'mean', or none for the last token."
        )
    width = model[0].get_embedding_dimension()  # type: ignore[operator]
    model[poolings[0]] = PoolingModule(width, pooling_mode=pooling)


def pooling_of_bare(model: SentenceTransformer, pooling: Pooling | None) -> str | None:
    """The pooling that fits a transformer without sentence-transformers' modules.

    Args:
        model: The transformer as it was loaded, under the mean of its tokens.
        pooling: Pooling that a recipe has for bare transformers.

    Returns:
        ``"lasttoken"`` of a decoder, where only the last token has seen the whole text; ``"mean"`` in place of
        ``"cls"`` where the tokenizer puts no token before a text (T5); else ``pooling``.
    """
    if is_causal(token_encoder(model)):
        return "lasttoken"
    tokenizer: Any = model.tokenizer
    first_ids = tokenizer("a", verbose=False)["input_ids"][:1]
    begins_with_special = any(token_id in tokenizer.all_special_ids for token_id in first_ids)
    if pooling == "cls" and not begins_with_special:
        return "mean"
    return pooling


def length_for_pairs(model: SentenceTransformer) -> int | None:
    """Tokens that training on sentence pairs reads of a text.

    Returns:
        :data:`PAIR_TOKENS` where the model reads more, such as 32,768, and one page among the sentences would make a
        batch of hundreds of such rows; ``None`` where its length is short enough, or without an end.
    """
    length = model.max_seq_length
    if length is not None and PAIR_TOKENS < length < math.inf:
        return PAIR_TOKENS
    return None


def limit_length(model: BaseModel, max_length: int) -> None:
    """Cut what ``model`` reads to ``max_length`` tokens, or ``ValueError`` if its positions do not reach that far."""
    positions = longest_input(model)
    if positions is not None and max_length > positions:
        raise ValueError(f"max_length must be at most {positions}, this encoder's positions: got {max_length}.")
    if model.max_seq_length != math.inf:  # a bag of static embeddings has no positions to save
        model.max_seq_length = max_length


def longest_input(model: BaseModel) -> int | None:
    """Tokens that the encoder's positions reach, special tokens included; ``None`` where they have no end."""
    encoder = getattr(model[0], "auto_model", None)
    config = getattr(encoder, "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return None
    # (XLM-)RoBERTa counts positions from the one after the id of padding.
    padding_idx = getattr(getattr(encoder, "embeddings", None), "padding_idx", None)
    return positions if padding_idx is None else positions - (padding_idx + 1)
