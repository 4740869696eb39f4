"""What every evaluator of an encoder does: keys, card, signature."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.model_card import generate_model_card
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_xling import __version__
from st_xling.evaluation import BuccEvaluator, PrecisionEvaluator, TatoebaEvaluator, xsim_by_language
from st_xling.evaluation.base import ModelUse
from st_xling.evaluation.results import SavedResults
from st_xling.mining import mine, xsim
from st_xling.models.normalization import Centering, apply_centering
from st_xling.utils.cosines import retrieval_accuracy
from tests.conftest import PAIRS
from tests.evaluation.table_model import TableModel

SOURCE = [source for source, _ in PAIRS]
TARGET = [target for _, target in PAIRS]
GOLD = [(row, row) for row in range(len(PAIRS))]
EVALUATORS: dict[str, Callable[..., Any]] = {
    "tatoeba": lambda **options: TatoebaEvaluator({"de": (SOURCE, TARGET), "fr": (SOURCE[:2], TARGET[:2])}, **options),
    "precision": lambda **options: PrecisionEvaluator({"de-vi": (SOURCE, TARGET)}, **options),
    "bucc": lambda **options: BuccEvaluator({"de-en": (SOURCE, TARGET, GOLD)}, threshold=0.5, k=2, **options),
}
TITLES = {"tatoeba": "Translation Retrieval", "precision": "Translation Matching", "bucc": "Bitext Mining"}
ROWS = {"tatoeba": ["deu", "fra", "all"], "precision": ["de-vi"], "bucc": ["de-en"]}


@pytest.fixture
def model() -> TableModel:
    random = np.random.default_rng(0)
    return TableModel({text: random.standard_normal(6) for text in [*SOURCE, *TARGET]})


@pytest.mark.parametrize("kind", EVALUATORS)
def test_keys_and_card(kind: str, model: TableModel) -> None:
    for name in ("", "dev", "mean"):
        evaluator = EVALUATORS[kind](name=name)
        prefix = f"{name}_" if name else ""
        metrics = evaluator(model, epoch=1, steps=5)
        assert evaluator(model) == metrics
        assert all(key.startswith(prefix) for key in metrics)
        assert evaluator.primary_metric in metrics and evaluator.greater_is_better
        assert list(model.eval_results_dict.values()) == [metrics]
        model.eval_results_dict.clear()
        assert [row.label for row in evaluator.evaluate(model).rows] == ROWS[kind]


@pytest.mark.parametrize("kind", EVALUATORS)
def test_data_are_never_named_after_the_task(kind: str, model: TableModel) -> None:
    """Own sentences were signed `data:bucc@…`, and shown on the card, ours and sentence-transformers', as BUCC's."""
    for options, expected in (({}, "unnamed"), ({"data_name": "my news"}, "my news")):
        evaluator = EVALUATORS[kind](**options)
        metrics = evaluator(model)
        assert evaluator(model) == metrics and all(key.startswith(f"{kind}_") for key in metrics)
        result = evaluator.evaluate(model)
        assert f"|data:{expected}@" in result.signature
        assert SavedResults.of(kind, result, "").data_name == expected
        ((listed, shown),) = model.eval_results_dict.items()
        assert listed.get_config_dict() == {"signature": result.signature}
        assert listed.name == expected and shown[listed.primary_metric] == metrics[evaluator.primary_metric]
        model.eval_results_dict.clear()


def test_sentence_transformers_card_names_the_data(make_model: Any) -> None:
    encoder = make_model()
    BuccEvaluator({"de-en": (SOURCE, TARGET, GOLD)}, threshold=0.5, k=2, data_name="my-news")(encoder)
    card = generate_model_card(encoder)
    assert "* Dataset: `my-news`" in card and "type: my-news" in card and "name: my news" in card
    assert "type: bitext-mining" in card and "### Bitext Mining" in card.replace("#### ", "### ")
    assert "bucc`" not in card.lower() and "type: bucc" not in card and "name: Bucc" not in card


@pytest.mark.parametrize("kind", EVALUATORS)
def test_settings_reach_encoder_signature_and_card(kind: str, model: TableModel) -> None:
    evaluator = EVALUATORS[kind](batch_size=7, data_name="news")
    evaluator(model)
    assert all(options["batch_size"] == 7 for _, options in model.calls)
    body, at, digest = evaluator.identity.partition("@")
    assert body.startswith(f"{kind}|") and body.endswith("|data:news") and at
    assert len(digest.split("|")[0]) == 8 and digest.endswith(f"|st-xling:{__version__}")
    assert evaluator.get_config_dict() == {"signature": evaluator.identity}
    assert evaluator.description == TITLES[kind]
    assert "|layer:7|data:news@" in evaluator.sign(ModelUse({"layer": "7"}))


@pytest.mark.parametrize("kind", EVALUATORS)
def test_one_evaluator_evaluates_two_models(kind: str, make_model: Any) -> None:
    """A result, a card or a resumed run could have the signature of another model, the last that was evaluated.

    Each result and each card of sentence-transformers has its own model's; the identity, by which a run that is resumed
    knows its development set, does not change.
    """
    evaluator = EVALUATORS[kind](data_name="news")
    identity = evaluator.identity
    plain = make_model().eval()
    prompted = make_model().eval()
    prompted.prompts["query"] = "query: "
    prompted.default_prompt_name = "query"
    means = {"de": torch.linspace(-0.3, 0.3, 16)}  # French, Vietnamese and English are centered by the joint mean
    centered = apply_centering(plain, Centering(torch.zeros(16), means))
    models = {"": plain, "|prompt:query: ": prompted, "|center:joint": centered}
    for _ in range(2):
        for use, model in models.items():
            signature = evaluator.evaluate(model).signature
            assert signature == identity.replace("|data:", f"{use}|data:")
            evaluator(model, epoch=1, steps=5)
            assert evaluator.identity == identity
    for use, model in models.items():
        card = generate_model_card(model)
        assert card.count('"signature"') == 1 and identity.replace("|data:", f"{use}|data:") in card


@pytest.mark.parametrize("kind", EVALUATORS)
def test_one_evaluator_gives_each_model_its_own_results(kind: str, make_model: Any) -> None:
    """Nothing of a model may stay in the evaluator: figures of a later model would be mixed with those of the first."""
    models = [make_model(seed=seed).eval() for seed in (0, 1)]
    expected = [EVALUATORS[kind](data_name="news").evaluate(model) for model in models]
    assert expected[0].metrics != expected[1].metrics
    evaluator = EVALUATORS[kind](data_name="news")
    for model, result in [*zip(models, expected)] * 2:
        assert evaluator.evaluate(model) == result


def test_repeated_sentences_are_counted(model: TableModel, caplog: pytest.LogCaptureFixture) -> None:
    """40 of 50 equal targets: an encoder that knows every translation is right for 11 of them; this is reported."""
    source = [f"Satz {row}." for row in range(50)]
    target = [f"Sentence {max(row, 39)}." for row in range(50)]
    vectors: dict[str, np.ndarray] = {}
    for column in (source, target):
        for row, text in enumerate(column):
            vectors.setdefault(text, np.eye(50)[row])  # a repeated sentence has the vector of its first row
    pairs = {"deu": (source, target)}
    for make in (TatoebaEvaluator, PrecisionEvaluator):
        result = make(pairs, name="x").evaluate(TableModel(vectors))
        assert "x: repeated sentences" in caplog.text and "deu 39" in caplog.text
        assert "|repeats:39|" in result.signature and result.metrics["x_deu_repeats"] == 39
        assert result.rows[0].arguments == {"sentences": 50, "repeats": 39} and result.rows[0].values[0] == 11 / 50
        caplog.clear()
    report = xsim_by_language(TableModel(vectors), pairs, k=1, name="x")
    assert "deu 39" in caplog.text and "|repeats:39|" in report.signature
    assert report.metrics["deu"]["repeats"] == 39 and report.rows[0].arguments == {"sentences": 50, "repeats": 39}
    assert not any("repeats" in make().identity for make in EVALUATORS.values())


def test_each_language_less_its_own_mean(make_model: Any) -> None:
    """Of a model centered by language; the figures are those of vectors encoded by the language's route."""
    means = {"de": torch.linspace(-0.3, 0.3, 16), "eng": torch.linspace(0.3, -0.2, 16)}
    model = apply_centering(make_model().eval(), Centering(torch.zeros(16), means))
    source = model.encode(SOURCE, task="de")
    target = model.encode(TARGET, task="eng")
    assert not np.allclose(source, model.encode(SOURCE), atol=1e-3)
    metrics = TatoebaEvaluator({"de": (SOURCE, TARGET)}, name="")(model)
    accuracies = [metrics["deu_to_en_accuracy"], metrics["deu_from_en_accuracy"]]
    assert accuracies == list(retrieval_accuracy(source, target))
    errors = xsim_by_language(model, {"deu": (SOURCE, TARGET)}, k=2).metrics["deu"]
    assert list(errors.values()) == [xsim(source, target, k=2).error_rate, xsim(target, source, k=2).error_rate]
    scores = np.sort(mine(source, target, k=2).scores)
    limit = float(scores[len(scores) // 2 - 1 : len(scores) // 2 + 1].mean())
    evaluator = BuccEvaluator({"de-en": (SOURCE, TARGET, GOLD)}, threshold=limit, k=2, name="")
    assert evaluator(model)["de-en_n_mined"] == np.sum(scores >= limit)
    assert "center:" not in evaluator.evaluate(model).signature
    plain = np.sort(mine(model.encode(SOURCE), model.encode(TARGET), k=2).scores)
    assert plain.tolist() != scores.tolist()  # the joint mean alone would show


def test_in_sentence_transformers_trainer(make_model: Callable[..., Any], tmp_path: Path) -> None:
    """Every metric is logged, and the card has the last ones."""
    model = make_model()
    evaluator = EVALUATORS["bucc"](name="dev")
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=2,
            eval_strategy="steps",
            eval_steps=1,
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=Dataset.from_dict({"anchor": TARGET, "positive": SOURCE}),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "eval_dev_f1" in entry]
    assert len(logged) == 2 and all(0 <= entry["eval_dev_f1"] <= 1 for entry in logged)
    assert logged[0]["eval_dev_de-en_n_gold"] == len(GOLD)
    (entry,) = model.model_card_data.eval_results_dict
    assert type(entry) is type(evaluator) and entry.name == "dev"
