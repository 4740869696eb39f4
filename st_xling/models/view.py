"""Load an encoder as it was saved or otherwise: other weights' type, fewer layers, another pooling or prompt."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
from sentence_transformers.util import batch_to_device, get_device_name
from torch import Tensor, nn

from st_xling.models.backbones import layer_lists, token_encoder
from st_xling.models.encoding import own_prompt, prompt_text
from st_xling.models.load import (
    EncoderCardData,
    LoadingOptions,
    limit_length,
    load_sentence_transformer,
    set_loaded,
    set_pooling,
)
from st_xling.utils.options import Backend, Dtype, Pooling
from st_xling.utils.precision import warn_of_slow_bfloat16
from st_xling.utils.signature import loaded

_PROMPT = "st-xling"

#: Signatures are one line, with a separator.
_ONE_LINE = str.maketrans({"%": "%25", "|": "%7C", "\n": "%0A"})

#: Largest difference of states that are the same, as a share of the largest of them; bfloat16 keeps eight bits.
_SAME_STATES = 0.02

_FINAL_NORMS = ("final_norm", "norm", "LayerNorm", "final_layer_norm")  # next to the list of layers


class EncoderLoadingOptions(LoadingOptions, total=False):
    """Options by which an encoder is loaded, see :func:`load_encoder`."""

    pooling: Pooling | None
    max_length: int | None
    device: str | None
    layer: int | None
    prompt: str | None
    prompt_name: str | None
    passage_prompt: str | None
    truncate_dim: int | None


def load_encoder(
    name_or_path: str,
    *,
    pooling: Pooling | None = None,
    max_length: int | None = None,
    device: str | None = None,
    revision: str | None = None,
    dtype: Dtype | None = None,
    layer: int | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    passage_prompt: str | None = None,
    truncate_dim: int | None = None,
    backend: Backend = "torch",
    trust_remote_code: bool = False,
) -> SentenceTransformer:
    """A sentence encoder from a sentence-transformers model or a bare transformer.

    Options that are not given are the saved model's; the others are named in signatures: see :func:`model_options`.

    Args:
        name_or_path: Hub id or folder.
        pooling: ``"mean"``, ``"cls"`` or ``"max"``; ``None`` keeps what the model has, or means over a bare
            transformer's tokens.
        max_length: Tokens a text is cut to, special tokens included.
        device: Device to put it on; ``None`` lets ST choose.
        revision: Branch, tag or commit of the Hub.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``, of what is computed, and but on a CPU of the weights.
        layer: Ends there, counted from 1; where that is not the last one, modules after the pooling are dropped, since
            they were made for the last.
        prompt: Text before each text; of a retriever before each query. ``""``: none.
        prompt_name: Name of one of the model's prompts, instead.
        passage_prompt: Text before each text that ``encode_document`` reads.
        truncate_dim: Dimensions kept of an embedding, the first.
        backend: ``"torch"``, or ``"openvino"`` where optimum-intel is installed.
        trust_remote_code: Let code run that comes with the model. It can do whatever you can: read it before.

    Weights in ``pytorch_model.bin`` are read where there is no ``model.safetensors``, as transformers does: only
    tensors, and a file that would run code is refused.

    Raises:
        ValueError: Nothing loadable at that name, remote code without ``trust_remote_code``, a length that the
            encoder's positions do not reach, a layer or prompt that the model lacks, no pooling module, both ``prompt``
            and ``prompt_name``, more dimensions than there are, a revision of a folder, a layer or ``dtype`` for
            another backend.
    Source:
        Hu et al. 2020 (XTREME) evaluate mBERT by the mean over layer 7's tokens.

    Example:
        >>> from st_xling.models import tiny_encoder
        >>> tiny_encoder(["Der Hund schläft."], vocabulary=100, hidden_size=16).save("encoder")
        >>> load_encoder("encoder", layer=1, prompt="query: ").encode("Der Hund.").shape
        (16,)
    """
    for name, value in (("dtype", dtype), ("layer", layer)):
        if backend != "torch" and value is not None:
            raise ValueError(f"{name} (--{name}) is for the backend torch: got {value} for {backend}; leave it out.")
    # On a CPU, autocast over float32 weights is as fast as weights of a shorter type, and nearer to float32: of 20,000
    # sentences with multilingual-e5-small, the worst cosine is 0.9996 in place of 0.9982.
    is_half_precision = dtype in ("float16", "bfloat16")
    autocasts = is_half_precision and backend == "torch" and (device or get_device_name()) == "cpu"
    weights_dtype: Dtype | None = "float32" if autocasts else dtype
    model = load_sentence_transformer(
        SentenceTransformer,
        name_or_path,
        device=device,
        revision=revision,
        dtype=weights_dtype,
        backend=backend,
        trust_remote_code=trust_remote_code,
    )
    if dtype == "bfloat16":
        warn_of_slow_bfloat16(model.device.type)
    signed: dict[str, str] = {}
    if autocasts:
        signed["dtype"] = str(dtype)
    if max_length is not None:
        limit_length(model, max_length)
    saved_pooling = next((module.pooling_mode for module in model if isinstance(module, PoolingModule)), None)
    try:
        text = prompt_text(model, prompt, prompt_name)
        if layer is not None and check_layer(model, layer) < layer_count(model):
            model = cut_to_layer(model, layer, pooling=pooling or saved_pooling or "mean")
            signed["layer"] = str(layer)
        elif pooling is not None and pooling != saved_pooling:
            set_pooling(model, pooling)
        if truncate_dim is not None and truncate_dim != model.truncate_dim:
            dim = model.get_embedding_dimension()
            if truncate_dim < 1 or (dim is not None and truncate_dim > dim):
                raise ValueError(f"truncate_dim must be from 1 to {dim}, the model's dimensions: got {truncate_dim}.")
            model.truncate_dim = truncate_dim
            signed["dim"] = str(truncate_dim)
    except ValueError as error:
        raise ValueError(f"{name_or_path}: {error}") from error
    if pooling is not None and pooling != saved_pooling:
        signed["pooling"] = pooling
    if text is not None:
        # encode takes the default prompt, encode_query the one called "query".
        model.prompts |= {_PROMPT: text, "query": text}
        model.default_prompt_name = _PROMPT
    if passage_prompt is not None:
        model.prompts["document"] = passage_prompt
    return with_signed_options(model, **signed)


def model_options(model: Any, *, prompt: str | None = None, retrieval: bool = False) -> dict[str, str]:
    """Return what a figure made with ``model`` depends on besides the saved model, as parts of signatures.

    ``dim``, ``layer`` and ``pooling`` where they are not the saved ones; any ``prompt``, and of retrieval that of the
    passages; the ``dtype`` of what is computed where it is not float32; ``backend``, ``revision`` and
    ``trust_remote_code`` where they were set.

    Args:
        model: A ``SentenceTransformer`` or ``CrossEncoder``; of others nothing is known.
        prompt: Text before each text, in place of the model's prompt.
        retrieval: True if queries and passages were distinguished.
    """
    loading_options = loaded(model).options
    parts = {name: loading_options[name] for name in ("dim", "layer", "pooling") if name in loading_options}
    if retrieval:
        parts |= {"prompt": own_prompt(model, "query"), "passage_prompt": own_prompt(model, "document")}
    else:
        parts["prompt"] = own_prompt(model) if prompt is None else prompt
    weights = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    dtype = "float32" if weights is None else str(weights.dtype).removeprefix("torch.")
    parts["dtype"] = loading_options.get("dtype", "") if dtype == "float32" else dtype
    parts |= {name: value for name, value in loading_options.items() if name not in parts}
    return {name: value.translate(_ONE_LINE) for name, value in parts.items() if value}


def with_signed_options(model: SentenceTransformer, **options: str) -> SentenceTransformer:
    """Let signatures name these options of the model as well; the same model is returned."""
    before = loaded(model)
    set_loaded(model, replace(before, options={**before.options, **options}))
    return model


def rebuilt(model: SentenceTransformer, modules: Sequence[nn.Module]) -> SentenceTransformer:
    """Other modules under the prompts, the similarity and the device of ``model``; weights are shared."""
    kind = type(model)  # a subclass may encode in another way
    if kind.__init__ is not SentenceTransformer.__init__:
        kind = SentenceTransformer
    result = kind(
        modules=list(modules),
        device=str(model.device),
        prompts={name: text for name, text in model.prompts.items() if text is not None},
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name=model.similarity_fn_name,
        truncate_dim=model.truncate_dim,
        model_card_data=EncoderCardData(local_files_only=True),
    )
    result.model_card_data.base_model = model.model_card_data.base_model
    result.model_card_data.base_model_revision = model.model_card_data.base_model_revision
    set_loaded(result, loaded(model))
    result.backend = model.backend
    if len(result) == len(model):
        result.module_kwargs = model.module_kwargs
    return result.eval()


def layer_count(model: nn.Module) -> int:
    """Transformer layers of the encoder inside a ``SentenceTransformer``.

    Raises:
        ValueError: It has none, or its configuration does not give their number.
    """
    encoder = token_encoder(model)
    count = getattr(encoder.config, "num_hidden_layers", None)
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"an encoder of transformer layers is needed: {type(encoder).__name__} names none.")
    return count


def check_layer(model: nn.Module, layer: int) -> int:
    """Return ``layer``, or raise ``ValueError`` with the number of layers."""
    count = layer_count(model)
    if not 1 <= layer <= count:
        raise ValueError(f"layer must be from 1 to {count}: got {layer}.")
    return layer


def cut_to_layer(model: SentenceTransformer, layer: int, *, pooling: Pooling = "mean") -> SentenceTransformer:
    """An encoder that ends at a layer, of ST's Transformer and Pooling; its weights are those of ``model``.

    Where the encoder normalizes what its last layer gives (ModernBERT, EuroBERT, XLM-R-XL), so does the cut one.

    Args:
        model: A ``SentenceTransformer`` whose first module is a transformer; it stays as it is, what follows that
            module is not taken over.
        layer: The last layer kept, counted from 1.
        pooling: Pooling of its token states into a sentence vector.

    Raises:
        ValueError: A layer that the encoder lacks, or an encoder whose states at a layer are not what it gives when it
            ends there.
    """
    check_layer(model, layer)
    # Tensors in the memo of deepcopy are shared, not copied.
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    transformer: Any = copy.deepcopy(model[0], shared)
    count = layer_count(model)
    if layer < count:
        encoder: Any = token_encoder(nn.Sequential(transformer))
        for parent, name, layers in list(layer_lists(encoder, count)):
            setattr(parent, name, layers[:layer])
        if getattr(encoder, "n_layers", None) == count:  # XLM has a count besides its configuration
            encoder.n_layers = layer
        if layer_types := getattr(encoder.config, "layer_types", None):  # ModernBERT: near or far attention, by layer
            encoder.config.layer_types = layer_types[:layer]
        encoder.config.num_hidden_layers = layer
    head = PoolingModule(transformer.get_embedding_dimension(), pooling_mode=pooling)
    cut = rebuilt(model, [transformer, head])
    if layer < count:
        _check_cut(model, cut, layer)
    return cut


@torch.inference_mode()
def _check_cut(model: SentenceTransformer, cut: SentenceTransformer, layer: int) -> None:
    """Raise ``ValueError`` if an encoder that ends at ``layer`` gives other states than the uncut one has there."""
    was_training = model.training
    model.eval()
    try:
        features: dict[str, Any] = batch_to_device(model.preprocess(["a b c"]), model.device)
        expected = layer_states(model, dict(features))[layer].float()
        states = cut[0](dict(features))["token_embeddings"].float()
    finally:
        model.train(was_training)
    if not torch.allclose(states, expected, rtol=0, atol=_SAME_STATES * float(expected.abs().max())):
        raise ValueError(
            f"{type(token_encoder(model)).__name__} cannot be cut to layer {layer}: its states are others when it ends "
            f"there. Use its last layer, {layer_count(model)}, or another encoder."
        )


def layer_states(model: SentenceTransformer, features: dict[str, Any]) -> tuple[Tensor, ...]:
    """Token states after the embeddings and after each layer, of one pass; ``features`` are then as after the pass.

    A normalization behind the encoder's last layer is applied to each layer's, as in an encoder that is cut there.

    Args:
        model: Its first module is a transformer.
        features: A batch, as ``model.preprocess`` gives it, on the model's device.

    Returns:
        ``layers + 1`` tensors. *Shape of each:* ``(batch, tokens, hidden)``
    """
    encoder: Any = token_encoder(model)
    before = encoder.config.output_hidden_states
    encoder.config.output_hidden_states = True
    try:
        first, *states, last = model[0](features)["all_layer_embeddings"]
    finally:
        encoder.config.output_hidden_states = before
    # None for ALBERT, which runs one layer again and again.
    parent = next((parent for parent, _, _ in layer_lists(encoder, layer_count(model))), None)
    norm = next((getattr(parent, name) for name in _FINAL_NORMS if hasattr(parent, name)), None)
    if norm is not None and not hasattr(parent, "rel_embeddings"):  # DeBERTa normalizes its distances
        states = [norm(state) for state in states]
    return first, *states, last
