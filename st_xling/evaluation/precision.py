"""P@N of translation matching as an evaluator, over any pairs of languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.evaluation.base import Measured, SignedEvaluator
from st_xling.evaluation.tatoeba_data import Pairs, aligned_pairs, count_repeats, named_pairs
from st_xling.utils.cosines import nearest_both_ways, precision_at, weighted_f1
from st_xling.utils.languages import distinct_codes, pair_languages
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

DIRECTIONS = ("source_to_target", "target_to_source", "mean")


class PrecisionEvaluator(SignedEvaluator):
    """P@N: the share of translations among the N nearest sentences by cosine, both ways, with macro averages.

    Args:
        pairs: Name, such as ``"zh-vi"``, to aligned texts: two lists, or a ``Dataset`` with columns ``source`` and
            ``target``. Its columns of languages, else the name, say what languages they are: a model centered by
            language (:class:`~st_xling.models.normalization.Centering`) encodes each side by the route of its language.
            Or one data set, or the source sentences, as sentence-transformers' ``TranslationEvaluator`` takes them.
        targets: Target sentences, with source sentences.
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

    def __init__(
        self,
        pairs: Pairs | Dataset | Sequence[str],
        targets: Sequence[str] | None = None,
        *,
        at: Sequence[int] = (1, 5),
        **options: Any,
    ) -> None:
        pairs = named_pairs(pairs, targets)
        if not at or min(at) < 1:
            raise ValueError(f"at must hold numbers of candidates, 1 or more: got {tuple(at)}.")
        self.at = tuple(at)
        self.primary_measure = f"mean_p@{self.at[0]}"
        super().__init__(self.primary_measure, **options)
        self.pairs = aligned_pairs(pairs)
        #: Pair → sentences that repeat an earlier one of their side.
        self.repeats = count_repeats(self.pairs, self.data_name)
        #: Languages of both sides of each of ``pairs``; ``None``: not known, or several.
        self.languages = {name: _languages(code, pairs[code]) for code, name in distinct_codes(pairs).items()}

    @property
    def signature(self) -> str:
        """All that a metric depends on besides the model; the eight hex digits identify pairs, texts and order."""
        data = f"{self.data_name}@{sha8(self.pairs)}"
        repeats = sum(self.repeats.values()) or None
        return self.sign(
            "precision", at=self.at, pairs=self.pairs, direction="both", ties="index", repeats=repeats, data=data
        )

    def columns(self) -> tuple[list[list[str]], list[str | None]]:
        """Source and target texts of each pair, and their languages."""
        return (
            [side for sides in self.pairs.values() for side in sides],
            [language for pair in self.pairs for language in self.languages[pair]],
        )

    def measure(self, model: SentenceTransformer) -> Measured:
        """Encode, match both ways and average."""
        vectors = self.encode_columns(model, *self.columns())
        return self.measure_vectors(dict(zip(self.pairs, zip(vectors[::2], vectors[1::2]))))

    def measure_vectors(self, vectors: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Measured:
        """Match vectors that are computed already.

        Args:
            vectors: For each of ``pairs``, source and target. *Shape of each:* ``(pairs, dim)``
        """
        values: dict[str, list[float]] = {}  # pair → for each N, to the target and back
        metrics: dict[str, float] = {}
        for pair in self.pairs:
            try:
                both = precision_at(*vectors[pair], at=self.at)
                found = nearest_both_ways(*vectors[pair])
            except ValueError as error:
                raise ValueError(f"{pair}: {error}") from error
            values[pair] = [way[n] for n in self.at for way in both]
            metrics |= {f"{pair}_{way}_weighted_f1": weighted_f1(own) for way, own in zip(DIRECTIONS, found)}
        means = [sum(column) / len(column) for column in zip(*values.values())]
        for stem, own in {**{f"{pair}_": own for pair, own in values.items()}, "": means}.items():
            for n, forward, backward in zip(self.at, own[::2], own[1::2]):
                both_ways = (forward, backward, (forward + backward) / 2)
                metrics |= {f"{stem}{way}_p@{n}": value for way, value in zip(DIRECTIONS, both_ways)}
        columns = [
            Column(f"P@{n} {arrow}", f"precision_at_{n}", picture=n == self.at[0]) for n in self.at for arrow in "→←"
        ]
        metrics |= {f"{pair}_repeats": count for pair, count in self.repeats.items()}
        counts = {pair: {"repeats": count} for pair, count in self.repeats.items()}
        rows = [Row(pair, [*own], arguments=counts.get(pair, {})) for pair, own in values.items()]
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
