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
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from st_xling._version import __version__
from st_xling.cli.options import JsonOption, command_of
from st_xling.cli.rules import Given, Rule, check_numbers, check_rules
from st_xling.utils.built_sizes import BUILT_MODELS
from st_xling.utils.file_endings import TEXT_ENDINGS, YAML_ENDINGS


def fill(text: str) -> str:
    """Join the lines of each paragraph, except those marked for typer with a backspace, such as examples."""
    paragraphs: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if not paragraph.startswith("\b"):
            paragraph = " ".join(paragraph.split())
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


FILES = ("SOURCE", "TARGET", "TEXT", "FILE", "XX=FILE")
SPECS = ("SPEC", "EVAL", "PAIRS", "PARALLEL", "TEXTS")
MODELS = ("MODEL", "START")
INPUTS = frozenset((*FILES, *SPECS, *MODELS, "RECIPE", "STORE", "DIR", "XX=PATH", "XX=DIR", "PAPER"))
"""Metavars of parameters that name something to read."""
BUILT_IN_MODELS = (*BUILT_MODELS, "bm25")
"""Models that are not folders, even if there is a folder of that name."""
OUTPUTS = frozenset(("out", "json", "rejects", "html", "work", "runs"))
"""Parameters that name something to write: a folder if the metavar is ``DIR`` or ``STORE``, otherwise a file."""

LANGUAGE_LISTS = {
    "slim": "languages",
    "merge": "old_languages",
    "card": "languages",
    "retrieval": "query_languages",
    "reranking": "query_languages",
}
"""Command → its parameter that is a list of languages. That of ``evaluate tatoeba`` may also name groups of them."""
NO_PIVOT = "none"

MODEL_FILES = ("config.json", "modules.json")
SYNONYMS = {
    "--lr": "--learning-rate",
    "--bs": "--batch-size",
    "--per-device-train-batch-size": "--batch-size",
    "--batch-size": "--token-budget",  # of commands that have no batch size
    "--num-train-epochs": "--epochs",
    "--num-epochs": "--epochs",
    "--warmup-ratio": "--warmup",
    "--max-seq-length": "--max-length",
    "--model-name-or-path": "--model",
    "--src-lang": "--source-language",
    "--source-lang": "--source-language",
    "--tgt-lang": "--target-language",
    "--target-lang": "--target-language",
    "-o": "--out",
    "--output": "--out",
    "--output-dir": "--out",
    "--output-path": "--out",
}
"""Options of other tools → ours, for messages."""

