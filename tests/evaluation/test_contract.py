"""What every evaluator of an encoder does: keys, card, signature."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from st_xling import __version__
from st_xling.evaluation import BuccEvaluator, PrecisionEvaluator, TatoebaEvaluator, xsim_by_language
from tests.conftest import PAIRS
from tests.evaluation.table_model import TableModel

SOURCE, TARGET = [source for source, _ in PAIRS], [target for _, target in PAIRS]
GOLD = [(row, row) for row in range(len(PAIRS))]
EVALUATORS: dict[str, Callable[..., Any]] = {
    "tatoeba": lambda **options: TatoebaEvaluator({"de": (SOURCE, TARGET), "fr": (SOURCE[:2], TARGET[:2])}, **options),
    "precision": lambda **options: PrecisionEvaluator({"de-vi": (SOURCE, TARGET)}, **options),
    "bucc": lambda **options: BuccEvaluator({"de-en": (SOURCE, TARGET, GOLD)}, threshold=0.5, k=2, **options),
}
ROWS = {"tatoeba": ["deu", "fra", "all"], "precision": ["de-vi"], "bucc": ["de-en"]}


@pytest.fixture
def model() -> TableModel:
    random = np.random.default_rng(0)
    return TableModel({text: random.standard_normal(6) for text in [*SOURCE, *TARGET]})


@pytest.mark.parametrize("kind", EVALUATORS)
def test_keys_and_card(kind: str, model: TableModel) -> None:
    for name in ("", "dev", "mean"):
        evaluator = EVALUATORS[kind](name=name)
        metrics = evaluator(model, epoch=1, steps=5)
        assert evaluator(model) == metrics
        assert all(key.startswith(f"{name}_" if name else "") for key in metrics)
        assert evaluator.primary_metric in metrics and evaluator.greater_is_better
        assert model.card[evaluator] == metrics
        assert [row.label for row in evaluator.evaluate(model).rows] == ROWS[kind]


@pytest.mark.parametrize("kind", EVALUATORS)
def test_settings_reach_encoder_signature_and_card(kind: str, model: TableModel) -> None:
    evaluator = EVALUATORS[kind](batch_size=7, data_name="news")
    evaluator(model)
    assert all(options["batch_size"] == 7 for _, options in model.calls)
    body, at, digest = evaluator.signature.partition("@")
    assert body.startswith(f"{kind}|") and body.endswith("|data:news") and at
    assert len(digest.split("|")[0]) == 8 and digest.endswith(f"|st-xling:{__version__}")
    assert evaluator.get_config_dict() == {"signature": evaluator.signature}
    assert evaluator.description == kind.capitalize()
    evaluator.model_options = {"layer": "7"}
    assert "|layer:7|data:news@" in evaluator.signature


def test_repeated_sentences_are_counted(model: TableModel, caplog: pytest.LogCaptureFixture) -> None:
    """40 of 50 equal targets: an encoder that knows every translation is right for 11 of them; this is reported."""
    source = [f"Satz {row}." for row in range(50)]
    target = [f"Sentence {max(row, 39)}." for row in range(50)]
    vectors = {text: np.eye(50)[row] for column in (source, target) for row, text in reversed([*enumerate(column)])}
    pairs = {"deu": (source, target)}
    for make in (TatoebaEvaluator, PrecisionEvaluator):
        result = make(pairs, name="x").evaluate(TableModel(vectors))
        assert "x: repeated sentences" in caplog.text and "deu 39" in caplog.text
        assert "|repeats:39|" in result.signature and result.metrics["x_deu_repeats"] == 39
        assert result.rows[0].arguments == {"repeats": 39} and result.rows[0].values[0] == 11 / 50
        caplog.clear()
    report = xsim_by_language(TableModel(vectors), pairs, k=1, name="x")
    assert "deu 39" in caplog.text and "|repeats:39|" in report.signature
    assert report.metrics["deu"]["repeats"] == 39 and report.rows[0].arguments == {"repeats": 39}
    assert not any("repeats" in make().signature for make in EVALUATORS.values())
