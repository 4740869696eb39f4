"""Translation retrieval: Tatoeba's accuracy and P@N: keys, averages, signatures, tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from st_xling.evaluation import TATOEBA_GROUPS, PrecisionEvaluator, TatoebaEvaluator, precision_at
from st_xling.evaluation.tatoeba import DIRECTIONS
from st_xling.models.normalization import Centering, apply_centering
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
    languages = {"ara": 1.0, "deu": 3 / 4, "tha": 1.0}
    expected = {f"tatoeba_{code}_{way}_en_accuracy": languages[code] for code in languages for way in ("to", "from")}
    means = dict.fromkeys(("tatoeba_to_en_accuracy", "tatoeba_from_en_accuracy", "tatoeba_mean_accuracy"), 11 / 12)
    assert metrics == pytest.approx({**expected, **means})


def test_directions_are_not_mixed_up():
    """Both German sentences lie nearest English 0; English 1 still lies nearest German 1."""
    table = {"a": [1, 0], "b": [0.9, 0.5], "x": [1, 0.1], "y": [0, 1]}
    metrics = TatoebaEvaluator({"de": (["a", "b"], ["x", "y"])})(TableModel(table))
    assert metrics["tatoeba_deu_to_en_accuracy"] == 0.5
    assert metrics["tatoeba_deu_from_en_accuracy"] == 1.0
    assert metrics["tatoeba_mean_accuracy"] == 0.75


def test_signature_follows_texts_order_and_truncation():
    evaluator = TatoebaEvaluator(PAIRS, name="mini")
    body, digest = evaluator.signature.split("@")
    assert body == "tatoeba|languages:ara,deu,tha|direction:both|ties:index|data:mini"
    assert len(digest.split("|")[0]) == 8 and "|st-xling:" in digest
    assert TatoebaEvaluator(dict(reversed(PAIRS.items())), name="mini").signature == evaluator.signature
    swapped = {**PAIRS, "ara": (PAIRS["ara"][0][::-1], PAIRS["ara"][1])}
    assert TatoebaEvaluator(swapped, name="mini").signature != evaluator.signature
    whole = {language: (["a", "b"], ["a", "b"]) for language in TATOEBA_GROUPS["xnli14"]}
    evaluator = TatoebaEvaluator(whole)
    assert "|languages:xnli14|" in evaluator.signature
    metrics = evaluator(TableModel(perfect(whole)))
    assert metrics["tatoeba_xnli14_mean_accuracy"] == 1.0 and "tatoeba_xtreme36_mean_accuracy" not in metrics


@pytest.mark.parametrize(
    "pairs, message",
    [
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


CHINESE = {"zh-vi": (["你好。", "谢谢。", "再见。"], ["Xin chào.", "Cảm ơn.", "Tạm biệt."])}


def vectors(sides):
    return {text: vector for texts, own in zip(CHINESE["zh-vi"], sides) for text, vector in zip(texts, own)}


def test_faults_of_pairs() -> None:
    with pytest.raises(ValueError, match="1 or more: got \\(\\)"):
        PrecisionEvaluator(CHINESE, at=())
    with pytest.raises(ValueError, match="zh-vi: queries must hold finite vectors .* only zeros in row 1"):
        PrecisionEvaluator(CHINESE)(TableModel(vectors([np.diag([1.0, 0, 1]), np.eye(3)])))


def test_figures_by_hand() -> None:
    """Source 0 and 1 are swapped, 2 is right: P@1 is 1/3 both ways, P@2 is 1."""
    source = np.array([[0.5, 1, 0], [1, 0.5, 0], [0, 0, 1]])
    evaluator = PrecisionEvaluator({**CHINESE, "zh-en": (ENGLISH[:3], CHINESE["zh-vi"][1])}, at=(1, 2), name="")
    table = vectors([source, np.eye(3)]) | dict(zip(ENGLISH, np.eye(3)))
    metrics = evaluator(TableModel(table))
    assert metrics["zh-vi_source_to_target_p@1"] == metrics["zh-vi_mean_p@1"] == pytest.approx(1 / 3)
    assert metrics["zh-vi_mean_p@2"] == 1.0
    assert metrics["mean_p@1"] == metrics["target_to_source_p@1"] == pytest.approx(2 / 3)


def test_evaluates_a_model(make_model) -> None:
    evaluator = PrecisionEvaluator(CHINESE, name="dev")
    model = make_model()
    metrics = evaluator(model, epoch=1)
    assert evaluator.primary_metric == "dev_mean_p@1" and 0 <= metrics["dev_mean_p@1"] <= metrics["dev_mean_p@5"] == 1
    source, target = (model.encode(side) for side in CHINESE["zh-vi"])
    assert metrics["dev_zh-vi_source_to_target_p@1"] == precision_at(source, target)[0][1]
    two = PrecisionEvaluator({**CHINESE, "zh-en": CHINESE["zh-vi"]}, at=(1, 2)).evaluate(model)
    assert two.rows[-1].values[:2] == [two.metrics[f"precision_{way}_p@1"] for way in DIRECTIONS[:2]]
    assert evaluator.signature.startswith("precision|at:1,5|pairs:zh-vi|direction:both|ties:index|data:dev@")
    other = PrecisionEvaluator({"zh-vi": (CHINESE["zh-vi"][1], CHINESE["zh-vi"][0])}, name="dev")
    assert other.signature != evaluator.signature


def test_means_of_languages_are_found_in_any_spelling(make_model, caplog: pytest.LogCaptureFixture) -> None:
    """And text of a language that has none is told of, and signed."""
    means = {"zho": torch.linspace(-0.3, 0.3, 16), "vie": torch.linspace(0.3, -0.2, 16)}
    model = apply_centering(make_model().eval(), Centering(torch.zeros(16), means))
    evaluator = PrecisionEvaluator(CHINESE, name="dev")
    found = evaluator(model)
    source, target = (model.encode(side, task=task) for side, task in zip(CHINESE["zh-vi"], ("zho", "vie")))
    assert found["dev_zh-vi_source_to_target_p@1"] == precision_at(source, target)[0][1]
    assert "center:joint" not in evaluator.signature and not caplog.text
    other = PrecisionEvaluator({"th-vi": CHINESE["zh-vi"]}, name="dev")
    other(model)
    assert "|center:joint|" in other.signature and "centered by their joint mean" in caplog.text
