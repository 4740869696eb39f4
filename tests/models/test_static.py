"""The static encoder: stock parts, the same wherever it is built, and vectors that depend on the text alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import TatoebaEvaluator
from st_xling.models import static_encoder, train_static_tokenizer
from st_xling.models.encoding import encode
from st_xling.training import load_recipe, train
from tests.models.test_tiny import TEXTS

SIZES: dict[str, Any] = {"vocabulary": 300, "dimensions": 16}


def pieces(tokenizer: Any, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


def test_decided_by_text_and_seed() -> None:
    """A run that is started again from the same seed gives the same model, and draws from nobody's generator."""
    state = torch.get_rng_state()
    first, same, other = (static_encoder(iter(TEXTS), seed=seed, **SIZES) for seed in (3, 3, 4))
    assert torch.equal(state, torch.get_rng_state())
    assert first.tokenizer.to_str() == same.tokenizer.to_str() == other.tokenizer.to_str()
    assert np.array_equal(first.encode(TEXTS), same.encode(TEXTS))
    assert not np.array_equal(first.encode(TEXTS), other.encode(TEXTS))


def test_words_have_one_piece_wherever_they_stand() -> None:
    """Else a word in quotation marks has another vector than in the middle of a sentence."""
    tokenizer = train_static_tokenizer(TEXTS, vocabulary=600)
    assert pieces(tokenizer, "Hund") == pieces(tokenizer, "hund") == ["▁hund"]
    assert pieces(tokenizer, "«Hund» der-Hund") == ["[UNK]", "▁hund", "[UNK]", "▁der", "[UNK]", "▁hund"]
    assert pieces(tokenizer, "gặp") != pieces(tokenizer, "gap")
    # No mark divides a text without spaces in two vocabularies.
    assert not any(
        "▁" in piece for text in ("我买了三本旧书", "แมวดำ", "ひらがな") for piece in pieces(tokenizer, text)
    )
    for text in TEXTS:
        assert "[UNK]" not in pieces(tokenizer, text)


def test_a_text_has_one_vector_whatever_else_is_encoded(tmp_path: Path) -> None:
    """sentence-transformers' static embeddings share the tokenizer that they are given: once another model had encoded
    with it, padding was averaged into short texts, and long ones were cut."""
    model = static_encoder(TEXTS, **SIZES)
    long = " ".join(TEXTS) * 20
    alone = np.concatenate([model.encode([text]) for text in ("Hund", long, "")])
    other = static_encoder(TEXTS, **SIZES)
    other.tokenizer.enable_padding(length=64)
    other.tokenizer.enable_truncation(4)
    other.encode(["Der Hund", long])
    assert np.allclose(model.encode(["Hund", long, ""]), alone, atol=1e-6)
    assert np.allclose(encode(model, ["", long, "Hund"])[2], alone[0], atol=1e-6)
    assert not alone[2].any(), "a text without tokens has the zero vector"
    model.save_pretrained(str(tmp_path))
    assert np.allclose(SentenceTransformer(str(tmp_path), device="cpu").encode(["Hund", long, ""]), alone, atol=1e-6)


def test_it_learns_and_loads_in_sentence_transformers_alone(tmp_path: Path) -> None:
    """The recipe is one command from text to a model of stock modules, whose rate fits a table of random vectors."""
    data = {"de-en": parallel_phrases("de", "en", size=600)}
    changes = {"per_device_train_batch_size": 100, "num_train_epochs": 5, "learning_rate": 0.03}
    recipe = load_recipe("static", overrides={f"arguments.{name}": value for name, value in changes.items()})
    trained = train(recipe, data, tmp_path / "run", static={"vocabulary": 2000, "dimensions": 64})
    assert trained.steps == 30
    stock = SentenceTransformer(str(tmp_path / "run"), device="cpu")
    assert [type(module).__module__.split(".")[0] for module in stock] == ["sentence_transformers"]
    test = {"de": parallel_phrases("de", "en", split="test", size=200)}
    accuracy = TatoebaEvaluator(test).evaluate(stock).rows[0].values[0]
    assert accuracy > 0.5, "chance is 0.005"


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"vocabulary": 3}, "static vocabulary must be from 15 to 2,000,000: got 3"),
        ({"dimensions": 0}, "static dimensions must be from 2 to 8,192: got 0"),
        ({"seed": -1}, "static seed must be from 0"),
    ],
)
def test_sizes_that_cannot_be(options: dict[str, Any], fact: str) -> None:
    """An error at once, before text is counted."""
    with pytest.raises(ValueError, match=fact):
        static_encoder(TEXTS, **options)
    with pytest.raises(ValueError, match="needs text"):
        static_encoder(["  ", "\n"])


def test_what_needs_tokens_says_so(tmp_path: Path) -> None:
    """A recipe with masked words failed deep in a tensor; length and pooling were ignored in silence."""
    data = {"de-en": parallel_phrases("de", "en", size=20)}
    sizes = {"vocabulary": 100, "dimensions": 8}
    with pytest.raises(ValueError, match="transformer.*StaticEmbedding"):
        train("dap", data, tmp_path / "dap", model="static", static=sizes)
    recipe = load_recipe("static", overrides={"model.max_length": 32})
    with pytest.raises(ValueError, match="'static' averages all tokens.*32"):
        train(recipe, data, tmp_path / "cut", static=sizes)
    with pytest.raises(ValueError, match="static options shape the model 'static' only: got dimensions"):
        train("tr", data, tmp_path / "tiny", model="tiny", static={"dimensions": 8})
    with pytest.raises(ValueError, match="the recipe tr needs a model"):
        train("tr", data, tmp_path / "none")
