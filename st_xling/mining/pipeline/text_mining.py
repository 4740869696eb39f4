"""Mine scored translation pairs from two text files, or estimate what that costs.

======  ==================================================================================================
format  content
======  ==================================================================================================
tsv     a header line ``score, source_id, target_id, source, target, threshold``, then a pair a line, with several
        ids joined by commas; cells are escaped by :func:`~st_xling.mining.tsv_line`
jsonl   ``{"score": …, "source_ids": […], "target_ids": […], "source": …, "target": …, "threshold": …}``
tmx     TMX 1.4, a translation unit a pair, with the score as a property, and the threshold as one of the header;
        ids are not kept
======  ==================================================================================================

The threshold is the margin score that every pair reaches, ``nan`` or ``null`` if all pairs were kept: whoever gets the
file, or a part of it, can see how it was cut. If a cross-encoder has scored the pairs again, ``score`` is its score,
and a column or key ``margin`` before the threshold has the margin score.

A sentence that occurs several times is mined once, in its first form, with all its ids in the order of its rows. Scores
are written so that they are read back as the same number.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.calibration import calibrate_threshold
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import FilterOptions, PairFilters, RejectedPair, identify_languages
from st_xling.mining.mined_pairs import best_pairs
from st_xling.mining.pipeline.rescore import load_reranker, rescore_pairs
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    default_device,
    embed_distinct,
    open_work,
    pair_writer,
    resolve_format,
    search_name,
    search_task,
    sign_pairs,
)
from st_xling.mining.score_mixture import ESTIMATED, estimate_threshold
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import check_search, find_neighbors
from st_xling.mining.store import DTYPES
from st_xling.mining.text import MiningText
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.mining.thresholds import AUTO, PUBLISHED, PublishedThreshold, find_published_threshold
from st_xling.mining.vectors import PrecomputedEmbeddings, encoding_settings, vectors_from
from st_xling.utils.io import atomic_writer
from st_xling.utils.options import (
    Engine,
    Margin,
    PairFormat,
    Retrieval,
    StoreDtype,
    TextFormat,
    check_choice,
    check_number,
    helpful_arguments,
)
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.score_histogram import ScoreHistogram
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import duration, progress_bar

logger = logging.getLogger(__name__)

ALL_KEPT = (
    "All pairs are kept, right or wrong. Set a threshold: --threshold X, or --calibrate known.tsv. Look at the pairs: "
    "st-xling pairs FILE --around X"
)
OTHER_THRESHOLDS = "Another threshold: --threshold X, or --calibrate known.tsv; all pairs: --keep-all."

#: Lines of each text that are measured: fewer where they must be embedded first.
EMBEDDED, READY = 2048, 8192


@dataclass(frozen=True, kw_only=True)
class MiningReport(Report):
    """Metrics of one run; ``rejected`` counts pairs that filters or the cross-encoder rejected.

    Attributes:
        rows: Number of lines of each text.
        blank: Number of lines without a sentence.
        distinct: Number of distinct sentences, which were mined.
        threshold: Minimum score of the kept pairs; ``None`` if there was none.
        threshold_source: ``"given"``, ``"published"``, ``"calibrated"``, ``"estimated"``; ``"none"`` if all were kept.
        threshold_note: Description of a threshold that was not given.
        published: The published threshold, if it was used.
        calibration: The estimated threshold, if it was calibrated.
        histogram: Margin scores of the mined pairs, kept or not: those that pass the filters, or if a threshold was
            known before, all of them, since filters check only pairs above it.
    """

    rows: Mapping[str, int]
    blank: Mapping[str, int]
    distinct: Mapping[str, int]
    threshold: float | None
    threshold_source: str
    threshold_note: str
    published: PublishedThreshold | None
    calibration: PublishedThreshold | None
    histogram: ScoreHistogram

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        return {**super().as_dict(), "histogram": self.histogram.as_dict()}

    def lines(self) -> list[str]:
        """Describe the metrics, one a line; the last lines are a histogram of the scores and what to do about it."""
        lines = [
            f"{name}: {rows:,} lines, {self.distinct[name]:,} distinct sentences, {self.blank[name]:,} blank lines"
            for name, rows in self.rows.items()
        ]
        lines += super().lines()
        total = self.histogram.total
        if total:
            before = " before filters" if self.threshold_source in ("given", "published", "calibrated") else ""
            lines += [f"scores of {total:,} pairs{before}, best first:", *self.histogram.lines()]
        if not total:
            lines.append(self._without_pairs())
        elif self.threshold_source == "none":
            lines.append(ALL_KEPT)
        else:
            kept = self.histogram.kept
            lines.append(f"{kept:,} of {total:,} pairs ({kept / total:.1%}) reach the threshold. {OTHER_THRESHOLDS}")
        return [*lines, *filter(None, [self.threshold_note])]

    def _without_pairs(self) -> str:
        """Return why there are no pairs, and what to do."""
        if not self.rejected:
            return "No pairs: no sentence of either text is among the nearest of one in the other."
        reason = max(self.rejected, key=self.rejected.__getitem__)
        advice = f"--disable-filter {reason} keeps them, and --rejects FILE shows them"
        if reason == "language":
            source, target = (code or "an unknown language" for code in (self.source_language, self.target_language))
            advice = (
                f"the texts are taken for {source} and {target}: correct --source-language and --target-language. "
                f"Otherwise {advice}"
            )
        return f"No pairs are left: the filters reject all, most of them by {reason}; {advice}."


@helpful_arguments
def mine_texts(
    source: str | Path,
    target: str | Path,
    out: Output,
    *,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    text_format: TextFormat | None = None,
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    k: int = 4,
    margin: Margin = "ratio",
    retrieval: Retrieval = "max",
    threshold: float | str | None = None,
    calibrate_with: str | Path | None = None,
    target_precision: float | None = None,
    rescore: Any = None,
    rescore_threshold: float | None = None,
    filters: FilterOptions | None = None,
    rejects: Output | None = None,
    format: PairFormat | None = None,
    method: str = "exact",
    engine: Engine = "local",
    device: str | None = None,
    memory_mib: int = 256,
    work: str | Path | None = None,
    progress: bool = False,
) -> MiningReport:
    """Find the pairs of two texts that are likely translations, and write them, best first.

    Blank lines are ignored. Of equal sentences (in NFC, runs of white space as one space) one is mined, and its pair
    has the ids of all. A candidate that has a sentence in a wrong language, or an untranslated one, is rejected before
    the retrieval chooses among them, so that both sentences are free for other partners; whatever else filters reject
    is removed after the choice (see :func:`~st_xling.mining.best_pairs`).

    Embeddings and the search are kept in ``work`` until the pairs are written. Repeat the same call to resume a killed
    one. Options that they do not depend on may change: margin, retrieval, threshold, filters, formats.

    Beyond the stores and the encoder, memory grows by 16 bytes a line, and by the larger of a search (see
    :func:`~st_xling.mining.find_neighbors`) and the choice of pairs: about ``12 * k + 48`` bytes a distinct sentence,
    more if few are each other's best. Text is read from its files when it is needed.

    Args:
        source: File of the text.
        target: Text in the other language.
        out: File of the pairs, replaced if it exists; or a binary stream.
        model: Encoder of a text without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, ``.npy`` file or array with a row for each line of the source text.
        target_embeddings: The same for the target text.
        text_format: ``"lines"``, ``"bucc"`` or ``"jsonl"``; see :class:`~st_xling.mining.MiningText`. By default
            lines, and lines that begin with ids are an error.
        batch_size: Maximum number of sentences in a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``.
        prompt: Text put before every sentence, such as ``"query: "``.
        k: Number of neighbors of each sentence.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        retrieval: ``"max"``, ``"intersect"``, ``"forward"`` or ``"backward"``; see :func:`~st_xling.mining.mine`.
        threshold: Minimum score of the kept pairs; all are kept by default. ``"published"``: that of the model's
            ``mining.json`` for the languages of ``filters``, or an error that names what differs (see
            :func:`~st_xling.mining.thresholds.match_published_threshold`). Languages that are not named are identified
            from a sample of sentences. ``"estimated"``: the one that :func:`~st_xling.mining.estimate_threshold` finds
            in the scores of the pairs that pass the filters; if it finds none, all are kept, with a warning.
            ``"auto"``, the default of the command line: the published one, or the estimated one if none matches;
            ignored with ``calibrate_with``.
        calibrate_with: File of known translations from elsewhere, from which the threshold is estimated.
        target_precision: Estimated precision that the threshold must reach; by default that of the best estimated F1.
        rescore: A cross-encoder of one label, or the Hub id or folder of one, that scores the mined pairs again, source
            before target, and sorts them by this score.
        rescore_threshold: Minimum score of the cross-encoder, after its activation; other pairs are rejected with the
            reason ``rescore``.
        filters: Enabled filters; all by default.
        rejects: File for the pairs that filters and the cross-encoder reject, as JSON lines; or a binary stream.
        format: Format of the pairs: ``"tsv"``, ``"jsonl"``, or ``"tmx"``, whose languages are those of ``filters``, of
            the file names, or identified; by default that of the ending of ``out``, otherwise TSV.
        method: As for :func:`~st_xling.mining.find_neighbors`.
        engine: As for :func:`~st_xling.mining.find_neighbors`.
        device: Device to embed and search on; by default a GPU if there is one.
        memory_mib: Limit on the memory of one block of the search, in MiB.
        work: Work folder, which is kept at the end, to try other thresholds or filters; by default ``OUT.work``, or for
            a stream a temporary one, which are removed.
        progress: Show progress bars on stderr.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For options out of range, faulty texts, embeddings of other texts or of two models, ``k`` above the
            number of distinct sentences, a work folder of another task, a broken ``mining.json``, or none that matches
            with ``threshold="published"``.
        OSError: For a full disk; the work is kept.
    """
    check_choice("margin", margin, Margin)
    check_choice("retrieval", retrieval, Retrieval)
    check_search(method, engine)
    if isinstance(threshold, str):
        check_choice("threshold", threshold, [AUTO, PUBLISHED, ESTIMATED])
    else:
        check_number("threshold", threshold)
    check_number("rescore_threshold", rescore_threshold)
    check_number("target_precision", target_precision, least=0)
    check_number("batch_size", batch_size, least=1)
    check_number("memory_mib", memory_mib, least=1)
    if rescore is None and rescore_threshold is not None:
        raise ValueError("rescore_threshold needs rescore (--rescore): the cross-encoder that it is for.")
    if calibrate_with is None and target_precision is not None:
        raise ValueError("target_precision needs calibrate_with (--calibrate): a file of known translations.")
    if calibrate_with is not None and threshold not in (None, AUTO):
        raise ValueError("threshold and calibrate_with both set the threshold: choose one of them.")
    if calibrate_with is not None and model is None:
        raise ValueError("calibrate_with needs the model (--model): known translations must be embedded like the text.")
    given = {"source": source_embeddings, "target": target_embeddings}
    read = {"source": MiningText(source, format=text_format), "target": MiningText(target, format=text_format)}
    inputs = [source, target, name_of(model), *given.values(), calibrate_with, rescore]
    check_outputs({"out": out, "rejects": rejects}, inputs, folders={"work": work_path(out, work)})
    device = device or default_device()
    filters = filters or FilterOptions()
    named = filters.source_language, filters.target_language
    format = resolve_format(format, out)
    languages = dict(zip(read, named))
    with ExitStack() as stack:
        # Read both texts once, and raise for all that can be known to be wrong before anything is embedded.
        for text in read.values():
            stack.callback(text.close)
        summaries = {name: text.validate(progress=progress) for name, text in read.items()}
        distinct = {name: UniqueSentences(text, text.path) for name, text in read.items()}
        texts = [*distinct.values()]
        check_text_languages(filters, *texts)
        written_languages = named_or_found(named, [source, target], texts) if format == "tmx" else named
        reranker = None if rescore is None else load_reranker(rescore, device)
        encoder = None
        if model is not None:
            from st_xling.mining.encoding import Encoder  # slow to import

            encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine)
            model = encoder.model
        rows = {name: summary.rows for name, summary in summaries.items()}
        makers, encoders = vectors_from(encoder, given, rows, languages=languages, embeds=calibrate_with is not None)
        task = search_task("mine", distinct, summaries, makers, k=k, method=method)
        results = {(pairs_file := f"pairs.{format}"): out, REJECTS: rejects}
        folder = stack.enter_context(open_work(out, work, task, results))

        # Embed, choose the threshold, search.
        number = None if isinstance(threshold, str) else threshold
        origin = "none" if number is None else "given"
        note = ""
        published = calibration = None
        settings = encoding_settings(makers)
        if threshold in (AUTO, PUBLISHED) and calibrate_with is None:
            run = {"margin": margin, "k": k, "retrieval": retrieval, **settings}
            published, note = find_published_threshold(model, texts, named, run, required=threshold == PUBLISHED)
        embeddings, method = embed_distinct(distinct, makers, folder.path, method=method, progress=progress)
        search = partial(
            find_neighbors, method=method, engine=engine, device=device, memory_mib=memory_mib, progress=progress
        )
        if calibrate_with is not None:
            calibration, note = calibrate_threshold(
                calibrate_with,
                texts,
                embeddings,
                encoders,
                search,
                folder=folder.path / f"calibration-{search_name(method)}",
                options=settings,
                target_precision=target_precision,
                k=k,
                margin=margin,
                retrieval=retrieval,
                progress=progress,
            )
        if published is not None:
            number = published.threshold
            origin = "published"
        elif calibration is not None:
            number = calibration.threshold
            origin = "calibrated"
        forward, backward = search(*embeddings, k=k, state_folder=folder.path / search_name(method))
        filters = identify_languages(filters, *texts)
        pair_filters = PairFilters(filters)
        passes = partial(pair_filters.allowed, sources=texts[0], targets=texts[1])
        choose = partial(best_pairs, forward, backward, margin=margin, retrieval=retrieval)
        if isinstance(threshold, str) and number is None:
            candidates = choose(allow=partial(passes, freeing=True), keep=passes)
            scores = candidates.scores
            pair_filters.rejected.clear()  # only pairs that reach the threshold are counted and logged, below
            estimate = estimate_threshold(
                forward, backward, scores, candidates.source_indices, candidates.target_indices, margin=margin
            )
            del candidates
            number = estimate.threshold
            note = estimate.note
            origin = "none" if number is None else ESTIMATED
            if number is None:
                logger.warning("%s", note)
        elif number is not None:
            scores = choose().scores

        # Choose among the candidates, filter, score again, write.
        log = None if rejects is None else stack.enter_context(atomic_writer(folder.path / REJECTS))

        def ids_of(*places: int) -> tuple[list[str], ...]:
            """Return the ids of all rows with these two sentences."""
            sides = zip(read.values(), texts, places)
            return tuple([text.id(row) for row in unique.members(place)] for text, unique, place in sides)

        def on_reject(pair: RejectedPair) -> None:
            if log is not None:
                log.write(pair.as_json(*ids_of(pair.source_index, pair.target_index)))

        passes = partial(passes, on_reject=on_reject)
        pairs = choose(allow=partial(passes, freeing=True), keep=passes, threshold=number)
        if number is None:
            scores = pairs.scores
        histogram = ScoreHistogram.of(scores, number)
        best = None
        if number is not None and len(scores) and scores[0] < number:
            best = float(scores[0])
        del forward, backward, choose, scores  # the largest of what is in memory
        rejected = dict(pair_filters.rejected)
        selection = [f"retrieval:{retrieval}"]
        margins = None
        if reranker is not None:
            pairs, margins, rejected_by_reranker, name = rescore_pairs(
                *reranker,
                pairs,
                texts,
                folder.path,
                on_reject=on_reject,
                threshold=rescore_threshold,
                progress=progress,
            )
            rejected |= rejected_by_reranker
            selection.append(f"rescore:{name}")
            if rescore_threshold is not None:
                selection.append(f"rescore_threshold:{rescore_threshold:g}")
        with (
            atomic_writer(folder.path / pairs_file) as stream,
            pair_writer(
                stream,
                format,
                languages=written_languages,
                margins=margins is not None,
                threshold="none" if number is None else number,
            ) as write,
        ):
            for row in progress_bar(range(len(pairs)), desc="writing", unit="pairs", show=progress):
                score, source_row, target_row = pairs[row]
                margin_score = None if margins is None else float(margins[row])
                sentences = texts[0][source_row], texts[1][target_row]
                write(score, ids_of(source_row, target_row), sentences, margin_score)
        signature = sign_pairs(
            "mine",
            makers,
            f"margin:{margin}",
            f"k:{k}",
            *selection,
            f"method:{method}",
            f"filters:{pair_filters.signature}",
            f"threshold:{_signed(number, origin)}",
            "duplicates:merged",
            *(f"{name}:{','.join(text.files)}@{text.sha256[:8]}" for name, text in summaries.items()),
        )
        return MiningReport(
            pairs=len(pairs),
            rejected=rejected,
            rows=rows,
            blank={name: text.blank_rows for name, text in distinct.items()},
            distinct={name: len(text) for name, text in distinct.items()},
            threshold=number,
            threshold_source=origin,
            threshold_note=note,
            histogram=histogram,
            best=best,
            source_language=filters.source_language or written_languages[0],
            target_language=filters.target_language or written_languages[1],
            published=published,
            calibration=None if calibration is None else replace(calibration, signature=signature),
            signature=signature,
        )


def _signed(threshold: float | None, source: str) -> str:
    """Return a threshold as signatures have it."""
    if threshold is None:
        return "none"
    return f"{threshold:g}" if source == "given" else f"{threshold:.6g} {source}"


@dataclass(frozen=True, kw_only=True)
class MiningPlan:
    """Estimates for all lines, from measurements on a sample.

    Attributes:
        rows: Lines of each text, by side; duplicates and blank lines count.
        measured: Lines of each text that were measured.
        encode_seconds: Time to embed all lines that have no embeddings; proportional to the lines.
        search_seconds: Time of an exact search; proportional to the product of the lines of both texts.
        memory_bytes: Memory beyond the encoder's: a block of the search, and the neighbors of each line.
        disk_bytes: Disk space of the work: vectors of embedded lines, and the state of the search.
        device: Device of the encoder and the search.
    """

    rows: dict[str, int]
    measured: dict[str, int]
    encode_seconds: float
    search_seconds: float
    memory_bytes: int
    disk_bytes: int
    device: str

    def lines(self) -> list[str]:
        """Describe the plan, one a line."""
        return [
            *(f"{side}: {rows:,} lines, {self.measured[side]:,} of them measured" for side, rows in self.rows.items()),
            f"time: about {duration(self.encode_seconds)} to embed, {duration(self.search_seconds)} for an exact search"
            f" on {self.device}",
            f"memory: about {self.memory_bytes / 2**20:,.0f} MiB beyond the encoder's",
            f"disk: about {self.disk_bytes / 2**20:,.0f} MiB",
        ]


@helpful_arguments
def plan_mining(
    source: str | Path,
    target: str | Path,
    *,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    text_format: TextFormat | None = None,
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    k: int = 4,
    device: str | None = None,
    memory_mib: int = 256,
) -> MiningPlan:
    """Estimate time, memory and disk of :func:`mine_texts` with these options; writes nothing.

    Lines at equal distances in each text are embedded, or their vectors are read if there are embeddings, and the two
    samples are searched. Encoding grows with the lines, an exact search with their product. A small search takes longer
    per product than a large one, so the search is estimated on the high side. Filters, calibration, re-scoring and
    approximate search are not measured.

    Args:
        source: As for ``mine_texts``, as all that follow unless stated otherwise.
        target: As for ``mine_texts``.
        model: As for ``mine_texts``.
        source_embeddings: As for ``mine_texts``.
        target_embeddings: As for ``mine_texts``.
        source_language: Language of the source text, for a model that is centered by language.
        target_language: Language of the target text.
        text_format: As for ``mine_texts``.
        batch_size: As for ``mine_texts``.
        dtype: As for ``mine_texts``.
        prompt: As for ``mine_texts``.
        k: As for ``mine_texts``.
        device: As for ``mine_texts``.
        memory_mib: As for ``mine_texts``.
    Raises:
        ValueError: For options out of range, faulty texts, or embeddings that do not match them.
    """
    device = device or default_device()
    texts = {"source": MiningText(source, format=text_format), "target": MiningText(target, format=text_format)}
    rows = {side: text.validate().rows for side, text in texts.items()}
    check_k(k, rows["source"], rows["target"])
    encoder = None
    if model is not None:
        from st_xling.mining.encoding import Encoder  # slow to import

        encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device)
    given = {"source": source_embeddings, "target": target_embeddings}
    languages = {"source": source_language, "target": target_language}
    makers, _ = vectors_from(encoder, given, rows, languages=languages)
    vectors: dict[str, np.ndarray] = {}
    encode_seconds, embedded = 0.0, 0
    for side, maker in makers.items():
        step = -(-rows[side] // (READY if isinstance(maker, PrecomputedEmbeddings) else EMBEDDED))
        sample = dict(islice((line for line in enumerate(texts[side]) if line[1].strip()), 0, None, step))
        if isinstance(maker, PrecomputedEmbeddings):
            vectors[side] = np.asarray(maker.rows[np.array([*sample])])
            continue
        maker.vectors([*sample.values()][:8])  # the first call prepares the device
        started = time.perf_counter()
        vectors[side] = maker.vectors([*sample.values()])
        encode_seconds += (time.perf_counter() - started) * rows[side] / len(sample)
        embedded += rows[side]
    measured = {side: len(sample) for side, sample in vectors.items()}
    sample_k = min(k, *measured.values())
    for _ in range(2):  # the first run prepares the device
        started = time.perf_counter()
        find_neighbors(vectors["source"], vectors["target"], k=sample_k, device=device, memory_mib=memory_mib)
        searched_in = time.perf_counter() - started
    vector_bytes = vectors["source"].shape[1] * DTYPES[dtype].itemsize + 4 * (dtype == "int8")  # with its scale
    return MiningPlan(
        rows=rows,
        measured=measured,
        encode_seconds=encode_seconds,
        search_seconds=searched_in * math.prod(rows.values()) / math.prod(measured.values()),
        memory_bytes=memory_mib * 2**20 + 12 * k * sum(rows.values()),
        disk_bytes=embedded * vector_bytes + 16 * k * sum(rows.values()),
        device=device,
    )
