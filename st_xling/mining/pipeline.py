"""Two texts in, a file of scored pairs out; killed at any moment, the same call goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import torch

from st_xling._version import __version__
from st_xling.mining.best_allowed import best_allowed_pairs
from st_xling.mining.deliver import check_outputs, deliver, work_folder
from st_xling.mining.find import check_search, choose_method, find_neighbours
from st_xling.mining.guarded import GuardedPairs, check_guards, guard_signature
from st_xling.mining.guards import REASONS, GuardOptions, NeighbourCounts, PairGuards
from st_xling.mining.margins import margin_scores
from st_xling.mining.mine import RETRIEVALS
from st_xling.mining.mining_report import MiningReport
from st_xling.mining.pair_files import REJECTS, check_pair_format, rejects_to, write_pairs
from st_xling.mining.planted_threshold import PlantedThreshold, planted_threshold
from st_xling.mining.side_vectors import distinct_vectors, search_task
from st_xling.mining.text import Files, file_list
from st_xling.mining.text_embeddings import VectorMakers, vectors_from
from st_xling.mining.text_encoder import EncodeOptions
from st_xling.mining.text_side import TextSide


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
    threshold: float | None = None,
    calibrate_with: str | Path | None = None,
    target_precision: float | None = None,
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
    :func:`~st_xling.mining.best_allowed.best_allowed_pairs`.

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
        threshold: Keep pairs that score at least this; all by default.
        calibrate_with: File of known translations from elsewhere, from which the threshold is estimated instead.
        target_precision: Estimated precision that the threshold shall reach; else that of the best estimated F1.
        guards: Which guards are on; all by default.
        rejects: File for the pairs that guards turn down, as JSON lines.
        format: ``"tsv"`` or ``"jsonl"``; see :mod:`st_xling.mining.pair_files`.
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
            the number of distinct sentences, or a work folder of another task.
        OSError: For a full disk; what was done before stays.
    """
    guards = guards or GuardOptions()
    _check_options(margin, retrieval, threshold, calibrate_with, target_precision, model)
    check_pair_format(format)
    check_search(method, engine)
    check_guards(guards, k)
    check_outputs(out, rejects, [*file_list(source), *file_list(target)])
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    search: dict[str, Any] = {"k": k, "device": device, "memory_mib": memory_mib, "save_seconds": save_seconds}
    with ExitStack() as stack:
        texts = {"source": source, "target": target}
        sides = [TextSide.open(*side, format=text_format, errors=errors, progress=progress) for side in texts.items()]
        for side in sides:
            stack.callback(side.text.close)
            if format == "tsv":
                side.check_ids()
        makers, encoder = vectors_from(
            model,
            {"source": source_embeddings, "target": target_embeddings},
            {side.name: len(side.text) for side in sides},
            dim=dim,
            laser_dtype=laser_dtype,
            options=EncodeOptions(batch_size=batch_size, dtype=dtype, prompt=prompt, device=device, engine=engine),
        )
        shas = {side.name: side.survey.sha256 for side in sides}
        task = search_task("mine", shas, makers, k=k, method=method)
        folder = stack.enter_context(work_folder(out, work, task))
        embeddings = distinct_vectors(sides, makers, k, folder.path, progress=progress)
        calibration = None
        if calibrate_with is not None:
            assert encoder is not None
            calibration = planted_threshold(
                calibrate_with,
                (sides[0].distinct, sides[1].distinct),
                embeddings,
                encoder,
                folder.path / "calibration",
                target_precision=target_precision,
                margin=margin,
                retrieval=retrieval,
                progress=progress,
                **search,
            )
            threshold = calibration.threshold
        method = choose_method(method, engine, *embeddings, progress=progress)
        found = find_neighbours(
            *embeddings, method=method, engine=engine, state_folder=folder.path / "search", **search, progress=progress
        )
        judge = PairGuards(guards, counts=NeighbourCounts.of(*found))
        with rejects_to(None if rejects is None else folder.path / REJECTS, sides) as on_reject:
            allow = GuardedPairs(judge, sides[0].distinct, sides[1].distinct, on_reject) if judge.guards else None
            pairs = best_allowed_pairs(*found, allow=allow, margin=margin, retrieval=retrieval, threshold=threshold)
        write_pairs(pairs, sides, folder.path / f"pairs.{format}", format=format, progress=progress)
        deliver(folder.path / f"pairs.{format}", out)
        if rejects is not None:
            deliver(folder.path / REJECTS, rejects)
        if not keep_work:
            folder.remove()
        words = [f"margin:{margin}", f"k:{k}", f"retrieval:{retrieval}", f"method:{method}"]
        words.append(f"guards:{guard_signature(guards, list(judge.idle))}")
        return _report(sides, makers, words, threshold, calibration, len(pairs), judge)


def _check_options(
    margin: str,
    retrieval: str,
    threshold: float | None,
    calibrate_with: str | Path | None,
    target_precision: float | None,
    model: Any,
) -> None:
    """What should not wait for an encoder or a search."""
    margin_scores(0.0, 1.0, 1.0, margin=margin)
    if retrieval not in RETRIEVALS:
        raise ValueError(
            f"retrieval must be one of {', '.join(RETRIEVALS)}: got {retrieval!r}; 'max' is the usual choice."
        )
    if threshold is not None and math.isnan(threshold):
        raise ValueError("threshold must be a number: got NaN; leave it out to keep every pair.")
    if calibrate_with is None:
        if target_precision is not None:
            raise ValueError("target_precision needs calibrate_with (--calibrate): a file of known translations.")
        return
    if threshold is not None:
        raise ValueError("threshold and calibrate_with both set the threshold: choose one of them.")
    if model is None:
        raise ValueError("calibrate_with needs the model (--model): known translations must be embedded like the text.")
    if target_precision is not None and not 0 < target_precision <= 1:
        raise ValueError(f"target_precision must lie in (0, 1]: got {target_precision}.")


def _report(
    sides: Sequence[TextSide],
    makers: VectorMakers,
    words: list[str],
    threshold: float | None,
    calibration: PlantedThreshold | None,
    pairs: int,
    judge: PairGuards,
) -> MiningReport:
    given = "none" if threshold is None else f"{threshold:g}"
    words.append(f"threshold:{given if calibration is None else f'{threshold:.6g} calibrated'}")
    words.append("duplicates:folded")
    words += [side.signature for side in sides]
    models = dict.fromkeys(str(maker.identity or maker.name) for maker in makers.values())
    return MiningReport(
        pairs=pairs,
        rejected={reason: judge.counts[reason] for reason in REASONS if judge.counts[reason]},
        rows={side.name: len(side.text) for side in sides},
        blank={side.name: side.distinct.blank_rows for side in sides},
        distinct={side.name: len(side.distinct) for side in sides},
        threshold=threshold,
        calibration=calibration,
        signature="|".join(["mine", f"model:{','.join(models)}", *words, f"st-xling:{__version__}"]),
    )
