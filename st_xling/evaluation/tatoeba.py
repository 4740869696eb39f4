"""Translation retrieval: Tatoeba's accuracy with English, and P@N of any pairs of languages, in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.evaluation.base import Measured, SignedEvaluator
from st_xling.evaluation.tatoeba_data import (
    TATOEBA_GROUPS,
    Pairs,
    aligned_pairs,
    count_repeats,
    english_columns,
)
from st_xling.utils.cosines import nearest_both_ways, precision_at, weighted_f1
from st_xling.utils.languages import distinct_codes, pair_languages
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DIRECTIONS = ("source_to_target", "target_to_source", "mean")


class _PairsEvaluator(SignedEvaluator):
    """An evaluator of aligned texts.

    Attributes:
        pairs: Language or pair of languages → both sides.
        repeats: The same → sentences that repeat an earlier one of their side, which no search can find.
    """

    def __init__(self, pairs: Pairs, primary: str, **options: Any) -> None:
        super().__init__(primary, **options)
        self.pairs = aligned_pairs(pairs)
        self.repeats = count_repeats(self.pairs, self.data_name)

    def sign_pairs(self, **parts: Any) -> str:
        repeats = sum(self.repeats.values()) or None
        data = f"{self.data_name}@{sha8(self.pairs)}"
        return self.sign(self.task, **parts, direction="both", ties="index", repeats=repeats, data=data)

    def matched(
        self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]], directions: Sequence[str]
    ) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], dict[str, float]]:
        """Return the nearest sentences of each language, both ways; and the metrics that both evaluators have."""
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        metrics: dict[str, float] = {}
        for name, sides in vectors.items():
            try:
                found[name] = nearest_both_ways(*sides)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
            metrics |= {f"{name}_{way}_weighted_f1": weighted_f1(own) for way, own in zip(directions, found[name])}
        return found, metrics | {f"{name}_repeats": count for name, count in self.repeats.items()}

    def row(self, name: str, values: Sequence[float]) -> Row:
        counts = {"repeats": self.repeats[name]} if name in self.repeats else {}
        return Row(name, [*values], arguments=counts)


class TatoebaEvaluator(_PairsEvaluator):
    """Translation retrieval accuracy (P@1) per language, in both directions, with macro averages.

    A hit is sentence ``i`` retrieving sentence ``i`` by cosine among all sentences of its language pair; equal cosines
    go to the lowest index. Each distinct text is encoded once for all languages, so equal texts have equal vectors.

    Args:
        pairs: Language code to aligned texts, the language first and English second: two lists, or a ``Dataset`` with
            columns ``source`` and ``target``. Known two-letter codes become three-letter ones.
        options: Of every evaluator, such as ``batch_size``: see :class:`~st_xling.evaluation.base.SignedEvaluator`.
    Returns:
        From a call, fractions in [0, 1]: ``{name}_{language}_to_en_accuracy`` and ``..._from_en_accuracy``; for each
        of :data:`~st_xling.evaluation.TATOEBA_GROUPS` of which all languages are there and, without a label, for all
        languages also ``..._mean_accuracy``. ``{name}_mean_accuracy`` is the primary metric.
        ``{name}_{language}_to_en_weighted_f1`` and ``..._from_en_weighted_f1`` are mteb's measure, see
        :func:`~st_xling.evaluation.weighted_f1` and :func:`~st_xling.evaluation.to_mteb`. Where sentences repeat
        others of their side, ``{name}_{language}_repeats`` counts them.
    Raises:
        ValueError: On empty or misaligned pairs (all faults at once), or embeddings that are zero or
            not finite.
    Source:
        Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings"; groups: see
        :mod:`st_xling.evaluation.tatoeba_data`.
    Example:
        >>> evaluator = TatoebaEvaluator({"de": (["Hallo!", "Danke."], ["Hello!", "Thanks."])})
        >>> evaluator.primary_metric
        'tatoeba_mean_accuracy'
    """

    task = "tatoeba"

    def __init__(self, pairs: Pairs, **options: Any) -> None:
        super().__init__(pairs, "mean_accuracy", **options)
        self.groups = {name: members for name, members in TATOEBA_GROUPS.items() if {*members} <= {*self.pairs}}

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages evaluated, in alphabetical order."""
        return tuple(self.pairs)

    @property
    def signature(self) -> str:
        """All that a metric depends on besides the model; the eight hex digits identify languages, texts and order."""
        group = next((name for name, members in TATOEBA_GROUPS.items() if members == self.languages), None)
        return self.sign_pairs(languages=group or self.languages)

    def measure(self, model: SentenceTransformer) -> Measured:
        """Encode, retrieve both ways and average."""
        vectors = self.encode_columns(model, *english_columns(self.pairs))
        both = dict(zip(self.pairs, zip(vectors[::2], vectors[1::2])))
        found, metrics = self.matched(both, ("to_en", "from_en"))
        accuracies = {
            language: [float(np.mean(own == np.arange(len(own)))) for own in ways] for language, ways in found.items()
        }
        for language, ways in accuracies.items():
            metrics |= {f"{language}_{way}_en_accuracy": value for way, value in zip(("to", "from"), ways)}
        rows = [self.row(language, [*ways, sum(ways) / 2]) for language, ways in accuracies.items()]
        for group, members in {**self.groups, "": self.languages}.items():
            to_en, from_en = (sum(accuracies[member][way] for member in members) / len(members) for way in (0, 1))
            averages = {"to_en": to_en, "from_en": from_en, "mean": (to_en + from_en) / 2}
            metrics |= {f"{group}_{way}_accuracy".lstrip("_"): value for way, value in averages.items()}
            rows.append(Row(group or "all", [*averages.values()], average=True))
        columns = [Column(f"{way} English", "accuracy", picture=True) for way in ("to", "from")]
        return Measured(metrics, [*columns, Column("mean")], rows)


