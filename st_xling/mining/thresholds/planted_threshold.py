"""A threshold from a file of known translations, planted in the text that is to be mined."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from st_xling.data.parallel import read_parallel
from st_xling.mining.deduplication import folding_key, write_sentences
from st_xling.mining.thresholds.calibrate import calibrate
from st_xling.mining.thresholds.published import PublishedThreshold
from st_xling.mining.vectors import Encoder
from st_xling.utils.cosines import Embeddings

_FEWEST, _MOST = 100, 10_000


@dataclass(frozen=True)
class PlantedThreshold:
    """A threshold, and what is expected of it.

    Attributes:
        threshold: Pairs that score at least this are kept.
        precision: Estimated share of translations among them, with the ends of its interval.
        recall: Estimated share of the text's translations among them, with the ends of its interval.
        planted: Pairs of the file that were planted: not those of which the text has a sentence.
        margin: By which pairs were scored.
        k: Neighbours that made up a neighbourhood.
        retrieval: By which pairs were chosen.
        prompt: Put before every planted sentence.
    """

    threshold: float
    precision: tuple[float, float, float]
    recall: tuple[float, float, float]
    planted: int
    margin: str
    k: int
    retrieval: str
    prompt: str | None

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
            prompt=self.prompt,
        )


def check_calibration(
    calibrate_with: str | Path | None, *, threshold: float | str | None, target_precision: float | None, model: Any
) -> None:
    """Raise if a threshold cannot be estimated with these options of :func:`~st_xling.mining.mine_texts`."""
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


def most_planted(sources: int, targets: int) -> int:
    """How many pairs are planted at most: a tenth of the smaller side, lest they change its neighbourhoods."""
    return min(_MOST, max(_FEWEST, min(sources, targets) // 10))


def planted_pairs(path: str | Path, texts: Sequence[Sequence[str]], *, seed: int = 0) -> list[tuple[str, str]]:
    """Distinct pairs of a parallel file of which the text has neither side: a tenth of the smaller side at most.

    Args:
        path: Any file of :func:`~st_xling.data.read_parallel`.
        texts: Distinct sentences of both sides.
        seed: Which are drawn of too many.
    """
    rows = read_parallel(str(path))
    pairs = list(dict.fromkeys(zip(rows["source"], rows["target"])))
    keys = [{folding_key(pair[side]) for pair in pairs} for side in (0, 1)]
    there = [{key for text in texts[side] if (key := folding_key(text)) in keys[side]} for side in (0, 1)]
    pairs = [pair for pair in pairs if not any(folding_key(text) in there[side] for side, text in enumerate(pair))]
    most = most_planted(*map(len, texts))
    if len(pairs) > most:
        drawn = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
        pairs = [pairs[row] for row in np.sort(drawn).tolist()]
    if len(pairs) < 4:
        raise ValueError(
            f"{path}: expected at least 4 pairs of which the text to mine has neither sentence, got {len(pairs)} of "
            f"{len(rows)}; calibrate with translations from elsewhere, of the same kind of text."
        )
    return pairs


def planted_threshold(
    path: str | Path,
    texts: tuple[Sequence[str], Sequence[str]],
    embeddings: tuple[Embeddings, Embeddings],
    encoder: Encoder,
    folder: Path,
    *,
    margin: str = "ratio",
    k: int = 4,
    retrieval: str = "max",
    target_precision: float | None = None,
    seed: int = 0,
    progress: bool = False,
    **options: Any,
) -> PlantedThreshold:
    """Plant, mine, and choose: the lowest threshold of an estimated precision, or that of the best estimated F1.

    Args:
        path: As for :func:`planted_pairs`.
        texts: Distinct sentences of both sides.
        embeddings: Their vectors.
        encoder: What embeds the planted sentences.
        folder: Where vectors and the state of the search are kept, by content.
        margin: As for :func:`~st_xling.mining.calibrate`.
        k: Likewise.
        retrieval: Likewise.
        target_precision: Estimated precision that is wanted, in (0, 1].
        seed: For drawing.
        progress: Show bars on stderr.
        options: As for :func:`~st_xling.mining.calibrate`: ``method`` should be that by which the text will be mined.
    Raises:
        ValueError: With fewer than 4 pairs left, or if no threshold reaches the precision.
    """
    pairs = planted_pairs(path, texts, seed=seed)
    content = hashlib.sha256("\n".join(f"{source}\t{target}" for source, target in pairs).encode()).hexdigest()
    folder = folder / content[:16]
    folder.mkdir(parents=True, exist_ok=True)
    planted = []
    for side, sentences in zip(("source", "target"), zip(*pairs)):
        written = folder / f"{side}.jsonl"
        write_sentences(sentences, written)
        named = partial(_named, path, sentences)
        planted.append(encoder.encode(written, folder / side, place=named, progress=progress))
    options |= {"seed": seed, "state_folder": folder / "search", "progress": progress}
    found = calibrate(*embeddings, *planted, margin=margin, k=k, retrieval=retrieval, **options)
    threshold = found.best() if target_precision is None else found.with_precision(target_precision)
    if not np.isfinite(threshold):
        best = np.nanmax(np.append(found.precision, 0.0))
        raise ValueError(
            f"target_precision must be reached by some threshold: got {target_precision}, and the highest estimate is "
            f"{best:.3f}; ask for less, or give more pairs to calibrate with than {len(pairs)}."
        )
    place = int(np.flatnonzero(found.thresholds == threshold)[0])
    precision, recall = (
        tuple(float(getattr(found, name + end)[place]) for end in ("", "_low", "_high"))
        for name in ("precision", "recall")
    )
    ways = {"margin": margin, "k": k, "retrieval": retrieval, "prompt": encoder.options.prompt}
    return PlantedThreshold(threshold, precision, recall, len(pairs), **ways)  # type: ignore[arg-type]


def _named(path: str | Path, sentences: Sequence[str], row: int) -> str:
    return f"{path} ({sentences[row]!r})"
