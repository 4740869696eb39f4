"""Centring by language against plain loops, saved and taken off again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.models.centring import Centring, centred_model, fit_centring, language_routes, saved_centring
from st_xling.models.fingerprint import model_fingerprint

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]


def unit(vector: list[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


@pytest.mark.parametrize("centre", ["per_language", "joint"])
def test_centring_by_definition(centre: Any) -> None:
    """Plain loops; languages count alike in the joint mean, however many texts they have."""
    vectors = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    languages = ["zh", "vi", "vi", "zh", "vi", "vi", "th", "th"]
    means = {}
    for code in ("zh", "vi", "th"):
        own = [unit(row) for row, found in zip(vectors.tolist(), languages) if found == code]
        means[code] = [sum(column) / len(own) for column in zip(*own)]
    joint = [sum(column) / 3 for column in zip(*means.values())]
    centring = fit_centring(vectors, languages, centre)
    assert centring is not None
    for code in ("zh", "vi", "th", "en", None):
        mean = means.get(str(code), joint) if centre == "per_language" else joint
        expected = [unit([value - less for value, less in zip(unit(row), mean)]) for row in vectors.tolist()]
        torch.testing.assert_close(centring(vectors, code), torch.tensor(expected).double(), rtol=0, atol=1e-7)


def test_centring_saved_and_put_off(make_model: Callable[..., Any], tmp_path: Path) -> None:
    plain = make_model().eval()
    centring = Centring(torch.full((16,), 0.1), {"zh": torch.full((16,), 0.2), "zh-TW": torch.full((16,), -0.1)})
    assert saved_centring(plain) is None and language_routes(plain) == []
    for given in (centring, Centring(centring.joint, {})):
        centred_model(plain, given).save_pretrained(str(tmp_path / "model"))
        loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
        assert language_routes(loaded) == sorted(given.languages)
        assert model_fingerprint(loaded) != model_fingerprint(plain)
        found = saved_centring(loaded)
        assert found is not None and torch.equal(found.joint, given.joint)
        assert {name: mean.tolist() for name, mean in found.languages.items()} == {
            name: mean.tolist() for name, mean in given.languages.items()
        }
        bare = centred_model(loaded, None)
        np.testing.assert_allclose(bare.encode(TEXTS), plain.encode(TEXTS), rtol=0, atol=1e-6)
        expected = given(torch.from_numpy(plain.encode(TEXTS)), "zh").numpy()
        task = {"task": "zh"} if given.languages else {}
        np.testing.assert_allclose(loaded.encode(TEXTS, **task), expected, rtol=0, atol=1e-6)


def test_faults_of_centring() -> None:
    with pytest.raises(ValueError, match="centre must be one of .* got 'language'"):
        fit_centring(torch.eye(2), ["zh", "vi"], "language")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 2 vectors, 1 languages"):
        fit_centring(torch.eye(2), ["zh"])
    assert fit_centring(torch.eye(2), ["zh", "vi"], "none") is None
