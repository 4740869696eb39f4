"""Leak check: does the training data hold the text that a model is judged by?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm.auto import tqdm

from st_xling.data.leak_report import LeakExample, LeakReport, SideLeak, signature

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

    from st_xling.data.leak_key import Hashes, Watchlist

Texts: TypeAlias = "Dataset | IterableDataset | tuple[Iterable[str], Iterable[str]] | Iterable[str]"
"""Pairs (a data set with ``source`` and ``target``, or two aligned lists), or sentences of one language."""

BATCH_ROWS = 10_000
_SIDES = {1: ("text",), 2: ("source", "target")}


def leaks(
    train: Mapping[str, Texts], evaluation: Mapping[str, Texts], *, examples: int = 3, progress: bool = False
) -> LeakReport:
    """Which sentences of the evaluation sets occur, on either side, in the training sets.

    Two texts are the same if :func:`~st_xling.data.leak_key.leak_key` says so: NFKC, case folded, letters, marks and
    numbers only. Near duplicates are not found. The evaluation sets' 64-bit hashes are held in memory, the training
    text is read once, in batches; some chance match has a probability of (training x evaluation texts) / 2^64.

    Args:
        train: Name → pairs or sentences.
        evaluation: Name → pairs or sentences. A pair counts as leaked when one training row has both its sides.
        examples: Shared texts kept for each side.
        progress: Show a bar on stderr, once it has taken two seconds.

    Returns:
        The figures, their signature, and the training rows in question.

    Raises:
        ValueError: No training or evaluation set, an empty one, or one that is neither pairs nor sentences.

    Example:
        >>> report = leaks({"de-en": (["Hallo!"], ["Hello!"])}, {"dev": ["HELLO", "Bye"]})
        >>> report.sets["dev"]["text"].leaked
        1
    """
    from st_xling.data.leak_key import NORMALISATION

    if not train or not evaluation:
        raise ValueError(
            f"a leak check needs training and evaluation sets: got {len(train)} and {len(evaluation)}; name at least "
            "one of each."
        )
    hashed, sha8 = _hash_all(evaluation)
    sentences, pairs = _watchlists(hashed)
    train_rows, leaked_rows, train_sha8 = _stream(train, sentences, pairs, progress)
    sets = {
        name: {side: _side(pairs if side == "pair" else sentences, hashes, examples) for side, hashes in sides.items()}
        for name, sides in hashed.items()
    }
    named = signature(train, train_sha8, evaluation, sha8, key=NORMALISATION)
    return LeakReport(sets, train_rows, leaked_rows, named)


def drop_leaks(train: Mapping[str, Any], report: LeakReport) -> dict[str, Any]:
    """The training data sets without the rows in question.

    Args:
        train: What the report was made of: name → ``Dataset`` or ``IterableDataset``.
        report: From :func:`leaks`.

    Raises:
        ValueError: Nothing of a data set would be left.
    """
    kept = {}
    for name, part in train.items():
        rows, leaked = report.train_rows[name], report.leaked_rows[name]
        if len(leaked) == rows:
            raise ValueError(
                f"every row of {name!r} has a side in the evaluation data: dropping leaks leaves nothing to train on; "
                "check that it is not the evaluation set itself, or leave it out."
            )
        out = set(leaked)
        if not out:
            kept[name] = part
        elif hasattr(part, "select"):
            kept[name] = part.select([row for row in range(rows) if row not in out])
        else:  # a stream
            kept[name] = part.filter(lambda _, row, out=out: row not in out, with_indices=True)
    return kept


def _hash_all(evaluation: Mapping[str, Texts]) -> tuple[dict[str, dict[str, Hashes]], str]:
    """The hashes of every side, and eight digits that change with any of them."""
    import numpy as np

    from st_xling.data.leak_key import pair_hashes, text_hashes

    hashed: dict[str, dict[str, Hashes]] = {}
    digest = hashlib.sha256()
    for name, texts in evaluation.items():
        batches = [[text_hashes(column) for column in batch] for batch in _batches(name, texts)]
        if not batches:
            raise ValueError(f"evaluation set {name!r} has no sentences; check its file, or leave it out.")
        columns = [np.concatenate(parts) for parts in zip(*batches)]
        for column in columns:
            digest.update(column.astype("<u8").tobytes())
        hashed[name] = dict(zip(_SIDES[len(columns)], columns))
        if len(columns) == 2:
            hashed[name]["pair"] = pair_hashes(*columns)
    return hashed, digest.hexdigest()[:8]


def _watchlists(hashed: dict[str, dict[str, Hashes]]) -> tuple[Watchlist, Watchlist]:
    """One list of sentences and one of pairs."""
    from st_xling.data.leak_key import Watchlist

    flat = [(side, hashes) for sides in hashed.values() for side, hashes in sides.items()]
    sentences = Watchlist([hashes for side, hashes in flat if side != "pair"])
    return sentences, Watchlist([hashes for side, hashes in flat if side == "pair"])


def _stream(
    train: Mapping[str, Texts], sentences: Watchlist, pairs: Watchlist, progress: bool
) -> tuple[dict[str, int], dict[str, Any], str]:
    """Read the training text once; rows, rows in question, and digest."""
    import numpy as np

    from st_xling.data.leak_key import pair_hashes, text_hashes

    digest = hashlib.sha256()
    train_rows, leaked_rows = {}, {}
    with tqdm(desc="leak check", unit=" rows", delay=2, leave=False, disable=not progress) as bar:
        for name, texts in train.items():
            rows, found = 0, []
            for batch in _batches(name, texts):
                hashes = [text_hashes(column) for column in batch]
                hit = np.zeros(len(batch[0]), bool)
                for column, values in zip(batch, hashes):
                    hit |= sentences.meet(name, rows + 1, values, column)
                    digest.update(values.astype("<u8").tobytes())
                if len(hashes) == 2:
                    pairs.meet(name, rows + 1, pair_hashes(*hashes), batch[0])
                found.append(np.flatnonzero(hit) + rows)
                rows += len(batch[0])
                bar.update(len(batch[0]))
            if rows == 0:
                raise ValueError(f"training set {name!r} has no sentences; check its file, or leave it out.")
            train_rows[name], leaked_rows[name] = rows, np.concatenate(found).tolist()
    return train_rows, leaked_rows, digest.hexdigest()[:8]


def _side(watched: Watchlist, hashes: Hashes, examples: int) -> SideLeak:
    import numpy as np

    places = watched.places(hashes)
    by_train = {name: int(met[places].sum()) for name, met in watched.met.items()}
    leaked = (
        np.any([met[places] for met in watched.met.values()], axis=0) if watched.met else np.zeros(len(places), bool)
    )
    first = list(dict.fromkeys(places[leaked].tolist()))[:examples]
    shown = tuple(LeakExample(text, train, row) for train, row, text in (watched.first[place] for place in first))
    return SideLeak(len(hashes), int(leaked.sum()), {name: count for name, count in by_train.items() if count}, shown)


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
