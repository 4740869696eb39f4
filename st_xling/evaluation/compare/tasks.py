"""The tasks of a comparison: what each records of every item, and the measures computed from that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from st_xling.data import hard_translations
from st_xling.data.pairs import Sample
from st_xling.evaluation.bucc import IndexedCorpus
from st_xling.evaluation.compare.data import ComparisonData, english_free
from st_xling.evaluation.compare.statistics import ItemResults, Measure
from st_xling.evaluation.measures import EvaluatedPairs
from st_xling.evaluation.retrieval import RetrievalEvaluator, language_bias
from st_xling.evaluation.xsim import xsim_plus_plus
from st_xling.mining import mine
from st_xling.mining.mined_pairs import MinedPairs, best_targets
from st_xling.mining.thresholds import correct_pairs
from st_xling.models.encoding import encode
from st_xling.models.normalization import encode_by_language
from st_xling.utils.cosines import translation_ranks
from st_xling.utils.languages import canonical_language, pair_languages
from st_xling.utils.signature import sha8

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.data.hard_translation_sets import HardTranslation

#: Results of a model in a task: language, or another label → results of its items.
LabelResults: TypeAlias = dict[str, ItemResults]

#: Label of the results of a task without languages.
ALL = "all"

#: Measure of the task "retrieval".
MRR = "MRR@100"

#: Neighbors that make up a sentence's neighborhood, for margins.
K = 4
#: Maximum number of pairs of each language whose English gets near-translations.
HARD_PAIRS = 300

#: Number of rounds of the speed measurement.
SPEED_ROUNDS = 8
#: Number of texts of each round.
TEXTS_PER_ROUND = 48


@dataclass
class Session:
    """One model over the data; text that several tasks need is embedded once.

    Attributes:
        model: The encoder.
        data: The texts.
        batch_size: Maximum batch size; chosen for the device by default.
        show_progress_bar: Whether to show a progress bar.
    """

    model: SentenceTransformer
    data: ComparisonData
    batch_size: int | None = None
    show_progress_bar: bool = False

    def embed(self, columns: Sequence[Sequence[str]], languages: Sequence[str | None]) -> list[np.ndarray]:
        """Compute the embeddings of each column. *Shape:* ``(texts, dim)`` each"""
        return encode_by_language(
            self.model,
            columns,
            languages,
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress_bar,
        )

    @cached_property
    def pairs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Language → embeddings of its texts, and of their English."""
        columns: list[list[str]] = []
        languages: list[str] = []
        for code, (texts, english) in self.data.pairs.items():
            columns += [texts, english]
            languages += [code, "eng"]
        vectors = self.embed(columns, languages)
        return dict(zip(self.data.pairs, zip(vectors[::2], vectors[1::2])))


class ComparisonTask(NamedTuple):
    """A task of the comparison.

    Attributes:
        title: Title in tables.
        what: Description of the measured ability, in a sentence.
        needs: Name of the part of the data that it needs, ``""`` for none.
        measures: The first sums the task up; others explain it.
        run: Returns the results of a session by language; ``None`` for :func:`measure_speed`, which needs all models.
        parts: Parts of the signature.
    """

    title: str
    what: str
    needs: str
    measures: tuple[Measure, ...]
    run: Callable[[Session], LabelResults] | None
    parts: Mapping[str, Any] = {}


