"""Sentence vectors of any layer: those of the cut encoder; cached, nothing is encoded twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.models.view import cut_to_layer
from st_xling.training import sentence_vectors
from st_xling.training.sentence_vectors import LayerPooling, cached_vectors, check_cache, layer_vectors

MIXED = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", "", "a " * 40, "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา"]


def test_every_layer_as_the_encoder_that_ends_there(make_model: Callable[..., Any]) -> None:
    model = make_model(layers=3).eval()
    columns = [LayerPooling(1), LayerPooling(2), LayerPooling(3), LayerPooling(3, "cls")]
    matrices = layer_vectors(model, MIXED, columns)
    for column in columns:
        expected = cut_to_layer(model, column.layer, pooling=column.pooling).encode(MIXED)
        np.testing.assert_allclose(matrices[column.name], expected, rtol=0, atol=1e-5)
    assert np.abs(matrices["mean-1"] - matrices["mean-2"]).max() > 1e-3


def test_a_second_run_encodes_the_files_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Three texts a file, of which two are read at a time."""
    monkeypatch.setattr(sentence_vectors, "BATCH_TEXTS", 2)
    monkeypatch.setattr(sentence_vectors, "FILE_TEXTS", 3)
    seen: list[str] = []

    def encode(texts: list[str]) -> dict[str, np.ndarray]:
        seen.extend(texts)
        return {"size": np.float32([[len(text), text.count("a")] for text in texts])}

    def cached(texts: list[str], fingerprint: str = "one") -> tuple[Any, int]:
        seen.clear()
        vectors, encoded = cached_vectors(texts, ["size"], encode, fingerprint=fingerprint, folder=tmp_path / "cache")
        assert encoded == len(seen)
        return vectors["size"], encoded

    texts = [*MIXED, "I met her yesterday."]
    vectors, encoded = cached(texts)
    assert encoded == len(vectors) == 7 and vectors.dim == 2
    assert vectors.of([texts[4], texts[0], texts[4]]).tolist() == [[80, 40], [8, 0], [80, 40]]
    assert vectors[5:].tolist() == [[len(text), text.count("a")] for text in texts[5:]]
    assert cached(texts)[1] == 0
    again, encoded = cached([*texts[:3], "new", *texts[4:]])
    assert encoded == 3 and again.of(["new"]).tolist() == [[3, 0]]
    assert cached(texts, "another model")[1] == 7
    for path in (tmp_path / "cache").glob("*.arrow"):
        content = bytearray(path.read_bytes())
        content[-20] ^= 0x40
        path.write_bytes(content)
    assert cached(texts)[1] == 7 and "is damaged" in caplog.text
    assert cached(texts)[1] == 0


def test_a_file_is_no_cache(tmp_path: Path) -> None:
    """``--cache`` that names a file ended in "File exists", after the model had been loaded."""
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("notes.txt", "link"):
        with pytest.raises(ValueError, match=f"--cache must be a folder: .*{name} is a file or a broken link"):
            check_cache(tmp_path / name)
    check_cache(tmp_path / "new")
    check_cache(None)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
