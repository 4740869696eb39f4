"""Bitext mining as at the BUCC shared task: which sentences of two corpora translate each other?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from st_xling.data.phrasebook import mining_phrases
from st_xling.data.spec import is_phrasebook, paired_languages, parse_spec
from st_xling.data.test_sets import BuccCorpus, find_bucc, gold_splits, read_bucc, where_to_get
from st_xling.evaluation.base import EvaluatorOptions, ModelUse, SignedEvaluator, sign_use
from st_xling.evaluation.measures import MINING_MEASURES, EvaluatedPairs, row_thresholds
from st_xling.evaluation.pictures import score_histogram
from st_xling.evaluation.results import EvaluationResult
from st_xling.mining.mined_pairs import mine
from st_xling.mining.thresholds import PublishedThreshold, canonical_pair, correct_pairs
from st_xling.utils.languages import pair_languages, split_pair
from st_xling.utils.options import Margin, Retrieval, check_by_name
from st_xling.utils.signature import sha8
from st_xling.utils.tables import Column, Row

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

#: Sentences of each corpus and how many of them have their translation in the other, unless the spec overrides it.
PHRASEBOOK = {"size": 600, "gold": 100, "seed": 0}

#: Source sentences, target sentences, and gold pairs of their indices.
CorpusTexts: TypeAlias = tuple[Sequence[str], Sequence[str], Sequence[tuple[int, int]]]
#: Language pair to corpus with gold.
CorporaByPair: TypeAlias = Mapping[str, BuccCorpus | CorpusTexts]


class IndexedCorpus(NamedTuple):
    """Two corpora, and the pairs of their indices that are translations."""

    source: list[str]
    target: list[str]
    gold: list[tuple[int, int]]


class BuccOptions(EvaluatorOptions, total=False):
    """Options of :class:`BuccEvaluator`, without what is evaluated."""

    threshold: float | str | None
    k: int
    margin: Margin
    retrieval: Retrieval


@dataclass(frozen=True)
class BuccResult(EvaluationResult):
    """The result of a :class:`BuccEvaluator`.

    Attributes:
        histograms: Language pair to what :func:`~st_xling.evaluation.pictures.score_histogram` returns for it.
        use: How the model was used.
        sentences: Language pair → source sentences, counted from 0, that are in a ``gold`` pair, a ``mined`` one and a
            ``correct`` one, and their number ``n``: what F1 is a sum over, so that sentences can be resampled.
    """

    histograms: Mapping[str, dict[str, Any]]
    use: ModelUse
    sentences: Mapping[str, dict[str, Any]]


class BuccEvaluator(SignedEvaluator):
    """Precision, recall and F1 of the pairs mined from two corpora, per language pair and averaged.

    Pairs are mined by :func:`~st_xling.mining.mine`; those that score at least a threshold are compared with the gold.
    The threshold is the best one on a ``train`` corpus, or a given one, or, only on request, the best one on the gold
    that it is then evaluated by. Distinct ids with equal sentences stay distinct: they compete by index, and only the
    id that the gold names is right.

    Args:
        corpora: Language pair to corpus with gold: a :class:`~st_xling.data.BuccCorpus`, or source sentences, target
            sentences and gold pairs of their indices.
        train: Corpora of the same language pairs for the threshold.
        train_split: Name of the split of ``train``, for the signature.
        threshold: A number, or ``"tune"``. Instead of ``train``.
        k: Neighbors that make up a sentence's neighborhood.
        margin: ``"absolute"``, ``"distance"`` or ``"ratio"``.
        retrieval: ``"forward"``, ``"backward"``, ``"intersect"`` or ``"max"``.
        split: Name of the split that is evaluated, for the signature.
        options: Options of every evaluator, such as ``batch_size``: see
            :class:`~st_xling.evaluation.base.SignedEvaluator`.

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

    task = "bucc"
    title = "Bitext Mining"

    def __init__(
        self,
        corpora: CorporaByPair,
        *,
        train: CorporaByPair | None = None,
        train_split: str = "train",
        threshold: float | str | None = None,
        k: int = 4,
        margin: Margin = "ratio",
        retrieval: Retrieval = "max",
        split: str = "test",
        **options: Unpack[EvaluatorOptions],
    ) -> None:
        super().__init__("f1", **options)
        check_by_name("corpora", corpora, "corpora={'de-en': corpus}")
        self.corpora = {pair: _index_corpus(corpus, pair) for pair, corpus in corpora.items()}
        self.train: dict[str, IndexedCorpus] | None = None
        if train is not None:
            self.train = {pair: _index_corpus(corpus, pair) for pair, corpus in train.items()}
        self.threshold = threshold
        #: ``"train"`` or another name of the training part, ``"given"`` or ``"tuned on this gold"``.
        self.threshold_source = "tuned on this gold" if isinstance(threshold, str) else "given"
        has_training_part = (self.train or {}).keys() == self.corpora.keys()
        if not corpora or (threshold is None) != has_training_part:
            raise ValueError(
                f"expected either train corpora of the same language pairs, or a threshold: got corpora of "
                f"{', '.join(corpora) or 'none'}, train of {', '.join(train or ()) or 'none'}, threshold={threshold!r}."
            )
        if train is not None:
            self.threshold_source = train_split
        self.k = k
        self.margin = margin
        self.retrieval = retrieval
        self.split = split

    @classmethod
    def from_spec(
        cls,
        spec: str | Path,
        pairs: Sequence[str] | None = None,
        *,
        split: str = "test",
        **options: Unpack[BuccOptions],
    ) -> BuccEvaluator:
        """Return an evaluator over files or generated text, of which another split gives the thresholds.

        Args:
            spec: Folder in the BUCC layout, see :func:`~st_xling.data.read_bucc`, whose split ``training`` gives the
                thresholds; or ``phrasebook``, perhaps with ``:de,fr`` and ``?size=600&gold=100&seed=0``, whose split
                ``dev`` does, see :func:`~st_xling.data.phrasebook.mining_phrases`.
            pairs: Language pairs such as ``"de-en"``; by default all with gold for the split, or each language of the
                phrasebook with English.
            split: The part that is evaluated.
            options: See :class:`BuccEvaluator`; with ``threshold`` no other split is read. The phrasebook names its
                data itself.

        Raises:
            ValueError: No pairs, languages of the phrasebook besides ``pairs``, unknown languages and splits, or
                thresholds from the text that is evaluated.
        """
        read: Callable[[str, str], BuccCorpus | CorpusTexts]
        if is_phrasebook(str(spec)):
            book = parse_spec(str(spec), {}, phrasebook=PHRASEBOOK, languages=0)
            if pairs and ":" in str(spec).partition("?")[0]:
                raise ValueError(
                    f"languages must be named once: got {spec} and the pairs {', '.join(pairs)}; leave one of them out."
                )
            wanted = pairs or [f"{code}-en" for code in paired_languages(book)]
            sizes = {**PHRASEBOOK, **book.options}
            read = partial(_make_phrases, size=sizes["size"], gold=sizes["gold"], seed=sizes["seed"])
            train_split = "dev"
            threshold_source = "dev"
            options["data_name"] = f"phrasebook-{sizes['size']}x{sizes['gold']}-seed{sizes['seed']}"
        else:
            wanted = pairs or [*find_bucc(spec, split)]
            read = partial(read_bucc, spec)
            train_split = "training"
            threshold_source = "train"
            options.setdefault("data_name", _folder_name(Path(spec)))
        if not wanted:
            raise ValueError(
                f"expected a folder of files xx-yy.{split}.xx, .yy and .gold: {spec} has none."
                f"{_name_other_splits(spec, split)}{where_to_get(Path(spec).name)}"
            )

        train: dict[str, BuccCorpus | CorpusTexts] | None = None
        if options.get("threshold") is None:
            _check_train_split(spec, train_split, split)
            train = {pair: read(pair, train_split) for pair in wanted}
        corpora = {pair: read(pair, split) for pair in wanted}
        return cls(corpora, train=train, train_split=threshold_source, split=split, **options)

    def sign(self, use: ModelUse) -> str:
        """Return the signature; its eight hex digits identify all texts and gold pairs."""
        content = [[pair, *corpus] for pair, corpus in self.corpora.items()]
        content += [[pair, *corpus] for pair, corpus in (self.train or {}).items()]
        return sign_use(
            "bucc",
            pairs=self.corpora,
            margin=self.margin,
            k=self.k,
            retrieval=self.retrieval,
            threshold=self.threshold_source,
            split=self.split,
            duplicates="kept",
            data=f"{self.data_name}@{sha8(content)}",
            use=use,
        )

    def evaluate(self, model: SentenceTransformer) -> BuccResult:
        """Evaluate a model and return metrics, rows, histograms and signature, without storing them anywhere."""
        result = super().evaluate(model)
        assert isinstance(result, BuccResult)
        return result

    def measure(self, model: SentenceTransformer) -> BuccResult:
        """Encode, mine, choose thresholds and compare with the gold."""
        mined = self.mined(model, self.corpora)
        histograms = {pair: score_histogram(pairs) for pair, pairs in mined.items() if len(pairs.scores)}
        train: list[EvaluatedPairs] | None = None
        if self.train is not None:
            mined_from_train = self.mined(model, self.train)
            train = [mined_from_train[pair] for pair in mined]
        thresholds, _ = row_thresholds(list(mined.values()), threshold=self.threshold, train=train)

        values: dict[str, dict[str, float]] = {}
        metrics: dict[str, float] = {}
        sentences: dict[str, dict[str, Any]] = {}
        for (pair, pairs), threshold in zip(mined.items(), thresholds):
            values[pair] = pairs.at(threshold)
            sentences[pair] = _sentences_of_pairs(self.corpora[pair], pairs, threshold)
            metrics |= {f"{pair}_{measure}": value for measure, value in values[pair].items()}
        means: dict[str, float] = {}
        for measure in MINING_MEASURES[:3]:
            means[measure] = sum(row[measure] for row in values.values()) / len(values)
        columns, rows = mining_rows(values, means, self.threshold_source)
        use = ModelUse.of(model, self.languages)
        return BuccResult({**metrics, **means}, columns, rows, self.sign(use), histograms, use, sentences)

    @property
    def languages(self) -> list[str | None]:
        """Languages of both sides of each pair; ``None``: not known."""
        codes: list[str | None] = []
        for pair in self.corpora:
            codes += pair_languages(pair)
        return codes

    def mined(self, model: SentenceTransformer, corpora: Mapping[str, IndexedCorpus]) -> dict[str, EvaluatedPairs]:
        """Mine the corpora of each language pair; pairs are compared with the gold, whatever their scores."""
        evaluated = {}
        for pair, corpus in corpora.items():
            source, target = self.encode_columns(model, [corpus.source, corpus.target], pair_languages(pair))
            try:
                pairs = mine(source, target, k=self.k, margin=self.margin, retrieval=self.retrieval)
            except ValueError as error:
                raise ValueError(f"{pair}: {error}") from error
            evaluated[pair] = EvaluatedPairs(
                pairs.scores, correct_pairs(pairs, corpus.gold), len(corpus.gold), pairs.source_indices
            )
        return evaluated


