"""A parallel corpus in, a score for each pair out: for filtering it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_xling.data.check import Fault, FaultLog
from st_xling.data.columns import Layout, Row
from st_xling.data.read import Part, Source, find_source, load_data_specs, parse_data_spec
from st_xling.data.sample import Sample
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import (
    CandidateBatch,
    FilterOptions,
    NeighborCounts,
    PairFilters,
    RejectedPair,
    RejectionLog,
    identify_languages,
)
from st_xling.mining.mine import MinedPairs, check_choice
from st_xling.mining.pipeline.work import (
    REJECTS,
    Stages,
    best_line,
    check_options,
    check_vectors,
    default_device,
    embed_distinct,
    header_line,
    open_work,
    rejection_lines,
    search_name,
    sign_pairs,
)
from st_xling.mining.score_pairs import PairScores
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import find_neighbors
from st_xling.mining.text import hash_sentence, tsv_line
from st_xling.mining.vectors import vectors_from
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.loaded import name_of
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, deliver, work_path
from st_xling.utils.text import ParallelTextError

_LINES_AT_ONCE = 8192
_SAMPLED_PAIRS = 400

# Faulty lines that an error lists.
_SHOWN = 20

_SCHEMA = pa.schema({"line": pa.int64(), "source": pa.string(), "target": pa.string()})


@dataclass(frozen=True, kw_only=True)
class ScoreReport:
    """Metrics of one run.

    Attributes:
        pairs: Number of scored pairs.
        faulty: Number of faulty lines per reason.
        kept: Number of written pairs.
        below: Number of pairs below the threshold, including those without a score.
        best: Highest score, if it is below the threshold.
        rejected: Number of pairs that filters rejected per reason code.
        stages: Seconds and removed pairs of each stage, in order.
        signature: Signature of the run.
    """

    pairs: int
    faulty: dict[str, int]
    kept: int
    below: int
    best: float | None
    rejected: dict[str, int]
    stages: Stages = field(compare=False)
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """Describe the metrics, one a line."""
        faulty = ", ".join(f"{count:,} {reason}" for reason, count in self.faulty.items())
        return [
            f"{self.pairs:,} pairs, {self.below:,} below the threshold",
            *([f"left out as faulty: {faulty}"] if faulty else []),
            *best_line(self.best),
            *rejection_lines(self.rejected),
            *self.stages.lines(),
        ]


def score_texts(
    pairs: str | Path,
    out: Output,
    *,
    columns: Sequence[int] | Sequence[str] | None = None,
    max_chars: int = 5000,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    batch_size: int | None = None,
    dtype: str = "float32",
    prompt: str | None = None,
    k: int = 4,
    margin: str = "ratio",
    threshold: float | None = None,
    filters: FilterOptions | None = None,
    filter_first: bool = False,
    rejects: str | Path | None = None,
    format: str = "tsv",
    header: bool = True,
    method: str = "exact",
    index: str | Path | None = None,
    engine: str = "local",
    device: str | None = None,
    memory_mib: int = 256,
    shard_rows: int | None = None,
    save_seconds: float = 60.0,
    work: str | Path | None = None,
    keep_work: bool = False,
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
            :func:`~st_xling.data.load_data_specs`): other tables, Moses pairs, data sets of the Hub, and samples.
        out: A file, replaced if it exists, or a binary stream. Formats are those of ``mine_texts``; ids are line
            numbers. JSONL has ``null`` for minus infinity.
        columns: Columns of source and target: positions counted from 0, or names. By default they are found by name, or
            are the first two of tab-separated lines without a header.
        max_chars: Longest sentence that is scored.
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
        header: As for ``mine_texts``.
        method: As for ``mine_texts``.
        index: As for ``mine_texts``.
        engine: As for ``mine_texts``.
        device: As for ``mine_texts``.
        memory_mib: As for ``mine_texts``.
        shard_rows: As for ``mine_texts``.
        save_seconds: As for ``mine_texts``.
        work: As for ``mine_texts``.
        keep_work: As for ``mine_texts``.
        progress: As for ``mine_texts``.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For a corpus without pairs, or with too few for ``k``, once the rejects are written; for faulty
            lines, or ``filter_first``, with embeddings, which have a row for each line; and as ``mine_texts``.
        OSError: For a full disk; the work is kept.
    """
    if isinstance(threshold, str):
        raise ValueError(f"threshold must be a number: got {threshold!r}; leave it out to keep every pair.")
    if max_chars < 1:
        raise ValueError(f"max_chars must be at least 1: got {max_chars}.")
    has_embeddings = not source_embeddings is target_embeddings is None
    if filter_first and has_embeddings:
        raise ValueError("filter_first (--filter-first) saves embedding: leave it out where embeddings are ready.")
    check_choice(margin=margin, threshold=threshold)
    check_options(
        k=k,
        method=method,
        index=index,
        engine=engine,
        device=device,
        memory_mib=memory_mib,
        shard_rows=shard_rows,
        batch_size=batch_size,
        dtype=dtype,
        format=format,
    )
    embeddings_given = {"source": source_embeddings, "target": target_embeddings}
    folders = {"work": work_path(out, work), "index": index}
    check_outputs(
        {"out": out, "rejects": rejects}, [pairs, name_of(model), *embeddings_given.values()], folders=folders
    )
    device = device or default_device()
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="st-xling-")))
        corpus = _read_corpus(str(pairs), temporary, columns=columns, max_chars=max_chars, progress=progress)
        if corpus.faulty and has_embeddings:
            raise ParallelTextError(
                f"embeddings have a row for each line, so that none can be skipped:{_listed(corpus)}\nFix these lines, "
                "or embed with the model."
            )
        filters, stages = _name_languages(filters or FilterOptions(disable=["all"]), corpus.languages), Stages()
        languages = {"source": filters.source_language, "target": filters.target_language}
        table, sha256 = corpus.table, corpus.sha256  # the signature has the hash of all pairs, rejected or not
        if "language" in filters.enabled:
            some = table.take(np.arange(0, len(table), 1 + len(table) // _SAMPLED_PAIRS))
            filters = identify_languages(filters, some["source"].to_pylist(), some["target"].to_pylist())
        first: dict[str, int] = {}
        if filter_first:
            early = PairFilters(replace(filters, disable=[*filters.disable, "hub"]))
            table, sha256 = _filter_table(table, early, temporary)
            stages |= early.stages
            first = early.rejected
        if not len(table):
            raise _unusable(f"expected at least one pair, got none in {pairs}", corpus, temporary, rejects)
        makers, _ = vectors_from(
            model,
            embeddings_given,
            dict.fromkeys(("source", "target"), len(table)),
            languages=languages,
            batch_size=batch_size,
            dtype=dtype,
            prompt=prompt,
            device=device,
            engine=engine,
        )
        texts = {name: _Texts(table, name, str(pairs)) for name in ("source", "target")}
        distinct = {name: UniqueSentences(text, f"the {name} side of {pairs}") for name, text in texts.items()}
        try:
            check_k(k, len(distinct["source"]), len(distinct["target"]), kind="distinct ")
        except ValueError as error:
            raise _unusable(str(error), corpus, temporary, rejects) from None
        check_vectors({name: (text, distinct[name]) for name, text in texts.items()}, makers, k=k, method=method)
        folder = stack.enter_context(
            open_work(
                out,
                rejects,
                work,
                command="score",
                k=k,
                hashes={"pairs": sha256},
                makers=makers,
                pairs=f"pairs.{format}",
                keep_work=keep_work,
            )
        )
        with stages.timed("embedding"):
            embeddings, method = embed_distinct(distinct, makers, folder.path, method=method, progress=progress)
        with stages.timed("search"):
            forward, backward = find_neighbors(
                *embeddings,
                k=k,
                method=method,
                engine=engine,
                device=device,
                memory_mib=memory_mib,
                shard_rows=shard_rows,
                save_seconds=save_seconds,
                state_folder=folder.path / search_name(method, shard_rows),
                index_folder=index or folder.path / "indexes",
                progress=progress,
            )
            pair_filters = PairFilters(filters, counts=NeighborCounts.of(forward, backward))
        if filter_first:  # all others have run
            pair_filters.limits = {reason: limit for reason, limit in pair_filters.limits.items() if reason == "hub"}
        places = tuple(text.place_of for text in distinct.values())
        scores = PairScores(*embeddings, forward.means, backward.means, margin=margin)
        with atomic_writer(folder.path / f"pairs.{format}") as stream, RejectionLog(folder.path / REJECTS) as log:
            log.stream.write((temporary / REJECTS).read_bytes())
            with stages.timed("scoring and writing"):
                kept, best = _write_scored(
                    table,
                    scores,
                    places,
                    pair_filters,
                    stream,
                    log,
                    threshold=threshold,
                    format=format,
                    header=header,
                    progress=progress,
                )
        stages |= {reason: pair_filters.stages[reason] for reason in pair_filters.limits}
        rejected = first | pair_filters.rejected
        number = "none" if threshold is None else f"{threshold:g}"
        return ScoreReport(
            pairs=len(table) + sum(first.values()),
            faulty=corpus.faulty,
            kept=kept,
            below=len(table) - kept - sum(pair_filters.rejected.values()),
            best=best if threshold is not None and best < threshold and np.isfinite(best) else None,
            rejected=rejected,
            stages=stages,
            signature=sign_pairs(
                "score",
                makers,
                pair_filters,
                margin=margin,
                k=k,
                method=method,
                shard_rows=shard_rows,
                threshold=number,
                choice=[f"max_chars:{max_chars}", *(["filter_first"] if filter_first else [])],
                texts=[f"pairs:{corpus.name}@{corpus.sha256[:8]}"],
            ),
        )


def _write_scored(
    table: pa.Table,
    scores: PairScores,
    places: tuple[np.ndarray, ...],
    filters: PairFilters,
    stream: IO[bytes],
    log: RejectionLog,
    *,
    threshold: float | None,
    format: str,
    header: bool,
    progress: bool,
) -> tuple[int, float]:
    """Score the pairs in blocks, and write those that are kept; returns their number, and the best of all scores."""
    written, start, best = 0, 0, -math.inf
    if format == "tsv" and header:
        stream.write(header_line())
    with progress_bar(total=len(table), desc="writing", unit="pairs", show=progress) as bar:
        for batch in table.to_batches():
            lines, sources, targets = (column.to_pylist() for column in batch.columns)
            rows = [column[start : start + len(lines)] for column in places]
            start += len(lines)
            found = MinedPairs(scores(*rows), *rows)
            best = max(best, float(found.scores.max()))
            stays = found.scores >= (-np.inf if threshold is None else threshold)
            # Filters cannot check a pair without a score.
            candidates = np.flatnonzero(stays & np.isfinite(found.scores))
            if filters.limits and len(candidates):
                allowed, rejected = filters.check(CandidateBatch(found, sources, targets).select(candidates))
                stays[candidates[~allowed]] = False
                for row, pair in zip(candidates[~allowed].tolist(), rejected, strict=True):
                    log.write(pair, [str(lines[row])], [str(lines[row])])
            for row in np.flatnonzero(stays).tolist():
                score = float(found.scores[row])
                if format == "tsv":
                    line = tsv_line([repr(score), lines[row], lines[row], sources[row], targets[row]])
                else:
                    finite = score if math.isfinite(score) else None
                    record = {"score": finite, "source": sources[row], "target": targets[row]}
                    line = json.dumps(record, ensure_ascii=False)
                stream.write(line.encode("utf-8") + b"\n")
            written += int(stays.sum())
            bar.update(len(lines))
    return written, best


class _Corpus(NamedTuple):
    """Pairs of a corpus, and what was skipped.

    Attributes:
        table: Memory-mapped columns ``line``, ``source`` and ``target``.
        name: Names of the files, or of the data set.
        sha256: Hash of the pairs.
        languages: Language pairs of the corpus.
        faulty: Number of faulty lines per reason.
        faults: The first of them.
    """

    table: pa.Table
    name: str
    sha256: str
    languages: set[tuple[str, str]]
    faulty: dict[str, int]
    faults: list[Fault]


def _read_corpus(
    spec: str, folder: Path, *, columns: Sequence[int] | Sequence[str] | None, max_chars: int, progress: bool
) -> _Corpus:
    """Read a corpus into a memory-mapped table; faulty lines are written to the rejects in ``folder``."""
    source, sample = _open(spec, columns)
    name = ",".join(Path(file).name for file in source.files) or source.where
    faulty, languages = Counter[str](), set[tuple[str, str]]()
    first: list[Fault] = []

    def report(fault: Fault) -> None:
        reason = re.sub(r"\W+", "_", fault.kind.lower())
        faulty[reason] += 1
        if len(first) < _SHOWN:
            first.append(fault)
        limit = max_chars if reason == "too_long" else None
        ids = [str(fault.line)]
        log.write(RejectedPair(reason, fault.detail or None, limit, math.nan, -1, -1, None, None), ids, ids)

    def sound() -> Iterator[pa.Table]:
        places, start = None, 0
        if sample.size is not None:  # of the sound pairs, as everywhere
            places = np.array(sample.places(sum(map(len, _tables(source, lambda fault: None))), spec))
        for table in progress_bar(_tables(source, report), desc="reading", unit="blocks", show=progress):
            if places is not None:
                here = places[(places >= start) & (places < start + len(table))] - start
                start += len(table)
                table = table.take(here)
            chars = pc.max_element_wise(pc.utf8_length(table["source"]), pc.utf8_length(table["target"]))
            longer = pc.greater(chars, max_chars)
            for line, count in zip(table["line"].filter(longer).to_pylist(), chars.filter(longer).to_pylist()):
                report(Fault(spec, line, "too long", f"{count:,} characters"))
            table = table.filter(pc.invert(longer))
            languages.update(zip(*(table[name].to_pylist() for name in ("source_language", "target_language"))))
            yield table

    with RejectionLog(folder / REJECTS) as log:
        table, sha256 = _write_table(sound(), folder / "pairs.arrow")
    return _Corpus(table, name, sha256, languages, dict(faulty), first)


def _tables(source: Source, report: Callable[[Fault], object]) -> Iterator[pa.Table]:
    """Yield the pairs in tables; report the first fault of each other line."""
    for part in source.parts:
        faults = FaultLog(skip_bad_lines=True)
        for table in part.tables(faults, source.names):
            faults.check()
            for _, fault in sorted({fault.line: fault for fault in reversed(faults.faults)}.items()):
                report(fault)
            faults.faults.clear()
            yield table
        faults.check()


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


def _filter_table(table: pa.Table, filters: PairFilters, folder: Path) -> tuple[pa.Table, str]:
    """Remove the pairs that filters reject, which join the faulty lines; returns the rest and its hash."""

    def allowed_pairs(log: IO[bytes]) -> Iterator[pa.Table]:
        for batch in table.to_batches():
            lines, sources, targets = (column.to_pylist() for column in batch.columns)
            rows = np.arange(len(lines))
            pairs = MinedPairs(np.full(len(rows), np.nan), rows, rows)
            allowed, rejected = filters.check(CandidateBatch(pairs, sources, targets))
            for pair in rejected:
                ids = [str(lines[pair.source_index])]
                log.write(pair.as_json(ids, ids))
            yield pa.Table.from_batches([batch.filter(pa.array(allowed))])

    with (folder / REJECTS).open("ab") as log:
        return _write_table(allowed_pairs(log), folder / "kept.arrow")


def _unusable(fault: str, corpus: _Corpus, folder: Path, rejects: str | Path | None) -> ParallelTextError:
    """Return the error that there is nothing to score; rejects are written first, since they may be the reason."""
    where = ""
    if rejects is not None:
        deliver(folder / REJECTS, rejects)
        where = f"\nThe skipped lines are in {rejects}."
    return ParallelTextError(f"{fault}{_listed(corpus)}{where}")


def _listed(corpus: _Corpus) -> str:
    """List the first faults, one a line; empty if there are none."""
    more = sum(corpus.faulty.values()) - len(corpus.faults)
    lines = [str(fault) for fault in corpus.faults] + ([f"... and {more:,} more"] if more else [])
    return "".join(f"\n  {line}" for line in lines)


def _name_languages(filters: FilterOptions, languages: set[tuple[str, str]]) -> FilterOptions:
    """Set the languages that all pairs have, if no language is set."""
    if len(languages) != 1 or filters.source_language or filters.target_language:
        return filters
    source, target = (None if code == UNKNOWN else code for code in next(iter(languages)))
    return replace(filters, source_language=source, target_language=target)


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


def _open(spec: str, columns: Sequence[int] | Sequence[str] | None) -> tuple[Source, Sample]:
    """Find the source that a spec or a path names, and its sample."""
    options: dict[str, Any] = {"languages": (None, None)}
    location: Any = spec
    sample = Sample()
    if not Path(spec).is_file():
        parsed = parse_data_spec(spec)
        if parsed.is_phrasebook:
            loaded = load_data_specs([spec]).values()
            layout = Layout(("source", "target"), language_keys=("source_language", "target_language"))
            return Source(tuple(Part(partial(_rows, data), layout, (spec, spec)) for data in loaded), spec), sample
        location = parsed.path_or_pair
        options = {"languages": parsed.languages or (None, None), **parsed.reader_options}
        sample = parsed.sample
    if columns is not None and "columns" in options:
        raise ValueError(f"columns are named in the spec already: got {columns} for {spec}; leave one of them out.")
    options.setdefault("columns", columns)
    source = find_source(location, **options, stream=True, other=".tsv")
    parts = []
    for part in source.parts:
        # Hard negatives are not used; what follows the first two of tab-separated cells is anything.
        width = None if ".tsv" in part.rows.args else part.layout.width
        parts.append(part._replace(layout=part.layout._replace(keys=part.layout.keys[:2], width=width)))
    return replace(source, parts=tuple(parts)), sample


def _rows(data: Any, faults: FaultLog) -> Iterator[Row]:
    return enumerate(data, 1)
