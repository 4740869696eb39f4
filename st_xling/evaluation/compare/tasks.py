"""The tasks of a comparison: what each records of every item, and the measures computed from that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from st_xling.data import hard_translations
from st_xling.data.pairs import Sample
from st_xling.evaluation.bucc import IndexedCorpus
from st_xling.evaluation.compare.data import ComparisonData, english_free
from st_xling.evaluation.compare.statistics import Cell, Measure
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

Cells = dict[str, Cell]

#: Label of what has no languages.
ALL = "all"

#: Neighbors of margins; pairs of each language whose English gets near-translations.
K, HARD_PAIRS = 4, 300

#: Rounds of the speed measurement, and texts of each.
ROUNDS, ROUND_TEXTS = 8, 48


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
        """Embed each column. *Shape:* ``(texts, dim)`` each"""
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
        columns = [column for both in self.data.pairs.values() for column in both]
        vectors = self.embed(columns, [code for language in self.data.pairs for code in (language, "eng")])
        return dict(zip(self.data.pairs, zip(vectors[::2], vectors[1::2])))


class Task(NamedTuple):
    """A task.

    Attributes:
        title: Title in tables.
        what: What it measures, in a sentence.
        needs: The part of the data, ``""`` for none.
        measures: The first sums the task up; others explain it.
        run: Returns the results of a session by language; ``None`` for :func:`measure_speed`, which needs all models.
        parts: Parts of the signature.
    """

    title: str
    what: str
    needs: str
    measures: tuple[Measure, ...]
    run: Callable[[Session], Cells] | None
    parts: Mapping[str, Any] = {}


def _both_ways(session: Session, *, judge: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Cells:
    cells: Cells = {}
    for code, (source, target) in session.pairs.items():
        cells[code] = Cell(sha8(session.data.pairs[code]), {"to": judge(source, target), "from": judge(target, source)})
    return cells


def _is_nearest(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    return translation_ranks(queries, corpus) == 0


def _is_xsim_error(queries: np.ndarray, corpus: np.ndarray) -> np.ndarray:
    return best_targets(queries, corpus, k=min(K, len(queries))) != np.arange(len(queries))


def _xsim_plus_plus(session: Session) -> Cells:
    rows, seed = {}, session.data.seed
    for code, (source, _) in session.data.pairs.items():
        rows[code] = np.array(Sample(min(HARD_PAIRS, len(source)), seed).places(len(source), code))
    hard = {
        code: hard_translations([session.data.pairs[code][1][row] for row in own], seed=seed, most=2)
        for code, own in rows.items()
    }
    vectors = session.embed([[each.text for each in own] for own in hard.values()], ["eng"] * len(hard))
    cells: Cells = {}
    for (code, own), negatives in zip(rows.items(), vectors):
        source, target = (side[own] for side in session.pairs[code])
        index, categories = [each.index for each in hard[code]], [each.category for each in hard[code]]
        result = xsim_plus_plus(source, target, negatives, index, categories, k=min(K, len(own)))
        cells[code] = Cell(sha8([session.data.pairs[code], own.tolist()]), {"wrong": np.array(result.winners) != ""})
    return cells


def _mining(session: Session) -> Cells:
    cells: Cells = {}
    for pair, corpora in session.data.mining.items():
        test = corpora[0]
        (mined, scored), (_, training) = (_mined(session, pair, corpus) for corpus in corpora)
        selected = mined.scores >= training.best().threshold
        rows = {
            "gold": [one for one, _ in test.gold],
            "mined": mined.source_indices[selected],
            "correct": mined.source_indices[selected & scored.is_correct],
        }
        columns = {name: np.bincount(own, minlength=len(test.source)) for name, own in rows.items()}
        label = english_free(pair)
        cells[pair if label in cells else label] = Cell(sha8(test.source), columns)
    return cells


def _mined(session: Session, pair: str, corpus: IndexedCorpus) -> tuple[MinedPairs, EvaluatedPairs]:
    source, target = session.embed([corpus.source, corpus.target], pair_languages(pair))
    mined = mine(source, target, k=min(K, len(source), len(target)))
    return mined, EvaluatedPairs(mined.scores, correct_pairs(mined, corpus.gold), len(corpus.gold))


def _pool(session: Session) -> Cells:
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
    cells: Cells = {}
    for language in dict.fromkeys(query.language for query in pool.queries):
        queries = [query for query in pool.queries if query.language == language]
        rows = []
        for query in queries:
            # A query without a hit, or with relevant passages of one language only, does not count for the bias.
            bias = language_bias([query], rankings, pool.languages)
            own, expected, counted = (bias.own_share, bias.expected, 1 - bias.n_not_found) if bias else (0.0, 0.0, 0)
            rows.append((precisions[query.id], own - expected, own, counted))
        columns = dict(zip(("precision", "excess", "own", "counted"), zip(*rows)))
        cells[canonical_language(language)] = Cell(sha8([query.id.partition(":")[2] for query in queries]), columns)
    return cells


def measure_speed(
    models: Mapping[str, SentenceTransformer], data: ComparisonData, *, batch_size: int | None = None
) -> dict[str, Cells]:
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
    rows = np.random.default_rng(data.seed).permutation(len(texts))[: ROUNDS * ROUND_TEXTS]
    rounds = [[texts[row] for row in part] for part in np.array_split(rows, ROUNDS) if len(part)]
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for model in models.values():
        encode(model, rounds[0], batch_size=batch_size)  # what is set up once is not measured
    names = list(models)
    for number, part in enumerate(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = time.perf_counter()
            encode(models[name], part, batch_size=batch_size)
            seconds[name].append(time.perf_counter() - start)
    counts = [len(part) for part in rounds]
    return {name: {ALL: Cell(sha8(rounds), {"texts": counts, "seconds": own})} for name, own in seconds.items()}


def _size(session: Session) -> Cells:
    dimensions = encode(session.model, ["a"]).shape[1]
    weights = sum(parameter.numel() for parameter in session.model.parameters()) / 1e6
    return {ALL: Cell("0", {"weights": [weights], "dimensions": [dimensions], "bytes": [4 * dimensions]})}


_BOTH = partial(Measure, top=("to", "from"), bottom=("1", "1"), tested=True)
_LOWER = partial(Measure, higher=False)

#: Name → task, in the order of the page.
TASKS: dict[str, Task] = {
    "tatoeba": Task(
        "Tatoeba",
        "Is the nearest sentence of the other language, by cosine, the translation? Both ways.",
        "pairs",
        (_BOTH("accuracy"), Measure("to English", ("to",)), Measure("from English", ("from",))),
        partial(_both_ways, judge=_is_nearest),
        {"direction": "both", "ties": "index"},
    ),
    "xsim": Task(
        "xsim",
        "How often is the best match by ratio margin not the translation, both ways?",
        "pairs",
        (
            _BOTH("error", higher=False, decimals=2),
            _LOWER("to English", ("to",), decimals=2),
            _LOWER("from English", ("from",), decimals=2),
        ),
        partial(_both_ways, judge=_is_xsim_error),
        {"direction": "both", "margin": "ratio", "k": K},
    ),
    "xsim++": Task(
        "xsim++",
        "How often is a wrong English sentence the best match, where some differ from the translation in one place?",
        "pairs",
        (_LOWER("error", ("wrong",), tested=True),),
        _xsim_plus_plus,
        {"margin": "ratio", "k": K, "items": HARD_PAIRS},
    ),
    "mining": Task(
        "Mining",
        "Are the pairs that are mined from two corpora translations? The threshold comes from the training split.",
        "mining",
        (
            Measure("F1", ("correct", "correct"), ("mined", "gold"), tested=True),
            Measure("precision", ("correct",), ("mined",)),
            Measure("recall", ("correct",), ("gold",)),
        ),
        _mining,
        {"margin": "ratio", "k": K, "retrieval": "max", "threshold": "training", "split": "test"},
    ),
    "pool": Task(
        "Mixed pool",
        "Are passages that answer a question found in any language, when all languages are searched at once?",
        "pool",
        (
            Measure("mAP", ("precision",), tested=True),
            _LOWER("language bias", ("excess",), ("counted",), tested=True),
            Measure("hits in the question's language", ("own",), ("counted",), higher=False),
        ),
        _pool,
        {"pool": "mixed", "measures": "MAP", "depth": 100},
    ),
    "speed": Task(
        "Speed",
        "Sentences encoded per second, on this machine, in this run: all models by turns.",
        "",
        (Measure("sentences per second", ("texts",), ("seconds",), unit="", decimals=0),),
        None,
    ),
    "size": Task(
        "Size",
        "Number of parameters, and size of a vector as float32.",
        "",
        (
            _LOWER("parameters, millions", ("weights",), unit="", interval=False),
            _LOWER("dimensions", ("dimensions",), unit="", decimals=0, interval=False),
            _LOWER("bytes per vector", ("bytes",), unit="", decimals=0, interval=False),
        ),
        _size,
    ),
}
