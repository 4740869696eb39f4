"""Bars on a terminal, lines in a log, and what of a command's log is shown when."""

import io
import logging
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from st_xling.utils import terminal as module
from st_xling.utils.terminal import console, duration, explain, hide_passwords, pace, progress_bar

OURS = logging.getLogger("st_xling.somewhere")
OTHERS = logging.getLogger("another.library")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_pace_and_duration() -> None:
    assert [duration(seconds) for seconds in (0, 99.6, 120, 10**6)] == ["0.0 s", "100 s", "2 min", "277.8 h"]
    assert pace(12_000, 28_000, 38.7) == "310/s, 90 s left"
    assert pace(3, 30, 60) == "0.05/s, 10 min left"
    assert pace(3, None, 1) == "3/s"
    assert pace(0, 5, 0) == "0/s"


def test_in_a_log_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str]) -> None:
    def count(**options: Any) -> list[str]:
        with progress_bar(total=250, desc="encoding", unit="texts", **options) as bar:
            for number in range(250):
                time.sleep(0.001)
                bar.update()
                bar.set_postfix(loss=number)
        return logged().splitlines()

    assert count() == []  # it took less than half a minute
    monkeypatch.setattr(module, "SECONDS_A_LINE", 0.05)
    lines = count()
    assert 1 < len(lines) < 50
    assert all(re.match(r"encoding: \d+ of 250 texts, .* texts/s, .* left", line) for line in lines)
    assert count(show=False) == []


def test_on_a_terminal_a_bar(monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str]) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress_bar(range(3), desc="encoding", unit="texts")) == [0, 1, 2]
    shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "encoding:   0%|" in shown and shown.endswith("\r") and "\n" not in shown  # it is cleared
    assert logged() == ""


def speak() -> None:
    OURS.info("loaded %s", "x")
    for _ in range(2):
        OURS.warning("careful")
    print("a line", file=sys.stderr)
    OTHERS.warning("their warning")
    logging.getLogger("httpx").info("https://signed")
    warnings.warn("use another function", FutureWarning, stacklevel=1)
    OURS.warning("more")
    OURS.debug("details")
    OURS.error("failed")


@pytest.mark.parametrize("quiet", [True, False])
def test_what_is_shown(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    level_before = root.level
    handlers_before = list(root.handlers)
    stderr_before = sys.stderr
    with pytest.raises(KeyError), console(quiet=quiet):  # warnings are shown, whatever happens
        speak()
        raise KeyError
    lines = ["loaded x", "warning: careful", "a line", "warning: more", "failed"]
    if quiet:
        lines = ["failed"]
    assert capsys.readouterr() == ("", "".join(f"{line}\n" for line in lines))
    assert (root.level, root.handlers) == (level_before, handlers_before)
    assert sys.stderr is stderr_before


def test_verbose_names_loggers_and_warns_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with console(verbose=True), pytest.warns(FutureWarning):
        speak()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["INFO st_xling.somewhere: loaded x", "WARNING st_xling.somewhere: careful"]
    assert lines.count("WARNING st_xling.somewhere: careful") == 1
    assert {"WARNING another.library: their warning", "DEBUG st_xling.somewhere: details"} <= set(lines)
    assert any(line.startswith("DEBUG st_xling.utils.terminal: took ") for line in lines)
    assert not any("signed" in line for line in lines)


def test_a_warning_comes_at_once_and_again_after_a_long_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warnings were collected for the end: "every line has a tab" came after eight minutes of encoding such lines."""
    with console():
        OURS.warning("every line has a tab")
        assert capsys.readouterr().err == "warning: every line has a tab\n"
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "REPEATED_AFTER_SECONDS", 0.0)
    with console():
        OURS.warning("https://me:secret@host")
        capsys.readouterr()
    assert capsys.readouterr().err == "1 warning, shown above:\n- https://***@host\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host/a", "https://***@host/a"),
        ("HTTPS://me:secret@host/a", "HTTPS://***@host/a"),
        ("de-en=http:/me:se@cr/et@host/a.tsv?size=8", "de-en=http:/***@host/a.tsv?size=8"),
        ("'s3+http://secret@host'", "'s3+http://***@host'"),
        ("https://host/a?token=secret&size=8", "https://host/a?token=***&size=8"),
        (
            "https://host/a?X-Amz-Signature=secret#access_token=secret",
            "https://host/a?X-Amz-Signature=***#access_token=***",
        ),
        ("got hf_abcdefghijklmnopqrstuvwx.", "got hf_***."),
        ("https://host/@user/text, https://host:80/a", "https://host/@user/text, https://host:80/a"),
        ("pairs.tsv?size=8&seed=0 for me@host", "pairs.tsv?size=8&seed=0 for me@host"),
    ],
)
def test_passwords_are_hidden_in_all_spellings(text: str, shown: str) -> None:
    """A scheme in capitals, ``@`` or ``/`` in a password and tokens in options were shown as they are."""
    assert hide_passwords(text) == shown


def test_a_call_of_the_library_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Only commands, by :func:`console`, show what is logged below WARNING; a notebook stays clean."""
    OURS.info("loaded")
    assert list(progress_bar([1], unit="texts")) == [1]
    assert capsys.readouterr() == ("", "")
    assert not logging.getLogger("st_xling").handlers


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_too_little_memory_says_what_to_lower(error: Exception) -> None:
    """As Python and as torch say it; it was a traceback."""
    assert "lower the batch size" in str(explain(error))
