"""Which guards are on, what they turn down of candidate pairs, and the file in which that is written down."""

from __future__ import annotations

import difflib
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from st_xling.mining.guards.language import LanguageGuard, unknown_languages
from st_xling.mining.guards.numbers import NumbersGuard
from st_xling.mining.guards.predicates import (
    Candidate,
    CandidateBatch,
    CopyGuard,
    Guard,
    HubGuard,
    LengthRatioGuard,
    NearCopyGuard,
    NeighbourCounts,
    Verdict,
    candidate_batches,
)
from st_xling.mining.mine import MinedPairs
from st_xling.utils.io import atomic_writer

logger = logging.getLogger(__name__)

#: Reason codes in the order in which guards look at a pair, cheapest first; a reject carries the first that applies.
REASONS = ("hub", "copy", "near_copy", "length_ratio", "numbers", "language")

# Line ends to some readers (Python's str.splitlines among them), but not to JSON.
_LINE_ENDS = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """Limits of the guards, by reason code; ``None`` or ``False`` switches one off. All are on by default.

    Attributes:
        copy: :class:`CopyGuard`, which has no limit.
        near_copy: Similarity from which :class:`NearCopyGuard` turns down, in (0, 1].
        length_ratio: Ratio above which :class:`LengthRatioGuard` turns down.
        numbers: :class:`NumbersGuard`, which has no limit.
        language: Odds below which :class:`LanguageGuard` turns down, in (0, 1).
        hub: Multiple of the mean above which :class:`HubGuard` turns down.
        source_language: The language that the source side should be in; without it that side is not looked at.
        target_language: The same of the target side.
    """

    copy: bool = True
    near_copy: float | None = NearCopyGuard.limit
    length_ratio: float | None = LengthRatioGuard.limit
    numbers: bool = True
    language: float | None = LanguageGuard.limit
    hub: float | None = HubGuard.limit
    source_language: str | None = None
    target_language: str | None = None

    def with_flags(self, *, limits: Iterable[str] = (), off: Iterable[str] = ()) -> GuardOptions:
        """These options changed by words of a command line.

        Args:
            limits: ``"length_ratio=2.5"`` and the like.
            off: Reason codes to switch off; ``"all"`` for every one. A guard in both is off.
        Raises:
            ValueError: On an unknown guard, a limit that is no number, or one for a guard without a limit; all such
                faults at once.
        Example:
            >>> GuardOptions().with_flags(limits=["length_ratio=3"], off=["numbers"]).length_ratio
            3.0
        """
        changes: dict[str, float | bool | None] = {}
        faults = []
        switches = {field.name for field in fields(self) if isinstance(field.default, bool)}
        for word in limits:
            name, _, value = word.partition("=")
            name = _spelled(name)
            if name not in REASONS:
                faults.append(_unknown(name))
            elif name in switches:
                faults.append(f"{name} has no limit, got {word!r}: leave it on, or switch it off")
            else:
                try:
                    changes[name] = float(value)
                except ValueError:
                    faults.append(f"got {word!r}: write {name}=NUMBER")
        for name in [reason for word in off for reason in (REASONS if word == "all" else (_spelled(word),))]:
            if name in REASONS:
                changes[name] = False if name in switches else None
            else:
                faults.append(_unknown(name))
        if faults:
            raise ValueError(f"guards must be {', '.join(REASONS)}: " + "; ".join(faults) + ".")
        return replace(self, **changes)  # type: ignore[arg-type]

    def signature(self, idle: Iterable[str] = ()) -> str:
        """The guards that are on, with their limits, in the order in which they look at a pair.

        Args:
            idle: Reason codes of guards that cannot work.
        Example:
            >>> GuardOptions(hub=None, near_copy=None, language=None).signature()
            'copy,length_ratio=2.5,numbers'
        """
        values = {reason: getattr(self, reason) for reason in REASONS if reason not in idle}
        words = [
            reason if value is True else f"{reason}={value:g}"
            for reason, value in values.items()
            if value is not None and value is not False
        ]
        return ",".join(words) or "none"

    def build(self, *, counts: NeighbourCounts | None = None) -> tuple[list[Guard], dict[str, str]]:
        """The guards that are on, in the order of :data:`REASONS`.

        Args:
            counts: What the hub guard needs.
        Returns:
            The guards, and for each reason code that is switched on but cannot work (wholly, or on a side) why not.
        Raises:
            ValueError: If a limit is out of its range.
        """
        idle: dict[str, str] = {}
        if self.hub is not None and counts is None:
            idle["hub"] = "nobody counted neighbours"
        guards = [
            None if self.hub is None or counts is None else HubGuard(counts, self.hub),
            CopyGuard() if self.copy else None,
            None if self.near_copy is None else NearCopyGuard(self.near_copy),
            None if self.length_ratio is None else LengthRatioGuard(self.length_ratio),
            NumbersGuard() if self.numbers else None,
            None if self.language is None else self._language_guard(idle),
        ]
        return [guard for guard in guards if guard is not None], idle

    def _language_guard(self, idle: dict[str, str]) -> Guard | None:
        languages = {"source": self.source_language, "target": self.target_language}
        try:
            unknown = unknown_languages(languages.values())
        except ImportError:
            idle["language"] = "py3langid is not installed (pip install py3langid)"
            return None
        notes = [f"the language of the {side} side is not given" for side, code in languages.items() if code is None]
        notes += [f"py3langid does not know {code!r}" for code in unknown]
        if notes:
            idle["language"] = "; ".join(notes)
        source, target = (None if code in unknown else code for code in languages.values())
        return LanguageGuard(source, target, self.language or 0.0) if source or target else None


