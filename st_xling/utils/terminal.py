"""Output on stderr: bars on a terminal, in a log a line now and then, warnings as they occur; words for errors.

Library code logs: at INFO what whoever runs a command wants to read, at DEBUG details, at WARNING what went otherwise
than expected. :func:`console` shows that of a command. Called from Python, the library shows bars on a terminal, and
nothing else unless the program sets up logging.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from tqdm.auto import tqdm as auto_tqdm
from tqdm.std import tqdm

from st_xling.utils.io import is_disk_full

logger = logging.getLogger(__name__)

PACKAGE = __name__.partition(".")[0]
ST = "sentence_transformers"
SECONDS_A_LINE = 30.0
REPEATED_AFTER_SECONDS = 60.0
_NO_MEMORY = ("can't allocate memory", "out of memory", "Cannot allocate memory", "std::bad_alloc")
# What a message quotes ends at white space or a quotation mark. pathlib makes one slash of two.
_USER_INFO = re.compile(r"(\b[a-z][a-z0-9+.-]*:/{1,2})(?:[^\s\"'/:]*:[^\s\"']*|[^\s\"'/]+)@", re.IGNORECASE)
_TOKEN_OPTION = re.compile(
    r"([?&;#][\w.-]*(?:token|passw(?:or)?d|pwd|secret|signature|credential|api[_-]?key|auth)[\w.-]*=)[^\s&;#\"']+"
    r"|([?&;#](?:sig|key)=)[^\s&;#\"']+",
    re.IGNORECASE,
)
_HUB_TOKEN = re.compile(r"\bhf_[A-Za-z0-9]{20,}")


def on_terminal() -> bool:
    """Return whether this process, the main one of several, has a terminal or a notebook to show bars on."""
    stream = sys.stderr
    if stream is None:
        return False
    is_notebook = type(stream).__module__.startswith("ipykernel")
    is_main = os.environ.get("RANK", "0") == "0"
    return (stream.isatty() or is_notebook) and is_main


def progress_bar(
    iterable: Iterable[Any] | None = None,
    *,
    unit: str,
    desc: str | None = None,
    total: float | None = None,
    initial: int = 0,
    delay: float = 0,
    show: bool = True,
) -> tqdm:
    """Return tqdm's bar on a terminal, which is cleared at the end; elsewhere a logged line each half minute.

    Such a line is ``encoding: 12000 of 40000 sentences, 310.00 sentences/s, 01:30 left``.

    Args:
        iterable: Items that are counted as they are read, if not by ``update``.
        unit: Unit of the count, in the plural.
        desc: What is counted, before the bar.
        total: Count at the end; by default the length of ``iterable``, if it has one.
        initial: Count at the beginning.
        delay: Show nothing for so many seconds.
        show: Show a bar or log lines.
    """
    if on_terminal():
        return auto_tqdm(
            iterable,
            desc=desc,
            total=total,
            initial=initial,
            delay=delay,
            unit=f" {unit}",
            leave=False,
            dynamic_ncols=True,
            disable=not show,
        )
    return tqdm(
        iterable,
        desc=desc,
        total=total,
        initial=initial,
        delay=delay,
        unit=f" {unit}",
        leave=False,
        disable=not show,
        file=_LogLines(),
        # Each update looks at the clock, so that tqdm's thread, which would log as well, has no work.
        miniters=1,
        mininterval=SECONDS_A_LINE,
        bar_format="{desc}: {n_fmt} of {total_fmt}{unit}, {rate_fmt}, {remaining} left",
    )


class _LogLines(io.StringIO):
    """Logs what tqdm draws, now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._next = time.monotonic() + SECONDS_A_LINE

    def write(self, text: str) -> int:
        line = text.strip()
        if line and time.monotonic() >= self._next:
            self._next = time.monotonic() + SECONDS_A_LINE
            logger.info(line)
        return len(text)


def pace(done: float, left: float | None, seconds: float) -> str:
    """Format a rate and the time that is left: ``310/s, 90 s left``.

    Args:
        done: Number of items that are done.
        left: Number of items that are left; ``None`` if it is unknown.
        seconds: Time that they have taken.
    """
    rate = done / max(seconds, 1e-9)
    if rate >= 10:
        shown_rate = f"{rate:,.0f}/s"
    else:
        shown_rate = f"{rate:.2g}/s"
    if left is None or not done:
        return shown_rate
    return f"{shown_rate}, {duration(left / rate)} left"


