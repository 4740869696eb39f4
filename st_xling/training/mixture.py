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
    more = _shared_negatives(data, negatives)
    alpha = arguments.language_alpha
    # One stream makes all of them streams: their batches are mixed by the same sampler.
    if all(hasattr(part, "__len__") for part in data.values()):
        whole: dict[str, Any] = dict(data)
        pairs = mix(whole, more)
        counts = {"-".join(pair): len(rows) for pair, rows in pair_rows(pairs).items()}
        shares = dict(zip(counts, language_shares([*counts.values()], alpha=alpha)))
        manifest = describe(whole, ("source", "target", *more))
        return Mixture(pairs, whole, pairs, epoch_rows(pairs, arguments, processes=processes), shares, manifest)
    total_steps(arguments, rows=None)
    streams = {name: as_stream(name, part) for name, part in data.items()}
    parts = {name: head(part, min(HEAD_ROWS, HEAD_ROWS_OF_ALL // len(streams))) for name, part in streams.items()}
    pairs = mix_endless(streams, arguments, shuffle_buffer=shuffle_buffer, processes=processes, more=more)
    shares = stream_shares(streams, alpha=alpha)
    manifest = {name: {"rows": stream_rows(streams[name]), "sha8": fingerprint(parts[name])} for name in streams}
    return Mixture(pairs, parts, mix(parts, more), None, shares, manifest)


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
    parts = list(data.values()) if isinstance(data, dict) else [data]
    if not all(hasattr(part, "__len__") for part in parts):
        return None
    sizes = [len(part) for part in parts]
    if getattr(arguments, "multi_dataset_batch_sampler", None) == MultiDatasetBatchSamplers.ROUND_ROBIN:
        rows = min(sizes) * len(sizes)  # an epoch ends with the smallest data set
    else:
        rows = sum(sizes)
    size = arguments.per_device_train_batch_size * (arguments.world_size if processes is None else processes)
    if not isinstance(arguments, EncoderArguments) or arguments.batches != "one_pair" or rows < size:
        return rows
    taken = 0
    for part in parts:
        counts = [len(of_pair) for of_pair in pair_rows(part).values()]
        quotas = apportion(len(part), language_shares(counts, alpha=arguments.language_alpha))
        taken += sum(max(1, quota // size) * size for quota in quotas if quota)
    return taken


def mix_endless(
    data: Mapping[str, Dataset | IterableDataset],
    arguments: EncoderArguments,
    *,
    shuffle_buffer: int = BUFFER_ROWS,
    processes: int = 1,
    more: Sequence[str] = (),
    order: int = 0,
) -> IterableDataset:
    """One stream without an end, in the order of its batches; several streams each have an ``order`` of their own."""
    return mix_streams(
        {name: as_stream(name, part) for name, part in data.items()},
        batch_rows=arguments.per_device_train_batch_size * processes,
        seed=arguments.seed + 1_000_003 * order,
        group_by_length=arguments.group_by_length,
        buffer_rows=shuffle_buffer,
        more=more,
        alpha=arguments.language_alpha,
        one_pair=arguments.batches == "one_pair",
        keep_duplicates_apart=arguments.keep_duplicates_apart,
    )


def _shared_negatives(data: Mapping[str, Any], wanted: bool) -> list[str]:
    """Columns of hard negatives that every data set has; others are logged and ignored."""
    found = {name: negative_columns(part.column_names or []) for name, part in data.items()}
    shared = [column for column in min(found.values(), key=len, default=[]) if wanted]
    why = "not every data set has as many" if wanted else "no objective of this recipe reads them"
    for name, own in found.items():
        if len(own) > len(shared):
            logger.info("%s: hard negatives ignored (%s): %s", name, ", ".join(own[len(shared) :]), why)
    return shared


def mix(data: Mapping[str, Dataset], more: Sequence[str] = ()) -> Dataset:
    """All data sets in one, with the columns that training reads; ``more`` are those of hard negatives.

    Raises:
        ValueError: No data set, or an empty one; fewer than 2 rows in all.
    """
    if not data:
        raise ValueError("training needs at least one data set: got none.")
    for name, part in data.items():
        _check_filled(name, part)
    if (rows := sum(map(len, data.values()))) < 2:
        raise ValueError(f"training needs at least 2 pairs, each other's negatives: got {rows}; add data.")
    return concatenate_datasets([part.select_columns([*COLUMNS, *more]) for part in data.values()])


def add_mono(mixture: Mixture, mono: Mapping[str, Dataset], *, seed: int = 0) -> Mixture:
    """The mixture with two contiguous sentences of one language next to each pair, for masked language modeling.

    Args:
        mixture: Of data sets, no stream.
        mono: Name → text of one language, in order, in the column ``source``; as ``load_texts`` loads it.
        seed: Of the order in which its sentence pairs are added: each once before any comes again.
    Raises:
        ValueError: A stream; text of a single sentence.
    Source:
        Hu et al. 2021 (AMBER), equations 2 and 6: MLM reads contiguous sentences of monolingual text.
    """
    if mixture.streamed:
        raise ValueError("monolingual text cannot be added to a stream; use --mono without --stream.")
    lines: list[tuple[str, str]] = []
    for name, part in mono.items():
        texts = part["source"][:]
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
    return {name: {"rows": len(part), "sha8": fingerprint(part, columns)} for name, part in data.items()}


def _check_filled(name: str, part: Any) -> None:
    if len(part) == 0:
        raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")


def as_stream(name: str, part: Any) -> IterableDataset:
    """A data set as a stream that knows how many rows it has; a stream as it is."""
    if not hasattr(part, "__len__"):
        return part
    _check_filled(name, part)
    # Streams say their size by the split they come from; one made of a data set has none yet.
    stream = part.to_iterable_dataset()
    stream.info.splits = SplitDict({"train": SplitInfo("train", num_examples=len(part))})
    return stream


@dataclass
class TextReport:
    """Counts of a tokenizer's output for some texts.

    Attributes:
        texts: Texts looked at.
        truncated: Of these, longer than the limit.
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
    report, tokenizer = TextReport(), encoder.tokenizer
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
