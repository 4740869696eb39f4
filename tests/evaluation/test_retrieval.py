"""The retrieval evaluator: figures by plain loops and by ST, mixed pools, bias, BM25, bad input."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
import torch

from st_xling.data.retrieval import RetrievalSet, read_retrieval_set
from st_xling.evaluation import retrieval_search
from st_xling.evaluation.retrieval import (
    RetrievalEvaluator,
    check_run_ids,
    language_bias,
    strictly_falling,
    write_judgments,
    write_run,
)
from st_xling.evaluation.retrieval_search import PoolQuery, bm25_search, dense_search, retrieval_pools, words
from st_xling.models.normalization import Centering, apply_centering
from st_xling.models.view import rebuilt
from tests.retrieval_files import ENGLISH, OTHERS, beir, translated


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[RetrievalSet]:
    root = tmp_path_factory.mktemp("sets")
    folders = {"xx": translated(root / "xx"), "en": translated(root / "en", texts=ENGLISH)}
    return [read_retrieval_set(folder, language=code) for code, folder in folders.items()]


def ranked(model: Any, query: str, passages: dict[str, str]) -> list[str]:
    """Ids by cosine, one product at a time, equal ones by id."""
    query_vector = model.encode([query])[0].astype(np.float64)
    scores = {}
    for name, text in passages.items():
        vector = model.encode([text])[0].astype(np.float64)
        length_product = math.sqrt(float(query_vector @ query_vector) * float(vector @ vector))
        scores[name] = float(query_vector @ vector / length_product)
    return sorted(passages, key=lambda name: (-round(scores[name], 6), name))


def test_figures_by_plain_loops(model: Any, sets: list[RetrievalSet]) -> None:
    metrics = RetrievalEvaluator(sets, measures=["MRR@3", "Recall@5"], name="t")(model)
    labels = {"en-xx": (ENGLISH, OTHERS), "xx": (OTHERS, OTHERS), "en": (ENGLISH, ENGLISH), "xx-en": (OTHERS, ENGLISH)}
    means = []
    for label, (queries, texts) in labels.items():
        passages = {f"p{row}": text for row, text in enumerate(texts)}
        ranks = [ranked(model, query, passages).index(f"p{row}") + 1 for row, query in enumerate(queries)]
        means.append(sum(1 / rank for rank in ranks if rank <= 3) / 8)
        assert metrics[f"t_{label}_MRR@3"] == pytest.approx(means[-1], rel=1e-9)
        assert metrics[f"t_{label}_Recall@5"] == pytest.approx(sum(rank <= 5 for rank in ranks) / 8, rel=1e-9)
    assert metrics["t_mean_MRR@3"] == pytest.approx(sum(means) / 4, rel=1e-9)
    assert metrics["t_xx_MRR@3"] == 1 and 0 < metrics["t_en-xx_MRR@3"] < 1


def test_a_model_centered_by_language(model: Any, sets: list[RetrievalSet], caplog: pytest.LogCaptureFixture) -> None:
    """Queries and passages less the mean of their own language, in chunks too; the joint mean is signed."""
    means = {"xx": torch.linspace(-0.3, 0.3, 16), "en": torch.linspace(0.3, -0.2, 16)}
    centered = apply_centering(model, Centering(torch.zeros(16), means))
    evaluator = RetrievalEvaluator(sets, pool="mixed", name="t")
    [pool] = evaluator.pools
    rankings = dense_search(pool, centered, k=5, chunk=3)
    codes = [pool.languages[name] for name in pool.passage_ids]
    passages = np.stack([centered.encode(text, task=code) for text, code in zip(pool.passages, codes)])
    for query in pool.queries:
        scores = sorted((passages @ centered.encode(query.text, task=query.language)).tolist(), reverse=True)
        assert [score for _, score in rankings[query.id]] == pytest.approx(scores[:5], abs=1e-5)
    assert "center:" not in evaluator.evaluate(centered).signature
    result = evaluator.evaluate(apply_centering(model, Centering(torch.zeros(16), {"xx": means["xx"]})))
    assert "|center:joint|" in result.signature and "text of en is centered" in caplog.text


def test_ties_keep_the_order_of_the_ranking(make_model: Any, tmp_path: Path) -> None:
    """Equal passages score alike; ir_measures alone would put the later id first."""
    folder = beir(tmp_path / "set", dict.fromkeys(["a", "b", "c"], "same"), {"en": {"q": "?"}}, [("q", "a", 1)])
    metrics = RetrievalEvaluator([read_retrieval_set(folder, language="en")], name="")(make_model())
    assert metrics["en_MRR@100"] == 1


def arguments(folder: Path) -> Path:
    """A set as ArguAna is: queries are passages, under the same id; one query has only passages of grade 0."""
    passages = {f"p{row}": text for row, text in enumerate([*ENGLISH, *OTHERS])}
    queries = {name: passages[name] for name in list(passages)[: len(ENGLISH)]}
    answers = [(f"p{row}", f"p{row + len(ENGLISH)}", 1 + row % 2) for row in range(len(ENGLISH) - 1)]
    irrelevant = [("p0", "p3", 0), (f"p{len(ENGLISH) - 1}", "p3", 0)]
    return beir(folder, passages, {"en": queries}, [*answers, *irrelevant])


def test_beirs_rules(model: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """ArguAna and Quora ask with passages of the corpus: the query itself was the first hit of each, so that MRR was
    .170 where BEIR has .268. A query whose grades are all 0 counts as 0, as in trec_eval; it was left out."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    data = read_retrieval_set(arguments(tmp_path / "arguana"), language="en")
    assert len(data.queries["en"]) == len(ENGLISH) and data.n_without_relevant == 0
    evaluator = RetrievalEvaluator([data], measures=["RR", "nDCG@3", "R@5", "P@5"], name="t")
    metrics = evaluator(model)
    assert "|query_itself:ignored|" in evaluator.identity
    texts = {name: data.passages[row] for name, row in data.passages.ids.items()}
    run = {}
    for query, text in data.queries["en"].items():
        hits = [name for name in ranked(model, text, texts) if name != query]
        run[query] = {name: float(-rank) for rank, name in enumerate(hits)}
    qrels = {query: dict(grades) or {"p3": 0} for query, grades in data.relevant.items()}
    names = {"RR": "recip_rank", "nDCG@3": "ndcg_cut_3", "R@5": "recall_5", "P@5": "P_5"}
    expected = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    assert len(expected) == len(ENGLISH)
    printed = {"RR": "MRR", "R@5": "Recall@5", "P@5": "Precision@5"}
    for measure, name in names.items():
        mean = sum(row[name] for row in expected.values()) / len(expected)
        assert metrics[f"t_en_{printed.get(measure, measure)}"] == pytest.approx(mean, rel=1e-6)
        assert mean < 1
    assert evaluator.bm25_report().figures["en"]["MRR"] < 0.5  # no query finds itself by its words
    assert evaluator.report(model).rankings["en"].keys() == {f"en:{query}" for query in run}