class PrecisionEvaluator(_PairsEvaluator):
    """P@N: the share of translations among the N nearest sentences by cosine, both ways, with macro averages.

    Args:
        pairs: Name, such as ``"zh-vi"``, to aligned texts: two lists, or a ``Dataset`` with columns ``source`` and
            ``target``. Its columns of languages, else the name, say what languages they are: a model centered by
            language (:class:`~st_xling.models.normalization.Centering`) encodes each side by the route of its language.
        at: Values of N.
        options: Of every evaluator, such as ``batch_size``: see :class:`~st_xling.evaluation.base.SignedEvaluator`.
    Returns:
        From a call, fractions in [0, 1]: ``{name}_{pair}_source_to_target_p@1``, ``..._target_to_source_p@1`` and
        ``..._mean_p@1``; the same without a pair, averaged over pairs. ``{name}_mean_p@{first N}`` is the primary one.
        ``{name}_{pair}_source_to_target_weighted_f1`` and the reverse are what mteb reports of bitext, see
        :func:`~st_xling.evaluation.weighted_f1` and :func:`~st_xling.evaluation.to_mteb`.
    Raises:
        ValueError: On empty or misaligned pairs (all faults at once), an N below 1, or embeddings that are zero or not
            finite.
    Source:
        Huang et al. 2023 (mBERT-SF), section 4.3.
    Example:
        >>> PrecisionEvaluator({"zh-vi": (["你好。"], ["Xin chào."])}).primary_metric
        'precision_mean_p@1'
    """

    task = "precision"

    def __init__(self, pairs: Pairs, *, at: Sequence[int] = (1, 5), **options: Any) -> None:
        if not at or min(at) < 1:
            raise ValueError(f"at must hold numbers of candidates, 1 or more: got {tuple(at)}.")
        self.at = tuple(at)
        self.primary_measure = f"mean_p@{self.at[0]}"
        super().__init__(pairs, self.primary_measure, **options)
        #: Languages of both sides of each of ``pairs``; ``None``: not known, or several.
        self.languages = {name: _languages(code, pairs[code]) for code, name in distinct_codes(pairs).items()}

    @property
    def signature(self) -> str:
        """All that a metric depends on besides the model; the eight hex digits identify pairs, texts and order."""
        return self.sign_pairs(at=self.at, pairs=self.pairs)

    def columns(self) -> tuple[list[list[str]], list[str | None]]:
        """Source and target texts of each pair, and their languages."""
        return (
            [side for sides in self.pairs.values() for side in sides],
            [language for pair in self.pairs for language in self.languages[pair]],
        )

    def measure(self, model: SentenceTransformer) -> Measured:
        """Encode, match both ways and average."""
        columns = self.encode_columns(model, *self.columns())
        return self.measure_vectors(dict(zip(self.pairs, zip(columns[::2], columns[1::2]))))

    def measure_vectors(self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Measured:
        """Match the vectors of both sides of each of ``pairs``. *Shape of each:* ``(pairs, dim)``"""
        _, metrics = self.matched(vectors, DIRECTIONS[:2])
        ways = {pair: precision_at(*sides, at=self.at) for pair, sides in vectors.items()}
        values = {pair: [way[n] for n in self.at for way in both] for pair, both in ways.items()}
        means = [sum(column) / len(column) for column in zip(*values.values())]
        for stem, own in {**{f"{pair}_": own for pair, own in values.items()}, "": means}.items():
            for n, forward, backward in zip(self.at, own[::2], own[1::2]):
                both_ways = (forward, backward, (forward + backward) / 2)
                metrics |= {f"{stem}{way}_p@{n}": value for way, value in zip(DIRECTIONS, both_ways)}
        columns = [
            Column(f"P@{n} {arrow}", f"precision_at_{n}", picture=n == self.at[0]) for n in self.at for arrow in "→←"
        ]
        rows = [self.row(pair, own) for pair, own in values.items()]
        if len(rows) > 1:
            rows.append(Row("all", [*means], average=True))
        return Measured(metrics, columns, rows)


def _languages(name: str, pairs: Any) -> tuple[str | None, str | None]:
    columns = getattr(pairs, "column_names", None) or ()
    # Lists have no columns of languages: then the name, such as zh-vi, names them.
    if not {"source_language", "target_language"} <= set(columns):
        return pair_languages(name)
    source, target = (pairs.unique(f"{side}_language") for side in ("source", "target"))
    return source[0] if len(source) == 1 else None, target[0] if len(target) == 1 else None
