"""A search in tasks: the result of one, whatever order they end in and whatever stops them."""

import errno
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from st_xling.mining import find_neighbors, write_store
from st_xling.mining.search import find
from st_xling.mining.search.find import EXACT_ROWS, choose_method, exact_neighbors, run_here, tasks_of
from tests.mining.search.test_approximate import assert_equal
from tests.mining.search.test_exact import embeddings


@pytest.mark.parametrize(
    ("sources", "targets", "shard_rows"), [(10, 4, 3), (9, 9, 2), (11, 30, 5), (4, 4, 4), (7, 1, 99)]
)
def test_tasks_hold_every_pair_once_and_never_too_few_rows(sources: int, targets: int, shard_rows: int) -> None:
    tasks = tasks_of(sources, targets, k=1, method="exact", shard_rows=shard_rows)
    pairs = []
    for source, target in tasks:
        pairs += product(range(*source), range(*target))
    assert sorted(pairs) == list(product(range(sources), range(targets)))
    assert all(
        shard_rows / 2 <= stop - start <= shard_rows for task in tasks for start, stop in task if shard_rows < 99
    )


def test_methods_and_shards_by_default_depend_on_sizes_alone() -> None:
    for rows, chosen in ((100_000, "exact"), (400_000, "approximate")):
        assert choose_method("auto", rows, rows, 768) == chosen
    sizes = {"approximate": {2**20: 1, 2**20 + 1: 4}, "exact": {EXACT_ROWS: 1, 100_000: 16, 10**7: 64 * 64}}
    for method, tasks in sizes.items():
        for rows, count in tasks.items():
            assert len(tasks_of(rows, rows, k=4, method=method)) == count
    with pytest.raises(ValueError, match=r"shard_rows must be at least 2 \* k = 8: got 7"):
        tasks_of(100, 100, k=4, method="exact", shard_rows=7)


@pytest.mark.parametrize("stored", [False, True])
def test_parts_merge_to_the_whole_even_under_ties(
    stored: bool, tmp_path: Any, logged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many duplicates, tasks in any order, rows of files that are not read whole."""
    random = np.random.default_rng(0)
    source, target = [random.integers(-1, 2, (rows, 3)).astype(np.float32) + 0.5 for rows in (90, 41)]
    both = [source, target]
    if stored:
        both = [write_store(tmp_path / str(len(side)), side) for side in both]

    def backwards(*arguments: Any) -> Any:
        return reversed(list(run_here(*arguments)))

    expected = find_neighbors(source, target)
    monkeypatch.setattr(find, "run_here", backwards)
    assert_equal(find_neighbors(*both, shard_rows=13, state_folder=tmp_path / "state"), expected)
    assert_equal(find_neighbors(*both, method="faiss:Flat", shard_rows=13, progress=True), expected)
    assert "faiss:Flat: recall of exact neighbors: source side 1.0000, target side 1.0000" in logged()


def test_a_killed_search_loses_the_running_task_only(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after each number of tasks, and before, while and after a state is saved."""
    source = embeddings(70, 0, 8)
    target = embeddings(50, 1, 8)
    expected = find_neighbors(source, target)
    ran = []

    def killed(*arguments: Any) -> Any:
        yield from islice(run_here(*arguments), most)
        raise KeyboardInterrupt

    def counted(*both: Any, **options: Any) -> Any:
        ran.append(both)
        return exact_neighbors(*both, **options)

    for most in range(12):
        options: dict[str, Any] = {"shard_rows": 20, "state_folder": tmp_path / str(most)}
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(find, "run_here", killed)
            find_neighbors(source, target, **options)
        ran.clear()
        with monkeypatch.context() as patch:
            patch.setattr(find, "exact_neighbors", counted)
            assert_equal(find_neighbors(source, target, **options), expected)
        assert len(ran) == 12 - most
    with pytest.raises(ValueError, match="search was exact, .* is now approximate, "):
        find_neighbors(source, target, method="approximate", **options)


def test_what_is_interrupted_in_a_merge_is_not_merged_twice(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the two sides of a task: its candidates are saved, and found again when it runs again."""
    source = embeddings(60, 1, 8)
    target = embeddings(50, 2, 8)
    expected = find_neighbors(source, target)
    merged = find.distinct_best
    for last in range(1, 12):
        options: dict[str, Any] = {"method": "faiss:Flat", "shard_rows": 20, "state_folder": tmp_path / str(last)}
        calls = iter(range(last))

        def stop(keys: Any, k: int, calls: Any = calls) -> Any:
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return merged(keys, k)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(find, "distinct_best", stop)
            find_neighbors(source, target, **options)
        assert_equal(find_neighbors(source, target, **options), expected)


def test_a_full_disk_in_a_task_names_it_and_keeps_the_others(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = embeddings(70, 0, 8)
    target = embeddings(50, 1, 8)
    calls: list[object] = []

    def full(*both: Any, **options: Any) -> Any:
        calls.append(both)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device: index could not be written")
        return find_neighbors(*both[:2], k=4)

    monkeypatch.setattr(find, "approximate_neighbors", full)
    search = partial(find_neighbors, source, target, method="approximate", shard_rows=20, state_folder=tmp_path)
    with pytest.raises(OSError, match="shard of sources 0 to 16 and targets 33 to 49: No space left.*index could"):
        search()
    assert_equal(search(), find_neighbors(source, target))
    assert len(calls) == 1 + 12  # twelve tasks, one of them twice
