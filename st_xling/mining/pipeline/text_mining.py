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
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from st_xling.mining.calibration import calibrate_threshold
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import FilterOptions, PairFilters, RejectedPair, identify_languages
from st_xling.mining.first_stage import mine_backgrounds, with_background
from st_xling.mining.mined_pairs import MinedPairs, best_pairs
from st_xling.mining.options import EncodingOptions, FirstStageOptions, SearchOptions
from st_xling.mining.pipeline.first_stage import FirstStage, FirstStageReport, Selection, static_encoders
from st_xling.mining.pipeline.rescore import load_reranker, rescore_pairs
from st_xling.mining.pipeline.rescore import rescore_threshold as resolve_rescoring
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    SideLanguages,
    WrittenPair,
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
)
from st_xling.mining.score_mixture import ESTIMATED, ThresholdEstimate, estimate_threshold
from st_xling.mining.search.exact import Neighbors, check_k
from st_xling.mining.search.find import choose_method, find_neighbors
from st_xling.mining.store import DTYPES
from st_xling.mining.text import MiningText, TextSummary
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.mining.thresholds import AUTO, PUBLISHED, PublishedThreshold, find_published_threshold
from st_xling.mining.vectors import PrecomputedEmbeddings, VectorProviders, encoding_settings, vectors_from
from st_xling.utils.cosines import Embeddings
from st_xling.utils.io import atomic_writer
from st_xling.utils.options import PairFormat, TextFormat, check_choice, check_number, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, ResumableFolder, work_path
from st_xling.utils.score_histogram import ScoreHistogram
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import duration, progress_bar

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

    from st_xling.mining.encoding import Encoder

logger = logging.getLogger(__name__)

ALL_KEPT = (
    "All pairs are kept, right or wrong. Set a threshold: --threshold X, or --calibrate known.tsv. Look at the pairs: "
    "st-xling pairs FILE --around X"
)
OTHER_THRESHOLDS = "Another threshold: --threshold X, or --calibrate known.tsv; all pairs: --keep-all."