def test_an_id_of_another_corpus_is_no_query(model: Any, tmp_path: Path) -> None:
    """Numbers are often ids of queries and, by chance, of passages: what qrels call relevant stays a hit."""
    folder = beir(
        tmp_path / "set", {"1": "one", "2": "two"}, {"en": {"1": "one", "2": "two"}}, [("1", "1", 1), ("2", "2", 1)]
    )
    evaluator = RetrievalEvaluator([read_retrieval_set(folder, language="en")], name="")
    assert evaluator(model)["en_MRR@100"] == 1 and "query_itself" not in evaluator.identity


def test_a_query_without_relevant_passages_has_no_language_bias(model: Any, tmp_path: Path) -> None:
    """In a mixed pool, too, it counts as 0, and nothing is relevant in any language."""
    qrels = [("q0", "p0", 1), ("q1", "p1", 0)]
    sets = []
    for code, side in (("en", ENGLISH), ("xx", OTHERS)):
        passages = {f"p{row}": text for row, text in enumerate(side)}
        queries = {"en": {"q0": ENGLISH[0], "q1": ENGLISH[1]}}
        sets.append(read_retrieval_set(beir(tmp_path / code, passages, queries, qrels), language=code))
    report = RetrievalEvaluator(sets, pool="mixed", measures=["RR"]).report(model)
    assert report.n_queries == {"en": 2} and report.figures["en"]["MRR"] == 0.5
    assert report.bias is not None and report.bias.n_queries == 1


