"""Batches are a function of seed and epoch: every row once, other batches each epoch, the same when resumed."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset, Features, Value, concatenate_datasets

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler, text_lengths
from st_xling.models import train_tokenizer

KINDS = [ShuffledBatchSampler, LengthGroupedBatchSampler]


@pytest.fixture(scope="module")
def data() -> Dataset:
    parts = [parallel_phrases(language, "en", size=100) for language in ("de", "vi", "zh")]
    columns = ["source", "target", "source_language", "target_language"]
    return concatenate_datasets([part.select_columns(columns) for part in parts]).select(range(299))


def epoch(sampler: Any, number: int) -> list[list[int]]:
    sampler.set_epoch(number)
    return list(sampler)


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_once_an_epoch(kind: Any, data: Dataset) -> None:
    batches = epoch(kind(data, batch_size=16), 0)
    assert sorted(row for batch in batches for row in batch) == list(range(299))
    assert len(batches) == len(kind(data, batch_size=16)) == 19
    assert sorted(map(len, batches)) == [11] + [16] * 18


@pytest.mark.parametrize("kind", KINDS)
def test_drop_last_leaves_out_other_rows_each_epoch(kind: Any, data: Dataset) -> None:
    sampler = kind(data, batch_size=16, drop_last=True)
    left_out = []
    for number in range(3):
        batches = epoch(sampler, number)
        assert len(batches) == len(sampler) == 18 and {len(batch) for batch in batches} == {16}
        rows = [row for batch in batches for row in batch]
        assert len(set(rows)) == 288
        left_out.append(frozenset(range(299)) - set(rows))
    assert len(set(left_out)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_and_seeds_differ(kind: Any, data: Dataset) -> None:
    sampler = kind(data, batch_size=16, seed=5)
    drawn = [tuple(sorted(map(tuple, epoch(sampler, number)))) for number in range(4)]
    assert len(set(drawn)) == 4  # other batches, not the same ones in another order
    assert epoch(kind(data, batch_size=16, seed=6), 0) != epoch(sampler, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_epoch_is_the_undisturbed_one(kind: Any, data: Dataset) -> None:
    undisturbed = kind(data, batch_size=16, seed=5)
    history = [epoch(undisturbed, number) for number in range(4)]
    resumed = kind(data, batch_size=16, seed=5)
    assert epoch(resumed, 3) == history[3]
    assert list(resumed) == history[3]  # asking twice moves nothing on


def padding(batches: list[list[int]], lengths: list[int]) -> int:
    return sum(
        max(lengths[row] for row in batch) * len(batch) - sum(lengths[row] for row in batch) for batch in batches
    )


def test_grouping_saves_padding(data: Dataset) -> None:
    """Measured in the tokens of both sides, not in the characters that the sampler sorts by."""
    tokenizer = train_tokenizer([*data["source"], *data["target"]], vocabulary=600)
    sides = [[len(ids) for ids in tokenizer(data[side][:])["input_ids"]] for side in ("source", "target")]
    shuffled, grouped = (epoch(kind(data, batch_size=16), 0) for kind in KINDS)
    wasted = [sum(padding(batches, lengths) for lengths in sides) for batches in (shuffled, grouped)]
    assert wasted[1] < 0.75 * wasted[0]


def test_only_text_counts_as_length() -> None:
    features = Features({
        "source": Value("string"),
        "target": Value("large_string"),
        "source_language": Value("string"),
        "label": Value("int64"),
    })  # fmt: skip
    rows = {
        "source": ["แมว", "", "e\u0301"],
        "target": ["cat", "x", "🙂🙂"],
        "source_language": ["th"] * 3,
        "label": [9, 9, 9],
    }
    dataset = Dataset.from_dict(rows, features=features)
    assert text_lengths(dataset) == [6, 1, 4]
    dataset.set_transform(lambda batch: {"source": [None] * len(batch["source"])})
    assert text_lengths(dataset) == [6, 1, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_rows_than_a_batch(kind: Any, data: Dataset) -> None:
    assert [sorted(batch) for batch in epoch(kind(data.select(range(3)), batch_size=16), 0)] == [[0, 1, 2]]
    assert epoch(kind(data.select(range(3)), batch_size=16, drop_last=True), 0) == []
