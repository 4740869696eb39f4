"""Do all languages have the labels that are trained?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from st_xling.data.conllu import TaggedSentences
from st_xling.training.transfer.tasks import Rows, TransferTask

UNSEEN_SHARE = 0.01
"""Words of a language whose tag may be missing from the training text; rare tags often are, whole treebanks are not."""


def label_rows(rows: Rows) -> list[list[str]]:
    """Labels of each row, for pairs one each."""
    return rows.tags if isinstance(rows, TaggedSentences) else [[label] for label in rows.labels]


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
