"""Train the rows of new pieces alone, by distillation: a language is added, and no other text is read differently.

Every sentence of the new language learns the vector that the model already gives its translation (Reimers and Gurevych
2020), and only the new rows of the word embeddings may change for it. Text without new pieces keeps its embeddings to
the last bit, so that nothing has to be replayed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from st_xling.data.leak import Texts
from st_xling.training.encoder import train
from st_xling.training.recipe import Recipe, load_recipe
from st_xling.training.run import Evaluators, OnLeak, TrainingResult

#: Peak learning rate of rows: they are far from where they belong, and nothing else can be harmed.
LEARNING_RATE = 1e-3


class TrainRowsCallback(TrainerCallback):
    """Train some rows of a model's word embeddings, and nothing else.

    Weight decay must be 0: it would change the other rows.

    Args:
        first: Id of the first token whose row is trained.
        count: Number of rows.

    Example:
        >>> callback = TrainRowsCallback(first=1000, count=200)  # trainer.add_callback(callback)
        >>> callback.first + callback.count
        1200
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count
        self._frozen: list[torch.nn.Parameter] = []
        self._hook: Any = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        model = kwargs["model"]
        table = model[0].auto_model.get_input_embeddings().weight
        self._frozen = [weight for weight in model.parameters() if weight is not table and weight.requires_grad]
        for weight in self._frozen:
            weight.requires_grad_(False)
        mask = torch.zeros(len(table), 1, device=table.device)
        mask[self.first : self.first + self.count] = 1.0
        self._hook = table.register_hook(lambda gradient: gradient * mask)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._hook.remove()
        for weight in self._frozen:
            weight.requires_grad_(True)


def rows_recipe(overrides: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of :func:`train_new_rows`: ``distill``, of which the first sentence of a pair learns.

    Args:
        overrides: Dotted key → value, see :func:`~st_xling.training.load_recipe`.

    Raises:
        ValueError: Weight decay, which would change rows that are not trained.

    Example:
        >>> rows_recipe({"arguments.num_train_epochs": 2}).arguments.weight_decay
        0.0
    """
    defaults = {"arguments.learning_rate": LEARNING_RATE, "arguments.weight_decay": 0.0}
    recipe = load_recipe("distill", overrides={**defaults, **(overrides or {})})
    if decay := recipe.arguments.weight_decay:
        raise ValueError(f"arguments.weight_decay changes rows that are not trained: got {decay}; set it to 0.")
    losses = {"MSELoss": {**recipe.losses["MSELoss"], "columns": [0]}}
    summary = "Distillation into the rows of new pieces alone, all other weights frozen."
    return dataclasses.replace(recipe, name="new-rows", summary=summary, losses=losses)


def train_new_rows(
    model: str,
    data: Mapping[str, Dataset],
    out: str | Path,
    *,
    first: int,
    count: int,
    recipe: Recipe,
    teacher: SentenceTransformer | None = None,
    cache: str | Path | None = None,
    evaluator: Evaluators | None = None,
    evaluation: Mapping[str, Texts] | None = None,
    on_leak: OnLeak = "report",
    resume: bool = False,
    overwrite: bool = False,
    command: str | None = None,
    provenance: Sequence[Mapping[str, Any]] = (),
) -> TrainingResult:
    """Train the rows of new pieces, by the vectors that the model gives the translations.

    Args:
        model: Folder of the grown model.
        data: Name → pairs with the columns ``source``, in the new language, and ``target``, in one that the model
            reads, and their languages.
        out: Folder of the run.
        first: Id of the first new piece.
        count: Number of new pieces.
        recipe: From :func:`rows_recipe`.
        teacher: A loaded model, in place of the recipe's ``data.teacher.model``.
        cache: Folder of the teacher's vectors; ``None``: one next to downloaded models.
        evaluator: Evaluates the model during training; the best checkpoint is kept.
        evaluation: See :func:`~st_xling.training.train`.
        on_leak: Likewise.
        resume: Resume from the last complete checkpoint in ``out``.
        overwrite: Replace an earlier run in ``out``.
        command: The command line, recorded with the run.
        provenance: Where the text came from, recorded with the run: ``option``, ``spec`` and ``names`` of each source.

    Raises:
        ValueError, TrainingInterrupted: As :func:`~st_xling.training.train`.

    Example:
        >>> from st_xling.models import grow_vocabulary, tiny_encoder
        >>> english, amharic = ["The dog is sleeping.", "I am reading."], ["ውሻው ተኝቷል።", "እያነበብኩ ነው።"]
        >>> teacher = tiny_encoder(english, vocabulary=100, hidden_size=16)
        >>> growth = grow_vocabulary(teacher, amharic, translations=english, min_count=1)
        >>> growth.model.save_pretrained("grown")
        >>> rows = {"first": growth.first_id, "count": len(growth.pieces)}
        >>> pairs = {"am-en": Dataset.from_dict({"source": amharic, "target": english})}
        >>> recipe = rows_recipe({"arguments.max_steps": 2})
        >>> train_new_rows("grown", pairs, "trained-rows", recipe=recipe, teacher=teacher, **rows).steps
        2
    """
    return train(
        recipe,
        data,
        out,
        model=model,
        teacher=teacher,
        cache=cache,
        evaluator=evaluator,
        evaluation=evaluation,
        on_leak=on_leak,
        resume=resume,
        overwrite=overwrite,
        callbacks=[TrainRowsCallback(first, count)],
        command=command,
        provenance=provenance,
    )
