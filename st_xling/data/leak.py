"""Leak check: does the training data hold the text that a model is evaluated by?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from st_xling._version import __version__
from st_xling.utils.console import progress_bar
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.text_columns import Hashes

Texts: TypeAlias = "Dataset | IterableDataset | tuple[Iterable[str], Iterable[str]] | Iterable[str]"
"""Pairs (a data set with ``source`` and ``target``, or two aligned lists), or sentences of one language."""

_Found: TypeAlias = "dict[str, dict[int, tuple[int, str]]]"
"""Training set → hash that an evaluation set has, too → the first row that holds it, from 1, and its text there."""

BATCH_ROWS = 10_000
SHOWN_EXAMPLES = 5
_SIDES = {1: ("text",), 2: ("source", "target")}


@dataclass(frozen=True)
class LeakExample:
    """A text that training and evaluation share.

    Attributes:
        text: As the training data spell it; of a pair, the source side.
        train: The training set that has it first.
        row: Its row there, counted from 1.
    """

    text: str
    train: str
    row: int


@dataclass(frozen=True)
class SideLeak:
    """Overlap of one side of an evaluation set with the training data.

    Attributes:
        rows: Sentences (or pairs) of the evaluation set, repetitions included.
        leaked: Of these, in the training data.
        train: The same by training set, for those that hold any; a sentence counts in each that holds it.
        examples: The first few.
    """

    rows: int
    leaked: int
    train: dict[str, int]
    examples: tuple[LeakExample, ...] = ()

    @property
    def share(self) -> float:
        """Leaked rows by all rows, in [0, 1]."""
        return self.leaked / self.rows

    def __str__(self) -> str:
        return f"{self.leaked:,} ({100 * self.share:.1f} %)"


@dataclass(frozen=True)
class LeakReport:
    """Texts that training and evaluation data share.

    Attributes:
        sets: Evaluation set → side (``"source"``, ``"target"`` and ``"pair"``, both sides in one training row; or
            ``"text"``) → how much of it.
        train_rows: Training set → its rows.
        leaked_rows: Training set → its rows, counted from 0, of which a side is in an evaluation set. Ascending.
        signature: What was compared, and how.
        dropped: The leaked rows were dropped from the training data.
    """

    sets: dict[str, dict[str, SideLeak]]
    train_rows: dict[str, int]
    leaked_rows: dict[str, Sequence[int]] = field(repr=False)
    signature: str
    dropped: bool = False

    @property
    def leaking(self) -> list[str]:
        """The evaluation sets of which the training data hold anything."""
        return [name for name, sides in self.sets.items() if any(side.leaked for side in sides.values())]

    def as_dropped(self) -> LeakReport:
        """The same, of training data that have been rid of the leaked rows."""
        return replace(self, dropped=True)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the list of rows, for JSON."""
        sets = {
            name: {kind: {**asdict(side), "share": round(side.share, 6)} for kind, side in sides.items()}
            for name, sides in self.sets.items()
        }
        train = {name: {"rows": rows, "leaked": len(self.leaked_rows[name])} for name, rows in self.train_rows.items()}
        return {"sets": sets, "train": train, "dropped": self.dropped, "signature": self.signature}

    def table(self) -> str:
        """One line for each evaluation set that leaks, examples, and what it means for the training rows."""
        leaking = self.leaking
        lines = [f"text in both training and evaluation data: {len(leaking)} of {len(self.sets)} evaluation sets"]
        if leaking:
            head = ("evaluation set", "rows", "source", "target", "both", "found in")
            lines.append(format_table(head, [_cells(name, self.sets[name]) for name in leaking]))
            first = [side.examples[0] for name in leaking for side in self.sets[name].values() if side.examples]
            shown = {(example.train, example.row): example for example in reversed(first)}
            lines += [
                f"  e.g. {example.train} row {example.row}: {example.text[:70]}"
                for example in [*reversed(shown.values())][:SHOWN_EXAMPLES]
            ]
        for name, rows in self.leaked_rows.items():
            if len(rows):
                done = "dropped" if self.dropped else "in question"
                lines.append(f"{name}: {len(rows):,} of {self.train_rows[name]:,} training rows {done}")
        return "\n".join([*lines, self.signature])


