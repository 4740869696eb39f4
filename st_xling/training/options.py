"""Options of training: our fields of sentence-transformers' training arguments, and the sections of recipes.

Nothing here needs torch, so that the command line can be checked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from st_xling.data.hard_translation_sets import check_hard_categories
from st_xling.utils.lora_options import LoraOptions
from st_xling.utils.options import Center, Network, Pooling, check_number

_LEAST = {
    **dict.fromkeys(("warmup_steps", "weight_decay", "max_grad_norm", "eval_steps", "logging_steps", "seed"), 0),
    **dict.fromkeys(("early_stopping_patience", "mini_batch_size", "warm_up_heads", "language_alpha"), 0),
    **dict.fromkeys(("per_device_train_batch_size", "gradient_accumulation_steps", "save_total_limit"), 1),
    "mini_batch_num_tokens": 1,
    "max_length": 3,  # CLS, SEP and a word
    "max_steps": -1,
}
_ABOVE_ZERO = ("num_train_epochs", "learning_rate")
_MOST_SEED = 2**32 - 1  # NumPy takes no larger one


def check_numbers(values: Mapping[str, Any], where: str = "") -> None:
    """Raise ``ValueError`` for training arguments that are not finite, out of range, or exclude each other.

    Args:
        values: Argument → value. Only numbers are checked.
        where: Before the names in messages, such as ``"arguments."``.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        check_number(f"{where}{name}", value, least=_LEAST.get(name))
        if name in _ABOVE_ZERO and value <= 0:
            raise ValueError(f"{where}{name} must be above 0: got {value}.")
        if name == "max_steps" and value == 0:
            raise ValueError(f"{where}max_steps must be at least 1, or -1 to train for num_train_epochs: got 0.")
        if name == "seed" and value > _MOST_SEED:
            raise ValueError(f"{where}seed must be at most {_MOST_SEED}: got {value}.")
        if name == "mini_batch_size" and value % 2 == 1:
            raise ValueError(f"{where}mini_batch_size must be even: got {value}.")
    rows = values.get("mini_batch_size")
    tokens = values.get("mini_batch_num_tokens")
    if rows and tokens:
        raise ValueError(
            f"mini-batches have rows or tokens: got {where}mini_batch_size {rows} and {where}mini_batch_num_tokens "
            f"{tokens}; drop one of them."
        )


EVALUATION_SHARE = 0.1
"""Steps between two evaluations, as a share of all steps."""
LOG_SHARE = 0.02
"""Steps between two logged losses, as a share of all steps."""


@dataclass
class OptimizationArguments:
    """Training arguments of every kind of training, under sentence-transformers' names and with our defaults.

    Attributes:
        num_train_epochs: Passes over the data; ``max_steps`` overrides it.
        max_steps: Optimizer steps; -1: as the epochs say.
        per_device_train_batch_size: Pairs per step and process.
        learning_rate: Peak, for AdamW.
        warmup_steps: Share of the steps (below 1) or number of steps over which the rate rises.
        lr_scheduler_type: Name of a scheduler of transformers.
        weight_decay: Weight decay of AdamW.
        seed: Seed of dropout and the order of the data; of a recipe, of new weights too. Heads of a loss that a script
            makes draw from torch's generator: call ``transformers.set_seed`` before.
    """

    num_train_epochs: float = 1.0
    max_steps: int = -1
    per_device_train_batch_size: int = 128
    learning_rate: float = 5e-5
    warmup_steps: float = 0.05
    lr_scheduler_type: str = "linear"
    weight_decay: float = 0.01
    seed: int = 0


@dataclass
class AdapterArguments(OptimizationArguments):
    """Training arguments of adapters, which are fitted on cached vectors without sentence-transformers' trainer."""

    gradient_accumulation_steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_numbers(vars(self))


