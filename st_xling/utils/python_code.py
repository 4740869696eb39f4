"""Python code in lines of readable length: calls, lists and sums, of which long ones are broken in their brackets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 120
"""Characters of a line."""


@dataclass(frozen=True)
class Name:
    """A name, or any expression that stays on its line."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a function.

    Attributes:
        function: Its name.
        arguments: Positional arguments: expressions, or plain values.
        keywords: Arguments by keyword.
    """

    function: str
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sum:
    """A sum of at least two expressions."""

    terms: Sequence[Any]


@dataclass(frozen=True)
class Scaled:
    """An expression times a number."""

    factor: float
    expression: Any


def layout(expression: Any, *, before: str = "", after: str = "", indent: int = 0) -> list[str]:
    """Return the lines of an expression.

    Args:
        expression: One of the classes above, or a plain value: a text, a number, a list or a dictionary of such.
        before: Code before it on its first line, such as ``"loss = "``.
        after: Code behind it on its last line.
        indent: Spaces before every line.

    Example:
        >>> print("\\n".join(layout(Call("train", ["run"], {"steps": 2}), before="result = ")))
        result = train("run", steps=2)
    """
    margin = " " * indent
    line = f"{margin}{before}{flat(expression)}{after}"
    if len(line) <= WIDTH:
        return [line]
    if isinstance(expression, Scaled):
        return layout(expression.expression, before=f"{before}{expression.factor!r} * ", after=after, indent=indent)
    brackets = _brackets(expression)
    parts = _parts(expression)
    if brackets is None or not parts:
        return [line]
    opening, closing = brackets
    if isinstance(expression, Call):
        words = [name + flat(part) for name, part in parts]
        words = [f"{word}," for word in words[:-1]] + words[-1:]
        lines = _filled(words, indent=indent + 4)
    else:
        lines = []
        for name, part in parts:
            lines += layout(part, before=name, after=",", indent=indent + 4)
    return [f"{margin}{before}{opening}", *lines, f"{margin}{closing}{after}"]


def _filled(words: Sequence[str], *, indent: int) -> list[str]:
    """Fill lines with words, which are not broken."""
    margin = " " * indent
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{margin}{word}")
    return lines


def _parts(expression: Any) -> list[tuple[str, Any]]:
    """What stands in the brackets of an expression, with the code before each of it."""
    if isinstance(expression, Call):
        keywords = [(name if name == "**" else f"{name}=", value) for name, value in expression.keywords.items()]
        return [*(("", value) for value in expression.arguments), *keywords]
    if isinstance(expression, Mapping):
        return [(f"{flat(key)}: ", value) for key, value in expression.items()]
    if isinstance(expression, (list, tuple)):
        return [("", value) for value in expression]
    return []


def _brackets(expression: Any) -> tuple[str, str] | None:
    if isinstance(expression, Call):
        return f"{expression.function}(", ")"
    if isinstance(expression, Mapping):
        return "{", "}"
    if isinstance(expression, (list, tuple)):
        return "[", "]"
    return None


def flat(expression: Any) -> str:
    """Return an expression as one line."""
    if isinstance(expression, Name):
        return expression.text
    if isinstance(expression, Scaled):
        return f"{expression.factor!r} * {flat(expression.expression)}"
    if isinstance(expression, Sum):
        return " + ".join(flat(term) for term in expression.terms)
    brackets = _brackets(expression)
    if brackets is not None:
        return brackets[0] + ", ".join(name + flat(part) for name, part in _parts(expression)) + brackets[1]
    if isinstance(expression, str):
        return json.dumps(expression, ensure_ascii=False)
    return repr(expression)
