"""Batches whose order is a function of the seed and the epoch alone, so that a resumed run agrees; of streams too."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.util.distributed import get_world_size
from torch.utils.data import SequentialSampler

from st_xling.data.batches import WINDOW_BATCHES, apportion, arrange, draw, language_shares, shuffled
from st_xling.data.pairs import COLUMNS, LANGUAGE_COLUMNS, pair_rows, stream_rows
from st_xling.data.text_cells import exact_keys, row_keys, text_lengths

if TYPE_CHECKING:
    from datasets import IterableDataset

logger = logging.getLogger(__name__)

BUFFER_ROWS = 50_000
CHUNK_ROWS = 16


class ShuffledBatchSampler(DefaultBatchSampler):
    """Shuffled batches, drawn afresh from ``seed + epoch`` in each epoch.

    The default of sentence-transformers carries one generator through all epochs: a run resumed in its second epoch
    would see other batches than one that was never stopped. Pass the class as the training argument ``batch_sampler``;
    for other options, ``functools.partial(ShuffledBatchSampler, alpha=0.5)``.

    Where several processes share a step, their batches are cut from one that is as many times as large: they are of one
    pair together, of like length together, and share no text with one another.

    Args:
        dataset: A ``datasets.Dataset``.
        batch_size: Rows a batch.
        drop_last: Leave out the rows, other ones each epoch, that do not fill a batch.
        valid_label_columns: Columns that hold no sentences.
        seed: Of the shuffling.
        alpha: Balance languages, see :func:`language_shares`. An epoch is as long as the data set all the same: small
            languages are repeated in it, large ones come in part, another part each time.
        one_pair: Every batch holds a single pair of languages. A pair with fewer rows than a batch has one short batch.
        keep_duplicates_apart: No two rows of a batch share a text. See :func:`keep_apart`.
        processes: Processes that share a step; ``None``: as in ``torch.distributed``.

    Raises:
        ValueError: Options out of range; no language columns that the options need; with ``one_pair``, a pair with
            fewer rows than processes.
    """

    lengths: np.ndarray | None = None

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
        *,
        alpha: float | None = None,
        one_pair: bool = False,
        keep_duplicates_apart: bool = True,
        processes: int | None = None,
    ) -> None:
        super().__init__(SequentialSampler(dataset), batch_size, drop_last, valid_label_columns, generator, seed)
        self._warned = False
        self.rows = len(dataset)
        self.one_pair = one_pair
        self.processes = get_world_size() if processes is None else processes
        self.step_rows = batch_size * self.processes  # of a batch of all processes together
        self.balanced = alpha not in (None, 1)
        self.keys = row_keys(dataset, without=valid_label_columns or ()) if keep_duplicates_apart else None
        self.pairs = pair_rows(dataset) if self.rows and (one_pair or self.balanced) else {}
        counts = [len(rows) for rows in self.pairs.values()]
        shares = language_shares(counts, alpha=alpha)
        self.quotas = apportion(self.rows, shares) if self.balanced else counts
        small = [f"{'-'.join(pair)} ({n})" for pair, n in zip(self.pairs, self.quotas) if 0 < n < self.processes]
        if one_pair and small:
            raise ValueError(
                f"batches of one pair need a row of it for each of {self.processes} processes: got {', '.join(small)}; "
                "mix the batches, or leave these out."
            )

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed((self.seed or 0) + self.epoch)
        full_batches: list[np.ndarray] = []
        short_batches: list[np.ndarray] = []
        left_out = 0
        for order in self._sections(generator):
            drop_last = self._drops(len(order))
            batches, dropped = arrange(order, self.step_rows, lengths=self.lengths, keys=self.keys, drop_last=drop_last)
            left_out += dropped
            has_short_batch = bool(batches) and not drop_last and len(order) % self.step_rows != 0
            if has_short_batch:
                short_batches.append(batches.pop())
            full_batches += batches
        if left_out and not self._warned:
            self._warned = True  # not in each epoch again
            logger.warning(
                f"{left_out:,} of {self.rows:,} rows share a text with more rows than there are batches: they are left "
                "out of this epoch, others of the next. Remove repeated rows, lower batch_size, or switch "
                "keep_duplicates_apart off."
            )
        # Several processes want all batches but the last ones to be full; one mixes them in.
        if self.processes == 1:
            groups = [full_batches + short_batches]
        else:
            groups = [full_batches, short_batches]
        for batches in groups:
            for position in torch.randperm(len(batches), generator=generator).tolist():
                yield from self._process_batches(batches[position])

    def __len__(self) -> int:
        sections = self.quotas if self.one_pair else [self.rows]
        steps = 0
        for rows in sections:
            steps += rows // self.step_rows if self._drops(rows) else math.ceil(rows / self.step_rows)
        return self.processes * steps

    def _sections(self, generator: torch.Generator) -> list[np.ndarray]:
        """Return the rows of the epoch, shuffled: one array, or one for each pair that must not be mixed."""
        if not self.balanced and not self.one_pair:
            return [torch.randperm(self.rows, generator=generator).numpy()]
        drawn = []
        for number, (rows, quota) in enumerate(zip(self.pairs.values(), self.quotas)):
            drawn.append(draw(rows, quota, epoch=self.epoch, seed=[self.seed or 0, number]))
        if self.one_pair:
            return drawn
        mixed = np.concatenate(drawn) if drawn else np.zeros(0, np.int64)
        return [mixed[torch.randperm(len(mixed), generator=generator).numpy()]]

    def _drops(self, rows: int) -> bool:
        """Return whether rows that do not fill a batch are dropped; a pair that fills none at all has a short one."""
        return self.drop_last and not (self.one_pair and rows < self.step_rows)

    def _process_batches(self, batch: np.ndarray) -> list[list[int]]:
        """Return the batches of the processes, one after the other, as accelerate deals them out; all of one size."""
        rows = len(batch) // self.processes
        if not rows:
            return []
        return [batch[start : start + rows].tolist() for start in range(0, rows * self.processes, rows)]


class LengthGroupedBatchSampler(ShuffledBatchSampler):
    """Shuffled batches whose rows are of similar length: less padding, the same rows.

    Windows of 32 batches are sorted by characters before they are cut. The negatives of a sentence are then about as
    long as its translation, which makes ranking slightly harder.

    Args:
        dataset: A ``datasets.Dataset``; its string columns except ``*_language`` count towards the length.
        **options: As of :class:`ShuffledBatchSampler`.
    """

    def __init__(self, dataset: Any, *args: Any, **options: Any) -> None:
        super().__init__(dataset, *args, **options)
        self.lengths = np.asarray(text_lengths(dataset))


def mix_streams(
    data: Mapping[str, IterableDataset],
    *,
    batch_rows: int,
    seed: int = 0,
    alpha: float | None = None,
    one_pair: bool = False,
    keep_duplicates_apart: bool = True,
    group_by_length: bool = True,
    buffer_rows: int = BUFFER_ROWS,
    more: Sequence[str] = (),
) -> IterableDataset:
    """Mix streams into one without an end; every ``batch_rows`` rows of it are a training batch.

    Streams are repeated and interleaved by ``datasets``. A buffer of rows is filled, shuffled and cut into batches,
    then filled again. The result depends on the data and the options only, so a resumed run that skips the batches it
    has seen continues where it stopped.

    Args:
        data: Name → stream with the columns of a parallel data set. Each data set counts as one language.
        batch_rows: Rows of a batch, over all processes.
        seed: Seed of drawing and shuffling.
        alpha: Balance languages by the rows that the streams report; see :func:`language_shares`.
        one_pair: Take each batch from a single data set.
        keep_duplicates_apart: Let no two rows of a batch share a text; see :func:`keep_apart`.
        group_by_length: Batch sentences of similar length.
        buffer_rows: Rows in the buffer (with ``one_pair``, in that of each data set); at least 32 batches.
        more: Further text columns of every data set, such as hard negatives, which are kept apart too.

    Raises:
        ValueError: If an option is out of range, a data set is empty or its size unknown where balancing needs it; when
            reading, if a buffer holds too few distinct texts for a batch.
    """
    from datasets import Features, IterableDataset, Value, interleave_datasets

    columns = tuple(dict.fromkeys([*COLUMNS, *more]))
    for name, stream in data.items():
        if not list(stream.take(1)):
            raise ValueError(f"data set {name!r} is empty; check its file, or leave it out.")
    shares = list(stream_shares(data, alpha=alpha).values())
    sizes = [stream_rows(stream) for stream in data.values()]
    # A buffer larger than the data would contain some rows twice.
    total = 0 if None in sizes else sum(size or 0 for size in sizes)
    if total:
        buffer_rows = min(buffer_rows, total)
    buffer_batches = max(WINDOW_BATCHES, buffer_rows // batch_rows)
    options = {
        "size": batch_rows,
        "window": buffer_batches * batch_rows,
        "columns": columns,
        "group_by_length": group_by_length,
        "keep_duplicates_apart": keep_duplicates_apart,
    }
    features = Features({name: Value("string") for name in columns})
    lists = Features({name: [Value("string")] for name in columns})
    # In small groups: interleaving row by row is several times slower.
    chunks = []
    for stream in data.values():
        chunks.append(stream.select_columns(list(columns)).repeat(None).batch(CHUNK_ROWS))

    def batch_stream(chunks: IterableDataset, name: str, number: int) -> IterableDataset:
        arguments = {"chunks": chunks, "name": name, "seed": [seed, number], **options}
        return IterableDataset.from_generator(_batches, features=lists, gen_kwargs=arguments)

    if one_pair:
        streams = []
        for number, (name, stream_chunks) in enumerate(zip(data, chunks)):
            streams.append(batch_stream(stream_chunks, name, number))
        batches = interleave_datasets(streams, probabilities=shares, seed=seed)
    else:
        mixed_chunks = interleave_datasets(chunks, probabilities=shares, seed=seed)
        batches = batch_stream(mixed_chunks, ", ".join(data), 0)
    return IterableDataset.from_generator(_batch_rows, features=features, gen_kwargs={"batches": batches})


def stream_shares(data: Mapping[str, Any], *, alpha: float | None = None) -> dict[str, float]:
    """Return the share of each stream in the batches; all the same if a size is unknown and none is asked for."""
    rows = {name: stream_rows(stream) for name, stream in data.items()}
    unknown = [name for name, count in rows.items() if count is None]
    if unknown and len(rows) > 1 and alpha:
        raise ValueError(f"balancing streams needs their sizes: {', '.join(unknown)} has none; use alpha=0.")
    if unknown and len(rows) > 1 and alpha is None:
        logger.warning("%s has no number of rows: all data sets get the same share", ", ".join(unknown))
    if unknown:
        rows = dict.fromkeys(rows, 1)
    shares = language_shares([count or 1 for count in rows.values()], alpha=alpha)
    return dict(zip(rows, shares))


def _batches(
    chunks: IterableDataset,
    *,
    name: str,
    seed: Sequence[int],
    size: int,
    window: int,
    columns: Sequence[str],
    group_by_length: bool,
    keep_duplicates_apart: bool,
) -> Iterator[dict[str, list[str]]]:
    """Yield the batches of one buffer of ``window`` rows after the other."""
    rows = _chunk_rows(chunks, columns)
    for number in itertools.count():  # the stream has no end
        buffer = dict(zip(columns, zip(*itertools.islice(rows, window))))
        texts = [values for column, values in buffer.items() if column not in LANGUAGE_COLUMNS]
        lengths = np.array([sum(map(len, row)) for row in zip(*texts)]) if group_by_length else None
        keys = np.column_stack(list(map(exact_keys, texts))) if keep_duplicates_apart else None
        full_batches = _full_batches(shuffled(window, [*seed, number]), size, lengths, keys)
        if not full_batches:
            raise ValueError(
                f"{name}: {window:,} rows in a row hold too few distinct texts for a batch of {size}; lower "
                "batch_size, remove repeated rows, or switch keep_duplicates_apart off."
            )
        for index in shuffled(len(full_batches), [*seed, number, 1]):
            batch = {}
            for column, values in buffer.items():
                batch[column] = [values[row] for row in full_batches[index]]
            yield batch


def _full_batches(
    order: np.ndarray, size: int, lengths: np.ndarray | None, keys: np.ndarray | None
) -> list[np.ndarray]:
    """Cut into batches of exactly ``size`` rows: a shorter one would shift all that follow."""
    full_batches: list[np.ndarray] = []
    while len(order) >= size:
        batches, _ = arrange(order, size, lengths=lengths, keys=keys, drop_last=True)
        full = [batch for batch in batches if len(batch) == size]
        if not full:
            break
        full_batches += full
        # Rows of batches that repeated texts left short are cut again.
        short = [batch for batch in batches if len(batch) < size]
        order = np.concatenate([order[:0], *short])
    return full_batches


def _chunk_rows(chunks: IterableDataset, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for chunk in chunks:
        yield from zip(*(chunk[column] for column in columns))


def _batch_rows(batches: IterableDataset) -> Iterator[dict[str, str]]:
    for batch in batches:
        for row in zip(*batch.values()):
            yield dict(zip(batch, row))
