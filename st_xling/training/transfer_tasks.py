"""Tasks of zero-shot transfer: how each is read, fine-tuned and measured, and the rows of one run."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from st_xling.data.pairs import Sample
from st_xling.data.spec import parse_spec
from st_xling.data.transfer_sets import (
    PAWSX_LABELS,
    UPOS,
    XNLI_LABELS,
    ClassifiedPairs,
    TaggedSentences,
    read_conllu,
    read_pawsx,
    read_xnli,
)
from st_xling.utils.signature import sha8

Rows = ClassifiedPairs | TaggedSentences


@dataclass(frozen=True)
class FineTuning:
    """Options of fine-tuning.

    Attributes:
        epochs: Passes over the training rows; a ``max_steps`` other than -1 overrides it.
        batch_size: Rows a step.
        learning_rate: Peak, for AdamW.
        schedule: ``"constant"``, ``"linear"`` or ``"cosine"``: how the rate falls from its peak.
        warmup: Share of the steps, below 1, in which the rate rises to its peak.
        max_length: Tokens of a pair or a sentence, special tokens included; ``None``: 128, or as far as the encoder's
            positions reach.
        save_steps: Steps between checkpoints; 0: ten of them over the run.
        seed: Seed of the head's weights, dropout and the order of rows.

    Raises:
        ValueError: If there is nothing to train.
    """

    epochs: float
    batch_size: int
    learning_rate: float
    schedule: str = "constant"
    warmup: float = 0.0
    weight_decay: float = 0.0
    max_steps: int = -1
    max_length: int | None = None
    save_steps: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0: got {getattr(self, name)}.")


@dataclass(frozen=True)
class TransferTask:
    """One task.

    Attributes:
        name: Name on the command line.
        title: Title in tables.
        labels: All labels of the task, in the order of the head's outputs: of a pair of sentences, or of a word.
        read: Reads the rows of a file.
        measures: What is reported, the papers' measure first.
        options: The fine-tuning of the paper that reports the task.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    read: Callable[..., Rows]
    measures: tuple[str, ...]
    options: FineTuning


_AMBER = FineTuning(epochs=5, batch_size=32, learning_rate=2e-5)

LIKE: Mapping[str, Mapping[str, FineTuning]] = {
    # Table 9; the length, 128 tokens, is that of all tasks here.
    "dap": {"xnli": FineTuning(epochs=2, batch_size=256, learning_rate=5e-5, schedule="linear")},
    # Appendix A.1.
    "amber": {"xnli": _AMBER, "pawsx": _AMBER, "pos": dataclasses.replace(_AMBER, epochs=10)},
}
"""Paper → task → how it fine-tunes. *Source:* DAP (Li et al. 2023); AMBER (Hu et al. 2021)."""

_TASKS = (
    TransferTask("xnli", "XNLI", XNLI_LABELS, read_xnli, ("accuracy",), LIKE["dap"]["xnli"]),
    TransferTask("pawsx", "PAWS-X", PAWSX_LABELS, read_pawsx, ("accuracy",), LIKE["amber"]["pawsx"]),
    TransferTask("pos", "POS", UPOS, read_conllu, ("f1", "accuracy"), LIKE["amber"]["pos"]),
)
TASKS = {task.name: task for task in _TASKS}
"""Name → task.

Source:
    DAP (Li et al. 2023), tables 4 and 9; AMBER (Hu et al. 2021), section 3.2 and tables 5 to 7.
"""


def fine_tuning(task: str, like: str | None = None) -> FineTuning:
    """Return how a paper fine-tunes for a task; ``None``: the one that reports it, for XNLI DAP.

    Raises:
        ValueError: If the paper is not in :data:`LIKE`, or does not have the task.
    """
    if like is None:
        return TASKS[task].options
    if task not in LIKE.get(like, {}):
        known = "; ".join(f"{paper} for {', '.join(tasks)}" for paper, tasks in LIKE.items())
        raise ValueError(f"expected a paper's fine-tuning out of {known}: got {like} for {task}.")
    return LIKE[like][task]


