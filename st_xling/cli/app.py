"""The typer application: its commands, and the errors, checks and interrupts that all of them share."""

from __future__ import annotations

import inspect
import os
import re
import select
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from st_xling._version import __version__
from st_xling.cli.options import JsonOption, command_of
from st_xling.cli.rules import Given, Rule, check_numbers, check_rules


def fill(text: str) -> str:
    """Join the lines of each paragraph, except those marked for typer with a backspace, such as examples."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else " ".join(part.split()) for part in paragraphs)


FILES = ("SOURCE", "TARGET", "TEXT", "FILE", "XX=FILE")
SPECS = ("SPEC", "EVAL", "PAIRS", "PARALLEL")
INPUTS = frozenset((*FILES, *SPECS, "MODEL", "RECIPE", "STORE", "DIR", "XX=PATH", "XX=DIR", "PAPER"))
"""Metavars of parameters that name something to read."""
NAMES = ("tiny", "bm25")
"""Models that are not folders, even if there is a folder of that name."""
OUTPUTS = frozenset(("out", "json", "rejects", "work", "runs"))
"""Parameters that name something to write: a folder if the metavar is ``DIR`` or ``STORE``, otherwise a file."""

LANGUAGE_LISTS = {
    **dict.fromkeys(("slim", "card"), ("languages",)),
    **dict.fromkeys(("retrieval", "reranking"), ("query_languages",)),
}
"""Parameters that are lists of languages, by command; of Tatoeba's they may also be groups."""
NO_PIVOT = "none"

MODEL_FILES = ("config.json", "modules.json")
SYNONYMS = {
    **{"--lr": "--learning-rate", "--bs": "--batch-size", "--per-device-train-batch-size": "--batch-size"},
    **{"--num-train-epochs": "--epochs", "--num-epochs": "--epochs", "--warmup-ratio": "--warmup"},
    **{"--max-seq-length": "--max-length", "--model-name-or-path": "--model"},
    **{"--src-lang": "--source-language", "--source-lang": "--source-language"},
    **{"--tgt-lang": "--target-language", "--target-lang": "--target-language"},
    "--batch-size": "--token-budget",  # of commands that have no batch size
    **{"-o": "--out", "--output": "--out", "--output-dir": "--out", "--output-path": "--out"},
}
"""Options of other tools → ours, for messages."""

