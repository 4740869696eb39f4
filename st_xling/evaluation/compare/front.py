"""Merge a model with its start at the weight that development data choose: the most translation for little search lost.

Between the weights of a start and of a trained model lies a front: translation is gained, and some retrieval lost.
:func:`merge_models` measures it at several weights, chooses one by a rule, and saves the merged model with a picture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch

from st_xling._version import __version__
from st_xling.evaluation.compare.axes import (
    MIXED_POOL,
    OLD_LANGUAGES,
    RETRIEVAL,
    TRANSLATION,
    AxisResults,
    axis_measure,
    label_name,
    measure_axes,
    passage_language,
)
from st_xling.evaluation.compare.data import ComparisonData
from st_xling.evaluation.pictures import PICTURES, draw_front, has_matplotlib
from st_xling.models import load_encoder
from st_xling.models.load import set_loaded
from st_xling.models.merge import check_mergeable, check_weight, merge_encoders
from st_xling.models.sidecar import card_terms, model_fingerprint, model_folder, write_model
from st_xling.models.view import EncoderLoadingOptions, model_options
from st_xling.utils.languages import canonical_language, language_name
from st_xling.utils.lazy_model import Loaded
from st_xling.utils.options import Dtype, require
from st_xling.utils.signature import loaded, sha8, sign
from st_xling.utils.tables import format_table
from st_xling.utils.terminal import progress_bar

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the second model that are tried by default."""

MOST_LOST = 0.5
"""Points that each of what is kept may lose, by default."""


class FrontPoint(TypedDict):
    """Measures of the merged model at one weight, as JSON has them.

    Attributes:
        weight: Share of the second model.
        translation: Mean accuracy of translation both ways, in [0, 1].
        retrieval: Mean MRR@100 over all questions' and passages' languages, in [0, 1]; ``None`` without passages.
        mixed_pool: Mean mAP of a mixed pool, in [0, 1]; ``None`` without one.
        kept: What may lose little: name → its value, in [0, 1].
        most_lost: The largest loss among ``kept`` against weight 0, in points.
    """

    weight: float
    translation: float
    retrieval: float | None
    mixed_pool: float | None
    kept: dict[str, float]
    most_lost: float


@dataclass(frozen=True)
class MergeReport:
    """Result of :func:`merge_models`.

    Attributes:
        content: ``results.json["merge"]``: the two models, the front, the rule, the chosen weight; signature and
            command.
    """

    content: dict[str, Any]

    @property
    def weight(self) -> float:
        """The chosen share of the second model."""
        return float(self.content["weight"])

    def table(self) -> str:
        """Format the front and the choice as plain text."""
        kept = list(self.content["front"][0]["kept"])
        rows: list[list[str]] = []
        for point in self.content["front"]:
            values = [f"{100 * point['kept'][name]:.1f}" for name in kept]
            chosen = "chosen" if point["weight"] == self.weight else ""
            translation = f"{100 * point['translation']:.1f}"
            rows.append([f"{point['weight']:g}", translation, *values, f"{point['most_lost']:.1f}", chosen])
        head = ["weight", "translation", *kept, "most lost, points", ""]
        return "\n".join([format_table(head, rows), self.content["rule"], self.content["signature"]])


