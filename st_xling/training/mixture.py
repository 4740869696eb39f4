"""Data sets of several languages as one: what the trainer reads, and what can be said of its text beforehand."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Dataset, IterableDataset, SplitDict, SplitInfo, concatenate_datasets
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.training_args import MultiDatasetBatchSamplers
from tokenizers import Tokenizer

from st_xling.data.batches import apportion, language_shares
from st_xling.data.columns import negative_columns
from st_xling.data.pairs import COLUMNS, head, pair_rows, stream_rows
from st_xling.data.samplers import BUFFER_ROWS, mix_streams, stream_shares
from st_xling.data.text_cells import MONO, column_batches, column_texts
from st_xling.models.token_rows import check_ids, embedding_rows
from st_xling.training.arguments import total_steps
from st_xling.training.options import EncoderArguments
from st_xling.utils.terminal import progress_bar

logger = logging.getLogger(__name__)

BATCH_TEXTS = 10_000
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

    def log(self, batches: str) -> None:
        """Log what share of the batches each language has, and that only the start of a stream was looked at.

        Args:
            batches: As in the training arguments: ``"mixed"`` or ``"one_pair"``.
        """
        if len(self.shares) > 1:
            shown = ", ".join(f"{name} {100 * share:.1f} %" for name, share in self.shares.items())
            logger.info("share of the batches (%s): %s", batches.replace("_", " "), shown)
        if self.streamed:
            logger.info(
                f"streaming: vocabulary, lengths and languages are those of the first {len(self.looked_at):,} rows; "
                "tokens that come later only are missing from a target_vocabulary: auto"
            )


def prepare(
    data: Mapping[str, Dataset | IterableDataset],
    arguments: EncoderArguments,
    *,
    shuffle_buffer: int = BUFFER_ROWS,
    processes: int = 1,
    negatives: bool = False,
) -> Mixture:
    """One data set of all, or one stream if any of them is a stream.

    Args:
        data: Name → data set with the four columns.
        arguments: Batches, balance, seed.
        shuffle_buffer: Rows of a stream that are shuffled together.
        processes: Processes that share a step.
        negatives: Whether an objective reads hard negatives: columns of these that every data set has are kept.

    Raises:
        ValueError: As :func:`mix`; a stream, and no ``max_steps``.
    """
    negative_names = _shared_negatives(data, negatives)
    datasets = {name: dataset for name, dataset in data.items() if isinstance(dataset, Dataset)}
    # One stream makes all of them streams: their batches are mixed by the same sampler.
    if len(datasets) == len(data):
        return _prepare_datasets(datasets, arguments, negative_names, processes=processes)
    return _prepare_streams(data, arguments, negative_names, shuffle_buffer=shuffle_buffer, processes=processes)


def _prepare_datasets(
    data: dict[str, Dataset], arguments: EncoderArguments, negative_names: Sequence[str], *, processes: int
) -> Mixture:
    """Join data sets, with their columns of hard negatives."""
    pairs = mix(data, negative_names)
    counts = {"-".join(pair): len(rows) for pair, rows in pair_rows(pairs).items()}
    shares = language_shares(list(counts.values()), alpha=arguments.language_alpha)
    return Mixture(
        pairs=pairs,
        parts=data,
        looked_at=pairs,
        rows=epoch_rows(pairs, arguments, processes=processes),
        shares=dict(zip(counts, shares)),
        manifest=describe(data, ("source", "target", *negative_names)),
    )


def _prepare_streams(
    data: Mapping[str, Dataset | IterableDataset],
    arguments: EncoderArguments,
    negative_names: Sequence[str],
    *,
    shuffle_buffer: int,
    processes: int,
) -> Mixture:
    """Mix streams, of which the first rows are looked at beforehand."""
    total_steps(arguments, rows=None)  # or an error: a stream needs max_steps
    streams = {name: as_stream(name, dataset) for name, dataset in data.items()}
    head_rows = min(HEAD_ROWS, HEAD_ROWS_OF_ALL // len(streams))
    heads = {name: head(stream, head_rows) for name, stream in streams.items()}
    pairs = mix_endless(
        streams,
        arguments,
        shuffle_buffer=shuffle_buffer,
        processes=processes,
        negative_names=negative_names,
    )
    shares = stream_shares(streams, alpha=arguments.language_alpha)
    manifest: dict[str, dict[str, Any]] = {}
    for name, stream in streams.items():
        manifest[name] = {"rows": stream_rows(stream), "sha8": fingerprint(heads[name])}
    looked_at = mix(heads, negative_names)
    return Mixture(pairs=pairs, parts=heads, looked_at=looked_at, rows=None, shares=shares, manifest=manifest)


def epoch_rows(data: Any, arguments: Any, *, processes: int | None = None) -> int | None:
    """Return the rows that the batches of an epoch take.

    Args:
        data: A data set, or name → data set.
        arguments: Training arguments. With batches of one pair, what does not fill the last batch of a pair is left
            out.
        processes: Processes that share a step; ``None``: those of the arguments.

    Returns:
        ``None`` for a stream, and without data.
    """
    datasets = list(data.values()) if isinstance(data, dict) else [data]
    if not all(hasattr(dataset, "__len__") for dataset in datasets):
        return None
    sizes = [len(dataset) for dataset in datasets]
    if getattr(arguments, "multi_dataset_batch_sampler", None) == MultiDatasetBatchSamplers.ROUND_ROBIN:
        rows = min(sizes) * len(sizes)  # an epoch ends with the smallest data set
    else:
        rows = sum(sizes)
    if processes is None:
        processes = arguments.world_size
    batch_rows = arguments.per_device_train_batch_size * processes
    if not isinstance(arguments, EncoderArguments) or arguments.batches != "one_pair" or rows < batch_rows:
        return rows
    taken = 0
    for dataset in datasets:
        counts = [len(rows_of_pair) for rows_of_pair in pair_rows(dataset).values()]
        quotas = apportion(len(dataset), language_shares(counts, alpha=arguments.language_alpha))
        # Each pair of languages fills whole batches, and at least one.
        taken += sum(max(1, quota // batch_rows) * batch_rows for quota in quotas if quota)
    return taken


def mix_endless(
    data: Mapping[str, Dataset | IterableDataset],
    arguments: EncoderArguments,
    *,
    shuffle_buffer: int = BUFFER_ROWS,
    processes: int = 1,
    negative_names: Sequence[str] = (),
    order: int = 0,
) -> IterableDataset:
    """One stream without an end, in the order of its batches.

    Args:
        data: Name → data set or stream.
        arguments: Batches, balance, seed.
        shuffle_buffer: Rows of each stream that are shuffled together.
        processes: Processes that share a step.
        negative_names: Columns of hard negatives.
        order: A number for each of several streams that are read side by side, so that their rows come in different
            orders.
    """
    return mix_streams(
        {name: as_stream(name, dataset) for name, dataset in data.items()},
        batch_rows=arguments.per_device_train_batch_size * processes,
        seed=arguments.seed + 1_000_003 * order,
        group_by_length=arguments.group_by_length,
        buffer_rows=shuffle_buffer,
        more=negative_names,
        alpha=arguments.language_alpha,
        one_pair=arguments.batches == "one_pair",
        keep_duplicates_apart=arguments.keep_duplicates_apart,
    )


def _shared_negatives(data: Mapping[str, Any], wanted: bool) -> list[str]:
    """Columns of hard negatives that every data set has; others are logged and ignored."""
    columns = {name: negative_columns(dataset.column_names or []) for name, dataset in data.items()}
    # The shortest list: data sets number their columns alike.
    shared = min(columns.values(), key=len, default=[]) if wanted else []
    reason = "not every data set has as many" if wanted else "no objective of this recipe reads them"
    for name, names in columns.items():
        ignored = names[len(shared) :]
        if ignored:
            logger.info("%s: hard negatives ignored (%s): %s", name, ", ".join(ignored), reason)
    return list(shared)


def mix(data: Mapping[str, Dataset], negative_names: Sequence[str] = ()) -> Dataset:
    """All data sets in one, with the columns that training reads; ``negative_names`` are those of hard negatives.

    Raises:
        ValueError: No data set, or an empty one; fewer than 2 rows in all.
    """
    if not data:
        raise ValueError("training needs at least one data set: got none.")
    for name, dataset in data.items():
        _check_filled(name, dataset)
    if (rows := sum(map(len, data.values()))) < 2:
        raise ValueError(f"training needs at least 2 pairs, each other's negatives: got {rows}; add data.")
    columns = [*COLUMNS, *negative_names]
    return concatenate_datasets([dataset.select_columns(columns) for dataset in data.values()])


def add_mono(mixture: Mixture, mono: Mapping[str, Dataset], *, seed: int = 0) -> Mixture:
    """The mixture with two contiguous sentences of one language next to each pair, for masked language modeling.

    Args:
        mixture: Mixture of data sets, no stream.
        mono: Name → text of one language, in order, in the column ``source``; as ``load_texts`` loads it.
        seed: Seed of the order in which its sentence pairs are added: each once before any comes again.

    Raises:
        ValueError: A stream; text of a single sentence.
    Source:
        Hu et al. 2021 (AMBER), equations 2 and 6: MLM reads contiguous sentences of monolingual text.
    """
    if mixture.streamed:
        raise ValueError("monolingual text cannot be added to a stream; use --mono without --stream.")
    lines: list[tuple[str, str]] = []
    for name, dataset in mono.items():
        texts = dataset["source"][:]
        if len(texts) < 2:
            raise ValueError(f"monolingual text {name!r} must have at least 2 sentences: got {len(texts)}.")
        lines += zip(texts[::2], texts[1::2])
    # A permutation, repeated: each pair of sentences once before any comes again.
    order = np.random.default_rng(seed).permutation(len(lines))
    rows = [lines[order[row % len(lines)]] for row in range(len(mixture.pairs))]
    pairs = mixture.pairs
    for column, texts in zip(MONO, zip(*rows)):
        pairs = pairs.add_column(column, list(texts))
    return dataclasses.replace(mixture, pairs=pairs)


def fingerprint(dataset: Dataset, columns: Sequence[str] = ("source", "target")) -> str:
    """Eight hexadecimal digits that change with any text of the data set or its order."""
    digest = hashlib.sha256()
    for column in columns:
        for texts in column_batches(dataset, column):
            digest.update("".join(f"{text}\n" for text in texts).encode("utf-8"))
    return digest.hexdigest()[:8]


def describe(data: Mapping[str, Dataset], columns: Sequence[str] = ("source", "target")) -> dict[str, dict[str, Any]]:
    """Return the number of rows and the fingerprint of each data set, for the record of a run."""
    described: dict[str, dict[str, Any]] = {}
    for name, dataset in data.items():
        described[name] = {"rows": len(dataset), "sha8": fingerprint(dataset, columns)}
    return described


def _check_filled(name: str, dataset: Dataset) -> None:
    if len(dataset) == 0:
        raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")


def as_stream(name: str, data: Dataset | IterableDataset) -> IterableDataset:
    """A data set as a stream that knows how many rows it has; a stream as it is."""
    if isinstance(data, IterableDataset):
        return data
    _check_filled(name, data)
    # Streams say their size by the split they come from; one made of a data set has none yet.
    stream = data.to_iterable_dataset()
    stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=len(data))})
    return stream


@dataclass
class TextReport:
    """Counts of a tokenizer's output for some texts.

    Attributes:
        texts: Texts looked at.
        truncated: Texts that are longer than the limit.
        longest: Tokens of the longest text, special tokens included.
        token_ids: Ids that occur within the limit.
    """

    texts: int = 0
    truncated: int = 0
    longest: int = 0
    token_ids: set[int] = field(default_factory=set)


def report_texts(
    encoder: SentenceTransformer,
    dataset: Dataset,
    column: str,
    prompt: str = "",
    *,
    name: str | None = None,
    max_length: int | None = None,
) -> TextReport:
    """Tokenize every text of a column once, ten thousand in memory at a time.

    Args:
        encoder: Its tokenizer, of transformers or of the library tokenizers, cuts texts to its length.
        dataset: Training data.
        column: Name of the column.
        prompt: Text before each of its texts.
        name: Shown before the progress bar; ``None``: the column.
        max_length: Tokens that are read of a text; ``None``: as many as the encoder's maximum.

    Raises:
        ValueError: A token that the word embeddings have no row for.
    """
    report = TextReport()
    tokenizer = encoder.tokenizer
    limit = encoder.max_seq_length if max_length is None else max_length
    bar = progress_bar(column_texts(dataset, column), desc=name or column, unit="texts", total=len(dataset))
    texts = (prompt + text for text in bar)
    while batch := list(itertools.islice(texts, BATCH_TEXTS)):
        if isinstance(tokenizer, Tokenizer):  # of static embeddings
            rows = [encoded.ids for encoded in tokenizer.encode_batch(batch, add_special_tokens=False)]
        else:
            rows = tokenizer(batch, truncation=False, verbose=False, return_attention_mask=False)["input_ids"]
        report.texts += len(batch)
        for ids in rows:
            report.longest = max(report.longest, len(ids))
            if limit is not None and len(ids) > limit:
                report.truncated += 1
                ids = [*ids[: limit - 1], ids[-1]]  # truncation keeps the closing special token
            report.token_ids.update(ids)
    check_ids(tokenizer, embedding_rows(encoder), report.token_ids)
    return report


def log_truncation(
    cut: int, total: int, longest: int, *, max_length: int | None, what: str = "texts", effect: str = "and are cut"
) -> None:
    """Warn of text that is longer than the model reads, if any is."""
    if cut:
        logger.warning(
            f"{cut:,} of {total:,} {what} ({100 * cut / total:.1f} %) are longer than {max_length} tokens {effect}; "
            f"the longest has {longest}. Raise model.max_length to keep more."
        )
