"""The heads of token-level objectives: a masked language model's vocabulary head, and the RTL head over it."""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, BertConfig

from st_xling.models.backbones import Backbone
from st_xling.models.lora import plain_copy
from st_xling.utils.options import check_choice
from st_xling.utils.private import initialize

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

logger = logging.getLogger(__name__)

HeadStart = Literal["auto", "new"]


class VocabularyHead(nn.Module):
    r"""Scores of words for token states, as BERT and XLM-R compute them.

    .. math:: z = E\,\mathrm{LayerNorm}(\sigma(W h + c)) + b

    ``E`` are the encoder's word embeddings, or rows of the head. sentence-transformers loads encoders without their
    head. So it is loaded from where the encoder was loaded from, a folder or the Hub's cache, by transformers'
    ``AutoModelForMaskedLM``. Where the checkpoint has none, the head is initialized as transformers initializes it, by
    draws from torch's global generator.

    Args:
        backbone: The encoder.
        head: ``"auto"`` takes the checkpoint's head where it has one; ``"new"`` never does.
        target_vocabulary: Token ids that are scored, ascending in the softmax; ``None``: the whole vocabulary.
        tied: Score with the encoder's word embeddings; otherwise with a copy that belongs to the head.

    Attributes:
        origin: Origin of the head's tensors, for the log.
        is_new: True while they are random: until they are trained.
        on_pretrained: True if the encoder was loaded from a folder or the Hub: it has something to lose by a new head.
        weight: The rows of the head, *Shape:* ``(classes, hidden)``, or ``None`` where they are the word embeddings.
        bias: *Shape:* ``(classes,)``

    Raises:
        ValueError: An unknown option, or ids outside the vocabulary or repeated.

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
        check_choice("head", head, HeadStart)
        words = backbone.word_embeddings.weight.detach()
        config: Any = backbone.model.config
        parts = _new_head(config)
        self.dense = parts.dense
        self.norm = parts.norm
        self.activation = parts.activation
        tied = tied and parts.weight is None  # so that a resumed run has the same tensors
        saved: dict[str, Tensor] = {}
        self.origin = "new"
        if head == "auto":
            saved, self.origin = _load_head(config, backbone.revision)
        self.is_new = self.origin.startswith("new")
        checkpoint = str(config.name_or_path or "")
        # A relative path counts as a model of the Hub; a folder that is gone was a temporary one.
        is_at_hand = not Path(checkpoint).is_absolute() or Path(checkpoint).exists()
        self.on_pretrained = bool(checkpoint) and is_at_hand
        if saved:
            self.load_state_dict({name: saved[name] for name in self.state_dict()})
        bias = saved.get("bias", torch.zeros(len(words)))
        if len(bias) != len(words):
            raise ValueError(
                f"the head must have a bias for each of the encoder's {len(words):,} words: that of {checkpoint} has "
                f"{len(bias):,}; pass head='new', or save the encoder with its new words."
            )
        decoder = saved.get("weight", words)  # it may be another than the word embeddings
        index = _vocabulary_index(target_vocabulary, len(words))
        self.register_buffer("vocabulary_index", index)
        self.register_buffer("label_index", None)
        if index is not None:
            self.label_index = torch.full((len(words),), -100)
            self.label_index[index] = torch.arange(len(index))
            bias = bias[index]
            decoder = decoder[index.to(decoder.device)]
        self.bias = nn.Parameter(bias.clone())
        self.weight = None if tied else nn.Parameter(decoder.clone())
        self.to(words.device, trained_dtype(words))

    def mark_trained(self) -> None:
        """Count the head as trained: from here on its weights are no longer random."""
        self.is_new = False

    def forward(self, states: Tensor) -> Tensor:
        """States as the word rows score them. *Shape:* ``(tokens, hidden)`` → the same"""
        return self.norm(self.activation(self.dense(states.to(self.bias.dtype))))

    def output_weight(self, word_embeddings: nn.Embedding) -> Tensor:
        """The word rows. *Shape:* ``(classes, hidden)``"""
        if self.weight is not None:
            return self.weight
        weight = word_embeddings.weight
        return weight if self.vocabulary_index is None else weight.index_select(0, self.vocabulary_index)

    def labels(self, token_ids: Tensor) -> Tensor:
        """Class of each token id within the softmax; -100 for ids outside ``target_vocabulary``."""
        return token_ids if self.label_index is None else self.label_index[token_ids]


def trained_dtype(weight: Tensor) -> torch.dtype:
    """Return the type of a new head over ``weight``: float32 at least, since 16 bits round small updates away."""
    return torch.promote_types(weight.dtype, torch.float32)


def new_heads(loss: nn.Module) -> list[VocabularyHead]:
    """The vocabulary heads inside a loss whose weights are still random."""
    heads = [module for module in loss.modules() if isinstance(module, VocabularyHead)]
    return [head for head in heads if head.is_new]


def check_savable(parts: Backbone, head: VocabularyHead) -> None:
    """Raise ``ValueError`` where :func:`write_with_head` would fail: the family's checkpoints have no such head."""
    config: Any = parts.model.config
    family = _empty_head(config)
    savable = set() if family is None else family[1].state_dict().keys()
    lacking = head.state_dict().keys() - savable
    if lacking:
        raise ValueError(
            f"checkpoints of {type(config).__name__} have no {' and no '.join(sorted(lacking))} of a "
            "vocabulary head: leave out arguments.save_vocabulary_head."
        )


