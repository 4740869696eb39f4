"""Hard negatives: targets of other pairs that a model finds near a source, mined before training as columns of text."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import mine_hard_negatives

from st_xling.data.pairs import append_columns, dataset_in_memory
from st_xling.data.text_cells import column_texts, leak_key, text_columns
from st_xling.models.encoding import encode
from st_xling.training.options import check_negative_search
from st_xling.utils import distributed
from st_xling.utils.options import check_choice

logger = logging.getLogger(__name__)

SamplingStrategy = Literal["top", "random"]

SCORES_AT_A_TIME = 2**27
"""Similarities that are held in memory at a time: 512 MiB. ST's 16,384 sources would need 40 GiB of 668,000 targets."""
MOST_SOURCES_AT_A_TIME = 16_384
SEARCHED_RANKS = 300
"""Nearest targets that are searched at least. Of multilingual-e5-small, with a relative margin of 0.05, none of the
nearest 11 (ST's default for one negative) is allowed for 21 % of German-English pairs; of the nearest 300 for 1.5 %."""


def add_hard_negatives(
    dataset: Dataset,
    model: SentenceTransformer,
    *,
    num_negatives: int = 1,
    anchor_column_name: str = "source",
    positive_column_name: str = "target",
    range_min: int = 0,
    range_max: int | None = None,
    max_score: float | None = None,
    min_score: float | None = None,
    absolute_margin: float | None = None,
    relative_margin: float | None = 0.05,
    sampling_strategy: SamplingStrategy = "top",
    prompts: str | Mapping[str, str] | None = None,
    seed: int = 0,
    batch_size: int | None = None,
    show_progress_bar: bool = True,
) -> Dataset:
    """Add hard negatives to every pair, mined by ``mine_hard_negatives`` of sentence-transformers.

    Every row stays, in its place. Texts count as equal if their :func:`~st_xling.data.text_cells.leak_key` is (case,
    punctuation and white space do not matter): targets of equal sources are no negatives of each other, no two
    negatives of a row are the same text, and equal sources have the same negatives. A source whose translation is
    hardly nearer than other targets has fewer candidates below the margin than ``num_negatives``: the rest are drawn at
    random from all targets, which are no harder than the other rows of its batch. How many rows that are is logged.

    But for rounding, neither the order of the rows nor the batch size of the encoder changes what is mined. Of several
    processes that train together, the main one searches; all must call this function, not within
    ``main_process_first``.

    Args:
        dataset: Pairs, in memory or on disk; no stream.
        model: Model that searches, usually the one to be trained.
        num_negatives: Number of negatives of each pair.
        anchor_column_name: Column of the sources.
        positive_column_name: Column of their translations, and of all candidates.
        range_min: Number of nearest candidates to skip.
        range_max: Number of nearest candidates to search; ``None``: 300, or ten for each negative.
        max_score: Highest similarity of a negative.
        min_score: Lowest similarity of a negative.
        absolute_margin: A negative is at least this much less similar to the source than its translation.
        relative_margin: The same as a share of the translation's similarity. Without it, many of the nearest are
            translations, too.
        sampling_strategy: ``"top"``: the nearest candidates; ``"random"``: any of those in the range.
        prompts: Text before each text, as in sentence-transformers' training arguments: one for both columns, or column
            → text, none for a column that is missing. ``None``: the model's own for queries and documents.
        seed: Seed of random draws.
        batch_size: Maximum number of texts that are encoded together; ``None``: as suits the device.
        show_progress_bar: Show progress on stderr.

    Returns:
        ``dataset`` with the columns ``negative_1``, ``negative_2``, …, nearest first.

    Raises:
        TypeError: No data set.
        ValueError: A stream, missing or empty columns, negatives that are there already; numbers out of range; a source
            that has fewer other targets than ``num_negatives``. All before any text is encoded.

    Source:
        Moreira et al. 2024 (NV-Retriever), the method TopK-PercPos, with its margin of 0.05.

    Example:
        >>> from st_xling.data.phrasebook import parallel_phrases
        >>> from st_xling.models import tiny_encoder
        >>> pairs = parallel_phrases("de", "en", size=20).select_columns(["source", "target"])
        >>> model = tiny_encoder([*pairs["source"], *pairs["target"]], vocabulary=200, hidden_size=16)
        >>> add_hard_negatives(pairs, model, num_negatives=2).column_names
        ['source', 'target', 'negative_1', 'negative_2']
    """
    names = [f"negative_{number}" for number in range(1, num_negatives + 1)]
    check_negative_search(
        num_negatives=num_negatives,
        range_min=range_min,
        range_max=range_max,
        max_score=max_score,
        min_score=min_score,
        absolute_margin=absolute_margin,
        relative_margin=relative_margin,
    )
    check_choice("sampling_strategy", sampling_strategy, SamplingStrategy)
    _check_columns(dataset, anchor_column_name, positive_column_name, names)
    _check_prompts(prompts, [*dataset.column_names, *names])
    sources = list(column_texts(dataset, anchor_column_name))
    targets = list(column_texts(dataset, positive_column_name))
    _check_texts(anchor_column_name, sources)
    _check_texts(positive_column_name, targets)
    pairs = _Pairs(sources, targets)
    pairs.check_candidates(num_negatives)
    if range_max is None:
        range_max = range_min + max(SEARCHED_RANKS, 10 * num_negatives)
    encoder = _Encoder(
        model,
        _prompt_of(anchor_column_name, prompts),
        _prompt_of(positive_column_name, prompts),
        batch_size=batch_size,
        show_progress_bar=show_progress_bar,
    )

    def mine() -> dict[str, list[str]]:
        sources_at_a_time = SCORES_AT_A_TIME // len(pairs.candidates)
        with _seeded(seed):  # ST draws from Python's global generator
            mined = mine_hard_negatives(
                pairs.dataset(),
                encoder,  # type: ignore[arg-type]
                anchor_column_name="anchor",
                positive_column_name="positive",
                range_min=range_min,
                range_max=range_max,
                max_score=max_score,
                min_score=min_score,
                absolute_margin=absolute_margin,
                relative_margin=relative_margin,
                num_negatives=num_negatives,
                sampling_strategy=sampling_strategy,
                output_format="labeled-list",  # the only one with sources that have fewer than ``num_negatives``
                faiss_batch_size=max(1, min(MOST_SOURCES_AT_A_TIME, sources_at_a_time)),
                verbose=False,
            )
        return pairs.negative_columns(mined, num_negatives, seed=seed)

    # Of several processes the main one: the others' devices may round otherwise, and they must train on the same rows.
    distributed.init_distributed()
    columns = distributed.run_on_main(mine)
    return append_columns(dataset, dataset_in_memory(pa.table(columns)))


