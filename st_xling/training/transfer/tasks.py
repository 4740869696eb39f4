"""The tasks on which encoders are evaluated after English fine-tuning: how each is read, trained and measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from st_xling.data.classified_pairs import PAWSX_LABELS, XNLI_LABELS, ClassifiedPairs, read_pawsx, read_xnli
from st_xling.data.tagged_words import PANX_LABELS, UPOS, TaggedSentences, read_conllu, read_panx

SCHEDULES = ("constant", "linear", "cosine")

Rows = ClassifiedPairs | TaggedSentences


@dataclass(frozen=True)
class FineTuning:
    """How an encoder is fine-tuned.

    Attributes:
        epochs: Passes over the training rows; a ``max_steps`` other than -1 overrides it.
        batch_size: Rows a step.
        learning_rate: Peak, for AdamW.
        schedule: One of :data:`SCHEDULES`: how the rate falls from its peak.
        warmup: Share of the steps, below 1, in which the rate rises to its peak.
        max_length: Tokens of a pair or a sentence, special tokens included; ``None``: 128, or as far as the encoder's
            positions reach.
        save_steps: Steps between checkpoints; 0: ten of them over the run.
        seed: Of the head's weights, dropout and the order of rows.

    Raises:
        ValueError: Values that no training can have.
    """

    epochs: float
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    warmup: float = 0.0
    weight_decay: float = 0.0
    max_steps: int = -1
    max_length: int | None = None
    save_steps: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}: got {self.schedule!r}.")
        least = {"batch_size": 1, "save_steps": 0, "seed": 0, "weight_decay": 0, "max_length": 3}
        for name, value in dataclasses.asdict(self).items():
            if name in least and value is not None and value < least[name]:
                raise ValueError(f"{name} must be at least {least[name]}: got {value}.")
        if self.max_steps < 1 and self.max_steps != -1:
            raise ValueError(f"max_steps must be at least 1, or -1, as the epochs say: got {self.max_steps}.")
        if not 0 <= self.warmup < 1:
            raise ValueError(f"warmup must be a share of the steps, at least 0 and below 1: got {self.warmup}.")
        for name in ("epochs", "learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number above 0: got {getattr(self, name)}.")


@dataclass(frozen=True)
class TransferTask:
    """One task.

    Attributes:
        name: As on the command line.
        title: As in tables.
        kind: One label for a pair of sentences, or one for each word of a sentence.
        labels: All that the task has, in the order of the head's outputs.
        read: Rows of a file; of pairs, those of ``language`` where the file has several.
        measures: What is reported, the papers' measure first.
        options: The fine-tuning of the paper that reports the task.
        f1: Of what: ``"runs"`` or ``"spans"``, see :func:`~st_xling.training.transfer.label_scores`.
    """

    name: str
    title: str
    kind: Literal["pairs", "words"]
    labels: tuple[str, ...]
    read: Callable[..., Rows]
    measures: tuple[str, ...]
    options: FineTuning
    f1: str = "runs"


_AMBER = FineTuning(epochs=5, batch_size=32, learning_rate=2e-5)
_XTREME = FineTuning(epochs=10, batch_size=32, learning_rate=2e-5, schedule="linear")

LIKE: Mapping[str, Mapping[str, FineTuning]] = {
    # Table 9; the length, 128 tokens, is that of all tasks here.
    "dap": {"xnli": FineTuning(epochs=2, batch_size=256, learning_rate=5e-5, schedule="linear")},
    # Appendix A.1.
    "amber": {"xnli": _AMBER, "pawsx": _AMBER, "pos": dataclasses.replace(_AMBER, epochs=10)},
}
"""Paper → task → how it fine-tunes. *Source:* DAP (Li et al. 2023); AMBER (Hu et al. 2021)."""


def fine_tuning(task: str, like: str | None = None) -> FineTuning:
    """How a paper fine-tunes for a task; ``None``: the one that reports it, for XNLI DAP.

    Raises:
        ValueError: A paper that is not in :data:`LIKE`, or that does not have the task.
    """
    if like is None:
        return TASKS[task].options
    if task not in LIKE.get(like, {}):
        known = "; ".join(f"{paper} for {', '.join(tasks)}" for paper, tasks in LIKE.items())
        raise ValueError(f"expected a paper's fine-tuning out of {known}: got {like} for {task}.")
    return LIKE[like][task]


_TASKS = (
    TransferTask("xnli", "XNLI", "pairs", XNLI_LABELS, read_xnli, ("accuracy",), LIKE["dap"]["xnli"]),
    TransferTask("pawsx", "PAWS-X", "pairs", PAWSX_LABELS, read_pawsx, ("accuracy",), LIKE["amber"]["pawsx"]),
    TransferTask("pos", "POS", "words", UPOS, read_conllu, ("f1", "accuracy"), LIKE["amber"]["pos"]),
    # XTREME, scripts/train_panx.sh, but for its warm-up: 10 epochs of 8 rows, gradients of 4 batches together.
    TransferTask("panx", "PAN-X", "words", PANX_LABELS, read_panx, ("f1",), _XTREME, "spans"),
)
TASKS = {task.name: task for task in _TASKS}
"""Name → task.

Source:
    DAP (Li et al. 2023), tables 4 and 9; AMBER (Hu et al. 2021), section 3.2 and tables 5 to 7; XTREME (Hu et al.
    2020) for PAN-X.
"""