def write_with_head(folder: str | Path, parts: Backbone, head: VocabularyHead) -> None:
    """Write the encoder in the folder of a saved model again, as transformers' masked language model with ``head``.

    The folder loads as before, and in ``AutoModelForMaskedLM``; whatever starts from it begins with the head.

    Args:
        folder: Folder that ``save_pretrained`` of a sentence-transformers model has written.
        parts: The encoder of that model.
        head: Trained head over it.
    """
    encoder: Any = parts.model
    masked_lm: PreTrainedModel = AutoModelForMaskedLM.from_config(copy.deepcopy(encoder.config))
    state = {f"{masked_lm.base_model_prefix}.{key}": tensor for key, tensor in encoder.state_dict().items()}
    masked_lm.load_state_dict(state, strict=False, assign=True)
    masked_lm.tie_weights()
    _find_head_parts(masked_lm).load_state_dict(head.state_dict(), strict=False)
    modules = json.loads((Path(folder) / "modules.json").read_text(encoding="utf-8"))
    masked_lm.save_pretrained(str(Path(folder) / modules[0]["path"]))


class _HeadParts(nn.Module):
    """The parts of a masked-LM head, under the names that :class:`VocabularyHead` has for them.

    ``dense`` and ``norm`` are identities where the family has none, as EuroBERT, whose states are scored as they are.
    ``bias`` is the decoder's, ``weight`` its rows where they are not tied to the word embeddings; or ``None``.
    """

    bias: nn.Parameter | None
    weight: nn.Parameter | None

    def __init__(self) -> None:
        super().__init__()
        self.dense: nn.Module = nn.Identity()
        self.norm: nn.Module = nn.Identity()
        self.activation: nn.Module = nn.Identity()
        self.register_parameter("bias", None)
        self.register_parameter("weight", None)


def _empty_head(config: PreTrainedConfig) -> tuple[PreTrainedModel, _HeadParts] | None:
    """The masked-LM model of an encoder's family and its head, without values; ``None`` if it has none that is known
    here.
    """
    try:
        with torch.device("meta"):
            model = AutoModelForMaskedLM.from_config(config)
            return model, _find_head_parts(model)
    except ValueError:
        return None


def _new_head(config: PreTrainedConfig) -> _HeadParts:
    """A head as transformers initializes it; for families without one that is known here, BERT's."""
    bert = BertConfig(hidden_size=config.hidden_size, vocab_size=1, num_hidden_layers=0, num_attention_heads=1)
    bert.initializer_range = getattr(config, "initializer_range", bert.initializer_range)
    model, parts = _empty_head(config) or _empty_head(bert)  # type: ignore[misc]
    for module in (parts.dense, parts.norm):
        initialize(model, module.to_empty(device="cpu"))
    return parts