#: Lines of a text that are measured by :func:`plan_mining`: fewer where they must be embedded first.
MEASURED_ENCODED = 2048
MEASURED_PRECOMPUTED = 8192


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
        first_stage: What a static encoder chose to embed, if there was a first stage.
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
    first_stage: FirstStageReport | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        metrics = {**super().as_dict(), "histogram": self.histogram.as_dict()}
        if self.first_stage is None:
            del metrics["first_stage"]
        else:
            metrics["first_stage"] = self.first_stage.as_dict()
        return metrics

    def lines(self) -> list[str]:
        """Describe the metrics, one a line; the last lines are a histogram of the scores and what to do about it."""
        lines = [
            f"{side}: {rows:,} lines, {self.distinct[side]:,} distinct sentences, {self.blank[side]:,} blank lines"
            for side, rows in self.rows.items()
        ]
        if self.first_stage is not None:
            lines.append(self.first_stage.line())
        lines += super().lines()
        total = self.histogram.total
        if total:
            before = " before filters" if self.threshold_source in ("given", "published", "calibrated") else ""
            lines += [f"scores of {total:,} pairs{before}, best first:", *self.histogram.lines()]
        if not total:
            lines.append(self._why_no_pairs())
        elif self.threshold_source == "none":
            lines.append(ALL_KEPT)
        else:
            kept = self.histogram.kept
            lines.append(f"{kept:,} of {total:,} pairs ({kept / total:.1%}) reach the threshold. {OTHER_THRESHOLDS}")
        if self.threshold_note:
            lines.append(self.threshold_note)
        return lines

    def _why_no_pairs(self) -> str:
        """Return why there are no pairs, and what to do."""
        if not self.rejected:
            return "No pairs: no sentence of either text is among the nearest of one in the other."
        reason = max(self.rejected, key=self.rejected.__getitem__)
        advice = f"--disable-filter {reason} keeps them, and --rejects FILE shows them"
        if reason == "language":
            source = self.source_language or "an unknown language"
            target = self.target_language or "an unknown language"
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
    search: SearchOptions = SearchOptions(),
    encoding: EncodingOptions = EncodingOptions(),
    first_stage: FirstStageOptions | None = None,
    threshold: float | str | None = None,
    calibrate_with: str | Path | None = None,
    target_precision: float | None = None,
    rescore: Any = None,
    rescore_threshold: float | None = None,
    filters: FilterOptions | None = None,
    rejects: Output | None = None,
    format: PairFormat | None = None,
    work: str | Path | None = None,
    progress: bool = False,
) -> MiningReport:
    """Find the pairs of two texts that are likely translations, and write them, best first.

    Blank lines are ignored. Of equal sentences (in NFC, runs of white space as one space) one is mined, and its pair
    has the ids of all. A candidate that has a sentence in a wrong language, or an untranslated one, is rejected before
    the retrieval chooses among them, so that the other sentence is free for another partner; whatever else filters
    reject is removed after the choice (see :func:`~st_xling.mining.best_pairs`).

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
        search: How neighbors are searched, and how pairs are scored and chosen.
        encoding: How the texts are embedded; its device and engine also search.
        first_stage: A static encoder that reads both texts first, so that only sentences that may have a translation
            are embedded; see :mod:`st_xling.mining.first_stage`. All are embedded by default.
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
            reason ``rescore``. By default the threshold that a filter was saved with (``st-xling train filter``), and
            none of another cross-encoder.
        filters: Enabled filters; all by default.
        rejects: File for the pairs that filters and the cross-encoder reject, as JSON lines; or a binary stream.
        format: Format of the pairs: ``"tsv"``, ``"jsonl"``, or ``"tmx"``, whose languages are those of ``filters``, of
            the file names, or identified; by default that of the ending of ``out``, otherwise TSV.
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
    _check_threshold(threshold, calibrate_with, target_precision, has_model=model is not None)
    check_number("rescore_threshold", rescore_threshold)
    if rescore is None and rescore_threshold is not None:
        raise ValueError("rescore_threshold needs rescore (--rescore): the cross-encoder that it is for.")
    precomputed = {"source": source_embeddings, "target": target_embeddings}
    _check_first_stage(first_stage, precomputed)
    filters = filters or FilterOptions()
    named_languages = (filters.source_language, filters.target_language)
    lines = _open_texts(source, target, text_format, named_languages)
    inputs = [source, target, name_of(model), *precomputed.values(), calibrate_with, rescore]
    if first_stage is not None:
        inputs += map(name_of, first_stage.models)
    check_outputs({"out": out, "rejects": rejects}, inputs, folders={"work": work_path(out, work)})
    encoding = on_default_device(encoding)
    format = resolve_format(format, out)

    with closing(lines["source"]), closing(lines["target"]):
        # Read both texts once, and raise for all that can be known to be wrong before anything is embedded.
        texts = _Texts.read(lines, progress=progress)
        check_text_languages(filters, *texts.sentences)
        written_languages: SideLanguages = named_languages
        if format == "tmx":
            written_languages = named_or_found(named_languages, [source, target], texts.sentences)
        reranker = None
        if rescore is not None:
            reranker = load_reranker(rescore, encoding.device)
            rescore_threshold = resolve_rescoring(reranker[1] or reranker[0], rescore_threshold)
        encoder = text_encoder(model, encoding)
        providers, encoders = vectors_from(
            encoder,
            precomputed,
            texts.rows,
            languages=dict(zip(lines, named_languages)),
            embeds=calibrate_with is not None,
        )
        task = search_task("mine", texts.distinct, texts.summaries, providers, search)
        statics: list[Encoder] = []
        if first_stage is not None:
            statics = static_encoders(first_stage, encoding)
            task["first stage"] = [static.settings for static in statics]
            task["background"] = [first_stage.background, first_stage.seed]

        pairs_file = f"pairs.{format}"
        with open_work(out, work, task, {pairs_file: out, REJECTS: rejects}) as folder:
            run = _MiningRun(texts, providers, search, encoding, filters, threshold, folder, progress=progress)
            if threshold in (AUTO, PUBLISHED) and calibrate_with is None:
                run.find_published_threshold(encoder, required=threshold == PUBLISHED)
            if first_stage is None:
                run.embed()
            else:
                run.embed_selection(first_stage, statics, encoders)
            if calibrate_with is not None:
                run.calibrate_threshold(calibrate_with, encoders, target_precision)
            with nullcontext() if rejects is None else atomic_writer(folder.path / REJECTS) as log:
                run.choose_pairs(log)
                if reranker is not None:
                    run.rescore_pairs(*reranker, rescore_threshold, log)
            with atomic_writer(folder.path / pairs_file) as stream:
                run.write_pairs(stream, format, written_languages)
            return run.report(written_languages)


def _check_first_stage(first_stage: FirstStageOptions | None, precomputed: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for a first stage before a text that is embedded already."""
    if first_stage is None:
        return
    if not isinstance(first_stage, FirstStageOptions):
        raise TypeError(f"first_stage must be FirstStageOptions(model=...): got {type(first_stage).__name__}.")
    ready = [side for side, embeddings in precomputed.items() if embeddings is not None]
    if ready:
        raise ValueError(
            f"a first stage chooses the sentences to embed: got embeddings of the {' and the '.join(ready)} text; "
            "leave out one of the two."
        )


