"""Objectives on sentence embeddings: their formulas as plain loops, symmetries, edges, dtypes, and ST's own losses."""

import itertools
import math

import pytest
import torch
from sentence_transformers.base.modules import Normalize
from sentence_transformers.sentence_transformer.losses import ContrastiveLoss, MultipleNegativesRankingLoss
from torch.utils._python_dispatch import TorchDispatchMode

from st_xling.losses import (
    EmbeddingDistanceLoss,
    InBatchRankingLoss,
    LanguageContrastiveLoss,
    SemanticContrastiveLoss,
    SiameseContrastiveLoss,
    TranslationRankingLoss,
    embedding_distance,
    koleo,
    language_contrastive,
    semantic_contrastive,
    siamese_contrastive,
    translation_ranking,
)
from st_xling.losses.base import warn_once
from st_xling.losses.siamese_contrastive_loss import METRICS
from st_xling.losses.translation_ranking_loss import text_ids
from tests import reference

FUNCTIONS = (translation_ranking, semantic_contrastive, language_contrastive, siamese_contrastive)


def embeddings(*sizes: int, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(size, 4, generator=generator, dtype=dtype) for size in sizes or (5, 5))


def test_translation_ranking_equals_the_formula():
    source, target = embeddings()
    for values in itertools.product((0.0, 0.3), (1.0, 20.0), ("cosine", "dot"), (True, False)):
        options = dict(zip(("margin", "scale", "similarity", "bidirectional"), values))
        expected = reference.translation_ranking(source.tolist(), target.tolist(), **options)
        assert translation_ranking(source, target, **options).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_equal_texts_are_no_negatives(bidirectional):
    source, target = embeddings(6, 6)
    ids = {"source_ids": [0, 1, 2, 3, 4, 0], "target_ids": [0, 1, 2, 1, 4, 5]}
    expected = reference.translation_ranking(source.tolist(), target.tolist(), bidirectional=bidirectional, **ids)
    tensors = {name: torch.tensor(values) for name, values in ids.items()}
    value = translation_ranking(source, target, bidirectional=bidirectional, **tensors)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    assert value.item() != pytest.approx(translation_ranking(source, target, bidirectional=bidirectional).item())
    assert translation_ranking(source, target, target_ids=torch.zeros(6, dtype=torch.long)).item() == 0.0


def test_hard_negatives_of_all_rows_and_none_that_is_the_target(make_model):
    source, target, hard = embeddings(4, 4, 4)
    ids = torch.arange(4)
    hard_ids = torch.tensor([10, 11, 2, 13])  # the third is the third row's own target
    value = translation_ranking(source, target, source_ids=ids, target_ids=ids, negatives=hard, negative_ids=hard_ids)
    total = 0.0
    for i in range(4):
        candidates = [*target.tolist(), *(hard[j].tolist() for j in range(4) if not i == j == 2)]
        for row, others in ((source[i], candidates), (target[i], source.tolist())):
            total -= reference.log_softmax([20.0 * reference.cosine(row.tolist(), other) for other in others], i)
    assert value.item() == pytest.approx(total / 8, rel=1e-9)
    loss = TranslationRankingLoss(make_model(), hard_negatives=True)
    value = loss.compute_loss([{"sentence_embedding": column} for column in (source, target, hard, -hard)], None)
    expected = translation_ranking(source, target, negatives=torch.cat([hard, -hard]))
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_contrastive_losses_equal_their_formulas(size):
    source, target, untranslated = embeddings(size, size, 3)
    for temperature in (0.05, 1.0):
        expected = reference.semantic_contrastive(source.tolist(), target.tolist(), temperature=temperature)
        value = semantic_contrastive(source, target, temperature=temperature)
        assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    for others in (untranslated, untranslated[:0])[: 1 if size == 1 else 2]:
        expected = reference.language_contrastive(source.tolist(), target.tolist(), others.tolist())
        assert language_contrastive(source, target, others).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [2, 5])
