"""A text reduced to what copies share: its letters, marks and digits."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

#: Sentences that are remembered: a sentence is in several candidates, most of them near.
REMEMBERED = 1 << 14

_TATWEEL = "\N{ARABIC TATWEEL}"


class _Kept(dict[int, int | None]):
    """A table for ``str.translate`` that looks a character up the first time it is met: itself, or None to drop it."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        kept = unicodedata.category(character)[0] in "LMN" and character != _TATWEEL
        self[code] = code if kept else None
        return self[code]


_KEPT = _Kept()


@lru_cache(maxsize=REMEMBERED)
def letter_key(text: str) -> str:
    """Letters, marks and digits of a text after NFKC and case folding; equal keys are copies of each other.

    White space, punctuation, symbols, emoji, invisible characters and the Arabic tatweel go. Marks stay, for in many
    scripts they are vowels. Case folding can undo NFKC, hence NFKC on both sides of it.

    Source:
        Unicode Standard, section 3.13, "toNFKC_Casefold".
    Example:
        >>> letter_key("Ｃａｆe\u0301 — Nº 5!")
        'caféno5'
    """
    if text.isascii():
        return text.lower().translate(_KEPT)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # What is dropped may have stood between a letter and its mark.
    return unicodedata.normalize("NFC", folded.translate(_KEPT))
