"""The cached loss is the uncached one: values, gradients, accumulation, autocast, dropout."""

import itertools

import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling import losses
from st_xling.losses.mini_batches import MiniBatchSize, order_by_length, row_lengths
from tests.conftest import PAIRS

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
    "projection": lambda model: losses.TranslationRankingLoss(model, projection=True) + losses.KoleoLoss(model),
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


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("tokens", [1, 40, 150])
def test_mini_batches_of_tokens_give_the_same(make_model, features, name, tokens):
    """Rows are sorted by length for it; of an odd batch the last row has no neighbor (RTL rebuilds rows in turn)."""
    model = make_model().double()
    torch.manual_seed(0)
    loss = SUMS[name](model).double()

    def batch():
        return features(model, slice(0, 7))

    expected, plain = gradients(loss, batch())
    value, cached = gradients(losses.CachedLoss(loss, mini_batch_num_tokens=tokens), batch())
    assert value == pytest.approx(expected, rel=1e-9)
    cached = {key.removeprefix("loss."): gradient for key, gradient in cached.items()}
    torch.testing.assert_close({key: cached[key] for key in plain}, plain, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("name", ["tr", "dap"])
def test_no_mini_batch_has_more_tokens(make_model, name):
    """ST's budget counts tokens without padding: one long text among short ones padded 1,024 of them to 50,500."""
    model = make_model(max_length=200)
    texts = ["Ja."] * 40 + ["Wo ist der Hund? " * 20] + ["Nein, danke."] * 40
    columns = [model.preprocess(side) for side in (texts, texts[::-1])]
    longest = columns[0]["input_ids"].shape[1]
    shapes = []
    hook = model[0].register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0]["input_ids"].shape))
    budget = 4 * longest
    loss = SUMS[name](model)
    gradients(losses.CachedLoss(loss, mini_batch_num_tokens=budget), columns)
    hook.remove()
    assert max(rows * width for rows, width in shapes) <= budget
    assert 2 * len(texts) == sum(rows for rows, _ in shapes) / 2  # each text twice
    assert len(shapes) < 12


@pytest.mark.parametrize("unit", [1, 2])
def test_mini_batches_are_of_rows_of_like_length(unit):
    lengths = torch.tensor([3, 9, 4, 8, 2, 2, 7])
    order = order_by_length(lengths, unit=unit)
    assert sorted(order.tolist()) == list(range(7))
    ordered = lengths[order].tolist()
    ranges = MiniBatchSize(rows=32, tokens=18).split(ordered, columns=1, unit=unit)
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])] and ranges[-1][1] == 7
    assert all(begin % unit == 0 for begin, _ in ranges)
    assert all((end - begin) * max(ordered[begin:end]) <= 18 for begin, end in ranges)
    assert row_lengths({"attention_mask": torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 0]])}).tolist() == [2, 3, 0]


def test_a_batch_that_fits_is_encoded_once(make_model, features):
    model = make_model()
    calls = []
    hook = model[0].register_forward_hook(lambda *_: calls.append(1))
    for name in ("tr", "dap"):
        for size, passes in (({"mini_batch_size": 8}, 1), ({"mini_batch_num_tokens": 10_000}, 1), ({}, 1)):
            calls.clear()
            gradients(losses.CachedLoss(SUMS[name](model), **size), features(model))
            assert len(calls) == passes
    hook.remove()


def test_heads_learn_at_the_scale_of_the_loss(make_model, features):
    """The cache differentiates by a projection in the forward pass, before the loss is divided for accumulation."""
    model = make_model().double()
    loss = SUMS["projection"](model).double()
    _, plain = gradients(loss, features(model))
    cached = losses.CachedLoss(loss, mini_batch_size=2)
    cached.zero_grad()
    for scale in (0.25, 0.75):
        (sum(cached(features(model)).values()) * scale).backward()
    by_cache = {name: parameter.grad for name, parameter in loss.named_parameters() if name in plain}
    assert any("projection" in name for name in by_cache)
    torch.testing.assert_close(by_cache, plain, rtol=1e-6, atol=1e-10)


def test_components_are_summed_as_they_are(make_model, features):
    """Only the gradient of their sum is cached: another sum of them would have a wrong gradient."""
    model = make_model()
    loss = losses.CachedLoss(losses.TranslationRankingLoss(model) + losses.KoleoLoss(model), mini_batch_size=2)
    first, second = loss(features(model)).values()
    with pytest.raises(ValueError, match=r"got the weights \[1.0, 0.5\]; weight its terms instead"):
        (first + 0.5 * second).backward()