@dataclass(frozen=True)
class TransferData:
    """Rows that one run trains on and is evaluated on.

    Attributes:
        task: The task.
        train: Language → rows; usually English alone.
        test: Language → rows, in the order of the table.
        hold_out: Share of the rows of a parallel set that are tested on and kept out of training, or ``None``.
        fused: Whether the words are surface tokens, see :func:`~st_xling.data.transfer_sets.read_conllu`.
        untrained: Language → tag → number of words with a tag that is never trained.
        in_training: Language → number of test rows whose text is trained on, too.
    """

    task: TransferTask
    train: dict[str, Rows]
    test: dict[str, Rows]
    hold_out: float | None = None
    fused: bool = False
    untrained: dict[str, dict[str, int]] = field(default_factory=dict)
    in_training: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return sizes and hashes, for a run's manifest."""
        return {
            split: {language: {"rows": len(rows), "sha8": rows_sha8(rows)} for language, rows in parts.items()}
            for split, parts in (("train", self.train), ("test", self.test))
        }


def load_transfer_data(
    task: str, train: Sequence[str], test: Sequence[str], *, hold_out: float | None = None, fused: bool = False
) -> TransferData:
    """Read the files of one task.

    Args:
        task: A name in :data:`TASKS`.
        train: ``en=FILE``, or several languages. Several files of a language are joined. ``?size=N&seed=S`` behind a
            file takes a seeded sample of its rows, in their order.
        test: ``xx=FILE`` for each language, likewise. A file with a column of languages may be named for several.
        hold_out: For sets that have one split only, whose row i is the same item in every language: this share of the
            rows is tested on in every language and kept out of training. Rows that share their first sentence in the
            training file stay together.
        fused: For ``pos``: the forms of multiword tokens in place of their words, as XTREME has them.
    Raises:
        ValueError: Bad specs or files, a class that is never trained, files that are not parallel.
        FileNotFoundError: A missing file.
    """
    kind = TASKS[task]
    if fused and task != "pos":
        raise ValueError(f"fused forms are of treebanks, for pos: got the task {task}; remove --fused.")
    trained, tested = (_read(kind, specs, flag, fused) for specs, flag in ((train, "--train"), (test, "--test")))
    if hold_out is not None:
        held = _held_out(trained, tested, hold_out)
        trained = {language: _only(rows, lambda row: row not in held) for language, rows in trained.items()}
        tested = {language: _only(rows, lambda row: row in held) for language, rows in tested.items()}
    if empty := [language for parts in (trained, tested) for language, rows in parts.items() if not len(rows)]:
        raise ValueError(f"every language needs rows: none are left of {', '.join(empty)}; change --hold-out.")
    untrained = find_untrained(trained.values(), tested)
    if untrained and task != "pos":
        raise ValueError(f"every class must be trained: {untrained} are not; check that the files are of one data set.")
    seen = {text for rows in trained.values() for text in _texts(rows)}
    repeated = {language: sum(text in seen for text in _texts(rows)) for language, rows in tested.items()}
    return TransferData(kind, trained, tested, hold_out, fused, untrained, repeated)


def find_untrained(train: Iterable[Rows], test: Mapping[str, Rows]) -> dict[str, dict[str, int]]:
    """Count, by language, the labels of test rows that no training row has."""
    trained = {label for rows in train for row in label_rows(rows) for label in row}
    counts = {language: Counter(label for row in label_rows(rows) for label in row) for language, rows in test.items()}
    untrained = {
        language: {label: number for label, number in sorted(found.items()) if label not in trained}
        for language, found in counts.items()
    }
    return {language: labels for language, labels in untrained.items() if labels}


def label_rows(rows: Rows) -> list[list[str]]:
    """Return the labels of each row, one of a pair."""
    return rows.tags if isinstance(rows, TaggedSentences) else [[label] for label in rows.labels]


