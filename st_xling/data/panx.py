"""PAN-X (WikiAnn): words and the entities that they belong to."""

from __future__ import annotations

import re
from pathlib import Path

from st_xling.data.conllu import TaggedSentences
from st_xling.data.faults import FaultLog, numbered_lines

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
