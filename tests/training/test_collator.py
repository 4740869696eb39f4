"""Language columns become ids beside their text column, and are never read as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments

from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
from st_xling.training import CrossLingualTrainer
from st_xling.training.trainer import CrossLingualDataCollator

LANGUAGES = {"ar": 0, "en": 1, "th": 2, "de": 3}
ROWS = [
    {"source": "أين المفتاح؟", "target": "Where is the key?", "source_language": "ar", "target_language": "en"},
    {"source": "แมวดำ", "target": "A black cat", "source_language": "th", "target_language": "en"},
    {"source": "Grüß Gott 🙂", "target": "Hello 🙂", "source_language": "de", "target_language": "en"},
]


@pytest.fixture
def read() -> list[str]:
    return []


def collator(model: Any, read: list[str], languages: dict[str, int] | None) -> CrossLingualDataCollator:
    def preprocess(texts: list[str], **kwargs: Any) -> Any:
        read.extend(texts)
        return model.preprocess(texts, **kwargs)

    return CrossLingualDataCollator(preprocess_fn=preprocess, languages=languages)


def test_languages_become_ids_and_are_never_read(make_model: Callable[..., Any], read: list[str]) -> None:
    model = make_model()
    batch = collator(model, read, LANGUAGES)(ROWS)
    assert batch["source_language"].tolist() == [0, 2, 3]
    assert batch["target_language"].tolist() == [1, 1, 1]
    assert batch["source_language"].dtype == torch.int64
    assert read == [row["source"] for row in ROWS] + [row["target"] for row in ROWS]
    assert not any("language_" in key for key in batch)
    alone = model.preprocess([row["source"] for row in ROWS])
    assert torch.equal(batch["source_input_ids"], alone["input_ids"])


def test_languages_are_dropped_for_a_loss_that_is_not_told(make_model: Callable[..., Any], read: list[str]) -> None:
    batch = collator(make_model(), read, None)(ROWS)
    assert not any("language" in key for key in batch)
    assert not set(read) & set(LANGUAGES)


def test_unknown_language(make_model: Callable[..., Any], read: list[str]) -> None:
    with pytest.raises(ValueError, match="the loss knows the languages ar, en: a row is in 'th'; add it"):
        collator(make_model(), read, {"ar": 0, "en": 1})(ROWS)


def test_a_language_column_without_its_text_is_text(make_model: Callable[..., Any], read: list[str]) -> None:
    """``body_language`` beside no ``body`` is a column like any other."""
    rows = [{"source": "Er nickt.", "body_language": "a nod"}]
    batch = collator(make_model(), read, LANGUAGES)(rows)
    assert {"source_input_ids", "body_language_input_ids"} <= batch.keys()


def test_empty_batch(make_model: Callable[..., Any], read: list[str]) -> None:
    assert collator(make_model(), read, LANGUAGES)([]) == {}


def test_the_loss_is_told_the_languages_of_its_rows(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """From the data set through the trainer: only the embeddings of languages that were rebuilt learn anything."""
    model = make_model()
    rtl = RepresentationTranslationLoss(model, layers=1, languages=list(LANGUAGES))
    args = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), max_steps=2, learning_rate=1e-2, save_strategy="no", report_to="none", use_cpu=True
    )
    run = CrossLingualTrainer(
        model=model, args=args, train_dataset=Dataset.from_list(ROWS), loss=TranslationRankingLoss(model) + rtl
    )
    run.train()
    moved = rtl.head.language_embeddings.weight.detach().abs().sum(dim=1) > 0
    assert moved.tolist() == [False, True, False, False]
