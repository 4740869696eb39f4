"""Batches, a function of seed and epoch: balanced, of one pair, without duplicates; in several processes, resumed."""

from __future__ import annotations

import itertools
import logging
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from accelerate.data_loader import BatchSamplerShard
from datasets import Dataset, Features, Value, concatenate_datasets
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from st_xling.data.batches import language_shares
from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler
from st_xling.data.text_columns import row_keys, text_lengths

KINDS = [ShuffledBatchSampler, LengthGroupedBatchSampler]
SIZES = {("de", "en"): 300, ("zh", "en"): 60, ("th", "en"): 24}
"""The same English sentences for all languages, as a corpus with a pivot has."""


def corpus(sizes: dict[tuple[str, str], int], *, shared: bool = True) -> Dataset:
    parts = []
    for pair, rows in sizes.items():
        mark = "" if shared else f" {pair[0]}"
        columns = {
            "source": [f"{pair[0]} {'x' * (n % 37)} {n}" for n in range(rows)],
            "target": [f"en {'y' * (n % 29)} {n}{mark}" for n in range(rows)],
            "source_language": [pair[0]] * rows,
            "target_language": [pair[1]] * rows,
        }
        parts.append(Dataset.from_dict(columns))
    return concatenate_datasets(parts)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return corpus(SIZES)


def epoch(sampler: Any, number: int = 0) -> list[list[int]]:
    sampler.set_epoch(number)
    return list(sampler)


def languages(data: Dataset, batches: list[list[int]]) -> Counter[str]:
    codes = data["source_language"][:]
    return Counter(codes[row] for batch in batches for row in batch)


def one_language(data: Dataset, batches: list[list[int]]) -> bool:
    codes = data["source_language"][:]
    return all(len({codes[row] for row in batch}) == 1 for batch in batches)


def duplicates(data: Dataset, batches: list[list[int]]) -> int:
    sides = list(zip(data["source"][:], data["target"][:]))
    texts = [[text for row in batch for text in sides[row]] for batch in batches]
    return sum(len(batch) - len(set(batch)) for batch in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_once_or_other_ones_left_out(kind: Any, data: Dataset) -> None:
    few = data.select(range(299))
    batches = epoch(kind(few, batch_size=16))
    assert sorted(row for batch in batches for row in batch) == list(range(299))
    assert len(batches) == len(kind(few, batch_size=16)) == 19
    assert sorted(map(len, batches)) == [11] + [16] * 18
    sampler, left_out = kind(few, batch_size=16, drop_last=True), set()
    for number in range(3):
        batches = epoch(sampler, number)
        assert len(batches) == len(sampler) == 18 and {len(batch) for batch in batches} == {16}
        left_out.add(frozenset(range(299)) - {row for batch in batches for row in batch})
    assert len(left_out) == 3 and {len(rows) for rows in left_out} == {11}
    assert [sorted(batch) for batch in epoch(kind(data.select(range(3)), batch_size=16))] == [[0, 1, 2]]
    assert epoch(kind(data.select(range(3)), batch_size=16, drop_last=True)) == []


def test_grouping_puts_like_lengths_together(data: Dataset) -> None:
    lengths = text_lengths(data)
    batches = [epoch(kind(data, batch_size=16)) for kind in KINDS]
    spread = [sum(max(lengths[row] for row in b) - min(lengths[row] for row in b) for b in made) for made in batches]
    assert spread[1] < 0.5 * spread[0]


def test_only_text_counts_as_length() -> None:
    kinds = {"source": "string", "target": "large_string", "source_language": "string", "label": "int64"}
    rows = {
        "source": ["แมว", "", "e\u0301"],
        "target": ["cat", "x", "🙂🙂"],
        "source_language": ["th"] * 3,
        "label": [9, 9, 9],
    }
    dataset = Dataset.from_dict(rows, features=Features({name: Value(kind) for name, kind in kinds.items()}))
    assert text_lengths(dataset) == [6, 1, 4]
    dataset.set_transform(lambda batch: {"source": [None] * len(batch["source"])})
    assert text_lengths(dataset) == [6, 1, 4]


def test_keys_of_rows_take_little_memory() -> None:
    rows = 100_000
    data = Dataset.from_dict({"source": [str(row) for row in range(rows)], "target": ["x"] * rows})
    tracemalloc.start()
    keys = row_keys(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert keys.shape == (rows, 2) and len(set(keys[:, 0].tolist())) == rows and len(set(keys[:, 1].tolist())) == 1
    assert peak / rows < 60  # 16 of them the keys


@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_are_there_and_are_kept_apart(kind: Any, data: Dataset) -> None:
    free, apart = (epoch(kind(data, batch_size=16, keep_duplicates_apart=asked)) for asked in (False, True))
    assert duplicates(data, free) > 3 and duplicates(data, apart) == 0
    assert sorted(row for batch in apart for row in batch) == list(range(384)) and {len(b) for b in apart} == {16}


@pytest.mark.parametrize(("kind", "apart"), list(zip(KINDS, [False, True])))
@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"alpha": 0.5}, {"alpha": 0.0}, {"temperature": 4.0}], ids=str)
def test_shares_of_an_epoch(kind: Any, apart: bool, options: dict[str, float], data: Dataset) -> None:
    sampler = kind(data, batch_size=16, keep_duplicates_apart=apart, **options)
    batches = epoch(sampler)
    assert len(batches) == len(sampler) == 24 and {len(batch) for batch in batches} == {16}
    expected = language_shares([*SIZES.values()], **options)
    found = languages(data, batches)
    # A few rows have no place for their text: others take it, perhaps of another language.
    for (source, _), share in zip(SIZES, expected):
        assert found[source] / 384 == pytest.approx(share, abs=0.02)