def test_a_mixed_pool_unites_what_is_relevant(model: Any, sets: list[RetrievalSet]) -> None:
    evaluator = RetrievalEvaluator(sets, pool="mixed", measures=["MRR@100", "R@2"])
    report = evaluator.report(model)
    sides = {"xx": OTHERS, "en": ENGLISH}
    passages: dict[str, str] = {}
    for code, side in sides.items():
        passages |= {f"{code}:p{row}": text for row, text in enumerate(side)}
    for code, side in sides.items():
        orders = [ranked(model, query, passages) for query in side]
        gold = [{f"xx:p{row}", f"en:p{row}"} for row in range(8)]
        first_ranks = [1 + min(map(order.index, names)) for order, names in zip(orders, gold)]
        assert report.figures[code]["MRR@100"] == pytest.approx(sum(1 / rank for rank in first_ranks) / 8, rel=1e-9)
        recalls = [len(names & set(order[:2])) / 2 for order, names in zip(orders, gold)]
        assert report.figures[code]["Recall@2"] == pytest.approx(sum(recalls) / 8, rel=1e-9)
    assert report.bias is not None and report.bias.n_queries == 16
    assert report.bias.own_first == report.bias.own_share == 1  # a query that is its passage finds itself first
    assert report.bias.expected == 0.5 and evaluator(model)["retrieval_bias_own_share"] == 1


def test_bias_by_hand() -> None:
    languages = {"de1": "de", "de2": "de", "en1": "en", "en2": "en", "en3": "en", "zh1": "zh"}
    both = dict.fromkeys(["de1", "de2", "en1", "en2"], 1)
    queries = [
        PoolQuery("a", "", "de", "de", both),  # two German hits are due: found de1, en1 before de2
        PoolQuery("b", "", "en", "en", {**both, "zh1": 2, "en3": 2}),  # the highest grade alone: en3, zh1
        PoolQuery("c", "", "de", "de", {"de1": 1}),  # nothing to choose between
        PoolQuery("d", "", "zh", "zh", both),  # none in its language
        PoolQuery("e", "", "de", "de", both),  # nothing found
    ]
    rankings = {
        "a": [("zh1", 9.0), ("de1", 8.0), ("en1", 7.0), ("de2", 6.0)],
        "b": [("de1", 9.0), ("zh1", 8.0), ("en3", 7.0)],
        "c": [("de1", 1.0)],
        "d": [("de1", 1.0)],
        "e": [("zh1", 1.0)],
    }
    bias = language_bias(queries, rankings, languages)
    assert bias is not None and (bias.n_queries, bias.n_not_found) == (3, 1)
    assert bias.own_share == (1 / 2 + 0) / 2 and bias.own_first == (1 + 0) / 2 and bias.expected == 0.5
    assert language_bias(queries[2:4], rankings, languages) is None


def test_bm25_by_definition(tmp_path: Path) -> None:
    """Lucene's BM25, written out: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b len / mean))."""
    texts = {
        "p1": "der Hund, der Hund",
        "p2": "die Katze und der Hund schlafen",
        "p3": "我买了三本旧书",
        "p4": "ganz anders",
    }
    queries = {"q1": "Wo ist der Hund?", "q2": "三本书", "q3": "nichts davon"}
    folder = beir(tmp_path / "set", texts, {"de": queries}, [(name, "p1", 1) for name in queries])
    [pool] = retrieval_pools([read_retrieval_set(folder, language="de")], mixed=False)
    rankings = bm25_search(pool, k=2)
    terms = {name: words(text) for name, text in texts.items()}
    average = sum(map(len, terms.values())) / 4
    for name, query in queries.items():
        expected = {}
        for passage, passage_terms in terms.items():
            score = 0.0
            for term in words(query):
                n_with_term = sum(term in other_terms for other_terms in terms.values())
                idf = math.log(1 + (4 - n_with_term + 0.5) / (n_with_term + 0.5))
                count = Counter(passage_terms)[term]
                norm = 0.9 * (1 - 0.4 + 0.4 * len(passage_terms) / average)
                score += idf * count / (count + norm)
            if score > 0:
                expected[passage] = score
        best = sorted(expected, key=lambda passage: -expected[passage])[:2]
        assert [passage for passage, _ in rankings[f"de:{name}"]] == best
        for passage, value in rankings[f"de:{name}"]:
            assert value == pytest.approx(expected[passage], rel=1e-5)
    assert rankings["de:q3"] == [] and [name for name, _ in rankings["de:q2"]] == ["p3"]


def test_words_of_every_script() -> None:
    assert words("Straße Nr. １２!") == ["strasse", "nr", "12"]
    assert words("แมวดี") == ["แม", "มว", "วด", "ดี"] and words("我 ABC我们") == ["我", "abc", "我们"]
    assert words("हिन्दी भाषा") == ["हिन्दी", "भाषा"] and words("🙂 — …") == []


