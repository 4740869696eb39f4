"""Labeled sets for transfer: sentence pairs with a class (XNLI, PAWS-X) and tagged words (CoNLL-U)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from st_xling.data.check import FaultLog, iter_lines
from st_xling.data.formats import named_cells
from st_xling.utils.languages import canonical_language

XNLI_LABELS = ("entailment", "neutral", "contradiction")
PAWSX_LABELS = ("0", "1")

_COLUMNS = (
    ("sentence1", "premise"),
    ("sentence2", "hypothesis", "hypo"),
    ("gold_label", "label"),
    ("language", "lang"),
)
"""Names of the columns: first sentence, second sentence, label and, where there is one, language."""

# The machine-translated training sets of XNLI 1.0 spell contradiction otherwise; "-" means that annotators had no
# majority, and is missing from every published figure.
_XNLI: dict[str, str | None] = {
    **{label: label for label in XNLI_LABELS},
    "contradictory": "contradiction",
    "-": None,
}


@dataclass(frozen=True)
class ClassifiedPairs:
    """Pairs of one language in the order of their file.

    Attributes:
        first: Premise or first sentence of each pair.
        second: Hypothesis or second sentence, row-aligned.
        labels: Name of each pair's class, row-aligned.
        rows: Each pair's row among the language's in the file, counted from 0; skipped rows leave gaps, so that equal
            numbers mean the same item in every language of a parallel set.
        total: The language's rows in the file, including skipped ones.
    """

    first: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    total: int = 0

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, places: Iterable[int]) -> ClassifiedPairs:
        """Return the pairs at ``places``."""
        chosen = list(places)
        first, second, labels = (
            [column[place] for place in chosen] for column in (self.first, self.second, self.labels)
        )
        return ClassifiedPairs(first, second, labels, [self.rows[place] for place in chosen], self.total)


def read_xnli(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Read pairs of premise and hypothesis of one language: is the second entailed, contradicted, or neither?

    Reads what is published as ``xnli.test.tsv``, ``xnli.test.jsonl``, ``multinli_1.0_train.txt`` or ``.jsonl`` and
    ``multinli.train.en.tsv`` (a header or keys name the columns ``gold_label`` or ``label``, ``sentence1`` and
    ``sentence2`` or ``premise`` and ``hypo``), and lines of ``premise TAB hypothesis TAB label``, as XTREME has them;
    plain or packed. A quote is text. Rows labeled ``-`` are skipped.

    Args:
        path: The file; JSON lines if its name ends in ``.jsonl`` or ``.json``.
        language: Rows to take where a column ``language`` tells them apart; ``None``: all.
    Returns:
        Labels ``entailment``, ``neutral`` and ``contradiction``.
    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    return _read(path, "XNLI", _XNLI, None, language)


def read_pawsx(path: str | Path, *, language: str | None = None) -> ClassifiedPairs:
    """Read pairs of sentences of one language: does the second mean the same as the first?

    Reads what is published (``test_2k.tsv``, ``translated_train.tsv``: columns ``id``, ``sentence1``, ``sentence2``,
    ``label``), the same as JSON lines, and lines of ``sentence TAB sentence TAB label``, as XTREME has them; plain or
    packed. A quote is text. A sentence ``NS`` was never translated: its row is skipped.

    Args, Raises: as :func:`read_xnli`.
    Returns:
        Labels ``1``, a paraphrase, and ``0``, none.
    """
    return _read(path, "PAWS-X", {label: label for label in PAWSX_LABELS}, "NS", language)


def _read(
    path: str | Path, name: str, known: Mapping[str, str | None], untranslated: str | None, language: str | None
) -> ClassifiedPairs:
    """Read the pairs of a file.

    Args:
        path: The file.
        name: Of the data set, for messages.
        known: Label in the file → name of the class; ``None``: such a row is skipped.
        untranslated: A sentence that marks a row to skip.
        language: Of the rows to take from a file that has a column of languages.
    """
    faults = FaultLog(can_skip=False, what=name)
    rows: list[tuple[str, str, str, int]] = []
    others, total = set(), 0
    for number, (first, second, label, code) in named_cells(path, _COLUMNS, 3, faults, any_header=True):
        if language is not None and code and canonical_language(str(code)) != canonical_language(language):
            others.add(str(code))
            continue
        row, total = total, total + 1
        spelling = str(label).strip() if isinstance(label, (str, int)) else ""
        if spelling not in known:
            faults.add(path, number, "unknown label", f"expected one of {', '.join(known)}, got {label!r}")
        elif not all(isinstance(text, str) and text.strip() for text in (first, second)):
            faults.add(path, number, "empty side", "expected two sentences")
        elif known[spelling] is not None and untranslated not in (first.strip(), second.strip()):
            rows.append((first, second, str(known[spelling]), row))
    if not rows and not faults.faults:
        there = f" in {language!r}; the file has {', '.join(sorted(others))}" if others else ""
        faults.add_beyond_repair(path, "no rows", f"expected labeled pairs{there}")
    faults.finalize()
    firsts, seconds, labels, numbers = map(list, zip(*rows))
    return ClassifiedPairs(firsts, seconds, labels, numbers, total)


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
"""Language → order in which a fused form takes the tag of one of its words, if several are equally near to the root.

*Source:* ud-conversion-tools.
"""

_CONLLU_COLUMNS = 10
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
        """Return the sentences at ``places``."""
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
    for block in _tree_blocks(path, faults):
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


def _tree_blocks(path: str | Path, faults: FaultLog) -> Iterator[list[NumberedLine]]:
    block: list[NumberedLine] = []
    for number, line in enumerate(chain(iter_lines(path, faults), [""]), 1):
        if line is not None and not line.strip():
            if block:
                yield block
            block = []
        elif line is not None and not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) == _CONLLU_COLUMNS:
                block.append((number, cells))
            else:
                faults.add(path, number, "bad column count", f"expected {_CONLLU_COLUMNS}, got {len(cells)}")


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
