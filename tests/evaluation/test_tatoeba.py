"""The Tatoeba evaluator: keys, averages, one encoding per text, signature, table."""

import numpy as np
import pytest
from datasets import Dataset

from st_xling.evaluation import TATOEBA_GROUPS, PrecisionEvaluator, TatoebaEvaluator
from st_xling.utils.tables import Row
from tests.evaluation.table_model import TableModel

ENGLISH = ["The cat sleeps.", "I drink tea.", "Where is the station?", "Snow fell today. ❄"]
PAIRS = {
    "de": (["Die Katze schläft.", "Ich trinke Tee.", "Wo ist der Bahnhof?", "Heute fiel Schnee. ❄"], ENGLISH),
    "th": (["แมวนอนหลับ", "ฉันดื่มชา", "สถานีอยู่ที่ไหน", "วันนี้หิมะตก ❄"], ENGLISH),
    "ara": (["القطة نائمة.", "أشرب الشاي.", "أين المحطة؟"], ENGLISH[:3]),
}


def perfect(pairs):
    """Every row i of every language is basis vector i."""
    return {text: np.eye(6)[i] for sides in pairs.values() for side in sides for i, text in enumerate(side)}


def test_keys_values_and_averages():
    table = perfect(PAIRS)
    # German row 1 now finds English row 0, and English row 1 finds nothing near; English row 0 takes the first twin.
    table["Ich trinke Tee."] = table["The cat sleeps."]
    evaluator = TatoebaEvaluator(PAIRS)
    metrics = evaluator(TableModel(table))
    f1 = {key: metrics.pop(key) for key in [*metrics] if key.endswith("_weighted_f1")}
    assert f1["tatoeba_deu_to_en_weighted_f1"] == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)
    assert len(f1) == 6 and f1["tatoeba_tha_from_en_weighted_f1"] == 1.0
    assert metrics == pytest.approx(
        {
            "tatoeba_ara_to_en_accuracy": 1.0,
            "tatoeba_ara_from_en_accuracy": 1.0,
            "tatoeba_deu_to_en_accuracy": 3 / 4,
            "tatoeba_deu_from_en_accuracy": 3 / 4,
            "tatoeba_tha_to_en_accuracy": 1.0,
            "tatoeba_tha_from_en_accuracy": 1.0,
            "tatoeba_to_en_accuracy": 11 / 12,
            "tatoeba_from_en_accuracy": 11 / 12,
            "tatoeba_mean_accuracy": 11 / 12,
        }
    )
    assert evaluator.primary_metric == "tatoeba_mean_accuracy"
    assert evaluator.greater_is_better


def test_directions_are_not_mixed_up():
    """Both German sentences lie nearest English 0; English 1 still lies nearest German 1."""
    table = {"a": [1, 0], "b": [0.9, 0.5], "x": [1, 0.1], "y": [0, 1]}
    metrics = TatoebaEvaluator({"de": (["a", "b"], ["x", "y"])})(TableModel(table))
    assert metrics["tatoeba_deu_to_en_accuracy"] == 0.5
    assert metrics["tatoeba_deu_from_en_accuracy"] == 1.0
    assert metrics["tatoeba_mean_accuracy"] == 0.75


def test_equal_texts_are_found_at_the_first_index():
    """Four pairs, two texts: indices 1 and 3 are copies and can never be hits."""
    pairs = {"deu": (["Ich trinke Tee.", "Ich trinke Tee.", "Wo ist der Bahnhof?", "Wo ist der Bahnhof?"],) * 2}
    assert TatoebaEvaluator(pairs)(TableModel(perfect(PAIRS)))["tatoeba_mean_accuracy"] == 0.5


def test_groups_are_reported_only_when_whole():
    pairs = {language: (["a", "b"], ["a", "b"]) for language in TATOEBA_GROUPS["xnli14"]}
    metrics = TatoebaEvaluator(pairs)(TableModel(perfect(pairs)))
    assert metrics["tatoeba_xnli14_mean_accuracy"] == 1.0
    assert "tatoeba_xtreme36_mean_accuracy" not in metrics


def test_datasets_and_lists_are_the_same():
    datasets = {code: Dataset.from_dict({"source": s, "target": t}) for code, (s, t) in PAIRS.items()}
    assert TatoebaEvaluator(datasets).pairs == TatoebaEvaluator(PAIRS).pairs
    code = next(iter(PAIRS))
    for evaluator in (TatoebaEvaluator, PrecisionEvaluator):
        expected = {"pairs": tuple(map(list, PAIRS[code]))}
        assert evaluator(datasets[code]).pairs == evaluator(*PAIRS[code]).pairs == expected


def test_signature_follows_texts_order_and_truncation():
    evaluator = TatoebaEvaluator(PAIRS, name="mini")
    body, digest = evaluator.signature.split("@")
    assert body == "tatoeba|languages:ara,deu,tha|direction:both|ties:index|data:mini"
    assert len(digest.split("|")[0]) == 8 and "|st-xling:" in digest
    assert TatoebaEvaluator(dict(reversed(PAIRS.items())), name="mini").signature == evaluator.signature
    swapped = {**PAIRS, "ara": (PAIRS["ara"][0][::-1], PAIRS["ara"][1])}
    assert TatoebaEvaluator(swapped, name="mini").signature != evaluator.signature
    assert "|dim:8|" in TatoebaEvaluator(PAIRS, truncate_dim=8).signature
    whole = {language: (["a"], ["b"]) for language in TATOEBA_GROUPS["full28"]}
    assert "|languages:full28|" in TatoebaEvaluator(whole).signature


@pytest.mark.parametrize(
    "pairs, message",
    [
        ({}, "got none"),
        ({"de": (["a", "b"], ["c"]), "fr": ([], [])}, "de has 2 and 1 texts.*fr has 0"),
        ({"de": (["a"], ["b"]), "deu": (["a"], ["b"])}, "both mean deu"),
    ],
)
def test_errors(pairs, message):
    with pytest.raises(ValueError, match=message):
        TatoebaEvaluator(pairs)


def test_table_and_rows():
    result = TatoebaEvaluator(PAIRS).evaluate(TableModel(perfect(PAIRS)))
    assert result.table().splitlines() == [
        "language  to English  from English   mean",
        "ara            100.0         100.0  100.0",
        "deu            100.0         100.0  100.0",
        "tha            100.0         100.0  100.0",
        "-----------------------------------------",
        "all            100.0         100.0  100.0",
    ]
    assert result.rows[-1] == Row("all", [1.0, 1.0, 1.0], average=True)
