"""Are the sides of parallel text in the languages that they are said to be in?"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from st_xling.data.orient import HEAD_ROWS
from st_xling.data.pairs import head
from st_xling.utils.identify import NO_LANGUAGE, LanguageUnknown, expected_labels, likeliest_language
from st_xling.utils.languages import UNKNOWN

logger = logging.getLogger(__name__)

DRAWN_ROWS = 400
LOOKED_AT = 100
LEAST_ROWS = 10
"""Fewer rows of two languages say nothing of them."""
LEAST_CHARS = 15
"""Shorter texts are names and interjections, which are identified by chance."""


def check_sides(data: Mapping[str, Any]) -> list[str]:
    """Warn of data sets whose sides look swapped, or are in another language than they say; nothing is changed.

    Of each data set the longest 100 out of 400 rows that a fixed seed draws are looked at (of a stream, out of its
    first thousand). A side is reported where more than half of its texts are in one other language. Languages that
    py3langid does not know pass, and so does text of which only a few rows are long enough.

    Args:
        data: Name → ``Dataset`` or ``IterableDataset`` with the columns of parallel text.
    Returns:
        The warnings, a line each; they are logged too.
    """
    lines = []
    for name, dataset in data.items():
        for pair, rows in _samples(dataset).items():
            seen = [_languages(texts, pair) for texts in zip(*rows)]
            faults = [
                f"{side} looks like {found} ({counts[found]} of {counts.total()}), expected {code}: "
                f"{counts[code]} look like it"
                for side, code, counts in zip(("source", "target"), pair, seen)
                if (found := _other(counts, code))
            ]
            if not faults:
                continue
            swapped = [_other(counts, code) for counts, code in zip(seen, pair)] == [pair[1], pair[0]]
            advice = "nothing is changed: check the file and the languages named for it"
            if swapped:
                turned = "-".join(reversed(pair))
                advice = f"the sides look swapped; nothing is changed: say {turned}=PATH, or choose by ?columns=1,0"
            lines.append(f"{name}: {'; '.join(faults)}; {advice}")
            logger.warning("%s", lines[-1], extra={"at_once": True})  # before training begins
    return lines


def _samples(dataset: Any) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Languages → the longest of some rows."""
    dataset = head(dataset, HEAD_ROWS)
    drawn = np.sort(np.random.default_rng(0).permutation(len(dataset))[:DRAWN_ROWS])
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in dataset.select(drawn):
        found.setdefault((row["source_language"], row["target_language"]), []).append((row["source"], row["target"]))
    samples = {}
    for pair, rows in found.items():
        long = [row for row in rows if min(map(len, row)) >= LEAST_CHARS or not all(map(str.isascii, row))]
        long.sort(key=lambda row: min(map(len, row)), reverse=True)
        if len(long) >= LEAST_ROWS and all(map(_is_known, pair)):
            samples[pair] = long[:LOOKED_AT]
    return samples


def _is_known(language: str) -> bool:
    try:
        return language != UNKNOWN and bool(expected_labels(language))
    except LanguageUnknown:
        return False


def _languages(texts: tuple[str, ...], pair: tuple[str, str]) -> Counter[str]:
    """Count the texts of each language; those of the pair go by its spelling."""
    names = {label: code for code in pair for label in expected_labels(code)}
    labels = map(likeliest_language, texts)
    return Counter(names.get(label, label) for label in labels if label != NO_LANGUAGE)


def _other(counts: Counter[str], expected: str) -> str | None:
    """The language of more than half of the texts, where it is not the expected one."""
    most, rows = counts.most_common(1)[0] if counts else (expected, 0)
    return most if most != expected and 2 * rows > counts.total() >= LEAST_ROWS else None