class LeakError(ValueError):
    """Training and evaluation data share text, and that was not to be; ``report`` has the numbers."""

    def __init__(self, message: str, report: LeakReport) -> None:
        super().__init__(message)
        self.report = report


def leaks(
    train: Mapping[str, Texts], evaluation: Mapping[str, Texts], *, examples: int = 3, progress: bool = False
) -> LeakReport:
    """Which sentences of the evaluation sets occur, on either side, in the training sets.

    Two texts are the same if their :func:`~st_xling.data.text_columns.leak_key` is: NFKC, case folded, letters, marks
    and numbers only. Near duplicates are not found. The evaluation sets' 64-bit hashes are held in memory, the training
    text is read once, in batches; some chance match has a probability of (training x evaluation texts) / 2^64.

    Args:
        train: Name → pairs or sentences.
        evaluation: Name → pairs or sentences. A pair counts as leaked when one training row has both its sides.
        examples: Shared texts kept for each side.
        progress: Show a bar on stderr, once it has taken two seconds.

    Returns:
        How much is shared, the signature of the check, and the training rows in question.

    Raises:
        ValueError: No training or evaluation set, an empty one, or one that is neither pairs nor sentences.

    Example:
        >>> report = leaks({"de-en": (["Hallo!"], ["Hello!"])}, {"dev": ["HELLO", "Bye"]})
        >>> report.sets["dev"]["text"].leaked
        1
    """
    import numpy as np

    from st_xling.data.text_columns import NORMALISATION, find_sorted, pair_hashes, text_hashes

    if not train or not evaluation:
        raise ValueError(
            f"a leak check needs training and evaluation sets: got {len(train)} and {len(evaluation)}; name at least "
            "one of each."
        )
    # Hashes of every side of the evaluation sets.
    hashed: dict[str, dict[str, Hashes]] = {}
    digest = hashlib.sha256()
    for name, texts in evaluation.items():
        batches = [[text_hashes(column) for column in batch] for batch in _batches(name, texts)]
        if not batches:
            raise ValueError(f"evaluation set {name!r} has no sentences; check its file, or leave it out.")
        whole = [np.concatenate(parts) for parts in zip(*batches)]
        for hashes in whole:
            digest.update(hashes.astype("<u8").tobytes())
        hashed[name] = dict(zip(_SIDES[len(whole)], whole))
        if len(whole) == 2:
            hashed[name]["pair"] = pair_hashes(*whole)
    data_sha8 = digest.hexdigest()[:8]
    listed: list[list[Hashes]] = [[np.empty(0, np.uint64)], [np.empty(0, np.uint64)]]
    for sides in hashed.values():
        for side, hashes in sides.items():
            listed[side == "pair"].append(hashes)
    sentences, pairs = (np.unique(np.concatenate(each)) for each in listed)

    # The training text, read once.
    digest = hashlib.sha256()
    train_rows: dict[str, int] = {}
    leaked_rows: dict[str, Sequence[int]] = {}
    found: tuple[_Found, _Found] = ({}, {})  # of sentences and of pairs
    with progress_bar(desc="leak check", unit="rows", delay=2, show=progress) as bar:
        for name, texts in train.items():
            rows, leaked = 0, []
            of_sentences, of_pairs = (kind.setdefault(name, {}) for kind in found)
            for batch in _batches(name, texts):
                columns = [text_hashes(column) for column in batch]
                hit = np.zeros(len(batch[0]), bool)
                for column, values in zip(batch, columns):
                    known = find_sorted(sentences, values)[1]
                    hit |= known
                    for row in np.flatnonzero(known).tolist():
                        of_sentences.setdefault(int(values[row]), (rows + row + 1, column[row]))
                    digest.update(values.astype("<u8").tobytes())
                if len(columns) == 2:
                    values = pair_hashes(*columns)
                    for row in np.flatnonzero(find_sorted(pairs, values)[1]).tolist():
                        of_pairs.setdefault(int(values[row]), (rows + row + 1, batch[0][row]))
                leaked.append(np.flatnonzero(hit) + rows)
                rows += len(batch[0])
                bar.update(len(batch[0]))
            if rows == 0:
                raise ValueError(f"training set {name!r} has no sentences; check its file, or leave it out.")
            train_rows[name], leaked_rows[name] = rows, np.concatenate(leaked).tolist()

    sets = {
        name: {kind: _side(found[kind == "pair"], side, examples) for kind, side in sides.items()}
        for name, sides in hashed.items()
    }
    signature = (
        f"leak|key:{NORMALISATION}|match:exact|train:{_names(train)}@{digest.hexdigest()[:8]}"
        f"|data:{_names(evaluation)}@{data_sha8}|st-xling:{__version__}"
    )
    return LeakReport(sets, train_rows, leaked_rows, signature)


