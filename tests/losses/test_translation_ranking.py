"""TR against its definition, its symmetries, its edges and the host's loss."""

from __future__ import annotations

import itertools
import logging
import math

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_xling.losses import TranslationRankingLoss, translation_ranking
from st_xling.losses.translation_ranking import text_ids
from st_xling.training.checkpoint import own_state
from tests import reference

OPTIONS = list(itertools.product((0.0, 0.3), (1.0, 20.0), ("cosine", "dot"), (True, False)))


def embeddings(size: int = 5, dim: int = 4, seed: int = 0, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(size, dim, generator=generator, dtype=dtype) for _ in range(2))


@pytest.mark.parametrize(("margin", "scale", "similarity", "bidirectional"), OPTIONS)
def test_equals_the_formula(margin, scale, similarity, bidirectional):
    source, target = embeddings()
    options = {"margin": margin, "scale": scale, "similarity": similarity, "bidirectional": bidirectional}
    expected = reference.translation_ranking(source.tolist(), target.tolist(), **options)
    assert translation_ranking(source, target, **options).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_equal_texts_are_no_negatives(bidirectional):
    source, target = embeddings(6)
    ids = {"source_ids": [0, 1, 2, 3, 4, 0], "target_ids": [0, 1, 2, 1, 4, 5]}
    expected = reference.translation_ranking(source.tolist(), target.tolist(), bidirectional=bidirectional, **ids)
    tensors = {name: torch.tensor(values) for name, values in ids.items()}
    value = translation_ranking(source, target, bidirectional=bidirectional, **tensors)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert value.item() != pytest.approx(translation_ranking(source, target, bidirectional=bidirectional).item())


def test_a_batch_of_one_text_has_no_negatives_left():
    source, target = embeddings(3)
    same = torch.zeros(3, dtype=torch.long)
    assert translation_ranking(source, target, target_ids=same).item() == 0.0


def test_swapping_the_languages_changes_nothing():
    source, target = embeddings()
    swapped = translation_ranking(target, source, margin=0.2)
    assert translation_ranking(source, target, margin=0.2).item() == pytest.approx(swapped.item(), rel=1e-12)


def test_the_order_of_the_batch_changes_nothing():
    source, target = embeddings()
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled = translation_ranking(source[order], target[order], margin=0.2)
    assert translation_ranking(source, target, margin=0.2).item() == pytest.approx(shuffled.item(), rel=1e-12)


