"""Normalization of vectors: each step by its definition; saved, it is what ST loads alone; bad input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.models import fit_postprocessing
from st_xling.models.normalization import Centering, apply_centering, find_centering, fit_centering, language_routes
from st_xling.models.sidecar import model_fingerprint

TEXTS = ["我买了三本旧书。", "Tôi đã gặp cô ấy hôm qua.", "cafe\u0301 🙂"]
LANGUAGES = ["zh", "vi", "th"] * 40


def unit(vector: list[float]) -> list[float]:
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector]


@pytest.mark.parametrize("center", ["per_language", "joint"])
def test_centering_by_definition(center: Any) -> None:
    """Plain loops; languages count alike in the joint mean, however many texts they have."""
    vectors = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    languages = ["zh", "vi", "vi", "zh", "vi", "vi", "th", "th"]
    means = {}
    for code in ("zh", "vi", "th"):
        units = [unit(row) for row, language in zip(vectors.tolist(), languages) if language == code]
        means[code] = [sum(column) / len(units) for column in zip(*units)]
    joint = [sum(column) / 3 for column in zip(*means.values())]
    centering = fit_centering(vectors, languages, center)
    assert centering is not None
    for code in ("zh", "vi", "th", "en", None):
        mean = means.get(str(code), joint) if center == "per_language" else joint
        expected = [unit([value - less for value, less in zip(unit(row), mean)]) for row in vectors.tolist()]
        torch.testing.assert_close(centering(vectors, code), torch.tensor(expected).double(), rtol=0, atol=1e-7)


def test_centering_saved_and_put_off(make_model: Callable[..., Any], tmp_path: Path) -> None:
    plain = make_model().eval()
    centering = Centering(torch.full((16,), 0.1), {"zh": torch.full((16,), 0.2), "zh-TW": torch.full((16,), -0.1)})
    assert find_centering(plain) is None and language_routes(plain) == []
    for fitted in (centering, Centering(centering.joint, {})):
        apply_centering(plain, fitted).save_pretrained(str(tmp_path / "model"))
        loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
        assert language_routes(loaded) == sorted(fitted.languages)
        assert model_fingerprint(loaded) != model_fingerprint(plain)
        loaded_centering = find_centering(loaded)
        assert loaded_centering is not None
        torch.testing.assert_close(
            (loaded_centering.joint, loaded_centering.languages), (fitted.joint, fitted.languages), rtol=0, atol=0
        )
        bare = apply_centering(loaded, None)
        np.testing.assert_allclose(bare.encode(TEXTS), plain.encode(TEXTS), rtol=0, atol=1e-6)
        expected = fitted(torch.from_numpy(plain.encode(TEXTS)), "zh").numpy()
        task = {"task": "zh"} if fitted.languages else {}
        np.testing.assert_allclose(loaded.encode(TEXTS, **task), expected, rtol=0, atol=1e-6)


def unequal(dim: int = 5) -> torch.Tensor:
    """Vectors of three languages, each with an offset, and directions of unequal variance."""
    random = torch.Generator().manual_seed(0)
    vectors = torch.randn(120, dim, generator=random) * torch.linspace(2, 0.3, dim)
    return vectors + torch.randn(3, dim, generator=random).repeat(40, 1)


def test_languages_removed() -> None:
    """No direction is left in which means differ; what is across to them stays."""
    steps = fit_postprocessing(unequal(), LANGUAGES, remove_languages=True)
    weight = steps.projections["languages removed"][0].linear.weight.detach()
    units = torch.nn.functional.normalize(unequal(), dim=-1)
    means = torch.stack([units[language::3].mean(0) for language in range(3)]) @ weight.T
    torch.testing.assert_close(means, means[:1].expand(3, -1), rtol=0, atol=1e-6)
    torch.testing.assert_close(weight @ weight, weight, rtol=0, atol=1e-6)
    assert torch.linalg.matrix_rank(weight) == 3  # two directions of three languages went


def test_whitening_and_pca() -> None:
    """Before unit length: covariance near the identity; of PCA diagonal, greatest first, as numpy finds it."""
    units = torch.nn.functional.normalize(unequal(), dim=-1)
    [[dense, _]] = fit_postprocessing(unequal(), LANGUAGES, whiten=True).projections.values()
    whitened = dense.linear(units).detach()
    assert torch.allclose(torch.cov(whitened.T), torch.eye(5), atol=0.15) and whitened.mean(0).abs().max() < 1e-5
    [[dense, _]] = fit_postprocessing(unequal(), LANGUAGES, dim=2).projections.values()
    variances = torch.cov(dense.linear(units).detach().T, correction=0)
    expected = np.linalg.eigvalsh(np.cov(units.numpy().T, bias=True))[::-1][:2]
    np.testing.assert_allclose(variances, np.diag(expected), rtol=0, atol=1e-6)


STEPS: list[dict[str, Any]] = [
    {"center": "joint"},
    {"center": "per_language", "whiten": True},
    {"remove_languages": True, "dim": 3},
    {"center": Centering(torch.full((16,), 0.1), {"zh": torch.full((16,), 0.2)}), "dim": 4},
]


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_saved_for_sentence_transformers_alone(
    options: dict[str, Any], make_model: Callable[..., Any], tmp_path: Path
) -> None:
    model = make_model().eval()
    steps = fit_postprocessing(unequal(16), LANGUAGES, **options)
    steps.apply(model).save_pretrained(str(tmp_path / "model"))
    loaded = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert loaded.get_embedding_dimension() == options.get("dim", 16)
    vectors = torch.from_numpy(model.encode(TEXTS))
    by_language = steps.centering is not None and bool(steps.centering.languages)
    expected = list(steps.stages(vectors, "zh").values())[-1]
    task = {"task": "zh"} if by_language else {}
    np.testing.assert_allclose(loaded.encode(TEXTS, **task), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS), vectors, rtol=0, atol=1e-6)  # the source stays as it is
    # A centering alone is one that evaluations know, and replace.
    assert (find_centering(loaded) is not None) == (not steps.projections)


def test_bad_input() -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({}, 120, "nothing to do"),
        ({"dim": 6}, 120, "from 1 to 5, the model's dimensions: got 6"),
        ({"whiten": True}, 5, "whitening 5 dimensions needs more texts than that: got 5"),
        ({"dim": 3}, 3, "3 dimensions needs more texts than that: got 3"),
    ]
    for options, rows, message in cases:
        with pytest.raises(ValueError, match=message):
            fit_postprocessing(unequal()[:rows], LANGUAGES[:rows], **options)
    # Texts without a language were left out of the means in silence.
    with pytest.raises(ValueError, match="languages must have one for each text: got 3 for 120"):
        fit_postprocessing(unequal(), LANGUAGES[:3], center="per_language")
    with pytest.raises(ValueError, match="got 1 for 2"):
        fit_centering(torch.eye(2), ["zh"])
    with pytest.raises(ValueError, match="center must be one of .* got 'language'"):
        fit_centering(torch.eye(2), ["zh", "vi"], "language")  # type: ignore[arg-type]
    assert fit_centering(torch.eye(2), ["zh", "vi"], "none") is None