def _spelled(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, REASONS, n=1, cutoff=0.5)
    return f"got {name!r}" + (f" (did you mean {close[0]!r}?)" if close else "")


@dataclass(frozen=True)
class Reject:
    """A pair, the reason code of the first guard that turned it down, and what that guard measured."""

    reason: str
    candidate: Candidate
    verdict: Verdict


class PairGuards:
    """Applies the guards that are on, cheapest first; a pair that one turns down is not shown to the next.

    A verdict depends on the pair alone (and the neighbour counts), so order and batches change nothing. Guards that are
    on but cannot work are named in one warning.

    Args:
        options: Which guards are on.
        counts: Neighbour counts, for the hub guard.
    Attributes:
        idle: Reason code to why its guard cannot work.
        counts: Pairs seen so far by outcome: ``"kept"`` and reason codes.
    """

    def __init__(self, options: GuardOptions | None = None, *, counts: NeighbourCounts | None = None) -> None:
        self.guards, self.idle = (options or GuardOptions()).build(counts=counts)
        self.counts: Counter[str] = Counter()
        if self.idle:
            reasons = "; ".join(f"{reason}: {why}" for reason, why in self.idle.items())
            logger.warning("guards that do not look at every pair: %s", reasons)

    @property
    def rejected(self) -> dict[str, int]:
        """Pairs turned down so far, by the reason codes that occurred, in the order in which guards look."""
        return {reason: self.counts[reason] for reason in REASONS if self.counts[reason]}

    def check(self, batch: CandidateBatch) -> tuple[np.ndarray, list[Reject]]:
        """Which candidates stay, bool, *shape* ``(pairs,)``, and the rejects of the others, in order."""
        rejects: dict[int, Reject] = {}
        stay = np.ones(len(batch), dtype=bool)
        rows, left = np.arange(len(batch)), batch
        for guard in self.guards:
            for place, verdict in enumerate(guard.check(left)) if len(left) else ():
                if verdict is not None:
                    row = int(rows[place])
                    stay[row] = False
                    rejects[row] = Reject(guard.reason, batch[row], verdict)
            if not stay[rows].all():
                left = left.select(np.flatnonzero(stay[rows]).tolist())
                rows = rows[stay[rows]]
        self.counts.update(reject.reason for reject in rejects.values())
        self.counts["kept"] += len(left)
        return stay, [rejects[row] for row in sorted(rejects)]

    def split(self, batch: CandidateBatch) -> tuple[CandidateBatch, list[Reject]]:
        """The candidates that stay, and those that go, both in the order they came in."""
        stay, rejects = self.check(batch)
        return batch.select(np.flatnonzero(stay).tolist()), rejects

    def allowed(
        self,
        pairs: MinedPairs,
        sources: Sequence[str],
        targets: Sequence[str],
        on_reject: Callable[[Reject], object] | None = None,
    ) -> np.ndarray:
        """Which mined pairs may stay, bool, *shape* ``(pairs,)``; their texts are read by row."""
        stay, rejects = self.check(CandidateBatch.of(pairs, sources, targets))
        if on_reject is not None:
            for reject in rejects:
                on_reject(reject)
        return stay

    def filter(
        self,
        candidates: Iterable[Candidate],
        *,
        on_reject: Callable[[Reject], object] | None = None,
        batch_pairs: int = 8192,
    ) -> Iterator[Candidate]:
        """The candidates that stay, from a stream of any length; one batch is in memory at a time.

        Args:
            candidates: In any order, which is kept.
            on_reject: Called with each reject, such as ``RejectsFile.write``.
            batch_pairs: Pairs looked at together; memory, never the result, depends on it.
        """
        for batch in candidate_batches(candidates, batch_pairs=batch_pairs):
            stay, rejects = self.check(batch)
            if on_reject is not None:
                for reject in rejects:
                    on_reject(reject)
            for row in np.flatnonzero(stay).tolist():
                yield batch[row]

    def filter_mined(
        self,
        pairs: MinedPairs,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        on_reject: Callable[[Reject], object] | None = None,
        batch_pairs: int = 8192,
    ) -> MinedPairs:
        """The mined pairs that stay, best first as before.

        Args:
            pairs: What :func:`~st_xling.mining.mine` found.
            sources: Texts of the sources; anything that gives the text of a row.
            targets: Texts of the targets.
            on_reject: Called with each reject.
            batch_pairs: Pairs looked at together.
        """
        blocks = [slice(start, start + batch_pairs) for start in range(0, len(pairs), batch_pairs)]
        stay = [self.allowed(pairs.select(block), sources, targets, on_reject) for block in blocks]
        return pairs.select(np.concatenate(stay)) if stay else pairs


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
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> RejectsFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = atomic_writer(self.path)
        self._stream = self._writer.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._writer.__exit__(*error)

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