def _find_head_parts(model: PreTrainedModel) -> _HeadParts:
    """Find the parts of the head that a family's masked-LM class has around its encoder.

    Raises:
        ValueError: A head of another form.
    """
    # Families name and nest the parts differently, but in each what is not the encoder's is at most one dense layer,
    # one LayerNorm, a decoder and its bias.
    encoder = model.base_model_prefix + "."
    modules = [module for name, module in model.named_modules() if name and not (name + ".").startswith(encoder)]
    word_embeddings: Any = model.get_input_embeddings()
    rows, width = word_embeddings.weight.shape
    # A decoder is known by its shape; it may be missing where the word embeddings are called instead (DeBERTa).
    dense = [module for module in modules if isinstance(module, nn.Linear) and module.out_features != rows]
    norm = [module for module in modules if isinstance(module, nn.LayerNorm)]
    if len(dense) > 1 or len(norm) > 1:
        raise ValueError(f"{type(model).__name__} has a head of another form.")

    parameters = model.named_parameters(remove_duplicate=False)
    of_head = [parameter for name, parameter in parameters if not name.startswith(encoder)]
    biases = [parameter for parameter in of_head if parameter.shape == (rows,)]
    weights = []
    if not model.config.tie_word_embeddings:
        weights = [parameter for parameter in of_head if parameter.shape == (rows, width)]
    parts = _HeadParts()
    if dense:
        parts.dense = dense[0]
        parts.activation = _find_activation([model, *modules])
    if norm:
        parts.norm = norm[0]
    if biases:
        parts.bias = biases[-1]  # the decoder itself has the one that is added
    if weights:
        parts.weight = weights[0]
    return parts


def _find_activation(modules: Sequence[nn.Module]) -> nn.Module:
    """Return the first activation that is a module; (XLM-)RoBERTa and MPNet call GELU as a function."""
    for module in modules:
        for name in ("transform_act_fn", "activation", "act"):
            activation = getattr(module, name, None)
            if isinstance(activation, nn.Module):
                return activation
    return nn.GELU()


def _load_head(config: PreTrainedConfig, revision: str | None) -> tuple[dict[str, Tensor], str]:
    """Load the tensors of the head with which the encoder was saved, none if any is missing, and describe the origin.

    Nothing is downloaded: the checkpoint is a folder, or in the Hub's cache.

    Args:
        config: Configuration of the encoder.
        revision: Version on the Hub that the encoder was loaded from.
    """
    checkpoint = str(config.name_or_path or "")
    family = _empty_head(config)
    if family is None:
        return {}, "new: its family has no such head"
    if not family[1].state_dict():
        return {}, "the encoder's word embeddings, and nothing else"
    origin = "new: no checkpoint is at hand"
    if checkpoint and not Path(checkpoint).is_absolute():
        origin += f" of {checkpoint}"

    # Microsoft's checkpoints of DeBERTa have the head that transformers does not call the legacy one.
    forms: list[dict[str, Any]] = [{}, {"legacy": False}] if hasattr(config, "legacy") else [{}]
    lacks_only_head = False
    for form in forms:
        try:
            with torch.random.fork_rng(devices=[]), _held_reports() as reports:
                model, report = AutoModelForMaskedLM.from_pretrained(
                    checkpoint,
                    revision=revision,
                    cache_dir=os.environ.get("SENTENCE_TRANSFORMERS_HOME"),
                    local_files_only=True,
                    output_loading_info=True,
                    **form,
                )
        except (OSError, ValueError, AttributeError):  # no such folder, not in this cache, or a form not known here
            continue
        encoder = model.base_model_prefix + "."
        missing = {*report["missing_keys"]}
        lacking = sorted(name for name in missing if not name.startswith(encoder))
        head = {name for name, _ in model.named_parameters() if not name.startswith(encoder)}
        # A sentence encoder has all weights of the encoder and none of the head's: nothing is wrong with it, but
        # transformers calls such a checkpoint corrupted. Of any other, its report is shown.
        lacks_only_head = bool(head) and head <= missing == {*lacking} and not report["mismatched_keys"]
        if not lacks_only_head:
            _show_records(reports)
        if not lacking:
            return _find_head_parts(model).state_dict(), f"from the checkpoint {checkpoint}"
        origin = f"new: the checkpoint {checkpoint} lacks {', '.join(lacking)}"
    if lacks_only_head:
        name = Path(checkpoint).name if Path(checkpoint).is_dir() else checkpoint
        logger.warning(f"{name} has no vocabulary head: a new one is trained (guide: New heads)")
    return {}, origin


@contextlib.contextmanager
def _held_reports() -> Iterator[list[logging.LogRecord]]:
    """Collect what transformers logs about a checkpoint while it is loaded, in place of showing it."""
    records: list[logging.LogRecord] = []

    def hold(record: logging.LogRecord) -> bool:
        records.append(record)
        return False

    source = logging.getLogger("transformers.modeling_utils")
    source.addFilter(hold)
    try:
        yield records
    except BaseException:
        source.removeFilter(hold)
        _show_records(records)
        raise
    finally:
        source.removeFilter(hold)


def _show_records(records: Sequence[logging.LogRecord]) -> None:
    for record in records:
        logging.getLogger(record.name).handle(record)


