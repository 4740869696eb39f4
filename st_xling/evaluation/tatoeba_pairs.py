"""What a Tatoeba evaluator is given, checked: aligned texts per language, and the groups that are whole."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from st_xling.evaluation.languages import TATOEBA_GROUPS
from st_xling.utils.languages import canonical_language

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

Pairs: TypeAlias = "Mapping[str, tuple[Sequence[str], Sequence[str]] | Dataset]"


def aligned_pairs(pairs: Pairs) -> dict[str, tuple[list[str], list[str]]]:
    """Canonical code to two lists of equal length, in alphabetical order; all faults in one error."""
    aligned: dict[str, tuple[list[str], list[str]]] = {}
    faults = []
    for code, sides in pairs.items():
        language = canonical_language(code)
        if language in aligned:
            faults.append(f"{code} and another code both mean {language}; keep one.")
        columns = getattr(sides, "column_names", None)
        if columns is not None and not {"source", "target"} <= set(columns):
            faults.append(f"{code} has columns {', '.join(columns)}; name them source and target.")
            continue
        source, target = (sides["source"], sides["target"]) if columns is not None else sides  # type: ignore[call-overload]
        aligned[language] = (list(source), list(target))
        if len(source) != len(target):
            faults.append(f"{code} has {len(source)} and {len(target)} texts; align them line by line.")
        elif not len(source):
            faults.append(f"{code} has no texts; leave it out.")
    if not pairs:
        faults.append("got none; pass e.g. {'deu': (german, english)}.")
    if faults:
        raise ValueError(f"pairs must hold aligned texts for at least one language: {' '.join(faults)}")
    return dict(sorted(aligned.items()))


def english_columns(pairs: Mapping[str, tuple[list[str], list[str]]]) -> tuple[list[list[str]], list[str | None]]:
    """The texts of each language and their English, one after the other, and the language of each of these columns."""
    texts = [column for columns in pairs.values() for column in columns]
    return texts, [code for language in pairs for code in (language, "eng")]


def whole_groups(
    groups: Iterable[str] | Mapping[str, Sequence[str]] | None, pairs: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Groups of which every language is there; a log line names those that lack some."""
    if groups is None or isinstance(groups, Mapping):
        named = {
            group: tuple(map(canonical_language, members)) for group, members in (groups or TATOEBA_GROUPS).items()
        }
    else:
        names = [groups] if isinstance(groups, str) else list(groups)
        unknown = [group for group in names if group not in TATOEBA_GROUPS]
        if unknown:
            raise ValueError(
                f"groups must be among {', '.join(TATOEBA_GROUPS)}: got {', '.join(unknown)}; pass a mapping of name "
                "to languages for your own."
            )
        named = {group: TATOEBA_GROUPS[group] for group in names}
    clashes = [group for group, members in named.items() if not group or group in pairs or not members]
    if clashes:
        raise ValueError(
            f"groups must have languages and a name that is no language's: got {', '.join(map(repr, clashes))}; "
            "rename or drop them."
        )
    whole = {}
    for group, members in named.items():
        missing = [member for member in members if member not in pairs]
        if not missing:
            whole[group] = members
        elif groups is not None or len(missing) < len(members):
            level = logging.INFO if groups is None else logging.WARNING
            listed = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
            logger.log(
                level, "no average for %s: %d of %d languages missing (%s)", group, len(missing), len(members), listed
            )
    return whole
