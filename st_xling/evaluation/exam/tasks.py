"""The tasks of an exam: what each notes of every item, and the measures made of that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from st_xling.data import PERTURBATIONS, hard_translations, leaks, load_data_specs, perturb
from st_xling.data.sample import Sample
from st_xling.data.test_sets import BuccCorpus
from st_xling.evaluation.base import SignedEvaluator
from st_xling.evaluation.bucc import IndexedCorpus, indexed_corpora
from st_xling.evaluation.exam.compare import Cell, Measure
from st_xling.evaluation.exam.data import DISTURBED, HARD_PAIRS, ExamData, english_free, work
from st_xling.evaluation.mining_scores import EvaluatedPairs
from st_xling.evaluation.retrieval import RetrievalEvaluator, language_bias
from st_xling.evaluation.tatoeba_data import english_columns
from st_xling.evaluation.xsim import MISALIGNED, xsim_plus_plus
from st_xling.mining import find_neighbors, mine
from st_xling.mining.mine import MinedPairs
from st_xling.mining.thresholds import correct_pairs
from st_xling.mining.xsim import best_targets
from st_xling.models.encode import encode
from st_xling.utils.io import read_json_object
from st_xling.utils.languages import canonical_language, pair_languages
from st_xling.utils.nearest import nearest, translation_ranks
from st_xling.utils.signature import sha8

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_xling.data.leak import Texts

Cells = dict[str, Cell]

#: Label of what has no languages.
ALL = "all"

#: Before the name of a column that is one kind of many, such as a category of errors; and of the items it could have.
KIND, OF = "kind: ", "of: "

K, HUB_K, RECALL, DEPTH = 4, 10, 0.5, 100

ROUNDS, ROUND_TEXTS = 5, 64


class NotExaminedError(ValueError):
    """A model cannot be examined by a task, and why."""


@dataclass
class Session:
    """One model over the data; text that several tasks need is embedded once.

    Attributes:
        model: The encoder.
        data: The texts.
        folder: Of the model, or its id on the Hub.
        name: Of the model, for messages.
        batch_size: Most texts of a batch.
        show_progress_bar: Whether to show one.
        notes: What a task says besides.
    """

    model: SentenceTransformer
    data: ExamData
    folder: str = ""
    name: str = ""
    batch_size: int | None = None
    show_progress_bar: bool = False
    notes: list[str] = field(default_factory=list)

    @cached_property
    def encoder(self) -> SignedEvaluator:
        return SignedEvaluator("", name="exam", batch_size=self.batch_size, show_progress_bar=self.show_progress_bar)

    def embed(self, columns: Sequence[Sequence[str]], languages: Sequence[str | None]) -> list[np.ndarray]:
        """Embeddings of each column. *Shape:* ``(texts, dim)`` each"""
        return self.encoder.encode_columns(self.model, columns, languages)

    @cached_property
    def pairs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Language → embeddings of its texts, and of their English."""
        vectors = self.embed(*english_columns(dict(self.data.pairs)))
        return {code: (vectors[2 * place], vectors[2 * place + 1]) for place, code in enumerate(self.data.pairs)}


class Task(NamedTuple):
    """A task.

    Attributes:
        title: For tables.
        what: It measures, in a sentence.
        needs: The part of the data, ``""`` for none.
        measures: The first is the task's own; others explain it.
        run: From a session to what was noted, by language.
        parts: Of the signature.
        depends: From a model's folder to what else its result depends on.
    """

    title: str
    what: str
    needs: str
    measures: tuple[Measure, ...]
    run: Callable[[Session], Cells]
    parts: Mapping[str, Any] = {}
    depends: Callable[[str], str] | None = None


def _tatoeba(session: Session) -> Cells:
    return {
        code: Cell(
            sha8(session.data.pairs[code]),
            {"to": translation_ranks(source, target) == 0, "from": translation_ranks(target, source) == 0},
        )
        for code, (source, target) in session.pairs.items()
    }


def _xsim(session: Session) -> Cells:
    cells: Cells = {}
    for code, (source, target) in session.pairs.items():
        rows, k = np.arange(len(source)), min(K, len(source))
        to, back = (best_targets(*both, k=k) != rows for both in ((source, target), (target, source)))
        cells[code] = Cell(sha8(session.data.pairs[code]), {"to": to, "from": back})
    return cells


