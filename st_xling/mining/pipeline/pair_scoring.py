"""Score the pairs of a parallel corpus, to filter it."""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_xling.data.check import Fault, FaultLog
from st_xling.data.line_ids import check_no_ids
from st_xling.data.locations import find_source
from st_xling.data.pairs import COLUMNS
from st_xling.data.spec import parse_data_spec
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import FilterOptions, PairFilters, RejectedPair, identify_languages
from st_xling.mining.margins import pair_scorer
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    counted,
    default_device,
    embed_distinct,
    open_work,
    pair_writer,
    resolve_format,
    search_name,
    search_task,
    sign_pairs,
    write_checked,
)
from st_xling.mining.search.find import check_search, find_neighbors
from st_xling.mining.text import summarize
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.mining.vectors import vectors_from
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import Engine, Margin, PairFormat, StoreDtype, check_choice, check_number, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.score_histogram import ScoreHistogram
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar
from st_xling.utils.text import ParallelTextError

#: Longest sentence that is scored; a longer one is a fault of its line.
MOST_CHARS = 5000

_LINES_AT_ONCE = 8192
_SAMPLED_PAIRS = 400

_SCHEMA = pa.schema({"line": pa.int64(), "source": pa.string(), "target": pa.string()})


@dataclass(frozen=True, kw_only=True)
class ScoreReport(Report):
    """Metrics of one run; ``pairs`` counts all that were scored.

    Attributes:
        faulty: Number of faulty lines per reason.
        kept: Number of written pairs.
        below: Number of pairs below the threshold, including those without a score.
        threshold: Minimum score of the kept pairs; ``None`` if there was none.
        histogram: Scores of all pairs.
    """

    faulty: Mapping[str, int]
    kept: int
    below: int
    threshold: float | None
    histogram: ScoreHistogram

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        return {**super().as_dict(), "histogram": self.histogram.as_dict()}

    def lines(self) -> list[str]:
        """Describe the metrics, one a line; the last lines are a histogram of the scores and what to do about it."""
        faulty = [f"skipped as faulty: {counted(self.faulty)}"] if self.faulty else []
        lines = [f"{self.pairs:,} pairs, {self.below:,} below the threshold", *faulty, *super().lines()]
        lines += [f"scores of {self.pairs:,} pairs, best first:", *self.histogram.lines()]
        look = "Look at the pairs: st-xling pairs FILE --around X"
        if self.threshold is None:
            return [*lines, f"No threshold: all scores are kept. To drop the lowest: --threshold X. {look}"]
        kept = self.histogram.kept
        shares = f"{kept:,} of {self.pairs:,} pairs ({kept / self.pairs:.1%}) reach the threshold {self.threshold:g}"
        return [*lines, f"{shares}. {look}"]


