"""Train new vocabulary heads over a frozen encoder, before both are trained together."""

from __future__ import annotations

import logging
from itertools import chain, islice, repeat
from typing import Any

import torch

from st_xling.losses import CachedLoss, CombinedLoss
from st_xling.models import VocabularyHead
from st_xling.training.arguments import total_steps
from st_xling.training.options import TrainingOptions
from st_xling.training.run import Run
from st_xling.training.run_folder import own_state
from st_xling.training.trainer import CrossLingualTrainer
from st_xling.utils import distributed
from st_xling.utils.console import on_terminal, progress_bar

logger = logging.getLogger(__name__)

STEPS = 200


def has_new_head(loss: Any) -> bool:
    """Return whether a vocabulary head in ``loss`` starts from random weights."""
    return any(isinstance(part, VocabularyHead) and part.is_new for part in loss.modules())


def head_steps(run: Run, trainer: CrossLingualTrainer) -> int:
    """Return the steps that new heads learn alone before training, see ``warm_up_heads`` of the options."""
    options: TrainingOptions = run.recipe.training
    if not has_new_head(trainer.loss):
        return 0
    if options.warm_up_heads is not None:
        return options.warm_up_heads
    data: Any = trainer.train_dataset
    rows = len(data) if hasattr(data, "__len__") else None
    return 0 if run.model == "tiny" else min(STEPS, total_steps(options, rows, distributed.process_count()))


def warm_up_heads(trainer: CrossLingualTrainer, steps: int, *, mini_batch_size: int = 0) -> None:
    """Train the terms of a loss that have new heads on the trainer's batches, with the encoder frozen.

    A head of random weights sends large, aimless gradients into a pretrained encoder, which loses by them what makes
    its sentence embeddings good. The encoder, its optimizer and the random numbers of training proper stay untouched.

    Args:
        trainer: Trainer of the run, before it has trained.
        steps: Optimizer steps, at the trainer's learning rate without a schedule.
        mini_batch_size: Rows that are encoded together; 0: the whole batch.
    """
    model: Any = trainer.model
    loss: Any = trainer.loss
    whole: Any = loss.loss if isinstance(loss, CachedLoss) else loss
    terms = [term for term in whole.term_list() if has_new_head(term.loss)]
    heads: Any = CombinedLoss(model, terms).to(model.device)
    heads.warns_of_heads = False  # these are saved
    weights = [tensor for tensor in own_state(heads, model).values() if tensor.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=trainer.args.learning_rate, weight_decay=trainer.args.weight_decay)
    if mini_batch_size:
        heads = CachedLoss(heads, mini_batch_size=mini_batch_size)
        heads.warns_of_heads = False
    frozen = [weight for weight in model.parameters() if weight.requires_grad]
    batches = chain.from_iterable(repeat(trainer.get_train_dataloader()))
    values: list[float] = []
    model.train()
    with torch.random.fork_rng(), progress_bar(total=steps, desc="heads", unit="steps", show=on_terminal()) as bar:
        for weight in frozen:
            weight.requires_grad_(False)
        try:
            for batch in islice(batches, steps):
                features, labels = trainer.collect_features(batch)
                with trainer.autocast_smart_context_manager():
                    value = sum(heads(features, labels).values())
                value.backward()
                torch.nn.utils.clip_grad_norm_(weights, trainer.args.max_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
                values.append(float(value.detach()))
                bar.update(1)
        finally:
            for weight in frozen:
                weight.requires_grad_(True)
    logger.info("new heads: trained alone for %d steps, loss %.3f → %.3f", steps, values[0], values[-1])
