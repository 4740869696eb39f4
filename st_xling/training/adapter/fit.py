"""Training of an adapter on sentence vectors that are computed already."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import get_scheduler

from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.losses import siamese_contrastive
from st_xling.training.adapter.network import Adapter, FittedAdapter, centred
from st_xling.training.adapter.recipe import AdapterRecipe
from st_xling.training.arguments import total_steps
from st_xling.training.finite import TOTAL, NotFiniteError

LOGS_A_RUN = 50


@dataclass(frozen=True)
class Fit:
    """A trained adapter.

    Attributes:
        fitted: The adapter with the mean of its training text.
        steps: Optimiser steps.
        history: Mean losses, about fifty over the run: ``step``, ``epoch``, ``loss``.
    """

    fitted: FittedAdapter
    steps: int
    history: list[dict[str, Any]] = field(repr=False)


def fit_adapter(
    source: Tensor, target: Tensor, recipe: AdapterRecipe, *, pairs: Any = None, description: str = "adapter"
) -> Fit:
    """Train the recipe's network on row-aligned vectors.

    Args:
        source: Sentence vectors of one language, float32. *Shape:* ``(pairs, dim)``
        target: Of their translations, on the same device. *Shape:* ``(pairs, dim)``
        recipe: Network, loss and training options; its seed fixes weights, dropout, batches and random negatives.
        pairs: The ``Dataset`` of their texts, with their languages; no text is then its own negative. Without it rows
            count as distinct, and the languages are called ``source`` and ``target``.
        description: Of the progress bar.

    Raises:
        ValueError: Sides of unequal length, fewer than two pairs, or vectors or losses that are not finite.
    """
    _check(source, target)
    options, loss_options = recipe.training, asdict(recipe.loss)
    steps = total_steps(options, len(source))
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        adapter = Adapter(source.shape[1], network=recipe.adapter.network, dropout=recipe.adapter.dropout)
        adapter.to(source.device).train()
        optimizer = torch.optim.AdamW(
            adapter.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, foreach=True
        )
        warmup = round(options.warmup * steps if options.warmup < 1 else options.warmup)
        schedule = get_scheduler(options.schedule, optimizer, num_warmup_steps=warmup, num_training_steps=steps)
        batches = itertools.islice(_batches(len(source), pairs, recipe), steps)
        history: list[dict[str, Any]] = []
        total, since, every = torch.zeros((), device=source.device), 0, max(1, steps // LOGS_A_RUN)
        with tqdm(total=steps, desc=description, file=sys.stderr, dynamic_ncols=True, leave=False) as bar:
            for step, (epoch, rows) in enumerate(batches, start=1):
                index = torch.as_tensor(rows, device=source.device)
                loss = siamese_contrastive(adapter(source[index]), adapter(target[index]), **loss_options)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                total, since = total + loss.detach(), since + 1
                if step % every == 0 or step == steps:
                    history.append({"step": step, "epoch": epoch, "loss": _finite(float(total) / since, step)})
                    bar.update(step - bar.n)
                    bar.set_postfix(loss=f"{history[-1]['loss']:.4f}")
                    total, since = torch.zeros_like(total), 0
    return Fit(
        centred(adapter, torch.cat([source, target]), languages_of(pairs, len(source)), recipe.adapter.centre),
        steps,
        history,
    )


def languages_of(pairs: Any, rows: int) -> list[str]:
    """Language of each text, all source texts first."""
    sides = ("source", "target")
    return [code for side in sides for code in ([side] * rows if pairs is None else pairs[f"{side}_language"][:])]


def _batches(rows: int, pairs: Any, recipe: AdapterRecipe) -> Iterator[tuple[int, list[int]]]:
    """Epoch and rows of one batch after the other, without end."""
    options = recipe.training
    sampler = ShuffledBatchSampler(
        range(rows) if pairs is None else pairs,
        options.batch_size,
        drop_last=rows >= options.batch_size,
        seed=options.seed,
        keep_duplicates_apart=pairs is not None,
    )
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for batch in sampler:
            yield epoch, batch


def _check(source: Tensor, target: Tensor) -> None:
    if source.ndim != 2 or source.shape != target.shape:
        raise ValueError(
            "source and target must be row-aligned vectors of one width: got shapes "
            f"{tuple(source.shape)} and {tuple(target.shape)}; pass one translation per sentence."
        )
    if len(source) < 2:
        raise ValueError(
            f"an adapter needs at least 2 pairs, whose translations are each other's negatives: got {len(source)}; "
            "the paper trains on 2,016."
        )
    for name, side in (("source", source), ("target", target)):
        if not bool(torch.isfinite(side).all()):
            raise ValueError(f"{name} holds vectors that are not finite; check the encoder and its precision.")


def _finite(loss: float, step: int) -> float:
    if not math.isfinite(loss):
        raise NotFiniteError(step, {TOTAL: str(loss)}, precision="fp32", checkpoint=None)
    return loss
