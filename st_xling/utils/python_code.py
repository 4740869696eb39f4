"""Python code in lines of readable length: calls, lists and sums, of which long ones are broken in their brackets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

WIDTH = 120
"""Characters of a line."""


Expression: TypeAlias = Any
"""One of the classes below, or a plain value: a text, a number, a list or a dictionary of expressions."""


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
    arguments: Sequence[Expression] = ()
    keywords: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True)
class Sum:
    """A sum of at least two expressions."""

    terms: Sequence[Expression]


@dataclass(frozen=True)
class Scaled:
    """An expression times a number."""

    factor: float
    expression: Expression


def layout(expression: Expression, *, before: str = "", after: str = "", indent: int = 0) -> list[str]:
    """Return the lines of an expression.

    Args:
        expression: See :data:`Expression`.
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
    elements = _elements(expression)
    if brackets is None or not elements:
        return [line]
    opening, closing = brackets
    lines: list[str] = []
    if isinstance(expression, Call):
        words = [prefix + flat(element) for prefix, element in elements]
        words = [f"{word}," for word in words[:-1]] + words[-1:]
        lines = _fill_lines(words, indent=indent + 4)
    else:
        for prefix, element in elements:
            lines += layout(element, before=prefix, after=",", indent=indent + 4)
    return [f"{margin}{before}{opening}", *lines, f"{margin}{closing}{after}"]


def _fill_lines(words: Sequence[str], *, indent: int) -> list[str]:
    """Fill lines with words, which are not broken."""
    margin = " " * indent
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{margin}{word}")
    return lines


def _elements(expression: Expression) -> list[tuple[str, Expression]]:
    """Return the elements in the brackets of an expression, each with the code before it."""
    if isinstance(expression, Call):
        elements: list[tuple[str, Expression]] = [("", value) for value in expression.arguments]
        for name, value in expression.keywords.items():
            prefix = name if name == "**" else f"{name}="
            elements.append((prefix, value))
        return elements
    if isinstance(expression, Mapping):
        return [(f"{flat(key)}: ", value) for key, value in expression.items()]
    if isinstance(expression, (list, tuple)):
        return [("", value) for value in expression]
    return []


def _brackets(expression: Expression) -> tuple[str, str] | None:
    if isinstance(expression, Call):
        return f"{expression.function}(", ")"
    if isinstance(expression, Mapping):
        return "{", "}"
    if isinstance(expression, (list, tuple)):
        return "[", "]"
    return None


def flat(expression: Expression) -> str:
    """Return an expression as one line."""
    if isinstance(expression, Name):
        return expression.text
    if isinstance(expression, Scaled):
        return f"{expression.factor!r} * {flat(expression.expression)}"
    if isinstance(expression, Sum):
        return " + ".join(flat(term) for term in expression.terms)
    brackets = _brackets(expression)
    if brackets is not None:
        opening, closing = brackets
        content = ", ".join(prefix + flat(element) for prefix, element in _elements(expression))
        return f"{opening}{content}{closing}"
    if isinstance(expression, str):
        return json.dumps(expression, ensure_ascii=False)
    return repr(expression)