def _sentences_of_pairs(corpus: IndexedCorpus, pairs: EvaluatedPairs, threshold: float) -> dict[str, Any]:
    """Return the source sentences in gold pairs, mined pairs and correct ones; see :class:`BuccResult`."""
    assert pairs.source_indices is not None
    is_mined = pairs.scores >= threshold
    return {
        "n": len(corpus.source),
        "gold": sorted(source for source, _ in corpus.gold),
        "mined": sorted(pairs.source_indices[is_mined].tolist()),
        "correct": sorted(pairs.source_indices[is_mined & pairs.is_correct].tolist()),
    }


def _check_train_split(spec: str | Path, train_split: str, split: str) -> None:
    """Raise ``ValueError`` unless ``train_split`` can give a threshold for ``split``."""
    splits = [] if is_phrasebook(str(spec)) else gold_splits(spec)
    if splits and train_split not in splits:
        # XTREME publishes one split with gold, which BUCC's own is cut into.
        raise ValueError(
            f"a threshold comes from the split {train_split!r}, of which {spec} has no gold (but of "
            f"{', '.join(splits)}): pass threshold='tune' (--split {split} --threshold tune), the best on the "
            "gold that it is evaluated by, which flatters, or a number."
        )
    if split == train_split:
        raise ValueError(
            f"a threshold must come from text that is not evaluated by it: got split {split!r} for both; "
            "choose another split, or threshold='tune'."
        )