@helpful_arguments
def score_texts(
    pairs: str | Path,
    out: Output,
    *,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    k: int = 4,
    margin: Margin = "ratio",
    threshold: float | None = None,
    filters: FilterOptions | None = None,
    rejects: Output | None = None,
    format: PairFormat | None = None,
    method: str = "exact",
    engine: Engine = "local",
    device: str | None = None,
    memory_mib: int = 256,
    work: str | Path | None = None,
    progress: bool = False,
) -> ScoreReport:
    """Score each pair of a corpus among neighborhoods taken from the corpus itself; the order is kept.

    As :func:`~st_xling.mining.score_pairs`, except that equal sentences count as one neighbor, so that a sentence that
    occurs many times is not its own neighborhood. A pair whose ratio is undefined scores minus infinity.

    Faulty lines are skipped and counted, and written to ``rejects`` before the pairs that filters reject, with their
    number and a reason: ``invalid_utf_8``, ``wrong_column_count``, ``empty_side``, ``too_long``, ``bad_json``,
    ``missing_key``, ``non_string_value``, ``unclosed_quote``.

    The text is in a temporary file; the search takes about 450 bytes of memory a pair. Repeat the same call to
    resume a killed one; see :func:`~st_xling.mining.mine_texts`.

    Args:
        pairs: A file of tab-separated lines, or any source of ``train --data`` (see
            :func:`~st_xling.data.load_data_specs`): other tables, Moses pairs, data sets of the Hub; columns are named
            by ``PATH?columns=0,1``. By default they are found by name, or are the first two of tab-separated lines
            without a header.
        out: A file, replaced if it exists, or a binary stream. Formats are those of ``mine_texts``; ids are line
            numbers. JSONL has ``null`` for minus infinity.
        model: As for ``mine_texts``.
        source_embeddings: Store, ``.npy`` file or array with a row for each pair.
        target_embeddings: The same for the targets.
        batch_size: As for ``mine_texts``.
        dtype: As for ``mine_texts``.
        prompt: As for ``mine_texts``.
        k: As for ``mine_texts``.
        margin: As for ``mine_texts``.
        threshold: Minimum score of the kept pairs; all are kept by default.
        filters: Enabled filters; none by default, so that every pair has its score. Languages that are not given are
            those of the corpus, if they are known. Only pairs that reach the threshold are checked.
        rejects: File for faulty lines and the pairs that filters reject, as JSON lines; or a binary stream.
        format: As for ``mine_texts``.
        method: As for ``mine_texts``.
        engine: As for ``mine_texts``.
        device: As for ``mine_texts``.
        memory_mib: As for ``mine_texts``.
        work: As for ``mine_texts``.
        progress: As for ``mine_texts``.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For a corpus without pairs; for faulty lines with embeddings, which have a row for each line; and as
            ``mine_texts``.
        OSError: For a full disk; the work is kept.
    """
    check_choice("margin", margin, Margin)
    check_search(method, engine)
    check_number("threshold", threshold)
    check_number("batch_size", batch_size, least=1)
    check_number("memory_mib", memory_mib, least=1)
    given = {"source": source_embeddings, "target": target_embeddings}
    inputs, folders = [pairs, name_of(model), *given.values()], {"work": work_path(out, work)}
    check_outputs({"out": out, "rejects": rejects}, inputs, folders=folders)
    device = device or default_device()
    table, faults, name, known = _read_corpus(str(pairs), progress=progress)
    faulty = Counter(map(_reason, faults))
    skipped = f"{counted(faulty)}, such as {faults[0]}" if faults else "no faulty lines"
    if not len(table):
        raise ParallelTextError(f"expected at least one pair, got none in {pairs}: {skipped}")
    if faults and not (source_embeddings is target_embeddings is None):
        raise ParallelTextError(
            f"embeddings have a row for each line, so that none can be skipped: got {skipped}; fix these lines, or "
            "embed with the model."
        )
    texts = {side: _Texts(table, side, str(pairs)) for side in given}
    filters = filters or FilterOptions(disable=["all"])
    if filters.source_language is filters.target_language is None:
        filters = replace(filters, source_language=known[0], target_language=known[1])
    spoken = filters.source_language, filters.target_language
    format = resolve_format(format, out)
    for side, text in texts.items():
        check_no_ids(text[:: 1 + len(table) // _SAMPLED_PAIRS], f"the {side} side of {pairs}")
    check_text_languages(filters, *texts.values())
    written_languages: tuple[str | None, str | None] = spoken
    if format == "tmx":
        written_languages = named_or_found(spoken, [None, None], [*texts.values()])
    filters = identify_languages(filters, *(text[:: 1 + len(table) // _SAMPLED_PAIRS] for text in texts.values()))
    distinct = {side: UniqueSentences(text, f"the {side} side of {pairs}") for side, text in texts.items()}
    summary = summarize(chain.from_iterable(zip(*texts.values())))
    encoder = None
    if model is not None:
        from st_xling.mining.encoding import Encoder  # slow to import

        encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
    languages = dict(zip(given, spoken))
    makers, _ = vectors_from(encoder, given, dict.fromkeys(given, len(table)), languages=languages)
    task = search_task("score", distinct, {"pairs": summary}, makers, k=k, method=method)
    results = {(pairs_file := f"pairs.{format}"): out, REJECTS: rejects}
    with open_work(out, work, task, results) as folder:
        embeddings, method = embed_distinct(distinct, makers, folder.path, method=method, progress=progress)
        search = partial(
            find_neighbors, method=method, engine=engine, device=device, memory_mib=memory_mib, progress=progress
        )
        forward, backward = search(*embeddings, k=k, state_folder=folder.path / search_name(method))
        pair_filters = PairFilters(filters)

        # Score the pairs in blocks, and write those that are kept.
        scores = pair_scorer(*embeddings, forward, backward, margin)
        places = [text.place_of for text in distinct.values()]
        all_scores = np.empty(len(table))
        start, kept = 0, 0
        with (
            atomic_writer(folder.path / REJECTS) as log,
            atomic_writer(folder.path / pairs_file) as stream,
            pair_writer(stream, format, languages=written_languages) as write,
        ):
            for fault in faults:
                pair = RejectedPair(_reason(fault), fault.detail or None, math.nan, -1, -1, None, None)
                log.write(pair.as_json([str(fault.line)], [str(fault.line)]))
            for batch in progress_bar(table.to_batches(_LINES_AT_ONCE), desc="writing", unit="blocks", show=progress):
                found = scores(*(column[start : start + len(batch)] for column in places))
                all_scores[start : start + len(batch)] = found
                start += len(batch)
                reaches = np.ones(len(found), dtype=bool) if threshold is None else found >= threshold
                lines, sources, targets = (column.to_pylist() for column in batch.filter(pa.array(reaches)).columns)
                ids = [[str(line)] for line in lines]
                kept += write_checked(found[reaches], (ids, ids), (sources, targets), pair_filters, write, log)
        best = float(all_scores.max())
        return ScoreReport(
            pairs=len(table),
            faulty=dict(faulty),
            kept=kept,
            below=len(table) - kept - pair_filters.rejected.total(),
            best=best if threshold is not None and -math.inf < best < threshold else None,
            threshold=threshold,
            histogram=ScoreHistogram.of(all_scores, threshold),
            rejected=dict(pair_filters.rejected),
            source_language=filters.source_language or written_languages[0],
            target_language=filters.target_language or written_languages[1],
            signature=sign_pairs(
                "score",
                makers,
                f"margin:{margin}",
                f"k:{k}",
                f"method:{method}",
                f"filters:{pair_filters.signature}",
                f"threshold:{'none' if threshold is None else f'{threshold:g}'}",
                "duplicates:merged",
                f"pairs:{name}@{summary.sha256[:8]}",
            ),
        )


def _read_corpus(spec: str, *, progress: bool) -> tuple[pa.Table, list[Fault], str, tuple[str | None, str | None]]:
    """Read a corpus.

    Returns:
        Memory-mapped columns ``line``, ``source`` and ``target``; the faults, one a line; the names of the files,
        or of the data set; and the languages of source and target, if they are known and the same in all files.
    """
    parsed = parse_data_spec(spec)
    if parsed.sample.size is not None or parsed.is_phrasebook:
        raise ValueError(f"expected a whole corpus, without ?size, got {spec}.")
    languages: Any = parsed.languages or (None, None)
    source = find_source(parsed.path_or_pair, languages, **parsed.reader_options, stream=True, default_ending=".tsv")
    source = source.with_every_label()  # embeddings have a row for each line
    found = list[Fault]()
    with tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True) as folder:
        path = str(Path(folder) / "pairs.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            for part in source.parts:
                # Hard negatives are not used; what follows the first two of tab-separated cells is anything.
                width = None if ".tsv" in part.rows.args else part.layout.width
                part = part._replace(layout=part.layout._replace(keys=part.layout.keys[:2], width=width))
                faults = FaultLog(skip_bad_lines=True)
                for table in progress_bar(part.tables(faults, COLUMNS), desc="reading", unit="blocks", show=progress):
                    faults.check()
                    # The first fault of each line.
                    found += dict(sorted({fault.line: fault for fault in reversed(faults.faults)}.items())).values()
                    faults.faults.clear()
                    chars = pc.max_element_wise(pc.utf8_length(table["source"]), pc.utf8_length(table["target"]))
                    longer = pc.greater(chars, MOST_CHARS)
                    for line, count in zip(table["line"].filter(longer).to_pylist(), chars.filter(longer).to_pylist()):
                        found.append(Fault(spec, line, "too long", f"{count:,} characters"))
                    sound = table.select(_SCHEMA.names).filter(pc.invert(longer))
                    for batch in filter(len, sound.to_batches(_LINES_AT_ONCE)):
                        writer.write_batch(batch)
                faults.finalize()  # the faults are the caller's: notes are left
        # What is mapped stays readable after its file is removed.
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    pairs = {part.layout.languages for part in source.parts}
    known = [None if code == UNKNOWN else code for code in pairs.pop()] if len(pairs) == 1 else [None, None]
    name = ",".join(Path(file).name for file in source.files) or source.where
    return table, found, name, (known[0], known[1])


def _reason(fault: Fault) -> str:
    return re.sub(r"\W+", "_", fault.kind.lower())


class _Texts(Sequence[str]):
    """One side of the pairs."""

    def __init__(self, table: pa.Table, name: str, spec: str) -> None:
        self._texts, self._lines, self._spec = table[name], table["line"], spec

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return (text for chunk in self._texts.chunks for text in chunk.to_pylist())

    def __getitem__(self, row: Any) -> Any:
        return self._texts[row].to_pylist() if isinstance(row, slice) else self._texts[row].as_py()

    def place(self, row: int) -> str:
        """Return corpus and line of a pair."""
        return f"{self._spec}:{self._lines[row].as_py()}"