def test_distance_and_koleo_equal_their_formulas(size):
    source, target = embeddings(size, size)
    squares = []
    for x, y in zip(source.tolist(), target.tolist()):
        squares += [(a - b) ** 2 for a, b in zip(x, y)]
    assert embedding_distance(source, target).item() == pytest.approx(sum(squares) / (4 * size), rel=1e-9)
    cosines = [reference.cosine(x, y) for x, y in zip(source.tolist(), target.tolist())]
    value = embedding_distance(source, target, distance="cosine").item()
    assert value == pytest.approx(1 - sum(cosines) / size, rel=1e-9)
    assert koleo(source).item() == pytest.approx(reference.koleo(source.tolist()), rel=1e-9)


def test_koleo_parts_neighbors_but_not_equal_texts():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]], requires_grad=True)
    value = koleo(rows)
    value.backward()
    assert value.item() == pytest.approx(reference.koleo(rows.tolist()), rel=1e-5)
    assert rows.grad.isfinite().all() and rows.grad[1].abs().sum() == 0
    # A step down moves the third row away from its neighbor, the first.
    assert rows.grad[2, 1] < 0
    assert koleo(rows[:1]).item() == 0.0


def test_distance_is_by_cosine_where_the_model_normalizes(make_model):
    from sentence_transformers.base.modules import Normalize

    model = make_model()
    assert EmbeddingDistanceLoss(model).distance == "squared"
    model.append(Normalize())
    assert EmbeddingDistanceLoss(model).distance == "cosine"


@pytest.mark.parametrize("distance", METRICS)
@pytest.mark.parametrize("negatives", ["worst", "average", "hardest", "none"])
def test_siamese_contrastive_equals_the_formula(distance, negatives):
    source, target = (0.4 * part for part in embeddings())
    for margin in (0.5, 1.0, 3.0):
        options = {"distance": distance, "negatives": negatives, "margin": margin}
        expected = reference.siamese_contrastive(source.tolist(), target.tolist(), **options)
        assert siamese_contrastive(source, target, **options).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_random_negatives_are_other_rows():
    """Two rows leave one choice, the other row: random equals average; of more rows the seed decides."""
    source, target = (0.4 * part for part in embeddings(2, 2))
    chosen = siamese_contrastive(source, target, negatives="random", margin=3.0)
    torch.testing.assert_close(chosen, siamese_contrastive(source, target, negatives="average", margin=3.0))
    source, target = (0.4 * part for part in embeddings(9, 9))
    values = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        values.append(siamese_contrastive(source, target, negatives="random", margin=3.0).item())
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("distance", METRICS)
@pytest.mark.parametrize("negatives", ["worst", "hardest"])
def test_siamese_gradients_are_those_of_the_formula(distance, negatives):
    """Also of the negative, which is chosen without gradients; by differences of the plain loops."""
    source, target = ((0.4 * part).requires_grad_() for part in embeddings())
    options = {"margin": 3.0, "distance": distance, "negatives": negatives}
    siamese_contrastive(source, target, **options).backward()
    for row, column in ((0, 0), (3, 2)):
        values = []
        for step in (1e-6, -1e-6):
            moved = source.detach().clone()
            moved[row, column] += step
            values.append(reference.siamese_contrastive(moved.tolist(), target.tolist(), **options))
        assert source.grad[row, column].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-8)


