"""Score the pairs of a parallel corpus, to filter it."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_xling.data.check import Fault, FaultLog
from st_xling.data.pairs import COLUMNS
from st_xling.data.read import find_source, parse_data_spec
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import (
    CandidateBatch,
    FilterOptions,
    NeighborCounts,
    PairFilters,
    RejectedPair,
    identify_languages,
)
from st_xling.mining.margins import pair_scorer
from st_xling.mining.mine import MinedPairs
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
)
from st_xling.mining.search.find import check_search, find_neighbors
from st_xling.mining.text import hash_sentence
from st_xling.mining.vectors import vectors_from
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import Engine, Margin, PairFormat, StoreDtype, check_choice
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, deliver, work_path
from st_xling.utils.signature import name_of
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
    """

    faulty: Mapping[str, int]
    kept: int
    below: int

    def lines(self) -> list[str]:
        """Describe the metrics, one a line."""
        faulty = [f"skipped as faulty: {counted(self.faulty)}"] if self.faulty else []
        return [f"{self.pairs:,} pairs, {self.below:,} below the threshold", *faulty, *super().lines()]


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
    filter_first: bool = False,
    rejects: str | Path | None = None,
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

    The text is read once into a memory-mapped table on the disk; with the search, about 450 bytes a pair are in memory.
    Repeat the same call to resume a killed one; see :func:`~st_xling.mining.mine_texts`.

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
        filter_first: Filter before anything is embedded: rejected pairs take no time of the model, have no score, and
            are no neighbors of others. The hub filter, which needs neighbors, still runs last.
        rejects: File for faulty lines and the pairs that filters reject, as JSON lines.
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
        ValueError: For a corpus without pairs; for faulty lines, or ``filter_first``, with embeddings, which have a row
            for each line; and as ``mine_texts``.
        OSError: For a full disk; the work is kept.
    """
    check_choice("margin", margin, Margin)
    check_search(method, engine)
    given = {"source": source_embeddings, "target": target_embeddings}
    has_embeddings = source_embeddings is not None or target_embeddings is not None
    if filter_first and has_embeddings:
        raise ValueError("filter_first (--filter-first) saves embedding: leave it out where embeddings are ready.")
    inputs, folders = [pairs, name_of(model), *given.values()], {"work": work_path(out, work)}
    check_outputs({"out": out, "rejects": rejects}, inputs, folders=folders)
    device = device or default_device()
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="st-xling-")))
        log = stack.enter_context((temporary / REJECTS).open("wb"))
        corpus = _read_corpus(str(pairs), temporary / "pairs.arrow", log, progress=progress)
        if corpus.faulty and has_embeddings:
            raise ParallelTextError(
                f"embeddings have a row for each line, so that none can be skipped: got {corpus.faults}; fix these "
                "lines, or embed with the model."
            )
        filters = filters or FilterOptions(disable=["all"])
        if filters.source_language is filters.target_language is None:
            filters = replace(filters, source_language=corpus.languages[0], target_language=corpus.languages[1])
        spoken = filters.source_language, filters.target_language
        languages = dict(zip(given, spoken))
        format = resolve_format(format, out, spoken)
        table, sha256 = corpus.table, corpus.sha256  # the signature has the hash of all pairs, rejected or not
        some = table.take(np.arange(0, len(table), 1 + len(table) // _SAMPLED_PAIRS))
        filters = identify_languages(filters, some["source"].to_pylist(), some["target"].to_pylist())
        early = Counter[str]()
        if filter_first:
            first = PairFilters(replace(filters, disable=[*filters.disable, "hub"]))
            table, sha256 = _filter_table(table, first, temporary / "kept.arrow", log)
            early = first.rejected
        if not len(table):
            raise ParallelTextError(f"expected at least one pair, got none in {pairs}: {corpus.faults}")
        texts = {name: _Texts(table, name, str(pairs)) for name in languages}
        distinct = {name: UniqueSentences(text, f"the {name} side of {pairs}") for name, text in texts.items()}
        encoder = None
        if model is not None:
            from st_xling.mining.encoding import Encoder  # slow to import

            encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
        makers, _ = vectors_from(encoder, given, dict.fromkeys(languages, len(table)), languages=languages)
        task = search_task("score", distinct, {"pairs": sha256}, makers, k=k, method=method)
        results = {(pairs_file := f"pairs.{format}"): out, REJECTS: rejects}
        folder = stack.enter_context(open_work(out, work, task, results))
        embeddings, method = embed_distinct(distinct, makers, folder.path, method=method, progress=progress)
        forward, backward = find_neighbors(
            *embeddings,
            k=k,
            method=method,
            engine=engine,
            device=device,
            memory_mib=memory_mib,
            state_folder=folder.path / search_name(method),
            progress=progress,
        )
        pair_filters = PairFilters(filters, counts=NeighborCounts.of(forward, backward))
        if filter_first:  # all others have run
            pair_filters.limits = {reason: limit for reason, limit in pair_filters.limits.items() if reason == "hub"}

        # Score the pairs in blocks, and write those that are kept.
        scores = pair_scorer(*embeddings, forward, backward, margin)
        places = [text.place_of for text in distinct.values()]
        start, kept, best = 0, 0, -math.inf
        stream = stack.enter_context(atomic_writer(folder.path / pairs_file))
        write = stack.enter_context(pair_writer(stream, format, languages=spoken))
        for batch in progress_bar(table.to_batches(), desc="writing", unit="blocks", show=progress):
            lines, *columns = (column.to_pylist() for column in batch.columns)
            rows = [column[start : start + len(lines)] for column in places]
            start += len(lines)
            found = MinedPairs(scores(*rows), *rows)
            best = max(best, float(found.scores.max()))
            stays = np.ones(len(lines), dtype=bool) if threshold is None else found.scores >= threshold
            # Filters cannot check a pair without a score.
            candidates = np.flatnonzero(stays & np.isfinite(found.scores))
            if pair_filters.limits and len(candidates):
                batch_of = CandidateBatch(found, *columns).select(candidates)
                stays[candidates] = _allowed(pair_filters, batch_of, [lines[row] for row in candidates.tolist()], log)
            for row in np.flatnonzero(stays).tolist():
                ids = [str(lines[row])], [str(lines[row])]
                write(float(found.scores[row]), ids, (columns[0][row], columns[1][row]), None)
            kept += int(stays.sum())
        log.close()
        deliver(temporary / REJECTS, folder.path / REJECTS)
        return ScoreReport(
            pairs=len(table) + early.total(),
            faulty=corpus.faulty,
            kept=kept,
            below=len(table) - kept - pair_filters.rejected.total(),
            best=best if threshold is not None and -math.inf < best < threshold else None,
            rejected=dict(early + pair_filters.rejected),
            signature=sign_pairs(
                "score",
                makers,
                f"margin:{margin}",
                f"k:{k}",
                *(["filter_first"] if filter_first else []),
                f"method:{method}",
                f"filters:{pair_filters.signature}",
                f"threshold:{'none' if threshold is None else f'{threshold:g}'}",
                "duplicates:merged",
                f"pairs:{corpus.name}@{corpus.sha256[:8]}",
            ),
        )


class _Corpus(NamedTuple):
    """Pairs of a corpus, and the lines that were skipped.

    Attributes:
        table: Memory-mapped columns ``line``, ``source`` and ``target``.
        name: Names of the files, or of the data set.
        sha256: Hash of the pairs.
        languages: Languages of source and target, if they are known and the same in all files.
        faulty: Number of faulty lines per reason.
        first: The first of them.
    """

    table: pa.Table
    name: str
    sha256: str
    languages: tuple[str | None, str | None]
    faulty: Mapping[str, int]
    first: Fault | None

    @property
    def faults(self) -> str:
        """Numbers of faulty lines per reason, and the first line."""
        return f"{counted(self.faulty)}, such as {self.first}" if self.first else "no faulty lines"


def _read_corpus(spec: str, path: Path, log: IO[bytes], *, progress: bool) -> _Corpus:
    """Read a corpus into a memory-mapped table; faulty lines are written to the rejects."""
    parsed = parse_data_spec(spec)
    if parsed.sample.size is not None or parsed.is_phrasebook:
        raise ValueError(f"expected a whole corpus, without ?size, got {spec}.")
    languages: Any = parsed.languages or (None, None)
    source = find_source(parsed.path_or_pair, languages, **parsed.reader_options, stream=True, other=".tsv")
    faulty, first = Counter[str](), list[Fault]()

    def report(fault: Fault) -> None:
        reason = re.sub(r"\W+", "_", fault.kind.lower())
        faulty[reason] += 1
        if not first:
            first.append(fault)
        limit, ids = MOST_CHARS if reason == "too_long" else None, [str(fault.line)]
        log.write(RejectedPair(reason, fault.detail or None, limit, math.nan, -1, -1, None, None).as_json(ids, ids))

    def sound() -> Iterator[pa.Table]:
        for part in source.parts:
            # Hard negatives are not used; what follows the first two of tab-separated cells is anything.
            width = None if ".tsv" in part.rows.args else part.layout.width
            part = part._replace(layout=part.layout._replace(keys=part.layout.keys[:2], width=width))
            faults = FaultLog(skip_bad_lines=True)
            for table in part.tables(faults, COLUMNS):
                faults.check()
                # The first fault of each line.
                for _, fault in sorted({fault.line: fault for fault in reversed(faults.faults)}.items()):
                    report(fault)
                faults.faults.clear()
                chars = pc.max_element_wise(pc.utf8_length(table["source"]), pc.utf8_length(table["target"]))
                longer = pc.greater(chars, MOST_CHARS)
                for line, count in zip(table["line"].filter(longer).to_pylist(), chars.filter(longer).to_pylist()):
                    report(Fault(spec, line, "too long", f"{count:,} characters"))
                yield table.filter(pc.invert(longer))
            faults.check()

    table, sha256 = _write_table(progress_bar(sound(), desc="reading", unit="blocks", show=progress), path)
    pairs = {part.layout.languages for part in source.parts}
    known = tuple(None if code == UNKNOWN else code for code in pairs.pop()) if len(pairs) == 1 else (None, None)
    name = ",".join(Path(file).name for file in source.files) or source.where
    return _Corpus(table, name, sha256, (known[0], known[1]), dict(faulty), first[0] if first else None)


def _write_table(tables: Iterable[pa.Table], path: Path) -> tuple[pa.Table, str]:
    """Write pairs to an Arrow file; returns the file as a memory-mapped table, and the hash of the pairs."""
    digest = hashlib.sha256()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _SCHEMA) as writer:
        for table in tables:
            writer.write_table(table.select(_SCHEMA.names), max_chunksize=_LINES_AT_ONCE)
            for pair in zip(table["source"].to_pylist(), table["target"].to_pylist()):
                for text in pair:
                    hash_sentence(digest, text)
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all(), digest.hexdigest()


def _filter_table(table: pa.Table, filters: PairFilters, path: Path, log: IO[bytes]) -> tuple[pa.Table, str]:
    """Remove the pairs that filters reject; returns the rest and its hash."""

    def allowed_pairs() -> Iterator[pa.Table]:
        for batch in table.to_batches():
            lines, sources, targets = (column.to_pylist() for column in batch.columns)
            rows = np.arange(len(lines))
            candidates = CandidateBatch(MinedPairs(np.full(len(rows), np.nan), rows, rows), sources, targets)
            yield pa.Table.from_batches([batch.filter(pa.array(_allowed(filters, candidates, lines, log)))])

    return _write_table(allowed_pairs(), path)


def _allowed(filters: PairFilters, batch: CandidateBatch, lines: Sequence[int], log: IO[bytes]) -> np.ndarray:
    """Return which pairs pass the filters; the others are written to the rejects."""
    allowed, rejected = filters.check(batch)
    for row, pair in zip(np.flatnonzero(~allowed).tolist(), rejected, strict=True):
        ids = [str(lines[row])]
        log.write(pair.as_json(ids, ids))
    return allowed


class _Texts(Sequence[str]):
    """One side of the pairs, read from the memory map."""

    def __init__(self, table: pa.Table, name: str, spec: str) -> None:
        self._texts, self._lines, self._spec = table[name], table["line"], spec

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return (text for chunk in self._texts.chunks for text in chunk.to_pylist())

    def __getitem__(self, row: Any) -> Any:
        return self._texts[row].as_py()

    def place(self, row: int) -> str:
        """Return corpus and line of a pair."""
        return f"{self._spec}:{self._lines[row].as_py()}"
