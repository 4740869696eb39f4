"""Approximate neighbors: exact in what an index proposes, complete in number, and near enough in what they find."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import find_neighbors, mine
from st_xling.mining.search import approximate
from st_xling.mining.search.approximate import CandidateIndex, approximate_neighbors, default_factory, measure_recall
from tests.mining.search.test_exact import all_cosines, embeddings, small_integers


def clustered(rows, seed, dim=24, centers=40):
    """Translations near each other, in topics, either side moved by an offset of its own as languages are."""
    shared = np.random.default_rng(7)
    topics = shared.standard_normal((centers, dim))
    meaning = topics[shared.integers(0, centers, rows)] + 0.5 * shared.standard_normal((rows, dim))
    of_language = np.random.default_rng(seed)
    noise = 0.1 * of_language.standard_normal((rows, dim))
    return (meaning + noise + of_language.standard_normal(dim)).astype(np.float32)


def assert_equal(neighbors, expected):
    for side, expected_side in zip(neighbors, expected):
        np.testing.assert_allclose(side.similarities, expected_side.similarities, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(side.indices, expected_side.indices)


def assert_exact_where_found(neighbors, source, target):
    """Every score is the exact cosine of its pair; each list is of different rows, best first, lowest index first."""
    for side, queries, corpus in zip(neighbors, (source, target), (target, source)):
        cosines = all_cosines(queries, corpus)
        assert side.indices.min() >= 0 and side.indices.max() < len(corpus)
        expected = np.take_along_axis(cosines, side.indices, axis=1)
        np.testing.assert_allclose(side.similarities, expected, rtol=0, atol=1e-6)
        for values, indices in zip(side.similarities.tolist(), side.indices.tolist()):
            keys = [(-value, index) for value, index in zip(values, indices)]
            assert keys == sorted(set(keys))


def recalls(neighbors, exact):
    """Shares of the exact neighbors that were found, of both sides."""
    shares = []
    for side, exact_side in zip(neighbors, exact):
        is_found = (exact_side.indices[:, :, None] == side.indices[:, None]).any(2)
        shares.append(np.mean(is_found))
    return shares


# Every kind of index that FAISS can make for few vectors: of the vectors themselves, and lossy ones.
INDEXES = (
    *("Flat", "IVF3,Flat?nprobe=1", "IVF3,Flat?nprobe=3", "IVF3_HNSW4,SQ8", "SQ4", "HNSW4?efSearch=4"),
    *("IVF3,PQ3x4fs", "PCA2,Flat", "RaBitQ", "PQ1x4fs,RFlat", "IVF3,Flat?nprobe=2,candidates=1"),
)


def test_finds_nearly_all_and_measures_how_many():
    source = clustered(3000, 1)
    target = clustered(2600, 2)
    exact = find_neighbors(source, target)
    for factory, least, most in (("IVF40,SQ8?nprobe=24", 0.99, 1), ("IVF100,Flat?nprobe=1", 0.5, 0.97)):
        neighbors = approximate_neighbors(source, target, factory=factory)
        assert least <= min(recalls(neighbors, exact)) and max(recalls(neighbors, exact)) <= most
        assert measure_recall(source, target, neighbors) == pytest.approx(recalls(neighbors, exact), abs=0.05)
        assert_exact_where_found(neighbors, source, target)


@settings(max_examples=30, deadline=None)
@given(small_integers(), small_integers(), st.integers(1, 4), st.sampled_from(INDEXES))
def test_every_index_gives_true_cosines_without_gaps(source, target, k, factory):
    """Also under ties, where lists are cut off among equals; one that compares all vectors is exact."""
    neighbors, again = (approximate_neighbors(source, target, k=k, factory=factory) for _ in range(2))
    assert_exact_where_found(neighbors, source, target)
    assert_equal(again, neighbors)
    if factory in ("Flat", "IVF3,Flat?nprobe=3"):
        assert_equal(neighbors, find_neighbors(source, target, k=k))
        assert measure_recall(source, target, neighbors) == (1.0, 1.0)


@pytest.mark.parametrize("distinct", [1, 3])
@pytest.mark.parametrize("factory", [None, "Flat", "IVF8,PQ8x4fs", "HNSW8"])
def test_of_many_duplicates_the_first_are_found(distinct, factory):
    """All sentences equal, or nearly all: products cannot choose, indices must."""
    rows = embeddings(distinct, 3, 64)
    source = np.tile(rows, (1500 // distinct, 1))
    target = np.tile(rows, (1200 // distinct, 1))
    neighbors = approximate_neighbors(source, target, factory=factory)
    assert_equal(neighbors, find_neighbors(source, target))


def test_an_index_of_more_cells_than_rows():
    """A command that was written for a large corpus, tried on a small one."""
    source = embeddings(90, 0)
    target = embeddings(60, 1)
    neighbors = approximate_neighbors(source, target, factory="IVF64,Flat?nprobe=64")
    assert_equal(neighbors, find_neighbors(source, target))
    assert_exact_where_found(approximate_neighbors(source, target, factory="IVF64,Flat"), source, target)


def test_threads_memory_maps_and_small_memory_change_nothing(tmp_path, monkeypatch):
    """With the default index, which suits the vectors."""
    monkeypatch.setattr(approximate, "LEAST_CODED", 500)
    assert (default_factory(499, 6), default_factory(1500, 6)) == ("Flat", "IVF8,PQ3x4fs")
    source = clustered(3000, 1, dim=64)
    target = clustered(2600, 2, dim=64)
    maps = []
    for name, side in (("source", source), ("target", target)):
        np.save(tmp_path / f"{name}.npy", side)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    expected = approximate_neighbors(source, target)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    neighbors = approximate_neighbors(*map(torch.from_numpy, (source, target)))
    torch.set_num_threads(threads)
    assert_equal(neighbors, expected)
    assert_equal(approximate_neighbors(*maps, memory_mib=1), expected)


def test_an_index_is_kept_for_its_vectors_only(tmp_path, monkeypatch, caplog):
    source = clustered(600, 1)
    target = clustered(500, 2)
    folder = tmp_path / "deep" / "folder"
    options = {"factory": "IVF8,Flat?nprobe=2", "index_folder": folder}
    expected = approximate_neighbors(source, target, **options)
    assert len(list(folder.glob("*.faiss"))) == 2
    with monkeypatch.context() as patch:
        patch.setattr(CandidateIndex, "_build", lambda *_: pytest.fail("the index was made again"))
        assert_equal(approximate_neighbors(source, target, **options), expected)
        wider = approximate_neighbors(source, target, **{**options, "factory": "IVF8,Flat?nprobe=8"})
        assert_equal(wider, find_neighbors(source, target))
    approximate_neighbors(source, target, index_folder=folder, factory="IVF4,Flat")
    assert len(list(folder.glob("*.faiss"))) == 4
    other = source.copy()
    other[17] *= 2
    approximate_neighbors(other, target, **options)  # beside the others: the target's is there
    assert len(list(folder.glob("*.faiss"))) == 5
    for path in folder.glob("*.faiss"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x40
        path.write_bytes(content)
    assert_equal(approximate_neighbors(source, target, **options), expected)
    assert "is damaged" in caplog.text


def test_whoever_wants_the_same_index_waits_for_it(tmp_path, monkeypatch):
    """Two tasks of a cluster wrote one index at once, and each the other's hash."""
    source = clustered(600, 1)
    target = clustered(500, 2)
    build = CandidateIndex._build
    built = []
    start = Barrier(2)

    def slow(index, matrix, **options):
        built.append(matrix.rows)
        sleep(0.3)
        build(index, matrix, **options)

    def search(_):
        start.wait()
        return approximate_neighbors(source, target, factory="IVF8,Flat", index_folder=tmp_path)

    monkeypatch.setattr(CandidateIndex, "_build", slow)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(search, range(2))
    assert_equal(first, second)
    assert sorted(built) == [500, 600] and len(list(tmp_path.glob("*.faiss"))) == 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"k": 4}, "k=4 for 5 source and 3 target"),
        ({"k": 1, "factory": "IVF4,Flt"}, "IVF4,Flt.*index_factory"),
        ({"k": 1, "factory": "PQ4"}, "multiple of the number of subquantizers"),
        ({"k": 1, "factory": "Flat?nprobe=4"}, "could not set parameter nprobe"),
        ({"k": 1, "factory": "HNSW8?efSearch=x"}, "could not convert .*'x'"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        approximate_neighbors(embeddings(5, 0), embeddings(3, 1), **options)
    bad = embeddings(5, 0)
    bad[2] = 0
    with pytest.raises(ValueError, match="target_embeddings.*only zeros in row 2"):
        approximate_neighbors(embeddings(5, 1), bad, k=1)


@pytest.mark.parametrize("method", ["approximate", "auto", "faiss:Flat"])
def test_as_a_method_of_whatever_searches(method, logged, monkeypatch):
    """Mining logs the recall of its search; with all cells it is exact."""
    monkeypatch.setattr("st_xling.mining.search.find.MOST_EXACT", 10**6)
    source = clustered(900, 1)
    target = clustered(900, 1) + np.float32(0.3)
    options = {"method": method, "progress": True}
    mined = mine(source, target, **options)
    exact = mine(source, target)
    text = logged()
    assert f"{method.replace('auto', 'approximate')}: recall of exact neighbors: source side 1.0000" in text
    assert ("auto: approximate search of 900 x 900" in text) == (method == "auto")
    assert mined.scores.tobytes() == exact.scores.tobytes() and len(mined) > 500
