"""Batches, a function of seed and epoch: balanced, of one pair, without duplicates; of data sets and of streams."""

import itertools
import logging
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from accelerate.data_loader import BatchSamplerShard, IterableDatasetShard
from datasets import Dataset, IterableDataset, concatenate_datasets
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from st_xling.data import load_pairs
from st_xling.data.batches import language_shares
from st_xling.data.samplers import LengthGroupedBatchSampler, ShuffledBatchSampler, mix_streams, stream_shares
from st_xling.data.text_cells import row_keys, text_lengths

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
    assert sorted(map(len, batches)) == [11] + [16] * 18
    sampler = kind(few, batch_size=16, drop_last=True)
    used = [frozenset(row for batch in epoch(sampler, number) for row in batch) for number in range(3)]
    assert len(sampler) == 18 and len(set(used)) == 3 and {len(rows) for rows in used} == {18 * 16}
    assert epoch(kind(data.select(range(3)), batch_size=16, drop_last=True)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_duplicates_are_there_and_are_kept_apart(kind: Any, data: Dataset) -> None:
    free, apart = (epoch(kind(data, batch_size=16, keep_duplicates_apart=asked)) for asked in (False, True))
    assert duplicates(data, free) > 3 and duplicates(data, apart) == 0
    assert sorted(row for batch in apart for row in batch) == list(range(384)) and {len(b) for b in apart} == {16}


@pytest.mark.parametrize(("kind", "apart"), list(zip(KINDS, [False, True])))
@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"alpha": 0.5}, {"alpha": 0.0}], ids=str)
def test_shares_of_an_epoch(kind: Any, apart: bool, options: dict[str, float], data: Dataset) -> None:
    sampler = kind(data, batch_size=16, keep_duplicates_apart=apart, **options)
    batches = epoch(sampler)
    assert len(batches) == len(sampler) == 24 and {len(batch) for batch in batches} == {16}
    expected = language_shares([*SIZES.values()], **options)
    rows_by_pair = languages(data, batches)
    # A few rows have no place for their text: others take it, perhaps of another language.
    for (source, _), share in zip(SIZES, expected):
        assert rows_by_pair[source] / 384 == pytest.approx(share, abs=0.02)


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
    large_batches = epoch(LengthGroupedBatchSampler(data, 16, True, **options))
    shards = []
    for rank in range(2):
        sampler = LengthGroupedBatchSampler(data, 8, True, processes=2, **options)
        shard = BatchSamplerShard(sampler, num_processes=2, process_index=rank, even_batches=False)
        shards.append(list(shard))
        assert len(shards[-1]) == len(shard)
    assert [first + second for first, second in zip(*shards)] == large_batches
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
    """Not in each of a hundred epochs, each with another number of rows."""
    data = Dataset.from_dict({"source": [f"s {n}" for n in range(40)], "target": ["Yes."] * 10 + list("abcdef" * 5)})
    sampler = ShuffledBatchSampler(data, batch_size=10)
    with caplog.at_level(logging.WARNING):
        batches = epoch(sampler)
        epoch(sampler, 1)
    assert duplicates(data, batches) == 0
    assert sum("share a text with more rows" in message for message in caplog.messages) == 1


def test_grouping_puts_like_lengths_together(data: Dataset) -> None:
    lengths = text_lengths(data)
    batches = [epoch(kind(data, batch_size=16)) for kind in KINDS]
    spread = [sum(max(lengths[row] for row in b) - min(lengths[row] for row in b) for b in made) for made in batches]
    assert spread[1] < 0.5 * spread[0]


def test_only_text_counts_as_length() -> None:
    rows = {
        "source": ["แมว", "", "e\u0301"],
        "target": ["cat", "x", "🙂🙂"],
        "source_language": ["th"] * 3,
        "label": [9] * 3,
    }
    assert text_lengths(Dataset.from_dict(rows)) == [6, 1, 4]


def test_labels_are_no_sentences() -> None:
    """Rows of one class were kept apart as if they repeated a text, in batches of as many rows as there are classes."""
    data = Dataset.from_dict({"text": ["a", "b", "c", "d"], "label": ["x", "x", "y", "y"]})
    batches = epoch(ShuffledBatchSampler(data, batch_size=4, valid_label_columns=["label"]))
    assert [sorted(batch) for batch in batches] == [[0, 1, 2, 3]]


