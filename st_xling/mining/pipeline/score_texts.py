"""A file of pairs in, a score for each out: for filtering a parallel corpus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.mining.deduplication import DistinctText
from st_xling.mining.find import choose_method
from st_xling.mining.guards import GuardOptions, NeighbourCounts, PairGuards, RejectsFile
from st_xling.mining.pipeline.options import PairOptions
from st_xling.mining.pipeline.pair_files import REJECTS
from st_xling.mining.pipeline.run_report import run_signature
from st_xling.mining.pipeline.score_report import ScoreReport
from st_xling.mining.pipeline.scored_lines import line_scores, write_scored
from st_xling.mining.pipeline.side_vectors import check_sides, distinct_vectors, search_task
from st_xling.mining.text import PairColumn, PairLines
from st_xling.utils.io import atomic_writer
from st_xling.utils.work_folder import Output

#: No guards: a score for every line.
NO_GUARDS = GuardOptions().with_flags(off=["all"])


def score_texts(
    pairs: str | Path,
    out: Output,
    *,
    columns: tuple[int, int] = (0, 1),
    model: Any = None,
    source_embeddings: str | Path | None = None,
    target_embeddings: str | Path | None = None,
    dim: int = 1024,
    laser_dtype: str = "float32",
    batch_size: int = 128,
    dtype: str = "float32",
    prompt: str | None = None,
    k: int = 4,
    margin: str = "ratio",
    threshold: float | None = None,
    guards: GuardOptions = NO_GUARDS,
    rejects: str | Path | None = None,
    format: str = "tsv",
    method: str = "exact",
    engine: str = "local",
    device: str | None = None,
    memory_mib: int = 256,
    save_seconds: float = 60.0,
    work: str | Path | None = None,
    keep_work: bool = False,
    progress: bool = False,
) -> ScoreReport:
    """Score each pair of a file among neighbourhoods taken from the file itself; the order of the lines is kept.

    As :func:`~st_xling.mining.score_pairs`, except that equal sentences count as one neighbour, so that a sentence
    that occurs many times is not its own neighbourhood. A pair with a blank side, or whose ratio has no meaning, scores
    minus infinity.

    Killed and called again, it goes on; see :func:`~st_xling.mining.mine_texts`.

    Args:
        pairs: Tab-separated lines.
        out: A file, replaced if it exists, or a binary stream. TSV: the score before the line as it was; JSONL: score,
            source and target, ``null`` for minus infinity.
        columns: Where source and target are, counted from 0.
        guards: Which guards are on; none by default, so that every line has its score.
        rejects: File for the lines that guards turn down, as JSON lines; ids are line numbers.
        others: As for :func:`~st_xling.mining.mine_texts`; embeddings have a row a line.
    Returns:
        Figures and signature.
    Raises:
        ValueError: For lines with faults, and as ``mine_texts``.
        OSError: For a full disk; what was done before stays.
    """
    asked = ScoreOptions(**locals())
    asked.check()
    return _scored(asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreOptions(PairOptions):
    """All that :func:`score_texts` is asked for."""

    pairs: str | Path
    columns: tuple[int, int]

    @property
    def inputs(self) -> Sequence[Any]:
        return [self.pairs, *super().inputs]


@dataclass(frozen=True, eq=False)
class _Side:
    name: str
    text: PairColumn
    distinct: DistinctText


def _scored(asked: ScoreOptions) -> ScoreReport:
    with ExitStack() as stack:
        lines = PairLines.open(asked.pairs, columns=asked.columns)
        stack.callback(lines.close)
        makers, _ = asked.vector_makers({"source": len(lines), "target": len(lines)})
        sides = [
            _Side(name, column, DistinctText(column, f"the {name} side of {asked.pairs}", column.blank_rows))
            for name, column in zip(("source", "target"), lines.sides)
        ]
        check_sides(sides, makers, asked.k)
        task = search_task("score", {"pairs": lines.sha256}, makers, k=asked.k, method=asked.method)
        folder = stack.enter_context(asked.working(task))
        embeddings = distinct_vectors(sides, makers, folder.path, progress=asked.progress)
        method = choose_method(asked.method, asked.engine, *embeddings, progress=asked.progress)
        found = asked.find(embeddings, method, folder)
        places = sides[0].distinct.place_of, sides[1].distinct.place_of
        scores = line_scores(embeddings, places, found, asked.margin)
        judge = PairGuards(asked.guards, counts=NeighbourCounts.of(*found))
        least = -np.inf if asked.threshold is None else asked.threshold
        with atomic_writer(asked.made(folder)) as stream, RejectsFile(folder.path / REJECTS) as file:
            with tqdm(total=len(lines), desc="writing", unit=" pairs", disable=not asked.progress) as bar:
                kept = write_scored(lines, scores, places, judge, least, stream, file, asked.format, bar)
        texts = [f"pairs:{Path(asked.pairs).name}@{lines.sha256[:8]}"]
        return ScoreReport(
            pairs=len(lines),
            kept=kept,
            below=len(lines) - kept - sum(judge.rejected.values()),
            rejected=judge.rejected,
            signature=run_signature("score", asked, makers, judge, method=method, texts=texts),
        )
