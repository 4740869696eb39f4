"""Stores: what is written is read, a slice at a time; what is damaged says so, by file, row and remedy."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from st_xling.mining import EmbeddingStore, mine, open_laser, write_store
from st_xling.mining.store import Header, ModelIdentity
from st_xling.mining.store_writer import StoreWriter
from st_xling.utils.lock import lock_folder

ROWS, DIM = 10, 6
KINDS = [("float32", "safetensors"), ("float16", "safetensors"), ("bfloat16", "safetensors")]
KINDS += [("float32", "npy"), ("float16", "npy")]
MODEL = ModelIdentity("encoder", "", "a" * 64)


def vectors(rows: int = ROWS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, DIM)).astype(np.float32)


def rounded(rows: np.ndarray, dtype: str) -> np.ndarray:
    """To ``dtype`` by torch; bfloat16 as float32."""
    made = torch.from_numpy(rows).to(getattr(torch, dtype))
    return made.float().numpy() if dtype == "bfloat16" else made.numpy()


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    sentences = [f"Satz {row}" for row in range(ROWS)]
    return write_store(tmp_path / "store", vectors(), sentences=sentences, model=MODEL, shard_rows=4)


@pytest.mark.parametrize(("dtype", "file_format"), KINDS)
def test_what_is_written_is_read(dtype: str, file_format: str, tmp_path: Path) -> None:
    written = write_store(tmp_path / "s", vectors(), dtype=dtype, file_format=file_format, shard_rows=4)
    store = EmbeddingStore.open(tmp_path / "s", verify=True)
    expected = rounded(vectors(), dtype)
    assert store.shape == written.shape == (ROWS, DIM) and store.ndim == 2 and len(store) == store.rows == ROWS
    assert store.dtype == expected.dtype and store.manifest.header.dtype == dtype
    assert [shard.rows for shard in store.manifest.shards] == [4, 4, 2]
    np.testing.assert_array_equal(np.asarray(store), expected)
    np.testing.assert_array_equal(np.asarray(store, dtype=np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(store))[3:9], expected[3:9])
    names = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert names == ["manifest.json", *(f"shard-00000{number}.{file_format}" for number in range(3))]


def test_shards_are_plain_files(store: EmbeddingStore) -> None:
    """Read without us."""
    np.testing.assert_array_equal(load_file(store.path / "shard-000001.safetensors")["embeddings"], vectors()[4:8])
    content = json.loads((store.path / "manifest.json").read_text(encoding="utf-8"))
    assert (content["rows"], content["dim"], content["dtype"]) == (ROWS, DIM, "float32")
    assert content["model"]["name"] == "encoder" and content["normalised"] is False


KEYS = st.one_of(
    st.slices(ROWS),
    st.integers(-ROWS, ROWS - 1),
    st.lists(st.integers(-ROWS, ROWS - 1), max_size=20).map(lambda rows: np.array(rows, dtype=np.int64)),
    st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).map(np.array),
)


@settings(max_examples=80, deadline=None)
@given(key=KEYS, shard_rows=st.integers(1, 12), kind=st.sampled_from(KINDS))
def test_indexing_is_numpy_s(key: Any, shard_rows: int, kind: tuple[str, str], cache: dict[Any, Any]) -> None:
    folder, stores = cache["folder"], cache["stores"]
    if (shard_rows, kind) not in stores:
        name = folder / f"{shard_rows}-{'-'.join(kind)}"
        stores[shard_rows, kind] = write_store(
            name, vectors(), dtype=kind[0], file_format=kind[1], shard_rows=shard_rows
        )
    found, expected = stores[shard_rows, kind][key], rounded(vectors(), kind[0])[key]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    return {"folder": tmp_path_factory.mktemp("stores"), "stores": {}}


@pytest.mark.parametrize("key", [ROWS, -ROWS - 1, [0, ROWS], np.array([[0]]), np.array([0.0]), np.array([True])])
def test_rows_that_are_not_there(key: Any, store: EmbeddingStore) -> None:
    with pytest.raises(IndexError, match="rows"):
        store[key]


def test_a_slice_cannot_be_written_to(store: EmbeddingStore) -> None:
    with pytest.raises(ValueError, match="read-only"):
        store[0:2][0, 0] = 7.0


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("file_format", ["safetensors", "npy"])
def test_a_slice_reads_no_other_rows(file_format: str, tmp_path: Path) -> None:
    """64 MB in shards of 32 MB; 64 rows across both. Memory maps count only where they were touched."""
    rows = np.ones((65_536, 256), dtype=np.float32)
    store = write_store(tmp_path / "s", rows, shard_rows=32_768, file_format=file_format)
    before = resident_bytes()
    assert store[32_700:32_764].sum() == 64 * 256
    assert resident_bytes() - before < 16 << 20  # the kernel reads ahead
    assert store[:].sum() == rows.sum()
    assert resident_bytes() - before > 32 << 20  # the measure sees what is read


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_mining_reads_stores_like_arrays(tmp_path: Path) -> None:
    source, target = vectors(40, 1), vectors(30, 2)
    stores = [
        write_store(tmp_path / name, rows, shard_rows=7, dtype="bfloat16")
        for name, rows in (("source", source), ("target", target))
    ]
    found = mine(*stores, k=3)
    expected = mine(rounded(source, "bfloat16"), rounded(target, "bfloat16"), k=3)
    for name in ("scores", "source_indices", "target_indices"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def damage(store: Path, what: str) -> None:
    shard, manifest = store / "shard-000001.safetensors", store / "manifest.json"
    content = json.loads(manifest.read_text())
    data = shard.read_bytes()
    if what == "missing":
        shard.unlink()
    elif what == "truncated":
        shard.write_bytes(data[:-3])
    elif what == "swapped":  # the right size, other rows
        shard.write_bytes(data.replace(b"[4,6]", b"[6,4]"))
    elif what == "rows":
        content["rows"] += 1
    elif what == "shard rows":
        content["shards"][1]["rows"], content["shards"][0]["rows"] = 5, 3
    elif what == "text rows":
        content["texts"][0]["rows"] = 9
    elif what == "no hash of text":
        content["shards"][1]["text_sha256"] = ""
    elif what == "hash":
        content["shards"][1]["sha256"] = 7
    elif what == "texts":
        content["texts"][0]["blank_rows"] = None
    elif what in ("fingerprint", "name"):
        content["model"][what] = 1 if what == "name" else None
    elif what == "settings":
        content["settings"] = []
    elif what in ("no json", "nested"):
        manifest.write_text("{" if what == "no json" else "[" * 100_000)
        return
    elif what == "later":
        content["version"] = 2
    elif what == "outside":
        content["shards"][1]["file"] = "../shard-000001.safetensors"
    elif what == "keys":
        del content["shards"][1]["sha256"]
    elif what == "no manifest":
        manifest.unlink()
        return
    elif what == "garbage":
        shard.write_bytes(b"\xff" * len(data))
    manifest.write_text(json.dumps(content))


DAMAGES = {
    "missing": (
        FileNotFoundError,
        r"shard-000001\.safetensors: this shard of 4 rows is missing; write the store again",
    ),
    "truncated": (ValueError, r"shard-000001\.safetensors: expected 176 bytes, got 173; write"),
    "swapped": (ValueError, r"shard-000001.*expected float32 of shape \(4, 6\), got float32 of shape \(6, 4\)"),
    "garbage": (ValueError, r"shard-000001\.safetensors: expected a shard of embeddings, got"),
    "rows": (ValueError, "manifest is damaged: .*11 rows of 6, but its shards have 10 rows"),
    "shard rows": (ValueError, r"shard-000000.*expected float32 of shape \(3, 6\), got float32 of shape \(4, 6\)"),
    "text rows": (ValueError, r"manifest\.json: .*the rows of its texts are not those of its shards"),
    "no hash of text": (ValueError, r"manifest\.json: .*shard-000001\.safetensors has no hash of its text"),
    "hash": (ValueError, r"manifest\.json: .*sha256 must be of type str: got 7"),
    "texts": (ValueError, r"manifest\.json: .*'blank_rows': None"),
    "fingerprint": (ValueError, r"manifest\.json: .*fingerprint must be of type str: got None"),
    "name": (ValueError, r"manifest\.json: .*name must be of type str: got 1"),
    "settings": (ValueError, r"manifest\.json: .*settings must be of type dict: got \[\]"),
    "no json": (ValueError, r"manifest\.json: expected JSON"),
    "nested": (ValueError, r"manifest\.json: expected JSON, got brackets nested too deep"),
    "later": (ValueError, r"of version 1, got 'st-xling embedding store' of version 2; read it with the st-xling that"),
    "outside": (ValueError, r"a shard may not lie at '\.\./shard-000001"),
    "keys": (ValueError, "the manifest is damaged: .*sha256"),
    "no manifest": (ValueError, r"expected an embedding store, got a folder without manifest\.json"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_found_on_opening(what: str, store: EmbeddingStore) -> None:
    damage(store.path, what)
    kind, message = DAMAGES[what]
    with pytest.raises(kind, match=message):
        EmbeddingStore.open(store.path)


HALF = {
    "journal.jsonl": ["[1]", '{"dim": 6, "unknown": 1}', "{}", '{"dim": 6, "file": 3}', "[" * 100_000],
    "writing.json": ["[1]", "{", '{"dtype": "float32"}', "[" * 100_000],
}


@pytest.mark.parametrize("file", HALF)
def test_damage_of_a_half_written_store(file: str, tmp_path: Path) -> None:
    """A journal is gone on with from its last good line; what was set out to do is named."""
    whole = _half(tmp_path / "whole", finish=True)
    for number, damage in enumerate(HALF[file]):
        folder = tmp_path / str(number)
        _half(folder)
        lines = (folder / file).read_text().splitlines()
        (folder / file).write_text("\n".join([lines[0], damage, ""] if file == "journal.jsonl" else [damage]))
        if file == "writing.json":
            with pytest.raises(ValueError, match=r"writing\.json: expected .* overwrite"):
                _half(folder, finish=True)
        assert _half(folder, finish=True, overwrite=file == "writing.json") == whole


def test_a_shard_that_was_damaged_is_written_again(tmp_path: Path) -> None:
    whole = _half(tmp_path / "whole", finish=True)
    _half(tmp_path / "s")
    path = tmp_path / "s" / "shard-000001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert _half(tmp_path / "s", finish=True) == whole


def _half(folder: Path, *, finish: bool = False, **options: Any) -> dict[str, bytes]:
    """Write two shards and stop, or go on to the end."""
    text = {"files": [], "rows": ROWS, "sha256": "", "blank_rows": []}
    with StoreWriter(folder, Header(), text, **options) as writer:
        for number in range(len(writer.shards), 5 if finish else 2):
            writer.write(vectors()[2 * number : 2 * number + 2])
        if finish:
            writer.finish()
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_flipped_bit_is_found_by_its_checksum(store: EmbeddingStore) -> None:
    shard = store.path / "shard-000002.safetensors"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    EmbeddingStore.open(store.path)
    with pytest.raises(ValueError, match=r"shard-000002\.safetensors: the checksum is wrong"):
        EmbeddingStore.open(store.path, verify=True)


def test_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        EmbeddingStore.open(tmp_path / "absent")


SENTENCES = [f"Satz {row}" for row in range(ROWS)]
OTHER_TEXTS = {
    "one less": (SENTENCES[:-1], "a sentence for each of 10 rows: got 9 sentences"),
    "one more": ([*SENTENCES, "mehr"], "a sentence for each of 10 rows: got 11 sentences"),
    "edited": ([*SENTENCES[:5], "Satz  5", *SENTENCES[6:]], r"it differs in rows 4 to 7 \(shard-000001"),
    "moved": ([SENTENCES[1], SENTENCES[0], *SENTENCES[2:]], "it differs in rows 0 to 3"),
    "joined": (["Satz 0S", "atz 1", *SENTENCES[2:]], "it differs in rows 0 to 3"),
    "none": ([], "got 0 sentences"),
}


@pytest.mark.parametrize("case", OTHER_TEXTS)
def test_another_text(case: str, store: EmbeddingStore) -> None:
    store.check_text(SENTENCES)
    sentences, message = OTHER_TEXTS[case]
    with pytest.raises(ValueError, match=message):
        store.check_text(sentences)


def test_a_store_without_text_counts_rows_only(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", vectors(), shard_rows=4)
    store.check_text(["x"] * ROWS)
    with pytest.raises(ValueError, match="got 9 sentences"):
        store.check_text(["x"] * 9)


def test_another_model(store: EmbeddingStore, tmp_path: Path) -> None:
    other = write_store(tmp_path / "other", vectors(), model=ModelIdentity("else", "", "b" * 64))
    with pytest.raises(ValueError, match=r"same model: got encoder@aaaaaaaa of dim 6 in .* and else@bbbbbbbb of dim 6"):
        store.check_same_model(other)
    moved = write_store(tmp_path / "moved", vectors(3), model=ModelIdentity("its/new-name", "main", "a" * 64))
    store.check_same_model(moved)


@pytest.mark.parametrize(("dtype", "file_format"), KINDS)
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN or infinite"), (np.inf, "NaN or infinite"), (0.0, "only zeros")]
)
def test_bad_vectors_are_refused_by_row(dtype: str, file_format: str, value: float, name: str, tmp_path: Path) -> None:
    rows = vectors()
    rows[5] = rows[9] = value
    with pytest.raises(ValueError, match=rf"got {name} in row 5; mend or drop"):
        write_store(tmp_path / "s", rows, dtype=dtype, file_format=file_format, shard_rows=4)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("value", "name"), [(1e5, "NaN or infinite"), (1e-9, "only zeros")])
def test_vectors_that_float16_cannot_hold(value: float, name: str, tmp_path: Path) -> None:
    rows = vectors()
    rows[3] = value
    write_store(tmp_path / "whole", rows)
    with pytest.raises(
        ValueError, match=rf"got {name} in row 3; float16 cannot hold them: normalise .* or write float32"
    ):
        write_store(tmp_path / "half", rows, dtype="float16", shard_rows=2)
    assert write_store(tmp_path / "half", rows).rows == ROWS  # nothing stands in the way of what was mended
    with pytest.raises(ValueError, match="got NaN or infinite in row 3"):
        bad = np.where(np.arange(ROWS)[:, None] == 3, np.nan, rows).astype(np.float32)
        write_store(tmp_path / "half", bad, append=True, shard_rows=2)
    np.testing.assert_array_equal(EmbeddingStore.open(tmp_path / "half", verify=True)[:], rows)
    assert sorted(path.name for path in (tmp_path / "half").iterdir()) == ["manifest.json", "shard-000000.safetensors"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "bfloat16", "file_format": "npy"}, r"\.npy files have no bfloat16: use file_format='safetensors'"),
        ({"dtype": "int8"}, "dtype must be one of float32, float16, bfloat16: got 'int8'"),
        ({"file_format": "pickle"}, "file_format must be one of safetensors, npy"),
        ({"shard_rows": 0}, "shard_rows must be at least 1"),
        ({"sentences": ["x"]}, "got 1 sentences and 10 vectors"),
        ({"append": True, "overwrite": True}, "choose one of them"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_store(tmp_path / "s", vectors(), **options)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "rows", [np.ones((3, 4), dtype=np.int64), np.ones(3, dtype=np.float32), np.ones((3, 0), np.float32)]
)
def test_vectors_that_are_none(rows: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected vectors of"):
        write_store(tmp_path / "s", rows)


def test_rows_are_appended(store: EmbeddingStore) -> None:
    more = vectors(5, seed=1)
    longer = write_store(store.path, more, sentences=["neu"] * 5, model=MODEL, shard_rows=4, append=True)
    np.testing.assert_array_equal(longer[:], np.concatenate([vectors(), more]))
    assert [shard.rows for shard in longer.manifest.shards] == [4, 4, 2, 4, 1]
    longer.check_text([*SENTENCES, *["neu"] * 5])
    assert store.shape == (ROWS, DIM)  # what was open stays what it was
    np.testing.assert_array_equal(store[:], vectors())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ModelIdentity("x", "", "b" * 64)}, "model was encoder@aaaaaaaa, is now x@bbbbbbbb"),
        ({"dtype": "float16"}, "dtype was"),
    ],
)
def test_unlike_rows_are_not_appended(options: dict[str, Any], message: str, store: EmbeddingStore) -> None:
    with pytest.raises(ValueError, match=message):
        write_store(store.path, vectors(), append=True, **{"model": MODEL, **options})
    with pytest.raises(ValueError, match="expected vectors of dim 6, got 3"):
        write_store(store.path, np.ones((2, 3), dtype=np.float32), model=MODEL, append=True)
    np.testing.assert_array_equal(EmbeddingStore.open(store.path)[:], vectors())


def test_what_is_there_is_not_overwritten_unasked(store: EmbeddingStore, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds a finished store of something else .* replace it with overwrite"):
        write_store(store.path, vectors(3))
    np.testing.assert_array_equal(EmbeddingStore.open(store.path)[:], vectors())
    new = write_store(store.path, vectors(3), overwrite=True)
    assert new.rows == 3 and len(list(store.path.iterdir())) == 2
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "thesis.tex").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="holds something that is no store; choose another folder"):
            write_store(tmp_path / "else", vectors(), overwrite=overwrite)
    assert (tmp_path / "else" / "thesis.tex").read_text() == "mine"
    with pytest.raises(ValueError, match="is a file; choose another name"):
        write_store(tmp_path / "else" / "thesis.tex", vectors())


def test_one_writer_at_a_time(store: EmbeddingStore) -> None:
    """A lock of another open file, as another process would hold it."""
    number = lock_folder(store.path)
    with pytest.raises(ValueError, match="another process is writing"):
        write_store(store.path, vectors(), overwrite=True)
    os.close(number)
    write_store(store.path, vectors(3), overwrite=True)


def test_a_writer_takes_up_only_what_is_whole(tmp_path: Path) -> None:
    """A journal cut in the middle of a line, and one whose shard is not what it says."""
    text = {"rows": 12, "sha256": "c" * 64, "files": ["a"], "blank_rows": [], "replaced_lines": 0}
    header = Header("float32", "safetensors", False, MODEL)
    with StoreWriter(tmp_path, header, text) as writer:
        for start in (0, 4, 8):
            writer.write(vectors(12)[start : start + 4])
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-5])
    with StoreWriter(tmp_path, header, {**text, "files": ["renamed"]}) as writer:
        assert len(writer.shards) == 2
    (tmp_path / "shard-000000.safetensors").write_bytes(b"")
    with StoreWriter(tmp_path, header, text) as writer:
        assert len(writer.shards) == 0
    with pytest.raises(ValueError, match=r"half-written store of something else \(rows was 12, is now 13\)"):
        StoreWriter(tmp_path, header, {**text, "rows": 13}).__enter__()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_laser_s_raw_files(dtype: str, tmp_path: Path) -> None:
    path, rows = tmp_path / "text.emb", vectors().astype(dtype)
    rows.tofile(path)
    found = open_laser(path, dim=DIM, dtype=dtype, rows=ROWS)
    assert isinstance(found, np.memmap) and not found.flags.writeable
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(write_store(tmp_path / "s", found, dtype=dtype)[:], rows)


LASER_FAULTS = {
    "cut off": ({}, lambda data: data[:-1], "whole number of rows of 24 bytes (6 x float32), got 239 bytes"),
    "another dim": ({"dim": 7}, bytes, "whole number of rows of 28 bytes (7 x float32), got 240 bytes"),
    "empty": ({}, lambda data: b"", "got 0 bytes"),
    "another dtype": (
        {"rows": 20},
        bytes,
        "expected 20 rows of 6 x float32, got 10; dim=3, dtype='float32' or dim=6, dtype='float16' would fit",
    ),
    "another text": (
        {"rows": 9},
        bytes,
        "expected 9 rows of 6 x float32, got 10; this is not the text that was encoded",
    ),
    "noise": (
        {"dtype": "float16"},
        lambda data: b"\xff\x7f" * 120,
        "row 0 is not finite or only zeros when read as 6 x float16",
    ),
    "zeros at the end": ({}, lambda data: data[:-24] + bytes(24), "row 9 is not finite or only zeros"),
    "dtype": ({"dtype": "float64"}, bytes, "dtype must be one of float32, float16: got 'float64'"),
    "dim": ({"dim": 0}, bytes, "dim must be at least 1: got 0; LASER's is 1024"),
}


@pytest.mark.parametrize("case", LASER_FAULTS)
def test_laser_files_that_cannot_be(case: str, tmp_path: Path) -> None:
    options, change, message = LASER_FAULTS[case]
    path = tmp_path / "text.emb"
    path.write_bytes(change(vectors().tobytes()))
    with pytest.raises(ValueError) as caught:
        open_laser(path, **{"dim": DIM, **options})
    assert message in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"nearest name there is text\.emb"):
        open_laser(tmp_path / "text.raw")
