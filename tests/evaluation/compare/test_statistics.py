"""Values, intervals, tests and orders against plain loops and every possible swap."""

from itertools import combinations, product

import numpy as np
import pytest

from st_xling.evaluation.compare.statistics import MEAN, ItemResults, Measure, compare_values, holm, rank_label

SHARE = Measure("share", ("hit",), tested=True)
F1 = Measure("F1", ("correct", "correct"), ("mined", "gold"), tested=True)


def f1(rows):
    correct, mined, gold = map(sum, zip(*rows))
    return 2 * correct / (mined + gold) if mined + gold else 0.0


def results_of(rows, names, items="1"):
    return ItemResults(items, dict(zip(names, zip(*rows))))


def test_nothing_found_is_zero():
    none = {"correct": [0, 0], "mined": [0, 0], "gold": [0, 0]}
    values, comparisons = compare_values(F1, {"a": {"deu": ItemResults("1", none)}}, samples=50)
    assert values == {"a": {"deu": (0, 0, 0, 2)}} and not comparisons


def test_the_test_is_that_of_all_swaps():
    """A ratio of sums, whose items are swapped whole: p of all 2^8 swaps, and about that of 255 random ones."""
    random = np.random.default_rng(0)
    is_gold = random.integers(2, size=8)
    rows = []
    for _ in range(2):
        is_mined = random.integers(2, size=8)
        rows.append([(int(mined and gold), int(mined), int(gold)) for mined, gold in zip(is_mined, is_gold)])
    first, second = rows
    gap = abs(f1(first) - f1(second))
    extreme = 0
    for swaps in product((0, 1), repeat=8):
        items = [(b, a) if swap else (a, b) for swap, a, b in zip(swaps, first, second)]
        swapped_first, swapped_second = zip(*items)
        extreme += abs(f1(swapped_first) - f1(swapped_second)) >= gap - 1e-12
    names = ("correct", "mined", "gold")
    cells = {"a": {"deu": results_of(first, names)}, "b": {"deu": results_of(second, names)}}
    (test,) = compare_values(F1, cells)[1]
    assert test["p"] == pytest.approx(extreme / 2**8, rel=1e-9)
    (drawn,) = compare_values(F1, cells, swaps=255)[1]
    assert drawn["p"] == pytest.approx(extreme / 2**8, abs=0.1)
    assert test["difference"] == pytest.approx(f1(first) - f1(second))
    assert test["low"] <= test["difference"] <= test["high"]
    (back,) = compare_values(F1, {"b": cells["b"], "a": cells["a"]})[1]
    assert (back["difference"], back["p"]) == (-test["difference"], test["p"])


def test_the_same_and_one_item_are_no_evidence():
    """Swapping the one item that differs turns the difference around, which is then as large."""
    hits = {"deu": ItemResults("1", {"hit": [1, 0, 1]}), "fra": ItemResults("2", {"hit": [1, 1, 1]})}
    for test in compare_values(SHARE, {"a": hits, "b": hits})[1]:
        assert (test["difference"], test["low"], test["high"], test["p"]) == (0, 0, 0, 1)
    one_hit = {"deu": ItemResults("1", {"hit": [0, 1, 0]})}
    two_hits = {"deu": ItemResults("1", {"hit": [1, 1, 0]})}
    (test,) = compare_values(SHARE, {"a": one_hit, "b": two_hits}, samples=50)[1]
    assert test["difference"] == pytest.approx(-1 / 3) and test["p"] == 1


def test_false_findings_are_as_rare_as_promised():
    random = np.random.default_rng(1)
    p_values = []
    for _ in range(200):
        cells = {model: {"deu": ItemResults("1", {"hit": random.integers(2, size=60)})} for model in "ab"}
        p_values.append(compare_values(SHARE, cells, samples=10, swaps=400)[1][0]["p"])
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.09


def test_the_mean_resamples_translations_together():
    """Of the same questions in two languages: an interval as wide as of one language, not as of twice the items."""
    hits = np.random.default_rng(2).integers(2, size=200)
    widths = []
    for other in ("1", "2"):
        cells = {"a": {"deu": ItemResults("1", {"hit": hits}), "fra": ItemResults(other, {"hit": hits})}}
        values = compare_values(SHARE, cells, samples=4000)[0]["a"]
        assert values[MEAN][0] == pytest.approx(hits.mean()) and values[MEAN][3] == 400
        widths.append([values[label][2] - values[label][1] for label in ("deu", MEAN)])
    assert widths[0][1] == pytest.approx(widths[0][0])
    assert widths[1][1] == pytest.approx(widths[1][0] / np.sqrt(2), rel=0.1)


def test_a_real_difference_is_found_and_the_seed_decides_the_rest():
    good = {"deu": ItemResults("a1", {"hit": np.arange(200) % 20 > 0})}
    bad = {"deu": ItemResults("a1", {"hit": np.arange(200) % 2 > 0})}
    tests = [compare_values(SHARE, {"a": good, "b": bad}, seed=seed, swaps=1000)[1][0] for seed in (0, 0, 1)]
    assert tests[0] == tests[1] != tests[2]
    assert tests[0]["p"] == 1 / 1001 and tests[0]["low"] > 0


def test_holm():
    p_values = np.random.default_rng(3).random(20) ** 3
    order = sorted(range(20), key=lambda index: p_values[index])
    expected = [0.0] * 20
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (20 - rank) * p_values[index]))
        expected[index] = highest
    assert holm(p_values) == pytest.approx(expected)
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("better", "text"),
    [
        ("", "not distinguishable"),
        ("ac", "not distinguishable"),
        ("ab ac", "a > b = c"),
        ("ac bc", "a = b > c"),
        ("ab ac bc", "a > b > c"),
    ],
)
def test_the_order_that_tests_allow(better, text):
    for sign in (1, -1):
        means = {model: 10.0 - sign * number for number, model in enumerate("abc")}
        assert order(*better.split(), higher=sign == 1, **means) == text
    # A bias against a language is not better than one for it.
    below = {"a": -40.0, "b": 30.0, "c": 50.0}
    assert order("ab", "ac", "bc", **below) == "not distinguishable"


def order(*differ: str, higher: bool = False, **means: float) -> str:
    tests = [
        {
            "label": "all",
            "first": first,
            "second": second,
            "difference": means[first] - means[second],
            "significant": first + second in differ,
        }
        for first, second in combinations(means, 2)
    ]
    values = {name: {"all": [mean]} for name, mean in means.items()}
    return rank_label({"comparisons": tests, "higher": higher, "values": values}, "all")["text"]
