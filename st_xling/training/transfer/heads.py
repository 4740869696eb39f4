"""An encoder → the host's models with a new head: one label for a pair of sentences, or one for each word."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForTokenClassification, AutoTokenizer

from st_xling.models.backbone import token_encoder
from st_xling.models.load import limit_length, load_encoder, loading, longest_input, st_model
from st_xling.models.lora import check_start

PAPERS_LENGTH = 128
"""Tokens of an input. *Source:* DAP, table 9; XTREME, ``scripts/train_udpos.sh``."""


@dataclass(frozen=True)
class WordTagger:
    """``AutoModelForTokenClassification`` and its tokenizer, saved side by side.

    Attributes:
        model: Its configuration names the labels.
        tokenizer: Cuts at ``model_max_length``.
    """

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, folder: str | Path) -> WordTagger:
        """What :meth:`save_pretrained` wrote."""
        with loading(folder):
            return cls(
                AutoModelForTokenClassification.from_pretrained(str(folder)), AutoTokenizer.from_pretrained(str(folder))
            )

    def save_pretrained(self, folder: str | Path) -> None:
        self.model.save_pretrained(str(folder))
        self.tokenizer.save_pretrained(str(folder))


def pair_classifier(
    encoder: str, labels: Sequence[str], *, max_length: int | None = None, seed: int = 0
) -> CrossEncoder:
    """A ``CrossEncoder`` over ``encoder`` whose head has one output for each label.

    Args:
        encoder: Hub id or folder of a ``SentenceTransformer`` or a bare transformer.
        labels: Names of the outputs.
        max_length: Tokens of a pair, the longer sentence cut first; ``None``: :data:`PAPERS_LENGTH`, or as far as the
            encoder's positions reach.
        seed: Of the head's weights.
    Raises:
        ValueError: No encoder there, adapters, or a length that its positions do not reach.
    """
    with _transformer(encoder, max_length) as (folder, length), _seeded(seed):
        model = st_model(CrossEncoder, folder, num_labels=len(labels), max_length=length, config_kwargs=_names(labels))
    model.model_card_data.base_model = encoder
    return model


def word_tagger(encoder: str, labels: Sequence[str], *, max_length: int | None = None, seed: int = 0) -> WordTagger:
    """An ``AutoModelForTokenClassification`` over ``encoder``; arguments and errors as of :func:`pair_classifier`."""
    with _transformer(encoder, max_length) as (folder, length), _seeded(seed):
        tokenizer = AutoTokenizer.from_pretrained(folder, model_max_length=length)
        if not tokenizer.is_fast:
            raise ValueError(
                f"words can be tagged by their first sub-word only with a fast tokenizer: {encoder} has "
                f"{type(tokenizer).__name__}; start from an encoder that has one."
            )
        model = AutoModelForTokenClassification.from_pretrained(folder, **_names(labels))
    return WordTagger(model, tokenizer)


@contextlib.contextmanager
def _transformer(encoder: str, max_length: int | None) -> Iterator[tuple[str, int]]:
    """The transformer inside ``encoder``, in a folder of its own, and the length of its inputs."""
    model = load_encoder(encoder, device="cpu")
    inner: Any = token_encoder(model)  # or an error that says what is missing
    check_start(model, None, given=False)
    if max_length is None:
        reach = longest_input(model)
        max_length = PAPERS_LENGTH if reach is None else min(PAPERS_LENGTH, reach)
    limit_length(model, max_length)
    with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
        inner.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        yield folder, max_length


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """New weights are those of ``seed``; the caller's random numbers go on as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _names(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