class _Pairs:
    """Sources and their translations, equal texts as one: the alphabetically first of them.

    ST compares the strings, and so sees all targets of a source.

    Args:
        sources: Source of each row.
        targets: Its translation.

    Attributes:
        source_of_row: Source of each row, as the search has it.
        translations: Source → its translations.
        candidates: All targets, sorted.
    """

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        self.source_of_row = _first_of_equal_texts(sources)
        self.translations: dict[str, set[str]] = {}
        for source, target in zip(self.source_of_row, _first_of_equal_texts(targets)):
            self.translations.setdefault(source, set()).add(target)
        self.candidates = sorted(set().union(*self.translations.values()))

    def check_candidates(self, num_negatives: int) -> None:
        """Raise ``ValueError`` if a source has fewer other targets than are to be found."""
        too_few: list[str] = []
        for source, targets in self.translations.items():
            if len(self.candidates) - len(targets) < num_negatives:
                too_few.append(source)
        if too_few:
            raise ValueError(
                f"num_negatives must be at most the number of other targets that each source has: got {num_negatives}, "
                f"too many for {len(too_few):,} of {len(self.translations):,} sources, such as {min(too_few)[:60]!r}; "
                "lower it, or add text."
            )

    def dataset(self) -> Dataset:
        """Return each pair once, sorted, so that neither ties nor draws depend on the order of the rows."""
        anchors: list[str] = []
        positives: list[str] = []
        for source in sorted(self.translations):
            targets = sorted(self.translations[source])
            anchors += [source] * len(targets)
            positives += targets
        return Dataset.from_dict({"anchor": anchors, "positive": positives})

    def negative_columns(self, mined: Dataset, num_negatives: int, *, seed: int) -> dict[str, list[str]]:
        """Return the columns of negatives of all rows, and log how many rows are filled up at random.

        Args:
            mined: Result of ``mine_hard_negatives`` as lists: translation and negatives of each source.
            num_negatives: Number of columns.
            seed: Seed of the random ones.
        """
        negatives: dict[str, list[str]] = {source: [] for source in self.translations}
        for source, texts in zip(mined["anchor"], mined["positive"]):
            negatives[source] = texts[1:]  # the first is the translation
        filled_sources = self.fill(negatives, num_negatives, seed=seed)
        filled_rows = sum(source in filled_sources for source in self.source_of_row)
        _log_filled(filled_rows, len(self.source_of_row), num_negatives)
        columns: dict[str, list[str]] = {}
        for position in range(num_negatives):
            columns[f"negative_{position + 1}"] = [negatives[source][position] for source in self.source_of_row]
        return columns

    def fill(self, negatives: dict[str, list[str]], num_negatives: int, *, seed: int) -> set[str]:
        """Fill up lists that are too short with random candidates, in place; return their sources."""
        generator = random.Random(seed)
        filled = set()
        for source in sorted(self.translations):
            chosen = negatives[source] = list(negatives[source])
            if len(chosen) < num_negatives:
                filled.add(source)
            excluded = {*self.translations[source], *chosen}
            while len(chosen) < num_negatives:
                text = self.candidates[generator.randrange(len(self.candidates))]
                if text not in excluded:
                    excluded.add(text)
                    chosen.append(text)
        return filled


