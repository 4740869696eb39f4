"""Options of recipes, a dataclass for each section: the one table that recipes and ``st-xling train`` are read by.

An option with a ``flag`` is one of the command's, too; ``kinds`` are the recipes that it belongs to. Nothing here needs
torch, so that the command's help comes at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from st_xling.utils.options import Center, Network, Pooling, check_number

ENCODER, ADAPTER, RETRIEVER, CROSS_ENCODER = KINDS = ("encoder", "adapter", "retriever", "cross-encoder")
"""Kinds of recipes, by the model that they train."""
_BY_TRAINER = (ENCODER, RETRIEVER, CROSS_ENCODER)  # adapters are fitted on cached vectors, without ST's trainer
_BY_PAIRS = (ENCODER, RETRIEVER)


def setting(default: Any, flag: str = "", help: str = "", *, kinds: Sequence[str] = KINDS) -> Any:
    """Declare an option of a section.

    Args:
        default: Value of recipes that leave it out.
        flag: Option of ``st-xling train``, with the name of its value if the type does not tell; without one ``--set``
            sets it.
        help: Meaning, in the command's help.
        kinds: Recipes that it belongs to.
    """
    return field(default=default, metadata={"flag": flag, "help": help, "kinds": tuple(kinds)})


_LEAST = {
    **dict.fromkeys(("warmup_steps", "weight_decay", "max_grad_norm", "eval_steps", "logging_steps", "seed"), 0),
    **dict.fromkeys(("early_stopping_patience", "mini_batch_size", "warm_up_heads", "language_alpha"), 0),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps", "save_total_limit"), 1),
    "shuffle_buffer": 1,
    "max_steps": -1,
}
_ABOVE_ZERO = ("num_train_epochs", "learning_rate")
_MOST_SEED = 2**32 - 1  # NumPy takes no larger one


def check_training_numbers(section: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for training options that are not finite or out of range.

    Args:
        section: Option → value. Only numbers are checked here; the reader of recipes checks the types.
    """
    for name, value in section.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        check_number(f"training.{name}", value, least=_LEAST.get(name))
        if name in _ABOVE_ZERO and value <= 0:
            raise ValueError(f"training.{name} must be above 0: got {value}.")
        if name == "max_steps" and value == 0:
            raise ValueError("training.max_steps must be at least 1, or -1 to train for num_train_epochs: got 0.")
        if name == "seed" and value > _MOST_SEED:
            raise ValueError(f"training.seed must be at most {_MOST_SEED}: got {value}.")


