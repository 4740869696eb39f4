"""The heads of token-level objectives: a masked language model's vocabulary head, and the RTL head over it."""

from __future__ import annotations

import copy
import itertools
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from safetensors import safe_open
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME

from st_xling.models.backbone import Backbone
from st_xling.models.lora import plain_copy

HeadStart = Literal["auto", "new"]

logger = logging.getLogger(__name__)


class VocabularyHead(nn.Module):
    r"""Scores of words for token states, as BERT and XLM-R compute them.

    .. math:: z = E\,\mathrm{LayerNorm}(\sigma(W h + c)) + b

    ``E`` are the encoder's word embeddings, or rows of the head's own. sentence-transformers loads encoders without
    their head. So the head looks for it where the encoder was loaded from, a folder or the Hub's cache, and reads its
    few tensors, no second model. Where the checkpoint has none, the head is initialised as transformers initialises it,
    by draws from torch's global generator.

    Args:
        backbone: The encoder.
        head: ``"auto"`` takes the checkpoint's head where it has one; ``"new"`` never does.
        target_vocabulary: Token ids that are scored, ascending in the softmax; ``None``: the whole vocabulary.
        tied: Score with the encoder's word embeddings; otherwise with a copy that belongs to the head.

    Attributes:
        origin: Where the head's tensors come from, for the log.
        weight: The head's own rows, *Shape:* ``(classes, hidden)``, or ``None`` where they are the word embeddings.
        bias: *Shape:* ``(classes,)``

    Raises:
        ValueError: An unknown option, ids outside the vocabulary or repeated, or a checkpoint whose head does not fit
            the encoder.

    Source:
        Devlin et al. 2019, section 3.1; the layout is that of the encoder's masked-LM class in transformers.
    """

    vocabulary_index: Tensor | None
    label_index: Tensor | None
    weight: nn.Parameter | None

    def __init__(
        self,
        backbone: Backbone,
        *,
        head: HeadStart = "auto",
        target_vocabulary: Sequence[int] | Tensor | None = None,
        tied: bool = True,
    ) -> None:
        super().__init__()
        if head not in get_args(HeadStart):
            raise ValueError(f"head must be one of {get_args(HeadStart)}: got {head!r}.")
        words = backbone.word_embeddings.weight.detach()
        form = _head_form(backbone.model.config)
        self.dense, self.norm, self.activation = form.dense, form.norm, form.activation
        bias, decoder = torch.zeros(len(words)), words
        tied = tied and "weight" not in form.names  # so that a resumed run has the same tensors
        saved, self.origin = _checkpoint_tensors(backbone.model.config, form) if head == "auto" else ({}, "new")
        if saved:
            _check_shapes(saved, {**form.shapes, "bias": bias.shape, "weight": words.shape}, self.origin)
            for name, tensor in self.state_dict().items():
                tensor.copy_(saved[name])
            bias = saved.get("bias", bias)
            if "weight" in saved:  # a decoder that is not the word embeddings
                decoder = saved["weight"]
        index = _vocabulary_index(target_vocabulary, len(words))
        self.register_buffer("vocabulary_index", index)
        self.register_buffer("label_index", None if index is None else _inverse(index, len(words)))
        if index is not None:
            bias, decoder = bias[index], decoder[index.to(decoder.device)]
        self.bias = nn.Parameter(bias.clone())
        self.weight = None if tied else nn.Parameter(decoder.clone())
        self.to(words.device, words.dtype)
        logger.debug("vocabulary head: %s", self.origin)

    def forward(self, states: Tensor) -> Tensor:
        """States as the word rows score them. *Shape:* ``(tokens, hidden)`` → the same"""
        return self.norm(self.activation(self.dense(states)))

    def output_weight(self, word_embeddings: nn.Embedding) -> Tensor:
        """The word rows. *Shape:* ``(classes, hidden)``"""
        if self.weight is not None:
            return self.weight
        weight = word_embeddings.weight
        return weight if self.vocabulary_index is None else weight.index_select(0, self.vocabulary_index)

    def labels(self, token_ids: Tensor) -> Tensor:
        """Class of each token id within the softmax; -100 for ids outside ``target_vocabulary``."""
        return token_ids if self.label_index is None else self.label_index[token_ids]


def check_savable(parts: Backbone, head: VocabularyHead) -> None:
    """Raise ``ValueError`` where :func:`save_with_head` would: the family's checkpoints have no head of this form."""
    lacking = head.state_dict().keys() - _head_form(parts.model.config).names.keys()
    if lacking:
        raise ValueError(
            f"checkpoints of {type(parts.model.config).__name__} have no {' and no '.join(sorted(lacking))} of a "
            "vocabulary head: leave out training.save_vocabulary_head."
        )


