"""The re-ranking evaluator: figures by plain loops, matrix, counts, signature, CSV, sentence-transformers' trainer."""

import copy
from typing import Any

import pytest
import torch

from st_xling.data.reranking.pools import CandidatePool, CandidatePools
from st_xling.evaluation import RerankingEvaluator, ranking_scores
from st_xling.evaluation.reranking import examples_text
from tests.conftest import PAIRS
from tests.models.tiny_cross_encoder import tiny_cross_encoder

ENGLISH = [english for _, english in PAIRS]
OTHERS = [other for other, _ in PAIRS]


def pool(row: int, *, language: str = "xx", relevant: bool = True) -> CandidatePool:
    """Query ``row`` among all English sentences and the others' first three; its translation is relevant."""
    return CandidatePool(
        query=OTHERS[row],
        query_language=language,
        passages=[*ENGLISH, *OTHERS[:3]],
        passage_languages=["en"] * 8 + ["de", "fr", "ar"],
        labels=[int(relevant and index == row) for index in range(8)] + [0] * 3,
    )


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_cross_encoder([*ENGLISH, *OTHERS], max_length=80)


@pytest.fixture(scope="module")
def pools() -> list[CandidatePool]:
    languages = ["de", "vi"] * 4
    return [pool(row, language=language) for row, language in enumerate(languages)]


def plain(model: Any, pools: list[CandidatePool], language: str | None = None) -> dict[str, float]:
    """From sentence-transformers' scores, over the candidates in one language."""
    scores: list[Any] = []
    labels: list[list[int]] = []
    for pool in pools:
        rows = [row for row, code in enumerate(pool.passage_languages) if language in (None, code)]
        scores.append(model.predict([(pool.query, pool.passages[row]) for row in rows]))
        labels.append([pool.labels[row] for row in rows])
    return ranking_scores(scores, labels).means


def test_figures_of_other_scores(model: Any, pools: list[CandidatePool]) -> None:
    metrics = RerankingEvaluator(pools, name="dev")(model)
    for name, value in plain(model, pools).items():
        assert metrics[f"dev_{name}"] == pytest.approx(value, rel=1e-9)
        assert metrics[f"dev_{name}_low"] <= value <= metrics[f"dev_{name}_high"]
    for language in ("de", "vi"):
        pools_of_language = [pool for pool in pools if pool.query_language == language]
        for name, value in plain(model, pools_of_language, "en").items():
            assert metrics[f"dev_{language}-en_{name}"] == pytest.approx(value, rel=1e-9)
    assert 0 < metrics["dev_mrr"] < 1 and metrics["dev_mrr_low"] < metrics["dev_mrr_high"]
    assert metrics["dev_n_queries"] == 8 and metrics["dev_n_without_relevant"] == 0
    assert set(metrics) >= {"dev_vi-ar_mrr", "dev_de-fr_map"}


def test_the_report_has_intervals_everywhere(model: Any, pools: list[CandidatePool]) -> None:
    evaluator = RerankingEvaluator(pools, samples=200, seed=4)
    report = evaluator.report(model)
    cell = report.matrix["de"]["en"]
    assert cell["n_queries"] == 4 and cell["mrr"]["low"] <= cell["mrr"]["mean"] <= cell["mrr"]["high"]
    lines = report.table().splitlines()
    mrr = {key: 100 * value for key, value in report.overall["mrr"].items()}
    assert lines[2].startswith(f"mrr      {mrr['mean']:5.1f}  ({mrr['low']:.1f} to {mrr['high']:.1f})")
    assert lines[0].endswith(f"by chance {100 / 11:5.1f}") and lines[5] == "11 candidates a query on average"
    assert lines[6] == "8 queries" and lines[8].split()[-5:] == ["acc@1", "acc@10", "MRR", "MAP", "NDCG@10"]
    assert lines[9].startswith("de → ar") and len(lines) == 9 + 8 + 1
    english = next(line for line in lines if line.startswith("vi → en"))
    assert english.split()[3:5] == ["4", "8"], "queries and candidates"
    assert lines[-1] == "by chance: acc@1 12.5, acc@10 100.0"


