"""The lines of a parallel file with their scores, written as they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import numpy as np
import torch

from st_xling.mining.guards import CandidateBatch, PairGuards, RejectsFile
from st_xling.mining.margins import margin_scores
from st_xling.mining.neighbours import Neighbours
from st_xling.mining.pipeline.guarded_pairs import split_rows
from st_xling.mining.search.side import Side, pair_cosines
from st_xling.mining.text import PairLines
from st_xling.utils.cosines import Embeddings

_AT_ONCE = 8192


def line_scores(
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


def write_scored(
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
