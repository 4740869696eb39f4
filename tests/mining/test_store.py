"""Stores: what is written is read, a slice at a time; what is damaged says so, by file, row and remedy."""

import json
import os
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from st_xling.mining import EmbeddingStore, find_neighbors, write_store
from st_xling.mining.store import Manifest, write_shards
from st_xling.mining.text import TextSummary

ROWS, DIM = 10, 6
DTYPES = ["float32", "float16", "int8"]
SENTENCES = [f"Satz {row}" for row in range(ROWS)]


def vectors(rows: int = ROWS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, DIM)).astype(np.float32)


def rounded(rows: np.ndarray, dtype: str) -> np.ndarray:
    """To ``dtype`` by numpy; int8 as float32 after steps of a 127th of each row's largest."""
    if dtype == "int8":
        read_rows = []
        for row in rows:
            step = np.float32(max(map(abs, row.tolist()))) / np.float32(127)
            read_rows.append([round(float(x / step)) * step for x in row])
        return np.array(read_rows, np.float32)
    return rows.astype(dtype)


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    return write_store(tmp_path / "store", vectors(), sentences=SENTENCES, shard_rows=4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_is_read(dtype: str, tmp_path: Path) -> None:
    written = write_store(tmp_path / "s", vectors(), dtype=dtype, shard_rows=4)
    store = EmbeddingStore.open(tmp_path / "s")
    expected = rounded(vectors(), dtype)
    assert store.shape == written.shape == (ROWS, DIM) and store.ndim == 2 and len(store) == store.rows == ROWS
    assert store.dtype == expected.dtype and store.manifest.dtype == dtype
    assert store.manifest.shards == (4, 4, 2)
    np.testing.assert_array_equal(np.asarray(store), expected)
    np.testing.assert_array_equal(np.asarray(store, dtype=np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(store))[3:9], expected[3:9])
    names = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert names == ["manifest.json", *(f"shard-00000{number}.safetensors" for number in range(3))]


def test_shards_are_plain_files(store: EmbeddingStore) -> None:
    """Read without us, in the layout of version 1."""
    np.testing.assert_array_equal(load_file(store.path / "shard-000001.safetensors")["embeddings"], vectors()[4:8])
    content = json.loads((store.path / "manifest.json").read_text(encoding="utf-8"))
    assert (content["dim"], content["dtype"], content["shards"]) == (DIM, "float32", [4, 4, 2])
    assert content["model"]["fingerprint"] == "" and content["normalized"] is False


KEYS = st.one_of(
    st.slices(ROWS),
    st.integers(-ROWS, ROWS - 1),
    st.lists(st.integers(-ROWS, ROWS - 1), max_size=20).map(lambda rows: np.array(rows, dtype=np.int64)),
)


@settings(max_examples=60, deadline=None)
@given(key=KEYS, shard_rows=st.sampled_from([1, 3, 4, 10]), dtype=st.sampled_from(DTYPES))
def test_indexing_is_numpy_s(key: Any, shard_rows: int, dtype: str, stores: Callable[..., Any]) -> None:
    rows = stores(shard_rows, dtype)[key]
    expected = rounded(vectors(), dtype)[key]
    assert rows.dtype == expected.dtype and rows.shape == expected.shape
    np.testing.assert_array_equal(rows, expected)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., EmbeddingStore]:
    """The same vectors in shards of so many rows, each dtype written once."""
    folder = tmp_path_factory.mktemp("stores")

    @cache
    def of(shard_rows: int, dtype: str) -> EmbeddingStore:
        return write_store(folder / f"{shard_rows}-{dtype}", vectors(), dtype=dtype, shard_rows=shard_rows)

    return of