def _check_threshold(
    threshold: float | str | None,
    calibrate_with: str | Path | None,
    target_precision: float | None,
    *,
    has_model: bool,
) -> None:
    """Raise ``ValueError`` for options of the threshold that are out of range, or exclude each other."""
    if isinstance(threshold, str):
        check_choice("threshold", threshold, [AUTO, PUBLISHED, ESTIMATED])
    else:
        check_number("threshold", threshold)
    check_number("target_precision", target_precision, least=0)
    if calibrate_with is None and target_precision is not None:
        raise ValueError("target_precision needs calibrate_with (--calibrate): a file of known translations.")
    if calibrate_with is not None and threshold not in (None, AUTO):
        raise ValueError("threshold and calibrate_with both set the threshold: choose one of them.")
    if calibrate_with is not None and not has_model:
        raise ValueError("calibrate_with needs the model (--model): known translations must be embedded like the text.")


def _open_texts(
    source: str | Path, target: str | Path, format: TextFormat | None, languages: SideLanguages
) -> dict[str, MiningText]:
    return {
        "source": MiningText(source, format=format, language=languages[0]),
        "target": MiningText(target, format=format, language=languages[1]),
    }


@dataclass(frozen=True)
class _Texts:
    """Both texts to mine, by side.

    Attributes:
        lines: Their lines, as they are.
        summaries: Their sizes and hashes.
        distinct: Their distinct sentences, which are mined.
    """

    lines: dict[str, MiningText]
    summaries: dict[str, TextSummary]
    distinct: dict[str, UniqueSentences]

    @classmethod
    def read(cls, lines: dict[str, MiningText], *, progress: bool) -> _Texts:
        """Read both texts once.

        Raises:
            ValueError: For faulty lines, or a text without sentences.
        """
        summaries = {side: text.validate(progress=progress) for side, text in lines.items()}
        distinct = {side: UniqueSentences(text, text.path) for side, text in lines.items()}
        return cls(lines, summaries, distinct)

    @property
    def sentences(self) -> tuple[UniqueSentences, UniqueSentences]:
        """Distinct sentences of source and target."""
        return self.distinct["source"], self.distinct["target"]

    @property
    def rows(self) -> dict[str, int]:
        """Number of lines of each text."""
        return {side: summary.rows for side, summary in self.summaries.items()}

    def ids(self, source_index: int, target_index: int) -> tuple[list[str], list[str]]:
        """Return the ids of all lines with these two distinct sentences."""
        return self._side_ids("source", source_index), self._side_ids("target", target_index)

    def _side_ids(self, side: str, index: int) -> list[str]:
        lines = self.lines[side]
        return [lines.id(row) for row in self.distinct[side].members(index)]

    def pair(self, source_index: int, target_index: int) -> tuple[str, str]:
        """Return two distinct sentences."""
        sources, targets = self.sentences
        return sources[source_index], targets[target_index]