def test_a_pair_smaller_than_a_batch_has_a_short_one(data: Dataset) -> None:
    sampler = ShuffledBatchSampler(data, batch_size=32, drop_last=True, one_pair=True)
    batches = epoch(sampler)
    assert len(batches) == len(sampler) == 9 + 1 + 1
    assert sorted(map(len, batches)) == [24] + [32] * 10
    shared = ShuffledBatchSampler(data, batch_size=16, drop_last=True, one_pair=True, processes=2)
    batches = epoch(shared)
    assert len(batches) == len(shared) == 22
    assert sorted(map(len, batches)) == [12] * 2 + [16] * 20
    assert [len(batch) for batch in batches[-2:]] == [12, 12]  # short ones last, of one size for all processes
    few = data.select([*range(30), 383])
    with pytest.raises(ValueError, match=r"a row of it for each of 2 processes: got th-en \(1\); mix the batches"):
        ShuffledBatchSampler(few, batch_size=4, one_pair=True, processes=2)


COMBINATIONS = list(itertools.product([None, 0.4], [False, True], [False, True]))


@pytest.mark.parametrize(("alpha", "one_pair", "apart"), COMBINATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_epoch_is_the_undisturbed_one(
    kind: Any, alpha: float | None, one_pair: bool, apart: bool, data: Dataset
) -> None:
    def made() -> Any:
        return kind(data, 16, True, seed=5, alpha=alpha, one_pair=one_pair, keep_duplicates_apart=apart)

    undisturbed = made()
    history = [epoch(undisturbed, number) for number in range(3)]
    assert epoch(made(), 2) == history[2]
    assert len({tuple(sorted(map(tuple, batches))) for batches in history}) == 3
    assert epoch(kind(data, 16, True, seed=6, alpha=alpha, one_pair=one_pair)) != history[0]


@pytest.mark.parametrize(("alpha", "one_pair", "apart"), COMBINATIONS)
def test_processes_share_one_large_batch(alpha: float | None, one_pair: bool, apart: bool, data: Dataset) -> None:
    """As accelerate deals them out: what two processes see in a step is one batch of twice the size."""
    options = {"alpha": alpha, "one_pair": one_pair, "keep_duplicates_apart": apart}
    whole = epoch(LengthGroupedBatchSampler(data, 16, True, **options))
    shards = []
    for rank in range(2):
        sampler = LengthGroupedBatchSampler(data, 8, True, processes=2, **options)
        shard = BatchSamplerShard(sampler, num_processes=2, process_index=rank, even_batches=False)
        shards.append(list(shard))
        assert len(shards[-1]) == len(shard)
    assert [first + second for first, second in zip(*shards)] == whole
    assert {len(batch) for batch in shards[0] + shards[1]} == {8}


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    batch=st.integers(1, 20),
    alpha=st.sampled_from([None, 0.0, 0.3, 1.0]),
    one_pair=st.booleans(),
    drop=st.booleans(),
    processes=st.integers(1, 3),
    number=st.integers(0, 3),
)
def test_properties(
    sizes: list[int], batch: int, alpha: float | None, one_pair: bool, drop: bool, processes: int, number: int
) -> None:
    data = corpus({(f"l{place}", "en"): size for place, size in enumerate(sizes)})
    chosen = {"alpha": alpha, "one_pair": one_pair, "processes": processes}
    assume(not one_pair or min(sizes) > 8 or processes == 1)
    sampler = LengthGroupedBatchSampler(data, batch, drop, **chosen)
    batches = epoch(sampler, number)
    if processes == 1:
        assert len(batches) == len(sampler)
    assert len(batches) <= len(sampler) and len(batches) % processes == 0
    assert all(1 <= len(rows) <= batch for rows in batches)
    steps = [batches[start : start + processes] for start in range(0, len(batches), processes)]
    assert all(len({len(rows) for rows in step}) == 1 for step in steps)
    together = [[row for rows in step for row in rows] for step in steps]
    assert duplicates(data, together) == 0
    if one_pair:
        assert one_language(data, together)


def test_a_frequent_text_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    data = Dataset.from_dict({"source": [f"s {n}" for n in range(40)], "target": ["Yes."] * 10 + list("abcdef" * 5)})
    sampler = ShuffledBatchSampler(data, batch_size=10)
    with caplog.at_level(logging.WARNING):
        batches = epoch(sampler)
        epoch(sampler, 1)
    assert duplicates(data, batches) == 0
    assert len([record for record in caplog.records if "share a text with more rows" in record.message]) == 1


@pytest.mark.parametrize("options", [{"alpha": 0.5}, {"one_pair": True}])
def test_languages_must_be_named(options: dict[str, Any]) -> None:
    data = Dataset.from_dict({"source": ["a", "b"], "target": ["c", "d"]})
    with pytest.raises(ValueError, match="need the columns source_language and target_language"):
        ShuffledBatchSampler(data, batch_size=2, **options)
    assert len(epoch(ShuffledBatchSampler(data, batch_size=2))) == 1  # the rest needs no languages


def test_labels_are_no_sentences() -> None:
    data = Dataset.from_dict({"text": ["a", "b", "c", "d"], "label": ["x", "x", "y", "y"]})
    batches = epoch(ShuffledBatchSampler(data, batch_size=4, valid_label_columns=["label"]))
    assert [sorted(batch) for batch in batches] == [[0, 1, 2, 3]]
