"""Sentence vectors of any layer: those of the cut encoder; cached, nothing encoded twice, one model a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from st_xling.models.view import cut_to_layer
from st_xling.training import sentence_vectors
from st_xling.training.sentence_vectors import Column, VectorCache, layer_vectors

MIXED = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", "", "a " * 40, "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา"]
TEXTS = [*MIXED[:3], "I met her yesterday."]


def test_every_layer_as_the_encoder_that_ends_there(make_model: Callable[..., Any]) -> None:
    model = make_model(layers=3).eval()
    columns = [Column(1), Column(2), Column(3), Column(3, "cls")]
    found = layer_vectors(model, MIXED, columns, batch_size=2)
    for column in columns:
        expected = cut_to_layer(model, column.layer, pooling=column.pooling).encode(MIXED)
        np.testing.assert_allclose(found[column], expected, rtol=0, atol=1e-5)
    assert np.abs(found[columns[0]] - found[columns[1]]).max() > 1e-3


COLUMNS = [Column(1), Column(2)]


@pytest.fixture(scope="module")
def model(make_model: Callable[..., Any]) -> Any:
    return make_model().eval()


def test_a_second_run_encodes_what_is_new(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = VectorCache(model, tmp_path / "cache")
    assert first.fill([*TEXTS[:3], TEXTS[0]], COLUMNS) == 3
    found = first.read([TEXTS[2], TEXTS[0], TEXTS[0]], Column(2))
    expected = layer_vectors(model, TEXTS[:3], COLUMNS)[Column(2)]
    np.testing.assert_array_equal(found, expected[[2, 0, 0]])

    again = VectorCache(model, tmp_path / "cache")
    assert again.fill(TEXTS, [Column(2)]) == 1
    assert again.fill(TEXTS[:3], COLUMNS) == 0
    assert again.fill(TEXTS, [Column(2, "cls")]) == 4, "another pooling is another column"
    monkeypatch.setattr(sentence_vectors, "layer_vectors", None)  # whatever would encode now, fails
    third = VectorCache(model, tmp_path / "cache")
    assert third.fill(TEXTS, [Column(2)]) == 0
    np.testing.assert_array_equal(third.read(TEXTS, Column(2))[:3], expected)


def test_another_model(model: Any, make_model: Callable[..., Any], tmp_path: Path) -> None:
    VectorCache(model, tmp_path / "cache", name="first")
    with pytest.raises(ValueError, match=r"holds vectors of another model: of first \(\w{16}\), not of second"):
        VectorCache(make_model(seed=1), tmp_path / "cache", name="second")
    shorter = make_model()
    shorter.max_seq_length = 8
    with pytest.raises(ValueError, match="weights, vocabulary and length must agree"):
        VectorCache(shorter, tmp_path / "cache")


def test_what_is_no_cache(model: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="--cache must be a folder of sentence vectors, or new"):
        VectorCache(model, tmp_path)
    with pytest.raises(ValueError, match="--cache must be a folder"):
        VectorCache(model, tmp_path / "notes.txt")
    cache = VectorCache(model, tmp_path / "cache")
    cache.fill(TEXTS, COLUMNS)
    [path] = cache.folder.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-200] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged; remove it"):
        [cache.read(TEXTS, column) for column in COLUMNS]
    path.write_bytes(content[:40])
    with pytest.raises(ValueError, match=r"safetensors is damaged .* remove it, and its texts are encoded again"):
        cache.fill(TEXTS, COLUMNS)
