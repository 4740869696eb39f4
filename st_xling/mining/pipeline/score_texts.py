"""A parallel corpus in, a score for each pair out: for filtering it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from st_xling.data.check import Fault, FaultLog
from st_xling.data.columns import Layout, Row
from st_xling.data.pairs import COLUMNS
from st_xling.data.read import Part, Source, find_source, load_data_specs, parse_data_spec
from st_xling.data.sample import Sample
from st_xling.mining.deduplication import DistinctText
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
from st_xling.mining.text import hash_sentence, tsv_cells, tsv_line
from st_xling.mining.vectors import vectors_from
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.loaded import name_of
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.text import ParallelTextError, raw_lines

_LINES_AT_ONCE, _CHUNK_BYTES = 8192, 1 << 20
_SAMPLED_PAIRS = 400

# Of the faults of a text from which no pair can be scored, so many are named.
_SHOWN = 20


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
            numbers, unless ``pairs`` is a file that st-xling wrote. JSONL has ``null`` for minus infinity.
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
        corpus = stack.enter_context(_Corpus(str(pairs), columns=columns, max_chars=max_chars, progress=progress))
        if corpus.faulty and has_embeddings:
            raise ParallelTextError(
                f"embeddings have a row a line, so that none can be left out: {corpus.first_faults()}\nMend these "
                "lines, or embed with the model."
            )
        sha256 = corpus.sha256  # of all pairs, rejected or not
        filters, stages = corpus.with_languages(filters or FilterOptions(disable=["all"])), Stages()
        languages = {"source": filters.source_language, "target": filters.target_language}
        filters = corpus.identify_languages(filters)
        first: dict[str, int] = {}
        if filter_first:
            early = PairFilters(replace(filters, disable=[*filters.disable, "hub"]))
            corpus.leave_out(early)
            stages |= early.stages
            first = early.rejected
        if not corpus:
            raise corpus.unusable(f"expected at least one pair, got none in {pairs}", rejects)
        makers, _ = vectors_from(
            model,
            embeddings_given,
            {"source": len(corpus), "target": len(corpus)},
            languages=languages,
            batch_size=batch_size,
            dtype=dtype,
            prompt=prompt,
            device=device,
            engine=engine,
        )
        texts = {name: _Side(corpus, side) for side, name in enumerate(("source", "target"))}
        distinct = {name: DistinctText(text, f"the {name} side of {pairs}") for name, text in texts.items()}
        try:
            check_k(k, len(distinct["source"]), len(distinct["target"]), kind="distinct ")
        except ValueError as error:
            raise corpus.unusable(str(error), rejects) from None
        check_vectors({name: (text, distinct[name]) for name, text in texts.items()}, makers, k=k, method=method)
        folder = stack.enter_context(
            open_work(
                out,
                rejects,
                work,
                command="score",
                k=k,
                hashes={"pairs": corpus.sha256},
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
            corpus.copy_faults(log)
            with stages.timed("scoring and writing"):
                kept, best = _write_scored(
                    corpus,
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
            pairs=len(corpus) + sum(first.values()),
            faulty=dict(corpus.faulty),
            kept=kept,
            below=len(corpus) - kept - sum(pair_filters.rejected.values()),
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
                texts=[f"pairs:{corpus.name}@{sha256[:8]}"],
            ),
        )


def _write_scored(
    corpus: _Corpus,
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
    written, best = 0, -math.inf
    lines = corpus.lines()
    if format == "tsv" and header:
        stream.write(header_line())
    with progress_bar(total=len(corpus), desc="writing", unit="pairs", show=progress) as bar:
        for start in range(0, len(corpus), _LINES_AT_ONCE):
            numbers, block = zip(*islice(lines, _LINES_AT_ONCE))
            sources, targets = map(list, zip(*map(corpus.cells, block)))
            rows = [column[start : start + len(block)] for column in places]
            found = MinedPairs(scores(*rows), *rows)
            best = max(best, float(found.scores.max()))
            stays = found.scores >= (-np.inf if threshold is None else threshold)
            # Filters cannot check a pair without a score.
            candidates = np.flatnonzero(stays & np.isfinite(found.scores))
            if filters.limits and len(candidates):
                allowed, rejected = filters.check(CandidateBatch(found, sources, targets).select(candidates))
                stays[candidates[~allowed]] = False
                for row, pair in zip(candidates[~allowed].tolist(), rejected, strict=True):
                    log.write(pair, [str(numbers[row])], [str(numbers[row])])
            for row in np.flatnonzero(stays).tolist():
                score, number = float(found.scores[row]), numbers[row]
                if format == "tsv":
                    line = tsv_line([repr(score), number, number, sources[row], targets[row]])
                else:
                    finite = score if math.isfinite(score) else None
                    record = {"score": finite, "source": sources[row], "target": targets[row]}
                    line = json.dumps(record, ensure_ascii=False)
                stream.write(line.encode("utf-8") + b"\n")
            written += int(stays.sum())
            bar.update(len(block))
    return written, best


class _Corpus(ExitStack):
    """The pairs of a corpus, copied to a temporary file as they are read; what is none is kept apart.

    A context manager: it reads when it is entered.

    Attributes:
        name: Of the files, or of the data set.
        sha256: Hash of the pairs.
        faulty: Faulty lines by reason.
    """

    def __init__(self, spec: str, *, columns: Any, max_chars: int, progress: bool) -> None:
        super().__init__()
        self._spec, self._max_chars, self._progress = spec, max_chars, progress
        source, self._sample = _open(spec, columns)
        self.name = ",".join(Path(file).name for file in source.files) or source.where
        self._source, layout = source, source.parts[0].layout
        self._keys, self._escaped = layout.keys, layout.escaped
        self._raw = source.files[0] if ".tsv" in source.parts[0].rows.args and len(source.files) == 1 else None
        self.faulty: Counter[str] = Counter()
        self._languages: set[tuple[str, ...]] = set()
        self._first_faults: list[Fault] = []
        self._pairs = 0

    def __enter__(self) -> _Corpus:
        super().__enter__()
        self._text = self.enter_context(tempfile.TemporaryFile())
        self._rejects = self.enter_context(tempfile.TemporaryFile())
        digest = hashlib.sha256()
        rows, wanted = self._rows(self._fault), None
        if self._sample.size is not None:  # of the sound pairs, as everywhere
            total = sum(1 for _ in self._rows(lambda fault: None))
            wanted = iter(self._sample.places(total, self._spec))
        place = None if wanted is None else next(wanted, None)
        raws = None if self._raw is None else enumerate(raw_lines(self._raw, any_length=True), 1)
        bar = progress_bar(rows, desc="reading", unit="pairs", show=self._progress)
        for count, (number, *texts, one, other) in enumerate(bar):
            if wanted is not None:
                if count != place:
                    continue
                place = next(wanted, None)
            longest = max(map(len, texts))
            if longest > self._max_chars:
                self._fault(Fault(self._spec, number, "too long", f"{longest:,} characters"))
                continue
            line = tsv_line(texts).encode()
            if raws is not None:
                line = next(raw for at, raw in raws if at == number)
            self._text.write(b"%d\t%b\n" % (number, line))
            self._languages.add((one, other))
            self._pairs += 1
            for text in texts:
                hash_sentence(digest, text)
        self._text.flush()
        self.sha256 = digest.hexdigest()
        return self

    def _rows(self, report: Callable[[Fault], object]) -> Iterator[tuple[Any, ...]]:
        """Yield the line of each pair, and its cells; report the first fault of each other line."""
        names = ["line", *COLUMNS]
        for part in self._source.parts:
            faults = FaultLog(skip_bad_lines=True)
            for table in part.tables(faults, self._source.names):
                faults.check()
                for _, fault in sorted({fault.line: fault for fault in reversed(faults.faults)}.items()):
                    report(fault)
                faults.faults.clear()
                yield from zip(*(table[name].to_pylist() for name in names))
            faults.check()

    def _fault(self, fault: Fault) -> None:
        reason = re.sub(r"\W+", "_", fault.kind.lower())
        self.faulty[reason] += 1
        if len(self._first_faults) < _SHOWN:
            self._first_faults.append(fault)
        limit = self._max_chars if reason == "too_long" else None
        ids = [str(fault.line)]
        line = RejectedPair(reason, fault.detail or None, limit, math.nan, -1, -1, None, None)
        self._rejects.write(line.as_json(ids, ids))

    def leave_out(self, filters: PairFilters) -> None:
        """Leave out the pairs that filters reject: they join the faulty lines among the rejects."""
        text = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        digest, row, lines = hashlib.sha256(), 0, self.lines()
        while block := list(islice(lines, _LINES_AT_ONCE)):
            sources, targets = map(list, zip(*(self.cells(line) for _, line in block)))
            rows = np.arange(row, row + len(block))
            pairs = MinedPairs(np.full(len(rows), np.nan), rows, rows)
            allowed, rejected = filters.check(CandidateBatch(pairs, sources, targets))
            for pair in rejected:
                ids = [str(block[pair.source_index - row][0])]
                self._rejects.write(pair.as_json(ids, ids))
            for place in np.flatnonzero(allowed).tolist():
                number, line = block[place]
                text.write(f"{number}\t{line}\n".encode())
                hash_sentence(digest, sources[place])
                hash_sentence(digest, targets[place])
            self._pairs -= len(rejected)
            row += len(block)
        text.flush()
        self._text, self.sha256 = text, digest.hexdigest()

    def unusable(self, fault: str, rejects: str | Path | None) -> ParallelTextError:
        """The error that there is nothing to score; what was left out is written first, for it may be why."""
        where = ""
        if rejects is not None:
            with RejectionLog(rejects) as log:
                self.copy_faults(log)
            where = f"\nWhat was left out is in {rejects}."
        return ParallelTextError(f"{fault}{self.first_faults()}{where}")

    def first_faults(self) -> str:
        """The first faults, one a line; empty without any."""
        more = sum(self.faulty.values()) - len(self._first_faults)
        lines = [str(fault) for fault in self._first_faults] + ([f"... and {more:,} more"] if more else [])
        return "".join(f"\n  {line}" for line in lines)

    def copy_faults(self, log: RejectionLog) -> None:
        """Write the faulty lines to the log."""
        self._rejects.seek(0)
        shutil.copyfileobj(self._rejects, log.stream)

    def with_languages(self, filters: FilterOptions) -> FilterOptions:
        """Set the languages that all pairs have, where no language is set."""
        if len(self._languages) != 1 or filters.source_language or filters.target_language:
            return filters
        source, target = (None if code == UNKNOWN else code for code in next(iter(self._languages)))
        return replace(filters, source_language=source, target_language=target)

    def identify_languages(self, filters: FilterOptions) -> FilterOptions:
        """Set the languages that pairs spread over all show, where no language is set."""
        if "language" not in filters.enabled:
            return filters
        some = [self.cells(line) for _, line in islice(self.lines(), 0, None, 1 + len(self) // _SAMPLED_PAIRS)]
        return identify_languages(filters, *([cells[side] for cells in some] for side in (0, 1)))

    def __len__(self) -> int:
        return self._pairs

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of each line with a pair."""
        place, rest = 0, b""
        while chunk := os.pread(self._text.fileno(), _CHUNK_BYTES, place):  # whoever else reads it meanwhile
            place += len(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                number, _, text = line.partition(b"\t")
                yield int(number), text.decode("utf-8")

    def cells(self, line: str) -> tuple[str, str]:
        """Source and target of such a line."""
        if self._raw is None:
            source, target = tsv_cells(line)
            return source, target
        cells = tsv_cells(line) if self._escaped else line.split("\t")
        return cells[self._keys[0]], cells[self._keys[1]]

    def place(self, row: int) -> str:
        """Where a pair stands."""
        return f"{self._spec}:{next(islice(self.lines(), row, None))[0]}"


def _split_tabs(line: str) -> list[str]:
    return line.split("\t")


class _Side(Sequence[str]):
    """One side of a corpus, read front to back."""

    def __init__(self, corpus: _Corpus, side: int) -> None:
        self._corpus, self._side = corpus, side
        self.place = corpus.place

    def __len__(self) -> int:
        return len(self._corpus)

    def __iter__(self) -> Iterator[str]:
        return (self._corpus.cells(line)[self._side] for _, line in self._corpus.lines())

    def __getitem__(self, row: Any) -> Any:
        return next(islice(self, row, None))


def _open(spec: str, columns: Sequence[int] | Sequence[str] | None) -> tuple[Source, Sample]:
    """What a spec, or the path of a file, names, and which rows of it."""
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
