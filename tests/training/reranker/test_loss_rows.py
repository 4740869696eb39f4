"""Labelled pairs as each of the host's losses reads them."""

from __future__ import annotations

import pytest
from datasets import Dataset

from st_xling.data.reranking.pairs import labelled_dataset
from st_xling.training.reranker.loss_rows import loss_rows

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
    return labelled_dataset(queries, passages, labels, asked, shown)  # type: ignore[arg-type]


def test_pairs_are_taken_as_they_are() -> None:
    rows, left_out = loss_rows(pairs(), "pairs")
    assert rows.column_names == ["query", "passage", "label"] and len(rows) == 7 and left_out == 0


def test_lists_have_relevant_passages_first() -> None:
    rows, left_out = loss_rows(pairs(), "lists")
    assert rows.to_list() == [
        {"query": "who", "passages": ["她", "he", "them"], "labels": [1.0, 0.0, 0.0]},
        {"query": "谁", "passages": ["她", "I", "he"], "labels": [1.0, 1.0, 0.0]},
    ]
    assert left_out == 1


def test_positives_with_as_many_negatives_as_all_queries_have() -> None:
    rows, _ = loss_rows(pairs(), "positives")
    assert rows.to_list() == [
        {"query": "who", "positive": "她", "negative_1": "he"},
        {"query": "谁", "positive": "她", "negative_1": "he"},
        {"query": "谁", "positive": "I", "negative_1": "he"},
    ]


def test_triplets() -> None:
    rows, _ = loss_rows(pairs(), "triplets")
    assert rows.column_names == ["query", "positive", "negative", "label"]
    assert [tuple(row.values()) for row in rows][:2] == [("who", "她", "he", 1.0), ("who", "她", "them", 1.0)]
    assert len(rows) == 4


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
    with pytest.raises(ValueError, match="at least 2 labelled pairs: got 0"):
        loss_rows(pairs().select([]), "pairs")
    with pytest.raises(ValueError, match="labelled pairs lack passage_language"):
        loss_rows(pairs().remove_columns("passage_language"), "pairs")
    with pytest.raises(ValueError, match="needs a query with a relevant and another one: got 1 queries"):
        loss_rows(pairs([("who", "he", 1, "en", "en"), ("who", "she", 1, "en", "en")]), "lists")
