"""Labeled pairs as each of ST's losses reads them; in-batch negatives keep translations apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import MultipleNegativesRankingLoss

from st_xling.data.reranking.pairs import labeled_dataset, with_negatives
from st_xling.data.reranking.strategies import merged
from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.training.ranking_losses import loss_rows, meaning_keys
from st_xling.training.reranker import RankingTrainer
from tests.data.reranking.aligned_sentences import numbered
from tests.training.ranking_run import xpi_rows

ROWS = [  # query, passage, label, the two languages
    ("who", "he", 0, "en", "en"),
    ("who", "她", 1, "en", "zh"),
    ("who", "them", 0, "en", "en"),
    ("谁", "她", 1, "zh", "zh"),
    ("谁", "I", 1, "zh", "en"),
    ("谁", "he", 0, "zh", "en"),
    ("what", "it", 1, "en", "en"),  # nothing to compare with
]


def pairs(rows: list[tuple[str, str, int, str, str]] = ROWS) -> Dataset:
    queries, passages, labels, asked, shown = (list(column) for column in zip(*rows))
    return labeled_dataset(queries, passages, labels, asked, shown)  # type: ignore[arg-type]


def test_the_rows_of_each_form() -> None:
    """Relevant passages stand first; a query has as many negatives as that with the fewest."""
    rows, left_out = loss_rows(pairs(), "pairs")
    assert rows.column_names == ["query", "passage", "label"] and len(rows) == 7 and left_out == 0
    rows, left_out = loss_rows(pairs(), "lists")
    assert rows.to_list() == [
        {"query": "who", "passages": ["她", "he", "them"], "labels": [1.0, 0.0, 0.0]},
        {"query": "谁", "passages": ["她", "I", "he"], "labels": [1.0, 1.0, 0.0]},
    ]
    assert left_out == 1
    assert loss_rows(pairs(), "positives")[0].to_list() == [
        {"query": "who", "positive": "她", "negative_1": "he"},
        {"query": "谁", "positive": "她", "negative_1": "he"},
        {"query": "谁", "positive": "I", "negative_1": "he"},
    ]


def test_the_same_text_in_two_languages_is_two_queries() -> None:
    rows, _ = loss_rows(pairs([("Taxi", "a", 1, "de", "en"), ("Taxi", "b", 0, "de", "en")] * 2), "lists")
    assert len(rows) == 1 and rows[0]["passages"] == ["a", "b"]
    rows, left_out = loss_rows(
        pairs([("Taxi", "a", 1, "de", "en"), ("Taxi", "b", 0, "de", "en"), ("Taxi", "b", 0, "en", "en")]), "lists"
    )
    assert len(rows) == 1 and left_out == 1


def test_what_cannot_be_trained_on() -> None:
    with pytest.raises(ValueError, match=r"a label is 1 \(relevant\) or 0 \(not\): got 2"):
        loss_rows(pairs([("who", "he", 2, "en", "en")]), "pairs")
    with pytest.raises(ValueError, match="at least 2 labeled pairs: got 0"):
        loss_rows(pairs().select([]), "pairs")
    with pytest.raises(ValueError, match="labeled pairs lack passage_language"):
        loss_rows(pairs().remove_columns("passage_language"), "pairs")
    with pytest.raises(ValueError, match="needs a query with a relevant and another one: got 1 queries"):
        loss_rows(pairs([("who", "he", 1, "en", "en"), ("who", "she", 1, "en", "en")]), "lists")


def batches(rows: Any, keys: np.ndarray | None, folder: Path) -> list[list[int]]:
    model = tiny_cross_encoder(rows["query"], hidden_size=16, layers=1, vocabulary=200)
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=8,
        batch_sampler=ShuffledBatchSampler,  # type: ignore[arg-type]
        report_to="none",
    )
    loss = MultipleNegativesRankingLoss(model)
    trainer = RankingTrainer(model=model, args=arguments, train_dataset=rows, loss=loss, keys=keys)
    return [list(batch) for batch in trainer.get_train_dataloader().batch_sampler]


def test_no_translation_in_a_batch(tmp_path: Path) -> None:
    pairs = merged(with_negatives(numbered(40, "de", "en"), seed=1))[0]
    rows, _ = loss_rows(pairs, "positives")
    keys = meaning_keys(pairs, rows)
    assert keys is not None and keys.shape == (80, 3)
    assert meaning_keys(xpi_rows(), loss_rows(xpi_rows(), "positives")[0]) is None

    def met_twice(batch: list[int]) -> bool:  # "p7 de" and "p7 en" say the same
        said = [rows[row][name].split()[0] for row in batch for name in ("positive", "negative_1")]
        return len(set(said)) < len(said)

    assert any(map(met_twice, batches(rows, None, tmp_path))), "or the test says nothing"
    apart = batches(rows, keys, tmp_path)
    assert not any(map(met_twice, apart)) and sorted(row for batch in apart for row in batch) == list(range(80))