def manifest_with(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps(json.loads(data) | changes).encode()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("manifest.json", manifest_with(shards=[5, 4, 2]), "10 rows, its shards have 11"),
        ("manifest.json", manifest_with(dtype="float64"), "dtype must be one of float32, .*: got 'float64'"),
        ("manifest.json", manifest_with(version=2), "of version 1"),
        ("manifest.json", lambda data: b"{", "expected JSON"),
        ("manifest.json", None, "expected an embedding store, got a folder without"),
        ("shard-000001.safetensors", None, "this shard is missing; write the store again"),
        ("shard-000001.safetensors", lambda data: data[:-3], "expected a shard of embeddings, got"),
    ],
)
def test_a_damaged_file(name: str, change: Any, message: str, store: EmbeddingStore) -> None:
    path = store.path / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        EmbeddingStore.open(store.path)
    assert name in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_flipped_bit_in_a_shard_is_noticed(dtype: str, tmp_path: Path) -> None:
    """Anywhere in the file; in 16 of 20 cases other sentences were paired, and nothing was said."""
    vectors = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    store = write_store(tmp_path / "store", vectors, dtype=dtype, shard_rows=16)
    path = store.path / "shard-000001.safetensors"
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), 97):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"shard-000001.safetensors.*write the store again") as caught:
            EmbeddingStore.open(store.path)[20:30]
        assert "\n" not in str(caught.value)
    path.write_bytes(content)
    np.testing.assert_array_equal(EmbeddingStore.open(store.path)[:], store[:])
    # Another shard of the same shape, as by a mistake in copying.
    path.write_bytes((store.path / "shard-000000.safetensors").read_bytes())
    with pytest.raises(ValueError, match="shard-000001.safetensors is damaged: .*; copy the file again, or delete"):
        EmbeddingStore.open(store.path)[[3, 20]]


TEXT = TextSummary(("a",), ROWS, "c" * 64)


class Stop(Exception):
    pass


def write(folder: Path, *, stop: bool = False, text: TextSummary = TEXT, **options: Any) -> int:
    """Write shards of two rows, all or only two of them; returns how many were there."""
    before = 0

    def shards(start: int) -> Any:
        nonlocal before
        before = start // 2
        end = 2 if stop else 5
        for number in range(before, end):
            yield vectors()[2 * number : 2 * number + 2]
        if stop:
            raise Stop

    with pytest.raises(Stop) if stop else nullcontext():
        write_shards(folder, Manifest(text=text), shards, **options)
    return before


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_overwriting_starts_again_and_resumes(store: EmbeddingStore, tmp_path: Path) -> None:
    """The earlier store goes; a second start of the writer resumes the new one, with or without overwrite."""
    write(tmp_path / "whole")
    write(store.path, stop=True, overwrite=True)
    with pytest.raises(ValueError, match="half-written, run the command"):
        EmbeddingStore.open(store.path)
    assert write(store.path, stop=True, overwrite=True) == write(store.path) == 2
    assert contents(store.path) == contents(tmp_path / "whole")
    (store.path / "manifest.json").write_text("{}", encoding="utf-8")
    write(store.path, overwrite=True)
    assert contents(store.path) == contents(tmp_path / "whole")


def test_a_writer_resumes_what_is_complete(tmp_path: Path) -> None:
    """A store of the same text under another name is the same; a shard that is missing, and all after it, go again."""
    out = tmp_path / "s"
    write(out, stop=True)
    assert write(out, stop=True, text=replace(TEXT, files=("renamed",))) == 2
    (out / "shard-000000.safetensors").unlink()
    with pytest.raises(ValueError, match=r"begun for another task: rows was 10, is now 13"):
        write(out, text=replace(TEXT, rows=13))
    assert write(out) == 0
    np.testing.assert_array_equal(EmbeddingStore.open(out)[:], vectors())


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (SENTENCES[:-1], "a sentence for each of 10 rows: got 9 sentences"),
        ([*SENTENCES[:5], "Satz  5", *SENTENCES[6:]], "the text is not the one that was encoded"),
        (["Satz 0S", "atz 1", *SENTENCES[2:]], "the text is not the one that was encoded"),
    ],
)
def test_another_text(sentences: list[str], message: str, store: EmbeddingStore, stores: Any) -> None:
    """A store that was written without its text counts rows only."""
    store.check_text(SENTENCES)
    stores(4, "float32").check_text(["x"] * ROWS)
    with pytest.raises(ValueError, match=message):
        store.check_text(sentences)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (vectors(), {"dtype": "int4"}, "float32, float16, int8: got 'int4'"),
        (vectors(), {"sentences": ["x"]}, "got 1 sentences and 10 vectors"),
        (vectors(0), {}, "at least one vector: got none"),
        (np.ones((3, 4), dtype=np.int64), {}, "floating-point vectors .* got torch.int64"),
        (np.ones(3, dtype=np.float32), {}, r"shape \(rows, dim\): got .* \(3,\)"),
    ],
)
def test_bad_options_and_vectors(rows: np.ndarray, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "s", rows, **options)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("key", [ROWS, -ROWS - 1, [0, ROWS]])
def test_rows_that_are_not_there_or_cannot_be_written(key: Any, store: EmbeddingStore) -> None:
    """A negative row counts from the end, one beyond it must not, and what is mapped is the file itself."""
    with pytest.raises(IndexError, match="10 rows: got rows from"):
        store[key]
    with pytest.raises(ValueError, match="read-only"):
        store[0:2][0, 0] = 7.0


