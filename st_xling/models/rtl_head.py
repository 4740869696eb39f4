"""The head of representation translation learning: one side's token states in, the other side's words out."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from st_xling.models.adapters import plain_copy
from st_xling.models.backbone import Backbone
from st_xling.models.vocabulary_head import HeadStart, VocabularyHead


class RepresentationTranslationHead(nn.Module):
    r"""``K`` layers copied from the encoder's last ``K``, and a vocabulary head of its own over them.

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
        self.attention_dropout = float(config.attention_probs_dropout_prob)  # type: ignore[union-attr, arg-type]
        self.language_embeddings = nn.Embedding(languages, backbone.hidden_size) if languages > 1 else None
        if self.language_embeddings is not None:
            nn.init.zeros_(self.language_embeddings.weight)
        self.vocabulary_head = VocabularyHead(backbone, head=head, target_vocabulary=target_vocabulary, tied=tied)
        words = backbone.word_embeddings.weight.detach()
        self.mask_embedding = nn.Parameter(words[mask_id].clone())
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

    def _layer(self, layer: nn.Module, hidden: Tensor, context: Tensor, mask: Tensor) -> Tensor:
        attention = layer.attention
        own = attention.self  # type: ignore[union-attr]
        query, key, value = own.query(hidden), own.key(context), own.value(context)  # type: ignore[union-attr, operator]
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value))
        dropout = self.attention_dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        attended = attention.output(mixed.transpose(1, 2).flatten(2), hidden)  # type: ignore[union-attr, operator]
        return layer.output(layer.intermediate(attended), attended)  # type: ignore[operator]
