"""New heads of a loss learn alone before training, so that the encoder does not pay for their random weights."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

import torch
from sentence_transformers import SentenceTransformerTrainer
from torch import nn

from st_xling.losses import CachedLoss, CombinedLoss
from st_xling.losses.base import as_loss
from st_xling.losses.gather import own_parameters
from st_xling.models.heads import new_heads
from st_xling.training.arguments import total_steps
from st_xling.utils.terminal import progress_bar

logger = logging.getLogger(__name__)

WARM_UP_STEPS = 200
"""Steps in which new heads learn alone, unless training has fewer."""
FEWEST_WARM_UP_STEPS = 50
"""With fewer, a head has learned next to nothing, which a warning says."""


def warm_up_heads(trainer: SentenceTransformerTrainer, *, steps: int | None = None) -> int:
    """Train the terms of a loss that have new heads on the trainer's batches, with the encoder frozen.

    A head of random weights sends large, aimless gradients into a pretrained encoder, which loses by them what makes
    its sentence embeddings good. The encoder, its optimizer and the random numbers of training proper stay untouched.
    :class:`~st_xling.training.CrossLingualTrainer` calls this by itself; for the trainer of sentence-transformers, call
    it before ``train``.

    Args:
        trainer: With the loss, the data and the arguments of training.
        steps: Optimizer steps, at the trainer's learning rate without a schedule. ``None``: 200, or as many as training
            has.

    Returns:
        The steps that were made, less those on data sets whose loss has no new head; 0 if no head is new.

    Example:
        >>> from st_xling.losses import RepresentationTranslationLoss, TranslationRankingLoss
        >>> loss = TranslationRankingLoss(model) + RepresentationTranslationLoss(model)           # doctest: +SKIP
        >>> trainer = SentenceTransformerTrainer(model, args, train_dataset=pairs, loss=loss)     # doctest: +SKIP
        >>> warm_up_heads(trainer)                                                                # doctest: +SKIP
        200
        >>> trainer.train()                                                                       # doctest: +SKIP
    """
    args: Any = trainer.args
    loss_of_heads = _losses_of_new_heads(trainer.loss)
    if steps is None:
        steps = min(WARM_UP_STEPS, total_steps(args, _count_rows(trainer.train_dataset), args.world_size))
    if not loss_of_heads or not steps:
        return 0
    values = _train_heads(trainer, loss_of_heads, steps)
    made = len(values)
    if made:
        logger.info("new heads: trained alone for %s, loss %.3f → %.3f", _format_steps(made), values[0], values[-1])
    if made < FEWEST_WARM_UP_STEPS:
        logger.warning(
            f"the new heads of the loss were trained alone for {_format_steps(made)}, too few to learn anything: what "
            "their random weights send into the encoder harms it. Train on more text, or by a loss without such heads "
            "(TranslationRankingLoss, the recipe tr)."
        )
    return made


def _losses_of_new_heads(loss: Any) -> dict[str | None, nn.Module]:
    """Return the terms with new heads: name of a data set → those of its loss, or ``None`` → those of the only loss."""
    losses: dict[str | None, nn.Module] = dict(loss) if isinstance(loss, dict) else {None: loss}
    loss_of_heads: dict[str | None, nn.Module] = {}
    for name, data_set_loss in losses.items():
        terms = _terms_with_new_heads(data_set_loss)
        if terms is not None:
            loss_of_heads[name] = terms
    return loss_of_heads


def _train_heads(trainer: Any, loss_of_heads: Mapping[str | None, nn.Module], steps: int) -> list[float]:
    """Train the heads for a number of batches, and return the losses.

    Args:
        trainer: With data and arguments of training.
        loss_of_heads: Result of :func:`_losses_of_new_heads`.
        steps: Number of batches; those of data sets whose loss has no new head train nothing.
    """
    args = trainer.args
    model = trainer.model
    weights: list[torch.Tensor] = []
    for loss in loss_of_heads.values():
        loss.to(model.device)
        weights += own_parameters(loss)
        for head in new_heads(loss):
            head.mark_trained()
    optimizer = torch.optim.AdamW(weights, lr=args.learning_rate, weight_decay=args.weight_decay)
    frozen = [weight for weight in model.parameters() if weight.requires_grad]
    batches: Iterator[Any] = chain.from_iterable(repeat(trainer.get_train_dataloader()))
    values: list[float] = []
    model.train()
    with torch.random.fork_rng():
        for weight in frozen:
            weight.requires_grad_(False)
        try:
            for batch in progress_bar(islice(batches, steps), total=steps, desc="new heads", unit="steps"):
                data_set = batch.pop("dataset_name", None)
                heads = loss_of_heads.get(data_set) if isinstance(trainer.loss, dict) else loss_of_heads[None]
                if heads is None:  # the loss of this data set has no new head
                    continue
                features, labels = trainer.collect_features(batch)
                with trainer.autocast_smart_context_manager():
                    value = sum(heads(features, labels).values())
                value.backward()
                torch.nn.utils.clip_grad_norm_(weights, args.max_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
                values.append(float(value.detach()))
        finally:
            for weight in frozen:
                weight.requires_grad_(True)
    return values


def _terms_with_new_heads(loss: nn.Module) -> nn.Module | None:
    """The sum of a loss's terms that have new heads, cached as the loss is; ``None`` if it has none."""
    uncached_loss = as_loss(loss.loss) if isinstance(loss, CachedLoss) else as_loss(loss)
    terms = [term for term in uncached_loss.as_sum().term_list() if new_heads(term.loss)]
    if not terms:
        return None
    if isinstance(loss, CachedLoss):
        return loss.on_terms(terms)
    return CombinedLoss(uncached_loss.model, terms)


def _count_rows(data: Any) -> int | None:
    """Rows of the training data, of all data sets; ``None`` for a stream."""
    datasets = list(data.values()) if isinstance(data, dict) else [data]
    if not all(hasattr(dataset, "__len__") for dataset in datasets):
        return None
    return sum(map(len, datasets))


def _format_steps(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"