@dataclass(frozen=True)
class TrainingOptions:
    """Options of the trainer.

    The first block are sentence-transformers' training arguments, with our defaults; the second is what ST lacks.

    Attributes:
        num_train_epochs: Passes over the data; ``max_steps`` overrides it.
        max_steps: Optimizer steps; -1: as the epochs say.
        per_device_train_batch_size: Pairs a step and process.
        learning_rate: Peak, for AdamW.
        warmup_steps: Share of the steps (below 1) or number of steps over which the rate rises.
        lr_scheduler_type: Name of a transformers scheduler.
        eval_steps: Steps between evaluations and checkpoints; 0: ten of them over the run.
        logging_steps: Steps between logged losses; 0 chooses. Must divide ``eval_steps``.
        save_total_limit: Checkpoints kept, the best included; ``None``: all.
        early_stopping_patience: Evaluations without a better score after which training ends; 0: never.
        prompt_name: A prompt of the model to put before every text, as ``prompts`` does, which holds any text.
        group_by_length: Batch sentences of like length.
        mini_batch_size: Rows encoded at a time (even): large batches in small memory, see ``CachedLoss``; 0: all.
        lora: Train adapters over frozen weights, with these :class:`~st_xling.models.lora.LoraOptions`; ``None``: train
            all weights.
        language_alpha: Balance languages by this exponent, see ``language_shares``: 1 as the data is, 0 all alike.
        batches: ``mixed``, or ``one_pair``: each batch holds a single pair of languages.
        keep_duplicates_apart: No two rows of a batch share a text, which in-batch losses would tell apart.
        shuffle_buffer: Rows of a stream that are shuffled together.
        warm_up_heads: Steps before training in which new vocabulary heads (of MLM, TLM, RTL) learn alone, with the
            encoder frozen, so that it does not pay for their random weights. ``None``: 200, at most as many as training
            has, for a pretrained encoder whose checkpoint has no such head; 0: none, as the papers do.
        save_vocabulary_head: Save the head of MLM or TLM with the encoder, as transformers has masked language models:
            whatever starts from the saved model begins with it.
        pivot: Language that is put on the target side of every pair that has it (DAP, section 5.1); ``None``: pairs
            stay as they come.
        arguments: Any other of ST's training arguments, by name; in a recipe they are next to the others.
    """

    num_train_epochs: float = setting(1.0, "--epochs", "Passes over --data.")
    max_steps: int = setting(-1, "--max-steps", "Steps, instead of epochs.")
    per_device_train_batch_size: int = setting(128, "--batch-size", "Pairs per step.")
    learning_rate: float = setting(5e-5, "--learning-rate", "Peak learning rate.")
    warmup_steps: float = setting(0.05, "--warmup", "Share of the steps in which the learning rate rises.")
    lr_scheduler_type: str = setting("linear")
    weight_decay: float = setting(0.01)
    seed: int = setting(0, "--seed", "Seed of weights, dropout and order.")
    max_grad_norm: float = setting(1.0, kinds=_BY_TRAINER)
    gradient_accumulation_steps: int = setting(1, kinds=_BY_TRAINER)
    bf16: bool = setting(False, kinds=_BY_TRAINER)
    fp16: bool = setting(False, kinds=_BY_TRAINER)
    eval_steps: int = setting(0, "--eval-steps", "Steps between two evaluations on --dev.", kinds=_BY_TRAINER)
    logging_steps: int = setting(0, kinds=_BY_TRAINER)
    save_total_limit: int | None = setting(2, kinds=_BY_TRAINER)

    early_stopping_patience: int = setting(0, kinds=_BY_TRAINER)
    prompt_name: str | None = setting(None, kinds=_BY_PAIRS)
    group_by_length: bool = setting(True, kinds=_BY_TRAINER)
    mini_batch_size: int = setting(
        0, "--mini-batch-size", "Rows encoded at a time, for large batches in little memory.", kinds=[ENCODER]
    )
    lora: Any = setting(None, kinds=[ENCODER, CROSS_ENCODER])  # its class needs torch
    language_alpha: float | None = setting(None, kinds=_BY_PAIRS)
    batches: Literal["mixed", "one_pair"] = setting("mixed", kinds=_BY_PAIRS)
    keep_duplicates_apart: bool = setting(True, kinds=_BY_PAIRS)
    shuffle_buffer: int = setting(50_000, kinds=_BY_PAIRS)
    warm_up_heads: int | None = setting(None, kinds=[ENCODER])
    save_vocabulary_head: bool = setting(False, kinds=[ENCODER])
    pivot: str | None = setting(
        "en",
        "--pivot CODE",
        "Language that becomes the target side of every pair that has it, or none (default: en).",
        kinds=[ENCODER],
    )
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_training_numbers(vars(self))

    def as_dict(self) -> dict[str, Any]:
        """As a recipe spells them."""
        content = dataclasses.asdict(self)
        return content | content.pop("arguments")


@dataclass(frozen=True)
class ModelOptions:
    """Pooling and length. ``None`` keeps the model's own."""

    pooling: Pooling | None = setting(
        None,
        "--pooling",
        "How token states become the embedding of a sentence (default: as --max-length).",
        kinds=[ENCODER, ADAPTER, RETRIEVER],
    )
    max_length: int | None = setting(
        None,
        "--max-length",
        "Maximum number of tokens of a text (default: the model's own; of a bare one the recipe's).",
    )

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise ValueError(f"model.max_length must leave room for CLS, SEP and a word: got {self.max_length!r}.")