def drop_leaks(train: Mapping[str, Any], report: LeakReport) -> dict[str, Any]:
    """The training data sets without the rows in question.

    Args:
        train: What the report was made of: name → ``Dataset`` or ``IterableDataset``.
        report: From :func:`leaks`.

    Raises:
        ValueError: Nothing of a data set would be left.
    """
    result = {}
    for name, part in train.items():
        rows, leaked = report.train_rows[name], set(report.leaked_rows[name])
        if len(leaked) == rows:
            raise ValueError(
                f"every row of {name!r} has a side in the evaluation data: dropping leaks leaves nothing to train on; "
                "check that it is not the evaluation set itself, or leave it out."
            )
        if leaked and hasattr(part, "select"):
            part = part.select([row for row in range(rows) if row not in leaked])
        elif leaked:  # a stream
            part = part.filter(lambda _, row, out=leaked: row not in out, with_indices=True)
        result[name] = part
    return result


def refuse_leaks(report: LeakReport) -> None:
    """Raise :class:`LeakError` if anything is shared."""
    if report.leaking:
        listed = ", ".join(report.leaking[:4]) + (", …" if len(report.leaking) > 4 else "")
        raise LeakError(
            f"training data must not hold evaluation text: {len(report.leaking)} of {len(report.sets)} evaluation sets "
            f"share some ({listed}); drop the training rows in question, or evaluate by other text.",
            report,
        )


def _side(found: _Found, hashes: Hashes, examples: int) -> SideLeak:
    import numpy as np

    by_train = {name: np.isin(hashes, np.fromiter(rows, np.uint64, len(rows))) for name, rows in found.items()}
    leaked = np.any([np.zeros(len(hashes), bool), *by_train.values()], axis=0)
    shown = []
    for key in list(dict.fromkeys(hashes[leaked].tolist()))[:examples]:
        train = next(name for name, rows in found.items() if key in rows)
        row, text = found[train][key]
        shown.append(LeakExample(text, train, row))
    counts = {name: int(hit.sum()) for name, hit in by_train.items() if hit.any()}
    return SideLeak(len(hashes), int(leaked.sum()), counts, tuple(shown))


def _batches(name: str, texts: Any) -> Iterator[list[list[str]]]:
    """Batches of one column of sentences, or of two aligned ones."""
    if isinstance(texts, str):
        raise ValueError(f"{name!r} must hold sentences: got one text; pass a list.")
    if hasattr(texts, "select_columns"):
        known = texts.column_names
        if known is not None and not {"source", "target"} <= set(known):
            raise ValueError(f"{name!r} has columns {', '.join(known)}; name them source and target.")
        for batch in texts.select_columns(["source", "target"]).iter(batch_size=BATCH_ROWS):
            yield [batch["source"], batch["target"]]
        return
    two = isinstance(texts, (tuple, list)) and len(texts) == 2 and not any(isinstance(side, str) for side in texts)
    columns = [iter(side) for side in texts] if two else [iter(texts)]
    while any(batch := [list(islice(column, BATCH_ROWS)) for column in columns]):
        if len(batch[0]) != len(batch[-1]):
            raise ValueError(f"{name!r} has sides of unequal length; align them line by line.")
        yield batch


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ",".join(listed) if len(listed) <= 4 else f"{listed[0]}+{len(listed) - 1}"


def _cells(name: str, sides: dict[str, SideLeak]) -> list[Any]:
    counts: Counter[str] = Counter()
    for kind, side in sides.items():
        counts.update(side.train if kind != "pair" else {})
    most = counts.most_common(3)
    listed = ", ".join(f"{train} {count:,}" for train, count in most) + (", …" if len(counts) > 3 else "")
    shown = [sides.get(kind) for kind in ("source", "target", "pair")]
    shown[0] = sides.get("text", shown[0])
    return [name, next(iter(sides.values())).rows, *shown, listed]