def test_a_margin_handicaps_the_true_pair():
    """Identical vectors everywhere: without margin ln B; with it the true logit falls by scale · margin."""
    ones = torch.ones(4, 3, dtype=torch.float64)
    assert translation_ranking(ones, ones).item() == pytest.approx(math.log(4))
    expected = math.log(math.exp(-2 * 0.5) + 3) + 2 * 0.5
    assert translation_ranking(ones, ones, margin=0.5, scale=2.0).item() == pytest.approx(expected)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_equals_the_host_without_margin(make_model, features, bidirectional):
    model = make_model()
    directions = ("query_to_doc", "doc_to_query") if bidirectional else ("query_to_doc",)
    host = MultipleNegativesRankingLoss(model, directions=directions, partition_mode="per_direction")
    ours = TranslationRankingLoss(model, bidirectional=bidirectional)
    assert ours(features(model)).item() == pytest.approx(host(features(model), None).item(), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_dtype_gives_finite_gradients(dtype):
    source, target = (part.to(dtype).requires_grad_() for part in embeddings())
    loss = translation_ranking(source, target, margin=0.3, target_ids=torch.tensor([0, 1, 1, 3, 4]))
    loss.backward()
    assert loss.dtype == dtype
    assert torch.isfinite(source.grad).all() and torch.isfinite(target.grad).all()
    assert source.grad.abs().sum() > 0


def test_the_module_masks_duplicates_of_the_batch(make_model):
    model = make_model()
    columns = [model.preprocess(["Ja.", "Doch.", "Nein."]), model.preprocess(["Yes.", "Yes.", "No."])]
    masked, unmasked = TranslationRankingLoss(model), TranslationRankingLoss(model, mask_duplicates=False)
    batch = [dict(column) for column in columns]
    with torch.no_grad():
        source, target = (model(dict(column))["sentence_embedding"].double().tolist() for column in columns)
    expected = reference.translation_ranking(source, target, target_ids=[0, 0, 1])
    assert masked(batch).item() == pytest.approx(expected, rel=1e-5)
    assert unmasked([dict(column) for column in columns]).item() == pytest.approx(
        reference.translation_ranking(source, target), rel=1e-5
    )


def test_a_projection_stands_between_the_embeddings_and_the_loss(make_model, features):
    """Dense and tanh, as SimCSE's; it belongs to the loss, so that the model embeds without it."""
    model = make_model().double()
    loss = TranslationRankingLoss(model, projection=True, bidirectional=False).double()
    dense = loss.projection[0]
    assert dense.weight.std().item() == pytest.approx(0.02, rel=0.2) and not dense.bias.any()
    source, target = ([row for row in model(column)["sentence_embedding"]] for column in features(model))
    projected = [[torch.tanh(dense.weight @ row + dense.bias).tolist() for row in rows] for rows in (source, target)]
    value = loss(features(model))
    assert value.item() == pytest.approx(reference.translation_ranking(*projected, bidirectional=False), rel=1e-9)
    value.backward()
    assert dense.weight.grad.abs().sum() > 0
    assert not any("projection" in name for name, _ in model.named_parameters())
    assert set(own_state(loss, model)) == {"projection.0.weight", "projection.0.bias"}


def test_text_ids_see_texts_and_not_padding():
    ids = torch.tensor([[2, 5, 7, 3, 0, 0], [2, 5, 7, 3, 0, 0], [2, 7, 5, 3, 0, 0], [2, 5, 7, 7, 3, 0]])
    mask = (ids != 0).long()
    numbers = text_ids({"input_ids": ids, "attention_mask": mask})
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 3
    cut = text_ids({"input_ids": ids[:, :5], "attention_mask": mask[:, :5]})
    assert torch.equal(cut, numbers)


def test_a_batch_of_one_says_so_once(make_model, features, caplog):
    model = make_model()
    loss = TranslationRankingLoss(model)
    with caplog.at_level(logging.WARNING, logger="st_xling"):
        values = [loss(features(model, slice(0, 1))).item() for _ in range(3)]
    assert values == [0.0, 0.0, 0.0]
    assert [record.message for record in caplog.records].count(
        "a batch of one pair has no negatives to rank against: its ranking loss is 0."
    ) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, "scale must be above 0: got 0.0"),
        ({"scale": float("nan")}, "scale must be above 0"),
        ({"margin": -0.1}, "margin must be 0 or more: got -0.1"),
        ({"similarity": "euclidean"}, "similarity must be one of .* got 'euclidean'"),
    ],
)
def test_options_out_of_range(make_model, options, message):
    source, target = embeddings()
    with pytest.raises(ValueError, match=message):
        translation_ranking(source, target, **options)
    with pytest.raises(ValueError, match=message):
        TranslationRankingLoss(make_model(), **options)


def test_sides_of_unequal_size():
    source, target = embeddings()
    with pytest.raises(ValueError, match="row-aligned translations: got 5 and 4 rows"):
        translation_ranking(source, target[:4])
    with pytest.raises(ValueError, match="of one width"):
        translation_ranking(source, target[:, :3])


def test_autocast_leaves_cosines_exact():
    """In bfloat16 the neighbours of 1 are 0.996 and 1.008: what ranking tells apart would be rounded away."""
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(6, 8, generator=generator) for _ in range(2))
    expected = translation_ranking(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = translation_ranking(source, target)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)
