"""Slim encoders: the same pieces and embeddings on the text they were cut to, for every kind of tokenizer."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from st_xling.models.cross_encoder import tiny_cross_encoder
from st_xling.models.slim import model_size, slim_encoder
from st_xling.models.slim.vocabulary import Vocabulary
from st_xling.training.retriever import separate_encoders
from tests.models.slim.encoders import KINDS, encoder, everything, german_english, phrases

UNSEEN = ["Die Häuser sehen größer aus, 1987!", "zebra QXZ@st_xling", "naïve café 🙂 我买了三本旧书。", ""]


@pytest.fixture(scope="module", params=KINDS)
def cut(request: pytest.FixtureRequest) -> tuple[SentenceTransformer, SentenceTransformer]:
    before = encoder(request.param)
    return before, slim_encoder(before, german_english())


def tokens(model: Any, texts: list[str]) -> list[list[str]]:
    return [model.tokenizer.convert_ids_to_tokens(model.tokenizer(text)["input_ids"]) for text in texts]


def same(left: np.ndarray, right: np.ndarray) -> None:
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-6)


def test_counted_text_has_the_same_pieces_and_embeddings(cut: tuple[Any, Any]) -> None:
    before, result = cut
    texts = german_english()
    assert tokens(result, texts) == tokens(before, texts)
    same(result.encode(texts), before.encode(texts))
    assert len(result.tokenizer) < len(before.tokenizer)


def test_what_is_saved_is_a_stock_model_of_that_size(cut: tuple[Any, Any], tmp_path: Path) -> None:
    before, result = cut
    result.save_pretrained(str(tmp_path))
    loaded = SentenceTransformer(str(tmp_path), device="cpu")
    texts = [*german_english()[:100], *UNSEEN]
    assert type(loaded.tokenizer) is type(before.tokenizer) and tokens(loaded, texts) == tokens(result, texts)
    same(loaded.encode(texts), result.encode(texts))
    size = model_size(result)
    assert loaded[0].auto_model.config.vocab_size == len(loaded.tokenizer) == size["tokens"]
    assert sum(parameter.numel() for parameter in loaded.parameters()) == size["parameters"]
    written = sum((tmp_path / name).stat().st_size for name in ("model.safetensors", "tokenizer.json"))
    assert written == pytest.approx(size["bytes"], abs=6000)  # names of tensors
    modules = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)


def test_special_tokens_stay_and_are_named_everywhere(cut: tuple[Any, Any]) -> None:
    before, result = cut
    old, new = before.tokenizer, result.tokenizer
    assert new.special_tokens_map == old.special_tokens_map and set(new.get_added_vocab()) == set(old.get_added_vocab())
    config, was = result[0].auto_model.config, before[0].auto_model.config
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if getattr(was, name) is not None:
            names = new.convert_ids_to_tokens(getattr(config, name)), old.convert_ids_to_tokens(getattr(was, name))
            assert names[0] == names[1], name
    table, rows = (model[0].auto_model.get_input_embeddings() for model in (result, before))
    assert table.padding_idx == new.pad_token_id == config.pad_token_id
    for token in old.all_special_tokens:
        assert torch.equal(
            table.weight[new.convert_tokens_to_ids(token)], rows.weight[old.convert_tokens_to_ids(token)]
        )
    pairs = [tokenizer(["Der Hund"], ["the dog"], padding="max_length", max_length=12) for tokenizer in (old, new)]
    names = [each.convert_ids_to_tokens(ids["input_ids"][0]) for each, ids in zip((old, new), pairs)]
    assert names[0] == names[1]


def test_the_source_stays_as_it_was() -> None:
    before, texts = encoder("unigram"), everything()
    size, vectors, written = model_size(before), before.encode(texts), Vocabulary(before.tokenizer).model
    slim_encoder(before, german_english())
    assert model_size(before) == size and Vocabulary(before.tokenizer).model == written
    np.testing.assert_array_equal(before.encode(texts), vectors)


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_of_kept_tokens_is_cut_as_before(kind: str) -> None:
    """Whatever the order of its words and parts of words; and unseen words of seen letters are not unknown."""
    texts, before = german_english()[:60], encoder(kind)
    after, unknown = slim_encoder(before, texts), before.tokenizer.unk_token
    known = set(after.tokenizer.get_vocab())
    words = sorted({word for text in texts for word in text.split()})

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(st.sampled_from(words), st.integers(1, 12), st.sampled_from(["", " "])), max_size=8))
    def check(parts: list[tuple[str, int, str]]) -> None:
        text = "".join(word[:end] + gap for word, end, gap in parts)
        pieces = tokens(before, [text])
        if set(pieces[0]) <= known and unknown not in pieces[0]:
            assert tokens(after, [text]) == pieces

    check()
    letters = sorted({letter for text in texts for letter in text if letter.isalpha()})
    new = [f"{a}{b}{c}" for a, b, c in zip(letters, letters[7:] + letters[:7], letters[::-1])]
    lost = [[unknown in pieces for pieces in tokens(model, new)] for model in (before, after)]
    assert lost[1] == lost[0] and not all(lost[0])
    if kind.startswith("byte"):
        read = after.tokenizer("我买🙂")["input_ids"]
        assert after.tokenizer.decode(read, skip_special_tokens=True).strip() == "我买🙂"


def test_rare_tokens_go_unless_they_are_requested() -> None:
    before: Any = encoder("unigram").to(torch.bfloat16)
    every, often = (slim_encoder(before, german_english(), min_count=count) for count in (1, 5))
    assert len(often.tokenizer) < len(every.tokenizer)
    assert {part.dtype for part in often.parameters()} == {torch.bfloat16}
    chinese = next(piece for piece in tokens(before, phrases()["zh"])[0] if not piece.isascii())
    requested = slim_encoder(before, german_english(), min_count=5, keep=[chinese, phrases()["vi"][0]])
    wanted = {chinese, *before.tokenizer.tokenize(phrases()["vi"][0])}
    assert wanted <= set(requested.tokenizer.get_vocab())


def test_prompts_are_read_before_every_text() -> None:
    """Byte-level pieces have the blank in them: ``ĠDer`` after a prompt, ``Der`` without."""
    before, texts = encoder("byte-level"), [text.split()[0] for text in german_english()]
    plain = slim_encoder(before, texts)
    before.prompts = {"query": "query: ", "document": ""}
    after, prompted = slim_encoder(before, texts), [f"query: {text}" for text in texts]
    assert tokens(after, prompted) == tokens(before, prompted) != tokens(plain, prompted)
    same(after.encode(texts, prompt_name="query"), before.encode(texts, prompt_name="query"))


def test_separate_encoders_are_cut_together(tmp_path: Path) -> None:
    both: Any = separate_encoders(encoder("wordpiece"))
    with torch.no_grad():  # two encoders, not one twice
        next(both[0].sub_modules["query"].parameters()).mul_(-1)
    result, rows = slim_encoder(both, german_english()), both[0].sub_modules["query"][0].auto_model.config.vocab_size
    sizes = [model_size(model) for model in (both, result)]
    assert sizes[0]["parameters"] - sizes[1]["parameters"] == 2 * 16 * (rows - sizes[1]["tokens"])
    result.save_pretrained(str(tmp_path))
    loaded, texts = SentenceTransformer(str(tmp_path), device="cpu"), german_english()[:50]
    for way in ("encode_query", "encode_document"):
        same(getattr(loaded, way)(texts), getattr(both, way)(texts))
    assert np.abs(loaded.encode_query(texts) - loaded.encode_document(texts)).max() > 1e-3


def test_faults_are_named() -> None:
    tiny, text = encoder("tiny"), german_english()
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    other, adapted = (copy.deepcopy(tiny) for _ in range(2))
    other.tokenizer._tokenizer = words
    adapted.add_adapter(LoraConfig(r=2, target_modules=["query"]))
    both: Any = separate_encoders(encoder("tiny"))
    both[0].sub_modules["query"][0].tokenizer.add_tokens(["<q>"])
    pair: Any = tiny_cross_encoder(text, vocabulary=300, hidden_size=16)
    cases: list[tuple[Any, list[str], dict[str, Any], str]] = [
        (tiny, text, {"min_count": 0}, "min_count must be 1 or more: got 0"),
        (tiny, ["", "  "], {}, "text is needed: got none"),
        (tiny, text, {"keep": list(tiny.tokenizer.get_vocab())}, "nothing to prune: the text uses all"),
        (static, ["a"], {}, "a transformer with a tokenizer is needed.*StaticEmbedding"),
        (other, ["a"], {}, "WordPiece, Unigram, BPE .* got WordLevel"),
        (adapted, text, {}, "merge them first"),
        (pair, text, {}, "got a cross-encoder"),
        (both, text, {}, "share a vocabulary"),
    ]
    for model, texts, options, message in cases:
        with pytest.raises(ValueError, match=message):
            slim_encoder(model, texts, **options)
    with pytest.raises(ValueError, match="is written in Python"):
        Vocabulary(object())
