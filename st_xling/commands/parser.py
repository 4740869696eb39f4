"""A parser that says what is wrong, and what was probably meant, without its usage all over the screen."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Help(argparse.RawDescriptionHelpFormatter):
    """Text of several lines stays as it is; a paragraph written as one line is filled."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class Parser(argparse.ArgumentParser):
    """The host's parser, without the usage before each error, and with the nearest flag or command after it.

    Sub-commands get parsers of the same class, and all of them that help.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As the host's, after a look for flags that are none, which it would name last, or not at all."""
        if args is not None and self._subparsers is None:
            self._check_flags(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and end with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\ntry: {self.prog} --help\n")

    def _check_flags(self, words: Sequence[str]) -> None:
        flags = list(self._option_string_actions)
        for word in words:
            flag = word.partition("=")[0]
            if word == "--":
                return
            # The host takes a word with a space for text, and an unambiguous beginning for the whole flag.
            if word.startswith("--") and " " not in word and not any(known.startswith(flag) for known in flags):
                self.error(f"no flag is called {flag!r}{_hint(flag, flags)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = list(map(str, action.choices))
            meant = _hint(str(value), words) or f"; it is one of {', '.join(words)}"
            raise argparse.ArgumentError(action, f"got {value!r}{meant}")


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