def test_labels_follow_their_rows(make_model, features):
    """Rows are sorted in mini-batches of token-level terms, and so are their labels."""

    class WeightedTokens(losses.TokenLevelLoss):
        def compute_parts(self, batch, labels):
            states = batch[0]["token_embeddings"]
            mask = batch[0]["attention_mask"].to(torch.double)
            return [((states.square().sum(dim=2) * mask).sum(dim=1) @ labels, mask.sum())]

    model = make_model().double()
    labels = torch.linspace(-1, 2, len(PAIRS), dtype=torch.double)
    loss = WeightedTokens(model)
    expected = gradients(loss, features(model), labels)
    cached = gradients(losses.CachedLoss(loss, mini_batch_size=2), features(model), labels)
    assert cached[0] == pytest.approx(expected[0], rel=1e-9)
    torch.testing.assert_close([*cached[1].values()], [*expected[1].values()], rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("size", [{"mini_batch_size": 2}, {"mini_batch_num_tokens": 60}])
def test_prompts_are_left_out_of_the_pooling_in_both_passes(make_model, size):
    """The pooling masks the prompt's tokens; the second pass must still attend to them."""
    model = make_model(max_length=40).double()
    model[1].include_prompt = False
    loss = losses.TranslationRankingLoss(model)

    def batch():
        return [model.preprocess(list(side), prompt="query: ") for side in zip(*PAIRS)]

    assert batch()[0]["prompt_length"] > 1
    expected, plain = gradients(loss, batch())
    value, cached = gradients(losses.CachedLoss(loss, **size), batch())
    assert value == pytest.approx(expected, rel=1e-9)
    torch.testing.assert_close([*cached.values()], [*plain.values()], rtol=1e-7, atol=1e-11)
    model[1].include_prompt = True
    assert loss(batch()).item() != pytest.approx(expected, rel=1e-4)


class FlatWords(torch.nn.Module):
    """Word embeddings of texts behind each other, as ST's batches without padding have them; their mean."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 8).double()

    def forward(self, features):
        starts = features["cu_seq_lens_q"]
        states = self.words(features["input_ids"][0]).tanh()
        texts = [states[begin:end].mean(dim=0) for begin, end in itertools.pairwise(starts.tolist())]
        return {**features, "sentence_embedding": torch.stack(texts)}

    def save(self, *_, **__):
        raise NotImplementedError


@pytest.mark.parametrize("size", [{"mini_batch_size": 2}, {"mini_batch_num_tokens": 6}])
def test_batches_without_padding(size):
    """Tokens of all texts stand in one row, which the cache of sentence-transformers cuts. Equal texts are masked."""
    torch.manual_seed(0)
    model = SentenceTransformer(modules=[FlatWords()], device="cpu")
    loss = losses.TranslationRankingLoss(model)

    def batch():
        columns = []
        for lengths in ([3, 1, 4, 2, 2], [2, 2, 5, 1, 1]):
            ids = torch.arange(sum(lengths)) * 7 % 50
            ids[-1] = ids[-2]  # the last two targets are equal
            starts = torch.tensor([0, *itertools.accumulate(lengths)])
            columns.append({"input_ids": ids[None], "cu_seq_lens_q": starts, "cu_seq_lens_k": starts})
        return columns

    expected, plain = gradients(loss, batch())
    value, cached = gradients(losses.CachedLoss(loss, **size), batch())
    assert value == pytest.approx(expected, rel=1e-9)
    torch.testing.assert_close([*cached.values()], [*plain.values()], rtol=1e-7, atol=1e-11)
    assert losses.TranslationRankingLoss(model, mask_duplicates=False)(batch()).item() > expected + 1e-3


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
    by_cache = {key: parameter.grad for key, parameter in loss.named_parameters() if key in plain}
    torch.testing.assert_close(by_cache, plain, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("name", ["dap", "contrastive"])
def test_bf16_autocast(make_model, features, name, backward_inside):
    """Also where the backward pass is inside: weights that the first pass cast have no gradient."""
    torch.manual_seed(0)  # a new vocabulary head is drawn; some gradients are small, so that bfloat16 shows
    model = make_model()
    loss = SUMS[name](model)
    results = []
    for part in (loss, losses.CachedLoss(loss, mini_batch_size=4)):
        part.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = sum(part(features(model)).values())
            if backward_inside:
                value.backward()
        if not backward_inside:
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
    with pytest.raises(ValueError, match="mini_batch_num_tokens .* got 0"):
        losses.CachedLoss(loss, mini_batch_num_tokens=0)
    for name in ("tr", "dap"):
        value = losses.CachedLoss(SUMS[name](model), mini_batch_size=2)(features(model))
        value = value if name == "tr" else sum(value.values())
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
