"""Encoding: the model's own vectors, in the rows' order, also after an interruption."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.mining import EncodingOptions, encode
from st_xling.mining.vectors import vectors_from
from st_xling.models.encoding import encode as embed
from st_xling.utils.options import StoreDtype
from tests.conftest import PAIRS
from tests.mining.test_store import contents

#: 480 sentences of different lengths, with tabs.
SENTENCES = []
for row in range(480):
    clauses = [PAIRS[(row * 5 + number) % 8][row % 2] for number in range(row % 4 + 1)]
    SENTENCES.append(f"{row % 7}\t{' '.join(clauses)}")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "news.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


def test_a_prompt_is_put_before(model: Any, text: Path, tmp_path: Path) -> None:
    store = encode(model, text, tmp_path / "s", encoding=EncodingOptions(prompt="query: ", batch_size=32))
    expected = model.encode(SENTENCES, prompt="query: ", normalize_embeddings=True)
    np.testing.assert_allclose(store[:], expected, atol=1e-5)
    assert "|prompt:query: |" in store.signature
    with pytest.raises(ValueError, match="prompt was query: , is now None"):
        encode(model, text, tmp_path / "s", encoding=EncodingOptions(batch_size=32))


def test_a_finished_store_is_left_alone(model: Any, text: Path, tmp_path: Path) -> None:
    """The same command again costs no hours, whatever the file is called by now."""
    out = encode(model, text, tmp_path / "s", shard_rows=100).path
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    renamed = text.rename(text.with_name("renamed.txt"))
    assert encode(model, renamed, out, shard_rows=100).rows == len(SENTENCES)
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before


def test_numbers_below_one(model: Any, text: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shard_rows must be at least 1: got 0"):
        encode(model, text, tmp_path / "s", shard_rows=0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_are_the_model_s_vectors(dtype: StoreDtype, model: Any, text: Path, tmp_path: Path) -> None:
    store = encode(model, text, tmp_path / "s", encoding=EncodingOptions(dtype=dtype, batch_size=16), shard_rows=100)
    assert store.manifest.shards == (100, 100, 100, 100, 80)
    expected = model.encode(SENTENCES, normalize_embeddings=True)
    tolerance = 1e-5 if dtype == "float32" else 1e-3
    np.testing.assert_allclose(store[:], expected, atol=tolerance)
    exact = embed(model, SENTENCES[100:200], normalize_embeddings=True, batch_size=16).astype(dtype)
    np.testing.assert_array_equal(store[100:200], exact)
    store.check_text(SENTENCES)
    assert store.manifest.settings["batch_size"] == 16
    assert store.signature.startswith("encode|model:") and f"|rows:480|dim:16|dtype:{dtype}|" in store.signature


def test_long_sentences_and_blank_lines_are_counted(model: Any, tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "text").write_text("short\n" * 5 + " \n" + "word " * 200 + "\n", encoding="utf-8")
    for prompt, longer in ((None, 1), ("word " * 200, 7)):
        caplog.clear()
        store = encode(
            model,
            tmp_path / "text",
            tmp_path / f"{longer}.store",
            encoding=EncodingOptions(prompt=prompt),
            shard_rows=2,
        )
        assert f"{longer} of 7 sentences are longer than the model's maximum of " in caplog.text
        assert "1 lines without a sentence, kept" in caplog.text and store.manifest.text.blank_rows == [5]


def test_a_full_disk(model: Any, text: Path, tmp_path: Path) -> None:
    """The kernel refuses bytes of a shard; then it has room, and the same call ends."""
    options: dict[str, Any] = {"shard_rows": 20, "encoding": EncodingOptions(batch_size=16)}
    out = tmp_path / "out"
    uninterrupted = encode(model, text, tmp_path / "whole", **options)
    size = (uninterrupted.path / "shard-000000.safetensors").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, limits[1]))
    try:
        with pytest.raises(OSError, match=f"too large: {out}/shard-000000"):
            encode(model, text, out, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(out.glob("*"))
    np.testing.assert_allclose(encode(model, text, out, **options)[:], uninterrupted[:], atol=1e-6)


def test_another_command_is_refused(model: Any, make_model: Callable[..., Any], text: Path, tmp_path: Path) -> None:
    """Of another text, settings or model; with overwrite, a model of the same shape replaces what is there."""
    out = tmp_path / "s"
    as_it_was = text.read_text(encoding="utf-8")
    encode(model, text, out, shard_rows=100)
    before = contents(out)
    changed = make_model()
    shorter = make_model()
    next(changed.parameters()).data[0, 0] += 1
    shorter.max_seq_length = 8
    others: list[tuple[Any, str, dict[str, Any], str]] = [
        (model, as_it_was[:-9] + "other\n", {}, "text was"),
        (model, as_it_was + "Noch einer.\n", {}, "rows was 480, is now 481"),
        (model, as_it_was, {"encoding": EncodingOptions(dtype="float16")}, "dtype was float32, is now float16"),
        (model, as_it_was, {"encoding": EncodingOptions(batch_size=8)}, "batch_size was None, is now 8"),
        (changed, as_it_was, {}, r"model was \w{8}, is now \w{8}"),
        (shorter, as_it_was, {}, r"model was \w{8}, is now \w{8}"),
    ]
    for other, content, options, message in others:
        text.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=f"finished store of .*{message}"):
            encode(other, text, out, shard_rows=100, **options)
        assert contents(out) == before
    assert encode(changed, text, out, shard_rows=100, overwrite=True).rows == len(SENTENCES)


def test_vectors_of_other_types_and_prompts_are_not_mixed(
    model: Any, make_model: Callable[..., Any], text: Path, tmp_path: Path
) -> None:
    """Though stored in the same type; of a store without a model nothing is known."""
    made = {
        "plain": encode(model, text, tmp_path / "plain"),
        "half": encode(make_model().bfloat16(), text, tmp_path / "half"),
        "prompted": encode(model, text, tmp_path / "prompted", encoding=EncodingOptions(prompt="x ")),
    }
    assert "|computed:bfloat16|" in made["half"].signature and "computed" not in made["plain"].signature
    np.testing.assert_allclose(made["half"][:], made["plain"][:], atol=0.02)
    for other, facts in (("half", "dtype 'float32' and 'bfloat16'"), ("prompted", "prompt 'none' and 'x ' for ")):
        sides: dict[str, Any] = {"source": made["plain"].path, "target": made[other].path}
        with pytest.raises(ValueError, match=f"{facts}.*plain and .*{other}"):
            vectors_from(None, sides, dict.fromkeys(sides, 480), languages=dict.fromkeys(sides))
