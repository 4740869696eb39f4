"""What makes two texts the same text, as 64-bit numbers that a corpus can be searched by."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

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


class Watchlist:
    """Hashes to look out for, and where they were found.

    Args:
        hashes: The hashes of any number of texts, with repetitions.
    """

    def __init__(self, hashes: Sequence[Hashes]) -> None:
        self.hashes = np.unique(np.concatenate([np.empty(0, np.uint64), *hashes]))
        self.found: dict[str, npt.NDArray[np.bool_]] = {}
        self.first: dict[int, tuple[str, int, str]] = {}

    def places(self, hashes: Hashes) -> Places:
        """Where each hash stands on the list, -1 if it is not there. *Shape:* ``(texts,)``"""
        if not len(self.hashes):
            return np.full(len(hashes), -1, np.int64)
        places = np.searchsorted(self.hashes, hashes)
        places[places == len(self.hashes)] = 0
        return np.where(self.hashes[places] == hashes, places, -1)

    def find(self, name: str, start: int, hashes: Hashes, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Note which hashes of a batch are on the list.

        Args:
            name: The training set.
            start: Row of the batch's first text, counted from 1.
            hashes: *Shape:* ``(texts,)``
            texts: The texts themselves, of which the first of each hash is kept.

        Returns:
            True where a text is on the list. *Shape:* ``(texts,)``
        """
        places = self.places(hashes)
        hit = places >= 0
        found = self.found.setdefault(name, np.zeros(len(self.hashes), bool))
        for row in np.flatnonzero(hit).tolist():
            if not found[places[row]]:
                found[places[row]] = True
                self.first.setdefault(int(places[row]), (name, start + row, texts[row]))
        return hit
