"""A sentence with some of its words left out."""

from __future__ import annotations

import re
import unicodedata

import numpy as np

SHARE = 1 / 7
"""Of the words left out, about."""

# Chinese and Japanese, Thai and Lao, Burmese, Khmer: written without spaces between words.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def thinned(text: str, rng: np.random.Generator, *, share: float = SHARE) -> str:
    """The text without about ``share`` of its words, at least one; in scripts without spaces, of its characters.

    A mark stays with the character it stands on. A text of one word, or character, stays as it is.

    Args:
        text: A sentence.
        rng: What draws the words.
        share: In (0, 1).
    Example:
        >>> len(thinned("one two three four", np.random.default_rng(0)).split())
        3
    """
    unspaced = _UNSPACED.search(text) is not None
    units = _characters(text) if unspaced else text.split()
    if len(units) < 2:
        return text
    out = set(rng.choice(len(units), size=max(1, round(share * len(units))), replace=False).tolist())
    kept = ("" if unspaced else " ").join(unit for place, unit in enumerate(units) if place not in out)
    return kept if kept.strip() else text


def _characters(text: str) -> list[str]:
    units: list[str] = []
    for character in text:
        if units and unicodedata.category(character)[0] == "M":
            units[-1] += character
        else:
            units.append(character)
    return units
