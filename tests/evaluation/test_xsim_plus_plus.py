"""xsim++: the loops, ties, sentences without hard near-translations, by language, errors."""

import numpy as np
import pytest
import torch

from st_xling.data import hard_translations
from st_xling.evaluation import xsim_by_language, xsim_plus_plus
from st_xling.mining import xsim
from tests import reference_mining as reference
from tests.evaluation.table_model import TableModel

KINDS = ("causality", "entity", "number")


@pytest.mark.parametrize(("seed", "margin"), [(3, "ratio"), (1, "distance")])
def test_equals_loops(seed: int, margin: str) -> None:
    random = np.random.default_rng(seed)
    target = random.standard_normal((12, 6)) + 0.5
    source = target + 0.7 * random.standard_normal((12, 6))
    made_from = [0, 0, 1, 4, 4, 7, 9, 11]
    hard = target[made_from] + 0.3 * random.standard_normal((8, 6))
    categories = [KINDS[row % 3] for row in range(8)]
    result = xsim_plus_plus(source, target, torch.tensor(hard), made_from, categories, k=3, margin=margin)
    pairs = reference.mine(source, np.concatenate([target, hard]), k=3, margin=margin, retrieval="forward")
    best = {i: j for _, i, j in pairs}
    winners = []
    for row in range(12):
        winner = best.get(row, -1)
        if winner == row:
            winners.append("")
        elif winner >= 12 and made_from[winner - 12] == row:
            winners.append(categories[winner - 12])
        else:
            winners.append("misaligned")
    assert result.winners == tuple(winners) and set(winners) & set(KINDS)
    assert result.error_rate == sum(map(bool, winners)) / 12
    for category in KINDS:
        rows_with_category = {row for row, hard_category in zip(made_from, categories) if hard_category == category}
        assert result.by_category[category] == winners.count(category) / len(rows_with_category)
    assert result.by_category["misaligned"] == winners.count("misaligned") / 12


def test_a_translation_wins_ties_and_none_is_plain_xsim() -> None:
    vectors = np.eye(4) + 0.1
    tied = xsim_plus_plus(vectors, vectors, vectors, range(4), ["number"] * 4, k=2)
    assert (tied.errors, tied.winners, tied.with_hard) == (0, ("",) * 4, {"number": 4})
    source = vectors[[0, 1, 3, 2]]
    plain = xsim_plus_plus(source, vectors, np.empty((0, 4)), [], [], k=2)
    assert plain.errors == xsim(source, vectors, k=2).errors == 2 and plain.by_category == {"misaligned": 0.5}


def test_by_language() -> None:
    """A model for which what was made from a sentence is nearer than the sentence."""
    german = ["Es ist kalt.", "Ja."]
    english = ["It is cold.", "Yes."]
    hard = hard_translations(english, seed=5)
    vectors = np.eye(3)
    table = {german[0]: vectors[0], german[1]: vectors[1], english[0]: vectors[0] + vectors[2], english[1]: vectors[1]}
    table |= {sentence.text: vectors[0] for sentence in hard}
    report = xsim_by_language(TableModel(table), {"deu": (german, english)}, k=1, plus_plus=True, seed=5)
    plain = xsim_by_language(TableModel(table), {"deu": (german, english)}, k=1).metrics
    rates = report.metrics
    assert plain["deu"].items() <= rates["deu"].items()
    none = dict.fromkeys(KINDS[1:])
    expected = {"error": 0.5, "categories": {"causality": 1.0, **none, "misaligned": 0.0}}
    assert rates["deu"]["to_en_plus_plus"] == rates["all"]["to_en_plus_plus"] == expected
    head, *_, last = report.table().splitlines()
    assert "xsim++ to English" in head and last.split()[-5:] == ["50.00", "100.00", "-", "-", "0.00"]
    assert "|hard:" in report.signature and "|seed:5|" in report.signature
