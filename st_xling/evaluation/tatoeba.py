"""Tatoeba similarity search: does a sentence find its English translation, and the English sentence its own?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.evaluation.base import Measured, SignedEvaluator
from st_xling.evaluation.tatoeba_data import (
    TATOEBA_GROUPS,
    Pairs,
    aligned_pairs,
    count_repeats,
    english_columns,
    named_pairs,
)
from st_xling.utils.cosines import nearest_both_ways, weighted_f1
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer


class TatoebaEvaluator(SignedEvaluator):
    """Translation retrieval accuracy (P@1) per language, in both directions, with macro averages.

    A hit is sentence ``i`` retrieving sentence ``i`` by cosine among all sentences of its language pair; equal cosines
    go to the lowest index. Each distinct text is encoded once for all languages, so equal texts have equal vectors.

    Args:
        pairs: Language code to aligned texts, the language first and English second: two lists, or a ``Dataset`` with
            columns ``source`` and ``target``. Known two-letter codes become three-letter ones. Or one data set, or the
            source sentences, as sentence-transformers' ``TranslationEvaluator`` takes them.
        targets: English sentences, with source sentences.
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

    def __init__(
        self, pairs: Pairs | Dataset | Sequence[str], targets: Sequence[str] | None = None, **options: Any
    ) -> None:
        super().__init__("mean_accuracy", **options)
        self.pairs = aligned_pairs(named_pairs(pairs, targets))
        #: Language → sentences that repeat an earlier one, which no search can find.
        self.repeats = count_repeats(self.pairs, self.data_name)
        self.groups = {name: members for name, members in TATOEBA_GROUPS.items() if {*members} <= {*self.pairs}}

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages evaluated, in alphabetical order."""
        return tuple(self.pairs)

    @property
    def signature(self) -> str:
        """All that a metric depends on besides the model; the eight hex digits identify languages, texts and order."""
        group = next((name for name, members in TATOEBA_GROUPS.items() if members == self.languages), None)
        data = f"{self.data_name}@{sha8(self.pairs)}"
        return self.sign(
            "tatoeba",
            languages=group or self.languages,
            direction="both",
            ties="index",
            repeats=sum(self.repeats.values()) or None,
            data=data,
        )

    def measure(self, model: SentenceTransformer) -> Measured:
        """Encode, retrieve both ways and average."""
        vectors = iter(self.encode_columns(model, *english_columns(self.pairs)))
        accuracies: dict[str, list[float]] = {}
        metrics: dict[str, float] = {}
        rows: list[Row] = []
        for language in self.pairs:
            try:
                found = nearest_both_ways(next(vectors), next(vectors))
            except ValueError as error:
                raise ValueError(f"{language}-eng (queries: {language}, corpus: eng): {error}") from error
            to_en, from_en = accuracies[language] = [float(np.mean(own == np.arange(len(own)))) for own in found]
            metrics |= {f"{language}_to_en_accuracy": to_en, f"{language}_from_en_accuracy": from_en}
            metrics |= {f"{language}_{way}_en_weighted_f1": weighted_f1(own) for way, own in zip(("to", "from"), found)}
            repeats = {"repeats": self.repeats[language]} if language in self.repeats else {}
            metrics |= {f"{language}_{key}": count for key, count in repeats.items()}
            rows.append(Row(language, [to_en, from_en, (to_en + from_en) / 2], arguments=repeats))
        for group, members in {**self.groups, "": self.languages}.items():
            to_en, from_en = (sum(accuracies[member][way] for member in members) / len(members) for way in (0, 1))
            averages = {"to_en": to_en, "from_en": from_en, "mean": (to_en + from_en) / 2}
            metrics |= {f"{group}_{way}_accuracy".lstrip("_"): value for way, value in averages.items()}
            rows.append(Row(group or "all", [*averages.values()], average=True))
        columns = [Column(f"{way} English", "accuracy", picture=True) for way in ("to", "from")]
        return Measured(metrics, [*columns, Column("mean")], rows)