def test_examples_are_ranked_as_the_figures_are(model: Any, pools: list[CandidatePool]) -> None:
    none = pool(0, relevant=False)
    report = RerankingEvaluator([*pools, none], examples=9).report(model)
    examples = {(example["query"], example["language"]): example for example in report.as_dict()["examples"].values()}
    assert len(examples) == 9 and examples[none.query, "xx"]["rank"] is None
    ranks = [example["rank"] for example in examples.values() if example["rank"]]
    assert report.overall["mrr"]["mean"] == pytest.approx(sum(1 / rank for rank in ranks) / 8)
    for judged in pools:
        scores = model.predict([(judged.query, passage) for passage in judged.passages])
        best = sorted(range(len(scores)), key=lambda row: -scores[row])[:3]
        passages = examples[judged.query, judged.query_language]["passages"]
        assert [(passage["text"], passage["language"], passage["relevant"]) for passage in passages] == [
            (judged.passages[row], judged.passage_languages[row], bool(judged.labels[row])) for row in best
        ]
    lines = examples_text({"one": report.examples, "two": report.examples}, width=10).splitlines()
    assert lines[5].startswith("   two (relevant: ") and len(lines) == 9 * 9
    assert report.table().endswith(examples_text({"best": report.examples}))


def test_what_is_left_out_is_counted(model: Any, pools: list[CandidatePool]) -> None:
    empty = CandidatePool("Wer?", "de", [], [], [])
    long = CandidatePool(" ".join(OTHERS * 3), "de", ENGLISH[:2], ["en", "en"], [1, 0])
    cut = CandidatePool("Wer?", "de", [" ".join(ENGLISH * 3), ENGLISH[0]], ["en", "en"], [1, 0])
    metrics = RerankingEvaluator([*pools, pool(0, relevant=False), empty, long, cut])(model)
    names = ("queries", "without_relevant", "cut_passages", "long_queries")
    assert [metrics[f"n_{name}"] for name in names] == [12, 2, 1, 1]
    alone = RerankingEvaluator([long])(model)
    assert alone["acc@1"] == 0 and alone["mrr"] == 0.5, "a query that cannot be read is not found first"
    told = CandidatePools(tuple(pools), without_relevant=5, signature="queries:de,vi-sampled")
    assert RerankingEvaluator(told)(model)["n_without_relevant"] == 5


def test_reports_of_one_evaluator_have_their_own_signatures(model: Any, pools: list[CandidatePool]) -> None:
    """The command printed the signature of the evaluator, which was that of the model it had evaluated last."""
    evaluator = RerankingEvaluator(pools, name="xquad")
    before = evaluator.report(model)
    half = copy.deepcopy(model).to(torch.bfloat16)
    assert evaluator.report(half).signature == evaluator.identity.replace("|data:", "|dtype:bfloat16|data:")
    assert before.signature == evaluator.report(model).signature == evaluator.identity
    assert "signature" not in before.as_dict()


def test_one_evaluator_gives_each_model_its_own_results(model: Any, pools: list[CandidatePool]) -> None:
    """Nothing of a model may stay in the evaluator: figures of a later model would be mixed with those of the first."""
    worst_first = copy.deepcopy(model)
    worst_first.model.classifier.weight.data.neg_()
    models = [model, worst_first]
    expected = [RerankingEvaluator(pools, name="xquad").evaluate(encoder) for encoder in models]
    assert expected[0].metrics != expected[1].metrics
    evaluator = RerankingEvaluator(pools, name="xquad")
    for encoder, result in [*zip(models, expected)] * 2:
        assert evaluator.evaluate(encoder) == result


def test_the_signature(pools: list[CandidatePool]) -> None:
    evaluator = RerankingEvaluator(pools, name="xquad", seed=2)
    words = evaluator.identity.split("|")
    assert words[:4] == ["reranking", "n:8", "queries:de,vi", "passages:ar,de,en,fr"]
    assert words[4:8] == ["cutoff:none", "ties:pessimistic", "no_relevant:skip", "interval:95%,samples=1000,seed=2"]
    assert words[8].startswith("data:xquad@") and evaluator.get_config_dict()["signature"] == evaluator.identity
    other = [*pools[:-1], pool(7, relevant=False)]
    assert RerankingEvaluator(other, name="xquad", seed=2).identity.split("|")[8] != words[8]
    made = RerankingEvaluator(CandidatePools(tuple(pools), signature="queries:de,vi-sampled|seed:0"))
    assert made.identity.startswith("reranking|n:8|queries:de,vi-sampled|seed:0|cutoff:none|")
