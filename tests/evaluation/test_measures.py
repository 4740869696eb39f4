"""Ranking measures against plain loops, by language, with bootstrap intervals."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.evaluation import bootstrap_interval, ranking_by_relevant_language, ranking_matrix, ranking_scores
from st_xling.evaluation.measures import RankingScores, relevant_ranks

queries = st.lists(
    st.lists(st.tuples(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]), st.integers(0, 1)), max_size=14),
    min_size=1,
    max_size=5,
)


def by_definition(rows, ks):
    """Equations 5 to 11 of XPR, candidate by candidate."""
    totals = {**{f"acc@{k}": 0.0 for k in ks}, "mrr": 0.0, "map": 0.0, "ndcg@10": 0.0}
    judged = 0
    for row in rows:
        ranked = sorted(row, key=lambda candidate: (-candidate[0], candidate[1]))
        relevant = [label for _, label in ranked]
        if not sum(relevant):
            continue
        judged += 1
        for k in ks:
            totals[f"acc@{k}"] += 1.0 if sum(relevant[:k]) else 0.0
        totals["mrr"] += 1 / (relevant.index(1) + 1)
        precisions = [sum(relevant[:n]) / n * relevant[n - 1] for n in range(1, len(relevant) + 1)]
        totals["map"] += sum(precisions) / sum(relevant)
        gain = sum(label / np.log2(rank + 1) for rank, label in enumerate(relevant[:10], 1))
        best_order = sorted(relevant, reverse=True)
        best_gain = sum(label / np.log2(rank + 1) for rank, label in enumerate(best_order[:10], 1))
        totals["ndcg@10"] += gain / best_gain
    return {key: value / judged if judged else 0.0 for key, value in totals.items()}


@settings(max_examples=150, deadline=None)
@given(queries)
def test_equals_loops(rows):
    scores = [[score for score, _ in row] for row in rows]
    labels = [[label for _, label in row] for row in rows]
    results = ranking_scores(scores, labels, ks=(1, 2, 10))
    assert results.means == pytest.approx(by_definition(rows, (1, 2, 10)), rel=1e-9)
    assert results.n_queries == len(rows) and results.n_without_relevant == sum(not sum(row) for row in labels)


def test_chance_is_the_mean_of_all_orders():
    """100.0 acc@10 of ten candidates was printed without a word, and read as a result."""
    labels = [1, 1, 0, 0, 0, 0, 0]
    orders = list(permutations(range(7)))
    found = ranking_scores(orders, [labels] * len(orders), ks=(1, 3, 10))
    assert found.means == pytest.approx(found.chance, rel=1e-9)
    assert found.n_candidates == 7 and found.chance["acc@10"] == 1
    mixed = ranking_scores([[1, 2], [1, 2, 3, 4], [1]], [[1, 0], [1, 0, 0, 0], [0]])
    assert mixed.n_candidates == 3 and mixed.chance["acc@1"] == pytest.approx((1 / 2 + 1 / 4) / 2)


def test_edges():
    assert relevant_ranks([], []).tolist() == []
    assert relevant_ranks([-np.inf, np.inf], [1, 1]).tolist() == [1, 2]
    assert relevant_ranks(np.array([-1, -2], dtype=np.float16), [True, False]).tolist() == [1]
    for table, end in ((np.empty((0, 2)), [0.0, 0.0]), ([[0.25]], [0.25])):
        low, high = bootstrap_interval(table)
        assert low.tolist() == high.tolist() == end
    with pytest.raises(ValueError, match="samples of a bootstrap must be 1 or more: got 0"):
        bootstrap_interval([[1.0]], samples=0)


@pytest.mark.parametrize("queries", [400, 6400])
def test_width_falls_with_queries(queries: int) -> None:
    """A mean of n coins is off by 1.96 * sqrt(0.25 / n) nineteen times in twenty."""
    low, high = bootstrap_interval(np.arange(queries)[:, None] % 2)
    assert (high - low)[0] == pytest.approx(2 * 1.96 * (0.25 / queries) ** 0.5, rel=0.15)
    assert low[0] < 0.5 < high[0]


@pytest.mark.parametrize(
    "scores, labels, message",
    [
        ([], [], "got 0 and 0"),
        ([[1.0], [1.0]], [[1], [1, 0]], r"query 1: .*\[1.0\] and \[1, 0\]"),
        ([[1.0, np.nan]], [[1, 0]], "query 0: .*nan"),
        ([[1.0, 2.0]], [[1, 2]], "labels .*2"),
    ],
)
def test_errors(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        ranking_scores(scores, labels)


def test_matrix_ranks_only_the_candidates_of_its_column():
    """Cells against ranking_scores of what a loop picks."""
    random = np.random.default_rng(2)
    languages = np.array(["de", "en", "zh"])
    query_languages = languages[random.integers(3, size=20)]
    sizes = random.integers(1, 8, size=20)
    scores = [random.random(size) for size in sizes]
    labels = [random.integers(2, size=size) for size in sizes]
    passages = [languages[random.integers(3, size=size)] for size in sizes]
    expected: dict[str, dict[str, RankingScores]] = {}
    for row, column in product(languages, languages):
        picked = [
            (query_scores[codes == column], query_labels[codes == column])
            for language, query_scores, query_labels, codes in zip(query_languages, scores, labels, passages)
            if language == row and column in codes
        ]
        if picked:
            expected.setdefault(row, {})[column] = ranking_scores(*zip(*picked), ks=(1,))
    assert ranking_matrix(scores, labels, query_languages, passages, ks=(1,)) == expected
    assert sum(map(len, expected.values())) >= 6
    # One language may stand for all candidates of a query.
    short = ranking_matrix([[0.1, 0.9], [0.1]], [[0, 1], [1]], ["ar", "ar"], ["en", ["th"]])
    assert short["ar"] == {"en": ranking_scores([[0.1, 0.9]], [[0, 1]]), "th": ranking_scores([[0.1]], [[1]])}


def test_by_relevant_language_all_candidates_compete() -> None:
    """Within and across languages were each ranked alone, so that both were above the accuracy over all candidates: a
    wrong passage in the language of the query, which the paper is about, never competed."""
    scores = [[0.9, 0.8, 0.1], [0.9, 0.8, 0.1], [0.2, 0.8], [0.5], [0.5, 0.4]]
    labels = [[0, 1, 0], [1, 0, 0], [0, 1], [0], [1, 1]]
    query_languages = ["de", "de", "en", "de", "de"]
    passages: list[str | list[str]] = [["de", "en", "en"], ["de", "en", "en"], "de", ["de"], ["de", "en"]]
    cells = ranking_by_relevant_language(scores, labels, query_languages, passages, ks=(1,))
    # The last query has a relevant passage in each language: the other one is no competitor.
    in_german = ranking_scores([[0.9, 0.1], scores[1], [0.5], [0.5]], [[0, 0], labels[1], [0], [1]], ks=(1,))
    in_english = ranking_scores([scores[0], [0.8, 0.1], [0.4]], [labels[0], [0, 0], [1]], ks=(1,))
    assert cells == {
        "de": {"de": in_german, "en": in_english},
        "en": {"de": ranking_scores(scores[2:3], labels[2:3], ks=(1,))},
    }
    assert (in_english.n_queries, in_english.n_without_relevant, in_english.means["acc@1"]) == (3, 1, 0.5)
    assert ranking_matrix(scores, labels, query_languages, passages, ks=(1,))["de"]["en"].means["acc@1"] == 1.0
    with pytest.raises(ValueError, match="argument"):
        ranking_by_relevant_language(scores, labels, query_languages[:1], passages)


def test_plain_loops() -> None:
    """The same draws, one set and one measure at a time."""
    values = np.random.default_rng(3).random((17, 3))
    generator = np.random.default_rng(5)
    means = [[0.0] * 3 for _ in range(200)]
    for drawn, mean in zip(generator.integers(17, size=(200, 17)), means):
        for measure in range(3):
            mean[measure] = sum(float(values[row, measure]) for row in drawn) / 17
    low, high = bootstrap_interval(values, samples=200, seed=5)
    for measure in range(3):
        column = sorted(mean[measure] for mean in means)
        for end, share in ((low, 0.025), (high, 0.975)):
            position = share * 199
            below = int(position)
            expected = column[below] + (position - below) * (column[below + 1] - column[below])
            assert end[measure] == pytest.approx(expected, rel=1e-9)
