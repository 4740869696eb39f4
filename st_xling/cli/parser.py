"""A parser that says what is wrong, and what was probably meant, without its usage all over the screen."""

from __future__ import annotations

import argparse
import difflib
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from st_xling.utils.devices import check_device
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import check_replaced, work_path

#: What the help calls the value of an option that names something to read.
INPUTS = frozenset(
    ("MODEL", "ENCODER", "RECIPE", "SPEC", "EVAL", "STORE", "FILE", "DIR", "XX=PATH", "XX=FILE", "XX=DIR")
)
INPUTS |= {"PAPER", "SOURCE", "TARGET", "TEXT", "PARALLEL", "PAIRS", "WORDS|FILE"}

#: Models that are no folder, even beside a folder of that name.
NAMES = ("tiny", "bm25")

#: Options whose value is written, and what their help calls a folder.
OUTPUTS = frozenset(("out", "json", "html", "rejects", "runs", "work"))
FOLDERS = frozenset(("DIR", "STORE"))


#: Flags that commands have which embed text, not those that load another kind of model.
FOR_ENCODERS = ("--layer", "--pooling", "--truncate-dim", "--prompt", "--prompt-name")

#: Flags before a command and behind it.
EVERYWHERE = {
    "quiet": ("-q", "results and errors only"),
    "verbose": ("-v", "also what is loaded from where, how long things take, and warnings when they come"),
    "debug": (None, "show the traceback of an error"),
}


class Help(argparse.RawDescriptionHelpFormatter):
    """Paragraphs are filled, but for those with indented lines, such as examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill, keep = argparse.HelpFormatter._fill_text, super()._fill_text
        parts = text.strip("\n").split("\n\n")
        return "\n\n".join(
            keep(part, width, indent) if "\n " in part else fill(self, part, width, indent) for part in parts
        )


class Parser(argparse.ArgumentParser):
    """argparse's parser, without the usage before each error, and with the nearest flag or command after it.

    Sub-commands get parsers of the same class, and all of them that help.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, "add_help": False, **options})
        #: Called before a help is shown, to fit it to what else is on the command line.
        self.narrow: Callable[[Parser, argparse.Namespace], None] | None = None
        self._words: Sequence[str] | None = None
        self.add_argument("-h", "--help", action=_ShowHelp, help="show this help message and exit")
        for name, (short, words) in EVERYWHERE.items():
            # Suppressed: the default of a command would replace what stands before it.
            flags = [*filter(None, [short]), f"--{name}"]
            self.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=words)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, after a look for unknown flags, which it would name last, or not at all."""
        leaf = self._subparsers is None
        if args is not None:
            self._words = args
            self._check_flags(args if leaf else itertools.takewhile(lambda word: word.startswith("-"), args))
        result, rest = super().parse_known_args(args, namespace)
        if leaf:
            if rest:  # argparse would name the program alone
                self.error(f"unrecognized arguments: {' '.join(rest)}")
            result.actions = self._actions
        return result, rest

    def fit_help(self) -> bool:
        """Fit the help to the command line, whatever it lacks; false while that is read."""
        words, self._words = self._words, None
        if self.narrow is None or words is None:
            return self.narrow is None
        for action in self._actions:
            action.required = False
        self.narrow(self, super().parse_known_args(words)[0])
        return True

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and end with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\ntry: {self.prog} --help\n")

    def _check_flags(self, words: Iterable[str]) -> None:
        flags = list(self._option_string_actions)
        for word in words:
            flag = word.partition("=")[0]
            if word == "--":
                return
            # argparse takes a word with a space for text, and an unambiguous beginning for the whole flag.
            if word.startswith("--") and " " not in word and not any(known.startswith(flag) for known in flags):
                if flag in FOR_ENCODERS and "--trust-remote-code" in flags:
                    self.error(f"{flag} is for commands that embed text, and this one does not; leave it out")
                hint = _hint(flag, flags)
                if hint or self._subparsers is None:
                    self.error(f"no flag is called {flag!r}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = list(map(str, action.choices))
            meant = _hint(str(value), words) or f"; it is one of {', '.join(words)}"
            raise argparse.ArgumentError(action, f"got {value!r}{meant}")


class _ShowHelp(argparse._HelpAction):
    def __call__(self, parser: Any, *rest: Any) -> None:
        if parser.fit_help():
            super().__call__(parser, *rest)


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raise ``ValueError`` before a command starts, where it would write over what it reads, could not write there, or
    would find no such device. What is read and written is known by the words that the help has for it."""
    if getattr(arguments, "json", None) == Path("-") and getattr(arguments, "out", None) == "-":
        raise ValueError("stdout holds one thing: got --out - and --json -; give one of them a file.")
    files: dict[str, Any] = {}
    folders: dict[str, Any] = {}
    inputs: list[Any] = []
    for action in arguments.actions:
        value = getattr(arguments, action.dest, None)
        name = action.option_strings[-1] if action.option_strings else str(action.metavar)
        if action.dest == "runs":  # adds files with names of its own to a folder
            continue
        if action.dest in OUTPUTS:
            (folders if action.metavar in FOLDERS else files)[name] = value
        elif action.metavar in ("RECIPE", "PAPER") and not str(value).endswith((".yaml", ".yml")):  # a name
            continue
        elif action.metavar in INPUTS and value not in NAMES:
            inputs.append(value)
    check_outputs(files, inputs, folders=folders)
    results = {name: path for name, path in files.items() if name not in ("--json", "--html")}
    if results and not arguments.overwrite and not getattr(arguments, "dry_run", False):
        check_replaced(results, work_path(arguments.out, getattr(arguments, "work", None)))
    if getattr(arguments, "device", None) is not None:
        check_device(arguments.device)


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
