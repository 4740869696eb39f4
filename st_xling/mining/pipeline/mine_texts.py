"""Two texts in, a file of scored pairs out.

======  ==============================================================================================
format  a line
======  ==============================================================================================
tsv     ``score TAB source ids TAB target ids TAB source TAB target``, ids joined by commas; cells are
        escaped as by :func:`~st_xling.mining.tsv_line`, so that :func:`~st_xling.mining.tsv_cells` reads it
jsonl   ``{"score": …, "source_ids": […], "target_ids": […], "source": …, "target": …}``
======  ==============================================================================================

Where a cross-encoder has scored the pairs again, its score is the first, and the margin stands last: a sixth cell, or
``"margin"``.

A sentence that occurs several times is mined once: all its ids are there, in the order of its rows, and its first form.
Scores are written so that they are read back as the same number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from st_xling.mining.calibrate import CalibratedThreshold, calibrate_threshold
from st_xling.mining.deduplication import TextSide
from st_xling.mining.filters import RejectedPair, RejectionLog, identify_languages
from st_xling.mining.mine import MinedPairs, best_pairs
from st_xling.mining.pipeline.config import REJECTS, MiningConfig, Stages, check_vectors, rejection_lines, takes_options
from st_xling.mining.text import Files, file_list, tsv_line
from st_xling.mining.thresholds import PUBLISHED, ModelThreshold, resolve_threshold
from st_xling.mining.vectors import ways
from st_xling.utils.console import progress_bar
from st_xling.utils.io import atomic_writer


@dataclass(frozen=True, kw_only=True)
class MiningReport:
    """Metrics of one run.

    Attributes:
        pairs: That were written.
        rejected: Number of rejected pairs per reason code, of filters and the cross-encoder.
        rows: Lines of each text.
        blank: Of these, without a sentence.
        distinct: Sentences that were mined.
        threshold: Minimum score of the kept pairs; ``None`` if all were kept.
        published: The published threshold, if it was used.
        calibration: The estimated threshold, if it was calibrated.
        rescored: What a cross-encoder made of the pairs: ``kept``, ``below`` its threshold, ``cut`` to its length, and
            ``too_long`` for it; ``None`` without one.
        stages: What each stage took and removed, in order.
        signature: One line that says what was done with what.
    """

    pairs: int
    rejected: Mapping[str, int]
    rows: Mapping[str, int]
    blank: Mapping[str, int]
    distinct: Mapping[str, int]
    threshold: float | None
    published: ModelThreshold | None
    calibration: CalibratedThreshold | None
    rescored: Mapping[str, int] | None
    stages: Stages = field(compare=False)
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Metrics, as JSON can write them."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """The metrics for a reader."""
        lines = [
            f"{name}: {rows:,} lines, {self.distinct[name]:,} distinct sentences"
            + (f", {blank:,} blank lines" if (blank := self.blank[name]) else "")
            for name, rows in self.rows.items()
        ]
        lines += [] if self.calibration is None else [self.calibration.line()]
        lines += rejection_lines(self.rejected)
        if (counts := self.rescored) is not None:
            lines.append(
                f"re-scored: {counts['kept']:,} kept, {counts['below']:,} below the threshold, "
                f"{counts['too_long']:,} left out as their source fills the model; {counts['cut']:,} targets cut"
            )
        return lines + self.stages.lines() + ([] if self.published is None else [self.published.line()])


@takes_options()
def mine_texts(source: Files, target: Files, out: str | Path | IO[bytes], **options: Any) -> MiningReport:
    """Find the pairs of two texts that are likely translations, and write them, best first.

    Blank lines are left out; of equal sentences (in NFC, runs of white space as one space) one is mined, and its pair
    carries the ids of all. Filters check candidates before the retrieval chooses among them, see
    :func:`~st_xling.mining.mine.best_pairs`.

    What is embedded and searched is kept in ``work`` until the pairs are written. Repeat the same call to resume a
    killed one there. What that work does not depend on may be changed meanwhile: margin, retrieval, threshold, filters,
    formats.

    Beyond the stores and what an encoder takes, memory grows by 16 bytes a line, and by the larger of a search (see
    :func:`~st_xling.mining.neighbours`) and the choice of pairs: some ``12 * k + 48`` bytes a distinct sentence, more
    where few are each other's best. Text is read from its files when it is needed.

    Args:
        source: One file or several, which count as one text.
        target: The other language.
        out: File of the pairs, replaced if it exists; or a binary stream.
        options: As for :class:`~st_xling.mining.pipeline.config.MiningConfig`.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For options out of range, texts with faults, embeddings of other texts or of two models, ``k`` above
            the number of distinct sentences, a work folder of another task, a broken ``mining.json``, or none that fits
            where ``threshold="published"``.
        OSError: For a full disk; what was done before stays.
    """
    config = MiningConfig(**options)
    config.check()
    config.check_files(out, [*file_list(source), *file_list(target)])
    with ExitStack() as stack:
        # Read both texts once, and raise for all that can be known to be wrong before anything is embedded.
        sides = []
        for name, files in (("source", source), ("target", target)):
            side = TextSide.open(name, files, format=config.text_format, errors=config.errors, progress=config.progress)
            stack.callback(side.text.close)
            sides.append(side)
        for side in sides if config.format == "tsv" else ():
            side.check_ids()
        rescorer = None
        if config.rescore is not None:
            from st_xling.mining.pipeline.rescore import load_reranker, rescore

            loading = {} if config.rescore_dtype is None else {"dtype": config.rescore_dtype}
            rescorer = partial(rescore, *load_reranker(config.rescore, config.place, **loading))
        makers, encoders = config.vector_makers({side.name: len(side.text) for side in sides})
        distinct = {side.name: side.distinct for side in sides}
        check_vectors({side.name: (side.text, side.distinct) for side in sides}, makers, config.k)
        hashes = {side.name: side.summary.sha256 for side in sides}
        folder = stack.enter_context(config.working("mine", out, hashes, makers))

        # Embed, choose the threshold, search.
        stages = Stages()
        published, calibration = None, None
        way: dict[str, Any] = {"margin": config.margin, "k": config.k, "retrieval": config.retrieval}
        way["options"] = ways(makers)
        if config.looks_up:
            published = resolve_threshold(
                config.model,
                required=config.threshold == PUBLISHED,
                work=folder.path,
                texts=[*distinct.values()],
                source_language=config.active_filters.source_language,
                target_language=config.active_filters.target_language,
                **way,
            )
        with stages.timed("embedding"):
            embeddings, method = config.embed(distinct, makers, folder)
        if config.calibrate_with is not None:
            with stages.timed("calibration"):
                calibration = calibrate_threshold(
                    config.calibrate_with,
                    [*distinct.values()],
                    embeddings,
                    encoders,
                    folder=folder.path / "calibration",
                    target_precision=config.target_precision,
                    method=method,
                    index_folder=config.index,
                    **(config.search | way),
                )
        threshold, origin = config.number, None
        if published is not None:
            threshold, origin = published.published.threshold, "published"
        elif calibration is not None:
            threshold, origin = calibration.threshold, "calibrated"
        with stages.timed("search"):
            chosen = identify_languages(config.active_filters, *distinct.values())
            nearest, filters = config.find(embeddings, method, folder, chosen)

        # Choose among the candidates that pass the filters, score again, write.
        choice, rescored = [f"retrieval:{config.retrieval}"], None
        with _rejection_writer(None if config.rejects is None else folder.path / REJECTS, sides) as on_reject:
            allow = partial(filters.allowed, sources=sides[0].distinct, targets=sides[1].distinct, on_reject=on_reject)
            pairs = best_pairs(
                *nearest,
                allow=allow if filters.limits else None,
                margin=config.margin,
                retrieval=config.retrieval,
                threshold=threshold,
            )
            del nearest  # the largest of what is in memory
            stages |= filters.stages
            rejected = filters.rejected
            if rescorer is not None:
                least, texts = config.rescore_threshold, [side.distinct for side in sides]
                with stages.timed("rescore") as stage:
                    rescored = rescorer(pairs, texts, folder.path, threshold=least, progress=config.progress)
                removed = {"rescore": rescored.counts["below"], "too_long": rescored.counts["too_long"]}
                stage |= {"pairs": len(pairs), "removed": sum(removed.values())}
                rejected |= {reason: count for reason, count in removed.items() if count}
                pairs = rescored.pairs
                choice += [f"rescore:{rescored.model}"] + ([] if least is None else [f"rescore_threshold:{least:g}"])
                if on_reject is not None:
                    for pair in rescored.removed:
                        on_reject(pair)
        margins = None if rescored is None else rescored.margins
        with stages.timed("writing"):
            _write_pairs(pairs, sides, config, config.written(folder), margins)
        return MiningReport(
            pairs=len(pairs),
            rejected=rejected,
            rows={side.name: len(side.text) for side in sides},
            blank={side.name: side.distinct.blank_rows for side in sides},
            distinct={name: len(sentences) for name, sentences in distinct.items()},
            threshold=threshold,
            published=published,
            calibration=calibration,
            rescored=None if rescored is None else rescored.counts,
            stages=stages,
            signature=config.signature(
                "mine",
                makers,
                filters,
                method=method,
                threshold=None if origin is None else f"{threshold:.6g} {origin}",
                choice=choice,
                texts=[side.signature for side in sides],
            ),
        )


def _write_pairs(
    pairs: MinedPairs, sides: Sequence[TextSide], config: MiningConfig, path: Path, margins: np.ndarray | None
) -> None:
    """Write pairs of distinct sentences, with the ids of all rows that each stands for, and ``margins`` if any."""
    source, target = sides
    with atomic_writer(path) as stream:
        for row in progress_bar(range(len(pairs)), desc="writing", unit="pairs", show=config.progress):
            one, other = int(pairs.source_indices[row]), int(pairs.target_indices[row])
            score, source_ids, target_ids = float(pairs.scores[row]), source.ids(one), target.ids(other)
            texts = source.distinct[one], target.distinct[other]
            margin = [] if margins is None else [float(margins[row])]
            if config.format == "tsv":
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
    """A function that writes a rejected pair with the ids of all its rows; ``None`` without a path."""
    if path is None:
        yield None
        return
    with RejectionLog(path) as log:

        def write(pair: RejectedPair) -> None:
            log.write(pair, sides[0].ids(pair.source_index), sides[1].ids(pair.target_index))

        yield write
