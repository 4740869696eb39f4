"""Which guards are on, and their limits."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from st_xling.mining.guards.candidates import Guard
from st_xling.mining.guards.exact_copy import CopyGuard
from st_xling.mining.guards.hub import HubGuard, NeighbourCounts
from st_xling.mining.guards.language import LanguageGuard, unknown_languages
from st_xling.mining.guards.length_ratio import LengthRatioGuard
from st_xling.mining.guards.near_copy import NearCopyGuard
from st_xling.mining.guards.number_agreement import NumbersGuard

#: Reason codes in the order in which guards look at a pair, cheapest first; a reject carries the first that applies.
REASONS = ("hub", "copy", "near_copy", "length_ratio", "numbers", "language")


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

    def build(self, *, counts: NeighbourCounts | None = None) -> tuple[list[Guard], dict[str, str]]:
        """The guards that are on, in the order of :data:`REASONS`.

        Args:
            counts: What the hub guard needs.
        Returns:
            The guards, and for each reason code that is switched on but cannot work (wholly, or on a side) why not.
        Raises:
            ValueError: If a limit is out of its range.
        """
        guards: list[Guard] = []
        idle: dict[str, str] = {}
        if self.hub is not None and counts is None:
            idle["hub"] = "nobody counted neighbours"
        elif self.hub is not None and counts is not None:
            guards.append(HubGuard(counts, self.hub))
        if self.copy:
            guards.append(CopyGuard())
        if self.near_copy is not None:
            guards.append(NearCopyGuard(self.near_copy))
        if self.length_ratio is not None:
            guards.append(LengthRatioGuard(self.length_ratio))
        if self.numbers:
            guards.append(NumbersGuard())
        if self.language is not None:
            guards.extend(self._language_guard(idle))
        return guards, idle

    def _language_guard(self, idle: dict[str, str]) -> list[Guard]:
        languages = {"source": self.source_language, "target": self.target_language}
        try:
            unknown = unknown_languages(languages.values())
        except ImportError:
            idle["language"] = "py3langid is not installed (pip install py3langid)"
            return []
        notes = [f"the language of the {side} side is not given" for side, code in languages.items() if code is None]
        notes += [f"py3langid does not know {code!r}" for code in unknown]
        if notes:
            idle["language"] = "; ".join(notes)
        source, target = (None if code in unknown else code for code in languages.values())
        return [LanguageGuard(source, target, self.language or 0.0)] if source or target else []


def _spelled(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, REASONS, n=1, cutoff=0.5)
    return f"got {name!r}" + (f" (did you mean {close[0]!r}?)" if close else "")
