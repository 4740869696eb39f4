"""Hard negatives of translation ranking."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from st_xling.losses import TranslationRankingLoss, translation_ranking
from st_xling.losses.gather import Candidates
from tests.reference import cosine, log_softmax


def vectors(*sizes: int, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(size, 4, generator=generator, dtype=torch.float64) for size in sizes)


def ranking(row: Any, own: int, candidates: Any) -> float:
    """Minus log-likelihood of the candidate ``own``."""
    return -log_softmax([20.0 * cosine(row, candidate) for candidate in candidates], own)


def columns_of(*embeddings: Tensor) -> list[dict[str, Tensor]]:
    return [{"sentence_embedding": column} for column in embeddings]


def test_hard_negatives_of_all_rows_and_none_that_is_the_target() -> None:
    source, target, hard = vectors(4, 4, 4)
    ids = torch.arange(4)
    more = Candidates(hard, torch.tensor([10, 11, 2, 13]))  # the third is the third row's own target
    value = translation_ranking(source, target, source_ids=ids, target_ids=ids, more_targets=[more])
    total = 0.0
    for i in range(4):
        candidates = [*target.tolist(), *(hard[j].tolist() for j in range(4) if not i == j == 2)]
        total += ranking(source[i].tolist(), i, candidates)
        total += ranking(target[i].tolist(), i, source.tolist())
    assert value.item() == pytest.approx(total / 8, rel=1e-9)


def test_the_loss_reads_further_columns(make_model: Any) -> None:
    source, target, *hard = vectors(4, 4, 4, 4)
    loss = TranslationRankingLoss(make_model(), hard_negatives=True)
    value = loss.compute_loss(columns_of(source, target, *hard), None)
    expected = translation_ranking(source, target, more_targets=[Candidates(column) for column in hard])
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    assert value.item() > loss.compute_loss(columns_of(source, target), None).item()
