"""Texts of a data set, a batch at a time: their lengths, and keys by which equal ones are found without the text."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

CELLS_AT_ONCE = 10_000

#: Columns of text of one language, of which no other row's is a negative: two contiguous sentences.
MONO = ("mono", "mono_next")

#: Beginning of the names of columns of replayed texts, which are no row's negatives either.
KEPT_TEXT = "kept_text_"

_TEXT_TYPES = ("string", "large_string")  # Arrow's two kinds of text; Parquet and pandas give the second


def text_columns(dataset: Any, *, without: Iterable[str] = ()) -> list[str]:
    """Return the columns that contain sentences: text, no ``*_language``, none of ``without``."""
    excluded = set(without)
    columns = []
    for name, feature in dataset.features.items():
        is_text = getattr(feature, "dtype", None) in _TEXT_TYPES
        if is_text and not name.endswith("_language") and name not in excluded:
            columns.append(name)
    return columns


def column_batches(dataset: Any, column: str, *, rows: int = CELLS_AT_ONCE) -> Iterator[list[str]]:
    """Yield the cells of one column in order, at most ``rows`` at a time; of a data set or a stream."""
    for batch in dataset.select_columns([column]).with_format(None).iter(batch_size=rows):
        yield batch[column]


def column_texts(dataset: Any, *columns: str) -> Iterator[str]:
    """Yield the cells of one column after the other, a batch in memory at a time."""
    for column in columns:
        for batch in column_batches(dataset, column):
            yield from batch


def text_lengths(dataset: Any) -> list[int]:
    """Return the characters of each row over all text columns of a ``datasets.Dataset``. *Shape:* ``(rows,)``"""
    import pyarrow.compute as pc

    totals = np.zeros(len(dataset), dtype=np.int64)
    no_lengths = np.zeros(0, np.int64)  # for a data set without rows
    for name in text_columns(dataset):
        batches = dataset.with_format("arrow").select_columns([name]).iter(batch_size=CELLS_AT_ONCE)
        lengths = [pc.fill_null(pc.utf8_length(batch[name]), 0).to_numpy() for batch in batches]
        totals += np.concatenate([no_lengths, *lengths])
    return totals.tolist()


def digests(texts: Iterable[str | None]) -> bytes:
    """Return eight bytes for each text, which for all practical purposes only equal texts share, on every machine."""
    # Half a surrogate pair, which a caller's own strings may hold, is no reason to stop.
    encoded = ((text or "").encode("utf-8", "surrogatepass") for text in texts)
    return b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in encoded)


def exact_keys(texts: Iterable[str | None]) -> np.ndarray:
    """Return the digest of each text as a number. *Shape:* ``(texts,)``, uint64"""
    return np.frombuffer(digests(texts), dtype=">u8").astype(np.uint64)


def row_keys(dataset: Any, *, without: Iterable[str] = ()) -> np.ndarray:
    """Return the keys of every sentence that may be a negative. *Shape:* ``(rows, text columns)``, uint64"""
    no_keys = np.zeros(0, np.uint64)  # for a data set without rows
    keys = [np.zeros((len(dataset), 0), np.uint64)]  # without a column, no row has a key
    replayed = [name for name in dataset.column_names if name.startswith(KEPT_TEXT)]
    for name in text_columns(dataset, without=(*without, *MONO, *replayed)):
        # A batch at a time, since exact_keys holds an object a text while it joins them.
        keys.append(np.concatenate([no_keys, *map(exact_keys, column_batches(dataset, name))]))
    return np.column_stack(keys)


Hashes = npt.NDArray[np.uint64]
Indices = npt.NDArray[np.int64]

NORMALISATION = "nfkc-casefold-lmn"
"""Name of :func:`leak_key`'s rule, for signatures."""

_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, as in Fibonacci hashing


class _KeptCharacters(dict[int, "int | None"]):
    """A table for ``str.translate`` that looks each character up once: letters, marks and numbers stay."""

    def __missing__(self, code: int) -> int | None:
        # Variation selectors are marks by category, but choose a glyph only: ❤️ is ❤ and one of them.
        is_selector = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
        is_kept = not is_selector and unicodedata.category(chr(code))[0] in "LMN"
        kept = code if is_kept else None
        self[code] = kept
        return kept


_KEPT = _KeptCharacters()


def leak_key(text: str) -> str:
    """Return the letters, marks and numbers (Unicode L, M, N) of a text under NFKC and full case folding.

    Spelling, accents and word order count; case, width, punctuation, symbols and white space do not. The key of a text
    that has only symbols is the text without the white space around it.

    Example:
        >>> leak_key("Straße Nr. １２!") == leak_key("STRASSE, NR 12")
        True
    """
    # Folding may undo the composition (ΐ), so it is composed again; both are quick where nothing changes.
    composed = unicodedata.normalize("NFKC", text)
    folded = unicodedata.normalize("NFKC", composed.casefold())
    return folded.translate(_KEPT) or folded.strip()


def text_hashes(texts: Iterable[str]) -> Hashes:
    """Return 64 bits of BLAKE2b of each text's key, the same on every machine. *Shape:* ``(texts,)``"""
    return np.frombuffer(digests(map(leak_key, texts)), dtype="<u8").astype(np.uint64, copy=False)


def pair_hashes(source: Hashes, target: Hashes) -> Hashes:
    """Return one number for each pair, whichever side comes first. *Shape:* ``(pairs,)`` each"""
    return np.minimum(source, target) * _FIBONACCI + np.maximum(source, target)


def find_sorted(ordered: np.ndarray, values: np.ndarray) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the index of each value among the ordered ones, and whether it is there. *Shape:* as ``values``, both"""
    if not len(ordered):
        return np.zeros(values.shape, np.int64), np.zeros(values.shape, bool)
    indices = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return indices, ordered[indices] == values
