"""Rankings, judgments and retrieval sets: TREC runs and qrels, folders in the layout of BEIR and MIRACL."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from st_xling.cli import main
from st_xling.data.retrieval.files import read_folder
from tests.neighbours.environment import Environment, NotTried
from tests.neighbours.meeting import difference, meeting

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


def write_beir(folder: Path) -> Path:
    """Write a retrieval set in BEIR's layout."""
    data = folder / "beir"
    (data / "qrels").mkdir(parents=True)
    passages = [{"_id": name, "title": "", "text": text} for name, text in PASSAGES.items()]
    queries = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    for name, records in (("corpus", passages), ("queries", queries)):
        lines = [json.dumps(record) + "\n" for record in records]
        (data / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore\n", *(f"{query}\t{name}\t{grade}\n" for query, name, grade in QRELS)]
    (data / "qrels" / "test.tsv").write_text("".join(rows), encoding="utf-8")
    return data


def evaluate_bm25(folder: Path) -> list[float]:
    """Evaluate BM25, and write ``runs/en.BM25.trec`` and ``runs/en.qrels``; returns our means of the measures."""
    data = write_beir(folder)
    figures = folder / "figures.json"
    words = ["evaluate", "retrieval", "bm25", "--data", f"en={data}", "--measures", ",".join(MEASURES), "--quiet"]
    with redirect_stdout(io.StringIO()):
        assert main([*words, "--runs", str(folder / "runs"), "--json", str(figures)]) == 0
    means = json.loads(figures.read_text(encoding="utf-8"))["retrieval"]["BM25"]["figures"]["mean"]
    return [round(means[name], 4) for name in MEASURES]


def compare(theirs: Sequence[float], ours: Sequence[float]) -> str | None:
    """Describe the measures that differ in the fourth decimal."""
    parts = []
    for name, their_mean, our_mean in zip(MEASURES, theirs, ours):
        if abs(their_mean - our_mean) > 1e-4:
            parts.append(f"{name} {their_mean:.3f} for {our_mean:.3f}")
    if len(parts) > 1:
        return f"{parts[0]}, and {len(parts) - 1} other measures"
    return parts[0] if parts else None


def by_pytrec_eval(run: str, qrels: str) -> Any:
    from pathlib import Path

    import pytrec_eval

    ranking = pytrec_eval.parse_run(Path(run).read_text().splitlines())
    judgments = pytrec_eval.parse_qrel(Path(qrels).read_text().splitlines())
    names = ["recip_rank", "map", "ndcg_cut_3", "P_1", "recall_5"]
    scores = pytrec_eval.RelevanceEvaluator(judgments, {"recip_rank", "map", "ndcg_cut.3", "P.1", "recall.5"}).evaluate(
        ranking
    )
    return [sum(query[name] for query in scores.values()) / len(scores) for name in names]


@meeting(
    "pytrec-eval-terrier==0.5.11",
    tried="evaluates our run: ties, a query without hits",
    expected="the means that we print",
    users="who compares a retriever with published figures; it is trec_eval's code",
    remedy="count queries that are not in the run, as trec_eval -c does: without a hit, they have no line",
)
def pytrec_eval_reads_run(folder: Path, tool: Environment) -> str | None:
    ours = evaluate_bm25(folder)
    return compare(tool.call(by_pytrec_eval, folder / "runs" / "en.BM25.trec", folder / "runs" / "en.qrels"), ours)


def by_ir_measures(run: str, qrels: str) -> Any:
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    measures = [RR, AP, nDCG @ 3, P @ 1, R @ 5]
    ranking = list(ir_measures.read_trec_run(run))
    judgments = list(ir_measures.read_trec_qrels(qrels))
    means = ir_measures.calc_aggregate(measures, judgments, ranking)
    return [means[measure] for measure in measures]


@meeting(
    "ir-measures==0.4.3",
    tried="evaluates our run: ties, a query without hits",
    expected="the means that we print",
    users="who measures runs with PyTerrier",
)
def ir_measures_reads_run(folder: Path, tool: Environment) -> str | None:
    ours = evaluate_bm25(folder)
    return compare(tool.call(by_ir_measures, folder / "runs" / "en.BM25.trec", folder / "runs" / "en.qrels"), ours)


def by_ranx(run: str, qrels: str) -> Any:
    from ranx import Qrels, Run, evaluate

    names = ["mrr", "map", "ndcg@3", "precision@1", "recall@5"]
    judgments = Qrels.from_file(qrels, kind="trec")
    means = evaluate(judgments, Run.from_file(run, kind="trec"), names)
    return [float(means[name]) for name in names]


@meeting(
    "ranx==0.3.21",
    tried="evaluates our run: ties, a query without hits",
    expected="the means that we print",
    users="who fuses runs or compares them by tests",
    remedy="evaluate(..., make_comparable=True): a query without a hit has no line in a run",
)
def ranx_reads_run(folder: Path, tool: Environment) -> str | None:
    ours = evaluate_bm25(folder)
    return compare(tool.call(by_ranx, folder / "runs" / "en.BM25.trec", folder / "runs" / "en.qrels"), ours)


def by_trectools(run: str, qrels: str) -> Any:
    from trectools import TrecEval, TrecQrel, TrecRun

    tool = TrecEval(TrecRun(run), TrecQrel(qrels))
    return [
        tool.get_reciprocal_rank(),
        tool.get_map(),
        tool.get_ndcg(depth=3),
        tool.get_precision(depth=1),
        tool.get_recall(depth=5),
    ]


@meeting(
    "trectools==0.0.50",
    tried="evaluates our run: ties, a query without hits",
    expected="the means that we print",
    users="who takes part in TREC and CLEF",
    remedy="count queries that are not in the run: without a hit, they have no line",
)
def trectools_reads_run(folder: Path, tool: Environment) -> str | None:
    ours = evaluate_bm25(folder)
    return compare(tool.call(by_trectools, folder / "runs" / "en.BM25.trec", folder / "runs" / "en.qrels"), ours)


@meeting(
    "trec-eval==9",
    from_registry=False,
    tried="evaluates our run",
    expected="the means that we print",
    users="who compares a retriever with published figures",
)
def trec_eval_reads_run(folder: Path, tool: Environment) -> str | None:
    raise NotTried("in no package registry; pytrec-eval-terrier runs its code")


def read_with_beir(folder: str) -> Any:
    from beir.datasets.data_loader import GenericDataLoader

    corpus, queries, qrels = GenericDataLoader(folder).load(split="test")
    return [corpus, queries, qrels]


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
    passages, our_queries, our_qrels = read_folder(data, "en", None, split="test", skip_bad_lines=False)
    texts = {name: f"{passage['title']} {passage['text']}".strip() for name, passage in corpus.items()}
    relevant = {query: {name: grade for name, grade in grades.items() if grade > 0} for query, grades in qrels.items()}
    ours = [dict(zip(passages.ids, passages)), our_queries["en"], our_qrels]
    return difference([texts, queries, relevant], ours)
