"""Encoding: the model's own vectors, in the rows' order; whatever happens on the way, the same bytes at the end."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import EmbeddingStore, encode
from st_xling.mining.encoding import Window, embed_in_processes
from st_xling.mining.text import Row
from tests.conftest import PAIRS
from tests.mining.nursery import Attempt, Nursery
from tests.training.children import CONTEXT

#: 480 sentences of different lengths, with tabs.
SENTENCES = [
    f"{row % 7}\t" + " ".join(PAIRS[(row * 5 + part) % 8][row % 2] for part in range(row % 4 + 1)) for row in range(480)
]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> Any:
    return make_model()


@pytest.fixture(scope="module")
def folder(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("encoder") / "encoder"
    model.save_pretrained(str(path))
    return path


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "news.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


def contents(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(store.iterdir())}


@pytest.mark.parametrize(("dtype", "normalise"), [("float32", True), ("float16", True), ("float32", False)])
def test_rows_are_the_model_s_vectors(dtype: str, normalise: bool, model: Any, text: Path, tmp_path: Path) -> None:
    store = encode(model, text, tmp_path / "s", dtype=dtype, normalise=normalise, batch_size=16, shard_rows=100)
    assert [shard.rows for shard in store.manifest.shards] == [100, 100, 100, 100, 80]
    expected = model.encode(SENTENCES, normalize_embeddings=normalise)
    np.testing.assert_allclose(store[:], expected, atol=1e-5 if dtype == "float32" else 1e-3)
    exact = model.encode(SENTENCES[100:200], normalize_embeddings=normalise, batch_size=16).astype(dtype)
    np.testing.assert_array_equal(store[100:200], exact)
    store.check_text(SENTENCES)
    header = store.manifest.header
    assert header.normalised == normalise and header.settings["batch_size"] == 16
    assert store.signature.startswith("encode|model:") and f"|rows:480|dim:16|dtype:{dtype}|" in store.signature


def test_several_files_and_forms_of_one_text(model: Any, text: Path, tmp_path: Path) -> None:
    """In two files, gzipped, and with ids: the same shards."""
    expected = contents(encode(model, text, tmp_path / "plain", shard_rows=200).path)
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "a.gz").write_bytes(gzip.compress("".join(lines[:130]).encode()))
    (tmp_path / "b").write_text("".join(lines[130:]), encoding="utf-8")
    (tmp_path / "ids").write_text("".join(f"x{row}\t{line}" for row, line in enumerate(lines)), encoding="utf-8")
    for name, files, form in (("two", [tmp_path / "a.gz", tmp_path / "b"], "lines"), ("ids", tmp_path / "ids", "bucc")):
        found = contents(encode(model, files, tmp_path / f"{name}.store", shard_rows=200, format=form).path)
        assert {key: found[key] for key in found if key != "manifest.json"} == {
            key: expected[key] for key in expected if key != "manifest.json"
        }


def test_a_prompt_is_put_before(model: Any, text: Path, tmp_path: Path) -> None:
    store = encode(model, text, tmp_path / "s", prompt="query: ", batch_size=32, shard_rows=480)
    expected = model.encode(SENTENCES, prompt="query: ", batch_size=32, normalize_embeddings=True)
    np.testing.assert_array_equal(store[:], expected)
    with pytest.raises(ValueError, match="settings was"):
        encode(model, text, tmp_path / "s", batch_size=32, shard_rows=480)


def test_two_processes_write_what_one_does(model: Any, folder: Path, text: Path, tmp_path: Path) -> None:
    """A model by name, and one that is handed over."""
    expected = contents(encode(str(folder), text, tmp_path / "one", shard_rows=50).path)
    assert contents(encode(str(folder), text, tmp_path / "two", shard_rows=50, processes=2).path) == expected
    shared = contents(encode(model, text, tmp_path / "shared", shard_rows=50, processes=2).path)
    assert {name: data for name, data in shared.items() if name != "manifest.json"} == {
        name: data for name, data in expected.items() if name != "manifest.json"
    }


def test_killed_by_the_clock_it_ends_with_the_same_bytes(folder: Path, text: Path, tmp_path: Path) -> None:
    """Every change to the file system has its turn in ``tests/crash``; here the moments are anybody's.

    After each kill, what is there is no store, or the whole one.
    """
    options = {"text_files": str(text), "shard_rows": 20, "batch_size": 16}
    with Nursery(folder) as nursery:
        status, message = nursery.encode(Attempt(), {**options, "out": str(tmp_path / "whole")})
        assert status == 0, message
        expected, out, statuses = contents(tmp_path / "whole"), tmp_path / "out", []
        assert len(expected) == 25
        for seconds in (0.01, 0.05):  # the second may come too late on a fast machine
            status, message = nursery.encode(Attempt(dies_after_s=seconds), {**options, "out": str(out)})
            statuses.append(status)
            assert_no_store_or_the_whole(out, expected)
        assert statuses[0] == -signal.SIGKILL and statuses[1] in (0, -signal.SIGKILL), message
        status, message = nursery.encode(Attempt(), {**options, "out": str(out)})
        assert status == 0, message
        assert contents(out) == expected


def assert_no_store_or_the_whole(out: Path, expected: dict[str, bytes]) -> None:
    try:
        store = EmbeddingStore.open(out, verify=True)
    except FileNotFoundError as error:
        assert "there is no folder" in str(error)
    except ValueError as error:
        assert "half-written" in str(error) or "without manifest.json" in str(error)
    else:
        assert store.rows == len(SENTENCES)
        assert {name: data for name, data in contents(out).items() if name in expected} == expected


def test_a_full_disk(folder: Path, text: Path, tmp_path: Path) -> None:
    """The kernel refuses bytes of the plan, of a shard, of the journal, of the manifest; then it has room."""
    options = {"text_files": str(text), "shard_rows": 20, "batch_size": 16}
    with Nursery(folder) as nursery:
        assert nursery.encode(Attempt(), {**options, "out": str(tmp_path / "whole")})[0] == 0
        whole = contents(tmp_path / "whole")
        shard, manifest = len(whole["shard-000000.safetensors"]), len(whole["manifest.json"])
        limits = {"writing.json": 99, "shard-": shard - 1, "journal.jsonl": shard, "manifest.json": manifest - 1}
        for refused, largest in limits.items():
            out = tmp_path / refused
            status, message = nursery.encode(Attempt(largest_file=largest), {**options, "out": str(out)})
            assert status == 1 and message.startswith(f"OSError: [Errno 27] File too large: {out}/{refused}")
            assert message.endswith("what was written before stands. Make room and run the same command again")
            names = {path.name for path in out.glob("*")}
            assert not any(name.endswith(".tmp") for name in names) and "manifest.json" not in names
            assert bool(names) == (refused in ("journal.jsonl", "manifest.json"))  # else nothing was whole
            if names:
                with pytest.raises(ValueError, match="the store is half-written"):
                    EmbeddingStore.open(out)
            assert nursery.encode(Attempt(), {**options, "out": str(out)})[0] == 0
            assert contents(out) == whole


def test_a_finished_store_is_left_alone(model: Any, text: Path, tmp_path: Path) -> None:
    out = encode(model, text, tmp_path / "s", shard_rows=100).path
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    text = text.rename(text.with_name("renamed.txt"))
    assert encode(model, text, out, shard_rows=100).rows == len(SENTENCES)
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before


OTHERS = {
    "text": ({}, "Satz 1 \n", "sha256 was"),
    "rows": ({}, "Noch einer.\n", r"rows was 480, is now 481.*; add to it with append"),
    "dtype": ({"dtype": "float16"}, "", "dtype was float32, is now float16"),
    "lengths": ({"normalise": False}, "", "normalised was True, is now False"),
    "batch": ({"batch_size": 8}, "", "settings was"),
    "files": ({"file_format": "npy"}, "", "file format was safetensors, is now npy"),
}


@pytest.mark.parametrize("half", [False, True], ids=["finished", "half-written"])
@pytest.mark.parametrize("case", OTHERS)
def test_another_command_is_refused(case: str, half: bool, model: Any, text: Path, tmp_path: Path) -> None:
    options, more, message = OTHERS[case]
    if half:
        stop_after(2, model, text, tmp_path / "s")
    else:
        encode(model, text, tmp_path / "s", shard_rows=100)
    before = contents(tmp_path / "s")
    if case == "text":
        text.write_text("\n".join([*SENTENCES[:-1], more.rstrip("\n")]), encoding="utf-8")
    elif more:
        text.write_text("\n".join([*SENTENCES, more]), encoding="utf-8")
    expected = message.split(".*;")[0] if half else message
    with pytest.raises(ValueError, match=rf"holds a {'half-written' if half else 'finished'} store .*{expected}"):
        encode(model, text, tmp_path / "s", shard_rows=100, **options)
    assert contents(tmp_path / "s") == before


def test_another_model_is_refused(model: Any, make_model: Callable[..., Any], text: Path, tmp_path: Path) -> None:
    """Of the same name and shape, with one weight changed; and the same model cut to fewer tokens."""
    stop_after(1, model, text, tmp_path / "s")
    other = make_model()
    next(other.parameters()).data[0, 0] += 1
    with pytest.raises(ValueError, match="model was .*@.*, is now .*@"):
        encode(other, text, tmp_path / "s", shard_rows=100)
    shorter = make_model()
    shorter.max_seq_length = 8
    with pytest.raises(ValueError, match="model was "):
        encode(shorter, text, tmp_path / "s", shard_rows=100)
    assert encode(other, text, tmp_path / "s", shard_rows=100, overwrite=True).rows == len(SENTENCES)


class Stop(Exception):
    pass


def stop_after(shards: int, model: Any, text: Path, out: Path, and_then: Callable[[], Any] | None = None) -> None:
    """Leave a store half-written."""
    made = 0
    forward = type(model).encode

    class Stopping(type(model)):  # type: ignore[misc]
        def encode(self, *args: Any, **options: Any) -> Any:
            nonlocal made
            made += 1
            if made > shards:
                if and_then is None:
                    raise Stop
                and_then()
            return forward(self, *args, **options)

    kind, model.__class__ = model.__class__, Stopping
    try:
        if and_then is None:
            with pytest.raises(Stop):
                encode(model, text, out, shard_rows=100)
        else:
            encode(model, text, out, shard_rows=100)
    finally:
        model.__class__ = kind


def test_a_text_edited_meanwhile(model: Any, text: Path, tmp_path: Path) -> None:
    """It is noticed at the end; when the old text is back, only what was made of the other is made again."""
    whole = contents(encode(model, text, tmp_path / "whole", shard_rows=100).path)
    as_it_was = text.read_bytes()

    def edit() -> None:  # in place, beyond what is read ahead
        with text.open("r+b") as file:
            file.seek(len(as_it_was) - 8)
            file.write(b"#")

    with pytest.raises(ValueError, match=r"news\.txt: the text was edited while it was embedded"):
        stop_after(1, model, text, tmp_path / "s", and_then=edit)
    with pytest.raises(ValueError, match="half-written store of something else"):
        encode(model, text, tmp_path / "s", shard_rows=100)
    text.write_bytes(as_it_was)
    encode(model, text, tmp_path / "s", shard_rows=100)
    assert contents(tmp_path / "s") == whole


def test_blank_lines(model: Any, tmp_path: Path) -> None:
    """An error, or rows that keep their place and are noted, also behind other rows."""
    text, more = tmp_path / "text.txt", tmp_path / "more.txt"
    text.write_text("eins\n\nzwei\n \n", encoding="utf-8")
    more.write_text("\ndrei\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"text\.txt:2: blank line(.|\n)*text\.txt:4: blank line"):
        encode(model, text, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    store = encode(model, text, tmp_path / "s", blank="keep")
    np.testing.assert_allclose(store[0], model.encode("eins", normalize_embeddings=True), atol=1e-6)
    assert store.rows == 4 and store.blank_rows.tolist() == [1, 3]
    store = encode(model, more, tmp_path / "s", blank="keep", append=True)
    assert store.rows == 6 and store.blank_rows.tolist() == [1, 3, 4]
    store.check_text(["eins", "", "zwei", " ", "", "drei"])
    assert encode(model, more, tmp_path / "s", blank="keep", append=True).rows == 6  # it is there already


def test_a_vector_that_is_nan_names_its_line(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """The word embedding of one word is broken."""
    model = make_model()
    words = ["red", "dog", "old"]
    ids = [set(model.tokenizer(word, add_special_tokens=False)["input_ids"]) for word in words]
    broken = (ids[1] - ids[0] - ids[2]).pop()
    model[0].auto_model.get_input_embeddings().weight.data[broken] = float("nan")
    path = tmp_path / "words.txt"
    path.write_text("\n".join(words), encoding="utf-8")
    with pytest.raises(ValueError, match=r"NaN or infinite in .*words\.txt:2; mend or drop these sentences, or check"):
        encode(model, path, tmp_path / "s")


def test_what_was_mended_goes_on(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are refused in the first shard, or in the third; the text is mended, or other numbers are kept."""
    path, lines = tmp_path / "text.txt", SENTENCES[:50]
    embed, made = type(model).encode, []

    def broken(self: Any, sentences: list[str], **options: Any) -> Any:
        vectors = embed(self, sentences, **options).clone()
        made.append(len(sentences))
        vectors[[text == "bad" for text in sentences]] = float("nan")
        return vectors

    monkeypatch.setattr(type(model), "encode", broken)
    for row in (3, 43):
        out = tmp_path / f"store{row}"
        for dtype in ("float32", "float16"):
            path.write_text("\n".join([*lines[:row], "bad", *lines[row:]]), encoding="utf-8")
            with pytest.raises(ValueError, match=rf"text\.txt:{row + 1}; mend"):
                encode(model, path, out, shard_rows=20, dtype=dtype)
            assert out.exists() == (row > 20)
        path.write_text("\n".join(lines), encoding="utf-8")
        made.clear()
        encode(model, path, out, shard_rows=20, dtype="float16")
        assert made == ([20, 20, 10] if row == 3 else [10])  # what was whole before is not made again
        encode(model, path, tmp_path / f"whole{row}", shard_rows=20, dtype="float16")
        assert contents(out) == contents(tmp_path / f"whole{row}")