def _name_other_splits(spec: str | Path, split: str) -> str:
    """Return what to pass for a folder whose gold is of another split, as a sentence."""
    splits = [other for other in gold_splits(spec) if other != split]
    if not splits:
        return ""
    tuned = "" if "training" in splits else " --threshold tune"
    return f" It has gold of {', '.join(splits)}: pass --split {splits[0]}{tuned}."


def mining_rows(
    values: Mapping[str, Mapping[str, float]], means: Mapping[str, float], threshold_source: str
) -> tuple[list[Column], list[Row]]:
    """Return columns and rows of mined language pairs.

    Args:
        values: Language pair → measure → value.
        means: Precision, recall and F1, averaged over all pairs; counts are summed.
        threshold_source: Where the thresholds come from.
    """
    columns = [
        Column("precision", "precision"),
        Column("recall", "recall"),
        Column("F1", "f1", picture=True),
        Column("threshold", percent=False, decimals=4),
    ]
    columns += [Column(name, percent=False, decimals=0) for name in ("mined", "correct", "gold")]
    rows: list[Row] = []
    for pair, measures in values.items():
        arguments = {"threshold": measures["threshold"], "threshold_source": threshold_source}
        rows.append(Row(pair, [measures[key] for key in MINING_MEASURES], arguments=arguments))
    if len(rows) > 1:
        totals = dict(means)
        for key in MINING_MEASURES[4:]:  # counts; thresholds have neither a mean nor a sum
            totals[key] = sum(measures[key] for measures in values.values())
        rows.append(Row("all", [totals.get(key) for key in MINING_MEASURES], average=True))
    return columns, rows


