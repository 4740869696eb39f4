"""Which guards are on, what they turn down of candidate pairs, and the file in which that is written down."""

from __future__ import annotations

import difflib
import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from st_xling.mining.guards.language import LanguageGuard
from st_xling.mining.guards.numbers import NumbersGuard
from st_xling.mining.guards.predicates import (
    CandidateBatch,
    CopyGuard,
    Guard,
    HubGuard,
    LengthRatioGuard,
    NearCopyGuard,
    NeighbourCounts,
    Verdict,
)
from st_xling.mining.mine import MinedPairs
from st_xling.utils.identify import LanguageUnknown
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
        limits = list(limits)
        off = [reason for word in off for reason in (REASONS if word == "all" else (word,))]
        for word in [*limits, *off]:
            given, _, value = word.partition("=")
            name = given.strip().lower().replace("-", "_")
            if name not in REASONS:
                close = difflib.get_close_matches(name, REASONS, n=1, cutoff=0.5)
                faults.append(f"got {given!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
            elif word in off:
                changes[name] = False if name in switches else None
            elif name in switches:
                faults.append(f"{name} has no limit, got {word!r}: leave it on, or switch it off")
            else:
                try:
                    changes[name] = float(value)
                except ValueError:
                    faults.append(f"got {word!r}: write {name}=NUMBER")
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
        idle, words = [*idle], []
        for reason in REASONS:
            value = getattr(self, reason)
            if reason not in idle and value is not None and value is not False:
                words.append(reason if value is True else f"{reason}={value:g}")
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
        guards: list[Guard] = []
        if self.hub is not None and counts is not None:
            guards.append(HubGuard(counts, self.hub))
        elif self.hub is not None:
            idle["hub"] = "nobody counted neighbours"
        if self.copy:
            guards.append(CopyGuard())
        if self.near_copy is not None:
            guards.append(NearCopyGuard(self.near_copy))
        if self.length_ratio is not None:
            guards.append(LengthRatioGuard(self.length_ratio))
        if self.numbers:
            guards.append(NumbersGuard())
        if self.language is not None:
            known: dict[str, str] = {}
            notes = []
            for side in ("source_language", "target_language"):
                code = getattr(self, side)
                if code is None:
                    notes.append(f"the language of the {side.split('_')[0]} side is not given")
                    continue
                try:
                    LanguageGuard(code)
                    known[side] = code
                except LanguageUnknown:
                    notes.append(f"py3langid does not know {code!r}")
            if notes:
                idle["language"] = "; ".join(notes)
            if known:
                guards.append(LanguageGuard(**known, limit=self.language))
        return guards, idle


class Reject(NamedTuple):
    """A pair, the reason code of the first guard that turned it down, and what that guard measured.

    A line of a file that is no pair has the reason, no rows and no texts.

    Attributes:
        reason: Reason code.
        verdict: What was measured.
        score: Of the pair.
        source_index: Its row in the source corpus.
        target_index: Its row in the target corpus.
        source: Text of that row.
        target: Likewise.
    """

    reason: str
    verdict: Verdict
    score: float
    source_index: int
    target_index: int
    source: str | None
    target: str | None


class PairGuards:
    """Applies the guards that are on, cheapest first; a pair that one turns down is not shown to the next.

    A verdict depends on the pair alone (and the neighbour counts), so order and batches change nothing. Guards that are
    on but cannot work are named in one warning.

    Args:
        options: Which guards are on.
        counts: Neighbour counts, for the hub guard.
    Attributes:
        guards: Those that are on and can work.
        idle: Reason code to why its guard cannot work.
        stages: Of each guard, by reason code, in the order in which they look: the ``pairs`` that it looked at, how
            many of these it ``removed``, and the ``seconds`` it took.
    """

    def __init__(self, options: GuardOptions | None = None, *, counts: NeighbourCounts | None = None) -> None:
        options = options or GuardOptions()
        self.guards, self.idle = options.build(counts=counts)
        self.stages = {guard.reason: {"seconds": 0.0, "pairs": 0, "removed": 0} for guard in self.guards}
        if self.idle:
            reasons = "; ".join(f"{reason}: {why}" for reason, why in self.idle.items())
            # That nobody named a language is no fault.
            unnamed = [*self.idle] == ["language"] and options.source_language is options.target_language is None
            level = logging.INFO if unnamed else logging.WARNING
            logger.log(level, "guards that do not look at every pair: %s", reasons)

    @property
    def rejected(self) -> dict[str, int]:
        """Pairs turned down so far, by the reason codes that occurred, in the order in which guards look."""
        return {reason: int(stage["removed"]) for reason, stage in self.stages.items() if stage["removed"]}

    def check(self, batch: CandidateBatch) -> tuple[np.ndarray, list[Reject]]:
        """Which candidates stay, bool, *shape* ``(pairs,)``, and the rejects of the others, in order."""
        rejects: dict[int, Reject] = {}
        rows, left = np.arange(len(batch)), batch
        for guard in self.guards:
            if not len(left):
                break
            started = time.perf_counter()
            verdicts = guard.check(left)
            stay = np.array([verdict is None for verdict in verdicts])
            stage = self.stages[guard.reason]
            stage["seconds"] += time.perf_counter() - started
            stage["pairs"] += len(left)
            stage["removed"] += len(left) - int(stay.sum())
            pair = left.pairs
            for place, verdict in enumerate(verdicts):
                if verdict is not None:
                    rejects[int(rows[place])] = Reject(
                        reason=guard.reason,
                        verdict=verdict,
                        score=float(pair.scores[place]),
                        source_index=int(pair.source_indices[place]),
                        target_index=int(pair.target_indices[place]),
                        source=left.sources[place],
                        target=left.targets[place],
                    )
            if not stay.all():
                rows, left = rows[stay], left.select(np.flatnonzero(stay))
        allowed = np.ones(len(batch), dtype=bool)
        allowed[list(rejects)] = False
        return allowed, [rejects[row] for row in sorted(rejects)]

    def allowed(
        self,
        pairs: MinedPairs,
        sources: Sequence[str],
        targets: Sequence[str],
        on_reject: Callable[[Reject], object] | None = None,
    ) -> np.ndarray:
        """Which mined pairs may stay, bool, *shape* ``(pairs,)``: ``pairs.select`` takes it.

        Args:
            pairs: Some thousands at a time; their texts are in memory meanwhile.
            sources: Texts of the sources; anything that gives the text of a row.
            targets: Texts of the targets.
            on_reject: Called with each reject, such as :meth:`RejectsFile.write`.
        """
        stay, rejects = self.check(CandidateBatch.of(pairs, sources, targets))
        for reject in rejects if on_reject is not None else ():
            on_reject(reject)  # type: ignore[misc]
        return stay


class RejectsFile(ExitStack):
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
        super().__init__()
        self.path = Path(path)

    def __enter__(self) -> RejectsFile:
        super().__enter__()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.stream = self.enter_context(atomic_writer(self.path))
        return self

    def write(
        self, reject: Reject, *, source_ids: Sequence[Any] | None = None, target_ids: Sequence[Any] | None = None
    ) -> None:
        """Add one line.

        Args:
            reject: What was turned down.
            source_ids: All ids of the source text, when duplicates were folded; its row by default.
            target_ids: The same of the target text.
        """
        ids = [reject.source_index] if source_ids is None else source_ids
        self.stream.write(reject_line(reject, ids, [reject.target_index] if target_ids is None else target_ids))


def reject_line(reject: Reject, source_ids: Sequence[Any], target_ids: Sequence[Any]) -> bytes:
    """One line of JSON.

    Scripts stay readable; characters that would end a line for some readers are escaped. A score that is not finite is
    ``null``.
    """
    record = {
        "reason": reject.reason,
        "value": reject.verdict.value,
        "limit": reject.verdict.limit,
        "score": reject.score if math.isfinite(reject.score) else None,
        "source_ids": list(source_ids),
        "target_ids": list(target_ids),
        "source": reject.source,
        "target": reject.target,
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS).encode("utf-8") + b"\n"
