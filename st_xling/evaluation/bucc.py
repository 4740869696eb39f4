"""Bitext mining as at the BUCC shared task: which sentences of two piles translate each other?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_xling.evaluation.bucc_corpora import Corpora, IndexedCorpus, indexed_corpora
from st_xling.evaluation.mining_scores import JudgedPairs, MiningScores
from st_xling.evaluation.mining_thresholds import row_thresholds
from st_xling.evaluation.pictures import ScoreHistogram
from st_xling.evaluation.results import BUCC_METRICS
from st_xling.evaluation.signed import Figures, SignedEvaluator
from st_xling.mining.mine import mine
from st_xling.mining.thresholds.gold import correct_pairs
from st_xling.utils.languages import pair_languages
from st_xling.utils.signature import sha8

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class BuccEvaluator(SignedEvaluator):
    """Precision, recall and F1 of the pairs mined from two piles of sentences, per language pair and averaged.

    Pairs are mined by :func:`~st_xling.mining.mine`; those that score at least a threshold are compared with the gold.
    The threshold is the best one on a ``train`` corpus, or given, or, only when asked for, the best one on the gold it
    is then judged by. Distinct ids with equal sentences stay distinct: they compete by index, and only the id that the
    gold names is right.

    Args:
        corpora: Language pair to corpus with gold: a :class:`~st_xling.data.BuccCorpus`, or source sentences, target
            sentences and gold pairs of their indices.
        train: Corpora of the same language pairs for the threshold.
        train_split: Name of the part that ``train`` is, for the signature.
        threshold: One number, one for each language pair, or ``"tune"``. Instead of ``train``.
        k: Neighbours that make up a sentence's neighbourhood.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        retrieval: ``"forward"``, ``"backward"``, ``"intersect"`` or ``"max"``.
        batch_size: Texts encoded at a time.
        name: Prefix of the metrics.
        data_name: Of the data in the signature; by default ``name``.
        split: Name of the part that is judged, for the signature.
        show_progress_bar: Whether to show one while encoding.
        truncate_dim: Cut embeddings to this many dimensions; the model's own setting by default.
        write_csv: Whether to append ``{name}_results.csv`` under the ``output_path`` of a call.
    Returns:
        From a call ``{name}_{pair}_precision``, ``_recall``, ``_f1`` (fractions in [0, 1]), ``_threshold``,
        ``_n_mined``, ``_n_gold``, ``_n_correct``, and without a pair the macro averages ``{name}_precision``,
        ``_recall`` and ``_f1``, the primary metric.
    Raises:
        ValueError: On corpora without gold, indices out of range, repeated gold pairs (all faults at once), without a
            threshold or ``train``, or as :func:`~st_xling.mining.mine`, naming the pair.
    Source:
        Zweigenbaum et al. 2018, "Overview of the Third BUCC Shared Task"; Artetxe and Schwenk 2019, "Margin-based
        Parallel Corpus Mining with Multilingual Sentence Embeddings".
    Example:
        >>> german, english = ["Hallo!", "Danke.", "Es regnet."], ["Thanks.", "Hello!", "Why?"]
        >>> evaluator = BuccEvaluator({"de-en": (german, english, [(0, 1), (1, 0)])}, threshold=1.06, k=2)
        >>> evaluator.primary_metric
        'bucc_f1'
    """

    def __init__(
        self,
        corpora: Corpora,
        *,
        train: Corpora | None = None,
        train_split: str = "train",
        threshold: float | Mapping[str, float] | str | None = None,
        k: int = 4,
        margin: str = "ratio",
        retrieval: str = "max",
        batch_size: int = 64,
        name: str = "bucc",
        data_name: str | None = None,
        split: str = "test",
        show_progress_bar: bool = False,
        truncate_dim: int | None = None,
        write_csv: bool = True,
    ) -> None:
        super().__init__(
            name=name,
            data_name=data_name,
            default_name="bucc",
            primary="f1",
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            truncate_dim=truncate_dim,
            write_csv=write_csv,
        )
        self.corpora = indexed_corpora(corpora, "corpora")
        self.train = None if train is None else indexed_corpora(train, "train", like=self.corpora)
        self.threshold = _one_a_pair(threshold, list(self.corpora)) if isinstance(threshold, Mapping) else threshold
        if (train is None) == (threshold is None):
            raise ValueError(
                f"expected either train corpora or a threshold: got {'neither' if train is None else 'both'}; "
                "threshold='tune' takes the best one on the gold that is then judged by."
            )
        self.train_split = train_split
        self.k, self.margin, self.retrieval = k, margin, retrieval
        self._check_options()
        self.split = split
        #: Of the last call: language pair → how its candidate pairs scored.
        self.histograms: dict[str, ScoreHistogram] = {}

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        pairs: Iterable[str],
        *,
        split: str = "test",
        train_split: str | None = "training",
        **options: Any,
    ) -> BuccEvaluator:
        """Evaluator over files in the BUCC layout, see :func:`~st_xling.data.read_bucc`.

        Args:
            folder: Holds the files, or a folder for each pair; ``?size=5000&seed=0`` behind it: a seeded sample, see
                :func:`~st_xling.data.bucc.sample_bucc`.
            pairs: Language pairs as in the file names.
            split: Judged.
            train_split: Gives the thresholds; unused when ``threshold`` is among the options.
            options: Passed to the constructor.
        Raises:
            ValueError: Both splits of a pair are the same text; as :func:`~st_xling.data.read_bucc`.
        """
        from st_xling.data.bucc import read_bucc_spec

        wanted = list(pairs)
        test = {pair: read_bucc_spec(str(folder), pair, split) for pair in wanted}
        if train_split is not None and options.get("threshold") is None:
            options["train"] = {pair: read_bucc_spec(str(folder), pair, train_split) for pair in wanted}
            if same := [pair for pair in wanted if options["train"][pair] == test[pair]]:
                raise ValueError(
                    f"thresholds must come from text that does not judge them: of {', '.join(same)}, split {split!r} "
                    f"and train split {train_split!r} are the same; choose another, or take threshold='tune'."
                )
            if train_split != "training":
                options["train_split"] = train_split
        return cls(test, split=split, **options)

    @classmethod
    def from_phrasebook(
        cls,
        spec: str = "phrasebook",
        pairs: Iterable[str] | None = None,
        *,
        split: str = "test",
        train_split: str = "dev",
        **options: Any,
    ) -> BuccEvaluator:
        """Evaluator over generated text, see :func:`~st_xling.evaluation.bucc_phrases.mining_sets`.

        Args:
            spec: ``phrasebook``, perhaps with ``:de,fr`` and ``?size=600&gold=100&seed=0``.
            pairs: Language pairs such as ``"de-en"``; by default each language of the spec with English.
            split: Judged.
            train_split: Gives the thresholds; unused when ``threshold`` is among the options.
            options: Passed to the constructor.
        """
        from st_xling.evaluation.bucc_phrases import mining_sets

        given = options.get("threshold") is not None
        sets = mining_sets(spec, pairs, split=split, train_split=None if given else train_split)
        return cls(sets.test, train=sets.train, train_split=train_split, split=split, data_name=sets.name, **options)

    def _check_options(self) -> None:
        # What cannot be should not wait for the encoder.
        if isinstance(self.threshold, str) and self.threshold != "tune":
            raise ValueError(f"threshold must be a number, one a pair, or 'tune': got {self.threshold!r}.")
        mine(np.eye(2), np.eye(2), k=1, margin=self.margin, retrieval=self.retrieval)
        for part in (self.corpora, self.train or {}):
            for pair, corpus in part.items():
                if not 1 <= self.k <= min(len(corpus.source), len(corpus.target)):
                    raise ValueError(
                        f"k must lie between 1 and the number of sentences of either side: got k={self.k} for "
                        f"{len(corpus.source)} and {len(corpus.target)} sentences of {pair}; 4 is the usual choice."
                    )

    @property
    def threshold_source(self) -> str:
        """``"train"``, or what else the training part is called, ``"given"`` or ``"tuned on this gold"``."""
        if self.train is not None:
            return self.train_split
        return "tuned on this gold" if isinstance(self.threshold, str) else "given"

    @property
    def signature(self) -> str:
        """What a figure depends on besides the model; the eight hex digits identify all texts and gold pairs."""
        content = [[pair, *corpus] for part in (self.corpora, self.train or {}) for pair, corpus in part.items()]
        return self.sign(
            "bucc",
            f"pairs:{','.join(self.corpora)}",
            f"margin:{self.margin}",
            f"k:{self.k}",
            f"retrieval:{self.retrieval}",
            f"threshold:{self.threshold_source}",
            f"split:{self.split}",
            "duplicates:kept",
            data=f"{self.data_name}@{sha8(content)}",
        )

    def columns(self) -> tuple[list[list[str]], list[str | None]]:
        """Both corpora of each language pair that is judged."""
        return (
            [side for corpus in self.corpora.values() for side in (corpus.source, corpus.target)],
            [language for pair in self.corpora for language in pair_languages(pair)],
        )

    def figures(self, model: SentenceTransformer) -> Figures:
        """Encode, mine, choose thresholds and judge."""
        scores = self.scores(model)
        metrics: dict[str, float] = {
            f"{pair}_{figure}": getattr(judged, figure) for pair, judged in scores.items() for figure in BUCC_METRICS
        }
        for figure in ("precision", "recall", "f1"):
            metrics[figure] = sum(getattr(judged, figure) for judged in scores.values()) / len(scores)
        rows = [[pair, *(getattr(judged, figure) for figure in BUCC_METRICS)] for pair, judged in scores.items()]
        return Figures(metrics, ("pair", *BUCC_METRICS), rows)

    def scores(self, model: SentenceTransformer) -> dict[str, MiningScores]:
        """The figures of each language pair, without storing them anywhere."""
        judged = [self._mine(model, corpus, pair, pair) for pair, corpus in self.corpora.items()]
        found = {pair: ScoreHistogram.of(row) for pair, row in zip(self.corpora, judged)}
        self.histograms = {pair: histogram for pair, histogram in found.items() if histogram is not None}
        train = None
        if self.train is not None:
            train = [self._mine(model, corpus, pair, f"{pair} (train)") for pair, corpus in self.train.items()]
        thresholds, source = row_thresholds(judged, threshold=self.threshold, train=train)
        return {pair: row.at(limit, source) for pair, row, limit in zip(self.corpora, judged, thresholds)}

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model card."""
        return {"pairs": list(self.corpora), **super().get_config_dict()}

    def _mine(self, model: SentenceTransformer, corpus: IndexedCorpus, pair: str, name: str) -> JudgedPairs:
        source, target = self.encode_columns(model, [corpus.source, corpus.target], pair_languages(pair))
        try:
            pairs = mine(source, target, k=self.k, margin=self.margin, retrieval=self.retrieval)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        return JudgedPairs(pairs.scores, correct_pairs(pairs, corpus.gold), len(corpus.gold))


def _one_a_pair(thresholds: Mapping[str, float], pairs: list[str]) -> list[float]:
    if set(thresholds) != set(pairs):
        raise ValueError(f"threshold must name each of {', '.join(pairs)}: got {', '.join(map(str, thresholds))}.")
    return [thresholds[pair] for pair in pairs]
