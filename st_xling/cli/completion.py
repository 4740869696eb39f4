"""``st-xling completion``: a script by which a shell completes commands, options and their values."""

from __future__ import annotations

import argparse
from typing import Any

from st_xling.cli.options import command
from st_xling.cli.parser import FOLDERS, INPUTS

# Files may stand here too.
_NAMES_OR_FILES = {
    "bash": """_st_xling_{0}() {{ compgen -W "{1}" -- "$1"; compgen -f -- "$1"; }}""",
    "zsh": """_st_xling_{0}() {{ compadd {1}; _files; }}""",
}


@command("completion", shell={"choices": tuple(_NAMES_OR_FILES)})
def completion(arguments: argparse.Namespace) -> None:
    """Print a script for the shell, which then completes by TAB.

    Print what makes a shell complete commands, options, their values, files, and the names of recipes and papers.
    Nothing is run at a TAB. Print it again after an update.

    SHELL  bash or zsh

    examples:
      st-xling completion bash > ~/.local/share/bash-completion/completions/st-xling
      st-xling completion zsh > ~/.zfunc/_st-xling

    Of bash that folder is looked into by itself; of zsh, ~/.zfunc is to be named in ~/.zshrc: fpath+=~/.zfunc;
    autoload -Uz compinit; compinit. For one shell alone: source <(st-xling completion bash). Needs the extra:
    pip install "st-xling[completion]".
    """
    from st_xling.cli import build_parser
    from st_xling.reproduce.paper import paper_names
    from st_xling.training.recipe_files import recipe_names
    from st_xling.utils.checks import require

    shtab = require("shtab", "completion", extra="completion")
    names = {"RECIPE": recipe_names(None), "PAPER": paper_names()}
    parsers: list[Any] = [build_parser()]
    for action in (action for parser in parsers for action in parser._actions):
        if isinstance(action, argparse._SubParsersAction):
            parsers += action.choices.values()
            for choice in action._choices_actions:  # shtab shows descriptions, which are long
                action.choices[choice.dest].description = choice.help
        elif action.metavar in names:
            action.complete = dict.fromkeys(_NAMES_OR_FILES, f"_st_xling_{action.metavar}")
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY
        elif action.metavar in INPUTS | {"PATH"}:
            action.complete = shtab.FILE
    define = _NAMES_OR_FILES[arguments.shell]
    functions = "\n".join(define.format(kind, " ".join(known)) for kind, known in names.items())
    print(shtab.complete(parsers[0], arguments.shell, preamble={arguments.shell: functions}))