def _run_both_ways(session: Session, *, judge: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> LabelResults:
    results: LabelResults = {}
    for code, (source, target) in session.pairs.items():
        columns = {"to": judge(source, target), "from": judge(target, source)}
        results[code] = ItemResults(sha8(session.data.pairs[code]), columns)
    return results


def _is_nearest(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    return translation_ranks(queries, corpus) == 0


def _is_xsim_error(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    return best_targets(queries, corpus, k=min(K, len(queries))) != np.arange(len(queries))


def _run_xsim_plus_plus(session: Session) -> LabelResults:
    seed = session.data.seed
    # Rows of each language's drawn pairs, near-translations of their English, and the texts of these.
    rows: dict[str, np.ndarray] = {}
    hard: dict[str, list[HardTranslation]] = {}
    hard_texts: list[list[str]] = []
    for code, (texts, english) in session.data.pairs.items():
        sample = Sample(min(HARD_PAIRS, len(texts)), seed)
        rows[code] = np.array(sample.places(len(texts), code))
        hard[code] = hard_translations([english[row] for row in rows[code]], seed=seed, most=2)
        hard_texts.append([sentence.text for sentence in hard[code]])
    hard_vectors = session.embed(hard_texts, ["eng"] * len(hard_texts))

    results: LabelResults = {}
    for code, negatives in zip(rows, hard_vectors):
        source, target = session.pairs[code]
        result = xsim_plus_plus(
            source[rows[code]],
            target[rows[code]],
            negatives,
            [sentence.index for sentence in hard[code]],
            [sentence.category for sentence in hard[code]],
            k=min(K, len(rows[code])),
        )
        items = sha8([session.data.pairs[code], rows[code].tolist()])
        results[code] = ItemResults(items, {"wrong": np.array(result.winners) != ""})
    return results


def _run_mining(session: Session) -> LabelResults:
    results: LabelResults = {}
    for pair, corpora in session.data.mining.items():
        mined, evaluated = _mine_corpus(session, pair, corpora.test)
        _, evaluated_train = _mine_corpus(session, pair, corpora.train)
        selected = mined.scores >= evaluated_train.best().threshold
        # An item is a source sentence: how often is it in a gold pair, a mined one, a mined one that is correct?
        rows = {
            "gold": [source for source, _ in corpora.test.gold],
            "mined": mined.source_indices[selected],
            "correct": mined.source_indices[selected & evaluated.is_correct],
        }
        n_items = len(corpora.test.source)
        columns = {name: np.bincount(source_rows, minlength=n_items) for name, source_rows in rows.items()}
        label = english_free(pair)
        if label in results:
            label = pair
        results[label] = ItemResults(sha8(corpora.test.source), columns)
    return results


def _mine_corpus(session: Session, pair: str, corpus: IndexedCorpus) -> tuple[MinedPairs, EvaluatedPairs]:
    source, target = session.embed([corpus.source, corpus.target], pair_languages(pair))
    mined = mine(source, target, k=min(K, len(source), len(target)))
    return mined, EvaluatedPairs(mined.scores, correct_pairs(mined, corpus.gold), len(corpus.gold))


def _run_mixed_pool(session: Session) -> LabelResults:
    evaluator = RetrievalEvaluator(
        session.data.pool,
        pool="mixed",
        measures=("MAP",),
        batch_size=session.batch_size,
        show_progress_bar=session.show_progress_bar,
    )
    (pool,) = evaluator.pools
    rankings = evaluator.report(session.model).rankings[pool.name]
    precisions = evaluator.per_query(pool.queries, rankings)["MAP"]
    results: LabelResults = {}
    for language in dict.fromkeys(query.language for query in pool.queries):
        queries = [query for query in pool.queries if query.language == language]
        columns: dict[str, list[float]] = {"precision": [], "excess": [], "own": [], "counted": []}
        for query in queries:
            own_share = expected = 0.0
            counted = 0
            # A query without a hit, or with relevant passages of one language only, does not count for the bias.
            bias = language_bias([query], rankings, pool.languages)
            if bias is not None:
                own_share = bias.own_share
                expected = bias.expected
                counted = 1 - bias.n_not_found
            columns["precision"].append(precisions[query.id])
            columns["excess"].append(own_share - expected)
            columns["own"].append(own_share)
            columns["counted"].append(counted)
        ids = [query.id.partition(":")[2] for query in queries]
        results[canonical_language(language)] = ItemResults(sha8(ids), columns)
    return results


def _run_retrieval(session: Session) -> LabelResults:
    evaluator = RetrievalEvaluator(
        session.data.sets,
        measures=(MRR,),
        batch_size=session.batch_size,
        show_progress_bar=session.show_progress_bar,
    )
    rankings = evaluator.report(session.model).rankings
    results: LabelResults = {}
    for retrieval_set, pool in zip(evaluator.sets, evaluator.pools):
        reciprocal_ranks = evaluator.per_query(pool.queries, rankings[pool.name])[MRR]
        passage_language = canonical_language(retrieval_set.language)
        for language in dict.fromkeys(query.language for query in pool.queries):
            ids = [query.id for query in pool.queries if query.language == language]
            columns = {"reciprocal": [reciprocal_ranks[query_id] for query_id in ids]}
            code = canonical_language(language)
            label = passage_language
            if code != passage_language:  # questions in another language than the passages
                label = f"{code}-{passage_language}"
            results[label] = ItemResults(sha8([query_id.partition(":")[2] for query_id in ids]), columns)
    return results


def measure_speed(
    models: Mapping[str, SentenceTransformer], data: ComparisonData, *, batch_size: int | None = None
) -> dict[str, LabelResults]:
    """Measure how fast each model encodes, in rounds.

    Every model encodes the texts of a round before the next round begins, and each round starts with another model, so
    that a machine that becomes slower or faster meanwhile does so for all of them.

    Args:
        models: Name → model, all of them loaded.
        data: Its texts are drawn from.
        batch_size: Maximum batch size; chosen for the device by default.

    Returns:
        Name → the texts and seconds of each round.
    """
    texts = list(data.texts())
    rows = np.random.default_rng(data.seed).permutation(len(texts))[: SPEED_ROUNDS * TEXTS_PER_ROUND]
    rounds: list[list[str]] = []
    for rows_of_round in np.array_split(rows, SPEED_ROUNDS):
        if len(rows_of_round):
            rounds.append([texts[row] for row in rows_of_round])
    for model in models.values():
        encode(model, rounds[0], batch_size=batch_size)  # initialization on first use is not measured
    names = list(models)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number, texts_of_round in enumerate(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            encode(models[name], texts_of_round, batch_size=batch_size)
            seconds[name].append(time.perf_counter() - start)

    counts = [len(texts_of_round) for texts_of_round in rounds]
    items = sha8(rounds)
    results: dict[str, LabelResults] = {}
    for name in names:
        results[name] = {ALL: ItemResults(items, {"texts": counts, "seconds": seconds[name]})}
    return results


def _measure_size(session: Session) -> LabelResults:
    dimensions = encode(session.model, ["a"]).shape[1]
    weights = sum(parameter.numel() for parameter in session.model.parameters()) / 1e6
    columns = {"weights": [weights], "dimensions": [dimensions], "bytes": [4 * dimensions]}
    return {ALL: ItemResults("0", columns)}


_BOTH = partial(Measure, top=("to", "from"), bottom=("1", "1"), tested=True)
_LOWER = partial(Measure, higher=False)

#: Name → task, in the order of the page.
COMPARISON_TASKS: dict[str, ComparisonTask] = {
    "tatoeba": ComparisonTask(
        "Tatoeba",
        "Is the nearest sentence of the other language, by cosine, the translation? Both ways.",
        "pairs",
        (_BOTH("accuracy"), Measure("to English", ("to",)), Measure("from English", ("from",))),
        partial(_run_both_ways, judge=_is_nearest),
        {"direction": "both", "ties": "index"},
    ),
    "xsim": ComparisonTask(
        "xsim",
        "How often is the best match by ratio margin not the translation, both ways?",
        "pairs",
        (
            _BOTH("error", higher=False, decimals=2),
            _LOWER("to English", ("to",), decimals=2),
            _LOWER("from English", ("from",), decimals=2),
        ),
        partial(_run_both_ways, judge=_is_xsim_error),
        {"direction": "both", "margin": "ratio", "k": K},
    ),
    "xsim++": ComparisonTask(
        "xsim++",
        "How often is a wrong English sentence the best match, where some differ from the translation in one place?",
        "pairs",
        (_LOWER("error", ("wrong",), tested=True),),
        _run_xsim_plus_plus,
        {"margin": "ratio", "k": K, "items": HARD_PAIRS},
    ),
    "mining": ComparisonTask(
        "Mining",
        "Are the pairs that are mined from two corpora translations? The threshold comes from the training split.",
        "mining",
        (
            Measure("F1", ("correct", "correct"), ("mined", "gold"), tested=True),
            Measure("precision", ("correct",), ("mined",)),
            Measure("recall", ("correct",), ("gold",)),
        ),
        _run_mining,
        {"margin": "ratio", "k": K, "retrieval": "max", "threshold": "training", "split": "test"},
    ),
    "pool": ComparisonTask(
        "Mixed pool",
        "Are passages that answer a question found in any language, when all languages are searched at once?",
        "pool",
        (
            Measure("mAP", ("precision",), tested=True),
            _LOWER("language bias", ("excess",), ("counted",), tested=True),
            Measure("hits in the question's language", ("own",), ("counted",), higher=False),
        ),
        _run_mixed_pool,
        {"pool": "mixed", "measures": "MAP", "depth": 100},
    ),
    "retrieval": ComparisonTask(
        "Retrieval",
        "How far up is the first passage that answers a question, when its set is searched alone?",
        "sets",
        (Measure(MRR, ("reciprocal",), tested=True),),
        _run_retrieval,
        {"pool": "separate", "measures": "MRR", "depth": 100},
    ),
    "speed": ComparisonTask(
        "Speed",
        "Sentences encoded per second, on this machine, in this run: all models by turns.",
        "",
        (Measure("sentences per second", ("texts",), ("seconds",), unit="", decimals=0),),
        None,
    ),
    "size": ComparisonTask(
        "Size",
        "Number of parameters, and size of a vector as float32.",
        "",
        (
            _LOWER("parameters, millions", ("weights",), unit="", interval=False),
            _LOWER("dimensions", ("dimensions",), unit="", decimals=0, interval=False),
            _LOWER("bytes per vector", ("bytes",), unit="", decimals=0, interval=False),
        ),
        _measure_size,
    ),
}
