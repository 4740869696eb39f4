"""Mine scored translation pairs from two text files.

======  ==================================================================================================
format  content
======  ==================================================================================================
tsv     a header line ``score, source_id, target_id, source, target``, then a pair a line, with several ids
        joined by commas; cells are escaped by :func:`~st_xling.mining.tsv_line`
jsonl   ``{"score": …, "source_ids": […], "target_ids": […], "source": …, "target": …}``
======  ==================================================================================================

If a cross-encoder has scored the pairs again, ``score`` is its score, and a last column or key ``margin`` has the
margin score.

A sentence that occurs several times is mined once, in its first form, with all its ids in the order of its rows. Scores
are written so that they are read back as the same number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.mining.calibrate import CalibratedThreshold, calibrate_threshold
from st_xling.mining.deduplication import TextSide
from st_xling.mining.filters import (
    FilterOptions,
    NeighborCounts,
    PairFilters,
    RejectedPair,
    RejectionLog,
    identify_languages,
)
from st_xling.mining.mine import MinedPairs, best_pairs, best_score, check_choice
from st_xling.mining.pipeline.rescore import load_reranker, rescore_pairs
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
from st_xling.mining.search.find import find_neighbors
from st_xling.mining.text import Files, file_list, tsv_line
from st_xling.mining.thresholds import AUTO, PUBLISHED, ModelThreshold, check_threshold, resolve_threshold
from st_xling.mining.vectors import encoding_settings, vectors_from
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer
from st_xling.utils.loaded import name_of
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path


@dataclass(frozen=True, kw_only=True)
class MiningReport:
    """Metrics of one run.

    Attributes:
        pairs: Number of written pairs.
        rejected: Number of rejected pairs per reason code, of filters and the cross-encoder.
        rows: Number of lines of each text.
        blank: Number of lines without a sentence.
        distinct: Number of distinct sentences, which were mined.
        threshold: Minimum score of the kept pairs; ``None`` if all were kept.
        best: Highest score of any candidate, if none reaches the threshold.
        published: The published threshold, if it was used.
        calibration: The estimated threshold, if it was calibrated.
        rescored: Number of pairs that a cross-encoder scored again: ``kept``, ``below`` its threshold, ``cut`` to its
            length, and ``too_long`` for it; ``None`` without one.
        stages: Seconds and removed pairs of each stage, in order.
        signature: Signature of the run.
    """

    pairs: int
    rejected: Mapping[str, int]
    rows: Mapping[str, int]
    blank: Mapping[str, int]
    distinct: Mapping[str, int]
    threshold: float | None
    best: float | None
    published: ModelThreshold | None
    calibration: CalibratedThreshold | None
    rescored: Mapping[str, int] | None
    stages: Stages = field(compare=False)
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """Describe the metrics, one a line."""
        lines = [
            f"{name}: {rows:,} lines, {self.distinct[name]:,} distinct sentences"
            + (f", {blank:,} blank lines" if (blank := self.blank[name]) else "")
            for name, rows in self.rows.items()
        ]
        lines += [] if self.calibration is None else [self.calibration.line()]
        lines += rejection_lines(self.rejected) + best_line(self.best)
        if (counts := self.rescored) is not None:
            lines.append(
                f"re-scored: {counts['kept']:,} kept, {counts['below']:,} below the threshold, "
                f"{counts['too_long']:,} left out as their source fills the model; {counts['cut']:,} targets cut"
            )
        return lines + self.stages.lines() + ([] if self.published is None else [self.published.line()])


def mine_texts(
    source: Files,
    target: Files,
    out: Output,
    *,
    model: Any = None,
    source_embeddings: str | Path | np.ndarray | None = None,
    target_embeddings: str | Path | np.ndarray | None = None,
    text_format: str = "lines",
    errors: str = "strict",
    batch_size: int | None = None,
    dtype: str = "float32",
    prompt: str | None = None,
    k: int = 4,
    margin: str = "ratio",
    retrieval: str = "max",
    threshold: float | str | None = None,
    calibrate_with: str | Path | None = None,
    target_precision: float | None = None,
    rescore: Any = None,
    rescore_threshold: float | None = None,
    rescore_dtype: str | None = None,
    filters: FilterOptions | None = None,
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
) -> MiningReport:
    """Find the pairs of two texts that are likely translations, and write them, best first.

    Blank lines are ignored. Of equal sentences (in NFC, runs of white space as one space) one is mined, and its pair
    has the ids of all. Filters check candidates before the retrieval chooses among them, see
    :func:`~st_xling.mining.best_pairs`.

    Embeddings and the search are kept in ``work`` until the pairs are written. Repeat the same call to resume a killed
    one. Options that they do not depend on may change: margin, retrieval, threshold, filters, formats.

    Beyond the stores and the encoder, memory grows by 16 bytes a line, and by the larger of a search (see
    :func:`~st_xling.mining.find_neighbors`) and the choice of pairs: about ``12 * k + 48`` bytes a distinct sentence,
    more if few are each other's best. Text is read from its files when it is needed.

    Args:
        source: One file or several, which count as one text.
        target: Text in the other language.
        out: File of the pairs, replaced if it exists; or a binary stream.
        model: Encoder of a text without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, ``.npy`` file or array with a row for each line of the source text.
        target_embeddings: The same for the target text.
        text_format: ``"lines"``, ``"bucc"`` or ``"jsonl"``; see :class:`~st_xling.mining.MiningText`.
        errors: ``"strict"`` or ``"replace"``, for bytes that are not UTF-8.
        batch_size: Maximum number of sentences in a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``.
        prompt: Text put before every sentence, such as ``"query: "``.
        k: Number of neighbors of each sentence.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        retrieval: ``"max"``, ``"intersect"``, ``"forward"`` or ``"backward"``; see :func:`~st_xling.mining.mine`.
        threshold: Minimum score of the kept pairs; all are kept by default. ``"published"``: that of the model's
            ``mining.json`` for the languages of ``filters``, or an error that names what differs (see
            :func:`~st_xling.mining.thresholds.match_published_threshold`). ``"auto"``, the default of the command
            line: the same, but all pairs are kept if none matches; ignored with ``calibrate_with``. Languages that are
            not named are identified from a sample of sentences. A resumed run keeps its threshold.
        calibrate_with: File of known translations from elsewhere, from which the threshold is estimated.
        target_precision: Estimated precision that the threshold must reach; by default that of the best estimated F1.
        rescore: A cross-encoder of one label, or the Hub id or folder of one, that scores the mined pairs again, source
            before target, and sorts them by this score.
        rescore_threshold: Minimum score of the cross-encoder, after its activation; other pairs are rejected with the
            reason ``rescore``.
        rescore_dtype: Type in which a cross-encoder that is loaded computes; by default that in which it was saved.
        filters: Enabled filters; all by default.
        rejects: File for the pairs that filters and the cross-encoder reject, as JSON lines.
        format: Format of the pairs, ``"tsv"`` or ``"jsonl"``.
        header: Write a header line in a TSV file.
        method: As for :func:`~st_xling.mining.find_neighbors`.
        index: Folder where the indexes of an approximate search are kept; by default in the work.
        engine: As for :func:`~st_xling.mining.find_neighbors`.
        device: Device to embed and search on; by default a GPU if there is one.
        memory_mib: Limit on the memory of one block of the search, in MiB.
        shard_rows: As for :func:`~st_xling.mining.find_neighbors`.
        save_seconds: Time between two saves of the search.
        work: Work folder; by default ``OUT.work``, or for a stream a temporary one.
        keep_work: Keep the work folder at the end.
        progress: Show progress bars on stderr.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For options out of range, faulty texts, embeddings of other texts or of two models, ``k`` above the
            number of distinct sentences, a work folder of another task, a broken ``mining.json``, or none that matches
            with ``threshold="published"``.
        OSError: For a full disk; the work is kept.
    """
    number = None if isinstance(threshold, str) else threshold
    check_choice(margin=margin, threshold=number, retrieval=retrieval)
    check_threshold(threshold, model=model, calibrate_with=calibrate_with, target_precision=target_precision)
    for name, value in (("rescore_threshold", rescore_threshold), ("rescore_dtype", rescore_dtype)):
        if rescore is None and value is not None:
            raise ValueError(f"{name} needs rescore (--rescore): the cross-encoder that it is for.")
    if rescore_threshold is not None and not np.isfinite(rescore_threshold):
        raise ValueError(f"rescore_threshold must be a finite number: got {rescore_threshold}.")
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
    inputs = [*file_list(source), *file_list(target), name_of(model), *embeddings_given.values()]
    folders = {"work": work_path(out, work), "index": index}
    check_outputs({"out": out, "rejects": rejects}, [*inputs, calibrate_with, rescore], folders=folders)
    device = device or default_device()
    filters = filters or FilterOptions()
    languages = {"source": filters.source_language, "target": filters.target_language}
    with ExitStack() as stack:
        # Read both texts once, and raise for all that can be known to be wrong before anything is embedded.
        sides = []
        for name, files in (("source", source), ("target", target)):
            side = TextSide.open(name, files, format=text_format, errors=errors, progress=progress)
            stack.callback(side.text.close)
            sides.append(side)
        for side in sides if format == "tsv" else ():
            side.check_ids()
        reranker = None
        if rescore is not None:
            loading = {} if rescore_dtype is None else {"dtype": rescore_dtype}
            reranker = load_reranker(rescore, device, **loading)
        makers, encoders = vectors_from(
            model,
            embeddings_given,
            {side.name: len(side.text) for side in sides},
            languages=languages,
            embeds=calibrate_with is not None,
            batch_size=batch_size,
            dtype=dtype,
            prompt=prompt,
            device=device,
            engine=engine,
        )
        distinct = {side.name: side.distinct for side in sides}
        check_vectors({side.name: (side.text, side.distinct) for side in sides}, makers, k=k, method=method)
        folder = stack.enter_context(
            open_work(
                out,
                rejects,
                work,
                command="mine",
                k=k,
                hashes={side.name: side.summary.sha256 for side in sides},
                makers=makers,
                pairs=f"pairs.{format}",
                keep_work=keep_work,
            )
        )

        # Embed, choose the threshold, search.
        stages, settings = Stages(), encoding_settings(makers)
        published, calibration = None, None
        # A calibration comes before a published threshold that may be missing.
        if isinstance(threshold, str) and (threshold != AUTO or calibrate_with is None):
            published = resolve_threshold(
                model,
                required=threshold == PUBLISHED,
                work=folder.path,
                texts=[*distinct.values()],
                source_language=filters.source_language,
                target_language=filters.target_language,
                margin=margin,
                k=k,
                retrieval=retrieval,
                options=settings,
            )
        with stages.timed("embedding"):
            embeddings, method = embed_distinct(distinct, makers, folder.path, method=method, progress=progress)
        search = partial(
            find_neighbors,
            k=k,
            method=method,
            device=device,
            memory_mib=memory_mib,
            shard_rows=shard_rows,
            save_seconds=save_seconds,
            progress=progress,
        )
        own_folder = search_name(method, shard_rows)
        if calibrate_with is not None:
            with stages.timed("calibration"):
                calibration = calibrate_threshold(
                    calibrate_with,
                    [*distinct.values()],
                    embeddings,
                    encoders,
                    search,
                    folder=folder.path / f"calibration-{own_folder}",
                    index_folder=index,
                    options=settings,
                    target_precision=target_precision,
                    k=k,
                    margin=margin,
                    retrieval=retrieval,
                    progress=progress,
                )
        origin = f"{number:g}" if number is not None else "none"
        if published is not None:
            number = published.published.threshold
            origin = f"{number:.6g} published"
        elif calibration is not None:
            number = calibration.threshold
            origin = f"{number:.6g} calibrated"
        with stages.timed("search"):
            filters = identify_languages(filters, *distinct.values())
            forward, backward = search(
                *embeddings,
                engine=engine,
                state_folder=folder.path / own_folder,
                index_folder=index or folder.path / "indexes",
            )
            pair_filters = PairFilters(filters, counts=NeighborCounts.of(forward, backward))

        # Choose among the candidates that pass the filters, score again, write.
        choice, rescored = [f"retrieval:{retrieval}"], None
        with _rejection_writer(None if rejects is None else folder.path / REJECTS, sides) as on_reject:
            allow = partial(
                pair_filters.allowed, sources=sides[0].distinct, targets=sides[1].distinct, on_reject=on_reject
            )
            pairs = best_pairs(
                forward,
                backward,
                allow=allow if pair_filters.limits else None,
                margin=margin,
                retrieval=retrieval,
                threshold=number,
            )
            best = None
            if not len(pairs) and number is not None:
                best = best_score(forward, backward.means, margin=margin)
                best = None if best is None or best >= number else best
            del forward, backward  # the largest of what is in memory
            stages |= pair_filters.stages
            rejected = pair_filters.rejected
            if reranker is not None:
                texts = [side.distinct for side in sides]
                with stages.timed("rescore") as stage:
                    rescored = rescore_pairs(
                        *reranker, pairs, texts, folder.path, threshold=rescore_threshold, progress=progress
                    )
                removed = {"rescore": rescored.counts["below"], "too_long": rescored.counts["too_long"]}
                stage |= {"pairs": len(pairs), "removed": sum(removed.values())}
                rejected |= {reason: count for reason, count in removed.items() if count}
                pairs = rescored.pairs
                choice.append(f"rescore:{rescored.model}")
                choice += [] if rescore_threshold is None else [f"rescore_threshold:{rescore_threshold:g}"]
                if on_reject is not None:
                    for pair in rescored.removed:
                        on_reject(pair)
        with stages.timed("writing"):
            _write_pairs(
                pairs,
                sides,
                folder.path / f"pairs.{format}",
                margins=None if rescored is None else rescored.margins,
                format=format,
                header=header,
                progress=progress,
            )
        return MiningReport(
            pairs=len(pairs),
            rejected=rejected,
            rows={side.name: len(side.text) for side in sides},
            blank={side.name: side.distinct.blank_rows for side in sides},
            distinct={name: len(sentences) for name, sentences in distinct.items()},
            threshold=number,
            best=best,
            published=published,
            calibration=calibration,
            rescored=None if rescored is None else rescored.counts,
            stages=stages,
            signature=sign_pairs(
                "mine",
                makers,
                pair_filters,
                margin=margin,
                k=k,
                method=method,
                shard_rows=shard_rows,
                threshold=origin,
                choice=choice,
                texts=[side.signature for side in sides],
            ),
        )


def _write_pairs(
    pairs: MinedPairs,
    sides: Sequence[TextSide],
    path: Path,
    *,
    margins: np.ndarray | None,
    format: str,
    header: bool,
    progress: bool,
) -> None:
    """Write pairs of distinct sentences, with the ids of all their rows, and with ``margins`` if there are any."""
    source, target = sides
    with atomic_writer(path) as stream:
        if format == "tsv" and header:
            stream.write(header_line(*([] if margins is None else ["margin"])))
        for row in progress_bar(range(len(pairs)), desc="writing", unit="pairs", show=progress):
            one, other = int(pairs.source_indices[row]), int(pairs.target_indices[row])
            score, source_ids, target_ids = float(pairs.scores[row]), source.ids(one), target.ids(other)
            texts = source.distinct[one], target.distinct[other]
            margin = [] if margins is None else [float(margins[row])]
            if format == "tsv":
                ids = ",".join(source_ids), ",".join(target_ids)
                line = tsv_line([repr(score), *ids, *texts, *map(repr, margin)])
            else:
                record: dict[str, Any] = {"score": score, "source_ids": source_ids, "target_ids": target_ids}
                record |= {"source": texts[0], "target": texts[1], **({"margin": margin[0]} if margin else {})}
                line = json.dumps(record, ensure_ascii=False)
            stream.write(line.encode("utf-8") + b"\n")


@contextmanager
def _rejection_writer(
    path: Path | None, sides: Sequence[TextSide]
) -> Iterator[Callable[[RejectedPair], object] | None]:
    """Open a file of rejects; yields a function that writes a pair with the ids of all its rows."""
    if path is None:
        yield None
        return
    with RejectionLog(path) as log:

        def write(pair: RejectedPair) -> None:
            log.write(pair, sides[0].ids(pair.source_index), sides[1].ids(pair.target_index))

        yield write
