"""The threshold of a run: the model's own, from its ``mining.json``, or estimated with known translations."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.data.parallel import read_parallel
from st_xling.mining.calibrate import calibrate
from st_xling.mining.deduplication import folding_key, write_sentences
from st_xling.mining.pipeline.config import PUBLISHED, MiningConfig
from st_xling.mining.published import Fit, PublishedThreshold, fitting_threshold, published_thresholds
from st_xling.mining.vectors import Encoder, VectorMakers, ways
from st_xling.utils.cosines import Embeddings
from st_xling.utils.identify import main_language
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.loaded import name_of

_FEWEST, _MOST = 100, 10_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TakenThreshold:
    """A published threshold that pairs were kept from.

    Attributes:
        model: Whose it is.
        pair: Languages under which it stands there, possibly the other way round.
        published: The threshold, with what it is known to yield.
    """

    model: str
    pair: str
    published: PublishedThreshold

    def line(self) -> str:
        """For a reader."""
        metrics = [(name, getattr(self.published, name)) for name in ("precision", "recall")]
        known = [f"{name} {value:.3f}" for name, value in metrics if value is not None]
        yielded = f"; it yielded {', '.join(known)}" if known else ""
        return (
            f"threshold {self.published.threshold:.4f} of {self.model} for {self.pair}{yielded}; published with "
            f"{self.published.signature}"
        )


def take_threshold(
    config: MiningConfig, makers: VectorMakers, work: Path, texts: Sequence[Sequence[str]]
) -> TakenThreshold | None:
    """The threshold that this work was begun with; else the one that holds now, if any does.

    What is chosen is noted in ``work``: a model's file may change before the same call resumes.

    Args:
        config: What is to be mined.
        makers: What gives the vectors, and knows how.
        work: Folder of the work.
        texts: Source and target sentences, of which some say the language where it is not named.
    Raises:
        ValueError: If the model's file is broken, or there is none that holds where one was insisted on.
    """
    model, filters = name_of(config.model), config.active_filters

    if model is None:
        return None  # one that was made here has no thresholds with it
    source, target, named = filters.source_language, filters.target_language, ""
    if source is None or target is None:
        if config.threshold != PUBLISHED and not published_thresholds(config.model):
            return None
        source, target = source or main_language(texts[0]), target or main_language(texts[1])
        named = " (languages by the text: --source-language and --target-language name others)"
    request: dict[str, Any] = {
        **{"source_language": source, "target_language": target},
        **{"margin": config.margin, "k": config.k, "retrieval": config.retrieval},
        "options": ways(makers),
    }
    note = work / "published.json"
    fit, since = _noted(note, {"model": model, **request}), " (as when this work was begun)"
    insisted = config.threshold == PUBLISHED
    if fit is None or (fit.threshold is None and insisted):
        fit, since = fitting_threshold(published_thresholds(config.model), **request), ""
        if fit.threshold is None and insisted:
            raise ValueError(
                f"threshold 'published' needs a threshold of {model} that holds for this: {fit.why_not}; give a "
                "number, or calibrate with known translations."
            )
        threshold = None if fit.threshold is None else fit.threshold.as_dict()
        write_json(note, {"asked": {"model": model, **request}, "fit": [fit.pair, threshold, fit.why_not]}, indent=1)
    if fit.threshold is not None:
        taken = TakenThreshold(model=model, pair=fit.pair, published=fit.threshold)
        logger.info("%s%s%s", taken.line(), since, named)
        return taken
    message = f"no threshold of {model} is taken: {fit.why_not}{since}{named}; all pairs are kept"
    logger.log(logging.WARNING if fit.why_not.startswith("that of") else logging.INFO, "%s", message)
    return None


def _noted(path: Path, request: dict[str, Any]) -> Fit | None:
    """What was noted for the same call."""
    if not path.is_file():
        return None
    remedy = "delete it to have the threshold looked for again"
    note = read_json_object(path, remedy=remedy)
    try:
        if note["asked"] != request:
            return None
        pair, threshold, why_not = note["fit"]
        return Fit(pair, None if threshold is None else PublishedThreshold(**threshold), why_not)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: expected the threshold that this work was begun with, got {error!r}; {remedy}."
        ) from None


@dataclass(frozen=True)
class EstimatedThreshold:
    """A threshold estimated with known translations, and what is expected of it.

    Attributes:
        threshold: Pairs that score at least this are kept.
        precision: Estimated share of translations among them, with the ends of its interval.
        recall: Estimated share of the text's translations among them, with the ends of its interval.
        known_pairs: Known pairs that were used: not those of which the text has a sentence.
        margin: By which pairs were scored.
        k: Neighbours that made up a neighbourhood.
        retrieval: By which pairs were chosen.
        options: How known sentences were embedded.
    """

    threshold: float
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    known_pairs: int
    margin: str
    k: int
    retrieval: str
    options: dict[str, str]

    def line(self) -> str:
        """For a reader."""
        precision, recall = (
            f"{share:.3f} [{low:.3f}, {high:.3f}]" for share, low, high in (self.precision, self.recall)
        )
        return (
            f"threshold {self.threshold:.4f} from {self.known_pairs:,} seeded known pairs; before filters, precision "
            f"about {precision}, recall about {recall}"
        )

    def as_published(self, signature: str) -> PublishedThreshold:
        """What a model's ``mining.json`` says of it.

        Args:
            signature: Of the run that estimated it.
        """
        precision, recall = self.precision[0], self.recall[0]
        known = np.isfinite(precision)  # where nothing of the text is kept, no share of it is right
        total = precision + recall
        return PublishedThreshold(
            threshold=self.threshold,
            precision=precision if known else None,
            recall=recall,
            f1=(2 * precision * recall / total if total else 0.0) if known else None,
            margin=self.margin,
            k=self.k,
            retrieval=self.retrieval,
            signature=signature,
            options=self.options,
        )


def most_known(sources: int, targets: int) -> int:
    """How many known pairs are used at most: a tenth of the smaller text, lest they change its neighbourhoods."""
    return min(_MOST, max(_FEWEST, min(sources, targets) // 10))


def known_pairs(path: str | Path, texts: Sequence[Sequence[str]], *, seed: int = 0) -> list[tuple[str, str]]:
    """Distinct pairs of a parallel file of which the text has neither sentence, as many as :func:`most_known` says.

    Args:
        path: Any file of :func:`~st_xling.data.read_parallel`.
        texts: Distinct sentences of both languages.
        seed: Which are drawn of too many.
    """
    rows = read_parallel(str(path))
    pairs = list(dict.fromkeys(zip(rows["source"], rows["target"])))
    for language, text in enumerate(texts):
        keys = {folding_key(pair[language]) for pair in pairs}
        there = {key for sentence in text if (key := folding_key(sentence)) in keys}
        pairs = [pair for pair in pairs if folding_key(pair[language]) not in there]
    most = most_known(*map(len, texts))
    if len(pairs) > most:
        drawn = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
        pairs = [pairs[row] for row in np.sort(drawn).tolist()]
    if len(pairs) < 4:
        raise ValueError(
            f"{path}: expected at least 4 pairs of which the text to mine has neither sentence, got {len(pairs)} of "
            f"{len(rows)}; calibrate with translations from elsewhere, of the same kind of text."
        )
    return pairs


def estimate_threshold(
    config: MiningConfig,
    texts: Sequence[Sequence[str]],
    embeddings: tuple[Embeddings, Embeddings],
    encoders: dict[str, Encoder],
    folder: Path,
    method: str,
) -> EstimatedThreshold:
    """Add known translations, mine, and choose the lowest threshold of a precision, or that of the best F1.

    Args:
        config: ``calibrate_with`` names the file, ``target_precision`` the precision.
        texts: Distinct sentences of both languages.
        embeddings: Their vectors.
        encoders: What embeds the known sentences of each side.
        folder: Where vectors and the state of the search are kept, by content.
        method: By which the text will be searched.
    Raises:
        ValueError: With fewer than 4 pairs left, or if no threshold reaches the precision.
    """
    path, target_precision = config.calibrate_with, config.target_precision
    assert path is not None
    pairs = known_pairs(path, texts)
    content = hashlib.sha256("\n".join(f"{source}\t{target}" for source, target in pairs).encode()).hexdigest()
    folder = folder / content[:16]
    folder.mkdir(parents=True, exist_ok=True)
    known = []
    for name, sentences in zip(("source", "target"), zip(*pairs)):
        written = folder / f"{name}.jsonl"
        write_sentences(sentences, written)

        def place(row: int, sentences: Sequence[str] = sentences) -> str:
            return f"{path} ({sentences[row]!r})"

        known.append(encoders[name].encode(written, folder / name, place=place, progress=config.progress))
    way: dict[str, Any] = {"margin": config.margin, "k": config.k, "retrieval": config.retrieval}
    search = {**config.search, "method": method, **config.search_folders(folder, method)}
    estimates = calibrate(*embeddings, *known, **{**search, **way})
    threshold = estimates.best() if target_precision is None else estimates.with_precision(target_precision)
    if not np.isfinite(threshold):
        best = np.nanmax(np.append(estimates.precision, 0.0))
        raise ValueError(
            f"target_precision must be reached by some threshold: got {target_precision}, and the highest estimate is "
            f"{best:.3f}; ask for less, or give more pairs to calibrate with than {len(pairs)}."
        )
    at = int(np.flatnonzero(estimates.thresholds == threshold)[0])
    precision, recall = (
        tuple(float(getattr(estimates, name + end)[at]) for end in ("", "_low", "_high"))
        for name in ("precision", "recall")
    )
    return EstimatedThreshold(threshold, precision, recall, len(pairs), **way, options=ways(dict(encoders)))  # type: ignore[arg-type]