def merge_models(
    first: str,
    second: str,
    data: ComparisonData,
    out: str | Path,
    *,
    weights: Sequence[float] = WEIGHTS,
    most_lost: float = MOST_LOST,
    old_languages: Collection[str] = (),
    overwrite: bool = False,
    progress: bool = False,
    command: str | None = None,
    complete: Callable[[Path], object] | None = None,
    **options: Unpack[EncoderLoadingOptions],
) -> MergeReport:
    """Merge a trained model with its start, at the weight that development data choose, and save the result.

    Each weight is measured once: a call that was interrupted resumes with the weights that it lacks. The chosen weight
    has the highest accuracy of translation among those at which nothing that is kept loses more than ``most_lost``
    points against the start: each retrieval set (the mean over its questions' languages), and the mean of the old
    languages.

    Args:
        first: Hub id or folder of the start, which is not changed.
        second: Hub id or folder of a model that was trained from it, which is not changed.
        data: Development data: translation pairs with English, and retrieval sets.
        out: Folder of the merged model, with the front in ``results.json`` and in a picture.
        weights: Shares of the second model to try, from 0 to 1; 0, the start itself, is always measured.
        most_lost: Points that each of what is kept may lose.
        old_languages: Languages whose translation is kept, too, and not counted among what is gained.
        overwrite: Replace an earlier merged model in ``out``.
        progress: Show bars on stderr.
        command: Command to record in the report.
        complete: Called with the folder of the new model before it is moved to its place, such as to write the card.
        options: See :func:`~st_xling.models.load_encoder`, of both models; a prompt or length is saved with the merged
            one. They are merged in float32; with a ``dtype`` the result is measured and saved in that type.

    Raises:
        ValueError: Weights that are no shares; data without translation, or without anything to keep; models that
            cannot be merged, see :func:`~st_xling.models.merge.check_mergeable`; a folder that may not be written to.

    Source:
        Wortsman et al. 2022, Robust fine-tuning of zero-shot models (WiSE-FT).
    """
    shares = check_merge(weights, most_lost, data, old_languages)
    require("mergekit", "merging models", extra="merge")
    dtype = options.pop("dtype", None)
    options["dtype"] = "float32"  # or a training's small changes would be rounded away
    with model_folder(out, first, "merge", overwrite=overwrite) as folder:
        start = load_encoder(first, **options)
        trained = load_encoder(second, **options)
        check_mergeable(start, trained)

        results: dict[float, AxisResults] = {}
        for share in progress_bar(shares, desc="weights", unit="weights", total=len(shares), show=progress):
            merged = _computing_in(merge_encoders(start, trained, share), dtype)
            results[share] = measure_axes(
                merged,
                data,
                name=f"weight-{share:g}",
                old_languages=old_languages,
                folder=folder,
                within="training/weights/",
            )
        front = [_point(share, results[share], results[0.0]) for share in shares]
        chosen = choose_weight(front, most_lost)

        old_codes = sorted(canonical_language(code) for code in old_languages)
        signature = sign(
            "merge",
            weights=[f"{share:g}" for share in shares],
            most_lost=f"{most_lost:g}",
            old=old_codes or None,
            languages=list(data.pairs),
            passages=[retrieval_set.language for retrieval_set in data.sets] or None,
            model=model_options(_computing_in(start, dtype)),
            data=f"{data.name}@{sha8(data.sha8)}",
        )
        content: dict[str, Any] = {
            "source": _shown_name(first),
            "source_fingerprint": model_fingerprint(start)[:8],
            "source_card": card_terms(first),
            "second": _shown_name(second),
            "second_fingerprint": model_fingerprint(trained)[:8],
            # As the Hub names what is made from another model.
            "relation": "merge",
            "weight": chosen["weight"],
            "front": front,
            "most_lost": most_lost,
            "rule": _rule(chosen, front, most_lost),
            "signature": signature,
        }
        if command is not None:
            content["command"] = command
        content["version"] = __version__

        merged = merge_encoders(start, trained, chosen["weight"], dtype=dtype)
        merged.model_card_data.base_model = None if Path(first).is_dir() else first

        def finish(new: Path) -> None:
            if has_matplotlib():
                draw_front(front, chosen["weight"], new / PICTURES / "front.png")
            if complete is not None:
                complete(new)

        write_model(folder, merged, second, content, finish)
        return MergeReport(content)


