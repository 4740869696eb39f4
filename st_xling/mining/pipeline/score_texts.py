"""A file of pairs in, a score for each out: for filtering a parallel corpus."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from st_xling.mining.deduplication import DistinctText
from st_xling.mining.guards import CandidateBatch, GuardOptions, PairGuards, RejectsFile
from st_xling.mining.mine import MinedPairs
from st_xling.mining.pipeline.config import REJECTS, MiningConfig, check_vectors, reject_lines, takes_options
from st_xling.mining.score_pairs import pair_scores
from st_xling.mining.text import PairLines
from st_xling.utils.io import atomic_writer
from st_xling.utils.work_folder import Output

_LINES_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """Metrics of one run.

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
        """Metrics, as JSON can write them."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """The metrics for a reader."""
        return [f"{self.pairs:,} pairs, {self.below:,} below the threshold", *reject_lines(self.rejected)]


@takes_options(
    without=(
        *("text_format", "errors", "retrieval", "calibrate_with", "target_precision", "rescore", "rescore_threshold"),
    )
)
def score_texts(
    pairs: str | Path,
    out: Output,
    *,
    columns: tuple[int, int] = (0, 1),
    guards: GuardOptions | None = None,
    **options: Any,
) -> ScoreReport:
    """Score each pair of a file among neighbourhoods taken from the file itself; the order of the lines is kept.

    As :func:`~st_xling.mining.score_pairs`, except that equal sentences count as one neighbour, so that a sentence
    that occurs many times is not its own neighbourhood. A pair with a blank sentence, or whose ratio has no meaning,
    scores minus infinity.

    Killed and called again, it resumes; see :func:`~st_xling.mining.mine_texts`.

    Args:
        pairs: Tab-separated lines.
        out: A file, replaced if it exists, or a binary stream. TSV: the score before the line as it was; JSONL: score,
            source and target, ``null`` for minus infinity.
        columns: Where source and target are, counted from 0.
        guards: Which guards are on; none by default, so that every line has its score.
        options: As for :class:`~st_xling.mining.pipeline.config.MiningConfig`; embeddings have a row a line, ids of
            rejects are line numbers, and a threshold is a number.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For lines with faults, and as ``mine_texts``.
        OSError: For a full disk; what was done before stays.
    """
    config = MiningConfig(guards=guards or GuardOptions().with_flags(off=["all"]), **options)
    if isinstance(config.threshold, str):
        raise ValueError(f"threshold must be a number: got {config.threshold!r}; leave it out to keep every pair.")
    config.check()
    config.check_files(out, [pairs])
    with ExitStack() as stack:
        lines = PairLines(pairs, columns=columns)
        stack.callback(lines.close)
        makers, _ = config.vector_makers({"source": len(lines), "target": len(lines)})
        texts = dict(zip(("source", "target"), lines.sides))
        distinct = {
            name: DistinctText(text, f"the {name} side of {pairs}", text.blank_rows) for name, text in texts.items()
        }
        check_vectors({name: (text, distinct[name]) for name, text in texts.items()}, makers, config.k)
        folder = stack.enter_context(config.working("score", out, {"pairs": lines.sha256}, makers))
        embeddings, method = config.embed(distinct, makers, folder)
        nearest, pair_guards = config.find(embeddings, method, folder)
        sources, targets = (text.place_of for text in distinct.values())
        scores = np.full(len(lines), -np.inf)
        whole = np.flatnonzero((sources >= 0) & (targets >= 0))
        means = nearest[0].means, nearest[1].means
        scores[whole] = pair_scores(*embeddings, sources[whole], targets[whole], *means, margin=config.margin)
        with atomic_writer(config.written(folder)) as stream, RejectsFile(folder.path / REJECTS) as rejects:
            kept = _write_scored(lines, scores, (sources, targets), pair_guards, config, stream, rejects)
        return ScoreReport(
            pairs=len(lines),
            kept=kept,
            below=len(lines) - kept - sum(pair_guards.rejected.values()),
            rejected=pair_guards.rejected,
            signature=config.signature(
                "score", makers, pair_guards, method=method, texts=[f"pairs:{Path(pairs).name}@{lines.sha256[:8]}"]
            ),
        )


def _write_scored(
    lines: PairLines,
    scores: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    guards: PairGuards,
    config: MiningConfig,
    stream: Any,
    rejects: RejectsFile,
) -> int:
    """Write the lines that stay, as they are read; how many those are."""
    written = 0
    raws = lines.lines()
    columns = [text.column for text in lines.sides]
    least = -np.inf if config.number is None else config.number
    with tqdm(total=len(lines), desc="writing", unit=" pairs", disable=not config.progress) as bar:
        for start in range(0, len(lines), _LINES_AT_ONCE):
            block = list(islice(raws, _LINES_AT_ONCE))
            cells = [raw.decode("utf-8").split("\t") for raw in block]
            sources, targets = ([line[column] for line in cells] for column in columns)
            some = slice(start, start + len(block))
            stays = scores[some] >= least
            # A line without a score is no pair that a guard could look at.
            rows = np.flatnonzero(stays & np.isfinite(scores[some]))
            if guards.guards and len(rows):
                batch = CandidateBatch(MinedPairs(scores[some], places[0][some], places[1][some]), sources, targets)
                allowed, rejected = guards.check(batch.select(rows))
                for row, reject in zip((rows[~allowed] + start + 1).tolist(), rejected, strict=True):
                    rejects.write(reject, source_ids=[str(row)], target_ids=[str(row)])
                stays[rows[~allowed]] = False
            for row in np.flatnonzero(stays).tolist():
                score = float(scores[start + row])
                if config.format == "tsv":
                    stream.write(repr(score).encode() + b"\t" + block[row] + b"\n")
                    continue
                number = score if math.isfinite(score) else None
                record = {"score": number, "source": sources[row], "target": targets[row]}
                stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")
            written += int(stays.sum())
            bar.update(len(block))
    return written
