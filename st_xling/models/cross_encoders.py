"""Encoder → ``CrossEncoder``: ``[CLS] query [SEP] passage [SEP]`` under a head that gives one score.

``cls``: a linear layer on the state of CLS, as in the paper; ``pooler``: the backbone's classification head
(``AutoModelForSequenceClassification``: BERT's pooler and a linear layer). Both consist of ST's modules, so
``CrossEncoder(folder)`` loads them anywhere; scores are logits, of which ST's ``predict`` takes the sigmoid.

Only the passage is cut: ``truncation: only_second`` is saved with the model and holds in ST's ``fit``, trainer
and ``predict`` too. A query that leaves no room for a passage then raises the tokenizer's error there.

Source:
    Chen et al. 2020, equations 1 and 3; the head is new in stage two (section IV-C-1).
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from st_xling.models.backbones import special_token_id, token_encoder
from st_xling.models.load import LoadingOptions, limit_length, load_sentence_transformer, model_of
from st_xling.models.lora import check_start
from st_xling.models.pair_scorer import ONLY_PASSAGES
from st_xling.models.tiny import TinyOptions, tiny_encoder
from st_xling.models.view import load_encoder
from st_xling.utils.options import check_choice

if TYPE_CHECKING:
    from typing_extensions import Unpack

Head = Literal["cls", "pooler", "keep"]

#: Most tokens of a single text, which has no second part to cut: ST's trainers count those of every column.
UNLIMITED_TOKENS = 10**6


def cross_encoder(
    start: str | SentenceTransformer | CrossEncoder,
    *,
    head: Head = "cls",
    max_length: int | None = None,
    seed: int = 0,
    device: str | None = None,
    **options: Unpack[LoadingOptions],
) -> CrossEncoder:
    """A cross-encoder over the encoder inside ``start``.

    Args:
        start: Hub id or folder of a bare encoder, a ``SentenceTransformer`` or a ``CrossEncoder``, whose encoder is
            taken; or such a model, which is copied.
        head: ``"cls"`` or ``"pooler"``: a new one; ``"keep"``: the one that a ``CrossEncoder`` has.
        max_length: Tokens a pair is cut to, special tokens included; ``None`` keeps the encoder's length.
        seed: Seed of the new head.
        device: Device to put it on; ``None`` lets ST choose.
        **options: See :class:`~st_xling.models.load.LoadingOptions`.

    Raises:
        ValueError: An unknown head, no encoder or no head to keep at ``start``, or a length that its positions do not
            reach; a ready-made model with adapters.
    """
    check_choice("head", head, Head)
    is_ready_made = not isinstance(start, str)
    with torch.random.fork_rng(devices=[]):  # some classes add weights that no head reads, at random
        torch.manual_seed(seed)
        loaded: Any = start
        if isinstance(start, str) and head == "keep":
            loaded = load_sentence_transformer(CrossEncoder, start, device=device, **options)
        elif isinstance(start, str):
            loaded = load_encoder(start, **options)
        token_encoder(loaded)  # or an error that names what is missing
        check_start(loaded, None, ready_made=is_ready_made)
        used = loaded if head == "keep" else loaded[0]
        if is_ready_made:  # it is the caller's, and is not changed
            used = copy.deepcopy(used)
        if head == "keep":
            model = _with_its_head(used)
        else:
            model = _with_new_head(used, head, seed, device)
    if max_length is not None:
        limit_length(model, max_length)
    if isinstance(start, str):
        model.model_card_data.base_model = start
    return model


def tiny_cross_encoder(
    texts: Iterable[str], *, head: Head = "cls", seed: int = 0, **options: Unpack[TinyOptions]
) -> CrossEncoder:
    """:func:`~st_xling.models.tiny_encoder` under a new head.

    Args:
        texts: Queries and passages of all languages the model shall read.
        head: ``"cls"`` or ``"pooler"``.
        seed: Seed of all weights.
        **options: Sizes, see :func:`~st_xling.models.tiny_encoder`; ``max_length`` counts the tokens of a pair.
    """
    return cross_encoder(tiny_encoder(texts, seed=seed, **options), head=head, seed=seed)


def replace_head(model: CrossEncoder, seed: int = 0) -> CrossEncoder:
    """A new head in place of the model's, in place; the encoder (BERT's pooler included) stays as it is.

    Raises:
        ValueError: The model has no head that is known here.
    """
    deviation = getattr(token_encoder(model).config, "initializer_range", 0.02)  # BERT's, where none is named
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in nn.ModuleList(head_modules(model)).modules():
            if isinstance(module, nn.Linear):
                module.weight.copy_(torch.randn(module.weight.shape, generator=generator) * deviation)
                if module.bias is not None:
                    module.bias.zero_()
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
    return model


def head_modules(model: CrossEncoder) -> list[nn.Module]:
    """Return what :func:`replace_head` renews: the last linear layer, or all that follows the base model."""
    last = model[-1]
    if isinstance(last, Dense) and last.module_output_name == "scores":
        return [last]
    if len(model) == 1:
        transformer = token_encoder(model)
        base = getattr(transformer, "base_model", transformer)
        if base is not transformer:
            return [module for module in transformer.children() if module is not base]
    kinds = ", ".join(type(module).__name__ for module in model)
    raise ValueError(f"the model must end in a linear layer, or classify sequences: got {kinds}; use cross_encoder(…).")


def _with_new_head(transformer: Transformer, head: Head, seed: int, device: str | None) -> CrossEncoder:
    special_token_id(transformer.tokenizer, "cls", "a cross-encoder's head")
    task = "feature-extraction" if head == "cls" else "sequence-classification"
    if transformer.transformer_task != task:
        # The same encoder, read anew by the class for the task; what that class adds is random.
        labels = {"num_labels": 1} if task == "sequence-classification" else {}
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
            transformer.save(folder)
            transformer = Transformer(folder, transformer_task=task, config_kwargs=labels)
    _cut_passages_only(transformer)
    transformer.config.num_labels = 1  # what ST's fit chooses its loss by
    modules: list[nn.Module] = [transformer]
    if head == "cls":
        width = transformer.get_embedding_dimension()
        modules.append(Pooling(width, pooling_mode="cls"))
        modules.append(Dense(width, 1, activation_function=nn.Identity(), module_output_name="scores"))
    model = model_of(CrossEncoder, modules, device=device)
    return replace_head(model, seed)


def _with_its_head(model: Any) -> CrossEncoder:
    architectures = getattr(token_encoder(model).config, "architectures", None) or []
    # ST makes up a head when it loads a bare encoder.
    classifies = any(name.endswith("ForSequenceClassification") for name in architectures)
    came_with_head = len(model) > 1 or classifies
    if not isinstance(model, CrossEncoder) or not came_with_head or model.num_labels != 1:
        raise ValueError(
            "head 'keep' needs a cross-encoder with a head of one score: got another; take 'cls' or 'pooler'."
        )
    head_modules(model)
    _cut_passages_only(model[0])
    return model


def _cut_passages_only(transformer: Transformer) -> None:
    """Set it in ST's configuration, which is saved with the model."""
    text_options = {**transformer.processing_kwargs.get("text", {}), **ONLY_PASSAGES}
    transformer.processing_kwargs = {**transformer.processing_kwargs, "text": text_options}
    transformer.document_length = UNLIMITED_TOKENS
