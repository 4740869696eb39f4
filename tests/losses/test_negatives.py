"""Which sentences are negatives: those that a guide model leaves, hard ones, and those of earlier batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from st_xling.losses import (
    CachedLoss,
    InBatchRankingLoss,
    SemanticContrastiveLoss,
    TranslationRankingLoss,
    semantic_contrastive,
    translation_ranking,
)
from st_xling.losses.gather import Candidates
from tests.reference import cosine, log_softmax


def vectors(*sizes: int, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(size, 4, generator=generator, dtype=torch.float64) for size in sizes)


def ranking(rows: Any, own: int, candidates: Any, guides: Any, *, scale: float = 20.0, margin: float = 0.0) -> float:
    """Minus log-likelihood of the candidate ``own``; ``guides``: a row's vector and the candidates', or nothing."""
    allowed = range(len(candidates))
    if guides:
        row, others = guides
        nearest = cosine(row, others[own]) - margin
        allowed = [j for j in allowed if j == own or not cosine(row, others[j]) > nearest]
    return -log_softmax([scale * cosine(rows, candidates[j]) for j in allowed], list(allowed).index(own))


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_guide_leaves_false_negatives_out(margin: float, bidirectional: bool) -> None:
    source, target = vectors(6, 6)
    guides = vectors(6, 6, seed=1)
    value = translation_ranking(
        source, target, bidirectional=bidirectional, guide_margin=margin, source_guide=guides[0], target_guide=guides[1]
    )
    ways = [(source, target, *guides), (target, source, *guides[::-1])][: 1 + bidirectional]
    total = sum(
        ranking(own[i].tolist(), i, others.tolist(), (mine[i].tolist(), theirs.tolist()), margin=margin)
        for own, others, mine, theirs in ways
        for i in range(6)
    )
    assert value.item() == pytest.approx(total / 6 / len(ways), rel=1e-9)
    assert value.item() != pytest.approx(translation_ranking(source, target, bidirectional=bidirectional).item())


def test_semantic_contrastive_with_a_guide() -> None:
    source, target = vectors(5, 5)
    guides = vectors(5, 5, seed=1)
    both, guide = torch.cat([source, target]).tolist(), torch.cat(guides).tolist()
    total = 0.0
    for i in range(10):
        others = [j for j in range(10) if j != i]
        own = others.index((i + 5) % 10)
        picked = (guide[i], [guide[j] for j in others])
        total += ranking(both[i], own, [both[j] for j in others], picked, margin=0.1)
    value = semantic_contrastive(source, target, source_guide=guides[0], target_guide=guides[1], guide_margin=0.1)
    assert value.item() == pytest.approx(total / 10, rel=1e-9)


def columns_of(*embeddings: Tensor, guides: tuple[Tensor, ...] = ()) -> list[dict[str, Tensor]]:
    columns = [{"sentence_embedding": column} for column in embeddings]
    return [{**column, **({"guide": guide})} for column, guide in zip(columns, guides)] if guides else columns


def test_in_batch_ranking_with_a_guide(make_model: Any) -> None:
    query, passage, hard = vectors(4, 4, 4)
    guides = vectors(4, 4, 4, seed=1)
    loss = InBatchRankingLoss(make_model(), guide_margin=0.1)
    value = loss.compute_loss(columns_of(query, passage, hard, guides=guides), None)
    candidates, theirs = torch.cat([passage, hard]).tolist(), torch.cat(guides[1:]).tolist()
    total = sum(
        ranking(query[i].tolist(), i, candidates, (guides[0][i].tolist(), theirs), margin=0.1) for i in range(4)
    )
    assert value.item() == pytest.approx(total / 4, rel=1e-9)


def test_hard_negatives_of_all_rows_and_none_that_is_the_target() -> None:
    source, target, hard = vectors(4, 4, 4)
    ids = torch.arange(4)
    more = Candidates(hard, torch.tensor([10, 11, 2, 13]))  # the third is the third row's own target
    value = translation_ranking(source, target, source_ids=ids, target_ids=ids, more_targets=[more])
    total = 0.0
    for i in range(4):
        candidates = [*target.tolist(), *(hard[j].tolist() for j in range(4) if not i == j == 2)]
        total += ranking(source[i].tolist(), i, candidates, None)
        total += ranking(target[i].tolist(), i, source.tolist(), None)
    assert value.item() == pytest.approx(total / 8, rel=1e-9)


def test_the_loss_reads_further_columns(make_model: Any) -> None:
    source, target, *hard = vectors(4, 4, 4, 4)
    loss = TranslationRankingLoss(make_model(), hard_negatives=True)
    value = loss.compute_loss(columns_of(source, target, *hard), None)
    expected = translation_ranking(source, target, more_targets=[Candidates(column) for column in hard])
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    assert value.item() > loss.compute_loss(columns_of(source, target), None).item()


def test_a_queue_holds_the_last_pairs(make_model: Any) -> None:
    loss = TranslationRankingLoss(make_model(hidden_size=4, heads=1), queue=5, mask_duplicates=False).double()
    steps = [vectors(3, 3, seed=seed) for seed in range(4)]
    earlier: list[tuple[Any, Any]] = []
    for source, target in steps:
        value = loss.compute_loss(columns_of(source.requires_grad_(), target), None)
        # They are moved by what the mean has moved since.
        sources, targets = (
            (torch.tensor(then, dtype=now.dtype) + now.detach().mean(0) - torch.tensor(then).mean(0)).tolist()
            if then
            else []
            for then, now in zip(([pair[side] for pair in earlier] for side in (0, 1)), (source, target))
        )
        total = 0.0
        for i in range(3):
            total += ranking(source[i].tolist(), i, [*target.tolist(), *targets], None)
            total += ranking(target[i].tolist(), i, [*source.tolist(), *sources], None)
        assert value.item() == pytest.approx(total / 6, rel=1e-6)
        with torch.no_grad():  # an evaluation adds nothing
            loss.compute_loss(columns_of(source, target), None)
        earlier = [*earlier, *zip(source.tolist(), target.tolist())][-5:]
        value.backward()
        assert source.grad is not None and source.grad.isfinite().all()


def test_only_anchors_get_a_gradient_from_a_queue(make_model: Any) -> None:
    """Translations and hard negatives get that of the batch: a pull without the push that balances it collapses all."""
    model = make_model(hidden_size=4, heads=1)
    loss = TranslationRankingLoss(model, queue=16, bidirectional=False, mask_duplicates=False, hard_negatives=True)
    loss = loss.double()
    earlier, columns = vectors(6, 6, seed=1), [column.requires_grad_() for column in vectors(4, 4, 4)]
    loss.compute_loss(columns_of(*earlier), None)
    found = torch.autograd.grad(loss.compute_loss(columns_of(*columns), None), columns)
    source, target, hard = columns
    shifted = earlier[1] + (target.mean(dim=0) - earlier[1].mean(dim=0)).detach()
    of_all, of_batch = (
        translation_ranking(source, target, bidirectional=False, more_targets=[Candidates(hard), *more])
        for more in ([Candidates(shifted)], [])
    )
    expected = (*torch.autograd.grad(of_all, [source]), *torch.autograd.grad(of_batch, [target, hard]))
    torch.testing.assert_close(found, expected)


def test_a_batch_of_one_pair_shifts_no_queue(make_model: Any) -> None:
    """Its mean is itself: all earlier pairs would come to lie around it."""
    model = make_model(hidden_size=4, heads=1)
    loss = TranslationRankingLoss(model, queue=16, bidirectional=False, mask_duplicates=False).double()
    earlier, (source, target) = vectors(6, 6, seed=1), vectors(1, 1)
    loss.compute_loss(columns_of(*earlier), None)
    expected = translation_ranking(source, target, bidirectional=False, more_targets=[Candidates(earlier[1])])
    assert loss.compute_loss(columns_of(source, target), None).item() == pytest.approx(expected.item(), rel=1e-9)


def test_a_queue_of_embeddings_in_half_precision(make_model: Any) -> None:
    loss = TranslationRankingLoss(make_model(hidden_size=4, heads=1), queue=16, mask_duplicates=False)
    for rows in (4, 4, 1):  # before the first pairs, with some, and in a batch that is its own mean
        source, target = (column.to(torch.bfloat16).requires_grad_() for column in vectors(rows, rows, seed=rows))
        value = loss.compute_loss(columns_of(source, target), None)
        value.backward()
        assert value.item() > 0.01 and source.grad is not None and source.grad.isfinite().all()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_equal_texts_of_earlier_batches_are_no_negatives(bidirectional: bool, make_model: Any) -> None:
    """A row's own pair, when it was there before; the other rows of that batch are negatives once more."""
    source, target = vectors(4, 4)
    columns = columns_of(source.requires_grad_(), target)
    columns = [{**column, "text_ids": torch.arange(4) + first} for column, first in zip(columns, (0, 10))]
    loss = TranslationRankingLoss(make_model(hidden_size=4, heads=1), queue=16, bidirectional=bidirectional).double()
    loss.compute_loss(columns, None)
    totals = [0.0, 0.0]
    for way, (own, other) in enumerate(((source, target), (target, source))):
        for i in range(4):
            candidates = [*other.tolist(), *(other[j].tolist() for j in range(4) if j != i)]
            totals[way] += ranking(own[i].tolist(), i, candidates, None) / 4
    expected = sum(totals) / 2 if bidirectional else totals[0]
    assert loss.compute_loss(columns, None).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [2, 64])