@dataclass(frozen=True)
class TeacherOptions:
    """The encoder that ``MSELoss`` and ``EmbedDistillLoss`` learn from.

    Attributes:
        model: Hub id or folder of the teacher.
        revision: Of the Hub.
        trust_remote_code: Whether code that comes with it may run.
        prompt: Text before each text that the teacher reads; ``None``: the model's own; ``""``: none.
        prompt_name: One of the teacher's own prompts, instead.
        max_length: Tokens that the teacher reads of a text; ``None``: its own.
        truncate_dim: Leading dimensions of its vectors that are learned; ``None``: all.
        reads: Column whose vectors are the labels of both sentences: ``"target"`` (the pivot, English by default) or
            ``"source"``; ``"both"``: each sentence has its own vector, for a teacher that knows both languages.
    """

    model: str | None = setting(
        None, "--teacher MODEL", "Hub id or folder of the encoder to learn from (distill).", kinds=[ENCODER]
    )
    revision: str | None = None
    trust_remote_code: bool = False
    prompt: str | None = setting(
        None, "--teacher-prompt", "Text before each sentence of the teacher (default: its own).", kinds=[ENCODER]
    )
    prompt_name: str | None = None
    max_length: int | None = None
    truncate_dim: int | None = None
    reads: Literal["target", "source", "both"] = "target"


LAST_RANK = 32
"""Last rank that hard negatives are taken from; the first one, often another translation, is not."""


@dataclass(frozen=True)
class NegativeOptions:
    """Hard negatives that are mined before training: targets of other pairs that the model finds near a source.

    Attributes:
        count: Negatives of each pair, at most 31; 0: none are mined.
    """

    count: int = setting(
        0,
        "--mine-negatives",
        "Hard negatives of each pair for the loss translation_ranking, mined in --data by the model before training "
        "(default: 0).",
        kinds=[ENCODER],
    )


@dataclass(frozen=True)
class AdapterOptions:
    """The network that is trained, and its layer.

    Attributes:
        layer: Of the encoder, counted from 1; in a sweep each in turn.
        network: ``"linear"``, ``"tanh"``, ``"relu"`` or ``"two-layer"``: tanh, then linear.
        dropout: Of its outputs, while it is trained.
        normalize: Whether to scale the layer's vectors to length 1 before the network; the paper does not.
        center: After training, ``"per_language"``: each language's unit vectors less their own mean, as in the paper;
            ``"joint"``: less one mean of all languages; ``"none"``: unit length alone.
    """

    layer: int = setting(7, "--layer", "Layer of the encoder, from 1 (default: the recipe's).", kinds=[ADAPTER])
    network: Network = "linear"
    dropout: float = 0.2
    normalize: bool = False
    center: Center = "per_language"


@dataclass(frozen=True)
class RetrievalOptions:
    """Options of retrievers only.

    Attributes:
        encoders: ``"separate"``: one for queries and one for passages, from the same start, of which the contrastive
            terms train the latter alone, as in the paper; or ``"shared"``.
    """

    encoders: Literal["shared", "separate"] = setting(
        "separate",
        "--encoders",
        "One for both queries and passages, or one each (default: the recipe's).",
        kinds=[RETRIEVER],
    )


SECTIONS: dict[str, type] = {
    "training": TrainingOptions,
    "model": ModelOptions,
    "teacher": TeacherOptions,
    "negatives": NegativeOptions,
    "adapter": AdapterOptions,
    "retrieval": RetrievalOptions,
}
"""Sections of recipes with options of the command."""


@dataclass(frozen=True)
class CommandOption:
    """An option of ``st-xling train`` that sets a key of the recipe.

    Attributes:
        key: Dotted, such as ``"training.learning_rate"``.
        type: Annotation of the values.
        flag: The option, such as ``"--learning-rate"``, and the name of its value.
        help: Meaning.
        kinds: Recipes that it belongs to.
    """

    key: str
    type: Any
    flag: str
    help: str
    kinds: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the command's parameter."""
        return self.flag.partition(" ")[0].strip("-").replace("-", "_")


def command_options() -> Iterator[CommandOption]:
    """Yield the options that ``st-xling train`` has of recipes."""
    for section, kind in SECTIONS.items():
        hints = get_type_hints(kind)
        for entry in dataclasses.fields(kind):
            if entry.metadata.get("flag"):
                yield CommandOption(f"{section}.{entry.name}", hints[entry.name], **entry.metadata)


def unused_options(kind: str) -> list[str]:
    """List the training options that mean nothing for a kind of recipe."""
    options = dataclasses.fields(TrainingOptions)
    return [entry.name for entry in options if kind not in entry.metadata.get("kinds", KINDS)]