@dataclass
class SharedArguments(OptimizationArguments):
    """Training arguments of all our trainers.

    The first block are sentence-transformers' own, with other defaults: an evaluator, if there is one, is called ten
    times a run, and the best checkpoint is kept. The second block is what ST lacks.

    Attributes:
        eval_strategy: When the model is evaluated; without an evaluator or evaluation data it is ``"no"``.
        eval_steps: Steps between two evaluations and checkpoints; below 1, a share of all steps.
        logging_steps: Steps between two logged losses; below 1, a share of all steps, that divides ``eval_steps``.
        save_steps: Steps between two checkpoints. Whoever sets only one of ``eval_steps`` and ``save_steps`` sets both.
        save_total_limit: Checkpoints to keep, the best included; ``None``: all.
        load_best_model_at_end: End with the best checkpoint; only where checkpoints are evaluated.
        dataloader_drop_last: Leave out rows that do not fill a batch, unless there are fewer than a batch.
        report_to: Experiment trackers.
        early_stopping_patience: Evaluations without a better score after which training ends; 0: never.
        group_by_length: Batch sentences of similar length.
        lora: Train adapters over frozen weights, with these options, or a mapping of them; ``None``: train all weights.
            At the end they are merged, or kept if ``merge`` is false.
    """

    eval_strategy: str = "steps"
    eval_steps: float = EVALUATION_SHARE
    logging_steps: float = LOG_SHARE
    save_steps: float = EVALUATION_SHARE
    save_total_limit: int | None = 2
    load_best_model_at_end: bool = True
    dataloader_drop_last: bool = True
    report_to: None | str | list[str] = "none"  # noqa: RUF036  # the order that transformers' HfArgumentParser takes

    early_stopping_patience: int = 0
    group_by_length: bool = True
    lora: LoraOptions | None = None


@dataclass
class EncoderArguments(SharedArguments):
    """Training arguments that encoders and retrievers have besides.

    Attributes:
        warm_up_heads: Steps before training in which new vocabulary heads (of MLM, TLM, RTL) learn alone, with the
            encoder frozen, so that it does not pay for their random weights. ``None``: 200, at most as many as training
            has, for a pretrained encoder whose checkpoint has no such head; 0: none, as the papers do.
        mini_batch_size: Rows encoded at a time (even): large batches in small memory, see
            :class:`~st_xling.losses.CachedLoss`; 0: all.
        mini_batch_num_tokens: Tokens encoded at a time instead, padding included: faster on texts of mixed lengths.
        language_alpha: Balance languages by this exponent, see :func:`~st_xling.data.batches.language_shares`: 1 as the
            data is, 0 all alike; ``None``: as the data is.
        batches: ``"mixed"``, or ``"one_pair"``: each batch holds a single pair of languages.
        keep_duplicates_apart: No two rows of a batch share a text, which in-batch losses would tell apart.
        max_length: Tokens that training reads of a text; ``None``: as many as the model, at most 512 where it reads
            more, such as 32,768. (In recipes ``model.max_length`` sets what both read.)
        prompt_name: A prompt of the model to put before every text, as ``prompts`` does, which takes any text.
        save_vocabulary_head: Save the head of MLM or TLM with the encoder, as transformers has masked language models:
            whatever starts from the saved model begins with it. In a script ``trainer.save_model`` does so, and
            ``model.save_pretrained``, which knows no head, does not.
    """

    warm_up_heads: int | None = None
    mini_batch_size: int = 0
    mini_batch_num_tokens: int | None = None
    language_alpha: float | None = None
    batches: Literal["mixed", "one_pair"] = "mixed"
    keep_duplicates_apart: bool = True
    max_length: int | None = None
    prompt_name: str | None = None
    save_vocabulary_head: bool = False


@dataclass(frozen=True)
class ModelOptions:
    """Pooling and length. ``None`` keeps the model's own."""

    pooling: Pooling | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 3:
            raise ValueError(f"model.max_length must leave room for CLS, SEP and a word: got {self.max_length!r}.")