def test_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "en.trec", {"en:q": [("p2", 0.5), ("p1", 0.25)]}, tag="ours")
    lines = (tmp_path / "runs" / "en.trec").read_text(encoding="utf-8").splitlines()
    assert lines == ["q Q0 p2 1 0.5 ours", "q Q0 p1 2 0.25 ours"]


def test_ids_with_spaces_are_refused_before_the_search(tmp_path: Path) -> None:
    """BEIR's ids may have them: the run had too many columns, which trec_eval refuses after hours of search."""
    beir(tmp_path / "en", {"d 1": "the cat sat", "d2": "a dog"}, {"en": {"q1": "cat"}}, [("q1", "d 1", 1)])
    with pytest.raises(ValueError, match="cannot hold ids with spaces.*'d 1'"):
        check_run_ids(RetrievalEvaluator([read_retrieval_set(tmp_path / "en", language="en")]).pools)


def test_a_run_is_measured_as_the_report(tmp_path: Path, make_model: Any) -> None:
    """Equal scores were written as they are: trec_eval orders these by id, and gave another MRR than our report."""
    texts = {"d2": "the cat sat", "d1": "the cat sat", "d3": "ด็อกเตอร์ café", "d4": "the cat sat"}
    queries = {"q1": "cat", "q2": "café", "q3": "sat the"}
    qrels = [("q1", "d1", 1), ("q2", "d3", 1), ("q3", "d4", 2), ("q3", "d2", 1)]
    folder = beir(tmp_path / "en", texts, {"en": queries}, qrels)
    evaluator = RetrievalEvaluator(
        [read_retrieval_set(folder, language="en")], measures=["MRR@100", "P@1", "nDCG@2", "MAP", "Recall@1"]
    )
    for report in (evaluator.report(make_model()), evaluator.bm25_report()):
        (rankings,) = report.rankings.values()
        write_run(tmp_path / "en.trec", rankings, tag="ours")
        run = list(ir_measures.read_trec_run(str(tmp_path / "en.trec")))
        scores = [np.float32(row.score) for row in run if row.query_id == "q1"]
        assert all(first > second for first, second in pairwise(scores))
        judged = [ir_measures.Qrel(query, passage, grade) for query, passage, grade in qrels]
        measures = {"MRR@100": ir_measures.RR @ 100, "Precision@1": ir_measures.P @ 1, "nDCG@2": ir_measures.nDCG @ 2}
        measures |= {"MAP": ir_measures.AP @ 100, "Recall@1": ir_measures.R @ 1}
        theirs = ir_measures.pytrec_eval.calc_aggregate([*measures.values()], judged, run)
        for name, measure in measures.items():
            assert theirs[measure] == pytest.approx(report.figures["en"][name], abs=1e-6), name


@pytest.mark.parametrize("pool", ["separate", "mixed"])
def test_judgments_have_the_ids_of_the_run(pool: str, sets: list[RetrievalSet], tmp_path: Path) -> None:
    """Passages of a mixed pool are ``fi:12`` in the run: trec_eval gave 0 for it with the judgments of the data, and
    sets without files of judgments had none."""
    evaluator = RetrievalEvaluator(sets, pool=pool, measures=["MAP", "MRR@100"])
    report = evaluator.bm25_report()
    for entry in evaluator.pools:
        for label in dict.fromkeys(query.label for query in entry.queries):
            queries = [query for query in entry.queries if query.label == label]
            write_judgments(tmp_path / "qrels", queries, entry.passage_ids)
            write_run(tmp_path / "run", {query.id: report.rankings[entry.name][query.id] for query in queries}, tag="x")
            judgments = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
            run = list(ir_measures.read_trec_run(str(tmp_path / "run")))
            for name, measure in (("MAP", ir_measures.AP @ 100), ("MRR@100", ir_measures.RR @ 100)):
                theirs = ir_measures.calc_aggregate([measure], judgments, run)[measure]
                assert theirs == pytest.approx(report.figures[label][name], abs=1e-6)


def test_scores_of_a_run_fall_strictly() -> None:
    """In float32, in which pytrec_eval holds them; scores that differ by more stay as they are."""
    for scores in ([1.0] * 5, [0.0, 0.0, -1.0], [1.0, 1.0 - 1e-12, 0.5], [1e-45, 0.0, 0.0], [2.0, 1.0, -3.0], []):
        falling = strictly_falling(scores)
        assert falling == [float(np.float32(score)) for score in falling]
        assert all(first > second for first, second in pairwise(falling))
        assert falling == pytest.approx(scores, abs=1e-6)
        assert [float(f"{score:.9g}") for score in falling] == pytest.approx(falling, rel=1e-9)
    assert strictly_falling([2.0, 1.0, -3.0]) == [2.0, 1.0, -3.0]


