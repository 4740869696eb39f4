"""What every objective in ``losses.__all__`` must have, checked before a reviewer does; a new one needs no more."""

import inspect

import pytest
import torch
from sentence_transformers import InputExample
from torch.utils.data import DataLoader

from st_xling import losses
from st_xling.losses.base import CrossLingualLoss

CLASSES = [
    cls
    for name in losses.__all__
    if inspect.isclass(cls := getattr(losses, name)) and issubclass(cls, CrossLingualLoss) and name.endswith("Loss")
]
BASES = (CrossLingualLoss, losses.TokenLevelLoss, losses.CombinedLoss, losses.CachedLoss)


class NewObjectiveLoss(CrossLingualLoss):
    """Squared distance of translations: all that an objective of one's own takes.

    Args:
        model: The ``SentenceTransformer`` to train.
        scale: Of the distances.

    References: None. Requirements: Parallel pairs. Inputs: Pairs. Relations: None. Example: ``NewObjectiveLoss(model)``
    """

    citation = "@misc{nobody, title = {None}}"
    options = ("scale",)

    def __init__(self, model, *, scale: float = 1.0):
        super().__init__(model)
        self.scale = scale

    def compute_loss(self, batch, labels):
        source, target = (column["sentence_embedding"] for column in batch[:2])
        gathered = losses.GatheredBatch.of(source)
        return gathered.mean(self.scale * (source - target).square().sum())


OBJECTIVES = [*(cls for cls in CLASSES if cls not in BASES), NewObjectiveLoss]
FUNCTIONS = [f for name in losses.__all__ if name != "make" and inspect.isfunction(f := getattr(losses, name))]


@pytest.mark.parametrize("cls", OBJECTIVES, ids=lambda cls: cls.__name__)
def test_the_documentation_has_every_section(cls):
    text = inspect.getdoc(cls) or ""
    for section in ("Args:", "References:", "Requirements:", "Inputs:", "Relations:", "Example:"):
        assert section in text, f"{cls.__name__} lacks {section}"
    for name in list(inspect.signature(cls.__init__).parameters)[1:]:
        assert f"{name}:" in text, f"{cls.__name__} does not describe {name}"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_functions_give_shapes_units_errors_and_source(function):
    text = inspect.getdoc(function) or ""
    for section in ("Args:", "*Shape:*", "Returns:", "Raises:", "Source:", "Example:", "nats"):
        assert section in text, f"{function.__name__} lacks {section}"
    parameters = inspect.signature(function).parameters.values()
    keyword = [p.name for p in parameters if p.default is not p.empty and p.name != "others"]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters if p.name in keyword)


@pytest.mark.parametrize("cls", OBJECTIVES, ids=lambda cls: cls.__name__)
def test_options_are_keyword_only_and_reach_the_card(cls, make_model):
    parameters = list(inspect.signature(cls.__init__).parameters.values())[2:]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters)
    loss = cls(make_model())
    assert set(loss.get_config_dict()) <= {p.name for p in parameters}
    assert loss.citation.strip().startswith("@")


@pytest.mark.parametrize("cls", OBJECTIVES, ids=lambda cls: cls.__name__)
def test_it_is_a_finite_scalar_that_trains_the_encoder(cls, make_model, features):
    model = make_model()
    loss = cls(model)
    value = loss(features(model), None)
    assert value.shape == () and torch.isfinite(value)
    value.backward()
    assert sum(p.grad.abs().sum() for p in model.parameters() if p.grad is not None) > 0
    total = losses.CachedLoss(losses.TranslationRankingLoss(model) + 0.5 * cls(model), mini_batch_size=2)
    assert len(total(features(model))) == 2


@pytest.mark.parametrize("cls", OBJECTIVES, ids=lambda cls: cls.__name__)
def test_it_trains_by_fit_as_it_stands(cls, make_model, pairs, tmp_path):
    model = make_model()
    loss = cls(model)
    before = {name: p.detach().clone() for name, p in loss.named_parameters()}
    loader = DataLoader([InputExample(texts=list(pair)) for pair in pairs], batch_size=4)
    model.fit([(loader, loss)], epochs=1, warmup_steps=0, show_progress_bar=False, checkpoint_path=str(tmp_path))
    assert any(not torch.equal(p, before[name]) for name, p in loss.named_parameters())
