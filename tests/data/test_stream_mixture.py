"""One endless stream whose rows are batches: balanced, of one pair, without duplicates, the same each time."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from typing import Any

import pytest
from accelerate.data_loader import IterableDatasetShard
from datasets import Dataset, IterableDataset

from st_xling.data import load_pairs
from st_xling.data.samplers import mix_streams, stream_shares

SIZE = 16


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[str, IterableDataset]:
    folder = tmp_path_factory.mktemp("streams")
    found = {}
    for name, rows in (("de-en", 900), ("fr-en", 300), ("th-en", 40)):
        lines = [f"{name} {'x' * (n % 40)} {n}\tEnglish {'y' * (n % 30)} {n}\n" for n in range(rows)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        found[name] = load_pairs(folder / f"{name}.tsv", stream=True)
    return found


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

    found = batches(made(), 120)
    assert len(found) == 120 and {len(batch) for batch in found} == {SIZE}
    texts = [[row[side] for row in batch for side in ("source", "target")] for batch in found]
    repeated = sum(len(batch) - len(set(batch)) for batch in texts)
    assert (repeated == 0) == apart
    pairs = [len({row["source_language"] for row in batch}) for batch in found]
    assert (max(pairs) == 1) == one_pair
    expected = stream_shares(streams, alpha=0.5)
    assert expected["de-en"] / expected["fr-en"] == pytest.approx(3**0.5)
    for name, share in shares(found).items():
        assert share == pytest.approx(expected[name], abs=0.12)  # 120 draws
    spread = sum(max(lengths) - min(lengths) for lengths in ([len(row["source"]) for row in b] for b in found)) / 120
    assert (spread < 25) == grouped
    # A resumed run skips what it has seen; and another seed gives other batches.
    assert list(made().skip(70 * SIZE).take(SIZE)) == found[70]
    assert batches(mix_streams(streams, batch_rows=SIZE, seed=4, alpha=0.5, buffer_rows=1, **chosen), 2) != found[:2]


def test_processes_read_one_stream_and_take_their_parts(streams: dict[str, IterableDataset]) -> None:
    """As accelerate does it where batches are not dispatched: two of 8 are one of 16."""
    mixed = mix_streams(streams, batch_rows=SIZE)
    ranks = [
        list(itertools.islice(IterableDatasetShard(mixed, batch_size=8, num_processes=2, process_index=rank), 80))
        for rank in range(2)
    ]
    together = [row for start in range(0, 80, 8) for rank in ranks for row in rank[start : start + 8]]
    assert together == list(mixed.take(160))


def test_every_row_of_a_pass_once(streams: dict[str, IterableDataset]) -> None:
    """A buffer as large as the data gives each row once before any comes again."""
    rows = [
        row
        for batch in batches(mix_streams({"x": streams["de-en"]}, batch_rows=4, buffer_rows=900), 110)
        for row in batch
    ]
    times = [Counter(row["source"] for row in part) for part in (rows[:900], rows[900:1760])]
    assert len(times[0]) == 900 and set(times[0].values()) == {1}
    assert len(times[1]) == 860 and set(times[1].values()) == {1}
    assert [row["source"] for row in rows[:860]] != [row["source"] for row in rows[900:]]


def test_shares(streams: dict[str, IterableDataset], caplog: pytest.LogCaptureFixture) -> None:
    assert stream_shares(streams) == pytest.approx({"de-en": 900 / 1240, "fr-en": 300 / 1240, "th-en": 40 / 1240})
    assert [*stream_shares(streams, alpha=0).values()] == pytest.approx([1 / 3] * 3)
    unknown = {**streams, "x": Dataset.from_dict({"source": ["a"]}).to_iterable_dataset()}
    with caplog.at_level(logging.WARNING):
        assert set(stream_shares(unknown).values()) == {0.25}
    assert "x does not say how many rows it has: all data sets get the same share" in caplog.text
    assert stream_shares(unknown, alpha=0)["x"] == 0.25
    with pytest.raises(ValueError, match="balancing streams needs their sizes: x has none; use alpha=0"):
        stream_shares(unknown, alpha=0.5)
    with pytest.raises(ValueError, match="by an exponent or by a temperature"):
        stream_shares(streams, alpha=0.5, temperature=2)


def test_too_few_texts_for_a_batch_and_none_at_all(tmp_path: Any) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\nc\td\n" * 50, encoding="utf-8")
    mixed = mix_streams({"de-en": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4)
    with pytest.raises(ValueError, match="too few distinct texts for a batch of 4; lower batch_size"):
        next(iter(mixed))
    free = mix_streams({"x": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4, keep_duplicates_apart=False)
    assert len(list(free.take(8))) == 8
    (tmp_path / "x.tsv").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="data set 'de-en' is empty"):
        next(iter(mix_streams({"de-en": load_pairs(tmp_path / "x.tsv", stream=True)}, batch_rows=4)))
