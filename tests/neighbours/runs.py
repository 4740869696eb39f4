"""Rankings, judgments and retrieval sets: TREC runs and qrels, folders in the layout of BEIR and MIRACL."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from st_xling.cli import main
from st_xling.data.retrieval.files import read_folder
from tests.neighbours.encoders import write_lora_encoder
from tests.neighbours.environment import Environment
from tests.neighbours.meeting import difference, meeting, not_tried

#: Passages 1 and 10 are equal: they tie for every query. The only judged passage of q3 has grade 0, and BM25 finds
#: nothing for q4.
PASSAGES = {
    "d10": "the cat sat on the mat",
    "d1": "the cat sat on the mat",
    "d2": "a dog ran to the river",
    "d3": "the river is long and the boat is old",
    "d4": "a boat and a cat",
    "d5": "nothing of that",
}
QUERIES = {"q1": "cat mat", "q2": "old boat on the river", "q3": "dog", "q4": "moon"}
QRELS = [("q1", "d1", 2), ("q1", "d4", 1), ("q2", "d3", 1), ("q2", "d2", 0), ("q3", "d5", 0), ("q4", "d5", 1)]
#: Our names of the measures.
MEASURES = ("MRR", "MAP", "nDCG@3", "Precision@1", "Recall@5")


#: Evaluates a run by judgments, both files, and returns the means of the measures.
Evaluator = Callable[[str, str], Any]


def write_set(
    data: Path, passages: dict[str, str], queries: dict[str, str], judgments: list[tuple[str, str, int]]
) -> Path:
    """Write a retrieval set in BEIR's layout."""
    (data / "qrels").mkdir(parents=True)
    passage_rows = [{"_id": name, "title": "", "text": text} for name, text in passages.items()]
    query_rows = [{"_id": name, "text": text} for name, text in queries.items()]
    for name, rows in (("corpus", passage_rows), ("queries", query_rows)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (data / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    lines = ["query-id\tcorpus-id\tscore\n"]
    for query, passage, grade in judgments:
        lines.append(f"{query}\t{passage}\t{grade}\n")
    (data / "qrels" / "test.tsv").write_text("".join(lines), encoding="utf-8")
    return data


def write_beir(folder: Path) -> Path:
    """Write a retrieval set with equal passages, a query without a relevant one, and one without a hit."""
    return write_set(folder / "beir", PASSAGES, QUERIES, QRELS)


def evaluate_retrieval(folder: Path, model: str, *words: str) -> list[float]:
    """Evaluate a model, and write its runs and the judgments to ``runs``; returns our means of the measures."""
    figures = folder / "figures.json"
    command = ["evaluate", "retrieval", model, *words, "--measures", ",".join(MEASURES), "--quiet"]
    with redirect_stdout(io.StringIO()):
        assert main([*command, "--runs", str(folder / "runs"), "--json", str(figures)]) == 0
    return means_by_label(folder)["mean"]


def means_by_label(folder: Path) -> dict[str, list[float]]:
    """Read our means of the measures: of each language, or pair of languages, and ``mean`` over them."""
    reports = json.loads((folder / "figures.json").read_text(encoding="utf-8"))["retrieval"]
    [report] = reports.values()
    means = {}
    for label, figures in report["figures"].items():
        means[label] = [round(figures[name], 4) for name in MEASURES]
    return means


def evaluate_bm25(folder: Path) -> list[float]:
    """Evaluate BM25, and write ``runs/en.BM25.trec`` and ``runs/en.qrels``; returns our means of the measures."""
    return evaluate_retrieval(folder, "bm25", "--data", f"en={write_beir(folder)}")


def compare(theirs: Sequence[float], ours: Sequence[float]) -> str | None:
    """Describe the measures that differ in the fourth decimal."""
    parts = []
    for name, their_mean, our_mean in zip(MEASURES, theirs, ours):
        if abs(their_mean - our_mean) > 1e-4:
            parts.append(f"{name} {their_mean:.3f} for {our_mean:.3f}")
    if len(parts) > 1:
        return f"{parts[0]}, and {len(parts) - 1} other measures"
    return parts[0] if parts else None


def evaluates_run(tool: str, *, users: str, remedy: str = "") -> Callable[[Evaluator], Evaluator]:
    """Register an evaluator as a meeting: it evaluates our run, and comes to our means."""

    def register(evaluator: Evaluator) -> Evaluator:
        @meeting(
            tool,
            tried="evaluates our run: ties, a query without hits",
            expected="the means that we print",
            users=users,
            remedy=remedy,
            name=evaluator.__name__,
        )
        def attempt(folder: Path, environment: Environment) -> str | None:
            ours = evaluate_bm25(folder)
            runs = folder / "runs"
            return compare(environment.call(evaluator, runs / "en.BM25.trec", runs / "en.qrels"), ours)

        return evaluator

    return register


@evaluates_run(
    "pytrec-eval-terrier==0.5.11",
    users="who compares a retriever with published figures; it is trec_eval's code",
    remedy="count queries that are not in the run, as trec_eval -c does: without a hit, they have no line",
)
def pytrec_eval_reads_run(run: str, qrels: str) -> Any:
    from pathlib import Path

    import pytrec_eval

    ranking = pytrec_eval.parse_run(Path(run).read_text().splitlines())
    judgments = pytrec_eval.parse_qrel(Path(qrels).read_text().splitlines())
    measures = {"recip_rank", "map", "ndcg_cut.3", "P.1", "recall.5"}
    rows = pytrec_eval.RelevanceEvaluator(judgments, measures).evaluate(ranking).values()
    means = []
    for name in ("recip_rank", "map", "ndcg_cut_3", "P_1", "recall_5"):
        means.append(sum(row[name] for row in rows) / len(rows))
    return means


@evaluates_run("ir-measures==0.4.3", users="who measures runs with PyTerrier")
def ir_measures_reads_run(run: str, qrels: str) -> Any:
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    measures = [RR, AP, nDCG @ 3, P @ 1, R @ 5]
    ranking = list(ir_measures.read_trec_run(run))
    judgments = list(ir_measures.read_trec_qrels(qrels))
    means = ir_measures.calc_aggregate(measures, judgments, ranking)
    return [means[measure] for measure in measures]


@evaluates_run(
    "ranx==0.3.21",
    users="who fuses runs or compares them by tests",
    remedy="evaluate(..., make_comparable=True): a query without a hit has no line in a run",
)
def ranx_reads_run(run: str, qrels: str) -> Any:
    from ranx import Qrels, Run, evaluate

    names = ["mrr", "map", "ndcg@3", "precision@1", "recall@5"]
    judgments = Qrels.from_file(qrels, kind="trec")
    means = evaluate(judgments, Run.from_file(run, kind="trec"), names)
    return [float(means[name]) for name in names]


@evaluates_run(
    "trectools==0.0.50",
    users="who takes part in TREC and CLEF",
    remedy="count queries that are not in the run: without a hit, they have no line",
)
def trectools_reads_run(run: str, qrels: str) -> Any:
    from trectools import TrecEval, TrecQrel, TrecRun

    tool = TrecEval(TrecRun(run), TrecQrel(qrels))
    return [
        tool.get_reciprocal_rank(),
        tool.get_map(),
        tool.get_ndcg(depth=3),
        tool.get_precision(depth=1),
        tool.get_recall(depth=5),
    ]


not_tried(
    "trec-eval==9",
    name="trec_eval_reads_run",
    module=__name__,
    tried="evaluates our run",
    reason="in no package registry; pytrec-eval-terrier runs its code",
)

#: A pool of two languages. The German passages 1 and 2 are equal, and so is the English one of id 1: all three tie for
#: every query, and only the judged one is relevant.
MIXED = {
    "de": {"1": "ein Hund im Haus", "2": "ein Hund im Haus", "3": "eine Katze am Fluss"},
    "en": {"1": "ein Hund im Haus", "2": "a cat at the river", "3": "the moon"},
}
MIXED_QUERIES = {"de": ("Hund Haus", "2"), "en": ("cat river", "2")}


def evaluate_mixed_pool(folder: Path) -> dict[str, list[float]]:
    """Evaluate a tiny encoder on a mixed pool, and write a run of each language's queries.

    Returns:
        Our means of the measures, over the German queries and over the English ones.
    """
    from st_xling.models import tiny_encoder  # loads sentence-transformers, which is slow

    words = []
    for language, passages in MIXED.items():
        query, relevant = MIXED_QUERIES[language]
        judgments = [(f"{language}q", relevant, 1)]
        data = write_set(folder / language, passages, {f"{language}q": query}, judgments)
        words += ["--data", f"{language}={data}"]
    texts = [text for passages in MIXED.values() for text in passages.values()]
    model = folder / "my-encoder"
    tiny_encoder(texts, vocabulary=100, hidden_size=16).save(str(model))
    evaluate_retrieval(folder, str(model), *words, "--pool", "mixed")
    return means_by_label(folder)


def evaluates_mixed_pool(tool: str, evaluator: Evaluator) -> None:
    """Register an evaluator as a meeting: it evaluates our run of a mixed pool in which passages tie."""

    @meeting(
        tool,
        tried="evaluates our run of a mixed pool, in which passages tie",
        expected="the means that we print",
        users="who measures language bias",
        name=evaluator.__name__.replace("reads_run", "reads_mixed_pool"),
    )
    def attempt(folder: Path, environment: Environment) -> str | None:
        ours = evaluate_mixed_pool(folder)
        for language in MIXED:
            [run] = (folder / "runs").glob(f"{language}.*.trec")
            theirs = environment.call(evaluator, run, folder / "runs" / f"{language}.qrels")
            if found := compare(theirs, ours[language]):
                return f"queries in {language}: {found}"
        return None


evaluates_mixed_pool("pytrec-eval-terrier==0.5.11", pytrec_eval_reads_run)
evaluates_mixed_pool("ir-measures==0.4.3", ir_measures_reads_run)
evaluates_mixed_pool("ranx==0.3.21", ranx_reads_run)


def read_with_beir(folder: str) -> Any:
    from beir.datasets.data_loader import GenericDataLoader

    corpus, queries, qrels = GenericDataLoader(folder).load(split="test")
    return [corpus, queries, qrels]


def compare_set(folder: Path, corpus: dict[str, str], queries: Any, qrels: Any) -> str | None:
    """Compare the texts of passages, queries and grades above 0 with those that we read from a folder."""
    passages, our_queries, our_qrels = read_folder(folder, "en", None, split="test", skip_bad_lines=False)
    relevant = {}
    for query, grades in qrels.items():
        relevant[query] = {name: grade for name, grade in grades.items() if grade > 0}
    ours = [dict(zip(passages.ids, passages)), our_queries["en"], our_qrels]
    return difference([corpus, queries, relevant], ours)


@meeting(
    "beir==2.2.0",
    tried="reads the folder that we read",
    expected="the same passages, titles before texts, the same queries and grades",
    users="who compares figures with BEIR's",
    above_ours=True,
)
def beir_reads_folder(folder: Path, tool: Environment) -> str | None:
    data = write_beir(folder)
    corpus, queries, qrels = tool.call(read_with_beir, data)
    texts = {name: f"{passage['title']} {passage['text']}".strip() for name, passage in corpus.items()}
    return compare_set(data, texts, queries, qrels)


def write_miracl(folder: Path) -> Path:
    """Write the retrieval set in MIRACL's layout: TREC's topics and qrels, passages as JSON lines."""
    data = folder / "miracl"
    for name in ("collection", "topics", "qrels"):
        (data / name).mkdir(parents=True)
    lines = [json.dumps({"docid": name, "title": "", "text": text}) + "\n" for name, text in PASSAGES.items()]
    (data / "collection" / "docs.jsonl").write_text("".join(lines), encoding="utf-8")
    lines = [f"{name}\t{text}\n" for name, text in QUERIES.items()]
    (data / "topics" / "topics.miracl-v1.0-en-test.tsv").write_text("".join(lines), encoding="utf-8")
    lines = [f"{query}\tQ0\t{name}\t{grade}\n" for query, name, grade in QRELS]
    (data / "qrels" / "qrels.miracl-v1.0-en-test.tsv").write_text("".join(lines), encoding="utf-8")
    return data


def read_with_ir_datasets(topics: str, qrels: str) -> Any:
    import ir_datasets

    data = ir_datasets.create_dataset(queries_tsv=topics, qrels_trec=qrels)
    queries = {query.query_id: query.text for query in data.queries_iter()}
    grades: dict[str, dict[str, int]] = {}
    for judgment in data.qrels_iter():
        grades.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
    return [queries, grades]


@meeting(
    "ir-datasets==0.6.3",
    tried="reads topics and qrels of a folder of MIRACL that we read",
    expected="the same queries and grades",
    users="who has test collections by ir_datasets",
)
def ir_datasets_reads_miracl(folder: Path, tool: Environment) -> str | None:
    data = write_miracl(folder)
    [topics] = (data / "topics").iterdir()
    [qrels] = (data / "qrels").iterdir()
    queries, grades = tool.call(read_with_ir_datasets, topics, qrels)
    return compare_set(data, PASSAGES, queries, grades)


def evaluate_with_mteb(model: str, passages: Any, queries: Any, judgments: Any) -> Any:
    import mteb
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

    task = mteb.get_task("NFCorpus")
    qrels: dict[str, dict[str, int]] = {}
    for query, passage, grade in judgments:
        qrels.setdefault(query, {})[passage] = grade
    corpus = [{"id": name, "title": "", "text": text} for name, text in passages.items()]
    topics = [{"id": name, "text": text} for name, text in queries.items()]
    split = {
        "corpus": Dataset.from_list(corpus),
        "queries": Dataset.from_list(topics),
        "relevant_docs": qrels,
        "top_ranked": None,
    }
    task.dataset = {"default": {"test": split}}
    task.data_loaded = True
    encoder = SentenceTransformer(model)
    [scores] = mteb.evaluate(encoder, [task], cache=None).task_results[0].scores["test"]
    return [scores["ndcg_at_3"], scores["map_at_5"], scores["recall_at_5"]]


@meeting(
    "mteb==2.26.24",
    tried="evaluates adapters with prompt and truncated dimensions on a folder that we evaluate on",
    expected="our nDCG@3, MAP and Recall@5; equal passages apart",
    users="who compares a retriever with mteb's leaderboard",
    above_ours=True,
)
def mteb_evaluates_retrieval(folder: Path, tool: Environment) -> str | None:
    model = write_lora_encoder(folder)
    # mteb orders passages that tie by chance: without equal ones, and with judged queries only.
    passages = {name: text for name, text in PASSAGES.items() if name != "d10"}
    data = write_set(folder / "set", passages, QUERIES, QRELS)
    ours = dict(zip(MEASURES, evaluate_retrieval(folder, str(model), "--data", f"en={data}")))
    theirs = tool.call(evaluate_with_mteb, model, passages, QUERIES, QRELS)
    expected = [ours["nDCG@3"], ours["MAP"], ours["Recall@5"]]
    return difference([round(score, 3) for score in theirs], [round(score, 3) for score in expected])
