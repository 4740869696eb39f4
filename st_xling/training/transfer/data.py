"""``xx=FILE`` → the rows to train on and those of each language to evaluate; do all languages have the same labels?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any

from st_xling.data.classified_pairs import ClassifiedPairs
from st_xling.data.sample import Sample
from st_xling.data.spec import parse_spec
from st_xling.data.tagged_words import TaggedSentences
from st_xling.training.transfer.tasks import TASKS, Rows, TransferTask
from st_xling.utils.checks import require
from st_xling.utils.signature import sha8

UNSEEN_SHARE = 0.01
"""Words of a language whose tag may be missing from the training text; rare tags often are, whole treebanks are not."""


@dataclass(frozen=True)
class TransferData:
    """What one run trains on and is evaluated on.

    Attributes:
        task: Which it is for.
        train: Language → rows; usually English alone.
        test: Language → rows, in the order of the table.
        hold_out: Share of the rows of a parallel set that are tested on and kept out of training, or ``None``.
        hold_out_seed: By which they are chosen.
        unseen: Language → tag → words, of tags that are not trained.
        in_training: Language → test rows whose text is trained on, too.
        fused: Whether the words are surface tokens, fused forms as one, see
            :func:`~st_xling.data.tagged_words.read_conllu`.
    """

    task: TransferTask
    train: dict[str, Rows]
    test: dict[str, Rows]
    hold_out: float | None = None
    hold_out_seed: int = 0
    unseen: dict[str, dict[str, int]] = field(default_factory=dict)
    in_training: dict[str, int] = field(default_factory=dict)
    fused: bool = False

    def as_dict(self) -> dict[str, object]:
        """Sizes and hashes, for a run's manifest."""
        return {
            split: {language: {"rows": len(rows), "sha8": rows_sha8(rows)} for language, rows in parts.items()}
            for split, parts in (("train", self.train), ("test", self.test))
        }


def load_transfer_data(
    task: str,
    train: Sequence[str],
    test: Sequence[str],
    *,
    hold_out: float | None = None,
    hold_out_seed: int = 0,
    fused: bool = False,
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
        hold_out_seed: Chooses those rows; not the seed of training, so that runs of several seeds can be compared.
        fused: For ``pos``: the forms of multiword tokens in place of their words, as XTREME has them.
    Raises:
        ValueError: Bad specs or files, labels that differ between languages, files that are not parallel.
        FileNotFoundError: A missing file.
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}: got {task!r}.")
    kind = TASKS[task]
    if fused and task != "pos":
        raise ValueError(f"fused forms are of treebanks, for pos: got the task {task}; leave --fused out.")
    if kind.f1 == "spans":
        require("seqeval", "the F1 of entities", extra="transfer")  # not only after the training
    trained, tested = (_read(kind, specs, flag, fused) for specs, flag in ((train, "--train"), (test, "--test")))
    if hold_out is not None:
        held = _held_out(trained, tested, hold_out, hold_out_seed)
        trained = {language: _only(rows, lambda row: row not in held) for language, rows in trained.items()}
        tested = {language: _only(rows, lambda row: row in held) for language, rows in tested.items()}
    empty = [language for parts in (trained, tested) for language, rows in parts.items() if not len(rows)]
    if empty:
        raise ValueError(
            f"every language needs rows: none are left of {', '.join(empty)}; change --hold-out {hold_out}."
        )
    unseen = check_labels(kind, trained.values(), tested)
    seen = {text for rows in trained.values() for text in _texts(rows)}
    repeated = {language: sum(text in seen for text in _texts(rows)) for language, rows in tested.items()}
    return TransferData(kind, trained, tested, hold_out, hold_out_seed, unseen, repeated, fused)