TYPER: dict[str, Any] = {
    "rich_markup_mode": "rich",
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


@dataclass(frozen=True)
class Invocation:
    """One run of the command line, ``context.obj`` of every command.

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
    """Cross-lingual sentence embeddings: mine and align translations, train encoders, search and re-rank, publish.

    Each command explains itself: st-xling mine --help. Results go to stdout, progress and warnings to stderr. Every
    command also takes -q (results and errors only), -v (details and warnings as they occur) and --debug (the traceback
    of an error).

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

    Text is named in the same way in all commands (SPEC in their helps): the languages, an equals sign, a file or
    data set, and options after a question mark. de-en=pairs.tsv are German and English pairs, de-en=a.de,a.en two
    files line by line, pt_BR=texts.txt?size=8000&seed=0 a sample of Brazilian text, and phrasebook:de,fr?size=500
    built-in sentences. Quote it if it contains ? or &. The languages may be missing if the file's name has them.
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


MINE = "Mine and align"
TRAIN = "Train"
SEARCH = "Search and re-rank"
EVALUATE = "Evaluate and compare"
PUBLISH = "Publish"
LOOK_UP = "Start and look up"
"""Headings of the commands in ``st-xling --help``, as on the first page of the documentation."""

PLAIN_TYPES = {"<bool>": None, "<str>": "TEXT", "<int>": "N", "<float>": "X", "<path>": "FILE"}
"""What typer's help calls the value of an option → how other tools call it; a flag has no value."""


def use_plain_types(parameters: Sequence[Any], ctx: Any) -> None:
    """Let the help name values as ``FILE`` or ``N``, and neither the type of an argument nor that of a flag."""
    for parameter in parameters:
        if not hasattr(parameter, "display_type_rich"):  # typer before 0.24
            continue
        shown = parameter.display_type_rich(ctx)
        if parameter.param_type_name == "argument":
            shown = None
        parameter.display_type_rich = lambda ctx, shown=PLAIN_TYPES.get(shown, shown): shown


class Group(TyperGroup):
    """A group of commands whose help can be copied."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without the spaces that fill its lines."""
        use_plain_types(self.get_params(ctx), ctx)
        with redirect_stdout(_Trimmed(sys.stdout)):
            super().format_help(ctx, formatter)


HELP = fill(str(root.__doc__))
app = typer.Typer(help=HELP, cls=Group, pretty_exceptions_enable=False, **TYPER)
app.callback()(root)


class Command(TyperCommand):
    """A command with ``--json``, whose errors are one line on stderr.

    Args:
        *args: As for ``TyperCommand``, like all that is not named here.
        params: Parameters that the function of the command declares.
        shared: Dataclasses whose fields are further options, see :mod:`st_xling.cli.options`.
        rules: Options that exclude or need each other, see :mod:`st_xling.cli.rules`.
        help: Docstring of the function.
    """

    def __init__(
        self,
        *args: Any,
        params: list[Any],
        shared: Sequence[type] = (),
        rules: Sequence[Rule] = (),
        help: str | None = None,
        **settings: Any,
    ) -> None:
        self.declared = [str(parameter.name) for parameter in params]
        self.rules = rules
        all_params = list(params)
        for kind in (*shared, JsonOption):
            all_params += command_of(kind).params
        super().__init__(*args, params=all_params, help=fill(help or ""), **settings)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without the spaces that fill its lines."""
        use_plain_types(self.get_params(ctx), ctx)
        with redirect_stdout(_Trimmed(sys.stdout)):
            super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, without typer's braces around a required argument."""
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command.

        ``--model MODEL`` may also name a model that is an argument. Options of other tools are named as ours in an
        error. Lists whose metavar ends with ``...`` take several values: ``--pairs de-en fr-en``.
        """
        words = self._with_model_as_argument(args)
        self._check_synonyms(words)
        return super().parse_args(ctx, self._with_repeated_options(words))

    def _flags(self) -> set[str]:
        """Return all spellings of all options."""
        flags: set[str] = set()
        for parameter in self.params:
            flags.update(parameter.opts)
        return flags

    def _with_model_as_argument(self, words: list[str]) -> list[str]:
        """Put the value of ``--model`` where the argument ``MODEL`` is expected, if the command has that instead."""
        metavars = [getattr(parameter, "metavar", None) for parameter in self.params]
        if "--model" in self._flags() or "MODEL" not in metavars[:2]:
            return words
        split_words: list[str] = []
        for word in words:
            if word.startswith("--model="):
                split_words += word.split("=", 1)
            else:
                split_words.append(word)
        if "--model" not in split_words[:-1]:
            return split_words
        index = split_words.index("--model")
        model = split_words[index + 1]
        others = split_words[:index] + split_words[index + 2 :]
        others.insert(metavars.index("MODEL"), model)
        return others

    def _check_synonyms(self, words: Sequence[str]) -> None:
        """Raise typer's error for an option of another tool, with the name of ours."""
        flags = self._flags()
        for word in words:
            flag = word.partition("=")[0]
            synonym = SYNONYMS.get(flag.replace("_", "-"))
            if flag not in flags and synonym in flags:
                raise typer.BadParameter(f"No such option: {flag}; did you mean {synonym}?")

    def _with_repeated_options(self, words: Sequence[str]) -> list[str]:
        """Put the option before each of several values: ``--pairs de-en --pairs fr-en``, as click expects it."""
        list_flags: set[str] = set()
        for parameter in self.params:
            if str(parameter.metavar).endswith("..."):
                list_flags.update(parameter.opts)
        repeated: list[str] = []
        flag = None
        for word in words:
            if word.startswith("-"):
                flag = word if word in list_flags else None
            elif flag is not None and repeated[-1] != flag:
                repeated.append(flag)
            repeated.append(word)
        return repeated

    def invoke(self, ctx: Any) -> Any:
        """Check the parameters, and call the function of the command with those that it declares."""
        from st_xling.utils.terminal import console

        invocation: Invocation = ctx.obj
        is_main = os.environ.get("RANK", "0") == "0"
        is_quiet = "quiet" in invocation.flags or not is_main
        try:
            with console(quiet=is_quiet, verbose="verbose" in invocation.flags):
                # Inside, as a quiet console replaces stderr.
                stdout = sys.stderr if self.streamed(ctx.params) else sys.stdout
                with redirect_stdout(stdout):
                    self.check(ctx)
                    return ctx.invoke(self.callback, **{name: ctx.params[name] for name in self.declared})
        except KeyboardInterrupt as stop:
            if is_main:
                print(f"\n{after_interrupt(stop, invocation.line)}", file=sys.stderr)
            raise typer.Exit(130) from None
        except typer.Exit:
            raise
        except Exception as error:
            # Without a word if the reader of stdout has ended; a pipe to a worker that breaks is an error.
            if isinstance(error, BrokenPipeError) and stdout_has_ended():
                raise
            status = report_error(error, with_traceback="debug" in invocation.flags, is_main=is_main)
            raise typer.Exit(status) from None

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
            if parameter.name == LANGUAGE_LISTS.get(str(self.name)):
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
            if parameter.name not in OUTPUTS:
                continue
            flag = parameter.opts[-1]
            value = values[str(parameter.name)]
            if str(parameter.metavar) in ("DIR", "STORE"):
                folders[flag] = value
            else:
                files[flag] = value
        return files, folders

    def inputs(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return metavar and value of everything to read, in the order of the parameters."""
        inputs: list[tuple[str, str]] = []
        for parameter in self.params:
            metavar = str(parameter.metavar).removesuffix("...")
            value = values[str(parameter.name)]
            if parameter.name in OUTPUTS or metavar not in INPUTS or value is None:
                continue
            for name in value if isinstance(value, (list, tuple)) else [value]:
                # Recipes and papers that are no files have names as well.
                is_built_in = metavar in ("RECIPE", "PAPER") and not str(name).endswith(YAML_ENDINGS)
                if name not in BUILT_IN_MODELS and not is_built_in:
                    inputs.append((metavar, str(name)))
        return inputs

    def streamed(self, values: Mapping[str, Any]) -> list[str]:
        """Return the options that write to stdout."""
        files, _ = self.outputs(values)
        return [flag for flag, value in files.items() if str(value) == "-"]

    def check_stdout(self, values: Mapping[str, Any], *, is_closed: bool) -> None:
        """Raise ``ValueError`` if several options write to stdout, it is closed, or a folder is named ``-``."""
        streamed = self.streamed(values)
        if len(streamed) > 1:
            options = " and ".join(f"{flag} -" for flag in streamed)
            raise ValueError(f"{options} both write to stdout; give one of them a file.")
        if streamed and is_closed:
            raise ValueError(f"{streamed[0]} - writes to stdout, which is closed; give it a file.")
        _, folders = self.outputs(values)
        for flag, value in folders.items():
            if str(value) == "-":
                raise ValueError(f"{flag} must be a folder, which cannot be written to stdout: got -; name a folder.")

    def check(self, ctx: Any) -> None:
        """Raise for parameters that are out of range, do not go together, or name what cannot be read or written."""
        given = Given.of(ctx)
        check_numbers(given.values, given.typed)
        self.check_stdout(ctx.params, is_closed=ctx.obj.stdout is None)
        check_rules(given, self.rules)
        self.check_files(ctx.params)

    def check_files(self, values: dict[str, Any]) -> None:
        """Raise if an output would replace an input or cannot be written, or an input or device is not there."""
        from st_xling.utils.options import check_device
        from st_xling.utils.paths import check_outputs
        from st_xling.utils.resumable import check_replaced, work_path

        files, folders = self.outputs(values)
        inputs = self.inputs(values)
        check_outputs(files, [value for _, value in inputs], folders=folders)
        results = {flag: path for flag, path in files.items() if flag != "--json"}
        if results and not values.get("overwrite") and not values.get("dry_run"):
            work = work_path(values["out"], values.get("work")) if "out" in values else None
            check_replaced(results, work)
        self.check_languages(values, inputs)
        models = [value for metavar, value in inputs if metavar in MODELS]
        # --keep needs a folder, and says so; these commands explain a missing model themselves.
        if not values.get("keep") and self.name not in ("card", "push", "reproduce"):
            for model in models:
                if self.name == "compare":
                    model = model.partition("?")[0]  # options follow
                check_model(model, values.get("revision"))
        for metavar, value in inputs:
            if metavar not in MODELS:
                check_input(metavar, value)
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
    from st_xling.data.spec import OPTIONS, PHRASEBOOK_OPTIONS, parse_spec, read_options, split_prompt_name, split_spec
    from st_xling.utils.text import describe_missing, home_path, unpacked_ending

    if metavar == "STORE":
        if not home_path(value).exists():
            raise FileNotFoundError(f"expected an embedding store, or an .npy file, but there is no folder {value}.")
        return
    names: list[str] = []
    can_be_other = False
    if metavar == "XX=FILE":
        names = [parse_spec(value, {}, languages=1, forms="xx=FILE, a language and its file").location]
    elif metavar in (*FILES, "PAPER", "RECIPE"):
        names = [value]
    elif metavar in SPECS:
        if metavar == "TEXTS":
            value, _ = split_prompt_name(value)
        spec = split_spec(value)
        options = PHRASEBOOK_OPTIONS if spec.is_phrasebook else OPTIONS
        read_options(spec.query, options, spec=value)
        if not spec.is_phrasebook:
            names = spec.location.split(",")
        can_be_other = len(names) == 1  # a folder, a beginning of file names, an id of the Hub
    for path in map(home_path, names):
        if can_be_other and unpacked_ending(path) not in TEXT_ENDINGS:
            continue
        if path.exists():
            continue
        is_in_archive = any(parent.is_file() for parent in path.parents)
        if not is_in_archive:
            raise FileNotFoundError(describe_missing(path))


def check_model(name: str, revision: str | None) -> None:
    """Raise ``ValueError`` if a name is no folder and no model of the Hub or of its cache."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import GatedRepoError, RemoteEntryNotFoundError

    from st_xling.utils.terminal import first_line
    from st_xling.utils.text import home_path

    path = home_path(name)
    if path.is_file():
        raise ValueError(f"expected the Hub id or folder of a model, got the file {name}. Check the name.")
    if path.exists():
        if revision is not None:
            raise ValueError(f"--revision is for models of the Hub: {name} is on this machine; remove it.")
        return
    try:
        for file in MODEL_FILES:
            if isinstance(try_to_load_from_cache(name, file, revision=revision), str):
                return
        hf_hub_download(name, MODEL_FILES[0], revision=revision)
    except (GatedRepoError, RemoteEntryNotFoundError):
        return  # what is wrong, if anything, is found when it is loaded
    except (ValueError, OSError) as error:
        can_be_hub_id = not name.startswith((".", "/", "~")) and name.count("/") <= 1
        if not can_be_hub_id:
            reason = "there is no such folder"
        elif HF_HUB_OFFLINE:
            reason = (
                "there is no folder of that name here, and the Hub is not asked, since HF_HUB_OFFLINE is set, and its "
                "cache has no such model"
            )
        else:
            reason = f"there is no folder of that name here, and the Hub says: {first_line(error)}"
        raise ValueError(
            f"no encoder could be loaded from the Hub id or folder {name!r}: {reason}. Check the name."
        ) from error


def report_error(error: Exception, *, with_traceback: bool, is_main: bool) -> int:
    """Print an error that ended a command to stderr, without passwords.

    Args:
        error: A fault of the input or of ours; the latter is printed with its traceback.
        with_traceback: Print the traceback of any error.
        is_main: This is the only process, or the main one, which prints if another has failed.

    Returns:
        The exit status.
    """
    from st_xling.utils.terminal import explain, hide_passwords

    message = explain(error)
    if with_traceback or message is None:
        print(hide_passwords("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    elif is_main or type(error).__name__ != "AnotherProcessFailed":
        print(f"st-xling: error: {hide_passwords(message)}", file=sys.stderr)
    if message is None:
        return 1
    return getattr(error, "exit_status", 2)


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
    folder = getattr(stop, "folder", None)
    checkpoint = getattr(stop, "checkpoint", None)
    if folder is None:
        return "Interrupted."
    words = [word for word in shlex.split(line) if word not in ("--resume", "--overwrite")]
    if checkpoint is None:
        return f"Interrupted before the first checkpoint. Start again with:\n  {shlex.join([*words, '--overwrite'])}"
    return f"Interrupted; the last checkpoint is {checkpoint}. Resume with:\n  {shlex.join([*words, '--resume'])}"
