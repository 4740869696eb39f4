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

ENGLISH, OTHERS = [english for _, english in PAIRS], [other for other, _ in PAIRS]


def pool(row: int, *, language: str = "xx", relevant: bool = True) -> CandidatePool:
    """Query ``row`` among all English sentences and the others' first three; its translation is relevant."""
    return CandidatePool(
        query=OTHERS[row],
        query_language=language,
        passages=[*ENGLISH, *OTHERS[:3]],
        passage_languages=["en"] * 8 + ["de", "fr", "ar"],
        labels=[int(relevant and place == row) for place in range(8)] + [0] * 3,
    )


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_cross_encoder([*ENGLISH, *OTHERS], max_length=80)


@pytest.fixture(scope="module")
def pools() -> list[CandidatePool]:
    return [pool(row, language="vi" if row % 2 else "de") for row in range(8)]


def plain(model: Any, pools: list[CandidatePool], language: str | None = None) -> dict[str, float]:
    """From sentence-transformers' scores, over the candidates in one language."""
    scores, labels = [], []
    for each in pools:
        kept = [place for place, code in enumerate(each.passage_languages) if language in (None, code)]
        scores.append(model.predict([(each.query, each.passages[place]) for place in kept]))
        labels.append([each.labels[place] for place in kept])
    return ranking_scores(scores, labels).means


def test_figures_of_other_scores(model: Any, pools: list[CandidatePool]) -> None:
    metrics = RerankingEvaluator(pools, name="dev")(model)
    for name, value in plain(model, pools).items():
        assert metrics[f"dev_{name}"] == pytest.approx(value, rel=1e-9)
        assert metrics[f"dev_{name}_low"] <= value <= metrics[f"dev_{name}_high"]
    for language in ("de", "vi"):
        own = [each for each in pools if each.query_language == language]
        for name, value in plain(model, own, "en").items():
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
    mean, low, high = (100 * report.overall["mrr"][key] for key in ("mean", "low", "high"))
    assert lines[2] == f"mrr      {mean:5.1f}  ({low:.1f} to {high:.1f})"
    assert lines[5] == "8 queries" and lines[7].split()[-5:] == ["acc@1", "acc@10", "MRR", "MAP", "NDCG@10"]
    assert lines[8].startswith("de → ar") and len(lines) == 8 + 8


def test_examples_are_ranked_as_the_figures_are(model: Any, pools: list[CandidatePool]) -> None:
    none = pool(0, relevant=False)
    report = RerankingEvaluator([*pools, none], examples=9).report(model)
    shown = {(each["query"], each["language"]): each for each in report.as_dict()["examples"].values()}
    assert len(shown) == 9 and shown[none.query, "xx"]["rank"] is None
    ranks = [each["rank"] for each in shown.values() if each["rank"]]
    assert report.overall["mrr"]["mean"] == pytest.approx(sum(1 / rank for rank in ranks) / 8)
    for each in pools:
        scores = model.predict([(each.query, passage) for passage in each.passages])
        best = sorted(range(len(scores)), key=lambda place: -scores[place])[:3]
        found = shown[each.query, each.query_language]["passages"]
        assert [(row["text"], row["language"], row["relevant"]) for row in found] == [
            (each.passages[place], each.passage_languages[place], bool(each.labels[place])) for place in best
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
