"""Negatives gathered across processes: two processes of batch B are one process of batch 2B."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from st_xling.losses import TranslationRankingLoss

BATCH, DIM = 4, 6


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features and token ids of 2B pairs; rows 1 and 6, one in each process, share their target text."""
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(2 * BATCH, DIM, generator=generator, dtype=torch.float64) for _ in range(2))
    ids = torch.arange(2 * BATCH * 3).reshape(2 * BATCH, 3) + 1
    other = ids.clone()
    other[6] = other[1]
    return source, target, ids, other


def batch(encoder: nn.Module, rows: slice) -> list[dict[str, torch.Tensor]]:
    source, target, ids, other = (part[rows] for part in inputs())
    embeddings = encoder(torch.cat([source, target])).chunk(2)
    return [
        {"sentence_embedding": side, "input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
        for side, tokens in zip(embeddings, (ids, other))
    ]


def encoder() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(DIM, DIM).double()


def worker(rank: int, folder: str, options: dict[str, Any]) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    try:
        model = DistributedDataParallel(encoder())
        loss = TranslationRankingLoss(model, gather_across_devices=True, **options)
        value = loss.compute_loss(batch(model, slice(rank * BATCH, (rank + 1) * BATCH)), None)
        value.backward()
        torch.save({"value": value.detach(), "gradient": model.module.weight.grad}, Path(folder) / f"rank{rank}.pt")
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "options",
    [{}, {"margin": 0.3}, {"bidirectional": False}, {"mask_duplicates": False}],
    ids=["default", "margin", "one way", "duplicates"],
)
def test_two_processes_are_one_of_twice_the_batch(options: dict[str, Any], tmp_path: Path) -> None:
    model = encoder()
    expected = TranslationRankingLoss(model, **options).compute_loss(batch(model, slice(None)), None)
    expected.backward()
    mp.spawn(worker, args=(str(tmp_path), options), nprocs=2)
    ranks = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2)]
    value = sum(rank["value"] for rank in ranks) / 2
    assert value.item() == pytest.approx(expected.item(), rel=1e-9)
    for rank in ranks:
        torch.testing.assert_close(rank["gradient"], model.weight.grad, rtol=1e-9, atol=1e-12)


def test_the_shared_text_matters() -> None:
    """The mask has something to do: without it, rows 1 and 6, in different processes, would be negatives."""
    values = []
    for mask in (True, False):
        model = encoder()
        loss = TranslationRankingLoss(model, mask_duplicates=mask)
        values.append(loss.compute_loss(batch(model, slice(None)), None).item())
    assert values[0] != pytest.approx(values[1], rel=1e-6)
