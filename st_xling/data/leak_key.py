"""What makes two texts the same text, as 64-bit numbers that a corpus can be searched by."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from st_xling.data.text_columns import digests

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

NORMALISATION = "nfkc-casefold-lmn"
"""Name of :func:`leak_key`'s rule, for signatures."""

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, as in Fibonacci hashing


class _KeptCharacters(dict[int, "int | None"]):
    """A table for ``str.translate`` that looks each character up once: letters, marks and numbers stay."""

    def __missing__(self, code: int) -> int | None:
        # Variation selectors are marks by category, but choose a glyph only: ❤️ is ❤ and one of them.
        selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
        kept = None if selector or unicodedata.category(chr(code))[0] not in "LMN" else code
        self[code] = kept
        return kept


_KEPT = _KeptCharacters()


def leak_key(text: str) -> str:
    """The text under NFKC and full case folding, with nothing but its letters, marks and numbers (Unicode L, M, N).

    Spelling, accents and word order count; case, width, punctuation, symbols and white space do not. A text of symbols
    alone is its own key, without the white space around it.

    Example:
        >>> leak_key("Straße Nr. １２!") == leak_key("STRASSE, NR 12")
        True
    """
    # Folding may undo the composition (ΐ), so it is composed again; both are quick where nothing changes.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_KEPT) or folded.strip()


def text_hashes(texts: Iterable[str]) -> Hashes:
    """64 bits of BLAKE2b of each text's key, the same on every machine. *Shape:* ``(texts,)``"""
    return np.frombuffer(digests(map(leak_key, texts)), dtype="<u8").astype(np.uint64, copy=False)


def pair_hashes(source: Hashes, target: Hashes) -> Hashes:
    """One number for each pair, whichever side comes first. *Shape:* ``(pairs,)`` each"""
    return np.minimum(source, target) * _ODD + np.maximum(source, target)


def find_sorted(ordered: np.ndarray, values: np.ndarray) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Where each value stands among the ordered ones, and whether it does. *Shape:* as ``values``, both"""
    if not len(ordered):
        return np.zeros(values.shape, np.int64), np.zeros(values.shape, bool)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return places, ordered[places] == values
