"""Files of scored pairs, as ``st-xling mine``, ``score`` and ``align-documents`` write them: read, shown, checked.

A mined file carries the threshold that its pairs reach, next to each pair or in the header of TMX, so that it tells how
it was cut after any copy, division or sort. A line of comment would be shorter, but pandas, ``datasets`` and pyarrow
take it for a row. Other files of scores are judged by these: a ratio margin below 1, or a distance below 0, means that
two sentences are less similar than they are, on average, to their neighbors. Without a threshold such pairs are a fifth
to a third of a file of few translations; any sensible threshold is above.
"""

from __future__ import annotations

import heapq
import logging
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from st_xling.data.check import FaultLog, iter_lines, numbered_lines
from st_xling.data.formats import FORMATS, json_objects, open_parquet
from st_xling.data.tmx import header_property, translation_units, unit_texts
from st_xling.utils.file_endings import JSON_ENDINGS, KEYED_ENDINGS
from st_xling.utils.options import check_number
from st_xling.utils.score_histogram import ScoreHistogram
from st_xling.utils.text import (
    SCORED_COLUMNS,
    THRESHOLD,
    ParallelTextError,
    home_path,
    is_scored_header,
    unescape_cell,
    unpacked_ending,
)

logger = logging.getLogger(__name__)

#: Share of pairs below the mean of their neighbors from which on a file is taken for one without a threshold.
UNCUT_SHARE = 0.1


class ScoredPair(NamedTuple):
    """A pair with its score.

    Attributes:
        score: NaN where the pair has none.
        source: Source text.
        target: Target text.
        margin: Margin score, where ``score`` is a cross-encoder's; otherwise ``None``.
    """

    score: float
    source: str
    target: str
    margin: float | None = None


def read_scored(path: str | Path) -> Iterator[ScoredPair]:
    """Read scored pairs: TSV with the columns of ``mine``, JSON or Parquet with ``score``, TMX with that property.

    Args:
        path: The file, plain or packed; TSV unless its name ends in ``.jsonl``, ``.ndjson``, ``.json``, ``.parquet`` or
            ``.tmx``.

    Raises:
        ParallelTextError: If the pairs have no scores, or for all faulty lines together.
        FileNotFoundError: If there is no such file; the message names the nearest one.
    """
    faults = FaultLog(can_skip=False, what="scored pairs")
    ending = unpacked_ending(path)
    if ending == ".tmx":
        yield from _tmx_pairs(path, faults)
    elif ending in KEYED_ENDINGS:
        yield from _keyed_pairs(path, faults)
    else:
        yield from _tsv_pairs(path, faults)
    faults.check()


def _tsv_pairs(path: str | Path, faults: FaultLog) -> Iterator[ScoredPair]:
    lines = numbered_lines(path, faults)
    _, header = next(lines, (1, ""))
    names = header.split("\t")
    if not is_scored_header(names):
        raise _without_scores(path, f"the columns {', '.join(SCORED_COLUMNS)}", header[:80] or "an empty file")
    margin_index = names.index("margin") if "margin" in names else None
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(names):
            faults.add(path, number, "wrong column count", f"expected {len(names)}, got {len(cells)}")
            continue
        score = _read_number(cells[0])
        if score is None:
            faults.add(path, number, "no number", f"expected a score, got {cells[0]!r}")
            continue
        margin = None if margin_index is None else _read_number(cells[margin_index])
        yield ScoredPair(score, unescape_cell(cells[3]), unescape_cell(cells[4]), margin)


def _keyed_pairs(path: str | Path, faults: FaultLog) -> Iterator[ScoredPair]:
    for number, row in FORMATS[unpacked_ending(path)](path, faults):
        assert isinstance(row, Mapping)
        source = row.get("source")
        target = row.get("target")
        if number == 1 and "score" not in row:
            raise _without_scores(path, "a key 'score'", f"the keys {', '.join(row)}"[:80])
        # mine writes null for a score that is not finite.
        has_null = "score" in row and row["score"] is None
        score = math.nan if has_null else _json_number(row.get("score"))
        if score is None or not isinstance(source, str) or not isinstance(target, str):
            faults.add(path, number, "wrong values", "expected a score, a source and a target")
            continue
        yield ScoredPair(score, source, target, _json_number(row.get("margin")))


def _tmx_pairs(path: str | Path, faults: FaultLog) -> Iterator[ScoredPair]:
    for number, unit in translation_units(path):
        scores = [entry.text for entry in unit.iterfind("{*}prop") if entry.get("type") == "score"]
        if number == 1 and not scores:
            raise _without_scores(path, "units with a property 'score'", "a unit without")
        score = _read_number(scores[0] or "") if scores else None
        texts = unit_texts(unit)
        if score is None or len(texts) != 2 or None in texts:
            faults.add(path, number, "wrong unit", "expected a score and two texts")
            continue
        yield ScoredPair(score, str(texts[0]), str(texts[1]))


def _without_scores(path: str | Path, expected: str, got: str) -> ParallelTextError:
    return ParallelTextError(
        f"{path}: expected scored pairs, with {expected}, as st-xling mine and score write them, got {got!r}; to score "
        f"pairs: st-xling score {path}"
    )


def _read_number(text: str) -> float | None:
    """Return the number that a text spells; ``None`` if it spells none."""
    try:
        return float(text)
    except ValueError:
        return None