def test_keys_of_rows_take_little_memory() -> None:
    """16 bytes of keys a row: an object for each text would be too much for corpora of a hundred million rows."""
    rows = 100_000
    data = Dataset.from_dict({"source": [str(row) for row in range(rows)], "target": ["x"] * rows})
    tracemalloc.start()
    keys = row_keys(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert keys.shape == (rows, 2) and len(set(keys[:, 0].tolist())) == rows and len(set(keys[:, 1].tolist())) == 1
    assert peak / rows < 60


SIZE = 16


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, IterableDataset]:
    folder = tmp_path_factory.mktemp("streams")
    loaded = {}
    for name, rows in (("de-en", 900), ("fr-en", 300), ("th-en", 40)):
        lines = [f"{name} {'x' * (n % 40)} {n}\tEnglish {'y' * (n % 30)} {n}\n" for n in range(rows)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        loaded[name] = load_pairs(folder / f"{name}.tsv", stream=True)
    return loaded


def batches(mixed: IterableDataset, count: int) -> list[list[dict[str, str]]]:
    rows = list(mixed.take(count * SIZE))
    return [rows[start : start + SIZE] for start in range(0, len(rows), SIZE)]


def shares(made: list[list[dict[str, str]]]) -> dict[str, float]:
    counts = Counter(f"{row['source_language']}-{row['target_language']}" for batch in made for row in batch)
    return {name: count / counts.total() for name, count in counts.items()}


COMBINATIONS = list(itertools.product([False, True], [False, True], [False, True]))


@pytest.mark.parametrize(("one_pair", "apart", "grouped"), COMBINATIONS)
def test_all_combinations(one_pair: bool, apart: bool, grouped: bool, streams: dict[str, IterableDataset]) -> None:
    chosen: dict[str, Any] = {"one_pair": one_pair, "keep_duplicates_apart": apart, "group_by_length": grouped}

    def made() -> IterableDataset:
        return mix_streams(streams, batch_rows=SIZE, seed=3, alpha=0.5, buffer_rows=1, **chosen)

    drawn = batches(made(), 120)
    assert len(drawn) == 120 and {len(batch) for batch in drawn} == {SIZE}
    texts = [[row[side] for row in batch for side in ("source", "target")] for batch in drawn]
    repeated = sum(len(batch) - len(set(batch)) for batch in texts)
    assert (repeated == 0) == apart
    pairs = [len({row["source_language"] for row in batch}) for batch in drawn]
    assert (max(pairs) == 1) == one_pair
    expected = stream_shares(streams, alpha=0.5)
    assert expected["de-en"] / expected["fr-en"] == pytest.approx(3**0.5)
    for name, share in shares(drawn).items():
        assert share == pytest.approx(expected[name], abs=0.12)  # 120 draws
    spread = sum(max(lengths) - min(lengths) for lengths in ([len(row["source"]) for row in b] for b in drawn)) / 120
    assert (spread < 25) == grouped
    # A resumed run skips what it has seen; and another seed gives other batches.
    assert list(made().skip(70 * SIZE).take(SIZE)) == drawn[70]
    assert batches(mix_streams(streams, batch_rows=SIZE, seed=4, alpha=0.5, buffer_rows=1, **chosen), 2) != drawn[:2]


@pytest.mark.parametrize("buffer_rows", [900, 50_000])
def test_every_row_of_a_pass_once(buffer_rows: int, streams: dict[str, IterableDataset]) -> None:
    """A buffer as large as the data, or larger, gives each row once before any comes again, in another order then."""
    mixed = mix_streams({"x": streams["de-en"]}, batch_rows=4, buffer_rows=buffer_rows)
    sources = [row["source"] for row in mixed.take(1760)]
    passes = sources[:900], sources[900:]
    assert [len(set(one)) for one in passes] == [900, 860]
    assert sources[:860] != sources[900:]


def test_processes_read_one_stream_and_take_their_parts(streams: dict[str, IterableDataset]) -> None:
    """As accelerate does it where batches are not dispatched: two of 8 are one of 16."""
    mixed = mix_streams(streams, batch_rows=SIZE)
    shards = [IterableDatasetShard(mixed, batch_size=8, num_processes=2, process_index=rank) for rank in range(2)]
    ranks = [list(itertools.islice(shard, 80)) for shard in shards]
    together = [row for start in range(0, 80, 8) for rank in ranks for row in rank[start : start + 8]]
    assert together == list(mixed.take(160))


def test_shares(streams: dict[str, IterableDataset], caplog: pytest.LogCaptureFixture) -> None:
    assert stream_shares(streams) == pytest.approx({"de-en": 900 / 1240, "fr-en": 300 / 1240, "th-en": 40 / 1240})
    assert [*stream_shares(streams, alpha=0).values()] == pytest.approx([1 / 3] * 3)
    unknown = {**streams, "x": Dataset.from_dict({"source": ["a"]}).to_iterable_dataset()}
    with caplog.at_level(logging.WARNING):
        assert set(stream_shares(unknown).values()) == {0.25}
    assert "x has no number of rows" in caplog.text
    assert stream_shares(unknown, alpha=0)["x"] == 0.25
    with pytest.raises(ValueError, match="balancing streams needs their sizes: x has none; use alpha=0"):
        stream_shares(unknown, alpha=0.5)


def test_too_few_texts_for_a_batch_and_none_at_all(tmp_path: Any) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\nc\td\n" * 50, encoding="utf-8")
    mixed = mix_streams({"de-en": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4)
    with pytest.raises(ValueError, match="too few distinct texts for a batch of 4; lower batch_size"):
        next(iter(mixed))
    free = mix_streams({"x": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4, keep_duplicates_apart=False)
    assert len(list(free.take(8))) == 8
    nothing = load_pairs(tmp_path / "x.tsv", stream=True).filter(lambda row: row["source"] == "z")
    with pytest.raises(ValueError, match="data set 'de-en' is empty"):
        next(iter(mix_streams({"de-en": nothing}, batch_rows=4)))
    (tmp_path / "x.tsv").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.tsv: the file is empty"):
        next(iter(mix_streams({"de-en": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4)))
