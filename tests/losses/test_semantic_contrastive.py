"""semaCL and langCL against their definitions."""

from __future__ import annotations

import math

import pytest
import torch

from st_xling.losses import (
    LanguageContrastiveLoss,
    SemanticContrastiveLoss,
    language_contrastive,
    semantic_contrastive,
)
from tests import reference


def embeddings(*sizes: int, dim: int = 4, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(size, dim, generator=generator, dtype=dtype) for size in sizes)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_semantic_contrastive_equals_the_formula(size, temperature):
    source, target = embeddings(size, size)
    expected = reference.semantic_contrastive(source.tolist(), target.tolist(), temperature=temperature)
    value = semantic_contrastive(source, target, temperature=temperature)
    assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_language_contrastive_equals_the_formula(size, others):
    if size == 1 and others == 0:
        pytest.skip("nothing to compare with: an error, tested below")
    source, target, rest = embeddings(size, size, others)
    beside = rest if others else None
    expected = reference.language_contrastive(source.tolist(), target.tolist(), rest.tolist())
    assert language_contrastive(source, target, beside).item() == pytest.approx(expected, rel=1e-9)


def test_language_contrastive_is_least_where_nothing_tells_the_sides_apart():
    (source,) = embeddings(4)
    assert language_contrastive(source, source.clone()).item() == pytest.approx(math.log(2), rel=1e-12)
    other, rest = embeddings(4, 3)
    assert language_contrastive(source, -other, rest).item() > math.log(2)


@pytest.mark.parametrize("function", [semantic_contrastive, language_contrastive])
def test_symmetries(function):
    source, target = embeddings(5, 5)
    order = torch.tensor([3, 1, 4, 0, 2])
    value = function(source, target).item()
    assert function(target, source).item() == pytest.approx(value, rel=1e-12)
    assert function(source[order], target[order]).item() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", [semantic_contrastive, language_contrastive])
def test_gradients_are_finite(function, dtype):
    source, target = (part.to(dtype).requires_grad_() for part in embeddings(4, 4))
    function(source, target).backward()
    assert torch.isfinite(source.grad).all() and source.grad.abs().sum() > 0


def test_duplicate_sentences_stay_finite():
    source = torch.ones(3, 4, dtype=torch.float64)
    assert semantic_contrastive(source, source).item() == pytest.approx(math.log(5))
    assert language_contrastive(source, source).item() == pytest.approx(math.log(2))


def test_the_modules_feed_their_functions(make_model, features):
    model = make_model()
    columns = [dict(model(column))["sentence_embedding"] for column in features(model, slice(0, 4), (0, 1, 0))]
    value = SemanticContrastiveLoss(model, temperature=0.1)(features(model, slice(0, 4)))
    torch.testing.assert_close(value, semantic_contrastive(*columns[:2], temperature=0.1))
    value = LanguageContrastiveLoss(model)(features(model, slice(0, 4), (0, 1, 0)))
    torch.testing.assert_close(value, language_contrastive(*columns))


def test_bad_input(make_model, features):
    source, target = embeddings(3, 2)
    for function in (semantic_contrastive, language_contrastive):
        with pytest.raises(ValueError, match="row-aligned translations: got 3 and 2 rows"):
            function(source, target)
    with pytest.raises(ValueError, match=r"temperature must be above 0: got 0\.0"):
        semantic_contrastive(source, source, temperature=0.0)
    with pytest.raises(ValueError, match="temperature must be above 0"):
        SemanticContrastiveLoss(make_model(), temperature=-1.0)
    model = make_model()
    with pytest.raises(ValueError, match="needs a sentence besides the pair: got one pair and nothing else"):
        LanguageContrastiveLoss(model)(features(model, slice(0, 1)))