def _json_number(value: Any) -> float | None:
    """Return a number of JSON; ``None`` for anything else, or a whole number beyond the range of floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


class Inspection(NamedTuple):
    """How the scores of a file are distributed, and some of its pairs.

    Attributes:
        histogram: Of all scores.
        above: Pairs that score just as much as a score, or more, best first.
        below: Pairs that score just less, best first.
    """

    histogram: ScoreHistogram
    above: list[ScoredPair]
    below: list[ScoredPair]


def inspect_scores(pairs: Iterable[ScoredPair], *, around: float | None = None, size: int = 10) -> Inspection:
    """Count the scores of pairs, and find those nearest to a score; memory grows by 8 bytes a pair.

    Args:
        pairs: Pairs, in any order.
        around: A score; no pairs are returned without it.
        size: Number of pairs, half of them on either side, more where the other side has fewer.

    Raises:
        ValueError: For a size below 1, or a score that is not a number.
    """
    check_number("around", around)
    check_number("size", size, least=1)
    scores = array("d")
    # Heaps whose root is the pair farthest from the score; numbers keep ties in the order of the file.
    above: list[tuple[float, int, ScoredPair]] = []
    below: list[tuple[float, int, ScoredPair]] = []
    for number, pair in enumerate(pairs):
        scores.append(pair.score)
        if around is None or not math.isfinite(pair.score):
            continue
        if pair.score >= around:
            heap = above
            entry = (-pair.score, number, pair)
        else:
            heap = below
            entry = (pair.score, -number, pair)
        if len(heap) < size:
            heapq.heappush(heap, entry)
        elif entry > heap[0]:
            heapq.heapreplace(heap, entry)
    best_above = [pair for *_, pair in sorted(above, key=lambda entry: entry[:2])]
    best_below = [pair for *_, pair in sorted(below, key=lambda entry: entry[:2], reverse=True)]
    half = size // 2
    shown_above = max(size - half, size - len(best_below))
    shown_below = max(half, size - len(best_above))
    # Those above the score are nearest to it at the end of their list.
    nearest_above = best_above[len(best_above) - min(shown_above, len(best_above)) :]
    return Inspection(ScoreHistogram.of(scores), nearest_above, best_below[:shown_below])


def warn_of_uncut(path: str | Path) -> None:
    """Warn if a file of mined pairs was mined without a threshold, or seems so; other files are not read.

    Args:
        path: A file, a folder of files, or anything that is none.
    """
    file = home_path(path)
    if file.is_dir():
        for child in sorted(file.iterdir()):
            if child.is_file():
                warn_of_uncut(child)
        return
    if not file.is_file() or not _looks_scored(file):
        return
    try:
        threshold = _recorded_threshold(file)
        margins = [pair.score if pair.margin is None else pair.margin for pair in read_scored(file)]
    except (ParallelTextError, ElementTree.ParseError):
        return  # the reader of the training text names the faults
    finite = [margin for margin in margins if math.isfinite(margin)]
    if not finite:
        return
    # Ratios are around 1, distances around 0. Cosines, and the scores of alignments, are never above 1.
    lowest = min(finite)
    highest = max(finite)
    neutral = 1.0 if highest > 1 else 0.0
    low = 0
    if lowest < neutral < highest:
        low = sum(margin < neutral for margin in finite)
    is_uncut = threshold is not None and math.isnan(threshold)
    if not is_uncut and low < max(1, UNCUT_SHARE * len(finite)):
        return

    facts = "was mined without a threshold" if is_uncut else "seems to have been mined without a threshold"
    if threshold is not None and not is_uncut:
        facts = f"was mined with the low threshold {threshold:g}"
    if low:
        facts += (
            f": {low:,} of {len(finite):,} pairs score below {neutral:g}, which is less similar than their neighbors, "
            "so that they and many others are probably wrong"
        )
    else:
        facts += f": all {len(finite):,} pairs are in it, right or wrong"
    logger.warning(
        "%s %s. Mine again with a threshold (--threshold X, or --calibrate known.tsv); to look at them: st-xling pairs "
        "%s --around X",
        path,
        facts,
        path,
    )


def _recorded_threshold(path: Path) -> float | None:
    """Return the threshold that a mined file carries, NaN if all pairs were kept; ``None`` if it carries none."""
    ending = unpacked_ending(path)
    if ending == ".tmx":
        text = header_property(path, THRESHOLD)
        return None if text is None else _read_number(text)

    faults = FaultLog(skip_bad_lines=True)
    if ending in KEYED_ENDINGS:
        _, row = next(FORMATS[ending](path, faults), (0, {}))
        if not isinstance(row, Mapping) or THRESHOLD not in row:
            return None
        return math.nan if row[THRESHOLD] is None else _json_number(row[THRESHOLD])
    lines = (line.split("\t") for _, line in numbered_lines(path, faults))
    names = next(lines, [])
    cells = next(lines, [])
    if THRESHOLD not in names or len(cells) != len(names):
        return None
    return _read_number(cells[names.index(THRESHOLD)])


def _looks_scored(path: Path) -> bool:
    """Return whether the beginning of a file is that of scored pairs."""
    ending = unpacked_ending(path)
    try:
        if ending == ".tmx":
            unit = next((unit for _, unit in translation_units(path)), None)
            return unit is not None and any(entry.get("type") == "score" for entry in unit.iterfind("{*}prop"))
        if ending == ".parquet":
            with open_parquet(path) as file:
                return {"score", "source", "target"} <= {*file.schema_arrow.names}
        if ending in JSON_ENDINGS:
            _, row = next(json_objects(path, FaultLog(skip_bad_lines=True)), (0, {}))
            return {"score", "source_ids", "target_ids"} <= row.keys()
        first_line = next(iter_lines(path, FaultLog()), None) or ""
        return is_scored_header(first_line.split("\t"))
    except (ValueError, OSError, RecursionError):
        return False
