"""xsim of an encoder over several languages; xsim++, whose targets include hard near-translations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


#: Category of an error of xsim++ whose winner is no hard near-translation of the same sentence.
MISALIGNED = "misaligned"


@dataclass(frozen=True)
class XsimPlusPlus(Xsim):
    """Errors among sentences and hard near-translations.

    Attributes:
        winners: Kind of each source's best target: ``""``, its translation; the category of a hard near-translation of
            that; or ``"misaligned"``: anything of another sentence, or nothing. *Shape:* ``(sources,)``
        with_hard: Category → number of sources that have a hard near-translation of it.
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
    """Compute the similarity search error from source to target, where hard near-translations of all targets may win.

    As :func:`~st_xling.mining.xsim`, over more targets: an encoder that overlooks a negation or another number takes
    the wrong one. The translation wins ties.

    Args:
        source_embeddings: numpy or torch, any float dtype. *Shape:* ``(sentences, dim)``
        target_embeddings: Translations, row-aligned. *Shape:* ``(sentences, dim)``
        hard_embeddings: Embeddings of the texts of :func:`~st_xling.data.hard_translations`. *Shape:* ``(hard, dim)``
        hard_index: Index of the target that each was made from.
        categories: Category of the change in each.
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
    hard = _as_array(hard_embeddings)
    total = len(source)
    targets = np.concatenate([_as_array(target), hard]) if len(hard) else target
    winners = [MISALIGNED] * total
    for row, best in enumerate(best_targets(source, targets, k=k, margin=margin).tolist()):
        if best == row:
            winners[row] = ""
        elif best >= total and hard_index[best - total] == row:
            winners[row] = categories[best - total]
    with_hard = Counter(category for _, category in set(zip(hard_index, categories)))
    return XsimPlusPlus(sum(map(bool, winners)), total, tuple(winners), dict(sorted(with_hard.items())))


def _as_array(embeddings: Any) -> np.ndarray:
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
        seed: Seed of these near-translations.
        name: Name of the data, for the signature.
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
    kinds = (*HARD_CATEGORIES, MISALIGNED) if plus_plus else ()
    repeats = count_repeats(pairs, name)
    # Errors of each language, a value for each column: to and from English; with xsim++ also its error, and each kind.
    values: dict[str, list[float | None]] = {}
    all_hard_texts: list[list[str]] = []
    for language, columns in pairs.items():
        hard = hard_translations(columns[1], seed=seed) if plus_plus else []
        hard_texts = [sentence.text for sentence in hard]
        all_hard_texts.append(hard_texts)
        source, target, negatives = encode_by_language(
            model,
            [*columns, hard_texts],
            [language, "eng", "eng"],
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
        )
        try:
            to_english = xsim(source, target, margin=margin, k=k)
            from_english = xsim(target, source, margin=margin, k=k)
            values[language] = [to_english.error_rate, from_english.error_rate]
            if plus_plus:
                indices = [sentence.index for sentence in hard]
                categories = [sentence.category for sentence in hard]
                result = xsim_plus_plus(source, target, negatives, indices, categories, margin=margin, k=k)
                values[language] += [result.error_rate, *(result.by_category.get(kind) for kind in kinds)]
        except ValueError as error:
            raise ValueError(f"{language}: {error}") from error
    values["all"] = _average_columns(values.values())
    metrics, rows = _xsim_results(values, pairs, repeats, kinds)
    hard_digest, hard_seed = (sha8(all_hard_texts), seed) if plus_plus else (None, None)
    content = [[language, *map(list, columns)] for language, columns in pairs.items()]
    signature = sign_use(
        "xsim",
        languages=pairs,
        direction="both",
        margin=margin,
        k=k,
        ties="index",
        repeats=sum(repeats.values()) or None,
        hard=hard_digest,
        seed=hard_seed,
        data=f"{name}@{sha8(content)}",
        use=ModelUse.of(model, [*pairs, "eng"]),
    )
    return EvaluationResult(metrics, _xsim_columns(kinds), rows, signature)


def _average_columns(rows: Iterable[Sequence[float | None]]) -> list[float | None]:
    """Return the mean of each column without ``None``; ``None`` for a column without values."""
    means: list[float | None] = []
    for column in zip(*rows):
        # A language may lack near-translations of some category, and all languages may.
        numbers = [value for value in column if value is not None]
        mean = sum(numbers) / len(numbers) if numbers else None
        means.append(mean)
    return means


def _xsim_results(
    values: Mapping[str, list[float | None]],
    pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]],
    repeats: Mapping[str, int],
    kinds: Sequence[str],
) -> tuple[dict[str, dict[str, Any]], list[Row]]:
    """Return metrics and rows of the errors of each language, and of ``"all"``."""
    metrics: dict[str, dict[str, Any]] = {}
    rows: list[Row] = []
    for language, row in values.items():
        arguments: dict[str, int] = {}
        if language != "all":
            arguments["sentences"] = len(pairs[language][0])
        metrics[language] = {"to_en_error": row[0], "from_en_error": row[1]}
        if language in repeats:
            arguments["repeats"] = repeats[language]
            metrics[language]["repeats"] = repeats[language]
        if kinds:
            metrics[language]["to_en_plus_plus"] = {"error": row[2], "categories": dict(zip(kinds, row[3:]))}
        rows.append(Row(language, row, average=language == "all", arguments=arguments))
    return metrics, rows


def _xsim_columns(kinds: Sequence[str]) -> list[Column]:
    """Return the columns of the table: of xsim, and, if there are kinds of errors, of xsim++."""
    columns = [
        Column("error to English", "xsim_error", decimals=2),
        Column("error from English", "xsim_error", decimals=2),
    ]
    if kinds:
        columns.append(Column("xsim++ to English", "xsim_plus_plus_error", decimals=2))
        columns += [Column(kind, decimals=2) for kind in kinds]
    return columns
