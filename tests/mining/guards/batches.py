"""Candidates made of bare pairs of texts."""

from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from st_xling.mining import MinedPairs
from st_xling.mining.guards import CandidateBatch, Guard, Verdict


def candidates(*pairs: tuple[str, str]) -> CandidateBatch:
    """Row ``i`` of one side with row ``i`` of the other, the score falling from 2."""
    rows = np.arange(len(pairs))
    return CandidateBatch(MinedPairs(2 - rows / 100, rows, rows), *([pair[side] for pair in pairs] for side in (0, 1)))


def static_model() -> Any:
    """Static embeddings in which each word has a direction of its own, and its translation the same."""
    words = ["Hund", "dog", "Katze", "cat", "Haus", "house"]
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, **{word: place for place, word in enumerate(words, 1)}}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    weights = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    weights = np.concatenate([np.zeros((1, 3), dtype=np.float32), weights])
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


def verdicts(guard: Guard, *pairs: tuple[str, str]) -> list[Verdict | None]:
    """What a guard says of pairs."""
    return guard.check(candidates(*pairs))