def _index_corpus(corpus: BuccCorpus | CorpusTexts, name: str) -> IndexedCorpus:
    """Return the sentences of a corpus, and its gold as pairs of their indices."""
    if not isinstance(corpus, (tuple, BuccCorpus)):
        raise TypeError(
            f"{name} must be a BuccCorpus, or the tuple of two lists of sentences and the pairs of their rows: got "
            f"{type(corpus).__name__}; pass read_bucc(folder), or (source, target, gold)."
        )
    if isinstance(corpus, tuple):
        source, target, gold = corpus
        pairs = [(int(first), int(second)) for first, second in gold]
    else:
        source = corpus.source
        target = corpus.target
        source_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.source_ids)}
        target_rows = {sentence_id: row for row, sentence_id in enumerate(corpus.target_ids)}
        pairs = [(source_rows[first], target_rows[second]) for first, second in corpus.gold or ()]
    are_rows = all(0 <= first < len(source) and 0 <= second < len(target) for first, second in pairs)
    if not pairs or not are_rows or len({*pairs}) < len(pairs):
        raise ValueError(
            f"{name}: gold must be pairs of rows, counted from 0, each once and at least one: got {len(pairs)} for "
            f"{len(source)} and {len(target)} sentences."
        )
    return IndexedCorpus(list(source), list(target), pairs)


def _folder_name(path: Path) -> str:
    """Return the name of a folder of corpora: text of one's own may have the same layout as BUCC's."""
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    # The name of a folder of one language pair, such as bucc2018/de-en, does not name the data.
    return f"{folder.parent.name}/{folder.name}" if split_pair(folder.name) else folder.name


def _make_phrases(pair: str, split: str, *, size: int, gold: int, seed: int) -> CorpusTexts:
    source, _, target = pair.partition("-")
    texts = mining_phrases(source, target, split=split, size=size, gold=gold, seed=seed)
    return texts.source, texts.target, texts.gold


def publishable_thresholds(evaluator: BuccEvaluator, result: BuccResult) -> dict[str, PublishedThreshold]:
    """Return thresholds to publish with the model, and their figures on the split that was evaluated.

    A warning names pairs whose threshold must not be published: it was tuned on the gold that it was evaluated by, it
    keeps nothing, or the pair is not two language codes.

    Args:
        evaluator: The evaluator.
        result: Its result.

    Returns:
        Thresholds by pair.
    """
    published = {}
    model_options = dict(result.use.options)
    if result.use.by_language:
        # Mining that names the languages of both sides notes the same.
        model_options = {"center": "language", **model_options}
    rows: dict[str, list[Any]] = {row.label: row.values for row in result.rows}
    for pair, corpus in evaluator.corpora.items():
        precision, recall, f1, threshold = rows[pair][:4]  # in the order of MINING_MEASURES
        try:
            if evaluator.threshold == "tune" or (evaluator.train or {}).get(pair) == corpus:
                raise ValueError("it was tuned on the gold that it was evaluated by")
            canonical_pair(pair)
            published[pair] = PublishedThreshold(
                threshold=threshold,
                precision=precision,
                recall=recall,
                f1=f1,
                margin=evaluator.margin,
                k=evaluator.k,
                retrieval=evaluator.retrieval,
                signature=result.signature,
                options=model_options,
            )
        except ValueError as error:
            logger.warning("the threshold of %s is not published: %s", pair, str(error).rstrip("."))
    return published
