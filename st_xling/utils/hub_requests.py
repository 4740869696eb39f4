"""Requests to the Hub that end: each has a timeout, and a Hub that does not answer is given up after some attempts."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from huggingface_hub.errors import OfflineModeIsEnabled

#: Seconds to wait for a connection, and for the next byte of an answer, in each attempt; the user's
#: ``HF_HUB_DOWNLOAD_TIMEOUT`` comes first.
REQUEST_S = 10.0
#: Failed attempts after which a request is not repeated; as many, of whatever requests, before the first answer of all.
ATTEMPTS = 4


class NoAnswer(OfflineModeIsEnabled):
    """The Hub was given up. Its clients take that for "offline": no retry, and the cache if there is one."""


class _Limits:
    """What holds for the requests of a block, and how they fared."""

    def __init__(self, request_s: float) -> None:
        self.request_s = request_s
        self.failures: Counter[str] = Counter()
        self.heard = self.expired = False

    def check(self, key: str) -> None:
        if self.expired:
            raise NoAnswer("its answers come too slowly")
        failed = self.failures[key] if self.heard else self.failures.total()
        if failed >= ATTEMPTS:
            raise NoAnswer(f"no answer in {failed} attempts")

    def tracer(self, key: str) -> Callable[[str, Any], None]:
        """Follows one attempt, by httpx's ``trace`` extension: event names end in what became of each step."""
        failed = False

        def trace(event: str, info: Any) -> None:
            nonlocal failed
            if event.endswith("receive_response_headers.complete"):
                self.heard = True
                del self.failures[key]
            elif event.endswith(".failed") and not failed and isinstance(info.get("exception"), Exception):
                failed = True
                self.failures[key] += 1

        return trace


_limits: _Limits | None = None
_given_factory: Callable[[], Any] | None = None


@contextlib.contextmanager
def limited_requests(*, request_s: float | None = None, total_s: float | None = None) -> Iterator[None]:
    """Limit what ``huggingface_hub`` asks meanwhile; its client has no timeout of its own for most requests.

    Args:
        request_s: Seconds instead of :data:`REQUEST_S`.
        total_s: Seconds for the whole block, after which connections are closed and no request is sent; ``None``: no
            end, as for a download of unknown size. Needed against an answer that drips in, byte by byte.
    Raises:
        NoAnswer: From within, when the Hub is given up; the client's own error when the last attempt failed.
    """
    global _limits
    _install()
    before, limits = _limits, _Limits(request_s or float(os.environ.get("HF_HUB_DOWNLOAD_TIMEOUT") or REQUEST_S))
    timer = None if total_s is None else threading.Timer(total_s, _expire, [limits])
    if timer is not None:
        timer.daemon = True
        timer.start()
    _limits = limits
    try:
        yield
    finally:
        _limits = before
        if timer is not None:
            timer.cancel()


def _expire(limits: _Limits) -> None:
    """Close connections, which ends what waits on them; the repetition is then refused."""
    from huggingface_hub import close_session

    limits.expired = True
    close_session()
    if xet := sys.modules.get("huggingface_hub.utils._xet"):  # uploads and downloads past that client
        with contextlib.suppress(Exception):  # of its versions, not all can
            xet.abort_xet_session()


def _install() -> None:
    """Have ``huggingface_hub`` make clients that know of the limits, by the factory that was there before."""
    global _given_factory
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils import _http

    factory = getattr(_http, "_GLOBAL_CLIENT_FACTORY", _http.default_client_factory)
    if factory is not _client:
        _given_factory = factory
        set_client_factory(_client)


def _client() -> Any:
    assert _given_factory is not None
    client = _given_factory()
    hooks = client.event_hooks
    client.event_hooks = {**hooks, "request": [*hooks.get("request", []), _limit]}
    return client


def _limit(request: Any) -> None:
    limits = _limits
    if limits is None:
        return
    key = f"{request.method} {request.url.host}{request.url.path}"
    limits.check(key)
    # The client's own are none, 10 or 60 seconds, by call.
    request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), limits.request_s)
    request.extensions["trace"] = limits.tracer(key)