def test_a_cached_loss_fills_the_queue_once(size: int, make_model: Any, features: Any) -> None:
    values, states = [], []
    for cached in (False, True):
        model = make_model().double()
        loss = TranslationRankingLoss(model, queue=size, mask_duplicates=False).double()
        step = CachedLoss(loss, mini_batch_size=2) if cached else loss
        for rows in (slice(0, 4), slice(4, 8), slice(2, 6)):
            value = step(features(model, rows))
            value.backward()
        values.append((value.item(), [p.grad.norm().item() for p in model.parameters() if p.grad is not None]))
        states.append({name: part for name, part in loss.named_buffers() if name.startswith("earlier")})
    assert values[0][0] == pytest.approx(values[1][0], rel=1e-9) and values[0][1] == pytest.approx(values[1][1])
    torch.testing.assert_close(*states)
    assert int(states[0]["earlier.added"]) == 12


def test_a_guide_in_sums_and_caches(make_model: Any, features: Any) -> None:
    """The vectors stay beside the encoder, cut with the mini-batches."""
    model = make_model().double()
    guides = [F.normalize(column) for column in vectors(8, 8, seed=3)]

    def batch() -> Any:
        return [{**column, "guide": guide} for column, guide in zip(features(model), guides)]

    total = TranslationRankingLoss(model) + InBatchRankingLoss(model) + SemanticContrastiveLoss(model)
    plain = total(batch())
    unguided = total(features(model))
    cached = CachedLoss(total, mini_batch_size=4)(batch())
    for name, value in plain.items():
        assert value.item() == pytest.approx(cached[name].item(), rel=1e-9) and value < unguided[name]
    sum(cached.values()).backward()


def test_faults_are_named(make_model: Any, features: Any) -> None:
    model = make_model()
    with pytest.raises(ValueError, match="queue must be a number of pairs, 0 or more: got -1"):
        TranslationRankingLoss(model, queue=-1)
    with pytest.raises(ValueError, match="guide_margin must be a number: got 'a'"):
        InBatchRankingLoss(model, guide_margin="a")
    loss = TranslationRankingLoss(model, queue=4)
    with pytest.raises(ValueError, match="queue of earlier pairs has no vectors of a guide"):
        loss([{**column, "guide": torch.ones(8, 2)} for column in features(model)])
