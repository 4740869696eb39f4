"""Thresholds of mining: the lowest score at which a pair is worth keeping.

Either a number of the user's choice, or

- tuned on gold pairs (:func:`best_threshold`)
- published with a model, in ``mining.json`` (:func:`publish_thresholds`, :func:`load_published_thresholds`), and used
  for a run that mines in the same way (:func:`find_published_threshold`)
- estimated from known translations: see :mod:`st_xling.mining.calibration`
- estimated from the scores alone: see :mod:`st_xling.mining.score_mixture`

.. code-block:: json

    {"version": 1, "pairs": {"de-en": {"threshold": 1.06, "precision": 0.97, "recall": 0.92, "f1": 0.94,
                                       "margin": "ratio", "k": 4, "retrieval": "max", "signature": "bucc|…"}}}

An entry also has ``options`` if the sentences were not embedded with the model's defaults: parts of a signature, such
as ``{"prompt": "query: ", "layer": "7"}``.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from st_xling.mining.mined_pairs import MinedPairs
from st_xling.utils.identify import main_language
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.languages import canonical_language
from st_xling.utils.signature import loaded, name_of

logger = logging.getLogger(__name__)

#: File of published thresholds in a model's folder or repository.
MINING_FILE = "mining.json"

#: Version of that file.
VERSION = 1

#: Value of a threshold that looks for a published one, and is estimated if there is none.
AUTO = "auto"

#: Value of a threshold that looks for a published one, and raises an error if there is none.
PUBLISHED = "published"


@dataclass(frozen=True)
class Threshold:
    """A threshold with its metrics; pairs are kept if their score is at least ``threshold``.

    Attributes:
        threshold: In the unit of the scores; infinity keeps nothing.
        precision: Fraction of the kept pairs that are correct, in [0, 1].
        recall: Fraction of the gold pairs that are kept, in [0, 1].
        f1: Harmonic mean of precision and recall, in [0, 1].
    """

    threshold: float
    precision: float
    recall: float
    f1: float


def precision_recall_f1(n_correct: int, n_predicted: int, n_gold: int) -> tuple[float, float, float]:
    """Compute precision, recall and F1 from counts.

    Args:
        n_correct: Number of predicted pairs that are gold.
        n_predicted: Number of predicted pairs.
        n_gold: Number of gold pairs, predicted or not.

    Returns:
        Fractions in [0, 1]. Precision is 0 if nothing is predicted, F1 is 0 if nothing is correct.

    Raises:
        ValueError: If there are no gold pairs, or more correct pairs than predicted or gold ones.

    Example:
        >>> precision_recall_f1(1, 2, 4)
        (0.5, 0.25, 0.3333333333333333)
    """
    if n_gold < 1:
        raise ValueError(f"n_gold must be at least 1: got {n_gold}; recall needs gold pairs.")
    if not 0 <= n_correct <= min(n_predicted, n_gold):
        raise ValueError(
            f"n_correct must be at least 0 and at most n_predicted and n_gold: got {n_correct} correct of "
            f"{n_predicted} predicted and {n_gold} gold; count each pair once."
        )
    precision = n_correct / n_predicted if n_predicted else 0.0
    return precision, n_correct / n_gold, 2 * n_correct / (n_predicted + n_gold)


def best_threshold(scores: ArrayLike, is_correct: ArrayLike, n_gold: int) -> Threshold:
    """Find the threshold with the highest F1.

    Only distinct scores are considered, since pairs with equal scores are kept or dropped together. The threshold is
    midway between the lowest kept score and the next lower one. It is the lowest score itself if all pairs are kept,
    and infinity if no pair is correct. Ties are resolved in favor of the highest threshold: the fewest pairs and the
    highest precision.

    Args:
        scores: Finite scores, in any order. *Shape:* ``(pairs,)``
        is_correct: Flags of the gold pairs. *Shape:* ``(pairs,)``
        n_gold: Number of gold pairs, including those that are not among the candidates.

    Returns:
        The threshold with precision, recall and F1 of the pairs that score at least as much.

    Raises:
        ValueError: On unequal lengths, scores that are not finite, no gold, or more correct pairs than gold.
    Source:
        Schwenk 2018; Li et al. 2023 (DAP), appendix B.

    Example:
        >>> best_threshold([1.3, 1.1, 0.9], [True, True, False], n_gold=2)
        Threshold(threshold=1.0, precision=1.0, recall=1.0, f1=1.0)
    """
    values = np.asarray(scores)
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64)
    correct = np.asarray(is_correct)
    if values.shape != correct.shape:
        raise ValueError(f"expected one score and one flag per pair: got shapes {values.shape} and {correct.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite: got NaN or infinity; drop these pairs first.")
    correct = correct.astype(bool)
    precision_recall_f1(int(correct.sum()), len(correct), n_gold)  # raises for an impossible number of gold pairs
    if not correct.any():
        return Threshold(float("inf"), 0.0, 0.0, 0.0)
    order = np.argsort(-values, kind="stable")
    values = values[order]
    hits = np.cumsum(correct[order])
    # The last pair of each run of equal scores, including the end of the list: the only places to cut.
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    f1 = 2 * hits[last] / (last + 1 + n_gold)
    cut = last[int(f1.argmax())]  # argmax returns the first maximum, hence the highest threshold
    threshold = values[cut]
    if cut + 1 < len(values):
        dropped = values[cut + 1]
        # In the dtype of the scores: numpy compares float32 scores with a threshold rounded to float32.
        middle = (dropped / 2 + threshold / 2).astype(values.dtype)
        threshold = middle if middle > dropped else threshold
    precision, recall, best_f1 = precision_recall_f1(int(hits[cut]), int(cut) + 1, n_gold)
    return Threshold(float(threshold), precision, recall, best_f1)


def correct_pairs(pairs: MinedPairs, gold: Iterable[tuple[int, int]]) -> np.ndarray:
    """Compute which mined pairs are gold.

    Args:
        pairs: Mined pairs, each once.
        gold: (source index, target index), each once.

    Returns:
        Boolean flags for :func:`best_threshold`. *Shape:* ``(pairs,)``
    Raises:
        ValueError: If a gold pair occurs twice: counting it twice would distort recall.
    """
    counts = Counter(gold)
    if counts and max(counts.values()) > 1:
        raise ValueError(
            f"gold must contain each pair once: got {counts.most_common(1)[0][0]} twice; remove the repeats."
        )
    return np.array([(source, target) in counts for _, source, target in pairs], dtype=bool)


def evaluate_pairs(pairs: MinedPairs, gold: Iterable[tuple[int, int]], threshold: float) -> Threshold:
    """Compute precision, recall and F1 at a threshold chosen elsewhere, such as on training data.

    Args:
        pairs: Mined pairs.
        gold: All gold pairs as (source index, target index), each once.
        threshold: Minimum score of the kept pairs.

    Returns:
        The same threshold with its metrics on these pairs.

    Raises:
        ValueError: As :func:`correct_pairs`, and without gold pairs.
    """
    gold_pairs = list(gold)
    correct = correct_pairs(pairs, gold_pairs)
    selected = pairs.scores >= threshold
    n_correct = int((correct & selected).sum())
    precision, recall, f1 = precision_recall_f1(n_correct, int(selected.sum()), len(gold_pairs))
    return Threshold(threshold, precision, recall, f1)


def canonical_pair(pair: str) -> tuple[str, str]:
    """Parse a pair such as ``de-en`` into canonical codes, so that ``deu-eng`` gives the same.

    Raises:
        ValueError: If it is not two language codes.

    Example:
        >>> canonical_pair("de-en"), canonical_pair("deu-eng")
        (('deu', 'eng'), ('deu', 'eng'))
    """
    if re.fullmatch("[a-z]{2,3}-[a-z]{2,3}", pair) is None:
        raise ValueError(f"a pair must be two language codes joined by a hyphen, such as de-en: got {pair!r}.")
    source, target = map(canonical_language, pair.split("-"))
    return source, target


@dataclass(frozen=True, kw_only=True)
class PublishedThreshold:
    """A threshold with its metrics and the way of mining for which it is valid.

    Attributes:
        threshold: Minimum score of the kept pairs; finite.
        precision: Fraction of these pairs that are correct, in [0, 1]; ``None`` if unknown.
        recall: Fraction of the translations that are found, in [0, 1]; ``None`` if unknown.
        f1: Harmonic mean of precision and recall; ``None`` if unknown.
        margin: As for :func:`~st_xling.mining.mine`.
        k: As for :func:`~st_xling.mining.mine`.
        retrieval: As for :func:`~st_xling.mining.mine`.
        signature: Signature of the metrics.
        options: Settings of the encoder that are not the model's defaults: parts of a signature by name, such as
            ``prompt`` and ``layer``.

    Raises:
        ValueError: If the threshold is no finite number.
    """

    threshold: float
    precision: float | None
    recall: float | None
    f1: float | None
    margin: str
    k: int
    retrieval: str
    signature: str
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, (int, float)) or not np.isfinite(self.threshold):
            raise ValueError(f"threshold must be a finite number: got {self.threshold!r}.")


def publish_thresholds(folder: str | Path, thresholds: Mapping[str, PublishedThreshold]) -> Path:
    """Write thresholds to ``mining.json`` in a model's folder, replacing those of the same languages.

    Args:
        folder: Folder of the model.
        thresholds: Thresholds by pair of language codes, source language first, such as ``de-en``.

    Returns:
        The path of the file.

    Raises:
        ValueError: If a pair is not two codes, or the existing file is invalid.
        OSError: If the file cannot be written; the existing file is kept.
    """
    path = Path(folder) / MINING_FILE
    replaced = set(map(canonical_pair, thresholds))
    published = load_published_thresholds(Path(folder))
    kept = {pair: threshold for pair, threshold in published.items() if canonical_pair(pair) not in replaced}
    entries = {pair: asdict(threshold) for pair, threshold in (kept | {**thresholds}).items()}
    for entry in entries.values():
        if not entry["options"]:
            del entry["options"]
    write_json(path, {"version": VERSION, "pairs": entries})
    return path


def load_published_thresholds(model: Any) -> dict[str, PublishedThreshold]:
    """Load the thresholds of a model by pair of languages; empty without a ``mining.json``.

    Args:
        model: Folder or Hub id of a model, or a model that was loaded from either. From the Hub one file is
            downloaded, of the model's revision; offline the cached one is used, if any.

    Raises:
        ValueError: If the file is invalid.
    """
    name = str(model) if isinstance(model, Path) else name_of(model)
    if name is None:
        return {}
    path: str | Path | None = Path(name, MINING_FILE)
    if not Path(name).is_dir():
        from sentence_transformers.util import load_file_path  # slow to import

        # As sentence-transformers does, look for names without an owner among its own models.
        owned = name if "/" in name else f"sentence-transformers/{name}"
        path = load_file_path(owned, MINING_FILE, revision=loaded(model).options.get("revision"))
    content = {} if path is None else read_json_object(Path(path))
    thresholds = {}
    if content and content.get("version") != VERSION:
        raise ValueError(f"{path}: expected version {VERSION}, got {content.get('version')!r}; fix or remove it.")
    for pair, entry in content.get("pairs", {}).items():
        try:
            canonical_pair(pair)
            thresholds[pair] = PublishedThreshold(**entry)
        except (ValueError, TypeError) as error:  # a TypeError names missing and unknown keys
            raise ValueError(f"{path}: expected a threshold at {pair!r}: {error} Fix or remove it.") from error
    return thresholds


def match_published_threshold(
    published: Mapping[str, PublishedThreshold],
    source_language: str,
    target_language: str,
    run: Mapping[str, Any],
) -> tuple[str, PublishedThreshold]:
    """Find the threshold of two languages that was measured by mining in the same way.

    A threshold of the swapped languages is valid, too, since a pair's margin has no direction; for the retrievals
    ``forward`` and ``backward``, which have one, it is not used. If anything else differs, so do the scores.

    Args:
        published: Thresholds by pair, from :func:`load_published_thresholds`.
        source_language: Such as ``"de"``, ``"deu"`` or ``"de-AT"``.
        target_language: Such as ``"en"``.
        run: ``margin``, ``k`` and ``retrieval`` of the run, and ``options`` of :class:`PublishedThreshold`, by name.

    Returns:
        The pair as published, possibly swapped, and its threshold.

    Raises:
        ValueError: If there is none; names what differs.
    """
    # Without region and script: a pair of languages has a single threshold.
    codes = [re.split("[-_]", code.strip().lower())[0] for code in (source_language, target_language)]
    languages = tuple(map(canonical_language, codes))
    mismatches: list[str] = []
    for pair, threshold in sorted(published.items(), key=lambda item: canonical_pair(item[0]) != languages):
        if canonical_pair(pair) not in (languages, languages[::-1]):
            continue
        options: dict[str, Any] = {
            "margin": threshold.margin,
            "k": threshold.k,
            "retrieval": threshold.retrieval,
            **threshold.options,
        }
        differences = [
            f"{name} {options.get(name, 'default')}, not {run.get(name, 'default')}"
            for name in dict.fromkeys([*run, *options])
            if options.get(name) != run.get(name)
        ]
        if canonical_pair(pair) != languages and run["retrieval"] in ("forward", "backward"):
            differences.append(f"the other direction of {run['retrieval']}")
        if not differences:
            return pair, threshold
        mismatches.append(f"that of {pair} is for {', '.join(differences)}")
    others = f"it has one for {', '.join(published)}, none for {source_language}-{target_language}"
    raise ValueError("; ".join(mismatches) or others)


def find_published_threshold(
    model: Any,
    texts: Sequence[Sequence[str]],
    languages: Sequence[str | None],
    run: Mapping[str, Any],
    *,
    required: bool,
) -> tuple[PublishedThreshold | None, str]:
    """Find the published threshold that is valid for a run; returns it with a line that describes it.

    Args:
        model: The model that mines: a folder, a Hub id, or loaded.
        texts: Source and target sentences, whose languages are identified if they are not named.
        languages: Languages of source and target; ``None`` if unknown.
        run: As for :func:`match_published_threshold`.
        required: Raise an error if no threshold matches, instead of logging why.

    Raises:
        ValueError: If the model's file is invalid, or ``required`` and no threshold matches.
    """
    name = name_of(model)
    published = load_published_thresholds(model)
    codes = [code or "" for code in languages]
    if published:
        codes = [code or main_language(text) for code, text in zip(languages, texts)]
    identified = ""
    if published and None in languages:
        identified = " (identified languages: set --source-language and --target-language to change them)"
    try:
        if not published:
            raise ValueError("it has none")
        pair, match = match_published_threshold(published, codes[0], codes[1], run)
    except ValueError as error:
        if required:
            raise ValueError(
                f"threshold 'published' needs a threshold of the model (--model {name}) that is valid for this run: "
                f"{error}; give a number, or calibrate with known translations."
            ) from None
        level = logging.WARNING
        if not published:
            level = logging.DEBUG if model is None else logging.INFO
        logger.log(level, "no published threshold of %s is used: %s%s; it is estimated", name, error, identified)
        return None, ""
    metrics = ""
    if match.precision is not None:
        metrics += f", precision {match.precision:.3f}"
    if match.recall is not None:
        metrics += f", recall {match.recall:.3f}"
    line = f"threshold {match.threshold:.4f} of {name} for {pair}{metrics}; published with {match.signature}"
    logger.info("%s%s", line, identified)
    return match, line