def duration(seconds: float) -> str:
    """Format a duration: ``5.1 s``, ``51 s``, ``12 min``, ``3.4 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextlib.contextmanager
def console(*, quiet: bool = False, verbose: bool = False) -> Iterator[None]:
    """Show what is logged on stderr while a command runs, and its early warnings once more when it ends.

    A warning is shown when it occurs, so that a run on faulty input can be stopped. Those that are
    :data:`REPEATED_AFTER_SECONDS` old at the end are listed again, since much may have been printed below them.

    Warnings of other libraries that only their authors can do something about stay away; call it before these are
    imported.

    Args:
        quiet: Errors only; nothing else reaches ``sys.stderr``.
        verbose: Details too, and what other libraries log, with names.
    """
    _set_verbosity_of_hosts(verbose)
    if quiet:
        level = logging.ERROR
    elif verbose:
        level = logging.DEBUG
    else:
        level = logging.INFO
    stderr = _nobody() if quiet else sys.stderr
    handler = _Console(level, verbose)
    levels_before: dict[str, int] = {}
    for name, new_level in _logger_levels(level, verbose).items():
        levels_before[name] = logging.getLogger(name).level
        logging.getLogger(name).setLevel(new_level)
    logging.getLogger().addHandler(handler)
    started = time.perf_counter()
    try:
        with contextlib.redirect_stderr(stderr), warnings.catch_warnings():
            if not verbose and not sys.warnoptions:
                warnings.simplefilter("ignore")
            yield
    finally:
        logger.debug("took %s", duration(time.perf_counter() - started))
        logging.getLogger().removeHandler(handler)
        for name, level_before in levels_before.items():
            logging.getLogger(name).setLevel(level_before)
        with contextlib.suppress(OSError, ValueError, AttributeError):  # a reader who has enough, or closed it
            sys.stdout.flush()  # warnings come last also where both streams are one log
        handler.repeat_early_warnings()


def _set_verbosity_of_hosts(verbose: bool) -> None:
    """Set what transformers and datasets log, unless the user has; they read it when they are imported."""
    verbosity = "warning" if verbose else "error"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", verbosity)
    os.environ.setdefault("DATASETS_VERBOSITY", verbosity)
    if not verbose:
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


def _logger_levels(level: int, verbose: bool) -> dict[str, int]:
    """Return logger → level while a command runs.

    Args:
        level: That of our own loggers.
        verbose: Other libraries log details, too.
    """
    level_of_others = logging.INFO if verbose else logging.ERROR
    return {
        "": level_of_others,
        PACKAGE: level,
        # They log addresses that are signed: whoever reads them could write to the Hub.
        "httpx": logging.WARNING,
        "httpx2": logging.WARNING,
        # Were INFO on for the module of ST that encodes, it would draw its own bars.
        ST: logging.WARNING,
        # Where ST logs what it loads.
        f"{ST}.base.model": min(level_of_others, logging.WARNING),
    }


@functools.cache
def _nobody() -> TextIO:
    """Stays open: other libraries' handlers go on writing to the stderr that they found."""
    return Path(os.devnull).open("w")


class _Console(logging.Handler):
    """Writes above bars: what we log, warnings of ours and of ST once each, and of others what is at least ERROR.

    ``tqdm.contrib.logging`` does no more than the call of ``tqdm.write`` in :meth:`emit`.
    """

    def __init__(self, level: int, verbose: bool) -> None:
        super().__init__(level)
        self.verbose = verbose
        self.stream = sys.stderr
        self.warnings: dict[str, float] = {}  # text → when it was shown
        if verbose:
            self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        library = record.name.partition(".")[0]
        text = record.getMessage()
        is_warning = library in (PACKAGE, ST) and record.levelno == logging.WARNING
        if text.startswith("Default prompt name"):  # which whoever set it knows
            is_warning = False
        if is_warning:
            if text in self.warnings:
                return
            self.warnings[text] = time.monotonic()
        is_shown = self.verbose or is_warning or library == PACKAGE or record.levelno >= logging.ERROR
        if not is_shown:
            return
        mark = "warning: " if is_warning and not self.verbose else ""
        try:
            auto_tqdm.write(hide_passwords(f"{mark}{self.format(record)}"), file=self.stream)
        except Exception:
            self.handleError(record)

    def repeat_early_warnings(self) -> None:
        """Print the warnings that are :data:`REPEATED_AFTER_SECONDS` old once more."""
        now = time.monotonic()
        texts = [text for text, shown in self.warnings.items() if now - shown >= REPEATED_AFTER_SECONDS]
        if not texts:
            return
        plural = "s" if len(texts) > 1 else ""
        lines = [f"{len(texts)} warning{plural}, shown above:", *map(hide_passwords, texts)]
        print(*lines, sep="\n- ", file=self.stream)


def explain(error: BaseException) -> str | None:
    """Return the message for an error that ended a command, or ``None`` for one that is a fault of ours."""
    is_out_of_memory = isinstance(error, MemoryError)
    if isinstance(error, RuntimeError) and not is_out_of_memory:
        is_out_of_memory = any(phrase in str(error) for phrase in _NO_MEMORY)
    if is_out_of_memory:
        return (
            "there is not enough memory: lower the batch size (--batch-size, --mini-batch-size), the length or the "
            f"size of the model, or end other programs ({first_line(error)})."
        )
    if isinstance(error, (ValueError, OSError)) or is_disk_full(error):
        return str(error)
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without a period, or its type if there is none."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


def hide_passwords(text: str) -> str:
    """Return text without the users, passwords and tokens of its URLs.

    A password may contain ``@`` and ``/``. So all up to the last ``@`` of a URL is hidden where a colon or no slash
    comes before it. Tokens are hidden as options of a URL, such as ``?token=``, and where the Hub's form shows them.

    Example:
        >>> hide_passwords("HTTPS://me:p@ss/word@host/a.tsv?access_token=abc&size=8")
        'HTTPS://***@host/a.tsv?access_token=***&size=8'
        >>> hide_passwords("https://host/@user/text"), hide_passwords("token hf_abcdefghijklmnopqrstuvwx")
        ('https://host/@user/text', 'token hf_***')
    """
    text = _USER_INFO.sub(r"\1***@", text)
    text = _TOKEN_OPTION.sub(lambda match: f"{match[1] or match[2]}***", text)
    return _HUB_TOKEN.sub("hf_***", text)
