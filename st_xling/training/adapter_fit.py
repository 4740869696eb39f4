"""An adapter over sentence vectors: one or two layers while training, stock modules once it is trained."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import Dense, Normalize
from torch import Tensor, nn
from tqdm.auto import tqdm
from transformers import get_scheduler

from st_xling.data.samplers import ShuffledBatchSampler
from st_xling.losses import siamese_contrastive
from st_xling.models.centring import Centre, Centring, fit_centring
from st_xling.training.arguments import total_steps
from st_xling.training.trainer import TOTAL, NotFiniteError

if TYPE_CHECKING:
    from st_xling.training.adapter import AdapterRecipe

Network = Literal["linear", "tanh", "relu", "two-layer"]

_ACTIVATIONS: dict[str, tuple[type[nn.Module], ...]] = {
    "linear": (nn.Identity,),
    "tanh": (nn.Tanh,),
    "relu": (nn.ReLU,),
    "two-layer": (nn.Tanh, nn.Identity),
}
_IN = "sentence_embedding"
LOGS_A_RUN = 50


def check_network(network: str, dropout: float) -> None:
    """Raise ``ValueError`` for options that :class:`Adapter` does not know."""
    if network not in get_args(Network):
        raise ValueError(f"network must be one of {get_args(Network)}: got {network!r}.")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1): got {dropout}; the paper's is 0.2.")


class Adapter(nn.Module):
    """A siamese layer: both languages' sentence vectors go through the same weights.

    Args:
        dim: Width of the vectors, in and out.
        network: ``"linear"`` (the paper's best), ``"tanh"``, ``"relu"``, or ``"two-layer"``: tanh, then linear.
        dropout: Of the outputs of each layer, while training.

    Source:
        Huang et al. 2023 (mBERT-SF), equation 1 and figure 5; table 6 compares the networks.
    """

    def __init__(self, dim: int, *, network: Network = "linear", dropout: float = 0.2) -> None:
        super().__init__()
        check_network(network, dropout)
        # ST's modules from the start: what is trained is what is published.
        self.stages = nn.ModuleList(Dense(dim, dim, activation_function=kind()) for kind in _ACTIVATIONS[network])
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """*Shape:* ``(batch, dim)`` → the same"""
        for stage in self.stages:
            vectors = self.dropout(stage({_IN: vectors})[_IN])
        return vectors


@dataclass(frozen=True)
class FittedAdapter:
    """An adapter, and the means of its unit vectors over the training text.

    Attributes:
        adapter: Trained, without dropout; ``None``: the vectors as they are, to be centred alone.
        centring: ``None``: vectors are brought to unit length alone.
    """

    adapter: Adapter | None
    centring: Centring | None

    @torch.no_grad()
    def __call__(self, vectors: Tensor, language: str | None = None) -> Tensor:
        """Adapt, normalise, centre, normalise. *Shape:* ``(texts, dim)`` → the same, of length 1

        Args:
            vectors: Sentence vectors of one language.
            language: Centred by its mean; by the joint one where it has none.
        """
        adapted = vectors if self.adapter is None else self.adapter(vectors)
        return F.normalize(adapted, dim=-1) if self.centring is None else self.centring(adapted, language)

    def stock_modules(self) -> list[Any]:
        """The same as modules of sentence-transformers, to follow an encoder's pooling."""
        stages = [] if self.adapter is None else list(self.adapter.stages)
        return [*stages, *([Normalize()] if self.centring is None else self.centring.modules())]


@torch.no_grad()
def centred(
    adapter: Adapter | None, vectors: Tensor, languages: Sequence[str], centre: Centre = "per_language"
) -> FittedAdapter:
    """The adapter with the means of what it makes of the training text, see :func:`fit_centring`.

    Args:
        adapter: Trained; ``None``: the identity.
        vectors: Sentence vectors of the training text. *Shape:* ``(texts, dim)``
        languages: Of each of its texts.
        centre: ``"per_language"``, ``"joint"`` or ``"none"``.
    """
    if adapter is not None:
        adapter.eval()
    return FittedAdapter(adapter, fit_centring(vectors if adapter is None else adapter(vectors), languages, centre))


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
        NotFiniteError: A loss that is no longer a number.
    """
    options, loss_options = recipe.training, asdict(recipe.loss)
    steps = total_steps(options, len(source))
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        adapter = Adapter(source.shape[1], network=recipe.adapter.network, dropout=recipe.adapter.dropout)
        adapter.to(source.device).train()
        optimizer = torch.optim.AdamW(
            adapter.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, foreach=True
        )
        warmup = round(options.warmup_steps * steps if options.warmup_steps < 1 else options.warmup_steps)
        schedule = get_scheduler(
            options.lr_scheduler_type, optimizer, num_warmup_steps=warmup, num_training_steps=steps
        )
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
                    mean = float(total) / since
                    if not math.isfinite(mean):
                        raise NotFiniteError(step, {TOTAL: str(mean)}, precision="fp32", checkpoint=None)
                    history.append({"step": step, "epoch": epoch, "loss": mean})
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
        options.per_device_train_batch_size,
        drop_last=rows >= options.per_device_train_batch_size,
        seed=options.seed,
        keep_duplicates_apart=pairs is not None,
    )
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        for batch in sampler:
            yield epoch, batch
