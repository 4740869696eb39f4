"""Post-processing of vectors: each step by its definition; saved, it is what ST loads alone; bad input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.models import fit_postprocessing
from st_xling.models.centring import Centring, saved_centring

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]
LANGUAGES = ["zh", "vi", "th"] * 40


def unequal(dim: int = 5) -> torch.Tensor:
    """Vectors of three languages, each with an offset, and directions of unequal variance."""
    random = torch.Generator().manual_seed(0)
    vectors = torch.randn(120, dim, generator=random) * torch.linspace(2, 0.3, dim)
    return vectors + torch.randn(3, dim, generator=random).repeat(40, 1)


def last(steps: Any, vectors: torch.Tensor) -> torch.Tensor:
    rows = [list(steps.stages(row[None], code).values())[-1] for row, code in zip(vectors, LANGUAGES)]
    return torch.cat(rows)


def test_languages_removed() -> None:
    """No direction is left in which means differ; what is across to them stays."""
    steps = fit_postprocessing(unequal(), LANGUAGES, remove_languages=True)
    weight = steps.projections["languages removed"].weight
    units = torch.nn.functional.normalize(unequal(), dim=-1)
    means = torch.stack([units[place::3].mean(0) for place in range(3)]) @ weight.T
    torch.testing.assert_close(means, means[:1].expand(3, -1), rtol=0, atol=1e-6)
    torch.testing.assert_close(weight @ weight, weight, rtol=0, atol=1e-6)
    assert torch.linalg.matrix_rank(weight) == 3  # two directions of three languages went


def test_whitening_and_pca() -> None:
    """Before unit length: covariance near the identity; of PCA diagonal, greatest first, as numpy finds it."""
    units = torch.nn.functional.normalize(unequal(), dim=-1)
    [whitened] = fit_postprocessing(unequal(), LANGUAGES, whiten=True).projections.values()
    spread = torch.cov((units @ whitened.weight.T + whitened.bias).T)
    assert torch.allclose(spread, torch.eye(5), atol=0.15)
    assert (units @ whitened.weight.T + whitened.bias).mean(0).abs().max() < 1e-5
    [reduced] = fit_postprocessing(unequal(), LANGUAGES, dim=2).projections.values()
    variances = torch.cov((units @ reduced.weight.T + reduced.bias).T, correction=0)
    expected = np.linalg.eigvalsh(np.cov(units.numpy().T, bias=True))[::-1][:2]
    np.testing.assert_allclose(variances, np.diag(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"centre": "joint"},
        {"centre": "per_language", "whiten": True},
        {"remove_languages": True, "dim": 3},
        {"centre": Centring(torch.full((16,), 0.1), {"zh": torch.full((16,), 0.2)}), "dim": 4},
    ],
    ids=str,
)
def test_saved_for_sentence_transformers_alone(
    options: dict[str, Any], make_model: Callable[..., Any], tmp_path: Path
) -> None:
    model = make_model().eval()
    steps = fit_postprocessing(unequal(16), LANGUAGES, **options)
    steps.apply(model).save_pretrained(str(tmp_path / "model"))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert loaded.get_embedding_dimension() == options.get("dim", 16)
    vectors = torch.from_numpy(model.encode(TEXTS))
    by_language = steps.centring is not None and bool(steps.centring.languages)
    expected = list(steps.stages(vectors, "zh").values())[-1]
    task = {"task": "zh"} if by_language else {}
    np.testing.assert_allclose(loaded.encode(TEXTS, **task), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS), vectors, rtol=0, atol=1e-6)  # the source stays as it is
    # A centring alone is one that evaluations know, and replace.
    assert (saved_centring(loaded) is not None) == (not steps.projections)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing to do"),
        ({"dim": 6}, "from 1 to 5, the model's dimensions: got 6"),
        ({"whiten": True, "rows": 5}, "whitening 5 dimensions needs more texts than that: got 5"),
        ({"dim": 3, "rows": 3}, "3 dimensions needs more texts than that: got 3"),
        ({"remove_languages": True, "rows": 1}, "two or more: got zh"),
        ({"centre": "both"}, "centre must be one of"),
    ],
    ids=str,
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    rows = options.pop("rows", 120)
    with pytest.raises(ValueError, match=message):
        fit_postprocessing(unequal()[:rows], LANGUAGES[:rows], **options)