def _xsim_plus_plus(session: Session) -> Cells:
    rows = {code: _some(session, code, HARD_PAIRS) for code in session.data.pairs}
    hard = {
        code: hard_translations([session.data.pairs[code][1][row] for row in own], seed=session.data.seed, most=2)
        for code, own in rows.items()
    }
    vectors = session.embed([[each.text for each in own] for own in hard.values()], ["eng"] * len(hard))
    cells: Cells = {}
    for (code, own), negatives in zip(rows.items(), vectors):
        source, target = (side[own] for side in session.pairs[code])
        index, categories = [each.index for each in hard[code]], [each.category for each in hard[code]]
        k = min(K, len(own))
        result = xsim_plus_plus(source, target, negatives, index, categories, k=k)
        columns: dict[str, Any] = {"wrong": result.is_error}
        for category in sorted({*categories}):
            columns[KIND + category] = [winner == category for winner in result.winners]
            with_one = {row for row, kind in zip(index, categories) if kind == category}
            columns[OF + category] = [row in with_one for row in range(len(own))]
        columns[KIND + MISALIGNED] = [winner == MISALIGNED for winner in result.winners]
        cells[code] = Cell(sha8([session.data.pairs[code], own.tolist()]), columns)
    return cells


def _robustness(session: Session) -> Cells:
    """Of sentences that are changed: one that a kind leaves as it is says nothing of it."""
    rows = {code: _some(session, code, DISTURBED) for code in session.data.pairs}
    changed: dict[tuple[str, str], dict[int, str]] = {}
    for code, own in rows.items():
        texts = [session.data.pairs[code][0][row] for row in own]
        for kind in PERTURBATIONS:
            try:
                others = perturb(texts, kind, seed=session.data.seed, language=code)
            except ValueError:  # a script that this kind is not for
                continue
            if differing := {row: other for row, (text, other) in enumerate(zip(texts, others)) if other != text}:
                changed[code, kind] = differing
    vectors = session.embed([list(each.values()) for each in changed.values()], [code for code, _ in changed])
    disturbed = dict(zip(changed, vectors))
    cells: Cells = {}
    for code, own in rows.items():
        source, target = session.pairs[code]
        clean = np.equal(nearest(source[own], target), own)
        columns: dict[str, Any] = {name: np.zeros(len(own)) for name in ("disturbed", "hits", "found", "lost")}
        for kind in PERTURBATIONS:
            if (code, kind) in changed:
                places = list(changed[code, kind])
                hits = np.equal(nearest(disturbed[code, kind], target), own[places])
                columns[KIND + kind], columns[OF + kind] = np.zeros((2, len(own)))
                columns[KIND + kind][places], columns[OF + kind][places] = hits, 1
                columns["disturbed"][places] += 1
                columns["hits"][places] += hits
                columns["found"][places] += clean[places]
                columns["lost"][places] += clean[places] & ~hits
        cells[code] = Cell(sha8([session.data.pairs[code], own.tolist()]), columns)
    return cells


def _some(session: Session, code: str, most: int) -> np.ndarray:
    """Rows of a seeded sample of a language's pairs."""
    total = len(session.data.pairs[code][0])
    return np.array(Sample(min(most, total), session.data.seed).places(total, code))


def _mining(session: Session) -> Cells:
    cells: Cells = {}
    for pair, corpora in session.data.mining.items():
        (test, mined, scored), (_, _, training) = (_mined(session, pair, corpus) for corpus in corpora)
        reached = [point for point in scored.curve() if point.recall >= RECALL]
        limits = {"": training.best().threshold, f" at {RECALL}": -np.inf}
        if reached:
            limits[f" at {RECALL}"] = max(reached, key=lambda point: point.precision).threshold
        columns = {"gold": np.bincount([one for one, _ in test.gold], minlength=len(test.source))}
        for name, limit in limits.items():
            selected = mined.scores >= limit
            # A recall that is not reached has no precision: then nothing counts as right.
            right = selected & scored.is_correct if not name or reached else np.zeros_like(selected)
            columns[f"mined{name}"] = np.bincount(mined.source_indices[selected], minlength=len(test.source))
            columns[f"correct{name}"] = np.bincount(mined.source_indices[right], minlength=len(test.source))
        label = english_free(pair)
        cells[pair if label in cells else label] = Cell(sha8(test.source), columns)
    return cells


