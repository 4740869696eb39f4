"""CoNLL-U, the format of Universal Dependencies: words and their part-of-speech tags, trees checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from st_xling.data.faults import FaultLog, iter_lines

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
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)")

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
    """Words and universal tags of a treebank, plain or packed.

    Of a multiword token ``1-2`` the words ``1`` and ``2`` count, as in the shared tasks; empty nodes are passed over.
    The trees are not returned, but a broken one shows a file that was cut or edited by hand: ids that do not count
    ``1, 2, 3, …``, ranges and empty nodes out of place, heads that are no word of the sentence, cycles, no root or
    several. Sentences whose heads are all ``_`` have no tree, which is no fault.

    Args:
        path: The treebank.
        fused: Put the form of a multiword token in the place of its words, as XTREME's part-of-speech sets have it
            (``--replace_subtokens_with_fused_forms``): *aux* is one word, not *à* and *les*. Its tag is that of the
            word nearest to the root, of several the one that comes first in :data:`HEAD_TAGS`.
        language: Chooses the order of tags in :data:`HEAD_TAGS`.
    Raises:
        ParallelTextError: For faulty lines and trees, all together with their line numbers, or if there is no sentence.
        FileNotFoundError: If there is no such file.
    """
    faults = FaultLog(can_skip=False, what="CoNLL-U")
    words: list[list[str]] = []
    tags: list[list[str]] = []
    for block in _sentences(path, faults):
        before = len(faults.faults)
        rows = list(_words(path, block, faults))
        if not rows and len(faults.faults) == before:
            faults.add(path, block[0][0], "broken id", "expected words, got a sentence without any")
        if len(faults.faults) == before:  # of misnumbered words no tree can be checked
            for number, detail in _tree_faults([(number, cells[6]) for number, cells in rows]):
                faults.add(path, number, "broken tree", detail)
        tagged = [(cells[1], cells[3]) for _, cells in rows]
        if fused and len(faults.faults) == before:
            tagged = list(_fused(path, block, rows, language, faults))
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


def _words(path: str | Path, block: Sequence[NumberedLine], faults: FaultLog) -> Iterator[NumberedLine]:
    """The lines that are words, once their ids and those between them are in order; tags and forms checked."""
    last = covered = 0  # the last word, and the last that a range covers
    empty = 0  # empty nodes since that word
    open_range = 0
    for number, cells in block:
        name, expected = cells[0], last + 1
        if _WORD.fullmatch(name):
            if int(name) != expected:
                faults.add(path, number, "broken id", f"expected word {expected}, got {name}")
            last, empty = int(name), 0
            if not cells[1].strip() or cells[3] not in UPOS:
                faults.add(
                    path, number, "bad word", f"expected a form and a universal tag, got {cells[1]!r} {cells[3]!r}"
                )
            yield number, cells
        elif found := _RANGE.fullmatch(name):
            start, end = int(found[1]), int(found[2])
            if start != expected or end <= start or start <= covered:
                faults.add(
                    path, number, "broken id", f"expected a range from {expected} on, apart from others, got {name}"
                )
            covered, open_range = max(covered, end), number
        elif found := _EMPTY_NODE.fullmatch(name):
            empty += 1
            if (int(found[1]), int(found[2])) != (last, empty):
                faults.add(path, number, "broken id", f"expected {last}.{empty} or word {expected}, got {name}")
        else:
            faults.add(path, number, "broken id", f"expected a word, 1-2 or 1.1, got {name!r}")
    if covered > last:
        faults.add(path, open_range, "broken id", f"expected word {covered}, the end of this range, got {last} words")


def _fused(
    path: str | Path, block: Sequence[NumberedLine], rows: Sequence[NumberedLine], language: str, faults: FaultLog
) -> Iterator[tuple[str, str]]:
    """Form and tag of each surface token; the tree is whole, or there is none."""
    order = HEAD_TAGS.get(language, HEAD_TAGS[""]).split()
    heads = [int(cells[6]) if cells[6] != "_" else 0 for _, cells in rows]

    def depth(word: int) -> int:
        head = heads[word - 1]
        return 0 if head == 0 else 1 + depth(head)

    def rank(word: int) -> tuple[int, int, int]:
        tag = rows[word - 1][1][3]
        return depth(word), order.index(tag) if tag in order else len(order), word

    covered = 0
    for number, cells in block:
        if found := _RANGE.fullmatch(cells[0]):
            covered = int(found[2])
            if not cells[1].strip():
                faults.add(path, number, "bad word", f"expected the form of {cells[0]}, got {cells[1]!r}")
            yield cells[1], rows[min(range(int(found[1]), covered + 1), key=rank) - 1][1][3]
        elif _WORD.fullmatch(cells[0]) and int(cells[0]) > covered:
            yield cells[1], cells[3]


def _tree_faults(heads: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What keeps the words of one sentence from being a tree.

    Args:
        heads: For word 1, 2, …: its line in the file, and its head as written: a word's number, 0 for the root. If all
            are ``_``, there is no tree and no fault.
    Yields:
        Line and detail; one for each cycle, at its first word.
    """
    if all(head == "_" for _, head in heads):
        return
    parents = []
    for line, head in heads:
        if not head.isascii() or not head.isdigit() or int(head) > len(heads):
            yield line, f"expected a head from 0 to {len(heads)}, got {head!r}"
        else:
            parents.append(int(head))
    if len(parents) < len(heads):
        return
    roots = [place for place, parent in enumerate(parents) if parent == 0]
    if len(roots) != 1:
        yield heads[roots[1] if roots else 0][0], f"expected one root, got {len(roots)}"
    # Every word is walked up from once; a walk that meets its own path has found a cycle.
    done = {0}
    for word in range(1, len(parents) + 1):
        path: list[int] = []
        while word not in done:
            done.add(word)
            path.append(word)
            word = parents[word - 1]
        if word in path:
            cycle = path[path.index(word) :]
            shown = " → ".join(map(str, [*cycle, word]))
            yield heads[min(cycle) - 1][0], f"expected a way to the root, got a cycle of heads {shown}"
