"""Vectors of all layers from one pass: those that each cut encoder gives by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from st_xling.models.layers import cut_to_layer
from st_xling.training.adapter import Column, layer_vectors

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂", "", "a " * 40, "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา"]


def test_every_layer_as_the_encoder_that_ends_there(make_model: Callable[..., Any]) -> None:
    model = make_model(layers=3).eval()
    columns = [Column(1), Column(2), Column(3), Column(3, "cls")]
    found = layer_vectors(model, TEXTS, columns, batch_size=2)
    for column in columns:
        expected = cut_to_layer(model, column.layer, pooling=column.pooling).encode(TEXTS)
        np.testing.assert_allclose(found[column], expected, rtol=0, atol=1e-5)
    assert np.abs(found[columns[0]] - found[columns[1]]).max() > 1e-3


def test_layers_above_are_not_computed(make_model: Callable[..., Any]) -> None:
    model = make_model(layers=3).eval()
    calls: list[int] = []
    for number, layer in enumerate(model[0].auto_model.encoder.layer, start=1):
        layer.register_forward_hook(lambda *_, number=number: calls.append(number))
    layer_vectors(model, TEXTS[:2], [Column(2)])
    # The cut is checked against the whole encoder once, on one text.
    assert calls.count(3) == 1 and calls.count(2) == 3


def test_a_layer_that_is_not_there(make_model: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="layer must be from 1 to 2: got 7; BertModel has 2 layers"):
        layer_vectors(make_model(), TEXTS, [Column(1), Column(7)])