def _first_of_equal_texts(texts: Sequence[str]) -> list[str]:
    """Return for each text the alphabetically first of those that are equal to it, by :func:`leak_key`."""
    keys = [leak_key(text) for text in texts]
    first: dict[str, str] = {}
    for text, key in zip(texts, keys):
        if key not in first or text < first[key]:
            first[key] = text
    return [first[key] for key in keys]


class _Encoder:
    """The model as ``mine_hard_negatives`` calls it, which encodes by :func:`~st_xling.models.encoding.encode`.

    That one is faster than ST's batches of rows, and shows one bar on a terminal and lines in a log.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        source_prompt: str | None,
        target_prompt: str | None,
        *,
        batch_size: int | None,
        show_progress_bar: bool,
    ) -> None:
        self.model = model
        self.source_prompt = source_prompt
        self.target_prompt = target_prompt
        self.batch_size = batch_size
        self.show_progress_bar = show_progress_bar
        self.device = model.device
        self.similarity = model.similarity
        self.similarity_pairwise = model.similarity_pairwise

    def encode_query(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return self._encode(texts, "query", self.source_prompt)

    def encode_document(self, texts: Sequence[str], **_: Any) -> np.ndarray:
        return self._encode(texts, "document", self.target_prompt)

    def _encode(self, texts: Sequence[str], role: Literal["query", "document"], prompt: str | None) -> np.ndarray:
        return encode(
            self.model,
            texts,
            role=role,
            prompt=prompt,
            batch_size=self.batch_size,
            normalize_embeddings=True,
            show_progress_bar=self.show_progress_bar,
        )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed Python's global random generator, and restore its state afterwards."""
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def _log_filled(filled_rows: int, rows: int, num_negatives: int) -> None:
    logger.info("hard negatives: %d for each of %s pairs", num_negatives, f"{rows:,}")
    if not filled_rows:
        return
    message = "%s of %s pairs have fewer than %d hard negatives below the margins: theirs are filled up at random"
    if 2 * filled_rows > rows:
        message += (
            "; the model hardly tells these texts apart: use one that is trained for similarity, or a smaller margin"
        )
        logger.warning(message, f"{filled_rows:,}", f"{rows:,}", num_negatives)
    else:
        logger.info(message, f"{filled_rows:,}", f"{rows:,}", num_negatives)


def _check_columns(dataset: Any, source: str, target: str, names: Sequence[str]) -> None:
    """Raise an error for what is no data set of pairs, or has negatives already."""
    if not isinstance(dataset, Dataset):
        if hasattr(dataset, "take"):
            raise ValueError(
                "the search for hard negatives reads all pairs before training: got a stream; load it whole, such as "
                "by load_pairs(…) without stream=True."
            )
        raise TypeError(
            f"expected a data set of pairs, got {type(dataset).__name__}; call add_hard_negatives for each of several, "
            "and wrap lists by Dataset.from_dict."
        )
    texts = text_columns(dataset)
    if missing := [name for name in (source, target) if name not in texts]:
        raise ValueError(
            f"hard negatives are searched in the text columns {source} and {target}: got {', '.join(texts) or 'none'}, "
            f"without {' and '.join(missing)}; name them by anchor_column_name and positive_column_name."
        )
    if source == target:
        raise ValueError(f"anchor_column_name and positive_column_name must be two columns: got {source} for both.")
    if taken := [name for name in names if name in dataset.column_names]:
        raise ValueError(
            f"the data set has hard negatives already ({', '.join(taken)}); to replace them, remove them first: "
            f"dataset.remove_columns({taken})."
        )


def _check_texts(name: str, texts: Sequence[str | None]) -> None:
    if not texts:
        raise ValueError("hard negatives need pairs to choose from: got an empty data set.")
    if None in texts:
        row = texts.index(None)
        raise ValueError(f"expected text in every row, got None in row {row} of the column {name}; drop such rows.")


def _check_prompts(prompts: str | Mapping[str, str] | None, columns: Sequence[str]) -> None:
    if prompts is None or isinstance(prompts, str):
        return
    unknown = [name for name in prompts if name not in columns]
    if unknown:
        raise ValueError(f"prompts must be for columns of the data ({', '.join(columns)}): got {', '.join(unknown)}.")


def _prompt_of(column: str, prompts: str | Mapping[str, str] | None) -> str | None:
    """Return the prompt of a column: ``None`` is the model's own, and a column that a mapping lacks has none."""
    if prompts is None or isinstance(prompts, str):
        return prompts
    return prompts.get(column, "")