def save_with_head(parts: Backbone, head: VocabularyHead) -> None:
    """From now on the encoder is saved as transformers' masked language model, with ``head`` over it.

    It computes as before, and loads from there as from any such checkpoint.

    Raises:
        ValueError: The family has no masked language model with a head of this form.
    """
    encoder: Any = parts.model
    whole: Any = AutoModelForMaskedLM.from_config(copy.deepcopy(encoder.config))
    names = _take_apart(whole).names
    state = {f"{whole.base_model_prefix}.{key}": tensor for key, tensor in encoder.state_dict().items()}
    state |= {name: tensor.clone() for key, tensor in head.state_dict().items() for name in names[key]}
    whole.load_state_dict(state, strict=False, assign=True)
    whole.tie_weights()
    encoder.save_pretrained = whole.save_pretrained


@dataclass(frozen=True)
class _HeadForm:
    """A family's head, freshly initialised, and what a checkpoint calls its tensors.

    Attributes:
        dense: The identity where the family has none, as EuroBERT, whose states are scored as they are; so is ``norm``.
        names: Our name of a tensor → the names by which a checkpoint may have it.
        prefix: What the names have in common, for the log.
    """

    dense: nn.Module
    activation: Callable[[Tensor], Tensor]
    norm: nn.Module
    names: dict[str, list[str]]
    prefix: str

    @property
    def shapes(self) -> dict[str, torch.Size]:
        parts = (("dense", self.dense), ("norm", self.norm))
        return {f"{kind}.{key}": tensor.shape for kind, part in parts for key, tensor in part.state_dict().items()}


def _head_form(config: Any) -> _HeadForm:
    """Take the head apart that transformers' masked-LM class of this family has around its encoder.

    Families name and nest it differently, but in each the tensors that are not the encoder's are at most one dense
    layer, one LayerNorm, a decoder and its bias.
    """
    try:
        with torch.device("meta"):
            model: Any = AutoModelForMaskedLM.from_config(config)
        return _take_apart(model)
    except ValueError:  # a family without such a class, or with a head of another form: BERT's, new
        plain = BertConfig(hidden_size=config.hidden_size, vocab_size=1, num_hidden_layers=0, num_attention_heads=1)
        plain.initializer_range = getattr(config, "initializer_range", plain.initializer_range)
        with torch.device("meta"):
            model = BertForMaskedLM(plain)
        return replace(_take_apart(model), names={}, prefix=type(config).__name__)


def _take_apart(model: Any) -> _HeadForm:
    inside = model.base_model_prefix + "."
    modules = {name: part for name, part in model.named_modules() if name and not (name + ".").startswith(inside)}
    rows, width = model.get_input_embeddings().weight.shape
    # A decoder is known by its shape; it may be missing where the word embeddings are called instead (DeBERTa).
    dense = [name for name, part in modules.items() if isinstance(part, nn.Linear) and part.out_features != rows]
    norm = [name for name, part in modules.items() if isinstance(part, nn.LayerNorm)]
    if len(dense) > 1 or len(norm) > 1:
        raise ValueError(f"{type(model).__name__} has a head of another form.")
    parts: dict[str, nn.Module] = {"dense": nn.Identity(), "norm": nn.Identity()}
    names = {}
    for kind, name in (*(("dense", name) for name in dense), *(("norm", name) for name in norm)):
        parts[kind] = modules[name].to_empty(device="cpu")
        model._init_weights(modules[name])
        for key in modules[name].state_dict():
            old = {"weight": "gamma", "bias": "beta"}[key]  # as BERT's first checkpoints call them
            names[f"{kind}.{key}"] = [f"{name}.{key}", *([f"{name}.{old}"] if kind == "norm" else [])]
    # A tied tensor has several names; a checkpoint may hold it under any of them.
    outside = [(n, p.shape) for n, p in model.named_parameters(remove_duplicate=False) if not n.startswith(inside)]
    names["bias"] = [name for name, shape in outside if shape == (rows,)]
    if not model.config.tie_word_embeddings:
        names["weight"] = [name for name, shape in outside if shape == (rows, width)]
    names = {name: [*keys, *_first_names(keys)] for name, keys in names.items() if keys}
    shared = itertools.takewhile(
        lambda part: len(set(part)) == 1, zip(*(keys[0].split(".") for keys in names.values()))
    )
    activation = _activation([model, *modules.values()]) if dense else nn.Identity()
    prefix = ".".join(part[0] for part in shared) or ", ".join(dense)
    return _HeadForm(parts["dense"], activation, parts["norm"], names, prefix)


