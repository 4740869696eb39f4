"""Data sets of several languages as one: what the trainer reads, and what may be looked at before it does."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.data.balance import apportion, language_shares, pair_rows
from st_xling.data.pairs import head, stream_rows
from st_xling.data.stream_mixture import mix_streams, stream_shares
from st_xling.data.text_columns import MONO, column_batches
from st_xling.training.arguments import sampler_options
from st_xling.training.recipe import TrainingOptions

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

COLUMNS = ["source", "target", "source_language", "target_language"]
HEAD_ROWS = 50_000
"""Rows of each stream that are read before training, at most …"""
HEAD_ROWS_OF_ALL = 400_000
"""… and of all streams together."""


@dataclass(frozen=True)
class Mixture:
    """The training data of one run.

    Attributes:
        pairs: What the trainer reads.
        parts: Name → data set: all of it, or the first rows of a stream.
        looked_at: ``parts`` in one.
        rows: Rows that the batches of an epoch take; ``None``: a stream.
        shares: Language pair, or name of a stream → its share of the batches.
        manifest: Name → rows (of a stream: as estimated) and the fingerprint of its part.
    """

    pairs: Dataset | IterableDataset
    parts: dict[str, Dataset]
    looked_at: Dataset
    rows: int | None
    shares: dict[str, float]
    manifest: dict[str, dict[str, Any]]

    @property
    def streamed(self) -> bool:
        return self.rows is None


def prepare(data: Mapping[str, Dataset | IterableDataset], options: TrainingOptions, *, processes: int = 1) -> Mixture:
    """One data set of all, or one stream if any of them is a stream.

    Args:
        data: Name → data set with the four columns.
        options: Batches, balance, seed.
        processes: Processes that share a step.
    Raises:
        ValueError: As :func:`mix`; a stream, and no ``max_steps``.
    """
    if not any(is_stream(part) for part in data.values()):
        whole: dict[str, Any] = dict(data)
        pairs = mix(whole)
        counts = {"-".join(pair): len(rows) for pair, rows in pair_rows(pairs).items()}
        shares = _shares(counts, options)
        manifest = {name: {"rows": len(part), "sha8": fingerprint(part)} for name, part in whole.items()}
        rows = _rows_in_batches(counts, shares, options, options.batch_size * processes)
        return Mixture(pairs, whole, pairs, rows, shares, manifest)
    if options.max_steps <= 0:
        raise ValueError("a stream has no end that is known: got no max_steps; set training.max_steps / --max-steps.")
    streams = {name: as_stream(name, part) for name, part in data.items()}
    _check_columns(streams)
    parts = {name: head(part, min(HEAD_ROWS, HEAD_ROWS_OF_ALL // len(streams))) for name, part in streams.items()}
    chosen = sampler_options(options)
    mixed = mix_streams(
        streams,
        batch_rows=options.batch_size * processes,
        seed=options.seed,
        group_by_length=options.group_by_length,
        buffer_rows=options.shuffle_buffer,
        **chosen,
    )
    return Mixture(
        pairs=mixed,
        parts=parts,
        looked_at=mix(parts),
        rows=None,
        shares=stream_shares(streams, alpha=chosen["alpha"], temperature=chosen["temperature"]),
        manifest={name: {"rows": stream_rows(streams[name]), "sha8": fingerprint(parts[name])} for name in streams},
    )


def mix(data: Mapping[str, Dataset]) -> Dataset:
    """All data sets in one, with the columns that training reads.

    Raises:
        ValueError: No data set, an empty one, or one that lacks a column; fewer than 2 rows in all.
    """
    from datasets import concatenate_datasets

    if not data:
        raise ValueError("training needs at least one data set: got none.")
    _check_columns(data)
    for name, part in data.items():
        if len(part) == 0:
            raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")
    if (rows := sum(map(len, data.values()))) < 2:
        raise ValueError(f"training needs at least 2 pairs, each other's negatives: got {rows}; add data.")
    return concatenate_datasets([part.select_columns(COLUMNS) for part in data.values()])


def add_mono(mixture: Mixture, mono: Mapping[str, Dataset], *, seed: int = 0) -> Mixture:
    """The mixture with two contiguous sentences of one language beside each pair, for masked language modelling.

    Args:
        mixture: Of data sets, no stream.
        mono: Name → text of one language, in order, in the column ``source``; as ``read_others`` reads it.
        seed: Of the order in which its sentence pairs are laid beside the others: each once before any comes again.
    Raises:
        ValueError: A stream; text of a single sentence.
    Source:
        Hu et al. 2021 (AMBER), equations 2 and 6: MLM reads contiguous sentences of monolingual text.
    """
    if mixture.streamed:
        raise ValueError("monolingual text is laid beside data sets that are read whole: got a stream; leave one out.")
    lines: list[tuple[str, str]] = []
    for name, part in mono.items():
        texts = part["source"][:]
        if len(texts) < 2:
            raise ValueError(f"monolingual text {name!r} must have at least 2 sentences: got {len(texts)}.")
        lines += zip(texts[::2], texts[1::2])
    order = np.random.default_rng(seed).permutation(len(lines))
    beside = [lines[order[row % len(lines)]] for row in range(len(mixture.pairs))]
    pairs = mixture.pairs
    for column, texts in zip(MONO, zip(*beside)):
        pairs = pairs.add_column(column, list(texts))
    return dataclasses.replace(mixture, pairs=pairs)


def fingerprint(dataset: Dataset, columns: Sequence[str] = ("source", "target")) -> str:
    """Eight hexadecimal digits that change with any text of the data set or its order."""
    digest = hashlib.sha256()
    for column in columns:
        for texts in column_batches(dataset, column):
            digest.update("".join(f"{text}\n" for text in texts).encode("utf-8"))
    return digest.hexdigest()[:8]


def is_stream(dataset: Any) -> bool:
    """Whether it is a ``datasets.IterableDataset``, which has no length."""
    from datasets import IterableDataset

    return isinstance(dataset, IterableDataset)


def tell_mixture(mixture: Mixture, options: TrainingOptions) -> None:
    """Say on stderr what share of the batches each language has, and that only the start of a stream was looked at."""
    lines = []
    if len(mixture.shares) > 1:
        shown = ", ".join(f"{name} {100 * share:.1f} %" for name, share in mixture.shares.items())
        lines.append(f"share of the batches ({options.batches.replace('_', ' ')}): {shown}")
    if mixture.streamed:
        lines.append(
            f"streaming: vocabulary, lengths and languages are those of the first {len(mixture.looked_at):,} rows; "
            "tokens that come later only are left out of a target_vocabulary: auto"
        )
    for line in lines:
        tqdm.write(line, file=sys.stderr)


def _check_columns(data: Mapping[str, Any]) -> None:
    for name, part in data.items():
        found = part.column_names or []
        missing = [column for column in COLUMNS if column not in found]
        if missing:
            raise ValueError(f"data set {name!r} lacks {', '.join(missing)}: it has {', '.join(found)}.")


def as_stream(name: str, part: Any) -> IterableDataset:
    """A data set as a stream that knows how many rows it has; a stream as it is."""
    if is_stream(part):
        return part
    if len(part) == 0:
        raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")
    from datasets import Split, SplitDict, SplitInfo

    stream = part.to_iterable_dataset()
    stream._split, stream.info.splits = Split.TRAIN, SplitDict({"train": SplitInfo("train", num_examples=len(part))})
    return stream


def _shares(counts: dict[str, int], options: TrainingOptions) -> dict[str, float]:
    chosen = sampler_options(options)
    return dict(
        zip(
            counts,
            language_shares([*counts.values()], alpha=chosen["alpha"], temperature=chosen["temperature"]),
        )
    )


def _rows_in_batches(counts: dict[str, int], shares: dict[str, float], options: TrainingOptions, size: int) -> int:
    """Rows of an epoch; batches of one pair leave out what does not fill the last batch of each pair."""
    rows = sum(counts.values())
    if options.batches == "mixed" or rows < size:
        return rows
    return sum(max(1, quota // size) * size for quota in apportion(rows, [*shares.values()]) if quota)
