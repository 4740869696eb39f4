"""Encoders that are stored in 16 bits: losses and their heads have 32, in any trainer."""

import copy
from typing import Any

import pytest
import torch

from st_xling import losses
from st_xling.models import VocabularyHead
from tests.losses.test_contract import OBJECTIVES, NewObjectiveLoss
from tests.losses.test_families import FAMILIES, families  # noqa: F401
from tests.losses.test_families import OBJECTIVES as TOKEN_LEVEL

OURS = [cls for cls in OBJECTIVES if cls is not NewObjectiveLoss]


def value_of(model: Any, loss: Any, features: Any) -> torch.Tensor:
    torch.manual_seed(1)  # of hidden words
    value = loss(features(model))
    assert value.dtype == torch.float32
    value.backward()
    return value.detach()


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.__name__)
def test_losses_are_computed_in_float32(cls: Any, cached: bool, make_model: Any, features: Any) -> None:
    """Cosines above 0.99 are equal in bfloat16, and a head's updates below 1/256 of a weight are rounded away.

    The encoder is rounded to bfloat16: read in float32 it gives almost the same value, from float32's head.
    """
    values = []
    for dtype in (torch.bfloat16, torch.float32):
        model = make_model().bfloat16().to(dtype)
        torch.manual_seed(0)  # of new heads
        loss = cls(model).eval()
        heads = [weight for name, weight in loss.named_parameters() if not name.startswith("model.")]
        assert {weight.dtype for weight in heads} <= {torch.float32}
        values.append(value_of(model, losses.CachedLoss(loss, mini_batch_size=4) if cached else loss, features))
        assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in heads)
        assert sum(weight.grad.abs().sum() for weight in model.parameters() if weight.grad is not None) > 0
    torch.testing.assert_close(values[0], values[1], rtol=5e-3, atol=5e-4)


def test_a_projection_has_32_bits(make_model: Any, features: Any) -> None:
    loss = losses.TranslationRankingLoss(make_model().bfloat16(), projection=True)
    value_of(loss.model, loss, features)
    assert {weight.dtype for weight in loss.projection.parameters()} == {torch.float32}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("objective", ["rtl", "tlm", "wa"])
def test_every_family(families: Any, features: Any, name: str, objective: str) -> None:  # noqa: F811
    model = copy.deepcopy(families(name)[0]).bfloat16()
    loss = TOKEN_LEVEL[objective](model).eval()
    value_of(model, loss, features)
    for part in loss.modules():
        if isinstance(part, VocabularyHead):
            assert {weight.dtype for weight in part.parameters()} == {torch.float32}