def _mined(session: Session, pair: str, corpus: BuccCorpus) -> tuple[IndexedCorpus, MinedPairs, EvaluatedPairs]:
    indexed = indexed_corpora({pair: corpus}, f"mining {pair}")[pair]
    source, target = session.embed([indexed.source, indexed.target], pair_languages(pair))
    mined = mine(source, target, k=min(K, len(source), len(target)))
    return indexed, mined, EvaluatedPairs(mined.scores, correct_pairs(mined, indexed.gold), len(indexed.gold))


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
    precisions = evaluator.measures.per_query(pool.queries, rankings)["MAP"]
    cells: Cells = {}
    for language in dict.fromkeys(query.language for query in pool.queries):
        queries = [query for query in pool.queries if query.language == language]
        rows = []
        for query in queries:
            # Without a hit, or relevant passages of one language alone, a query says nothing of the bias.
            bias = language_bias([query], rankings, pool.languages)
            counts = bias is not None and not bias.n_not_found
            rows.append((bias.own_share - bias.expected, bias.own_share, 1.0) if bias and counts else (0.0, 0.0, 0.0))
        excess, own, counted = zip(*rows)
        cells[canonical_language(language)] = Cell(
            sha8([query.id.partition(":")[2] for query in queries]),
            {
                "precision": [precisions[query.id] for query in queries],
                "excess": excess,
                "own": own,
                "counted": counted,
            },
        )
    return cells


def _hubness(session: Session) -> Cells:
    cells: Cells = {}
    for code, (source, target) in session.pairs.items():
        forward, _ = find_neighbors(source, target, k=min(HUB_K, len(target)))
        times = np.bincount(forward.indices.ravel(), minlength=len(target))
        cells[code] = Cell(sha8(session.data.pairs[code]), {"times": times, "never": times == 0})
    return cells


def _speed(session: Session) -> Cells:
    texts = list(session.data.texts())
    rows = np.random.default_rng(session.data.seed).permutation(len(texts))[: ROUNDS * ROUND_TEXTS]
    rounds = [[texts[row] for row in part] for part in np.array_split(rows, ROUNDS) if len(part)]
    encode(session.model, rounds[0][:8], batch_size=session.batch_size)  # what is made once is not measured
    seconds = []
    for part in rounds:
        start = time.perf_counter()
        encode(session.model, part, batch_size=session.batch_size)
        seconds.append(time.perf_counter() - start)
    return {ALL: Cell(sha8(rounds), {"texts": [*map(len, rounds)], "work": [*map(work, rounds)], "seconds": seconds})}


def _size(session: Session) -> Cells:
    dimensions = encode(session.model, ["a"]).shape[1]
    weights = sum(parameter.numel() for parameter in session.model.parameters()) / 1e6
    return {ALL: Cell("0", {"weights": [weights], "dimensions": [dimensions], "bytes": [4 * dimensions]})}


def _run_record(folder: str) -> Path:
    return Path(folder) / "training" / "run.json"


def _record_sha8(folder: str) -> str:
    record = _run_record(folder)
    return sha8(record.read_text(encoding="utf-8", errors="replace")) if folder and record.is_file() else ""


def _leak(session: Session) -> Cells:
    sources = read_json_object(_run_record(session.folder)).get("sources") or () if session.folder else ()
    specs = [source["spec"] for source in sources if source["option"].lstrip("-") in ("data", "parallel")]
    if not specs:
        raise NotExaminedError("it has no record of its training data (training/run.json, as st-xling train writes it)")
    try:
        train = load_data_specs(specs)
    except (OSError, ValueError) as error:
        raise NotExaminedError(f"its training data cannot be read: {error}") from error
    evaluation: dict[str, Texts] = {f"pairs {code}": columns for code, columns in session.data.pairs.items()}
    for pair, (test, _) in session.data.mining.items():
        evaluation |= {f"mining {pair}, source": test.source, f"mining {pair}, target": test.target}
    for part in session.data.pool:
        evaluation |= {f"queries {code}, {part.language}": list(own.values()) for code, own in part.queries.items()}
    report = leaks(train, evaluation, progress=session.show_progress_bar)
    rows = [max(side.leaked for side in sides.values()) for sides in report.sets.values()]
    totals = [next(iter(sides.values())).rows for sides in report.sets.values()]
    session.notes += [f"{name}: {n:,} of {of:,}" for name, n, of in zip(report.sets, rows, totals) if n]
    return {ALL: Cell(sha8(list(report.sets)), {"leaked": rows, "rows": totals})}


