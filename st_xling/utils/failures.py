"""Errors of libraries that a user can cause, in words that tell what to do."""

from __future__ import annotations

import re

from st_xling.utils.io import is_disk_full

_NO_MEMORY = ("can't allocate memory", "out of memory", "Cannot allocate memory", "std::bad_alloc")
_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+]*:/{1,2})[^/\s@]+@")


def explain(error: BaseException) -> str | None:
    """The message for an error that ended a command, or ``None`` for one that is a fault of ours.

    Args:
        error: As it arrived at the command line.
    """
    if is_disk_full(error):
        if "Make room" in str(error):  # ours
            return f"{getattr(error, 'strerror', None) or error}."
        name = getattr(error, "filename", None)
        file = f", while writing {name}" if name else ""
        return f"no space left on the device{file} ({first_line(error)}). Make room and run the same command again."
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    ):
        return (
            "there is not enough memory: lower the batch size (--batch-size, --mini-batch-size), the length or the "
            f"size of the model, or end other programs ({first_line(error)})."
        )
    if isinstance(error, (ValueError, OSError)):
        return str(error)
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without a period, or its type if there is none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def hide_passwords(text: str) -> str:
    """Return text without the users and passwords of its URLs: ``https://***@host``."""
    return _PASSWORD.sub(r"\1***@", text)
