"""A file of pairs in, a score for each out: for filtering a parallel corpus."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from st_xling._version import __version__
from st_xling.mining.deliver import Output, check_outputs, deliver, work_folder
from st_xling.mining.distinct_text import DistinctText
from st_xling.mining.find import check_search, choose_method, find_neighbours
from st_xling.mining.guarded import check_guards, guard_signature
from st_xling.mining.guards import REASONS, GuardOptions, NeighbourCounts, PairGuards, RejectsFile
from st_xling.mining.margins import margin_scores
from st_xling.mining.pair_files import REJECTS, check_pair_format
from st_xling.mining.pair_lines import PairColumn, PairLines
from st_xling.mining.score_report import ScoreReport
from st_xling.mining.scored_lines import line_scores, write_scored
from st_xling.mining.side_vectors import distinct_vectors, search_task
from st_xling.mining.text_embeddings import vectors_from
from st_xling.mining.text_encoder import EncodeOptions
from st_xling.mining.written_whole import written_whole

#: No guards: a score for every line.
NO_GUARDS = GuardOptions().with_flags(off=["all"])


@dataclass(frozen=True, eq=False)
class _Side:
    name: str
    text: PairColumn
    distinct: DistinctText


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
    margin_scores(0.0, 1.0, 1.0, margin=margin)
    if threshold is not None and math.isnan(threshold):
        raise ValueError("threshold must be a number: got NaN; leave it out to keep every pair.")
    check_pair_format(format)
    check_search(method, engine)
    check_guards(guards, k)
    check_outputs(out, rejects, [pairs])
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with ExitStack() as stack:
        lines = PairLines.open(pairs, columns=columns)
        stack.callback(lines.close)
        makers, _ = vectors_from(
            model,
            {"source": source_embeddings, "target": target_embeddings},
            {"source": len(lines), "target": len(lines)},
            dim=dim,
            laser_dtype=laser_dtype,
            options=EncodeOptions(batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine),
        )
        task = search_task("score", {"pairs": lines.sha256}, makers, k=k, method=method)
        folder = stack.enter_context(work_folder(out, work, task))
        sides = [
            _Side(name, column, DistinctText(column, f"the {name} side of {pairs}", column.blank_rows))
            for name, column in zip(("source", "target"), lines.sides)
        ]
        embeddings = distinct_vectors(sides, makers, k, folder.path, progress=progress)
        method = choose_method(method, engine, *embeddings, progress=progress)
        found = find_neighbours(
            *embeddings,
            k=k,
            method=method,
            engine=engine,
            state_folder=folder.path / "search",
            device=device,
            memory_mib=memory_mib,
            progress=progress,
            save_seconds=save_seconds,
        )
        places = sides[0].distinct.place_of, sides[1].distinct.place_of
        scores = line_scores(embeddings, places, found, margin)
        judge = PairGuards(guards, counts=NeighbourCounts.of(*found))
        made = folder.path / f"pairs.{format}"
        with written_whole(made) as stream, RejectsFile(folder.path / REJECTS) as file:
            least = -np.inf if threshold is None else threshold
            bar = tqdm(total=len(lines), desc="writing", unit=" pairs", disable=not progress)
            with bar:
                kept = write_scored(lines, scores, places, judge, least, stream, file, format, bar)
        deliver(made, out)
        if rejects is not None:
            deliver(folder.path / REJECTS, rejects)
        if not keep_work:
            folder.remove()
        rejected = {reason: judge.counts[reason] for reason in REASONS if judge.counts[reason]}
        models = ",".join(dict.fromkeys(str(maker.identity or maker.name) for maker in makers.values()))
        given = "none" if threshold is None else f"{threshold:g}"
        signature = (
            f"score|model:{models}|margin:{margin}|k:{k}|method:{method}|"
            f"guards:{guard_signature(guards, list(judge.idle))}|threshold:{given}|duplicates:folded|"
            f"pairs:{Path(pairs).name}@{lines.sha256[:8]}|st-xling:{__version__}"
        )
        below = len(lines) - kept - sum(rejected.values())
        return ScoreReport(pairs=len(lines), kept=kept, below=below, rejected=rejected, signature=signature)
