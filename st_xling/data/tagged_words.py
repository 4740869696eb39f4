"""Tagged words: CoNLL-U, the format of Universal Dependencies, trees checked; PAN-X (WikiAnn), words and entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from st_xling.data.check import FaultLog, iter_lines, numbered_lines

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
_EMPTY_NODE = re.compile(r"(?:0|[1-9][0-9]*)\.[1-9][0-9]*")

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
    ``1, 2, 3, …``, ranges out of place, heads that are no word of the sentence, cycles, no root or several. Sentences
    whose heads are all ``_`` have no tree, which is no fault.

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
        # Of misnumbered words no tree can be checked.
        if len(faults.faults) == before and (fault := _tree_fault([cells[6] for _, cells in rows])):
            faults.add(path, rows[fault[0]][0], "broken tree", fault[1])
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
    """The lines that are words, once their ids and those of ranges are in order; tags and forms checked."""
    last = covered = 0  # the last word, and the last that a range covers
    for number, cells in block:
        name = cells[0]
        if _WORD.fullmatch(name):
            if int(name) != last + 1:
                faults.add(path, number, "broken id", f"expected word {last + 1}, got {name}")
            if not cells[1].strip() or cells[3] not in UPOS:
                got = f"{cells[1]!r} {cells[3]!r}"
                faults.add(path, number, "bad word", f"expected a form and a universal tag, got {got}")
            last = int(name)
            yield number, cells
        elif found := _RANGE.fullmatch(name):
            start, end = int(found[1]), int(found[2])
            if start != last + 1 or end <= start or start <= covered:
                expected = f"a range from {last + 1} on, apart from others"
                faults.add(path, number, "broken id", f"expected {expected}, got {name}")
            covered = max(covered, end)
        elif not _EMPTY_NODE.fullmatch(name):
            faults.add(path, number, "broken id", f"expected a word, 1-2 or 1.1, got {name!r}")
    if covered > last or not last:
        detail = f"expected word {covered}, the end of a range" if last else "expected words"
        faults.add(path, block[0][0], "broken id", f"{detail}, got {last}")


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


def _tree_fault(heads: Sequence[str]) -> tuple[int, str] | None:
    """Which word keeps a sentence from being a tree, counted from 0, and why; if all heads are ``_``, none does."""
    if set(heads) == {"_"}:
        return None
    for place, head in enumerate(heads):
        if not (head.isascii() and head.isdigit() and int(head) <= len(heads)):
            return place, f"expected a head from 0 to {len(heads)}, got {head!r}"
    parents = [0, *map(int, heads)]
    roots = [place for place, parent in enumerate(parents[1:]) if parent == 0]
    if len(roots) != 1:
        return (roots or [0, 0])[-1], f"expected one root, got {len(roots)}"
    # As many steps up as there are words lead to the root from anywhere but a cycle.
    reached = list(range(len(parents)))
    for _ in heads:
        reached = [parents[word] for word in reached]
    lost = next((word for word, end in enumerate(reached) if end), None)
    return None if lost is None else (lost - 1, f"expected a way to the root, got a cycle of heads above word {lost}")


PANX_LABELS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")

_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?:")


def read_panx(path: str | Path) -> TaggedSentences:
    """Words and entity tags of one language, plain or packed.

    Lines are ``word TAB tag``, sentences are divided by empty lines. The release's own files put the language before
    every word (``de:Berlin``); where all words of a file begin with one and the same code, it is taken off. Between
    word and tag the release may have further columns, which are not read.

    Args:
        path: ``train``, ``dev`` or ``test`` of the release or ``train.tsv`` of XTREME's.
    Raises:
        ParallelTextError: For faulty lines, all together, or if there is no sentence.
        FileNotFoundError: If there is no such file.
    Source:
        Pan et al. 2017; the split of Rahimi et al. 2019, as XTREME (Hu et al. 2020) has it.
    """
    faults = FaultLog(can_skip=False, what="PAN-X")
    sentences: list[list[tuple[str, str]]] = [[]]
    for number, line in numbered_lines(path, faults):
        if not line.strip():
            sentences.append([])
        else:
            word, *others = line.split("\t")
            if not others or others[-1].strip() not in PANX_LABELS:
                got = others[-1] if others else "one column"
                faults.add(
                    path, number, "bad word", f"expected word TAB tag out of {', '.join(PANX_LABELS)}, got {got!r}"
                )
            else:
                sentences[-1].append((word, others[-1].strip()))
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected sentences")
    faults.finalize()
    match = _PREFIX.match(sentences[0][0][0])
    prefix = match[0] if match else ""
    if not all(word.startswith(prefix) for sentence in sentences for word, _ in sentence):
        prefix = ""
    return TaggedSentences(
        [[word.removeprefix(prefix) for word, _ in sentence] for sentence in sentences],
        [[tag for _, tag in sentence] for sentence in sentences],
        list(range(len(sentences))),
        len(sentences),
    )