def _vocabulary_index(ids: Sequence[int] | Tensor | None, size: int) -> Tensor | None:
    if ids is None:
        return None
    index = torch.as_tensor(ids, dtype=torch.long).cpu().flatten()
    distinct = len(index.unique())
    in_vocabulary = len(index) > 0 and 0 <= int(index.min()) <= int(index.max()) < size
    if distinct != len(index) or not in_vocabulary:
        raise ValueError(
            f"target_vocabulary must contain distinct ids of this tokenizer, 0..{size - 1}, at least one: got "
            f"{len(index)} ids, {distinct} of them distinct."
        )
    return index.sort().values


class RepresentationTranslationHead(nn.Module):
    r"""``K`` layers copied from the encoder's last ``K``, and a separate vocabulary head over them.

    .. math:: g(h, y) = \pi(W^T g^K(\cdots g^0(h, y))), \quad g^0 = (h_1 \dots h_{S_x}, [MASK] \times S_y)

    Of BERT-type layers the last computes queries for the reconstructed positions only: its states at the source
    positions are not read. The values are those of the full layer. Other families' layers are called by the
    family's code, with the final normalization, relative or rotary positions around them in the encoder.

    Args:
        backbone: The encoder whose layers are copied; adapters on them are merged into the copy.
        layers: Number of its last layers (``K``; the paper's best is 2).
        languages: Number of languages the head may have to write; above 1, a learned language embedding, starting
            at zero, is added to the reconstructed positions.
        target_vocabulary: Token ids the softmax ranges over, ascending and distinct. ``None``: the whole vocabulary.
        tied: Score with the encoder's word embeddings; otherwise with a copy that belongs to the head.
        head: Start of the vocabulary head, ``"auto"`` or ``"new"``; see :class:`VocabularyHead`.
        mask_id: Id of the mask token, whose embedding the head copies: a gradient into the encoder's table would be as
            large as the table.

    Raises:
        ValueError: ``layers`` outside 1 … the encoder's depth; ids outside the vocabulary or repeated.

    Source:
        Li et al. 2023 (DAP), section 3.2, equation 4; its code takes all of the checkpoint's masked-LM head and adds
        the ``target_vocabulary``.
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
        if layers < depth and backbone.has_shared_distances:
            raise ValueError(
                f"the last layers of {type(backbone.model).__name__} know no order of tokens by themselves, since the "
                f"first one has the distances for all: pass layers={depth}, or train by sentence-level losses, MLM or "
                "TLM."
            )
        self.layers = nn.ModuleList(plain_copy(layer) for layer in backbone.layers[-layers:])
        config = backbone.model.config
        self.heads = int(config.num_attention_heads)  # type: ignore[union-attr, arg-type]
        self.attention_dropout = float(getattr(config, "attention_probs_dropout_prob", 0.0))
        self.language_embeddings = nn.Embedding(languages, backbone.hidden_size) if languages > 1 else None
        if self.language_embeddings is not None:
            nn.init.zeros_(self.language_embeddings.weight)
        self.vocabulary_head = VocabularyHead(backbone, head=head, target_vocabulary=target_vocabulary, tied=tied)
        words = backbone.word_embeddings
        with torch.no_grad():  # as the encoder reads it: Gemma scales its rows
            mask_embedding = words(torch.tensor([mask_id], device=words.weight.device))[0]
        self.mask_embedding = nn.Parameter(mask_embedding.clone())
        self.to(words.weight.device)
        if backbone.bert_shaped:  # others are called with what the encoder computes, in its type
            self.to(trained_dtype(words.weight))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the states that its layers read."""
        return self.mask_embedding.dtype

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
            states = self._run_bert_layer(layer, states, states, bias)
        return self._run_bert_layer(self.layers[-1], states[:, start:], states, bias)

    def _run_bert_layer(self, layer: nn.Module, hidden: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        """Compute a layer of BERT for the positions ``hidden``, which attend to those of ``context``."""
        attention: Any = layer.attention
        query = self._split_heads(attention.self.query(hidden))
        key = self._split_heads(attention.self.key(context))
        value = self._split_heads(attention.self.value(context))
        dropout = self.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        attended = attention.output(mixed.transpose(1, 2).flatten(2), hidden)
        return layer.output(layer.intermediate(attended), attended)  # type: ignore[operator]

    def _split_heads(self, states: Tensor) -> Tensor:
        """*Shape:* ``(batch, tokens, hidden)`` → ``(batch, heads, tokens, hidden / heads)``"""
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)
