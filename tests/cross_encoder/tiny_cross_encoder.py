"""A small cross-encoder over given text, with random weights large enough that scores differ."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from transformers import AutoConfig, AutoModelForSequenceClassification

from st_xling.models import tiny_encoder


def tiny_cross_encoder(
    texts: Sequence[str], *, architecture: Any = "bert", max_length: int = 40, num_labels: int = 1
) -> CrossEncoder:
    """Two layers of 16 under a tokenizer of ``texts``."""
    encoder = tiny_encoder(
        texts, vocabulary=300, hidden_size=16, heads=2, dropout=0.0, max_length=max_length, architecture=architecture
    )
    with tempfile.TemporaryDirectory() as folder:
        encoder[0].auto_model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        config = AutoConfig.from_pretrained(folder, num_labels=num_labels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = AutoModelForSequenceClassification.from_config(config)
            for weights in model.parameters():
                if weights.ndim > 1:
                    torch.nn.init.normal_(weights, std=0.3)
        model.save_pretrained(folder)
        return CrossEncoder(folder, device="cpu")
