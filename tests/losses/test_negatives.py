"""Which sentences are negatives: those that a guide model leaves, and hard ones."""

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


def test_faults_are_named(make_model: Any) -> None:
    model = make_model()
    with pytest.raises(ValueError, match="guide_margin must be a number: got 'a'"):
        InBatchRankingLoss(model, guide_margin="a")
