"""Text from users as Markdown that shows it and does nothing else: no structure, no HTML, no way out of a table.

What could mean something to Markdown or HTML is written as a numeric entity. Unlike a backslash, an entity is safe in a
table cell too, where ``\\\\|`` ends the cell that ``\\|`` does not.
"""

from __future__ import annotations

import re
import unicodedata

# `_` and `:` mean something only next to other characters; `$` opens formulas on the Hub.
_MEANINGFUL = re.compile(r"[&<>|`*\[\]\\~$]|(?<![^\W_])_|_(?![^\W_])|(?<=[hH][tT][tT][pP])s?:|(?<=[wW]{3})\.")
_LEADING = re.compile(r"^(?:[-+=#]|\d+(?=[.)](?:\s|$)))")
_BACKTICKS = re.compile(r"`+")


def one_line(text: object) -> str:
    """The text in one line, without control characters and halves of surrogate pairs, which UTF-8 cannot hold."""
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    shown = "".join(" " if unicodedata.category(sign) in ("Cc", "Zl", "Zp") else sign for sign in whole)
    return " ".join(
        "".join(sign for sign in shown if unicodedata.category(sign) != "Cf" or sign in "\u200c\u200d").split()
    )


def plain(text: object) -> str:
    """One line of Markdown that reads as ``text``.

    Example:
        >>> plain("a|b <script>")
        'a&#124;b &#60;script&#62;'
    """
    line = one_line(text)
    line = _MEANINGFUL.sub(lambda found: _entities(found[0]), line)
    return _LEADING.sub(lambda found: _entities(found[0]), line)


def code(text: object) -> str:
    """The same in the typeface of code, also within a table."""
    return f"<code>{plain(text)}</code>"


def span(text: object) -> str:
    """The same outside of tables, where it can stand as it was typed, between as many backticks as it takes."""
    line = one_line(text)
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(line)), default=0) + 1)
    room = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{room}{line}{room}{fence}"


def paragraphs(text: str) -> str:
    """Several paragraphs, separated by blank lines; within one, line ends become spaces."""
    parts = re.split(r"\n\s*\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n\n".join(plain(part) for part in parts if part.strip())


def fenced(text: str, language: str = "") -> str:
    """A block of code whose fence is longer than any run of backticks in it."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode("utf-8")
    shown = "".join(sign for sign in whole if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Zl", "Zp"))
    longest = max((len(run) for run in _BACKTICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown.strip(chr(10))}\n{fence}"


def _entities(text: str) -> str:
    return "".join(f"&#{ord(sign)};" for sign in text)