def test_bad_input(make_model: Any, sets: list[RetrievalSet], tmp_path: Path) -> None:
    for options, message in (
        ({"pool": "one"}, "pool must be one of separate, mixed"),
        ({"measures": ["Foo@3"]}, "measures .*Foo"),
        ({"sets": [sets[1], sets[1]]}, "different languages.*got en, en"),
    ):
        with pytest.raises(ValueError, match=message):
            RetrievalEvaluator(**{"sets": sets, **options})
    other = beir(tmp_path / "zz", {"p": "x"}, {"en": {"q1": "another question"}}, [("q1", "p", 1)])
    with pytest.raises(ValueError, match="1 differ in their text, such as en q1"):
        retrieval_pools([*sets, read_retrieval_set(other, language="zz")], mixed=True)
    broken = make_model()
    broken[0].auto_model.embeddings.LayerNorm.weight.data.fill_(float("nan"))
    with pytest.raises(ValueError, match="embeddings of queries must be finite"):
        RetrievalEvaluator(sets)(broken)


def test_a_large_corpus_streams(make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks smaller than the corpus give the same ranking, and no more than a chunk of text is read at once."""
    passages = {f"{row:04d}": f"{ENGLISH[row % 8]} {row}" for row in range(700)}
    folder = beir(tmp_path / "set", passages, {"en": {"q": f"{ENGLISH[3]} 603"}}, [("q", "0603", 1)])
    evaluator = RetrievalEvaluator([read_retrieval_set(folder, language="en")])
    n_texts: list[int] = []
    encode = retrieval_search.encode_by_language

    def count_texts(model: Any, columns: Any, languages: Any, **options: Any) -> Any:
        n_texts.append(sum(map(len, columns)))
        return encode(model, columns, languages, **options)

    monkeypatch.setattr(retrieval_search, "encode_by_language", count_texts)
    model = make_model()
    [pool] = evaluator.pools
    chunked = dense_search(pool, model, k=9, chunk=256)
    assert n_texts == [1, 256, 256, 188]
    in_one_chunk = dense_search(pool, model, k=9)
    assert [name for name, _ in chunked["en:q"]] == [name for name, _ in in_one_chunk["en:q"]]


def test_reports_of_one_evaluator_have_their_own_signatures(model: Any, sets: list[RetrievalSet]) -> None:
    """BM25's signature had the encoder's prompt if it was asked for after the encoder was evaluated."""
    evaluator = RetrievalEvaluator(sets, name="dev")
    prompted = rebuilt(model, list(model))
    prompted.prompts |= {"query": "query: ", "document": "passage: "}
    signatures = [evaluator.report(encoder).signature for encoder in (prompted, model, prompted)]
    assert evaluator.bm25_report().signature == evaluator.identity == signatures[1]
    prompts = "|prompt:query: |passage_prompt:passage: |data:"
    assert signatures[0] == signatures[2] == evaluator.identity.replace("|data:", prompts)


def test_one_evaluator_gives_each_model_its_own_results(make_model: Any, sets: list[RetrievalSet]) -> None:
    """Nothing of a model may stay in the evaluator: figures of a later model would be mixed with those of the first."""
    models = [make_model(seed=seed).eval() for seed in (0, 1)]
    expected = [RetrievalEvaluator(sets, name="dev").evaluate(encoder) for encoder in models]
    assert expected[0].metrics != expected[1].metrics
    evaluator = RetrievalEvaluator(sets, name="dev")
    for encoder, result in [*zip(models, expected)] * 2:
        assert evaluator.evaluate(encoder) == result


def test_the_signature_follows_measures_and_order(model: Any, sets: list[RetrievalSet]) -> None:
    evaluator = RetrievalEvaluator(sets, name="dev")
    assert evaluator.primary_metric == "dev_mean_MRR@100"
    body = "retrieval|passages:xx,en|pool:separate|measures:MRR@100,Recall@100|depth:100|ties:id|data:dev"
    assert evaluator.identity.startswith(f"{body}@")
    assert evaluator.identity != RetrievalEvaluator(sets[::-1], name="dev").identity
    assert [row.label for row in evaluator.evaluate(model).rows] == ["en-xx", "xx", "en", "xx-en", "mean"]