def _computing_in(model: SentenceTransformer, dtype: Dtype | None) -> SentenceTransformer:
    """Let a model compute in a type: on a CPU by autocast, which is as fast there as weights of that type."""
    if dtype in (None, "float32"):
        return model
    how = loaded(model)
    set_loaded(model, Loaded(how.name, {**how.options, "dtype": str(dtype)}))
    return model if model.device.type == "cpu" else model.to(getattr(torch, str(dtype)))


def check_merge(
    weights: Sequence[float], most_lost: float, data: ComparisonData, old_languages: Collection[str] = ()
) -> list[float]:
    """Return the shares to measure, ascending and with 0, or raise ``ValueError`` for what cannot be chosen by."""
    for weight in weights:
        check_weight(weight)
    if not most_lost >= 0:
        raise ValueError(f"--most-lost is a number of points, 0 or more: got {most_lost}.")
    if not data.pairs:
        raise ValueError("a weight is chosen by translation: got no pairs with English; add --data xx-en=pairs.tsv.")
    old_codes = set(map(canonical_language, old_languages))
    if old_codes.issuperset(data.pairs):
        raise ValueError(
            "a weight is chosen by the translation of what was learned: got pairs of "
            f"{', '.join(map(language_name, data.pairs))} alone, which --old-languages names; add pairs of another "
            "language."
        )
    if not data.sets and old_codes.isdisjoint(data.pairs):
        raise ValueError(
            "a weight is chosen by what may not be lost: got neither passages nor old languages; add passages with "
            "queries, --data xx=DIR, or name languages of the pairs by --old-languages."
        )
    return sorted({0.0, *map(float, weights)})


def choose_weight(front: Sequence[FrontPoint], most_lost: float) -> FrontPoint:
    """Return the point of most translation among those that lose at most so many points; of equal ones the first.

    Args:
        front: Points, among them that of weight 0, which loses nothing.
        most_lost: Points that each of what is kept may lose.

    Example:
        >>> def point(weight, translation, lost):
        ...     return {"weight": weight, "translation": translation, "most_lost": lost}
        >>> choose_weight([point(0, 0.80, 0), point(0.5, 0.85, 0.4), point(1, 0.88, 2.0)], 0.5)["weight"]
        0.5
    """
    # Rounded, so that a loss of exactly so many points is none too many.
    allowed = [point for point in front if round(point["most_lost"], 9) <= most_lost]
    return max(allowed, key=lambda point: point["translation"])


def _point(share: float, results: AxisResults, start: AxisResults) -> FrontPoint:
    """Return the measures at one weight, and what is lost against the start."""
    kept = _kept(results)
    before = _kept(start)
    losses = [100 * (before[name] - value) for name, value in kept.items()]
    return {
        "weight": share,
        "translation": results.value(TRANSLATION),
        "retrieval": results.value(RETRIEVAL) if RETRIEVAL in results.axes else None,
        "mixed_pool": results.value(MIXED_POOL) if MIXED_POOL in results.axes else None,
        "kept": kept,
        "most_lost": max([0.0, *losses]),
    }


def _kept(results: AxisResults) -> dict[str, float]:
    """Return name → value of each retrieval set, and of the old languages."""
    kept: dict[str, float] = {}
    for code in results.passage_languages():
        labels = [label for label in results.axes[RETRIEVAL] if passage_language(label) == code]
        kept[f"{axis_measure(RETRIEVAL).name}, {label_name(code)}"] = results.value(RETRIEVAL, labels)
    if OLD_LANGUAGES in results.axes:
        kept["old languages"] = results.value(OLD_LANGUAGES)
    return kept


def _rule(chosen: FrontPoint, front: Sequence[FrontPoint], most_lost: float) -> str:
    """Describe the choice."""
    rule = f"the most translation for at most {most_lost:g} points of anything kept"
    if chosen["weight"] == 0 and len(front) > 1:
        return f"weight 0, the start: no other weight has {rule}"
    return f"weight {chosen['weight']:g}: {rule}"


def _shown_name(model: str) -> str:
    return Path(model).resolve().name if Path(model).is_dir() else model