TYPER: dict[str, Any] = {
    "rich_markup_mode": "rich",
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


@dataclass(frozen=True)
class Call:
    """A call of the command line, ``context.obj`` of every command.

    Attributes:
        line: The whole command, without the flags that change no result.
        flags: ``quiet``, ``verbose`` and ``debug``, if given.
        stdout: Standard output, for an option that is ``-``, while all else is printed to stderr; ``None`` if it is
            closed.
    """

    line: str
    flags: frozenset[str]
    stdout: TextIO | None


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"st-xling {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Cross-lingual sentence embeddings: train encoders, evaluate them, mine and rank with them, publish them.

    Every command names text by [NAME=]LOCATION[?OPTION=VALUE&...], where NAME is one language or two:
    de-en=pairs.tsv, zh_Hant-en=SOURCE,TARGET, pt_BR=texts.txt?size=8000&seed=0 (a sample), phrasebook:de,fr?size=500.
    Quote it if it contains ? or &.

    Every command also takes -q (results and errors only), -v (details and warnings as they occur) and --debug (the
    traceback of an error).

    \b
    everything once, in a few minutes:
      st-xling demo

    \b
    the same, step by step; news.* (a sentence a line), q.jsonl and p.jsonl are yours, the phrasebook is built in:
      st-xling train dap --model tiny --data phrasebook:de,fr \\
          --out my-encoder
      st-xling evaluate tatoeba my-encoder --data phrasebook:de,fr --keep
      st-xling evaluate bucc my-encoder --data phrasebook --pairs de-en \\
          --keep
      st-xling mine news.de news.en --model my-encoder --source-language de \\
          --target-language en --out mined.tsv
      st-xling train xpr-mixed --model tiny --data 'en=phrasebook?size=300' \\
          --data 'de=phrasebook?size=300' --out my-reranker
      st-xling rerank my-reranker --queries q.jsonl --passages p.jsonl \\
          --out ranked.jsonl
      st-xling card my-encoder --license apache-2.0
      st-xling push my-encoder user/my-encoder --dry-run
    """


class _Trimmed:
    """A stream to which lines are written without spaces at their end: after one, a backslash continues nothing."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(re.sub(" +(?=\n|$)", "", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Group(TyperGroup):
    """A group of commands whose help can be copied."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without the spaces that fill its lines."""
        with redirect_stdout(_Trimmed(sys.stdout)):
            super().format_help(ctx, formatter)


HELP = fill(str(root.__doc__))
app = typer.Typer(help=HELP, cls=Group, pretty_exceptions_enable=False, **TYPER)
app.callback()(root)


class Command(TyperCommand):
    """A command with ``--json``, whose errors are one line on stderr."""

    def __init__(
        self,
        *args: Any,
        params: list[Any],
        shared: Sequence[type] = (),
        rules: Sequence[Rule] = (),
        help: str | None = None,
        **settings: Any,
    ) -> None:
        self.own = [str(each.name) for each in params]
        self.rules = rules
        more = [each for kind in (*shared, JsonOption) for each in command_of(kind).params]
        super().__init__(*args, params=[*params, *more], help=fill(help or ""), **settings)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without the spaces that fill its lines."""
        with redirect_stdout(_Trimmed(sys.stdout)):
            super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command.

        Lists whose metavar ends with ``...`` take several: ``--pairs de-en fr-en``. ``--model MODEL`` may also name a
        model that is an argument. Options of other tools are named as ours in an error.
        """
        known = {flag for each in self.params for flag in each.opts}
        metavars = [getattr(each, "metavar", None) for each in self.params]
        if "--model" not in known and "MODEL" in metavars[:2]:
            args = [part for word in args for part in (word.split("=", 1) if word.startswith("--model=") else [word])]
            if "--model" in args[:-1]:
                place, first = args.index("--model"), metavars.index("MODEL")
                others = [*args[:place], *args[place + 2 :]]
                args = [*others[:first], args[place + 1], *others[first:]]
        for word in [word.partition("=")[0] for word in args]:
            if word not in known and (ours := SYNONYMS.get(word.replace("_", "-"))) in known:
                raise typer.BadParameter(f"No such option: {word}; did you mean {ours}?")
        lists = {flag for each in self.params if str(each.metavar).endswith("...") for flag in each.opts}
        words: list[str] = []
        flag = None
        for word in args:
            if word.startswith("-"):
                flag = word if word in lists else None
            elif flag is not None and words[-1] != flag:
                words.append(flag)
            words.append(word)
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> Any:
        """Check the parameters, and call the function of the command with those that it declares."""
        from st_xling.utils.terminal import console, explain, hide_passwords

        call: Call = ctx.obj
        is_main = os.environ.get("RANK", "0") == "0"
        try:
            with (
                console(quiet="quiet" in call.flags or not is_main, verbose="verbose" in call.flags),
                redirect_stdout(sys.stderr if self.streamed(ctx.params) else sys.stdout),
            ):
                given = Given.of(ctx)
                check_numbers(given.values, given.typed)
                self.check_stdout(ctx.params, is_closed=call.stdout is None)
                check_rules(given, self.rules)
                self.check(ctx.params)
                return ctx.invoke(self.callback, **{name: ctx.params[name] for name in self.own})
        except KeyboardInterrupt as stop:
            if is_main:
                print(f"\n{after_interrupt(stop, call.line)}", file=sys.stderr)
            raise typer.Exit(130) from None
        except typer.Exit:
            raise
        except Exception as error:
            # Without a word if the reader of stdout has ended; a pipe to a worker that breaks is an error.
            if isinstance(error, BrokenPipeError) and stdout_has_ended():
                raise
            message = explain(error)
            if "debug" in call.flags or message is None:
                print(hide_passwords("".join(traceback.format_exception(error))), end="", file=sys.stderr)
            elif is_main or type(error).__name__ != "AnotherProcessFailed":
                print(f"st-xling: error: {hide_passwords(message)}", file=sys.stderr)
            raise typer.Exit(1 if message is None else getattr(error, "exit_status", 2)) from None

    def check_languages(self, values: Mapping[str, Any], inputs: Sequence[tuple[str, str]]) -> None:
        """Raise ``ValueError`` for what is no code of a language, in options and before ``=`` of specs.

        Args:
            values: Value of every parameter, by name.
            inputs: Metavar and value of each input.
        """
        from st_xling.data.spec import check_spec_languages
        from st_xling.utils.languages import check_language_code

        for parameter in self.params:
            value = values[str(parameter.name)]
            codes: Sequence[str] = ()
            if value is None or value == NO_PIVOT:
                continue
            if parameter.name in LANGUAGE_LISTS.get(str(self.name), ()):
                codes = value
            elif parameter.metavar == "CODE":
                codes = [value]
            for code in codes:
                check_language_code(code, parameter.opts[0])
        for metavar, value in inputs:
            if metavar in SPECS or "=" in metavar:
                check_spec_languages(value)

    def outputs(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the files and the folders to write, by the name of the option."""
        files: dict[str, Any] = {}
        folders: dict[str, Any] = {}
        for parameter in self.params:
            if parameter.name in OUTPUTS:
                is_folder = str(parameter.metavar) in ("DIR", "STORE")
                (folders if is_folder else files)[parameter.opts[-1]] = values[str(parameter.name)]
        return files, folders

    def streamed(self, values: Mapping[str, Any]) -> list[str]:
        """Return the options that write to stdout."""
        return [flag for flag, value in self.outputs(values)[0].items() if str(value) == "-"]

    def check_stdout(self, values: Mapping[str, Any], *, is_closed: bool) -> None:
        """Raise ``ValueError`` if several options write to stdout, it is closed, or a folder is named ``-``."""
        streamed = self.streamed(values)
        if len(streamed) > 1:
            options = " and ".join(f"{flag} -" for flag in streamed)
            raise ValueError(f"{options} both write to stdout; give one of them a file.")
        if streamed and is_closed:
            raise ValueError(f"{streamed[0]} - writes to stdout, which is closed; give it a file.")
        for flag, value in self.outputs(values)[1].items():
            if str(value) == "-":
                raise ValueError(f"{flag} must be a folder, which cannot be written to stdout: got -; name a folder.")

    def check(self, values: dict[str, Any]) -> None:
        """Raise if an output would replace an input or cannot be written, or an input or device is not there."""
        from st_xling.utils.options import check_device
        from st_xling.utils.paths import check_outputs
        from st_xling.utils.resumable import check_replaced, work_path

        files, folders = self.outputs(values)
        inputs: list[tuple[str, str]] = []
        for parameter in self.params:
            value, metavar = values[str(parameter.name)], str(parameter.metavar).removesuffix("...")
            if parameter.name not in OUTPUTS and metavar in INPUTS and value is not None:
                several = value if isinstance(value, (list, tuple)) else [value]
                inputs += [(metavar, str(each)) for each in several if each not in NAMES]
        # Recipes and papers have names, too.
        inputs = [each for each in inputs if each[0] not in ("RECIPE", "PAPER") or each[1].endswith((".yaml", ".yml"))]
        check_outputs(files, [value for _, value in inputs], folders=folders)
        results = {name: path for name, path in files.items() if name != "--json"}
        if results and not values.get("overwrite") and not values.get("dry_run"):
            check_replaced(results, work_path(values["out"], values.get("work")))
        keeps = values.get("keep")  # it needs a folder, and says so
        self.check_languages(values, inputs)
        for metavar, value in sorted(inputs, key=lambda each: each[0] != "MODEL"):
            if metavar != "MODEL":
                check_input(metavar, value)
            elif not keeps and self.name not in ("card", "push", "reproduce"):
                check_model(value.partition("?")[0] if self.name == "compare" else value, values.get("revision"))
        if values.get("device") is not None:
            check_device(values["device"])


def with_options(*kinds: type, rules: Sequence[Rule] = ()) -> Any:
    """Return a kind of command that also has the options of these dataclasses, see :mod:`st_xling.cli.options`.

    Args:
        *kinds: Dataclasses of options.
        rules: What its options exclude and need, see :mod:`st_xling.cli.rules`.
    """
    return partial(Command, shared=kinds, rules=rules)


def check_input(metavar: str, value: str) -> None:
    """Raise if a text is not there, before anything large is imported."""
    from st_xling.data.spec import OPTIONS, PHRASEBOOK_OPTIONS, parse_spec, read_options, split_spec
    from st_xling.utils.file_endings import TEXT_ENDINGS
    from st_xling.utils.text import describe_missing, home_path, unpacked_ending

    names, can_be_other = [], False
    if metavar == "XX=FILE":
        names = [parse_spec(value, {}, languages=1, forms="xx=FILE, a language and its file").location]
    elif metavar == "STORE":
        if not home_path(value).exists():
            raise FileNotFoundError(f"expected an embedding store, or an .npy file, but there is no folder {value}.")
    elif metavar in (*FILES, "PAPER", "RECIPE"):
        names = [value]
    elif metavar in SPECS:
        spec = split_spec(value)
        read_options(spec.query, PHRASEBOOK_OPTIONS if spec.is_phrasebook else OPTIONS, spec=value)
        names = [] if spec.is_phrasebook else spec.location.split(",")
        can_be_other = len(names) == 1  # a folder, a beginning of file names, an id of the Hub
    for path in map(home_path, names):
        if can_be_other and unpacked_ending(path) not in TEXT_ENDINGS:
            continue
        if not path.exists() and not any(map(Path.is_file, path.parents)):
            raise FileNotFoundError(describe_missing(path))


def check_model(name: str, revision: str | None) -> None:
    """Raise ``ValueError`` if a name is no folder and no model of the Hub or of its cache."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import GatedRepoError, RemoteEntryNotFoundError

    from st_xling.utils.terminal import first_line
    from st_xling.utils.text import home_path

    if home_path(name).is_file():
        raise ValueError(f"expected the Hub id or folder of a model, got the file {name}. Check the name.")
    if home_path(name).exists():
        if revision is not None:
            raise ValueError(f"--revision is for models of the Hub: {name} is on this machine; remove it.")
        return
    try:
        if not any(isinstance(try_to_load_from_cache(name, file, revision=revision), str) for file in MODEL_FILES):
            hf_hub_download(name, MODEL_FILES[0], revision=revision)
    except (GatedRepoError, RemoteEntryNotFoundError):
        return  # what is wrong, if anything, is found when it is loaded
    except (ValueError, OSError) as error:
        reason = "there is no such folder"
        if not name.startswith((".", "/", "~")) and name.count("/") <= 1:
            hub = f"the Hub says: {first_line(error)}"
            if HF_HUB_OFFLINE:
                hub = "the Hub is not asked, since HF_HUB_OFFLINE is set, and its cache has no such model"
            reason = f"there is no folder of that name here, and {hub}"
        raise ValueError(
            f"no encoder could be loaded from the Hub id or folder {name!r}: {reason}. Check the name."
        ) from error


def stdout_has_ended() -> bool:
    """Return whether the reader of stdout has ended, as ``head`` does when it has enough."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):  # no pipe, no file, or a system without poll
        return False


def after_interrupt(stop: KeyboardInterrupt, line: str) -> str:
    """Tell how to resume an interrupted command."""
    folder, checkpoint = getattr(stop, "folder", None), getattr(stop, "checkpoint", None)
    if folder is None:
        return "Interrupted."
    words = [word for word in shlex.split(line) if word not in ("--resume", "--overwrite")]
    if checkpoint is None:
        return f"Interrupted before the first checkpoint. Start again with:\n  {shlex.join([*words, '--overwrite'])}"
    return f"Interrupted; the last checkpoint is {checkpoint}. Resume with:\n  {shlex.join([*words, '--resume'])}"
