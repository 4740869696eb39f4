"""The command line, ``st-xling``.

Groups of commands: ``mining``, ``training``, ``new_language``, ``reranking``, ``evaluation``, ``tools`` and ``info``.
They share

- ``app``: the typer application, and how a command is parsed, checked and ended
- ``options``: how options are declared, and shared by dataclasses
- ``model_options``: options of the model
- ``rules``: ranges of numbers, and options that exclude or need each other
- ``results``: print results, write them as JSON, save them with the model
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GLOBAL_FLAGS = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose", "--debug": "debug"}
"""Flags that every command takes, before or after its name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 0; 1 if texts are in other languages than named, so that nothing would be found, or after a
        fault of ours; 2 for input that cannot be used; 130 after Ctrl-C.
    """
    if argv is None:
        argv = sys.argv[1:]
    words = [word for word in argv if word not in GLOBAL_FLAGS]
    flags = {GLOBAL_FLAGS[word] for word in argv if word in GLOBAL_FLAGS}
    stdout = sys.stdout
    # Python has None for a stream that was closed (``>&-``), which other libraries do not expect.
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    # Other libraries read these when they are imported.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("TQDM_LEAVE", "")
    if "quiet" in flags or not sys.stderr.isatty():
        for name in ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
            os.environ.setdefault(name, "1")
    try:
        from st_xling.cli.app import Invocation

        invocation = Invocation(shlex.join(["st-xling", *words]), frozenset(flags), stdout)
        load_app()(words, prog_name="st-xling", obj=invocation)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:  # while modules are imported
        print("Interrupted.", file=sys.stderr)
        status = 130
    except OSError as error:
        if "debug" in flags:
            raise
        # Commands explain their own errors: this one is of a help that cannot be written, as onto a full disk.
        print(f"st-xling: error: stdout cannot be written: {error}", file=sys.stderr)
        status = 2
    status = end_stdout(status)
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return status
    from st_xling.utils.distributed import end_process

    return end_process(status)


def end_stdout(status: int) -> int:
    """Write what is still in the buffer of stdout, which a command may not have seen fail.

    Args:
        status: Exit status of the command.

    Returns:
        The same; of a command that succeeded 1 if the reader of stdout has ended, as ``head`` does, and 2 if stdout
        cannot be written, as on a full disk.
    """
    try:
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        failed = 1
    except OSError as error:
        failed = 2
        if status == 0:
            print(f"st-xling: error: stdout cannot be written: {error}", file=sys.stderr)
    # Python would write the buffer once more when it ends, report that in other words, and exit with 120.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status or failed


def load_app() -> Any:
    """Return the typer application with all commands, in the order of its help."""
    from st_xling.cli import mining, training, new_language, reranking, evaluation, tools, info  # noqa: F401, I001
    from st_xling.cli.app import app

    return app


if __name__ == "__main__":
    sys.exit(main())