@dataclass(frozen=True)
class TeacherOptions:
    """The encoder that ``MSELoss`` and ``EmbedDistillLoss`` learn from.

    Attributes:
        model: Hub id or folder of the teacher.
        revision: Version on the Hub: a branch, a tag or a commit.
        trust_remote_code: Whether code that comes with it may run.
        prompt: Text before each text that the teacher reads; ``None``: the model's own; ``""``: none.
        prompt_name: One of the teacher's own prompts, instead.
        max_length: Tokens that the teacher reads of a text; ``None``: its own.
        truncate_dim: Leading dimensions of its vectors that are learned; ``None``: all.
        reads: Column whose vectors are the labels of both sentences: ``"target"`` (the pivot, English by default) or
            ``"source"``; ``"both"``: each sentence has its own vector, for a teacher that knows both languages.
    """

    model: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    prompt: str | None = None
    prompt_name: str | None = None
    max_length: int | None = None
    truncate_dim: int | None = None
    reads: Literal["target", "source", "both"] = "target"


def check_negative_search(
    *,
    num_negatives: int,
    range_min: int,
    range_max: int | None,
    max_score: float | None,
    min_score: float | None,
    absolute_margin: float | None,
    relative_margin: float | None,
    where: str = "",
) -> None:
    """Raise ``ValueError`` for options of the search for hard negatives that are out of range or find nothing.

    Args:
        num_negatives: Number of negatives of each pair.
        range_min: Number of nearest candidates to skip.
        range_max: Number of nearest candidates to search; ``None``: as many as needed.
        max_score: Highest similarity of a negative.
        min_score: Lowest similarity of a negative.
        absolute_margin: Least distance of a negative's similarity from the translation's.
        relative_margin: The same as a share of the translation's similarity.
        where: Before the names in messages, such as ``"data.hard_negatives."``.
    """
    check_number(f"{where}num_negatives", num_negatives, least=1)
    check_number(f"{where}range_min", range_min, least=0)
    check_number(f"{where}relative_margin", relative_margin, least=0)
    check_number(f"{where}absolute_margin", absolute_margin, least=0)
    check_number(f"{where}max_score", max_score)
    check_number(f"{where}min_score", min_score)
    if range_max is not None and range_max - range_min < num_negatives:
        raise ValueError(
            f"{where}range_max must be at least range_min + num_negatives, {range_min + num_negatives}: got "
            f"{range_max}."
        )
    if max_score is not None and min_score is not None and min_score > max_score:
        raise ValueError(f"{where}min_score must be at most max_score, {max_score}: got {min_score}.")


@dataclass(frozen=True)
class HardNegativeOptions:
    """Hard negatives that are mined before training: targets of other pairs that the model finds near a source.

    See :func:`~st_xling.training.add_hard_negatives`, whose options these are.

    Attributes:
        num_negatives: Number of negatives of each pair; 0: none are mined.
        range_min: Number of nearest candidates to skip.
        range_max: Number of nearest candidates to search; ``None``: 300, or ten for each negative.
        max_score: Highest similarity of a negative.
        min_score: Lowest similarity of a negative.
        absolute_margin: A negative is at least this much less similar to the source than its translation.
        relative_margin: The same as a share of the translation's similarity.
        sampling_strategy: ``"top"``: the nearest candidates; ``"random"``: any of those in the range.
    """

    num_negatives: int = 0
    range_min: int = 0
    range_max: int | None = None
    max_score: float | None = None
    min_score: float | None = None
    absolute_margin: float | None = None
    relative_margin: float | None = 0.05
    sampling_strategy: Literal["top", "random"] = "top"

    def __post_init__(self) -> None:
        if self.num_negatives == 0:
            changed = [entry.name for entry in fields(self) if getattr(self, entry.name) != entry.default]
            if changed:
                raise ValueError(
                    f"data.hard_negatives.{changed[0]} is for negatives that are mined: got num_negatives 0; set "
                    "data.hard_negatives.num_negatives (--mine-negatives), or leave it out."
                )
            return
        check_negative_search(
            num_negatives=self.num_negatives,
            range_min=self.range_min,
            range_max=self.range_max,
            max_score=self.max_score,
            min_score=self.min_score,
            absolute_margin=self.absolute_margin,
            relative_margin=self.relative_margin,
            where="data.hard_negatives.",
        )