def test_what_is_there_is_not_replaced_unasked(store: EmbeddingStore, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="contains a finished store.* replace it with overwrite"):
        write_store(store.path, vectors(3))
    np.testing.assert_array_equal(EmbeddingStore.open(store.path)[:], vectors())
    (store.path / "notes.txt").write_text("mine")
    assert write_store(store.path, vectors(3), overwrite=True).rows == 3
    assert sorted(path.name for path in store.path.iterdir()) == [
        "manifest.json", "notes.txt", "shard-000000.safetensors"
    ]  # fmt: skip
    thesis = tmp_path / "else" / "thesis.tex"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    for folder, words in ((thesis.parent, "contains thesis.tex, which this command"), (thesis, "is a file")):
        for overwrite in (False, True):
            with pytest.raises(ValueError, match=f"{words}.*choose another folder"):
                write_store(folder, vectors(), overwrite=overwrite)
    assert thesis.read_text() == "mine"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_search_is_exact_among_what_is_read(dtype: str, stores: Callable[..., EmbeddingStore]) -> None:
    store = stores(3, dtype)
    other = vectors(7, seed=1)
    in_memory = find_neighbors(np.asarray(store, np.float64), other, k=2)
    for neighbors, expected in zip(find_neighbors(store, other, k=2), in_memory):
        np.testing.assert_array_equal(neighbors.indices, expected.indices)
        np.testing.assert_allclose(neighbors.similarities, expected.similarities, rtol=0, atol=1e-6)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_slice_reads_no_other_rows(tmp_path: Path) -> None:
    """64 rows across two shards of 32 MB. Memory maps count only where they were touched."""

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    rows = np.ones((65_536, 256), dtype=np.float32)
    store = write_store(tmp_path / "s", rows, shard_rows=32_768)
    before = resident_bytes()
    assert store[32_700:32_764].sum() == 64 * 256
    assert resident_bytes() - before < 16 << 20  # the kernel reads ahead
    assert store[:].sum() == rows.sum()
    assert resident_bytes() - before > 32 << 20  # the measure sees what is read


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        *((dtype, np.nan, "NaN or infinite in row 3; fix or drop") for dtype in DTYPES),
        ("float32", 0.0, "only zeros in row 3; fix or drop"),
        ("float16", 1e5, "NaN or infinite in row 3; float16 cannot hold them"),
        ("float16", 1e-9, "only zeros in row 3; float16 cannot hold them"),
        ("int8", 1e-44, "only zeros in row 3; int8 cannot hold them"),
    ],
)
def test_bad_vectors_are_refused_by_row(dtype: str, value: float, message: str, tmp_path: Path) -> None:
    rows = vectors()
    rows[3] = rows[9] = value
    with pytest.raises(ValueError, match=f"got {message}"):
        write_store(tmp_path / "s", rows, dtype=dtype, shard_rows=4)
    assert not (tmp_path / "s").exists()
