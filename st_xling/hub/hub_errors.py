"""What goes wrong on the way to the Hub, said in one line with what to do."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any

from st_xling.utils.hub_requests import NoAnswer, limited_requests

_AGAIN = "try again later: what has arrived is kept"
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{20,}")


class HubError(OSError):
    """The Hub, or the way to it, did not do what was asked.

    Attributes:
        status: The HTTP status; ``None`` where there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@contextlib.contextmanager
def talking_to_hub(
    doing: str,
    name: str,
    *,
    token: str | None = None,
    request_s: float | None = None,
    total_s: float | None = None,
) -> Iterator[None]:
    """Turn what the Hub's client raises into :class:`HubError`, in bounded time, and keep secrets out of its log.

    Args:
        doing: What is being done, e.g. ``"uploading to"``.
        name: The repository, as the user wrote it.
        token: A secret that no message may hold.
        request_s: As of :func:`~st_xling.utils.hub_requests.limited_requests`.
        total_s: Likewise.

    Raises:
        HubError: For an answer that says no or is none, a broken connection, no connection at all, silence.
    """
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
    )

    try:
        with limited_requests(request_s=request_s, total_s=total_s), _clean_log(token):
            yield
    except HubError:
        raise
    except NoAnswer as error:
        raise HubError(
            f"the Hub was given up while {doing} {name!r} ({error}): check the network and {_AGAIN}."
        ) from error
    except OfflineModeIsEnabled as error:
        raise HubError(f"HF_HUB_OFFLINE is set, which forbids {doing} {name!r}: unset it and try again.") from error
    except LocalTokenNotFoundError as error:
        raise HubError(no_login()) from error
    except HfHubHTTPError as error:
        raise _said_no(error, doing, name, token) from error
    except Exception as error:
        if isinstance(error, (LookupError, TypeError, AttributeError)) or _is_unreadable(error):
            raise HubError(
                f"the Hub's answer makes no sense while {doing} {name!r} ({type(error).__name__}: "
                f"{_clean(str(error), token)}): check HF_ENDPOINT and proxies, and {_AGAIN}."
            ) from error
        found = _below(error)
        absent = isinstance(error, LocalEntryNotFoundError) and not isinstance(found, HfHubHTTPError)
        if found is None or absent or isinstance(error, ValueError):
            raise
        if isinstance(found, HfHubHTTPError):
            raise _said_no(found, doing, name, token) from error
        # hf_xet, which uploads where it is installed, raises a plain RuntimeError for what happens on its way.
        reason = _clean(f"{type(found).__name__}: {found}", token)
        raise HubError(
            f"the connection to the Hub broke while {doing} {name!r} ({reason}): check the network and {_AGAIN}."
        ) from error


@contextlib.contextmanager
def _clean_log(token: str | None) -> Iterator[None]:
    """The client logs whole addresses when it tries again; those of uploads are signed."""
    from huggingface_hub.utils import http_backoff

    def clean(record: logging.LogRecord) -> bool:
        record.msg, record.args = _clean(record.getMessage(), token), ()
        return True

    logger = logging.getLogger(http_backoff.__module__)
    logger.addFilter(clean)
    try:
        yield
    finally:
        logger.removeFilter(clean)


def _is_unreadable(error: Exception) -> bool:
    """Whether the client could not read an answer: what should be JSON is not, or lacks what it should hold."""
    words = ("improperly formatted", "Malformed response")
    return isinstance(error, (JSONDecodeError, UnicodeDecodeError)) or any(word in str(error) for word in words)


def no_login() -> str:
    """What to do without a token."""
    return "no login for the Hub: run `hf auth login`, or set HF_TOKEN to a token that may write."


def _below(error: BaseException) -> BaseException | None:
    """What lies behind ``error``, if it is of the Hub's client: its parallel uploads wrap what they meet."""
    from huggingface_hub.errors import HfHubHTTPError

    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, HfHubHTTPError) or _is_transport(seen):
            return seen
        seen = seen.__cause__ or seen.__context__
    return error if isinstance(error, RuntimeError) else None


def _is_transport(error: BaseException) -> bool:
    # The client is httpx, httpx2 or hf_xet's Rust, by version; none of them raises OSError where a connection breaks.
    modules = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    broken = isinstance(error, (ConnectionError, TimeoutError))
    return broken or bool(modules & {"httpx", "httpx2", "httpcore", "hf_xet"})


def _said_no(error: Any, doing: str, name: str, token: str | None) -> HubError:
    status = int(error.response.status_code)
    said = _clean(str(error.server_message or "").strip(), token)
    where = f"while {doing} {name!r} ({status}{f': {said}' if said else ''})"
    return HubError(_advice(status, where, name, error), status)


def _advice(status: int, where: str, name: str, error: Any) -> str:
    from huggingface_hub.errors import RevisionNotFoundError

    if isinstance(error, RevisionNotFoundError):
        return f"the Hub knows no such revision {where}: check the name of the branch."
    if status == 401:
        return f"the Hub does not know who you are {where}: run `hf auth login`, or set HF_TOKEN to a valid token."
    if status == 402:
        return f"the Hub asks for a paid plan {where}: see the plans of this account, or choose another kind of Space."
    if status == 403:
        return (
            f"this login may not write there {where}: use a token with write permission (`hf auth login`), or a name "
            "of your own."
        )
    if status == 404:
        return f"the Hub has no {name!r}, or hides it from this login {where}: check the name, or `hf auth login`."
    if status in (409, 412):
        return f"somebody else changed {name!r} in the meantime {where}: nothing was published; look, and push again."
    if status == 413:
        return f"the Hub finds it too large {where}: publish less, or ask for more room."
    if status == 429:
        return f"the Hub asks to wait {where}: {_wait(error.response.headers)}; {_AGAIN}."
    if status >= 500:
        return f"the Hub has a fault of its own {where}: {_AGAIN}."
    return f"the Hub refused {where}: see what it says."


def _wait(headers: Any) -> str:
    """How long, from ``Retry-After`` or the rate limit's own header."""
    after = str(headers.get("retry-after", ""))
    window = re.search(r";\s*t\s*=\s*(\d+)", str(headers.get("ratelimit", "")))
    seconds = after if after.isdigit() else window[1] if window else None
    return "try again in some minutes" if seconds is None else f"try again in {seconds} s"


def _clean(text: str, token: str | None) -> str:
    """One line without the token, or anything that looks like one."""
    if token:
        text = text.replace(token, "…")
    # Addresses of uploads are signed: whoever has them can write.
    text = re.sub(r"(https?://[^\s?'\"]+)\?[^\s'\"]*", r"\1?…", _TOKEN.sub("…", text))
    return " ".join(text.split()).rstrip(".")
