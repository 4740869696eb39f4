"""Pairs that a guard turned down, and the file they go to."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from st_xling.mining.guards.candidates import Candidate, Verdict
from st_xling.utils.io import atomic_writer

# Line ends to some readers (Python's str.splitlines among them), but not to JSON.
_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}


@dataclass(frozen=True)
class Reject:
    """A pair, the reason code of the first guard that turned it down, and what that guard measured."""

    reason: str
    candidate: Candidate
    verdict: Verdict


class RejectsFile:
    """Writes rejects as JSON lines: ``reason``, ``value``, ``limit``, ``score``, ids and texts of both sides.

    A context manager. Lines go to a file beside ``path`` that takes its name when the block ends well; on an error it
    is removed and what was at ``path`` stays. A device or pipe, such as /dev/null, is written into.

    Args:
        path: Where the file shall be.
    Example:
        >>> with RejectsFile("rejects.jsonl") as rejects:  # doctest: +SKIP
        ...     rejects.write(reject, source_ids=["de-17", "de-90"])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._writer: AbstractContextManager[IO[bytes]] | None = None
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> RejectsFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = atomic_writer(self.path)
        self._stream = self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._writer is not None
        self._writer.__exit__(kind, error, trace)

    def write(
        self, reject: Reject, *, source_ids: Sequence[Any] | None = None, target_ids: Sequence[Any] | None = None
    ) -> None:
        """Add one line.

        Args:
            reject: What was turned down.
            source_ids: All ids of the source text, when duplicates were folded; its row by default.
            target_ids: The same of the target text.
        """
        assert self._stream is not None, "use it in a with block"
        self._stream.write(reject_line(reject, source_ids=source_ids, target_ids=target_ids).encode("utf-8") + b"\n")


def reject_line(
    reject: Reject, *, source_ids: Sequence[Any] | None = None, target_ids: Sequence[Any] | None = None
) -> str:
    """One reject as one line of JSON, without its line end.

    Scripts stay readable; characters that would end a line for some readers, and lone surrogates, which UTF-8 cannot
    hold, are escaped. A score that is not finite is ``null``.
    """
    candidate = reject.candidate
    record = {
        "reason": reject.reason,
        "value": reject.verdict.value,
        "limit": reject.verdict.limit,
        "score": float(candidate.score) if math.isfinite(candidate.score) else None,
        "source_ids": [int(candidate.source_index)] if source_ids is None else list(source_ids),
        "target_ids": [int(candidate.target_index)] if target_ids is None else list(target_ids),
        "source": candidate.source,
        "target": candidate.target,
    }
    line = json.dumps(record, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False)
    return line
