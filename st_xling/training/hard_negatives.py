"""Hard negatives from the training text, mined once by the model that is going to be trained."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers.util import mine_hard_negatives

from st_xling.data.text_columns import column_texts
from st_xling.utils.io import atomic_path

logger = logging.getLogger(__name__)

LAST_RANK = 32


@dataclass(frozen=True)
class NegativeOptions:
    """Hard negatives that are mined before training: targets of other pairs that the model finds near a source.

    Attributes:
        count: Negatives of each pair; 0: none are mined.
    """

    count: int = 0


def mine_negatives(
    pairs: Any, model: Any, count: int, *, prompts: Mapping[str, str], seed: int = 0
) -> dict[str, list[str]]:
    """Mine hard negatives of each pair with ``mine_hard_negatives`` of sentence-transformers.

    They are drawn from the ranks 2 to 32 by cosine: the nearest sentence is often another translation.

    Args:
        pairs: With ``source`` and ``target``; targets of equal sources are no negatives of each other.
        model: The encoder.
        count: Negatives of each pair.
        prompts: Column → the prompt of its texts.
        seed: Of the draws.

    Returns:
        The columns ``negative_1``, ``negative_2``, …, a text for each row of ``pairs``.

    Raises:
        ValueError: A source that has fewer other targets than are to be drawn.
    """
    names = [f"negative_{number}" for number in range(1, count + 1)]
    state = random.getstate()
    random.seed(seed)  # mine_hard_negatives draws from Python's global generator
    try:
        mined = mine_hard_negatives(
            pairs.select_columns(["source", "target"]),
            model,
            range_min=1,
            range_max=LAST_RANK,
            num_negatives=count,
            sampling_strategy="random",
            query_prompt=prompts.get("source", ""),
            corpus_prompt=prompts.get("target", ""),
            output_format="n-tuple",
            verbose=False,
        )
    finally:
        random.setstate(state)
    # It returns each pair once, in another order, and leaves out sources for which it finds too few negatives.
    of_source = dict(zip(mined["source"], zip(*(mined[name] for name in names))))
    sources = list(column_texts(pairs, "source"))
    if missing := set(sources) - of_source.keys():
        raise ValueError(
            f"negatives.count must be below the number of other targets that each source has: got {count}, which is "
            f"too many for {len(missing):,} sources; lower it, or add text."
        )
    logger.info("hard negatives: %d for each pair, from the ranks 2 to %d", count, LAST_RANK)
    return {name: [of_source[source][place] for source in sources] for place, name in enumerate(names)}


def write_negatives(negatives: Mapping[str, list[str]], path: Path) -> None:
    """Write the columns as Parquet, for :func:`read_negatives`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pq.write_table(pa.table(dict(negatives)), temporary)


def read_negatives(path: Path) -> dict[str, list[str]]:
    """Read the columns that :func:`write_negatives` wrote."""
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pydict()
