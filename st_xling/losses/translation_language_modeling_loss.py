"""Masked language modeling of sentences (MLM), or of a pair read as one sequence (TLM)."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from st_xling.losses.base import Batch, SumAndCount, TokenLevelLoss, bibtex
from st_xling.losses.token_inputs import Positions, encode_hidden, join_pairs, sentences, usable_positions
from st_xling.losses.vocabulary_softmax import head_cross_entropy
from st_xling.models.backbones import backbone
from st_xling.models.heads import HeadStart, VocabularyHead
from st_xling.utils.options import check_choice

LanguageModelingObjective = Literal["tlm", "mlm"]


class TranslationLanguageModelingLoss(TokenLevelLoss):
    r"""Guess hidden words of a pair from the rest of both sentences (TLM), or of each sentence by itself (MLM).

    .. math:: L = -\frac{1}{|M|} \sum_{t \in M} \log P(z_t \mid z_{\setminus M}), \quad z = [x; y]

    15 % of the words are hidden: 80 % behind the mask token, 10 % behind a random one, 10 % shown. The corrupted text
    needs a second encoder pass. Scores are those of a :class:`VocabularyHead` that the loss owns: the checkpoint's
    head where it has one. In a sum, all MLM and TLM terms of one ``head`` option train the same head.

    Args:
        model: The ``SentenceTransformer`` to train, with a bidirectional encoder and a mask token.
        objective: ``"tlm"`` reads the first two columns as one sequence; ``"mlm"`` every column's sentences one by one.
        mask_probability: Share of the tokens that are hidden.
        contiguous: With ``"mlm"``, read the first two columns, contiguous sentences of one text, as one sequence
            (BERT; AMBER's monolingual pairs). A row of empty text counts for nothing.
        positions: Of the second sentence: ``"restarting"`` from the beginning (XLM) or ``"running"`` on (BERT, AMBER).
        segments: Give the second sentence segment 1 where the encoder has two segments (BERT, AMBER).
        head: ``"auto"`` starts from the checkpoint's masked-LM head where it has one; ``"new"`` from random weights.

    Raises:
        ValueError: Options out of range, a decoder or no transformer, or a tokenizer without a mask token.

    References:
        - Conneau and Lample 2019, Cross-lingual Language Model Pretraining, section 3
        - Hu et al. 2021, Explicit Alignment Objectives for Multilingual Bidirectional Encoders, equation 2

    Requirements:
        1. Parallel pairs for ``"tlm"``; any text for ``"mlm"``, in separate columns chosen with ``.on(...)`` where
           other terms read pairs.

    Inputs:
        +------------------+--------+
        | Texts            | Labels |
        +==================+========+
        | (source, target) | none   |
        +------------------+--------+
        | (text, ...)      | none   |
        +------------------+--------+

    Relations:
        - :class:`RepresentationTranslationLoss` aligns tokens without a second encoder pass, and of sentences that are
          read apart, as they are when the model is used.

    Example:
        >>> from st_xling.losses import TranslationLanguageModelingLoss, TranslationRankingLoss
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Der Hund schläft.", "Ich lese."], ["The dog is sleeping.", "I am reading."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> loss = TranslationRankingLoss(model) + TranslationLanguageModelingLoss(model)
        >>> sum(loss([model.preprocess(texts) for texts in (sources, targets)]).values()).backward()
    """

    citation = bibtex("hu2021explicit")
    reads_encoding = False

    def __init__(
        self,
        model: nn.Module,
        *,
        objective: LanguageModelingObjective = "tlm",
        mask_probability: float = 0.15,
        contiguous: bool = False,
        positions: Positions = "restarting",
        segments: bool = False,
        head: HeadStart = "auto",
    ) -> None:
        super().__init__(model)
        check_choice("objective", objective, LanguageModelingObjective)
        if not 0 < mask_probability <= 1:
            raise ValueError(f"mask_probability must lie in (0, 1]: got {mask_probability}; 0.15 is usual.")
        if contiguous and objective == "tlm":
            raise ValueError("contiguous sentences of one text are read by objective 'mlm': got 'tlm' for them.")
        parts = backbone(model)
        self.objective = objective
        self.mask_probability = mask_probability
        self.contiguous = contiguous
        self.segments = segments
        self.positions = usable_positions(parts, positions)
        self.shared_head = head
        self.min_columns = 2 if objective == "tlm" or contiguous else 1
        self.max_columns = 2 if self.min_columns == 2 else None
        self.mask_id = parts.mask_id(objective.upper())
        self.head = VocabularyHead(parts, head=head)

    def compute_parts(self, batch: Batch, labels: Tensor | None) -> list[SumAndCount]:
        parts = backbone(self.model)
        if self.objective == "tlm" or self.contiguous:
            sequences = [join_pairs(parts, batch[0], batch[1], positions=self.positions, segments=self.segments)]
        else:
            sequences = [sentences(parts, column) for column in batch]
        states = []
        token_ids = []
        for inputs in sequences:
            encoded, hidden = encode_hidden(parts, inputs, mask_id=self.mask_id, probability=self.mask_probability)
            states.append(encoded[hidden])
            token_ids.append(inputs.input_ids[hidden])
        return [head_cross_entropy(self.head, parts.word_embeddings, torch.cat(states), torch.cat(token_ids))]

    def get_config_dict(self) -> dict[str, Any]:
        return {**super().get_config_dict(), "head": self.shared_head}