class LargestTensor(TorchDispatchMode):
    """Measures the largest tensor that any operation returns."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.numbers = max(self.numbers, result.numel())
        return result


@pytest.mark.parametrize("distance", METRICS)
@pytest.mark.parametrize("negatives", ["worst", "random", "hardest"])
def test_large_batches_hold_no_vector_for_each_pair_of_rows(distance, negatives):
    """Differences of 512 x 511 rows of 64 numbers would be 64 MiB; a matrix of distances is one."""
    source, target = (torch.randn(512, 64).requires_grad_() for _ in range(2))
    with LargestTensor() as largest:
        siamese_contrastive(source, target, negatives=negatives, distance=distance).backward()
    assert largest.numbers <= 512 * 512


@pytest.mark.parametrize("function", FUNCTIONS)
def test_symmetries(function):
    """The order of the batch and, but for siamese negatives, which are targets, of the languages."""
    source, target = embeddings()
    order = torch.tensor([3, 1, 4, 0, 2])
    value = function(source, target).item()
    assert function(source[order], target[order]).item() == pytest.approx(value, rel=1e-12)
    if function is not siamese_contrastive:
        assert function(target, source).item() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_dtype_gives_finite_gradients(function, dtype):
    source, target = (part.to(dtype).requires_grad_() for part in embeddings())
    function(source, target).backward()
    assert torch.isfinite(source.grad).all() and torch.isfinite(target.grad).all() and source.grad.abs().sum() > 0
    equal = torch.ones(3, 4, dtype=dtype, requires_grad=True)  # where a distance of 0 has no direction
    function(equal, torch.ones(3, 4, dtype=dtype)).backward()
    assert torch.isfinite(equal.grad).all()


def test_edges():
    """Vectors that are all equal, a pair alone, a margin: values worked out by hand."""
    ones = torch.ones(4, 3, dtype=torch.float64)
    (source,) = embeddings(4)
    assert translation_ranking(ones, ones).item() == pytest.approx(math.log(4))
    # The true logit falls by scale times margin.
    expected = math.log(math.exp(-2 * 0.5) + 3) + 2 * 0.5
    assert translation_ranking(ones, ones, margin=0.5, scale=2.0).item() == pytest.approx(expected)
    assert semantic_contrastive(ones, ones).item() == pytest.approx(math.log(7))
    # Least where nothing tells the two languages apart.
    assert language_contrastive(source, source.clone()).item() == pytest.approx(math.log(2), rel=1e-12)
    assert language_contrastive(source, -source, ones[:, :1].expand(4, 4)).item() > math.log(2)
    source, target = embeddings(1, 1)
    expected = reference.distance_between(source[0].tolist(), target[0].tolist(), "euclidean") ** 2 / 2
    assert siamese_contrastive(source, target).item() == pytest.approx(expected)


def test_autocast_leaves_cosines_exact():
    """In bfloat16 the neighbors of 1 are 0.996 and 1.008: what ranking tells apart would be rounded away."""
    source, target = embeddings(6, 6, dtype=torch.float32)
    expected = translation_ranking(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(translation_ranking(source, target), expected, rtol=1e-6, atol=1e-6)


def test_they_equal_those_of_sentence_transformers(make_model, features):
    model = make_model()
    labels = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0])
    for bidirectional, directions in ((True, ("query_to_doc", "doc_to_query")), (False, ("query_to_doc",))):
        theirs = MultipleNegativesRankingLoss(model, directions=directions, partition_mode="per_direction")
        ours = TranslationRankingLoss(model, bidirectional=bidirectional)
        assert ours(features(model)).item() == pytest.approx(theirs(features(model), None).item(), rel=1e-5)
    for columns in ((0, 1), (0, 1, 0)):
        expected = MultipleNegativesRankingLoss(model, scale=10.0)(features(model, columns=columns), None)
        value = InBatchRankingLoss(model, scale=10.0)(features(model, columns=columns))
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)
    for distance, metric in METRICS.items():
        expected = ContrastiveLoss(model, metric, 0.7)(features(model), labels)
        value = SiameseContrastiveLoss(model, margin=0.7, distance=distance)(features(model), labels)
        torch.testing.assert_close(value, expected)


def test_text_ids_see_texts_and_not_padding():
    ids = torch.tensor([[2, 5, 7, 3, 0, 0], [2, 5, 7, 3, 0, 0], [2, 7, 5, 3, 0, 0], [2, 5, 7, 7, 3, 0]])
    mask = (ids != 0).long()
    numbers = text_ids({"input_ids": ids, "attention_mask": mask})
    assert numbers[0] == numbers[1] and len(set(numbers.tolist())) == 3
    assert torch.equal(text_ids({"input_ids": ids[:, :5], "attention_mask": mask[:, :5]}), numbers)
    ends = torch.nn.functional.pad(mask.sum(dim=1).cumsum(dim=0), (1, 0))
    flat = ids[mask.bool()]
    rows = {"sentence_embedding": torch.zeros(4, 2)}  # without padding
    assert torch.equal(text_ids({**rows, "offsets": ends[:-1], "input_ids": flat}), numbers)
    assert torch.equal(text_ids({**rows, "cu_seq_lens_q": ends, "input_ids": flat[None]}), numbers)
    assert text_ids({"sentence_embedding": torch.zeros(4, 2)}) is None  # of pictures


def test_a_projection_stands_between_the_embeddings_and_the_loss(make_model, features):
    """Dense and tanh, as SimCSE's; it belongs to the loss, so that the model embeds without it."""
    model = make_model().double()
    loss = TranslationRankingLoss(model, projection=True, bidirectional=False).double()
    dense = loss.projection[0]
    assert dense.weight.std().item() == pytest.approx(0.02, rel=0.2) and not dense.bias.any()
    columns = [model(column)["sentence_embedding"] for column in features(model)]
    projected = []
    for rows in columns:
        projected.append([torch.tanh(dense.weight @ row + dense.bias).tolist() for row in rows])
    value = loss(features(model))
    assert value.item() == pytest.approx(reference.translation_ranking(*projected, bidirectional=False), rel=1e-9)
    value.backward()
    assert dense.weight.grad.abs().sum() > 0 and not any("projection" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize(
    ("function", "loss", "refused"),
    [
        (translation_ranking, TranslationRankingLoss, {"scale": 0.0, "margin": -0.1, "similarity": "euclidean"}),
        (semantic_contrastive, SemanticContrastiveLoss, {"temperature": 0.0}),
        (siamese_contrastive, SiameseContrastiveLoss, {"margin": 0.0, "distance": "hamming", "negatives": "best"}),
    ],
)
def test_what_is_refused(make_model, function, loss, refused):
    """A loss rejects options when it is made, before data and output folder are touched."""
    source, target = embeddings()
    for name, value in refused.items():
        for build in (lambda o: function(source, target, **o), lambda o: loss(make_model(), **o)):
            with pytest.raises(ValueError, match=f"{name} must be .*: got {value!r}"):
                build({name: value})
    with pytest.raises(ValueError, match="got 5 and 4 rows"):
        function(source, target[:4])


@pytest.mark.parametrize(
    ("similarity", "scale", "warned"), [("dot", 1.0, True), ("dot", 20.0, False), ("cosine", 1.0, False)]
)
def test_small_dot_products_of_normalized_embeddings(similarity, scale, warned, make_model, caplog):
    """Of E5, which normalizes, a ranking by plain dot products stays near chance: nothing is learned, nothing said."""
    model = make_model()
    TranslationRankingLoss(model, similarity=similarity, scale=scale)
    assert not caplog.messages
    model.append(Normalize())
    warn_once.cache_clear()
    TranslationRankingLoss(model, similarity=similarity, scale=scale)
    assert any("cosine and scale 20" in message for message in caplog.messages) == warned


def test_a_batch_of_one_is_told_once(make_model, features, caplog):
    """A run with batches of one pair ended with a loss of 0 and an encoder that had learned nothing."""
    warn_once.cache_clear()
    model = make_model()
    loss = TranslationRankingLoss(model)
    assert [loss(features(model, slice(0, 1))).item() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert sum("no negatives" in message for message in caplog.messages) == 1


def test_duplicates_of_a_batch_are_masked_unless_told(make_model):
    """By the texts that the model reads: two sources share the target "Yes.", which is right for both."""
    model = make_model()
    columns = [model.preprocess(["Ja.", "Doch.", "Nein."]), model.preprocess(["Yes.", "Yes.", "No."])]
    with torch.no_grad():
        source, target = (model(dict(column))["sentence_embedding"].double().tolist() for column in columns)
    for mask, ids in ((True, [0, 0, 1]), (False, None)):
        value = TranslationRankingLoss(model, mask_duplicates=mask)([dict(column) for column in columns])
        assert value.item() == pytest.approx(reference.translation_ranking(source, target, target_ids=ids), rel=1e-5)


def test_losses_compute_their_functions(make_model, features):
    """With their options, of the embeddings of each column."""
    model = make_model()
    columns = [dict(model(column))["sentence_embedding"] for column in features(model, slice(0, 4), (0, 1, 0))]
    for loss, expected in (
        (TranslationRankingLoss(model, margin=0.3), translation_ranking(*columns[:2], margin=0.3)),
        (SemanticContrastiveLoss(model, temperature=0.1), semantic_contrastive(*columns[:2], temperature=0.1)),
        (LanguageContrastiveLoss(model), language_contrastive(*columns)),
        (SiameseContrastiveLoss(model, margin=3.0), siamese_contrastive(*columns[:2], margin=3.0)),
    ):
        torch.testing.assert_close(loss(features(model, slice(0, 4), (0, 1, 0))), expected)