def rows_sha8(rows: Rows) -> str:
    """Return a hash that changes with any text or label."""
    if isinstance(rows, ClassifiedPairs):
        return sha8([rows.first, rows.second, rows.labels])
    return sha8([rows.words, rows.tags])


def run_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """F1 of runs of equal tags: a run counts if its ends and its tag are all right.

    This is what ``seqeval`` makes of tags without ``B-`` and ``I-``, by which XTREME evaluates part-of-speech tags and
    so AMBER's table 6: it falls below accuracy, since one wrong word breaks a run. A tag that begins with ``S``
    (``SCONJ``, ``SYM``) is a run of its own each time, because ``seqeval`` takes the letter for "single".

    Source:
        Hu et al. 2020 (XTREME), ``third_party/run_tag.py``; seqeval 0.0.12, ``get_entities``.
    Example:
        >>> run_f1([["DET", "NOUN", "NOUN", "VERB"]], [["DET", "NOUN", "VERB", "VERB"]])
        0.3333333333333333
    """
    true, guessed = _runs(gold), _runs(predicted)
    both = len(true & guessed)
    return 2 * both / (len(true) + len(guessed)) if both else 0.0


def _runs(rows: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
    """Row, first and last word, and tag of every run."""
    runs = set()
    for row, tags in enumerate(rows):
        start = 0
        for place, tag in enumerate(tags):
            if place + 1 == len(tags) or tags[place + 1] != tag or tag.startswith("S"):
                runs.add((row, start, place, tag))
                start = place + 1
    return runs


def _read(task: TransferTask, specs: Sequence[str], flag: str, fused: bool) -> dict[str, Rows]:
    files: dict[str, dict[str, Sample]] = {}
    for spec in specs:
        parsed = parse_spec(spec, {}, languages=1, forms=f"{flag} xx=FILE, a language and its file")
        files.setdefault(parsed.languages[0], {})[parsed.location] = parsed.sample
    if not files:
        raise ValueError(f"{flag} needs a file: got none; give en=FILE.")
    parts: dict[str, list[Rows]] = {}
    for language, paths in files.items():
        options: dict[str, Any] = {"fused": fused} if task.name == "pos" else {}
        for path, sample in paths.items():
            rows = task.read(path, language=language, **options)
            parts.setdefault(language, []).append(rows.select(sample.places(len(rows), f"{language}={path}")))
    return {language: reduce(_join, several) for language, several in parts.items()}


def _join(first: Any, second: Any) -> Any:
    """Put the rows of one file behind those of another, numbered on."""
    columns = {each.name: getattr(first, each.name) + getattr(second, each.name) for each in fields(first)}
    return replace(first, **{**columns, "rows": first.rows + [first.total + row for row in second.rows]})


def _held_out(train: dict[str, Rows], test: dict[str, Rows], share: float) -> set[int]:
    """Draw the numbers of the rows to be tested on."""
    if not 0 < share < 1:
        raise ValueError(f"--hold-out must be a share above 0 and below 1: got {share}.")
    totals = {language: rows.total for parts in (train, test) for language, rows in parts.items()}
    if len(set(totals.values())) > 1:
        raise ValueError(f"--hold-out needs files whose rows are the same items in every language: got {totals} rows.")
    # Rows that share their first sentence are drawn together; a row that was skipped is a group of its own.
    rows = next(iter(train.values()))
    texts = dict(zip(rows.rows, rows.first)) if isinstance(rows, ClassifiedPairs) else {}
    groups: dict[object, set[int]] = {}
    for row in range(rows.total):
        groups.setdefault(texts.get(row, row), set()).add(row)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    held: set[int] = set()
    for group in order:
        if len(held) >= share * rows.total:
            break
        held |= group
    return held


def _texts(rows: Rows) -> list[tuple[str, ...]]:
    if isinstance(rows, ClassifiedPairs):
        return list(zip(rows.first, rows.second))
    return [tuple(words) for words in rows.words]


def _only(rows: Rows, wanted: Callable[[int], bool]) -> Rows:
    return rows.select(place for place, row in enumerate(rows.rows) if wanted(row))
