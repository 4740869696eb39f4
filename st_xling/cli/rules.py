"""Rules of the command line: ranges of numbers, and options that exclude or need each other.

What does not apply to a call is an error, never ignored. Nothing here imports torch or reads a file, so that an error
comes at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LEAST = {
    "batch_size": 1,
    "dim": 1,
    "jobs": 1,
    "k": 1,
    "layer": 1,
    "max_candidates": 1,
    "max_size": 1,
    "max_steps": 1,
    "memory_mib": 1,
    "merge_to": 1,
    "min_count": 1,
    "per_device_train_batch_size": 1,
    "samples": 1,
    "shard_rows": 1,
    "size": 1,
    "token_budget": 1,
    "top_k": 1,
    "truncate_dim": 1,
    "dev_share": 0,
    "eval_steps": 0,
    "examples": 0,
    "min_score": 0,
    "most_lost": 0,
    "mine_negatives": 0,
    "mini_batch_size": 0,
    "pieces": 0,
    "seed": 0,
    "test_share": 0,
    "warmup": 0,
    "warmup_steps": 0,
    "max_length": 3,  # CLS, SEP and a word
}
"""Smallest value of numbers, by the name of the parameter."""

ABOVE_ZERO = (
    "epochs",
    "num_train_epochs",
    "hold_out",
    "learning_rate",
    "merge",
    "target_precision",
    "first_stage_recall",
    "first_stage_share",
)
"""Numbers that must be above 0."""

MOST = {
    "first_stage_recall": 1,
    "first_stage_share": 1,
    "merge": 1,
    "seed": 2**32 - 1,  # the most that NumPy takes
    "min_score": 1,
    "target_precision": 1,
}
"""Largest value of numbers."""

BELOW_ONE = ("dev_share", "hold_out", "test_share")
"""Shares that must leave something."""


@dataclass(frozen=True)
class Given:
    """Options and arguments of a call.

    Attributes:
        values: Value of every parameter, by name.
        typed: Parameters that were typed, by name, as they are spelled. A value that equals the default counts, too.
    """

    values: Mapping[str, Any]
    typed: Mapping[str, str]

    @classmethod
    def of(cls, context: Any) -> Given:
        """Read the context of a command."""
        typed = {}
        for parameter in context.command.params:
            source = context.get_parameter_source(parameter.name)
            if source is None or source.name != "COMMANDLINE":
                continue
            spelling = parameter.opts[0]
            if not spelling.startswith("-"):  # an argument
                spelling = str(parameter.metavar)
            typed[str(parameter.name)] = spelling
        return cls(context.params, typed)

    def names(self, parameters: Iterable[str]) -> str:
        """Return those of some parameters that were typed, joined; empty if there is none."""
        return " and ".join(self.typed[name] for name in parameters if name in self.typed)

    def refuse(self, parameters: Iterable[str], reason: str) -> None:
        """Raise ``ValueError`` if any of some parameters was typed, which this call would ignore.

        Args:
            parameters: Their names.
            reason: Why they do not apply.
        """
        options = self.names(parameters)
        if " and " in options:
            raise ValueError(f"{options} do not apply: {reason}; remove them.")
        if options:
            raise ValueError(f"{options} does not apply: {reason}; remove it.")


@dataclass(frozen=True)
class Excludes:
    """Options of which a call has one or the other.

    Attributes:
        option: Name of a parameter.
        others: Parameters that cannot be given with it.
        reason: Why not, and what to do: the end of the message.
    """

    option: str
    others: tuple[str, ...]
    reason: str

    def check(self, given: Given) -> None:
        """Raise ``ValueError`` if both are given."""
        others = given.names(self.others)
        if self.option in given.typed and others:
            raise ValueError(f"{given.typed[self.option]} cannot be used with {others}: {self.reason}.")


@dataclass(frozen=True)
class Needs:
    """Options that mean something only together with another.

    Attributes:
        options: Names of parameters.
        other: Parameter that they need.
        reason: What the other is for: the end of the message.
    """

    options: tuple[str, ...]
    other: str
    reason: str

    def check(self, given: Given) -> None:
        """Raise ``ValueError`` if one is given without the other."""
        options = given.names(self.options)
        if self.other not in given.typed and options:
            verb = "need" if " and " in options else "needs"
            raise ValueError(f"{options} {verb} --{self.other.replace('_', '-')}: {self.reason}.")


@dataclass(frozen=True)
class Inapplicable:
    """Options that mean nothing in one of two modes of a command.

    Attributes:
        options: Names of parameters.
        reason: Returns why they do not apply to a call; empty if they do.
    """

    options: tuple[str, ...]
    reason: Callable[[Given], str]

    def check(self, given: Given) -> None:
        """Raise ``ValueError`` if one is given where it would be ignored."""
        if reason := self.reason(given):
            given.refuse(self.options, reason)


@dataclass(frozen=True)
class Requires:
    """Options of which a call needs one, or some together.

    Attributes:
        options: Names of parameters.
        missing: Returns what is missing and what to do; empty if nothing is.
    """

    options: tuple[str, ...]
    missing: Callable[[Given], str]

    def check(self, given: Given) -> None:
        """Raise ``ValueError`` if something is missing."""
        if message := self.missing(given):
            raise ValueError(message)


Rule = Excludes | Needs | Inapplicable | Requires

SHARED: tuple[Rule, ...] = (
    Excludes("prompt", ("prompt_name",), "a prompt is given by its text or by its name; remove one"),
    Excludes("resume", ("overwrite",), "the earlier run is continued or replaced; remove one"),
    Excludes("epochs", ("max_steps",), "the steps would replace the epochs; remove one"),
    Excludes("num_train_epochs", ("max_steps",), "the steps would replace the epochs; remove one"),
)
"""Rules of every command that has the options."""


def check_rules(given: Given, rules: Iterable[Rule]) -> None:
    """Raise ``ValueError`` for the first rule that the options break."""
    for rule in (*SHARED, *rules):
        rule.check(given)


def check_numbers(values: Mapping[str, Any], typed: Mapping[str, str] | None = None) -> None:
    """Raise ``ValueError`` for numbers that are not finite or out of range.

    Args:
        values: Value of every parameter, by name.
        typed: Parameters as they are spelled, by name, see :class:`Given`; of others the name is the option.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        flag = (typed or {}).get(name, f"--{name.replace('_', '-')}")
        if not math.isfinite(value):
            raise ValueError(f"{flag} must be a finite number: got {value}.")
        if name in ABOVE_ZERO and value <= 0:
            raise ValueError(f"{flag} must be above 0: got {value}.")
        if name in LEAST and value < LEAST[name]:
            raise ValueError(f"{flag} must be at least {LEAST[name]}: got {value}.")
        if name in BELOW_ONE and value >= 1:
            raise ValueError(f"{flag} must be below 1, to leave something: got {value}.")
        if name in MOST and value > MOST[name]:
            raise ValueError(f"{flag} must be at most {MOST[name]}: got {value}.")