_BOTH = partial(Measure, top=("to", "from"), bottom=("1", "1"), tested=True)
_LOWER = partial(Measure, higher=False)

#: Name → task, in the order of the page.
TASKS: dict[str, Task] = {
    "tatoeba": Task(
        "Tatoeba",
        "Does a sentence find its translation among all of the other language, by cosine, both ways?",
        "pairs",
        (_BOTH("accuracy"), Measure("to English", ("to",)), Measure("from English", ("from",))),
        _tatoeba,
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
        _xsim,
        {"direction": "both", "margin": "ratio", "k": K},
    ),
    "xsim++": Task(
        "xsim++",
        "How often does a sentence prefer a wrong English one, where some differ from the right one in one place?",
        "pairs",
        (_LOWER("error", ("wrong",), tested=True),),
        _xsim_plus_plus,
        {"margin": "ratio", "k": K, "items": HARD_PAIRS},
    ),
    "robustness": Task(
        "Robustness",
        "Does a sentence with typing errors, other case, numerals or script still find its English translation?",
        "pairs",
        (
            Measure("accuracy of disturbed text", ("hits",), ("disturbed",), tested=True),
            Measure("of the same as it stands", ("found",), ("disturbed",)),
            _LOWER("of those found, no longer found", ("lost",), ("found",)),
        ),
        _robustness,
        {"kinds": PERTURBATIONS, "items": DISTURBED},
    ),
    "mining": Task(
        "Mining",
        "Are the pairs that are mined from two corpora translations? The threshold comes from the training split.",
        "mining",
        (
            Measure("F1", ("correct", "correct"), ("mined", "gold"), tested=True),
            Measure("precision", ("correct",), ("mined",)),
            Measure("recall", ("correct",), ("gold",)),
            Measure(f"precision at {100 * RECALL:.0f} % recall", (f"correct at {RECALL}",), (f"mined at {RECALL}",)),
        ),
        _mining,
        {"margin": "ratio", "k": K, "retrieval": "max", "threshold": "training", "split": "test"},
    ),
    "pool": Task(
        "Mixed pool",
        "Are passages that answer a question found in whatever language they are, when all are searched at once?",
        "pool",
        (
            Measure("mAP", ("precision",), tested=True),
            _LOWER("language bias", ("excess",), ("counted",), tested=True),
            Measure("hits in the question's language", ("own",), ("counted",), higher=False),
        ),
        _pool,
        {"pool": "mixed", "measures": "MAP", "depth": DEPTH},
    ),
    "hubness": Task(
        "Hubness",
        f"How unevenly English sentences come among the {HUB_K} nearest of others: their skewness, and the share that "
        "is nobody's neighbor.",
        "pairs",
        (_LOWER("skewness", ("times",), (), unit="", decimals=2), _LOWER("nobody's neighbor", ("never",))),
        _hubness,
        {"k": HUB_K},
    ),
    "speed": Task(
        "Speed",
        "Sentences encoded in a second, on this machine, in this run.",
        "",
        (Measure("sentences a second", ("texts",), ("seconds",), unit="", decimals=0),),
        _speed,
    ),
    "size": Task(
        "Size",
        "Parameters, and what a vector takes as float32.",
        "",
        (
            _LOWER("parameters, millions", ("weights",), unit="", interval=False),
            _LOWER("dimensions", ("dimensions",), unit="", decimals=0, interval=False),
            _LOWER("bytes a vector", ("bytes",), unit="", decimals=0, interval=False),
        ),
        _size,
    ),
    "leak": Task(
        "Leak check",
        "Texts of this exam that the model's recorded training data hold, letter for letter.",
        "",
        (_LOWER("texts seen in training", ("leaked",), ("rows",), decimals=2, interval=False),),
        _leak,
        depends=_record_sha8,
    ),
}
