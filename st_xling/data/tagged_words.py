"""Tagged words: CoNLL-U, the format of Universal Dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from st_xling.data.check import FaultLog, iter_lines

UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
"""The universal tags, in alphabetical order. *Source:* universaldependencies.org/u/pos."""

HEAD_TAGS = {
    "": "VERB NOUN PROPN PRON ADJ NUM ADV INTJ AUX ADP DET PART CCONJ SCONJ X PUNCT SYM",
    "es": "VERB AUX PRON ADP DET",
    "fr": "VERB AUX PRON NOUN ADJ ADV ADP DET PART SCONJ CCONJ",
    "it": "VERB AUX ADV PRON ADP DET INTJ",
}
"""Of words equally near to the root, which tag a fused form takes; by language. *Source:* ud-conversion-tools."""

COLUMNS = 10
_WORD = re.compile(r"[1-9][0-9]*")
_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")

NumberedLine = tuple[int, list[str]]


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences of one language in the order of their file.

    Attributes:
        words: Words of each sentence.
        tags: A tag for each word.
        rows: Each sentence's place in the file, counted from 0.
        total: Sentences in the file.
    """

    words: list[list[str]] = field(default_factory=list)
    tags: list[list[str]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    total: int = 0

    def __len__(self) -> int:
        return len(self.tags)

    def select(self, places: Iterable[int]) -> TaggedSentences:
        """The sentences at ``places``."""
        chosen = list(places)
        words, tags = ([column[place] for place in chosen] for column in (self.words, self.tags))
        return replace(self, words=words, tags=tags, rows=[self.rows[place] for place in chosen])


def read_conllu(path: str | Path, *, fused: bool = False, language: str = "") -> TaggedSentences:
    """Read words and universal tags of a treebank, plain or packed.

    Of a multiword token ``1-2`` the words ``1`` and ``2`` count, as in the shared tasks; empty nodes are skipped.

    Args:
        path: The treebank.
        fused: Put the form of a multiword token in the place of its words, as XTREME's part-of-speech sets have it
            (``--replace_subtokens_with_fused_forms``): *aux* is one word, not *à* and *les*. Its tag is that of the
            word nearest to the root, of several the one that comes first in :data:`HEAD_TAGS`.
        language: Chooses the order of tags in :data:`HEAD_TAGS`.
    Raises:
        ParallelTextError: For faulty lines, all together with their line numbers, or if there is no sentence.
        FileNotFoundError: If there is no such file.
    """
    faults = FaultLog(can_skip=False, what="CoNLL-U")
    words: list[list[str]] = []
    tags: list[list[str]] = []
    for block in _sentences(path, faults):
        rows = [(number, cells) for number, cells in block if _WORD.fullmatch(cells[0])]
        for place, (number, cells) in enumerate(rows, 1):
            if cells[0] != str(place):
                faults.add(path, number, "broken id", f"expected word {place}, got {cells[0]}")
            elif not cells[1].strip() or cells[3] not in UPOS:
                got = f"{cells[1]!r} {cells[3]!r}"
                faults.add(path, number, "bad word", f"expected a form and a universal tag, got {got}")
        spans = [(int(found[1]), int(found[2])) for _, cells in block if (found := _RANGE.fullmatch(cells[0]))]
        wrong = [f"{start}-{end}" for start, end in spans if not start < end <= len(rows)]
        if wrong or not rows:
            expected = f"the words of {wrong[0]}" if wrong else "words"
            faults.add(path, block[0][0], "broken id", f"expected {expected}, got {len(rows)}")
            continue
        tagged = [(cells[1], cells[3]) for _, cells in rows]
        if fused:
            tagged = list(_fused([cells for _, cells in block], [cells for _, cells in rows], language))
        words.append([form for form, _ in tagged])
        tags.append([tag for _, tag in tagged])
    if not words and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected sentences")
    faults.finalize()
    return TaggedSentences(words, tags, list(range(len(words))), len(words))


def _sentences(path: str | Path, faults: FaultLog) -> Iterator[list[NumberedLine]]:
    block: list[NumberedLine] = []
    for number, line in enumerate(chain(iter_lines(path, faults), [""]), 1):
        if line is not None and not line.strip():
            if block:
                yield block
            block = []
        elif line is not None and not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) == COLUMNS:
                block.append((number, cells))
            else:
                faults.add(path, number, "bad column count", f"expected {COLUMNS}, got {len(cells)}")


def _fused(block: Sequence[Sequence[str]], words: Sequence[Sequence[str]], language: str) -> Iterator[tuple[str, str]]:
    """Yield form and tag of each surface token."""
    order = HEAD_TAGS.get(language, HEAD_TAGS[""]).split()
    heads = [int(cells[6]) if cells[6].isdecimal() and int(cells[6]) <= len(words) else 0 for cells in words]

    def rank(word: int) -> tuple[int, int, int]:
        tag, depth, head = words[word - 1][3], 0, heads[word - 1]
        while head and depth < len(words):  # a broken tree may have a cycle
            depth, head = depth + 1, heads[head - 1]
        return depth, order.index(tag) if tag in order else len(order), word

    covered = 0
    for cells in block:
        if found := _RANGE.fullmatch(cells[0]):
            covered = int(found[2])
            yield cells[1], words[min(range(int(found[1]), covered + 1), key=rank) - 1][3]
        elif _WORD.fullmatch(cells[0]) and int(cells[0]) > covered:
            yield cells[1], cells[3]