def _first_names(keys: list[str]) -> list[str]:
    """What Microsoft's checkpoints of DeBERTa call the tensors."""
    return [key.replace("cls.predictions.", "lm_predictions.lm_head.").replace("transform.", "") for key in keys]


def _activation(modules: Sequence[nn.Module]) -> Callable[[Tensor], Tensor]:
    for module in modules:
        for name in ("transform_act_fn", "activation", "act"):
            saved = getattr(module, name, None)
            if callable(saved):
                return saved
    return F.gelu  # which (XLM-)RoBERTa and MPNet call by name


def _checkpoint_tensors(config: Any, form: _HeadForm) -> tuple[dict[str, Tensor], str]:
    """The head's tensors by our names, none if any is missing, and where they come from, in words."""
    if not form.names and form.prefix == "":
        return {}, "the encoder's word embeddings, and nothing else"
    place = str(getattr(config, "_name_or_path", "") or "")
    files = list(_weight_files(place, getattr(config, "_commit_hash", None)))
    if not files:
        return {}, "new: no checkpoint is at hand" + (f" of {place}" if place and not Path(place).is_absolute() else "")
    wanted = {key for keys in form.names.values() for key in keys}
    tensors = {key: tensor for file in files for key, tensor in _read(file, wanted)}
    saved = {
        name: next(tensors[key] for key in keys if key in tensors)
        for name, keys in form.names.items()
        if any(key in tensors for key in keys)
    }
    missing = [name for name in form.names if name not in saved]
    if not saved or missing:
        lacks = f"{form.prefix}, lacks {', '.join(missing)}" if saved else f"none ({form.prefix})"
        return {}, f"new: the checkpoint {place} has {lacks}"
    return saved, f"from the checkpoint {place} ({form.prefix})"


def _weight_files(place: str, revision: str | None) -> Iterator[Path]:
    """The files of weights that transformers would read, in a folder or in the Hub's cache; nothing is downloaded."""
    for single, index in ((SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME), (WEIGHTS_NAME, WEIGHTS_INDEX_NAME)):
        if (file := _local_file(place, single, revision)) is not None:
            yield file
            return
        if (file := _local_file(place, index, revision)) is not None:
            shards = sorted(set(json.loads(file.read_text(encoding="utf-8"))["weight_map"].values()))
            yield from (shard for name in shards if (shard := _local_file(place, name, revision)) is not None)
            return


def _local_file(place: str, name: str, revision: str | None) -> Path | None:
    if Path(place).is_dir() or not place:
        path = Path(place) / name
        return path if place and path.is_file() else None
    for cache in (None, os.environ.get("SENTENCE_TRANSFORMERS_HOME")):
        try:
            cached = try_to_load_from_cache(place, name, cache_dir=cache, revision=revision)
        except HFValidationError:  # a folder that is gone
            return None
        if isinstance(cached, str):
            return Path(cached)
    return None


def _read(file: Path, wanted: set[str]) -> Iterator[tuple[str, Tensor]]:
    if file.suffix == ".safetensors":
        with safe_open(str(file), framework="pt") as tensors:
            yield from ((key, tensors.get_tensor(key)) for key in tensors.keys() if key in wanted)  # noqa: SIM118
    else:
        state = torch.load(file, map_location="cpu", weights_only=True)
        yield from ((key, tensor) for key, tensor in state.items() if key in wanted)


def _check_shapes(saved: dict[str, Tensor], expected: dict[str, torch.Size], origin: str) -> None:
    unlike = [
        f"{name} {tuple(tensor.shape)} for {tuple(expected[name])}"
        for name, tensor in saved.items()
        if tensor.shape != expected[name]
    ]
    if unlike:
        raise ValueError(
            f"the vocabulary head {origin} does not fit the encoder: got {', '.join(unlike)}; was its vocabulary "
            "changed? Use head='new' for a head that starts from nothing."
        )


def _vocabulary_index(ids: Sequence[int] | Tensor | None, size: int) -> Tensor | None:
    if ids is None:
        return None
    index = torch.as_tensor(ids, dtype=torch.long).cpu().flatten()
    if len(index) == 0 or len(index.unique()) != len(index):
        raise ValueError(
            f"target_vocabulary must hold distinct token ids, at least one: got {len(index)} ids, "
            f"{len(index.unique())} of them distinct."
        )
    if int(index.min()) < 0 or int(index.max()) >= size:
        raise ValueError(
            f"target_vocabulary must hold ids of this tokenizer, 0..{size - 1}: got {int(index.min())}.."
            f"{int(index.max())}; build it with the model's own tokenizer."
        )
    return index.sort().values


