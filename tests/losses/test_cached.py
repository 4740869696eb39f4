"""The cached loss is the uncached one: values, gradients, accumulation, autocast, dropout."""

import pytest
import torch

from st_xling import losses

SUMS = {
    "tr": lambda model: losses.TranslationRankingLoss(model, margin=0.3),
    "dap": lambda model: losses.TranslationRankingLoss(model) + 0.7 * losses.RepresentationTranslationLoss(model),
    "rtl both": lambda model: losses.RepresentationTranslationLoss(model, direction="both", tied=False) * 0.5,
    "wa": lambda model: losses.WordAlignmentLoss(model) + losses.TranslationRankingLoss(model),
    "contrastive": lambda model: (
        losses.SemanticContrastiveLoss(model)
        + 0.1 * losses.LanguageContrastiveLoss(model)
        + losses.InBatchRankingLoss(model)
    ),
    "siamese": lambda model: losses.SiameseContrastiveLoss(model, margin=3.0),
}


def gradients(loss, batch, labels=None):
    """The value, and the gradient of each parameter that has one."""
    loss.zero_grad()
    value = loss(batch, labels)
    value = sum(value.values()) if isinstance(value, dict) else value
    value.backward()
    return value.item(), {name: p.grad.clone() for name, p in loss.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(("name", "size"), [*((name, 2) for name in SUMS), ("dap", 6), ("dap", 32)])
def test_value_and_gradients_are_those_of_the_uncached_loss(make_model, features, name, size):
    model = make_model().double()
    loss = SUMS[name](model).double()
    expected, plain = gradients(loss, features(model))
    wrapped = losses.CachedLoss(loss, mini_batch_size=size)
    value, cached = gradients(wrapped, features(model))
    assert value == pytest.approx(expected, rel=1e-9)
    cached = {key.removeprefix("loss."): gradient for key, gradient in cached.items()}
    assert len(list(wrapped.parameters())) == len(list(loss.parameters()))
    with torch.no_grad():  # components keep their names and weights
        torch.testing.assert_close(wrapped(features(model)), loss(features(model)))
    torch.testing.assert_close({key: cached[key] for key in plain}, plain, rtol=1e-7, atol=1e-11)


def test_dropout_is_replayed(make_model, features):
    """With dropout, the gradient must be that of the embeddings of the first pass.

    A function of one term, its value v and gradient g: along -g the loss, computed under the same dropout, falls as
    v - eps |g|^2. A second pass with other masks would give a gradient that does not predict this.
    """
    model = make_model(dropout=0.3).train()
    loss = losses.CachedLoss(losses.TranslationRankingLoss(model), mini_batch_size=4)
    torch.manual_seed(3)
    loss(features(model))
    after_first = torch.get_rng_state()
    torch.manual_seed(3)
    value, grads = gradients(loss, features(model))
    assert torch.equal(torch.get_rng_state(), after_first)  # which goes on as if nothing was replayed
    squared = sum(float(g.double().square().sum()) for g in grads.values())
    step = 1e-3 / squared**0.5
    with torch.no_grad():
        for name, parameter in loss.named_parameters():
            if name in grads:
                parameter -= step * grads[name]
    torch.manual_seed(3)
    moved = loss(features(model)).item()
    assert (value - moved) / (step * squared) == pytest.approx(1.0, abs=0.05)


def test_gradients_accumulate_and_scale(make_model, features):
    model = make_model().double()
    loss = SUMS["dap"](model).double()
    _, plain = gradients(loss, features(model))
    cached = losses.CachedLoss(loss, mini_batch_size=4)
    cached.zero_grad()
    for scale in (0.25, 0.75):
        (sum(cached(features(model)).values()) * scale).backward()
    found = {key: parameter.grad for key, parameter in loss.named_parameters() if key in plain}
    torch.testing.assert_close(found, plain, rtol=1e-6, atol=1e-10)


def test_bf16_autocast(make_model, features):
    torch.manual_seed(0)  # a new vocabulary head is drawn; some gradients are small, so that bfloat16 shows
    model = make_model()
    loss = SUMS["dap"](model)
    results = []
    for part in (loss, losses.CachedLoss(loss, mini_batch_size=4)):
        part.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = sum(part(features(model)).values())
        value.backward()
        results += [value.item(), {key: p.grad.clone() for key, p in loss.named_parameters() if p.grad is not None}]
    expected, plain, value, cached = results
    assert value == pytest.approx(expected, rel=1e-2)
    for name, gradient in plain.items():
        assert (cached[name] - gradient).norm() / gradient.norm().clamp(min=1e-3) < 0.1, name


def test_errors(make_model, features):
    model = make_model()
    loss = losses.TranslationRankingLoss(model)
    with pytest.raises(ValueError, match="mini_batch_size .* got 3"):
        losses.CachedLoss(loss, mini_batch_size=3)
    with pytest.raises(ValueError, match="wrap the whole sum"):
        losses.CachedLoss(loss) + loss
    value = losses.CachedLoss(loss)(features(model))
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backpropagated once"):
        value.backward()

    class DeepSpeedEngine(torch.nn.Module):
        pass

    wrapped = losses.CachedLoss(loss)
    wrapped.model = DeepSpeedEngine()
    with pytest.raises(ValueError, match="DeepSpeed"):
        wrapped(features(model))


def test_languages_reach_the_terms(make_model, features):
    """Cut into mini-batches, rows lost their languages: the head then rebuilt every one as if it were the first."""
    model = make_model()
    loss = losses.RepresentationTranslationLoss(model, direction="source", languages=["de", "fr", "en"])
    torch.nn.init.normal_(loss.head.language_embeddings.weight)

    def batch():
        languages = (torch.tensor([0, 1] * 4), torch.full((8,), 2))
        return [{**column, "language": ids} for column, ids in zip(features(model), languages)]

    assert losses.CachedLoss(loss, mini_batch_size=2)(batch()).item() == pytest.approx(loss(batch()).item(), rel=1e-5)
