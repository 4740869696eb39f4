"""xsim of an encoder over several languages; xsim++, whose targets include hard near-translations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.data.hard_translation_sets import HARD_CATEGORIES, hard_translations
from st_xling.evaluation.base import ModelUse, sign_use
from st_xling.evaluation.results import EvaluationResult
from st_xling.evaluation.tatoeba import count_repeats
from st_xling.mining.margins import check_aligned
from st_xling.mining.mined_pairs import Xsim, best_targets, xsim
from st_xling.models.normalization import encode_by_language
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import Margin, check_by_name
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


#: What an error of xsim++ is called that is none of a sentence's own hard near-translations.
MISALIGNED = "misaligned"


@dataclass(frozen=True)
class XsimPlusPlus(Xsim):
    """Errors among sentences and hard near-translations.

    Attributes:
        winners: What each source's best target is: ``""``, its translation; the category of a hard near-translation of
            that; or ``"misaligned"``: anything of another sentence, or nothing. *Shape:* ``(sources,)``
        with_hard: Category → how many sources have a hard near-translation of it.
    """

    winners: tuple[str, ...]
    with_hard: Mapping[str, int]

    @property
    def by_category(self) -> dict[str, float]:
        """Category → its errors among the sources that have one; ``"misaligned"`` → its errors among all."""
        counts = Counter(self.winners)
        rates = {category: counts[category] / total for category, total in self.with_hard.items()}
        return {**rates, MISALIGNED: counts[MISALIGNED] / self.total}


def xsim_plus_plus(
    source_embeddings: Embeddings,
    target_embeddings: Embeddings,
    hard_embeddings: Embeddings,
    hard_index: Sequence[int],
    categories: Sequence[str],
    *,
    k: int = 4,
    margin: Margin = "ratio",
) -> XsimPlusPlus:
    """Similarity search error from source to target, where hard near-translations of all targets may win.

    As :func:`~st_xling.mining.xsim`, over more targets: an encoder that overlooks a negation or another number takes
    the wrong one. The translation wins ties.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sentences, dim)``
        target_embeddings: Translations, row-aligned. *Shape:* ``(sentences, dim)``
        hard_embeddings: Of the texts of :func:`~st_xling.data.hard_translations`. *Shape:* ``(hard, dim)``
        hard_index: Which target each was made from.
        categories: What was changed in each.
        k: Neighbors that make up a sentence's neighborhood.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
    Raises:
        ValueError: Unequal numbers of rows, or as :func:`~st_xling.mining.xsim`.
    Source:
        Chen et al. 2023, "xsim++", section 2; LASER, ``xsim.py``.
    Example:
        >>> hard = np.eye(3)[:1] + 0.1
        >>> xsim_plus_plus(np.eye(3), np.eye(3) + 0.2, hard, [0], ["number"], k=2).winners
        ('number', '', '')
    """
    source, target = check_aligned(source_embeddings, target_embeddings)
    hard, total = _array(hard_embeddings), len(source)
    targets = np.concatenate([_array(target), hard]) if len(hard) else target
    winners = [MISALIGNED] * total
    for row, best in enumerate(best_targets(source, targets, k=k, margin=margin).tolist()):
        if best == row:
            winners[row] = ""
        elif best >= total and hard_index[best - total] == row:
            winners[row] = categories[best - total]
    with_hard = Counter(category for _, category in set(zip(hard_index, categories)))
    return XsimPlusPlus(sum(map(bool, winners)), total, tuple(winners), dict(sorted(with_hard.items())))


def _array(embeddings: Any) -> np.ndarray:
    return embeddings.float().cpu().numpy() if hasattr(embeddings, "cpu") else np.asarray(embeddings)


def xsim_by_language(
    model: SentenceTransformer,
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    *,
    margin: Margin = "ratio",
    k: int = 4,
    plus_plus: bool = False,
    seed: int = 0,
    name: str = "pairs",
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> EvaluationResult:
    """Encode aligned texts and count, both ways, whose best match by margin is not their translation.

    xsim++ is for English targets, and its errors are next to those of xsim.

    Args:
        model: Anything with sentence-transformers' ``encode``.
        pairs: Language to aligned texts, the language first and English second.
        margin: ``"ratio"``, ``"distance"`` or ``"absolute"``.
        k: Neighbors that make up a sentence's neighborhood.
        plus_plus: Also count the errors to English among :func:`~st_xling.data.hard_translations`.
        seed: Of those.
        name: Of the data, for the signature.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding.
    Returns:
        Error rates, fractions in [0, 1], lower is better. Metrics: language, and ``all`` for the macro average →
        ``to_en_error``, ``from_en_error``; ``to_en_plus_plus`` with ``error`` and ``categories``; ``repeats``, the
        sentences that repeat an earlier one of their side, which no search can find.
    Raises:
        ValueError: As :func:`~st_xling.mining.xsim`, naming the language.
    """
    check_by_name("pairs", pairs, "pairs={'de': (texts, english)}")
    values: dict[str, list[float | None]] = {}
    hard_texts, kinds = [], (*HARD_CATEGORIES, MISALIGNED)
    repeats = count_repeats(pairs, name)
    for language, columns in pairs.items():
        hard = hard_translations(columns[1], seed=seed) if plus_plus else []
        hard_texts.append([each.text for each in hard])
        source, target, negatives = encode_by_language(
            model,
            [*columns, hard_texts[-1]],
            [language, "eng", "eng"],
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
        )
        try:
            values[language] = [
                xsim(*sides, margin=margin, k=k).error_rate for sides in ((source, target), (target, source))
            ]
            if plus_plus:
                made_from, categories = [each.index for each in hard], [each.category for each in hard]
                result = xsim_plus_plus(source, target, negatives, made_from, categories, margin=margin, k=k)
                values[language] += [result.error_rate, *(result.by_category.get(kind) for kind in kinds)]
        except ValueError as error:
            raise ValueError(f"{language}: {error}") from error
    # A language may lack near-translations of some category; none at all may have any.
    known = [[value for value in column if value is not None] for column in zip(*values.values())]
    values["all"] = [sum(own) / len(own) if own else None for own in known]
    shown = [Column(f"error {way} English", "xsim_error", decimals=2) for way in ("to", "from")]
    if plus_plus:
        shown.append(Column("xsim++ to English", "xsim_plus_plus_error", decimals=2))
        shown += [Column(kind, decimals=2) for kind in kinds]
    rates: dict[str, dict[str, Any]] = {}
    rows = []
    for language, own in values.items():
        counts = {"repeats": repeats[language]} if language in repeats else {}
        rates[language] = {"to_en_error": own[0], "from_en_error": own[1], **counts}
        if plus_plus:
            rates[language]["to_en_plus_plus"] = {"error": own[2], "categories": dict(zip(kinds, own[3:]))}
        sentences = {} if language == "all" else {"sentences": len(pairs[language][0])}
        rows.append(Row(language, own, average=language == "all", arguments={**sentences, **counts}))
    signature = sign_use(
        "xsim",
        languages=pairs,
        direction="both",
        margin=margin,
        k=k,
        ties="index",
        repeats=sum(repeats.values()) or None,
        hard=sha8(hard_texts) if plus_plus else None,
        seed=seed if plus_plus else None,
        data=f"{name}@{sha8([[language, *map(list, columns)] for language, columns in pairs.items()])}",
        use=ModelUse.of(model, [*pairs, "eng"]),
    )
    return EvaluationResult(rates, shown, rows, signature)