def _inverse(index: Tensor, size: int) -> Tensor:
    inverse = torch.full((size,), -100, dtype=torch.long)
    inverse[index] = torch.arange(len(index))
    return inverse


class RepresentationTranslationHead(nn.Module):
    r"""``K`` layers copied from the encoder's last ``K``, and a vocabulary head of its own over them.

    .. math:: g(h, y) = \pi(W^T g^K(\cdots g^0(h, y))), \quad g^0 = (h_1 \dots h_{S_x}, [MASK] \times S_y)

    Of BERT-type layers the last computes queries for the reconstructed positions only: what it would say about the
    source positions nobody reads. The values are those of the full layer. Other families' layers are called by their
    own code, with the final normalisation, relative or rotary positions that stand around them in the encoder.

    Args:
        backbone: The encoder whose layers are copied; adapters on them are merged into the copy.
        layers: How many of its last layers (``K``; the paper's best is 2).
        languages: Number of languages the head may have to write; above 1, a learned language embedding, starting
            at zero, is added to the reconstructed positions.
        target_vocabulary: Token ids the softmax ranges over, ascending and distinct. ``None``: the whole vocabulary.
        tied: Score with the encoder's own word embeddings; otherwise with a copy that belongs to the head.
        head: Start of the vocabulary head, ``"auto"`` or ``"new"``; see :class:`VocabularyHead`.
        mask_id: Id of the mask token, whose embedding the head copies: a gradient into the encoder's table would be as
            large as the table.

    Raises:
        ValueError: ``layers`` outside 1 … the encoder's depth; ids outside the vocabulary or repeated.

    Source:
        Li et al. 2023 (DAP), section 3.2, equation 4; its code takes the checkpoint's masked-LM head whole and adds the
        ``target_vocabulary``.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        layers: int = 2,
        languages: int = 1,
        target_vocabulary: Sequence[int] | Tensor | None = None,
        tied: bool = False,
        head: HeadStart = "auto",
        mask_id: int,
    ) -> None:
        super().__init__()
        depth = len(backbone.layers)
        if not 1 <= layers <= depth:
            raise ValueError(f"layers must lie in 1..{depth}, the encoder's depth: got {layers}; lower it.")
        self.layers = nn.ModuleList(plain_copy(layer) for layer in backbone.layers[-layers:])
        config = backbone.model.config
        self.heads = int(config.num_attention_heads)  # type: ignore[union-attr, arg-type]
        self.attention_dropout = float(getattr(config, "attention_probs_dropout_prob", 0.0))
        self.language_embeddings = nn.Embedding(languages, backbone.hidden_size) if languages > 1 else None
        if self.language_embeddings is not None:
            nn.init.zeros_(self.language_embeddings.weight)
        self.vocabulary_head = VocabularyHead(backbone, head=head, target_vocabulary=target_vocabulary, tied=tied)
        words = backbone.word_embeddings.weight.detach()
        self.mask_embedding = nn.Parameter(words[mask_id].clone())
        self.to(words.device)

    def forward(self, states: Tensor, mask: Tensor, start: int, *, backbone: Backbone, position_ids: Tensor) -> Tensor:
        """Hidden states of the positions to reconstruct.

        Args:
            states: Source token states, then the reconstructed side's input. *Shape:* ``(batch, tokens, hidden)``
            mask: True where a token may be attended to. *Shape:* ``(batch, tokens)``
            start: Index among ``tokens`` where the reconstructed side begins.
            backbone: The encoder, whose code calls layers that are not BERT's.
            position_ids: For that code. *Shape:* ``(batch, tokens)``

        Returns:
            *Shape:* ``(batch, tokens - start, hidden)``
        """
        # A row without a single visible token (an empty source and target) would softmax over nothing.
        visible = mask | ~mask.any(dim=1, keepdim=True)
        if not backbone.bert_shaped:
            return backbone.run(list(self.layers), states, visible, position_ids)[:, start:]
        bias = visible[:, None, None, :]
        for layer in self.layers[:-1]:
            states = self._layer(layer, states, states, bias)
        return self._layer(self.layers[-1], states[:, start:], states, bias)

    def _layer(self, layer: nn.Module, hidden: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        attention = layer.attention
        own = attention.self  # type: ignore[union-attr]
        query, key, value = own.query(hidden), own.key(context), own.value(context)  # type: ignore[union-attr, operator]
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value))
        dropout = self.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        attended = attention.output(mixed.transpose(1, 2).flatten(2), hidden)  # type: ignore[union-attr, operator]
        return layer.output(layer.intermediate(attended), attended)  # type: ignore[operator]
