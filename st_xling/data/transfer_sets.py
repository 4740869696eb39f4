"""Labeled sets for transfer: sentence pairs with a class (XNLI, PAWS-X) and tagged words (treebanks)."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from st_xling.data.check import FaultLog, iter_lines
from st_xling.data.formats import named_cells
from st_xling.utils.languages import canonical_language

XNLI_LABELS = ("entailment", "neutral", "contradiction")
PAWSX_LABELS = ("0", "1")
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
)  # fmt: skip
"""The universal tags, in alphabetical order. *Source:* universaldependencies.org/u/pos."""

# Label in the file → class. The machine-translated training sets of XNLI 1.0 spell contradiction otherwise; "-" means
# that annotators had no majority, and is missing from every published figure.
_CLASSES: dict[str, dict[str, str | None]] = {
    "XNLI": {
        "entailment": "entailment",
        "neutral": "neutral",
        "contradiction": "contradiction",
        "contradictory": "contradiction",
        "-": None,
    },
    "PAWS-X": {"0": "0", "1": "1"},
}

_COLUMNS = (
    ("sentence1", "premise"),
    ("sentence2", "hypothesis", "hypo"),
    ("gold_label", "label"),
    ("language", "lang"),
)
"""Names of the columns: first sentence, second sentence, label and, where there is one, language."""

_UNTRANSLATED = "NS"
"""Sentence of PAWS-X that was never translated."""

_CONLLU_COLUMNS = 10
_TAGGED_COLUMNS = 2


class Example(NamedTuple):
    """One labeled row.

    Attributes:
        texts: The two sentences of a pair, or the words of a sentence.
        labels: The class of the pair, or a tag for each word.
    """

    texts: list[str]
    labels: list[str]


Rows = list[Example | None]
"""Rows of one language in the order of their file; ``None`` for those that are skipped, so that equal positions are the
same item in every language of a parallel set."""


def read_pairs(path: str | Path, data: Literal["XNLI", "PAWS-X"], *, language: str | None = None) -> Rows:
    """Read pairs of sentences with their class.

    Reads what is published as ``xnli.test.tsv``, ``xnli.test.jsonl``, ``multinli_1.0_train.txt`` or ``.jsonl``,
    ``multinli.train.en.tsv``, ``test_2k.tsv`` and ``translated_train.tsv`` (a header or keys name the columns
    ``gold_label`` or ``label``, ``sentence1`` and ``sentence2`` or ``premise`` and ``hypo``), and lines of ``sentence
    TAB sentence TAB label``, as XTREME has them; plain or packed. A quote is text. Rows labeled ``-`` and rows with a
    sentence ``NS`` are skipped.

    Args:
        path: The file; JSON lines if its name ends in ``.jsonl`` or ``.json``.
        data: Data set.
        language: Rows to take where a column ``language`` tells them apart; ``None``: all.

    Raises:
        ParallelTextError: For faulty rows, all together, or if no pair is left.
        FileNotFoundError: If there is no such file.
    """
    classes = _CLASSES[data]
    faults = FaultLog(can_skip=False, what=data)
    rows: Rows = []
    other_languages = set()
    for number, (first, second, label, code) in named_cells(path, _COLUMNS, 3, faults, any_header=True):
        if language is not None and code and canonical_language(str(code)) != canonical_language(language):
            other_languages.add(str(code))
            continue
        spelling = str(label).strip() if isinstance(label, (str, int)) else ""
        if spelling not in classes:
            faults.add(path, number, "unknown label", f"expected one of {', '.join(classes)}, got {label!r}")
        elif not all(isinstance(text, str) and text.strip() for text in (first, second)):
            faults.add(path, number, "empty side", "expected two sentences")
        else:
            pair_class = classes[spelling]
            if pair_class is None or _UNTRANSLATED in (first.strip(), second.strip()):
                rows.append(None)
            else:
                rows.append(Example([first, second], [pair_class]))
    if not any(rows) and not faults.faults:
        expected = "expected labeled pairs"
        if other_languages:
            expected += f" in {language!r}; the file has {', '.join(sorted(other_languages))}"
        faults.add_beyond_repair(path, "no rows", expected)
    faults.finalize()
    return rows


def read_tagged(path: str | Path) -> Rows:
    """Read words and their universal tags, plain or packed.

    Reads treebanks (CoNLL-U), and lines of ``word TAB tag`` with an empty one after each sentence, as XTREME has them.
    Of a multiword token ``1-2`` of a treebank the words ``1`` and ``2`` count, as in the shared tasks; empty nodes are
    skipped. XTREME's words are the surface tokens: *aux*, not *à* and *les*.

    Args:
        path: The file.

    Raises:
        ParallelTextError: For faulty lines, all together with their line numbers, or if there is no sentence.
        FileNotFoundError: If there is no such file.
    """
    faults = FaultLog(can_skip=False, what="CoNLL-U")
    rows: Rows = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate(chain(iter_lines(path, faults), [""]), 1):
        if line is None:
            continue
        if not line.strip():
            if words:
                rows.append(Example(words, tags))
            words = []
            tags = []
            continue
        cells = line.split("\t")
        # A comment of a treebank; "#" and a tag are a tagged word.
        if line.startswith("#") and (len(cells) != _TAGGED_COLUMNS or line.startswith("# ")):
            continue
        if len(cells) == _CONLLU_COLUMNS:
            word_id, form, _, tag = cells[:4]
            if "-" in word_id or "." in word_id:
                continue
        elif len(cells) == _TAGGED_COLUMNS:
            form, tag = cells
        else:
            faults.add(path, number, "bad column count", f"expected {_CONLLU_COLUMNS} or 2, got {len(cells)}")
            continue
        if not form.strip() or tag not in UPOS:
            faults.add(path, number, "bad word", f"expected a form and a universal tag, got {form!r} {tag!r}")
        words.append(form)
        tags.append(tag)
    if not rows and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected sentences")
    faults.finalize()
    return rows