def check_labels(task: TransferTask, train: Iterable[Rows], test: Mapping[str, Rows]) -> dict[str, dict[str, int]]:
    """Compare the labels of each language's test rows with those of the training rows.

    Classes of pairs must be the same everywhere. Tags may be absent from a language, and a tag that is never trained
    may have :data:`UNSEEN_SHARE` of a language's words, which then count as wrong.

    Returns:
        Language → tag → words, of tags that are not trained.
    Raises:
        ValueError: When they differ; all languages at once.
    """
    trained = {label for rows in train for row in label_rows(rows) for label in row}
    unseen: dict[str, dict[str, int]] = {}
    faults = []
    for language, rows in test.items():
        counts = Counter(label for row in label_rows(rows) for label in row)
        extra = {label: count for label, count in sorted(counts.items()) if label not in trained}
        missing = sorted(trained - set(counts)) if task.kind == "pairs" else []
        if missing or sum(extra.values()) > (UNSEEN_SHARE * counts.total() if task.kind == "words" else 0):
            more = [f"{label} ({count:,}), which is never trained" for label, count in extra.items()]
            more += [f"no {label}" for label in missing]
            faults.append(f"{language} has {', '.join(more)}")
        if extra:
            unseen[language] = extra
    if faults:
        raise ValueError(
            f"every language must have the labels that are trained, {', '.join(sorted(trained))}: {'; '.join(faults)}. "
            "Check that the files are of one data set and whole."
        )
    return unseen


def label_rows(rows: Rows) -> list[list[str]]:
    """Labels of each row, for pairs one each."""
    return rows.tags if isinstance(rows, TaggedSentences) else [[label] for label in rows.labels]


def rows_sha8(rows: Rows) -> str:
    """Changes with any text or label."""
    if isinstance(rows, ClassifiedPairs):
        return sha8([rows.first, rows.second, rows.labels])
    return sha8([rows.words, rows.tags])


def _read(task: TransferTask, specs: Sequence[str], flag: str, fused: bool) -> dict[str, Rows]:
    files: dict[str, dict[str, Sample]] = {}
    for spec in specs:
        parsed = parse_spec(spec, {}, languages=1, forms=f"{flag} xx=FILE, a language and its file")
        (language,), path, sample = parsed.languages, parsed.location, parsed.sample
        if path in files.setdefault(language, {}):
            raise ValueError(f"{flag} takes each file of a language once: got {path} twice for {language}.")
        files[language][path] = sample
    if not files:
        raise ValueError(f"{flag} needs a file: got none; give en=FILE.")
    parts: dict[str, list[Rows]] = {}
    for language, paths in files.items():
        options: dict[str, Any] = {"language": language} if task.kind == "pairs" or fused else {}
        options |= {"fused": True} if fused else {}
        for path, sample in paths.items():
            rows = task.read(path, **options)
            places = sample.places(len(rows), f"{language}={path}")
            parts.setdefault(language, []).append(rows if len(places) == len(rows) else rows.select(places))
    return {language: reduce(_join, several) for language, several in parts.items()}


def _join(first: Any, second: Any) -> Any:
    """The rows of one file behind those of another, numbered on."""
    columns = {each.name: getattr(first, each.name) + getattr(second, each.name) for each in fields(first)}
    return replace(first, **{**columns, "rows": first.rows + [first.total + row for row in second.rows]})


def _held_out(train: dict[str, Rows], test: dict[str, Rows], share: float, seed: int) -> set[int]:
    """Numbers of the rows to be tested on."""
    if not 0 < share < 1:
        raise ValueError(f"--hold-out must be a share above 0 and below 1: got {share}.")
    totals = {language: rows.total for parts in (train, test) for language, rows in parts.items()}
    if len(set(totals.values())) > 1:
        sizes = ", ".join(f"{language} {total:,}" for language, total in totals.items())
        raise ValueError(
            f"--hold-out needs files whose rows are the same items in every language: got {sizes} rows; leave it out "
            "and give files of a training and a test split."
        )
    # Rows that share their first sentence are drawn together; a row that was left out is a group of its own.
    rows = next(iter(train.values()))
    texts = dict(zip(rows.rows, rows.first)) if isinstance(rows, ClassifiedPairs) else {}
    groups: dict[object, set[int]] = {}
    for row in range(rows.total):
        groups.setdefault(texts.get(row, row), set()).add(row)
    order = list(groups.values())
    random.Random(seed).shuffle(order)
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
