"""Two texts in, a file of scored pairs out; killed at any moment, the same call goes on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from st_xling.mining.deduplication import TextSide
from st_xling.mining.find import choose_method
from st_xling.mining.guards import GuardOptions, NeighbourCounts, PairGuards
from st_xling.mining.mine import check_choice
from st_xling.mining.pipeline.best_allowed import best_allowed_pairs
from st_xling.mining.pipeline.guarded_pairs import GuardedPairs
from st_xling.mining.pipeline.mining_report import MiningReport
from st_xling.mining.pipeline.options import PairOptions
from st_xling.mining.pipeline.pair_files import REJECTS, rejects_to, write_pairs
from st_xling.mining.pipeline.reranker import load_reranker
from st_xling.mining.pipeline.rescore import Rescored, check_rescore, rescore
from st_xling.mining.pipeline.run_report import run_signature
from st_xling.mining.pipeline.side_vectors import check_sides, distinct_vectors, search_task
from st_xling.mining.pipeline.taken_threshold import AUTO, Lookup, TakenThreshold
from st_xling.mining.text import Files, file_list
from st_xling.mining.thresholds.fitting import Sought
from st_xling.mining.thresholds.planted_threshold import PlantedThreshold, check_calibration, planted_threshold
from st_xling.mining.vectors import VectorMakers


def mine_texts(
    source: Files,
    target: Files,
    out: str | Path | IO[bytes],
    *,
    model: Any = None,
    source_embeddings: str | Path | None = None,
    target_embeddings: str | Path | None = None,
    dim: int = 1024,
    laser_dtype: str = "float32",
    text_format: str = "lines",
    errors: str = "strict",
    batch_size: int = 128,
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
    guards: GuardOptions | None = None,
    rejects: str | Path | None = None,
    format: str = "tsv",
    method: str = "exact",
    engine: str = "local",
    device: str | None = None,
    memory_mib: int = 256,
    save_seconds: float = 60.0,
    work: str | Path | None = None,
    keep_work: bool = False,
    progress: bool = False,
) -> MiningReport:
    """Find the pairs of two texts that are likely translations, and write them, best first.

    Blank lines are left out; of equal sentences (in NFC, runs of white space as one space) one is mined, and its pair
    carries the ids of all. Guards look at candidates before the retrieval chooses among them, see
    :func:`~st_xling.mining.pipeline.best_allowed.best_allowed_pairs`.

    What is embedded and searched is kept in ``work`` until the pairs are written. Called again after it was killed, the
    same call goes on from there and ends with the same bytes (with the reserve of :func:`~st_xling.mining.encode`).
    What the kept work does not depend on may be changed meanwhile: margin, retrieval, threshold, guards, formats.

    Beyond the memory of a search (see :func:`~st_xling.mining.neighbours`) this takes about 64 bytes a line and
    ``12 * k`` a distinct sentence; text is read from its files when it is needed.

    Args:
        source: One file or several, which count as one text.
        target: The other side.
        out: File of the pairs, replaced if it exists; or a binary stream.
        model: What embeds a side without embeddings: a ``SentenceTransformer``, or the Hub id or folder of one.
        source_embeddings: Store, or LASER file, of all rows of ``source``.
        target_embeddings: The same of ``target``.
        dim: Of LASER files.
        laser_dtype: Of LASER files: ``"float32"`` or ``"float16"``.
        text_format: ``"lines"``, ``"bucc"`` or ``"jsonl"``; see :mod:`st_xling.mining.text`.
        errors: ``"strict"`` or ``"replace"``, for bytes that are not UTF-8.
        batch_size: Sentences that ``model`` embeds at a time.
        dtype: Type in which embeddings are kept: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        prompt: Put before every sentence, such as ``"query: "``.
        k: Neighbours that make up a sentence's neighbourhood.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        retrieval: ``"max"``, ``"intersect"``, ``"forward"`` or ``"backward"``; see :func:`~st_xling.mining.mine`.
        threshold: Keep pairs that score at least this; all by default. ``"published"``: the one that the model's
            ``mining.json`` has for the languages that ``guards`` name, if it was found by mining in the same way (see
            :func:`~st_xling.mining.thresholds.fitting.fitting_threshold`); ``"auto"``: the same, or all where there is
            none, or where ``calibrate_with`` is given. What was taken stays when the work is gone on with.
        calibrate_with: File of known translations from elsewhere, from which the threshold is estimated instead.
        target_precision: Estimated precision that the threshold shall reach; else that of the best estimated F1.
        rescore: A cross-encoder of one label, or the Hub id or folder of one: scores the pairs that were mined, source
            before target, and puts them in that order; a pair's margin score stays beside.
        rescore_threshold: Keep pairs that the cross-encoder scores at least this, after its activation.
        guards: Which guards are on; all by default.
        rejects: File for the pairs that guards turn down, as JSON lines.
        format: ``"tsv"`` or ``"jsonl"``; see :mod:`st_xling.mining.pipeline.pair_files`.
        method: As for :func:`~st_xling.mining.find.find_neighbours`.
        engine: As for :func:`~st_xling.mining.find.find_neighbours`.
        device: Where to embed and search; by default a GPU where there is one.
        memory_mib: Bound on the memory of one block of the search, in MiB.
        save_seconds: Least time between two saves of the search.
        work: Folder of the work; by default ``OUT.work``, or for a stream one that does not outlive the call.
        keep_work: Leave it when all is done.
        progress: Show bars on stderr.
    Returns:
        Figures and signature.
    Raises:
        ValueError: For options out of range, texts with faults, embeddings of other texts or of two models, ``k`` above
            the number of distinct sentences, a work folder of another task, a broken ``mining.json``, or none that fits
            where ``threshold="published"``.
        OSError: For a full disk; what was done before stays.
    """
    guards = guards or GuardOptions()
    look_up = threshold if isinstance(threshold, str) else None
    threshold = None if isinstance(threshold, str) else threshold
    asked = MineOptions(**locals())
    asked.check()
    return _mined(asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class MineOptions(PairOptions):
    """All that :func:`mine_texts` is asked for."""

    source: Files
    target: Files
    text_format: str
    errors: str
    retrieval: str
    calibrate_with: str | Path | None
    target_precision: float | None
    look_up: str | None
    rescore: Any
    rescore_threshold: float | None

    @property
    def inputs(self) -> Sequence[Any]:
        texts = [*file_list(self.source), *file_list(self.target)]
        return [*texts, self.calibrate_with, self.rescore, *super().inputs]

    @property
    def lookup(self) -> Lookup | None:
        """Where the threshold is looked for, if it is; a calibration comes before one that may be missing."""
        if self.look_up is None or (self.look_up == AUTO and self.calibrate_with is not None):
            return None
        languages = self.guards.source_language, self.guards.target_language
        sought = None
        if languages[0] is not None and languages[1] is not None:
            same = {name: getattr(self, name) for name in ("margin", "k", "retrieval", "prompt")}
            sought = Sought(source_language=languages[0], target_language=languages[1], **same)
        return Lookup(how=self.look_up, model=self.model, sought=sought, progress=self.progress)

    def check(self) -> None:
        check_choice(margin=self.margin, threshold=self.threshold, retrieval=self.retrieval)
        check_calibration(
            self.calibrate_with,
            threshold=self.look_up if self.lookup else self.threshold,
            target_precision=self.target_precision,
            model=self.model,
        )
        if self.lookup is not None:
            self.lookup.check()
        check_rescore(self.rescore, self.rescore_threshold)
        super().check()

    def open(self, stack: ExitStack) -> list[TextSide]:
        """Both sides, surveyed, until the stack closes."""
        texts = {"source": self.source, "target": self.target}
        options: dict[str, Any] = {"format": self.text_format, "errors": self.errors, "progress": self.progress}
        sides = [TextSide.open(*side, **options) for side in texts.items()]
        for side in sides:
            stack.callback(side.text.close)
            if self.format == "tsv":
                side.check_ids()
        return sides


def _mined(asked: MineOptions) -> MiningReport:
    with ExitStack() as stack:
        sides = asked.open(stack)
        reranker = None if asked.rescore is None else load_reranker(asked.rescore, asked.place)
        makers, encoder = asked.vector_makers({side.name: len(side.text) for side in sides})
        shas = {side.name: side.survey.sha256 for side in sides}
        check_sides(sides, makers, asked.k)
        folder = stack.enter_context(asked.working(search_task("mine", shas, makers, k=asked.k, method=asked.method)))
        taken = None if asked.lookup is None else asked.lookup.taken(makers, folder.path)
        embeddings = distinct_vectors(sides, makers, folder.path, progress=asked.progress)
        method = choose_method(asked.method, asked.engine, *embeddings, progress=asked.progress)
        calibration = None
        if asked.calibrate_with is not None:
            assert encoder is not None
            calibration = planted_threshold(
                asked.calibrate_with,
                (sides[0].distinct, sides[1].distinct),
                embeddings,
                encoder,
                folder.path / "calibration",
                target_precision=asked.target_precision,
                margin=asked.margin,
                retrieval=asked.retrieval,
                method=method,
                **asked.search,
            )
        threshold = _threshold(asked, taken, calibration)
        found = asked.find(embeddings, method, folder)
        judge = PairGuards(asked.guards, counts=NeighbourCounts.of(*found))
        with rejects_to(None if asked.rejects is None else folder.path / REJECTS, sides) as on_reject:
            allow = GuardedPairs(judge, sides[0].distinct, sides[1].distinct, on_reject) if judge.guards else None
            choice: dict[str, Any] = {"margin": asked.margin, "retrieval": asked.retrieval, "threshold": threshold}
            pairs = best_allowed_pairs(*found, allow=allow, **choice)
        again = None
        if reranker is not None:
            told: dict[str, Any] = {"threshold": asked.rescore_threshold, "progress": asked.progress}
            again = rescore(pairs, [side.distinct for side in sides], *reranker, folder.path, **told)
            pairs = again.pairs
        margins = None if again is None else again.margins
        write_pairs(pairs, sides, asked.made(folder), format=asked.format, margins=margins, progress=asked.progress)
        return _report(asked, sides, makers, judge, taken, calibration, method, len(pairs), again)


def _threshold(asked: MineOptions, taken: TakenThreshold | None, calibration: PlantedThreshold | None) -> float | None:
    """The one that was given, published or estimated; no two of them are."""
    if taken is not None:
        return taken.published.threshold
    return asked.threshold if calibration is None else calibration.threshold


def _report(
    asked: MineOptions,
    sides: Sequence[TextSide],
    makers: VectorMakers,
    judge: PairGuards,
    taken: TakenThreshold | None,
    calibration: PlantedThreshold | None,
    method: str,
    pairs: int,
    again: Rescored | None,
) -> MiningReport:
    choice = [f"retrieval:{asked.retrieval}"]
    if again is not None:
        choice.append(f"rescore:{again.model}")
        choice += [] if asked.rescore_threshold is None else [f"rescore_threshold:{asked.rescore_threshold:g}"]
    threshold = _threshold(asked, taken, calibration)
    origin = "published" if taken is not None else None if calibration is None else "calibrated"
    return MiningReport(
        pairs=pairs,
        rejected=judge.rejected,
        rows={side.name: len(side.text) for side in sides},
        blank={side.name: side.distinct.blank_rows for side in sides},
        distinct={side.name: len(side.distinct) for side in sides},
        threshold=threshold,
        published=taken,
        calibration=calibration,
        rescored=None if again is None else again.figures,
        signature=run_signature(
            "mine",
            asked,
            makers,
            judge,
            method=method,
            threshold=None if origin is None else f"{threshold:.6g} {origin}",
            choice=tuple(choice),
            texts=[side.signature for side in sides],
        ),
    )
