"""What the data or the model lack is said before training, with the name of the term that needs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, IterableDataset
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_xling.data.phrasebook import parallel_phrases
from st_xling.losses import (
    CachedLoss,
    LanguageContrastiveLoss,
    RepresentationTranslationLoss,
    SemanticContrastiveLoss,
    TranslationRankingLoss,
)
from st_xling.training import build_loss, load_recipe, train
from st_xling.training.trainer import check_columns

Make = Callable[..., Any]
TINY = {"vocabulary": 400, "hidden_size": 32, "layers": 2}


def rows(*columns: str) -> Dataset:
    return Dataset.from_dict({name: ["Grüezi!", "Ade!"] for name in columns})


def test_a_term_names_itself_its_columns_and_what_there_is(make_model: Make) -> None:
    model = make_model()
    loss = SemanticContrastiveLoss(model).on(0, 1) + 0.1 * LanguageContrastiveLoss(model).on(0, 1, 3)
    expected = r"language_contrastive looks at text columns 0, 1, 3 .* lacks 3: the data have 3: source, target, other;"
    for term in (loss, CachedLoss(loss)):
        with pytest.raises(ValueError, match=expected):
            check_columns(term, rows("source", "source_language", "target", "other"))
        check_columns(term, rows("source", "target", "other", "another", "label"))


def test_labels_and_languages_are_no_text(make_model: Make) -> None:
    data = Dataset.from_dict({"source": ["a"], "label": [1.0], "source_language": ["de"]})
    with pytest.raises(ValueError, match="translation_ranking looks at text columns 0, 1 .*the data have 1: source"):
        check_columns(TranslationRankingLoss(make_model()), data)


@pytest.mark.parametrize(
    ("direction", "needed", "enough"),
    [("target", "target_language", "target"), ("source", "source_language", "source"), ("both", None, None)],
)
def test_languages(direction: Any, needed: str | None, enough: str | None, make_model: Make) -> None:
    loss = RepresentationTranslationLoss(make_model(), layers=1, direction=direction, languages=["de", "en"])
    wanted = needed or "source_language, target_language"
    with pytest.raises(ValueError, match=f"representation_translation needs the language of .* lacks {wanted}: "):
        check_columns(loss, rows("source", "target"))
    check_columns(loss, rows("source", "target", "source_language", "target_language"))
    if enough is not None:
        check_columns(loss, rows("source", "target", f"{enough}_language"))
    untold = RepresentationTranslationLoss(make_model(), layers=1, direction=direction)
    check_columns(untold, rows("source", "target"))


def test_what_cannot_be_known_passes(make_model: Make) -> None:
    model = make_model()
    stream = IterableDataset.from_generator(lambda: iter([{"source": "a"}]))
    check_columns(TranslationRankingLoss(model), stream)
    check_columns(MultipleNegativesRankingLoss(model), rows("source"))
    with pytest.raises(ValueError, match="the data have 1: source"):
        check_columns(TranslationRankingLoss(model), rows("source").to_iterable_dataset())


def short(name: str, **options: Any) -> Any:
    return load_recipe(
        name, tiny=True, overrides={"training.max_steps": 1, "training.per_device_train_batch_size": 8, **options}
    )


def test_a_recipes_columns_before_anything_is_trained(tmp_path: Path) -> None:
    recipe = short("langcl", **{"losses.language_contrastive.columns": [0, 1, 2]})
    with pytest.raises(ValueError, match="language_contrastive looks at text columns 0, 1, 2 .*2: source, target"):
        train(recipe, {"de": parallel_phrases("de", "en", size=20)}, tmp_path / "run", tiny=TINY)
    assert not (tmp_path / "run").exists()
    data = parallel_phrases("de", "en", size=20).remove_columns("target_language")
    with pytest.raises(ValueError, match="data set 'de' lacks target_language: it has source, target, source_language"):
        train(short("dap"), {"de": data}, tmp_path / "run", tiny=TINY)


def test_one_pair_has_no_others(tmp_path: Path) -> None:
    recipe = short("langcl", **{"training.per_device_train_batch_size": 1})
    with pytest.raises(ValueError, match="needs a sentence besides the pair: got one pair and nothing else; raise the"):
        train(recipe, {"de": parallel_phrases("de", "en", size=20)}, tmp_path / "run", tiny=TINY)


@pytest.mark.parametrize("name", ["dap", "tr-tlm", "amber"])
def test_a_tokenizer_without_a_mask_token(name: str, make_model: Make) -> None:
    model = make_model()
    model.tokenizer.mask_token = None
    with pytest.raises(
        ValueError, match=r"needs a mask token: .* has none; add one with tokenizer\.add_special_tokens"
    ):
        build_loss(load_recipe(name, tiny=True), model, token_ids=[{5}, {6}], languages=[["de"], ["en"]])


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_that_cannot_be(weight: float, make_model: Make) -> None:
    with pytest.raises(ValueError, match=r"losses\.translation_ranking\.weight must be a finite number, 0 or more"):
        load_recipe("dap", overrides={"losses.translation_ranking.weight": weight})
    with pytest.raises(ValueError, match="a loss weight must be a finite number, 0 or more"):
        weight * TranslationRankingLoss(make_model())
