"""The head of representation translation learning: one side's token states in, the other side's words out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.models.adapters import plain_copy
from st_xling.models.backbone import Backbone


class RepresentationTranslationHead(nn.Module):
    r"""``K`` layers copied from the encoder's last ``K``, and a vocabulary over them.

    .. math:: g(h, y) = \pi(W^T g^K(\cdots g^0(h, y))), \quad g^0 = (h_1 \dots h_{S_x}, [MASK] \times S_y)

    The last layer computes queries for the reconstructed positions only: what it would say about the source
    positions nobody reads. The values are those of the full layer.

    Args:
        backbone: The encoder whose layers are copied; adapters on them are merged into the copy.
        layers: How many of its last layers (``K``; the paper's best is 2).
        languages: Number of languages the head may have to write; above 1, a learned language embedding, starting
            at zero, is added to the reconstructed positions.
        target_vocabulary: Token ids the softmax ranges over, ascending and distinct. ``None``: the whole vocabulary.
        tied: Score with the encoder's own word embeddings; otherwise with a copy that belongs to the head.
        mask_id: Id of the mask token, whose embedding the head copies: a gradient into the encoder's table would be as
            large as the table.

    Raises:
        ValueError: ``layers`` outside 1 … the encoder's depth; ids outside the vocabulary or repeated.

    Source:
        Li et al. 2023 (DAP), section 3.2, equation 4; its code adds the ``target_vocabulary``.
    """

    vocabulary_index: Tensor | None
    label_index: Tensor | None

    def __init__(
        self,
        backbone: Backbone,
        *,
        layers: int = 2,
        languages: int = 1,
        target_vocabulary: Sequence[int] | Tensor | None = None,
        tied: bool = False,
        mask_id: int,
    ) -> None:
        super().__init__()
        depth = len(backbone.layers)
        if not 1 <= layers <= depth:
            raise ValueError(f"layers must lie in 1..{depth}, the encoder's depth: got {layers}; lower it.")
        self.layers = nn.ModuleList(plain_copy(layer) for layer in backbone.layers[-layers:])
        config = backbone.model.config
        self.heads = int(config.num_attention_heads)  # type: ignore[union-attr, arg-type]
        self.attention_dropout = float(config.attention_probs_dropout_prob)  # type: ignore[union-attr, arg-type]
        self.language_embeddings = nn.Embedding(languages, backbone.hidden_size) if languages > 1 else None
        if self.language_embeddings is not None:
            nn.init.zeros_(self.language_embeddings.weight)
        words = backbone.word_embeddings.weight
        index = _vocabulary_index(target_vocabulary, words.shape[0])
        self.register_buffer("vocabulary_index", index)
        self.register_buffer("label_index", None if index is None else _inverse(index, words.shape[0]))
        size = words.shape[0] if index is None else len(index)
        self.mask_embedding = nn.Parameter(words.detach()[mask_id].clone())
        self.bias = nn.Parameter(torch.zeros(size))
        self.weight: nn.Parameter | None = None
        if not tied:
            own = words.detach() if index is None else words.detach()[index.to(words.device)]
            self.weight = nn.Parameter(own.clone())
        self.to(words.device)

    def forward(self, states: Tensor, mask: Tensor, start: int) -> Tensor:
        """Hidden states of the positions to reconstruct.

        Args:
            states: Source token states, then the reconstructed side's input. *Shape:* ``(batch, tokens, hidden)``
            mask: True where a token may be attended to. *Shape:* ``(batch, tokens)``
            start: Index among ``tokens`` where the reconstructed side begins.

        Returns:
            *Shape:* ``(batch, tokens - start, hidden)``
        """
        # A row without a single visible token (an empty source and target) would softmax over nothing.
        visible = mask | ~mask.any(dim=1, keepdim=True)
        bias = visible[:, None, None, :]
        for layer in self.layers[:-1]:
            states = self._layer(layer, states, states, bias)
        return self._layer(self.layers[-1], states[:, start:], states, bias)

    def output_weight(self, word_embeddings: nn.Embedding) -> Tensor:
        """Rows the softmax scores with. *Shape:* ``(vocabulary, hidden)``"""
        if self.weight is not None:
            return self.weight
        weight = word_embeddings.weight
        return weight if self.vocabulary_index is None else weight.index_select(0, self.vocabulary_index)

    def labels(self, token_ids: Tensor) -> Tensor:
        """Class of each token id within the softmax; -100 for ids outside ``target_vocabulary``."""
        return token_ids if self.label_index is None else self.label_index[token_ids]

    def _layer(self, layer: nn.Module, hidden: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        attention = layer.attention
        own = attention.self  # type: ignore[union-attr]
        query, key, value = own.query(hidden), own.key(context), own.value(context)  # type: ignore[union-attr, operator]
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value))
        dropout = self.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        attended = attention.output(mixed.transpose(1, 2).flatten(2), hidden)  # type: ignore[union-attr, operator]
        return layer.output(layer.intermediate(attended), attended)  # type: ignore[operator]


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
