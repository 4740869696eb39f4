"""Score the pairs of a parallel corpus, to filter it."""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_xling.data.check import Fault, FaultLog
from st_xling.data.line_ids import check_no_ids
from st_xling.data.locations import find_spec_source
from st_xling.data.pair_source import PairReader
from st_xling.data.pairs import COLUMNS
from st_xling.data.spec import parse_data_spec
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import FilterOptions, PairFilters, RejectedPair, identify_languages
from st_xling.mining.margins import pair_scorer
from st_xling.mining.options import EncodingOptions, SearchOptions
from st_xling.mining.pipeline.rescore import PairRescorer, load_reranker
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    SideLanguages,
    WritePair,
    counted,
    embed_distinct,
    neighbor_search,
    on_default_device,
    open_work,
    pair_writer,
    resolve_format,
    search_name,
    search_task,
    sign_pairs,
    text_encoder,
    write_checked,
)
from st_xling.mining.text import summarize
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.mining.vectors import vectors_from
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import PairFormat, check_number, helpful_arguments
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
        lines = [f"{self.pairs:,} pairs, {self.below:,} below the threshold"]
        if self.faulty:
            lines.append(f"skipped as faulty: {counted(self.faulty)}")
        lines += super().lines()
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
    search: SearchOptions = SearchOptions(),
    encoding: EncodingOptions = EncodingOptions(),
    threshold: float | None = None,
    filters: FilterOptions | None = None,
    rescore: Any = None,
    rescore_threshold: float | None = None,
    rejects: Output | None = None,
    format: PairFormat | None = None,
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
        model: Encoder of sides without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, ``.npy`` file or array with a row for each pair.
        target_embeddings: The same for the targets.
        search: How neighbors are searched, and how pairs are scored; the pairs are given, so that its retrieval is not
            used.
        encoding: How the sentences are embedded; its device and engine also search.
        threshold: Minimum score of the kept pairs; all are kept by default.
        filters: Enabled filters; none by default, so that every pair has its score. Languages that are not given are
            those of the corpus, if they are known. Only pairs that reach the threshold are checked.
        rescore: A cross-encoder of one label, or the Hub id or folder of one, that scores the pairs that pass again,
            source first. Their score is then this one, after its activation, and the margin is another column.
        rescore_threshold: Minimum score of the cross-encoder; other pairs are rejected with the reason ``rescore``. By
            default the threshold that a filter was saved with (``st-xling train filter``), and none of another
            cross-encoder.
        rejects: File for faulty lines and the pairs that filters reject, as JSON lines; or a binary stream.
        format: ``"tsv"``, ``"jsonl"``, or ``"tmx"``, whose languages are those of ``filters``, of the corpus, or
            identified; by default that of the ending of ``out``, otherwise TSV.
        work: Work folder, which is kept at the end, to try other thresholds or filters; by default ``OUT.work``, or for
            a stream a temporary one, which are removed.
        progress: Show progress bars on stderr.

    Returns:
        Metrics and signature.

    Raises:
        ValueError: For options out of range, a corpus without pairs, faulty lines with embeddings, which have a row for
            each line, embeddings of other texts or of two models, ``k`` above the number of distinct sentences, or a
            work folder of another task.
        OSError: For a full disk; the work is kept.
    """
    check_number("threshold", threshold)
    check_number("rescore_threshold", rescore_threshold)
    if rescore is None and rescore_threshold is not None:
        raise ValueError("rescore_threshold needs rescore (--rescore): the cross-encoder that it is for.")
    precomputed = {"source": source_embeddings, "target": target_embeddings}
    inputs = [pairs, name_of(model), *precomputed.values(), rescore]
    check_outputs({"out": out, "rejects": rejects}, inputs, folders={"work": work_path(out, work)})
    encoding = on_default_device(encoding)

    # Read the corpus, and raise for all that can be known to be wrong before anything is embedded.
    corpus = _read_corpus(str(pairs), progress=progress)
    corpus.check(has_embeddings=source_embeddings is not None or target_embeddings is not None)
    filters = _with_languages(filters or FilterOptions(disable=["all"]), corpus.languages)
    named_languages = (filters.source_language, filters.target_language)
    format = resolve_format(format, out)
    filters, written_languages = _check_languages(corpus, filters, format)
    distinct = corpus.distinct()
    summary = summarize(chain.from_iterable(zip(*corpus.sides)))
    rescorer = None
    if rescore is not None:
        rescorer = PairRescorer(*load_reranker(rescore, encoding.device), rescore_threshold)
    providers, _ = vectors_from(
        text_encoder(model, encoding),
        precomputed,
        dict.fromkeys(precomputed, len(corpus.table)),
        languages=dict(zip(precomputed, named_languages)),
    )
    task = search_task("score", distinct, {"pairs": summary}, providers, search)

    pairs_file = f"pairs.{format}"
    with open_work(out, work, task, {pairs_file: out, REJECTS: rejects}) as folder:
        embeddings, search = embed_distinct(distinct, providers, folder.path, search, progress=progress)
        find_neighbors = neighbor_search(search, encoding, progress=progress)
        state_folder = folder.path / search_name(search.method)
        neighbors = find_neighbors(*embeddings, k=search.k, state_folder=state_folder)
        scores_of = pair_scorer(*embeddings, *neighbors, search.margin)
        pair_filters = PairFilters(filters)
        with (
            atomic_writer(folder.path / REJECTS) as log,
            atomic_writer(folder.path / pairs_file) as stream,
            pair_writer(stream, format, languages=written_languages, margins=rescorer is not None) as write,
        ):
            for fault in corpus.faults:
                log.write(_fault_as_json(fault))
            rows_of = (distinct["source"].place_of, distinct["target"].place_of)
            scores, kept = _write_scored(
                corpus, rows_of, scores_of, threshold, pair_filters, write, log, rescorer, progress=progress
            )
        threshold_text = "none" if threshold is None else f"{threshold:g}"
        rejected = dict(pair_filters.rejected)
        rescoring = []
        if rescorer is not None:
            rejected |= rescorer.rejected
            rescoring.append(f"rescore:{rescorer.model}")
            if rescorer.threshold is not None:
                rescoring.append(f"rescore_threshold:{rescorer.threshold:g}")
        signature = sign_pairs(
            "score",
            providers,
            f"margin:{search.margin}",
            f"k:{search.k}",
            f"method:{search.method}",
            f"filters:{pair_filters.signature}",
            f"threshold:{threshold_text}",
            *rescoring,
            "duplicates:merged",
            f"pairs:{corpus.name}@{summary.sha256[:8]}",
        )
        languages = (
            filters.source_language or written_languages[0],
            filters.target_language or written_languages[1],
        )
        return _report(corpus, scores, kept, threshold, rejected, languages, signature)


def _report(
    corpus: _Corpus,
    scores: np.ndarray,
    kept: int,
    threshold: float | None,
    rejected: dict[str, int],
    languages: SideLanguages,
    signature: str,
) -> ScoreReport:
    """Return the metrics of a run.

    Args:
        corpus: The pairs.
        scores: Scores of all pairs.
        kept: Number of written pairs.
        threshold: Minimum score of the kept pairs.
        rejected: Number of pairs that filters rejected, per reason.
        languages: Languages of source and target.
        signature: Signature of the run.
    """
    highest = float(scores.max())
    best = None
    if threshold is not None and -math.inf < highest < threshold:
        best = highest
    return ScoreReport(
        pairs=len(corpus.table),
        faulty=corpus.fault_counts,
        kept=kept,
        below=len(corpus.table) - kept - sum(rejected.values()),
        best=best,
        threshold=threshold,
        histogram=ScoreHistogram.of(scores, threshold),
        rejected=rejected,
        source_language=languages[0],
        target_language=languages[1],
        signature=signature,
    )


@dataclass(frozen=True)
class _Corpus:
    """Pairs of a corpus.

    Attributes:
        spec: The corpus, as the user named it.
        table: Memory-mapped columns ``line``, ``source`` and ``target``.
        faults: Faulty lines, one fault a line.
        name: Names of the files, or of the data set.
        languages: Languages of source and target, if they are known and the same in all files.
    """

    spec: str
    table: pa.Table
    faults: list[Fault]
    name: str
    languages: SideLanguages

    @property
    def sides(self) -> tuple[_Side, _Side]:
        """Texts of source and target."""
        return _Side(self.table, "source", self.spec), _Side(self.table, "target", self.spec)

    @property
    def fault_counts(self) -> dict[str, int]:
        """Number of faulty lines per reason."""
        return dict(Counter(map(_reason, self.faults)))

    def distinct(self) -> dict[str, UniqueSentences]:
        """Return the distinct sentences of each side."""
        source, target = self.sides
        return {
            "source": UniqueSentences(source, f"the source side of {self.spec}"),
            "target": UniqueSentences(target, f"the target side of {self.spec}"),
        }

    def samples(self) -> tuple[list[str], list[str]]:
        """Return some sources and targets, at equal distances."""
        step = 1 + len(self.table) // _SAMPLED_PAIRS
        source, target = self.sides
        return source[::step], target[::step]

    def check(self, *, has_embeddings: bool) -> None:
        """Raise ``ParallelTextError`` if there are no pairs, or faulty lines that have embeddings."""
        skipped = "no faulty lines"
        if self.faults:
            skipped = f"{counted(self.fault_counts)}, such as {self.faults[0]}"
        if not len(self.table):
            raise ParallelTextError(f"expected at least one pair, got none in {self.spec}: {skipped}")
        if self.faults and has_embeddings:
            raise ParallelTextError(
                f"embeddings have a row for each line, so that none can be skipped: got {skipped}; fix these lines, or "
                "embed with the model."
            )


def _with_languages(filters: FilterOptions, languages: SideLanguages) -> FilterOptions:
    """Return filters with the languages of the corpus, if none is named."""
    if filters.source_language is not None or filters.target_language is not None:
        return filters
    source_language, target_language = languages
    return replace(filters, source_language=source_language, target_language=target_language)


def _check_languages(
    corpus: _Corpus, filters: FilterOptions, format: PairFormat
) -> tuple[FilterOptions, SideLanguages]:
    """Check that both sides are text in the named languages.

    Returns:
        The filters with the languages of both sides, named or identified; and the languages that are written.

    Raises:
        ValueError: For sides that begin with ids, or are in other languages; for TMX also if a language is unknown.
    """
    source, target = corpus.sides
    source_sample, target_sample = corpus.samples()
    check_no_ids(source_sample, f"the source side of {corpus.spec}")
    check_no_ids(target_sample, f"the target side of {corpus.spec}")
    check_text_languages(filters, source, target)
    written_languages: SideLanguages = (filters.source_language, filters.target_language)
    if format == "tmx":
        written_languages = named_or_found(written_languages, [None, None], [source, target])
    return identify_languages(filters, source_sample, target_sample), written_languages


def _write_scored(
    corpus: _Corpus,
    distinct_rows: tuple[np.ndarray, np.ndarray],
    scores_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    threshold: float | None,
    filters: PairFilters,
    write: WritePair,
    log: IO[bytes],
    rescorer: PairRescorer | None,
    *,
    progress: bool,
) -> tuple[np.ndarray, int]:
    """Score the pairs in blocks, and write those that reach the threshold and pass the filters.

    Args:
        corpus: The pairs.
        distinct_rows: Row of each pair's source and target among the distinct sentences. *Shape:* ``(pairs,)``
        scores_of: Returns the scores of pairs of such rows.
        threshold: Minimum score of the kept pairs.
        filters: Enabled filters.
        write: Writes a pair.
        log: Stream for rejected pairs.
        rescorer: Scores the pairs again that are written otherwise; ``None``: their margin is their score.
        progress: Show a bar on stderr.

    Returns:
        Scores of all pairs, *shape* ``(pairs,)``, and the number of those that were written.
    """
    source_rows, target_rows = distinct_rows
    scores = np.empty(len(corpus.table))
    kept = 0
    start = 0
    for batch in progress_bar(corpus.table.to_batches(_LINES_AT_ONCE), desc="writing", unit="blocks", show=progress):
        stop = start + len(batch)
        block_scores = scores_of(source_rows[start:stop], target_rows[start:stop])
        scores[start:stop] = block_scores
        start = stop
        reaches = np.ones(len(batch), dtype=bool) if threshold is None else block_scores >= threshold
        lines, sources, targets = batch.filter(pa.array(reaches)).columns
        ids = [[str(line)] for line in lines.to_pylist()]
        texts = (sources.to_pylist(), targets.to_pylist())
        kept += write_checked(block_scores[reaches], (ids, ids), texts, filters, write, log, rescorer)
    return scores, kept


def _read_corpus(spec: str, *, progress: bool) -> _Corpus:
    """Read a corpus of any form of ``--data`` into a memory-mapped file."""
    parsed = parse_data_spec(spec)
    if parsed.sample.size is not None or parsed.is_phrasebook:
        raise ValueError(f"expected a whole corpus, without ?size, got {spec}.")
    source = find_spec_source(parsed, stream=True, default_ending=".tsv")
    source = source.with_every_label()  # embeddings have a row for each line
    faults: list[Fault] = []
    with tempfile.TemporaryDirectory(prefix="st-xling-", ignore_cleanup_errors=True) as folder:
        path = str(Path(folder) / "pairs.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
            for reader in source.parts:
                for table in _read_tables(reader, spec, faults, progress=progress):
                    for batch in filter(len, table.to_batches(_LINES_AT_ONCE)):
                        writer.write_batch(batch)
        # What is mapped stays readable after its file is removed.
        table = pa.ipc.open_file(pa.memory_map(path)).read_all()
    name = ",".join(Path(file).name for file in source.files) or source.where
    language_pairs = {reader.layout.languages for reader in source.parts}
    known_languages: SideLanguages = (None, None)
    if len(language_pairs) == 1:
        source_language, target_language = language_pairs.pop()
        known_languages = (
            None if source_language == UNKNOWN else source_language,
            None if target_language == UNKNOWN else target_language,
        )
    return _Corpus(spec, table, faults, name, known_languages)


def _read_tables(reader: PairReader, spec: str, faults: list[Fault], *, progress: bool) -> Iterator[pa.Table]:
    """Yield the pairs of a file without faulty lines, whose faults are added to ``faults``."""
    # Hard negatives are not used; what follows the first two of tab-separated cells is anything.
    width = None if ".tsv" in reader.rows.args else reader.layout.width
    reader = reader._replace(layout=reader.layout._replace(keys=reader.layout.keys[:2], width=width))
    log = FaultLog(skip_bad_lines=True)
    for table in progress_bar(reader.tables(log, COLUMNS), desc="reading", unit="blocks", show=progress):
        log.check()
        first_faults: dict[int | None, Fault] = {}
        for fault in log.faults:
            first_faults.setdefault(fault.line, fault)
        faults += sorted(first_faults.values(), key=lambda fault: fault.line or 0)
        log.faults.clear()
        chars = pc.max_element_wise(pc.utf8_length(table["source"]), pc.utf8_length(table["target"]))
        is_longer = pc.greater(chars, MOST_CHARS)
        long_lines = table["line"].filter(is_longer).to_pylist()
        for line, count in zip(long_lines, chars.filter(is_longer).to_pylist()):
            faults.append(Fault(spec, line, "too long", f"{count:,} characters"))
        yield table.select(_SCHEMA.names).filter(pc.invert(is_longer))
    log.finalize()  # the faults are the caller's: notes are left


def _reason(fault: Fault) -> str:
    """Return the reason code of a fault."""
    return re.sub(r"\W+", "_", fault.kind.lower())


def _fault_as_json(fault: Fault) -> bytes:
    """Return the line of a fault in the file of rejects."""
    pair = RejectedPair(_reason(fault), fault.detail or None, math.nan, -1, -1, None, None)
    ids = [str(fault.line)]
    return pair.as_json(ids, ids)


class _Side(Sequence[str]):
    """One side of the pairs."""

    def __init__(self, table: pa.Table, side: str, spec: str) -> None:
        self._texts = table[side]
        self._lines = table["line"]
        self._spec = spec

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        for chunk in self._texts.chunks:
            yield from chunk.to_pylist()

    def __getitem__(self, row: Any) -> Any:
        return self._texts[row].to_pylist() if isinstance(row, slice) else self._texts[row].as_py()

    def place(self, row: int) -> str:
        """Return corpus and line of a pair."""
        return f"{self._spec}:{self._lines[row].as_py()}"