@pytest.mark.parametrize("name", ["batch_size", "shard_rows", "processes"])
def test_numbers_below_one(name: str, model: Any, text: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1: got 0"):
        encode(model, text, tmp_path / "s", **{name: 0})


def _dies(device: str | None) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _fails(message: str, device: str | None) -> Any:
    raise ValueError(message)


def _windows() -> Iterator[Window]:
    return (Window(number, [Row("a", number + 1, None, "x")]) for number in range(5))


def test_a_process_that_is_killed_or_fails() -> None:
    with pytest.raises(ChildProcessError, match=r"was killed \(exit status -9\).* run the same command again"):
        list(embed_in_processes(_dies, _windows(), {}, processes=2))
    with pytest.raises(ValueError, match="ValueError in a process that embeds: no such model"):
        list(embed_in_processes(partial(_fails, "no such model"), _windows(), {}, processes=2))


class _Echo:
    """As slow as it is asked to be, with a number a sentence."""

    def encode(self, sentences: list[str], **options: Any) -> Any:
        import time

        import torch

        time.sleep(float(sentences[0]))
        return torch.tensor([[float(sentence)] for sentence in sentences])


def _echo(device: str | None) -> Any:
    return _Echo()


def test_results_come_in_order_however_long_they_take() -> None:
    naps = [0.3, 0.0, 0.01, 0.0, 0.2, 0.0, 0.0]
    windows = (Window(number, [Row("a", 1, None, str(nap))]) for number, nap in enumerate(naps))
    found = list(embed_in_processes(_echo, windows, {}, processes=3))
    assert [window.number for window, _ in found] == list(range(7))
    assert [float(vectors[0, 0]) for _, vectors in found] == pytest.approx(naps)


def test_processes_end_with_their_parent() -> None:
    """However it ends: all that they see is that the other end of their pipe is gone."""
    from st_xling.mining.encoding import _work

    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_work, args=(theirs, _echo, "cpu", 1, {}), daemon=True)
    process.start()
    theirs.close()
    ours.send(["0.5"])  # it is at work when
    ours.close()
    process.join(30)
    assert process.exitcode == 0
