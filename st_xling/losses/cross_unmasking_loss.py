"""Cross-unmasking: guess a sentence's hidden words with the help of its translation's embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from st_xling.losses.base import Batch, SumAndCount, TokenLevelLoss, bibtex
from st_xling.losses.token_inputs import encode_hidden, sentences
from st_xling.losses.vocabulary_softmax import head_cross_entropy
from st_xling.models.backbones import Backbone, backbone, cls_mask
from st_xling.models.heads import HeadStart, VocabularyHead, trained_dtype


class CrossUnmaskingLoss(TokenLevelLoss):
    r"""Guess hidden words of each sentence from its other words and from its translation's sentence embedding.

    .. math:: L = \frac{1}{2} \left( CE(g(s_y, h(\tilde{x})), x) + CE(g(s_x, h(\tilde{y})), y) \right)

    ``x~`` is ``x`` with words hidden, ``h`` the encoder's token states, ``s_y`` the embedding of the whole ``y``, which
    takes the place of CLS, and ``g`` layers of the loss under a vocabulary head. So many words are hidden
    that the embedding is needed. The gradient reaches the encoder through the embedding and through the tokens.

    Args:
        model: The ``SentenceTransformer`` to train, with a bidirectional encoder, a mask token, and embeddings as wide
            as the encoder.
        mask_probability: Share of the tokens that are hidden.
        layers: Depth of ``g``. They normalize before attention, so that an embedding of length 1 counts as much as
            token states; the authors' normalize after it.
        head: ``"auto"`` starts the vocabulary head from the checkpoint's masked-LM head where it has one; ``"new"``
            from random weights.

    Raises:
        ValueError: Options out of range, a decoder or no transformer, a tokenizer without a mask token, or embeddings
            of another width.

    References:
        - Janeiro et al. 2025, MEXMA: Token-level objectives improve sentence representations; the authors' code for
          the head: six layers of eight heads

    Requirements:
        1. Parallel pairs.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+

    Relations:
        - With :class:`EmbeddingDistanceLoss` and :class:`KoleoLoss` it makes MEXMA.
        - :class:`RepresentationTranslationLoss` rebuilds all words from token states and trains no sentence embedding.

    Example:
        >>> from st_xling.losses import CrossUnmaskingLoss, EmbeddingDistanceLoss, KoleoLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = CrossUnmaskingLoss(model) + EmbeddingDistanceLoss(model) + 0.01 * KoleoLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    max_columns = 2
    citation = bibtex("janeiro2025mexma")

    def __init__(
        self, model: nn.Module, *, mask_probability: float = 0.4, layers: int = 6, head: HeadStart = "auto"
    ) -> None:
        super().__init__(model)
        if not 0 < mask_probability <= 1:
            raise ValueError(f"mask_probability must lie in (0, 1]: got {mask_probability}; 0.4 is the paper's.")
        if layers < 1:
            raise ValueError(f"layers must be 1 or more: got {layers}.")
        parts = backbone(model)
        width = parts.hidden_size
        heads = 8 if width % 8 == 0 else int(parts.model.config.num_attention_heads)  # type: ignore[union-attr, arg-type]
        self.mask_probability = mask_probability
        self.layers = layers
        self.mask_id = parts.mask_id("cross-unmasking")
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.unmasking = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        words = parts.word_embeddings.weight
        self.unmasking.to(words.device, trained_dtype(words))
        self.head = VocabularyHead(parts, head=head)

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[SumAndCount]:
        parts = backbone(self.model)
        source, target = batch[:2]
        return [
            self._unmask(parts, source, target["sentence_embedding"]),
            self._unmask(parts, target, source["sentence_embedding"]),
        ]

    def _unmask(self, parts: Backbone, column: dict[str, Tensor], translation: Tensor) -> SumAndCount:
        if translation.shape[1] != parts.hidden_size:
            raise ValueError(
                f"cross-unmasking needs embeddings as wide as the encoder, {parts.hidden_size}: got "
                f"{translation.shape[1]}; train without the modules that change their width."
            )
        inputs = sentences(parts, column)
        states, hidden = encode_hidden(parts, inputs, mask_id=self.mask_id, probability=self.mask_probability)
        # The translation's embedding instead of CLS, which has seen the sentence's other words.
        seen = inputs.attention_mask & ~cls_mask(inputs.input_ids, parts.tokenizer)
        dtype = next(self.unmasking.parameters()).dtype
        states = torch.cat([translation[:, None].to(dtype), states.to(dtype)], dim=1)
        unseen = ~torch.cat([seen.new_ones(len(seen), 1), seen], dim=1)
        states = self.unmasking(states, src_key_padding_mask=unseen)[:, 1:]
        return head_cross_entropy(self.head, parts.word_embeddings, states[hidden], inputs.input_ids[hidden])