@dataclass(frozen=True)
class ReplayOptions:
    """Replay: texts next to each pair on which the model stays as it was, see :func:`~st_xling.training.add_replay`.

    Attributes:
        per_pair: Number of texts next to each pair: with 2, half of the texts of a batch are replayed.
        weight: Weight of the distance from the start's vectors in the sum of losses.
    """

    per_pair: int = 2
    weight: float = 20.0

    def __post_init__(self) -> None:
        check_number("data.replay.per_pair", self.per_pair, least=1)
        check_number("data.replay.weight", self.weight, least=0)
        if self.weight == 0:
            raise ValueError("data.replay.weight must be above 0: got 0; leave out --keep-like to train without.")


@dataclass(frozen=True)
class ParallelDataOptions:
    """Steps from a data set of parallel text to the one that is trained on.

    Attributes:
        pivot: Language that is put on the target side of every pair that has it (DAP, section 5.1); ``None``: pairs
            stay as they come.
        shuffle_buffer: Rows of a stream that are shuffled together.
        teacher: The model whose vectors are the labels of the losses that learn from one.
        hard_negatives: Negatives that are mined for translation ranking.
        replay: What training does with text on which the model shall stay as it was, if it is given.
        hard_swaps: Negatives for translation ranking that are made of the English side, by changes of these kinds: of
            :data:`~st_xling.data.hard_translation_sets.HARD_CATEGORIES`; see
            :func:`~st_xling.training.add_swap_negatives`. Empty: none.
    """

    pivot: str | None = "en"
    shuffle_buffer: int = 50_000
    teacher: TeacherOptions = field(default_factory=TeacherOptions)
    hard_negatives: HardNegativeOptions = field(default_factory=HardNegativeOptions)
    replay: ReplayOptions = field(default_factory=ReplayOptions)
    hard_swaps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_number("data.shuffle_buffer", self.shuffle_buffer, least=1)
        if self.hard_swaps:
            check_hard_categories(self.hard_swaps, "data.hard_swaps")
        if self.hard_swaps and self.hard_negatives.num_negatives:
            raise ValueError(
                "negatives are mined (data.hard_negatives) or made of the translation (data.hard_swaps): got both; "
                "take one of the two."
            )


@dataclass(frozen=True)
class RetrievalDataOptions:
    """Options of reading the sources of a retriever.

    Attributes:
        shuffle_buffer: Rows of each source that are shuffled together.
    """

    shuffle_buffer: int = 50_000

    def __post_init__(self) -> None:
        check_number("data.shuffle_buffer", self.shuffle_buffer, least=1)


@dataclass(frozen=True)
class AdapterOptions:
    """The network that is trained, and its layer.

    Attributes:
        layer: Layer of the encoder, counted from 1; a sweep trains on each in turn.
        network: ``"linear"``, ``"tanh"``, ``"relu"`` or ``"two-layer"``: tanh, then linear.
        dropout: Dropout of the outputs, while the network is trained.
        normalize: Whether to scale the layer's vectors to length 1 before the network; the paper does not.
        center: After training, ``"per_language"``: each language's unit vectors less their own mean, as in the paper;
            ``"joint"``: less one mean of all languages; ``"none"``: only scaled to unit length.
    """

    layer: int = 7
    network: Network = "linear"
    dropout: float = 0.2
    normalize: bool = False
    center: Center = "per_language"


@dataclass(frozen=True)
class RetrievalOptions:
    """Options of retrievers only.

    Attributes:
        encoders: ``"separate"``: one for queries and one for passages, from the same start, of which the contrastive
            terms train only the latter, as in the paper; or ``"shared"``.
    """

    encoders: Literal["shared", "separate"] = "separate"
