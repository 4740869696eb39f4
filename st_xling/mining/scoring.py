"""A file of pairs in, a score for each out: for filtering a parallel corpus."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from st_xling._version import __version__
from st_xling.mining.cosines import Embeddings
from st_xling.mining.deliver import Output, check_outputs, deliver, work_folder
from st_xling.mining.distinct_text import DistinctText
from st_xling.mining.find import check_search, find_neighbours
from st_xling.mining.guarded import check_guards, guard_signature, split_rows
from st_xling.mining.guards import REASONS, CandidateBatch, GuardOptions, NeighbourCounts, PairGuards, RejectsFile
from st_xling.mining.margins import margin_scores
from st_xling.mining.neighbours import Neighbours
from st_xling.mining.pair_files import check_pair_format
from st_xling.mining.pair_lines import PairColumn, PairLines
from st_xling.mining.side import Side, pair_cosines
from st_xling.mining.side_vectors import distinct_vectors, search_task
from st_xling.mining.text_embeddings import EncodeOptions, vectors_from
from st_xling.mining.written_whole import written_whole

_AT_ONCE = 8192
_REJECTS = "rejects.jsonl"

#: No guards: a score for every line.
NO_GUARDS = GuardOptions().with_flags(off=["all"])


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """Figures of one run.

    Attributes:
        pairs: Lines of the file.
        kept: Lines that were written.
        below: Lines below the threshold, those without a score among them.
        rejected: Lines that guards turned down, by reason code.
        signature: One line that says what was done with what.
    """

    pairs: int
    kept: int
    below: int
    rejected: dict[str, int]
    signature: str

    def as_dict(self) -> dict[str, Any]:
        figures = asdict(self)
        del figures["signature"]
        return figures

    def lines(self) -> list[str]:
        """The figures for a reader."""
        lines = [f"{self.pairs:,} pairs, {self.below:,} below the threshold"]
        if self.rejected:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items())
            lines.append(f"turned down by guards: {reasons}")
        return lines


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
            options=EncodeOptions(batch_size=batch_size, dtype=dtype, prompt=prompt, device=device),
        )
        task = search_task("score", {"pairs": lines.sha256}, makers, k=k, method=method)
        folder = stack.enter_context(work_folder(out, work, task))
        sides = [
            _Side(name, column, DistinctText(column, f"the {name} side of {pairs}", column.blank_rows))
            for name, column in zip(("source", "target"), lines.sides)
        ]
        embeddings = distinct_vectors(sides, makers, k, folder.path, progress=progress)
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
        scores = _scores(embeddings, places, found, margin)
        judge = PairGuards(guards, counts=NeighbourCounts.of(*found))
        made = folder.path / f"pairs.{format}"
        with written_whole(made) as stream, RejectsFile(folder.path / _REJECTS) as file:
            least = -np.inf if threshold is None else threshold
            bar = tqdm(total=len(lines), desc="writing", unit=" pairs", disable=not progress)
            with bar:
                kept = _write(lines, scores, places, judge, least, stream, file, format, bar)
        deliver(made, out)
        if rejects is not None:
            deliver(folder.path / _REJECTS, rejects)
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


def _scores(
    embeddings: tuple[Embeddings, Embeddings],
    places: tuple[np.ndarray, np.ndarray],
    found: tuple[Neighbours, Neighbours],
    margin: str,
) -> np.ndarray:
    """Margin score of each line, minus infinity for one with a blank side. *Shape:* ``(lines,)``"""
    cpu = torch.device("cpu")
    source, target = (Side(side, "embeddings", cpu) for side in embeddings)
    means = [side.means for side in found]
    scores = np.full(len(places[0]), -np.inf)
    whole = np.flatnonzero((places[0] >= 0) & (places[1] >= 0))
    for start in range(0, len(whole), _AT_ONCE):
        rows = whole[start : start + _AT_ONCE]
        ones, others = places[0][rows], places[1][rows]
        cosines = pair_cosines(source, target, torch.from_numpy(ones), torch.from_numpy(others)).numpy()
        scores[rows] = margin_scores(cosines, means[0][ones], means[1][others], margin=margin)
    return scores


def _write(
    lines: PairLines,
    scores: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    judge: PairGuards,
    least: float,
    stream: IO[bytes],
    rejects: RejectsFile,
    format: str,
    bar: Any,
) -> int:
    """Write the lines that stay; how many those are."""
    kept = 0
    raws: Iterator[bytes] = lines.lines()
    columns = [side.column for side in lines.sides]
    for start in range(0, len(lines), _AT_ONCE):
        block = list(islice(raws, _AT_ONCE))
        cells = [raw.decode("utf-8").split("\t") for raw in block]
        sources, targets = ([line[column] for line in cells] for column in columns)
        some = slice(start, start + len(block))
        stays = scores[some] >= least
        # A line without a score is no pair that a guard could judge.
        rows = np.flatnonzero(stays & np.isfinite(scores[some]))
        if judge.guards and len(rows):
            batch = CandidateBatch(sources, targets, scores[some], places[0][some], places[1][some]).select(
                rows.tolist()
            )
            allowed, rejected = split_rows(judge, batch)
            for row, reject in zip((rows[~allowed] + start + 1).tolist(), rejected, strict=True):
                rejects.write(reject, source_ids=[str(row)], target_ids=[str(row)])
            stays[rows[~allowed]] = False
        for row in np.flatnonzero(stays).tolist():
            stream.write(_line(float(scores[start + row]), block[row], sources[row], targets[row], format))
        kept += int(stays.sum())
        bar.update(len(block))
    return kept


def _line(score: float, raw: bytes, source: str, target: str, format: str) -> bytes:
    if format == "tsv":
        return repr(score).encode() + b"\t" + raw + b"\n"
    record = {"score": score if math.isfinite(score) else None, "source": source, "target": target}
    return json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n"