@dataclass(frozen=True)
class _Threshold:
    """Threshold of a run.

    Attributes:
        score: Minimum score of the kept pairs; ``None`` if all are kept.
        source: As in :class:`MiningReport`, as all that follow.
        note: Description of a threshold that was not given.
        published: The published threshold, if it is used.
        calibration: The estimated threshold, if it was calibrated.
    """

    score: float | None = None
    source: str = "none"
    note: str = ""
    published: PublishedThreshold | None = None
    calibration: PublishedThreshold | None = None

    def __str__(self) -> str:
        """Return the threshold as signatures have it."""
        if self.score is None:
            return "none"
        return f"{self.score:g}" if self.source == "given" else f"{self.score:.6g} {self.source}"


class _MiningRun:
    """A run of :func:`mine_texts` whose input is known to be right; its methods are the steps, in their order.

    Args:
        texts: Both texts.
        providers: Providers of their vectors, by side.
        search: Options of the search; ``embed`` resolves the method.
        encoding: Options of the encoder, with a device.
        filters: Enabled filters, perhaps without languages.
        threshold: As for :func:`mine_texts`.
        folder: Work folder.
        progress: Show progress bars on stderr.
    """

    embeddings: tuple[Embeddings, Embeddings]
    pairs: MinedPairs
    #: Sentences that the first stage chose, and its report.
    selected: Selection | None = None
    first_stage: FirstStageReport | None = None
    #: Margins of the pairs, if a cross-encoder has scored them again. *Shape:* ``(pairs,)``
    margins: np.ndarray | None = None
    histogram: ScoreHistogram
    #: The filters that ran, with their limits.
    filter_signature: str
    #: Highest score of any pair, if none reaches the threshold.
    best: float | None = None

    def __init__(
        self,
        texts: _Texts,
        providers: VectorProviders,
        search: SearchOptions,
        encoding: EncodingOptions,
        filters: FilterOptions,
        threshold: float | str | None,
        folder: ResumableFolder,
        *,
        progress: bool,
    ) -> None:
        self.texts = texts
        # Of the whole texts, whatever a first stage chooses.
        self.blank = {side: text.blank_rows for side, text in texts.distinct.items()}
        self.distinct = {side: len(text) for side, text in texts.distinct.items()}
        self.providers = providers
        self.search = search
        self.encoding = encoding
        self.filters = filters
        self.folder = folder
        self.progress = progress
        self.settings = encoding_settings(providers)
        # A threshold with a name is estimated where it is neither published nor calibrated.
        self.can_estimate = isinstance(threshold, str)
        self.threshold = _Threshold()
        if threshold is not None and not isinstance(threshold, str):
            self.threshold = _Threshold(threshold, "given")
        self.rejected: dict[str, int] = {}
        # Parts of the signature that say how pairs were selected.
        self.selection = [f"retrieval:{search.retrieval}"]

    def find_published_threshold(self, encoder: Encoder | None, *, required: bool) -> None:
        """Use the threshold that the model was published with, if it is valid for this run.

        Raises:
            ValueError: If it is required, and there is none.
        """
        search = self.search
        run = {"margin": search.margin, "k": search.k, "retrieval": search.retrieval, **self.settings}
        model = None if encoder is None else encoder.model
        named_languages = (self.filters.source_language, self.filters.target_language)
        published, note = find_published_threshold(model, self.texts.sentences, named_languages, run, required=required)
        if published is not None:
            self.threshold = _Threshold(published.threshold, "published", note, published=published)

    def embed(self) -> None:
        """Embed both texts, and choose the method to search them by."""
        self.embeddings, self.search = embed_distinct(
            self.texts.distinct, self.providers, self.folder.path, self.search, progress=self.progress
        )

    def embed_selection(
        self, first_stage: FirstStageOptions, statics: list[Encoder], encoders: Mapping[str, Encoder]
    ) -> None:
        """Embed the sentences that static encoders choose, and mine only these.

        Args:
            first_stage: Options of the static encoders.
            statics: The static encoders.
            encoders: Encoders of both texts, by side.
        """
        self.filters = identify_languages(self.filters, *self.texts.sentences)
        distinct = self.texts.distinct
        stage = FirstStage(
            first_stage, statics, distinct, encoders, self.search, self.encoding, self.folder, progress=self.progress
        )
        all_texts = self.texts

        def mine_selection(selection: Selection) -> tuple[np.ndarray, np.ndarray]:
            """Restrict the run to a selection, and return its likely pairs, numbered as in the texts."""
            self.selected = selection
            chosen = {side: distinct[side].subset(rows) for side, rows in zip(distinct, selection.rows)}
            self.texts = replace(all_texts, distinct=chosen)
            self.embeddings = selection.embeddings
            sources, dim = map(int, self.embeddings[0].shape)
            targets = int(self.embeddings[1].shape[0])
            self.search = replace(self.search, method=choose_method(requested_method, sources, targets, dim))
            pairs = self._likely_pairs()
            source_rows, target_rows = selection.rows
            return source_rows[pairs.source_indices], target_rows[pairs.target_indices]

        requested_method = self.search.method
        _, self.first_stage = stage.select(mine_selection)
        self.selection.append(self.first_stage.sign())

    def _likely_pairs(self) -> MinedPairs:
        """Choose the pairs that pass the filters and reach the threshold, or the one that is estimated from them."""
        neighbors = self._find_neighbors()
        sources, targets = self.texts.sentences
        pair_filters = PairFilters(self.filters)
        check = partial(pair_filters.allowed, sources=sources, targets=targets)
        pairs = best_pairs(
            *neighbors,
            allow=partial(check, freeing=True),
            spent=partial(pair_filters.spent, sources=sources, targets=targets),
            keep=check,
            margin=self.search.margin,
            retrieval=self.search.retrieval,
            threshold=self.threshold.score,
        )
        if self.threshold.score is not None:
            return pairs
        estimate = self._estimate_from(neighbors, pairs)
        if estimate.threshold is None:
            return pairs[:0]
        return pairs.select(pairs.scores >= estimate.threshold)

    def _find_neighbors(self) -> tuple[Neighbors, Neighbors]:
        """Search both texts in each other."""
        state_folder = self.folder.path / search_name(self.search.method)
        if self.selected is not None:
            state_folder = self.folder.path / self.selected.name / search_name(self.search.method)
        return self._search(*self.embeddings, k=self.search.k, state_folder=state_folder)

    def _search(
        self, source: Embeddings, target: Embeddings, *, k: int, state_folder: Path
    ) -> tuple[Neighbors, Neighbors]:
        """Find neighbors with the options of the run, whose means are those in the whole texts."""
        find_neighbors = neighbor_search(self.search, self.encoding, progress=self.progress)
        forward, backward = find_neighbors(source, target, k=k, state_folder=state_folder)
        if self.selected is None:
            return forward, backward
        source_background, target_background = self.selected.backgrounds
        add_background = partial(
            with_background, memory_mib=self.search.memory_mib, device=self.encoding.device or "cpu"
        )
        forward = add_background(forward, source, target_background)
        return forward, add_background(backward, target, source_background)

    def calibrate_threshold(
        self, known_pairs: str | Path, encoders: Mapping[str, Encoder], target_precision: float | None
    ) -> None:
        """Estimate the threshold from a file of known translations."""
        calibration, note = calibrate_threshold(
            known_pairs,
            self.texts.sentences,
            self.embeddings,
            encoders,
            self._search,
            search=self.search,
            folder=self.folder.path / f"calibration-{search_name(self.search.method)}",
            settings=self.settings,
            target_precision=target_precision,
            progress=self.progress,
        )
        self.threshold = _Threshold(calibration.threshold, "calibrated", note, calibration=calibration)

    def choose_pairs(self, log: IO[bytes] | None) -> None:
        """Search both texts in each other, and choose the pairs that pass the filters and reach the threshold.

        Args:
            log: Stream for the pairs that are rejected, as JSON lines.
        """
        # Local, since it is the largest of what is in memory: free before pairs are scored again and written.
        neighbors = self._find_neighbors()
        sources, targets = self.texts.sentences
        self.filters = identify_languages(self.filters, sources, targets)
        pair_filters = PairFilters(self.filters)
        choose = partial(best_pairs, *neighbors, margin=self.search.margin, retrieval=self.search.retrieval)
        check = partial(pair_filters.allowed, sources=sources, targets=targets)
        spent = partial(pair_filters.spent, sources=sources, targets=targets)
        scores: np.ndarray | None = None
        if self.can_estimate and self.threshold.score is None:
            candidates = choose(allow=partial(check, freeing=True), spent=spent, keep=check)
            pair_filters.rejected.clear()  # only pairs that reach the threshold are counted and logged, below
            self._estimate_threshold(neighbors, candidates)
            scores = candidates.scores
            del candidates
        elif self.threshold.score is not None:
            scores = choose().scores

        check_and_log = partial(check, on_reject=partial(self._log_reject, log))
        threshold = self.threshold.score
        self.pairs = choose(
            allow=partial(check_and_log, freeing=True), spent=spent, keep=check_and_log, threshold=threshold
        )
        if threshold is None or scores is None:
            scores = self.pairs.scores
        elif len(scores) and scores[0] < threshold:
            self.best = float(scores[0])
        self.histogram = ScoreHistogram.of(scores, threshold)
        self.rejected = dict(pair_filters.rejected)
        self.filter_signature = pair_filters.signature

    def _estimate_threshold(self, neighbors: tuple[Neighbors, Neighbors], candidates: MinedPairs) -> None:
        """Estimate the threshold from the scores of the pairs that pass the filters; warn if all are kept."""
        estimate = self._estimate_from(neighbors, candidates)
        if estimate.threshold is None:
            self.threshold = _Threshold(note=estimate.note)
            logger.warning("%s", estimate.note)
        else:
            self.threshold = _Threshold(estimate.threshold, ESTIMATED, estimate.note)

    def _estimate_from(self, neighbors: tuple[Neighbors, Neighbors], pairs: MinedPairs) -> ThresholdEstimate:
        """Estimate the threshold from the scores of pairs, and of those among random others that were left out."""
        sampled = None
        if self.selected is not None:
            sampled = mine_backgrounds(
                self.selected.embeddings,
                self.selected.backgrounds,
                k=self.search.k,
                margin=self.search.margin,
                memory_mib=self.search.memory_mib,
                device=self.encoding.device or "cpu",
            )
        return estimate_threshold(
            *neighbors,
            pairs.scores,
            pairs.source_indices,
            pairs.target_indices,
            margin=self.search.margin,
            sampled=sampled,
        )

    def _log_reject(self, log: IO[bytes] | None, pair: RejectedPair) -> None:
        if log is not None:
            log.write(pair.as_json(*self.texts.ids(pair.source_index, pair.target_index)))

    def rescore_pairs(
        self, reranker: CrossEncoder, name: str | None, threshold: float | None, log: IO[bytes] | None
    ) -> None:
        """Score the pairs again with a cross-encoder, and sort them by these scores.

        Args:
            reranker: The cross-encoder.
            name: Name by which it was loaded.
            threshold: Minimum score, after its activation, of the kept pairs.
            log: As for :meth:`choose_pairs`.
        """
        rescored = rescore_pairs(
            reranker,
            name,
            self.pairs,
            self.texts.sentences,
            self.folder,
            threshold=threshold,
            on_reject=partial(self._log_reject, log),
            progress=self.progress,
        )
        self.pairs = rescored.pairs
        self.margins = rescored.margins
        self.rejected |= rescored.rejected
        self.selection.append(f"rescore:{rescored.model}")
        if threshold is not None:
            self.selection.append(f"rescore_threshold:{threshold:g}")

    def write_pairs(self, stream: IO[bytes], format: PairFormat, languages: SideLanguages) -> None:
        """Write the pairs to a stream.

        Args:
            stream: The stream.
            format: Format of the pairs.
            languages: Languages of both texts, for TMX.
        """
        threshold: float | Literal["none"] = "none"
        if self.threshold.score is not None:
            threshold = self.threshold.score
        has_margins = self.margins is not None
        with pair_writer(stream, format, languages=languages, margins=has_margins, threshold=threshold) as write:
            rows = range(len(self.pairs))
            for row in progress_bar(rows, desc="writing", unit="pairs", show=self.progress):
                score, source_index, target_index = self.pairs[row]
                margin = None if self.margins is None else float(self.margins[row])
                ids = self.texts.ids(source_index, target_index)
                write(WrittenPair(score, ids, self.texts.pair(source_index, target_index), margin))

    def report(self, languages: SideLanguages) -> MiningReport:
        """Return the metrics of the run.

        Args:
            languages: Languages that were named, or written to TMX.
        """
        signature = self._sign()
        calibration = self.threshold.calibration
        if calibration is not None:
            calibration = replace(calibration, signature=signature)
        return MiningReport(
            pairs=len(self.pairs),
            rejected=self.rejected,
            rows=self.texts.rows,
            blank=self.blank,
            distinct=self.distinct,
            threshold=self.threshold.score,
            threshold_source=self.threshold.source,
            threshold_note=self.threshold.note,
            histogram=self.histogram,
            first_stage=self.first_stage,
            best=self.best,
            source_language=self.filters.source_language or languages[0],
            target_language=self.filters.target_language or languages[1],
            published=self.threshold.published,
            calibration=calibration,
            signature=signature,
        )

    def _sign(self) -> str:
        data = [
            f"{side}:{','.join(summary.files)}@{summary.sha256[:8]}" for side, summary in self.texts.summaries.items()
        ]
        return sign_pairs(
            "mine",
            self.providers,
            f"margin:{self.search.margin}",
            f"k:{self.search.k}",
            *self.selection,
            f"method:{self.search.method}",
            f"filters:{self.filter_signature}",
            f"threshold:{self.threshold}",
            "duplicates:merged",
            *data,
        )


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
        first_stage_seconds: Time of the first stage, an exact search with its own vectors included; ``None`` without
            one. How many sentences it leaves to embed is not known before.
    """

    rows: dict[str, int]
    measured: dict[str, int]
    encode_seconds: float
    search_seconds: float
    memory_bytes: int
    disk_bytes: int
    device: str
    first_stage_seconds: float | None = None

    def lines(self) -> list[str]:
        """Describe the plan, one a line."""
        sides = [
            f"{side}: {rows:,} lines, {self.measured[side]:,} of them measured" for side, rows in self.rows.items()
        ]
        first_stage = []
        if self.first_stage_seconds is not None:
            first_stage.append(
                f"first stage: about {duration(self.first_stage_seconds)}; then {duration(self.encode_seconds / 10)} "
                "for each tenth of the lines that it leaves to embed. Without it:"
            )
        return [
            *sides,
            *first_stage,
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
    search: SearchOptions = SearchOptions(),
    encoding: EncodingOptions = EncodingOptions(),
    first_stage: FirstStageOptions | None = None,
) -> MiningPlan:
    """Estimate time, memory and disk of :func:`mine_texts` with these options; writes nothing.

    Lines at equal distances in each text are embedded, or their vectors are read if there are embeddings, and the two
    samples are searched. Encoding grows with the lines, an exact search with their product. A small search takes longer
    per product than a large one, so the search is estimated on the high side. Filters, calibration, re-scoring,
    approximate search and Ray are not measured.

    Args:
        source: File of the text.
        target: Text in the other language.
        model: Encoder of a text without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, ``.npy`` file or array with a row for each line of the source text.
        target_embeddings: The same for the target text.
        source_language: Language of the source text, for a model that is centered by language.
        target_language: Language of the target text.
        text_format: Format of the lines, see :func:`mine_texts`.
        search: Options of the search, of which ``k`` and ``memory_mib`` are measured.
        encoding: How the texts are embedded; its device also searches.
        first_stage: A static encoder that reads both texts first.

    Raises:
        ValueError: For options out of range, faulty texts, or embeddings that do not match them.
    """
    _check_first_stage(first_stage, {"source": source_embeddings, "target": target_embeddings})
    encoding = on_default_device(encoding)
    texts = _open_texts(source, target, text_format, (source_language, target_language))
    rows = {side: text.validate().rows for side, text in texts.items()}
    check_k(search.k, rows["source"], rows["target"])
    providers, _ = vectors_from(
        text_encoder(model, encoding),
        {"source": source_embeddings, "target": target_embeddings},
        rows,
        languages={"source": source_language, "target": target_language},
    )
    samples: dict[str, np.ndarray] = {}
    encode_seconds = 0.0
    encoded_rows = 0
    for side, provider in providers.items():
        if isinstance(provider, PrecomputedEmbeddings):
            sampled_rows, _ = _sample_lines(texts[side], rows[side], MEASURED_PRECOMPUTED)
            samples[side] = np.asarray(provider.rows[np.array(sampled_rows)])
            continue
        samples[side], seconds = _time_encoder(provider, texts[side], rows[side], MEASURED_ENCODED)
        encode_seconds += seconds
        encoded_rows += rows[side]
    measured = {side: len(sample) for side, sample in samples.items()}
    sample_seconds = _time_search(samples, search, encoding)
    first_stage_seconds = None
    if first_stage is not None:
        first_stage_seconds = _time_first_stage(first_stage, texts, rows, search, encoding)
    vector_bytes = samples["source"].shape[1] * DTYPES[encoding.dtype].itemsize
    if encoding.dtype == "int8":
        vector_bytes += 4  # the scale of a row
    neighbor_count = search.k * sum(rows.values())
    return MiningPlan(
        rows=rows,
        measured=measured,
        encode_seconds=encode_seconds,
        search_seconds=sample_seconds * math.prod(rows.values()) / math.prod(measured.values()),
        memory_bytes=search.memory_mib * 2**20 + 12 * neighbor_count,
        disk_bytes=encoded_rows * vector_bytes + 16 * neighbor_count,
        device=encoding.device or "cpu",
        first_stage_seconds=first_stage_seconds,
    )


def _time_encoder(encoder: Encoder, text: MiningText, rows: int, most: int) -> tuple[np.ndarray, float]:
    """Embed a sample of a text; returns its vectors, and the seconds that the whole text would take."""
    _, sentences = _sample_lines(text, rows, most)
    encoder.vectors(sentences[:8])  # the first call prepares the device
    started = time.perf_counter()
    vectors = encoder.vectors(sentences)
    return vectors, (time.perf_counter() - started) * rows / len(sentences)


def _time_first_stage(
    first_stage: FirstStageOptions,
    texts: Mapping[str, MiningText],
    rows: Mapping[str, int],
    search: SearchOptions,
    encoding: EncodingOptions,
) -> float:
    """Return the seconds in which a static encoder would read and search both texts."""
    statics = static_encoders(first_stage, encoding)
    samples: dict[str, np.ndarray] = {}
    seconds = 0.0
    for side, text in texts.items():
        vectors: list[np.ndarray] = []
        for static in statics:
            static_vectors, static_seconds = _time_encoder(static, text, rows[side], MEASURED_PRECOMPUTED)
            vectors.append(static_vectors)
            seconds += static_seconds
        samples[side] = np.concatenate(vectors, axis=1)
    pairs_searched = math.prod(map(len, samples.values()))
    return seconds + _time_search(samples, search, encoding) * math.prod(rows.values()) / pairs_searched


def _sample_lines(text: MiningText, rows: int, most: int) -> tuple[list[int], list[str]]:
    """Return rows and sentences at equal distances among the lines that are not blank, at most so many."""
    step = -(-rows // most)
    sentences = ((row, line) for row, line in enumerate(text) if line.strip())
    sample = list(islice(sentences, 0, None, step))
    return [row for row, _ in sample], [line for _, line in sample]


def _time_search(samples: Mapping[str, np.ndarray], search: SearchOptions, encoding: EncodingOptions) -> float:
    """Return the seconds of an exact search of two samples in each other."""
    k = min(search.k, *map(len, samples.values()))
    seconds = 0.0
    for _ in range(2):  # the first run prepares the device
        started = time.perf_counter()
        find_neighbors(
            samples["source"],
            samples["target"],
            k=k,
            device=encoding.device or "cpu",
            memory_mib=search.memory_mib,
        )
        seconds = time.perf_counter() - started
    return seconds
