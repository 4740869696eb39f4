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
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from st_xling.models.slim import SlimResult, model_size, slim_encoder
from st_xling.models.slim.vocabulary import Vocabulary
from st_xling.training.retriever import separate_encoders
from tests.models.slim.encoders import KINDS, encoder, everything, german_english, phrases

UNSEEN = ["Die Häuser sehen größer aus, 1987!", "zebra QXZ@st_xling", "naïve café 🙂 我买了三本旧书。", ""]


@pytest.fixture(scope="module", params=KINDS)
def cut(request: pytest.FixtureRequest) -> tuple[SentenceTransformer, SlimResult]:
    before = encoder(request.param)
    return before, slim_encoder(before, german_english())


def tokens(model: SentenceTransformer, texts: list[str]) -> list[list[str]]:
    tokenizer: Any = model.tokenizer
    return [tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) for text in texts]


def test_counted_text_has_the_same_pieces_and_embeddings(cut: tuple[SentenceTransformer, SlimResult]) -> None:
    before, result = cut
    texts = german_english()
    assert result.model is not None
    assert tokens(result.model, texts) == tokens(before, texts)
    np.testing.assert_allclose(result.model.encode(texts), before.encode(texts), rtol=0, atol=1e-6)
    assert len(result.model.tokenizer) < len(before.tokenizer)


def test_what_is_saved_is_a_stock_model_of_that_size(
    cut: tuple[SentenceTransformer, SlimResult], tmp_path: Path
) -> None:
    before, result = cut
    assert result.model is not None
    result.model.save_pretrained(str(tmp_path / "slim"))
    found = SentenceTransformer(str(tmp_path / "slim"), device="cpu")
    texts = [*german_english()[:100], *UNSEEN]
    assert type(found.tokenizer) is type(before.tokenizer)
    assert tokens(found, texts) == tokens(result.model, texts)
    np.testing.assert_allclose(found.encode(texts), result.model.encode(texts), rtol=0, atol=1e-6)
    kept = result.after
    assert found[0].auto_model.config.vocab_size == len(found.tokenizer) == kept.tokens
    assert sum(parameter.numel() for parameter in found.parameters()) == kept.parameters
    written = [path for path in (tmp_path / "slim").iterdir() if path.name in ("model.safetensors", "tokenizer.json")]
    assert sum(path.stat().st_size for path in written) == pytest.approx(kept.bytes, abs=6000)  # names of tensors
    modules = json.loads((tmp_path / "slim" / "modules.json").read_text(encoding="utf-8"))
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)
    assert {path.suffix for path in (tmp_path / "slim").rglob("*") if path.is_file()} <= {
        ".json",
        ".md",
        ".safetensors",
    }


def test_special_tokens_stay_and_are_named_everywhere(cut: tuple[SentenceTransformer, SlimResult]) -> None:
    before, result = cut
    assert result.model is not None
    old: Any = before.tokenizer
    new: Any = result.model.tokenizer
    assert new.special_tokens_map == old.special_tokens_map
    assert set(new.get_added_vocab()) == set(old.get_added_vocab())
    config: Any = result.model[0].auto_model.config
    was: Any = before[0].auto_model.config
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if getattr(was, name) is not None:
            token = new.convert_ids_to_tokens(getattr(config, name))
            assert token == old.convert_ids_to_tokens(getattr(was, name)), name
    table: Any = result.model[0].auto_model.get_input_embeddings()
    assert table.padding_idx == new.pad_token_id == config.pad_token_id
    for token in old.all_special_tokens:
        row = before[0].auto_model.get_input_embeddings().weight[old.convert_tokens_to_ids(token)]
        assert torch.equal(table.weight[new.convert_tokens_to_ids(token)], row), token
    pairs = [tokenizer(["Der Hund"], ["the dog"], padding="max_length", max_length=12) for tokenizer in (old, new)]
    names = [t.convert_ids_to_tokens(ids["input_ids"][0]) for t, ids in zip((old, new), pairs)]
    assert names[0] == names[1]


def test_the_source_stays_as_it_was() -> None:
    before = encoder("unigram")
    texts, size = everything(), model_size(before)
    vectors, written = before.encode(texts), Vocabulary(before.tokenizer).model
    slim_encoder(before, german_english())
    assert model_size(before) == size and Vocabulary(before.tokenizer).model == written
    np.testing.assert_array_equal(before.encode(texts), vectors)


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_of_kept_tokens_is_cut_as_before(kind: str) -> None:
    """Not the counted text alone: whatever the order of its words and parts of words."""
    before = encoder(kind)
    after = slim_encoder(before, german_english()[:60]).model
    assert after is not None
    tokenizer: Any = before.tokenizer
    known = set(after.tokenizer.get_vocab())
    words = sorted({word for text in german_english()[:60] for word in text.split()})

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(st.sampled_from(words), st.integers(1, 12), st.sampled_from(["", " "])), max_size=8))
    def check(parts: list[tuple[str, int, str]]) -> None:
        text = "".join(word[:end] + gap for word, end, gap in parts)
        pieces = tokens(before, [text])
        if set(pieces[0]) <= known and tokenizer.unk_token not in pieces[0]:
            assert tokens(after, [text]) == pieces

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_unseen_words_of_seen_letters_are_not_unknown(kind: str) -> None:
    before = encoder(kind)
    after = slim_encoder(before, german_english()[:40]).model
    assert after is not None
    letters = sorted({letter for text in german_english()[:40] for letter in text if letter.isalpha()})
    words = [f"{a}{b}{c}" for a, b, c in zip(letters, letters[7:] + letters[:7], letters[::-1])]
    unknown = [[before.tokenizer.unk_token in pieces for pieces in tokens(model, words)] for model in (before, after)]
    assert unknown[1] == unknown[0] and not all(unknown[0])


@pytest.mark.parametrize("kind", ["byte-level", "byte-fallback"])
def test_bytes_stay(kind: str) -> None:
    after = slim_encoder(encoder(kind), german_english()).model
    assert after is not None
    assert after.tokenizer.decode(after.tokenizer("我买🙂")["input_ids"], skip_special_tokens=True).strip() == "我买🙂"


def test_rare_tokens_go_unless_they_are_asked_for() -> None:
    before = encoder("unigram")
    every = slim_encoder(before, german_english())
    often = slim_encoder(before, german_english(), min_count=5)
    assert often.rare > 0 and often.after.tokens < every.after.tokens
    tokenizer: Any = before.tokenizer
    chinese = next(piece for piece in tokens(before, phrases()["zh"])[0] if not piece.isascii())
    asked = slim_encoder(before, german_english(), min_count=5, keep=[chinese, phrases()["vi"][0]])
    assert asked.model is not None
    assert asked.reasons["asked for"] > 0
    assert {chinese, *tokenizer.tokenize(phrases()["vi"][0])} <= set(asked.model.tokenizer.get_vocab())
    plan = slim_encoder(before, german_english(), min_count=5, plan=True)
    assert plan.model is None and (plan.before, plan.after, plan.reasons, plan.rare) == (
        often.before,
        often.after,
        often.reasons,
        often.rare,
    )
    assert sum(plan.reasons.values()) == plan.after.tokens


def test_prompts_are_read_before_every_text() -> None:
    """Byte-level pieces have the blank in them: ``ĠDer`` after a prompt, ``Der`` without."""
    before = encoder("byte-level")
    texts = [text.split()[0] for text in german_english()]
    plain = slim_encoder(before, texts)
    before.prompts = {"query": "query: ", "document": ""}
    prompted = slim_encoder(before, texts)
    assert plain.model is not None and prompted.model is not None
    asked = [f"query: {text}" for text in texts]
    assert tokens(prompted.model, asked) == tokens(before, asked) != tokens(plain.model, asked)
    np.testing.assert_allclose(
        prompted.model.encode(texts, prompt_name="query"), before.encode(texts, prompt_name="query"), rtol=0, atol=1e-6
    )


def test_separate_encoders_are_cut_together(tmp_path: Path) -> None:
    both = separate_encoders(encoder("wordpiece"))
    with torch.no_grad():  # two encoders, not one twice
        next(both[0].sub_modules["query"].parameters()).mul_(-1)
    result = slim_encoder(both, german_english())
    assert result.model is not None
    assert result.before.parameters - result.after.parameters == 2 * 16 * (
        both[0].sub_modules["query"][0].auto_model.config.vocab_size - result.after.tokens
    )
    result.model.save_pretrained(str(tmp_path / "both"))
    found = SentenceTransformer(str(tmp_path / "both"), device="cpu")
    texts = german_english()[:50]
    for way in ("encode_query", "encode_document"):
        np.testing.assert_allclose(getattr(found, way)(texts), getattr(both, way)(texts), rtol=0, atol=1e-6)
    assert np.abs(found.encode_query(texts) - found.encode_document(texts)).max() > 1e-3


def test_faults_are_named() -> None:
    tiny = encoder("tiny")
    with pytest.raises(ValueError, match="min_count must be 1 or more: got 0"):
        slim_encoder(tiny, german_english(), min_count=0)
    with pytest.raises(ValueError, match="text is needed: got none"):
        slim_encoder(tiny, ["", "  "])
    with pytest.raises(ValueError, match="nothing to prune: the text uses all"):
        slim_encoder(tiny, german_english(), keep=list(tiny.tokenizer.get_vocab()))
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    with pytest.raises(ValueError, match="a transformer with a tokenizer is needed.*StaticEmbedding"):
        slim_encoder(static, ["a"])
    other = copy.deepcopy(tiny)
    other.tokenizer._tokenizer = words
    with pytest.raises(ValueError, match="of type WordPiece, Unigram, BPE is needed: got WordLevel"):
        slim_encoder(other, ["a"])
    with pytest.raises(ValueError, match="is written in Python"):
        Vocabulary(object())
    wide = copy.deepcopy(tiny)
    wide.tokenizer.add_tokens(["<new>"])
    with pytest.raises(ValueError, match="every token needs a row"):
        slim_encoder(wide, german_english())


def test_adapters_and_cross_encoders_are_refused() -> None:
    from peft import LoraConfig

    from st_xling.models.cross_encoder import tiny_cross_encoder

    adapted = encoder("tiny")
    adapted.add_adapter(LoraConfig(r=2, target_modules=["query"]))
    with pytest.raises(ValueError, match="merge them first"):
        slim_encoder(adapted, german_english())
    pair: CrossEncoder = tiny_cross_encoder(german_english(), vocabulary=300, hidden_size=16)
    with pytest.raises(ValueError, match="got a cross-encoder"):
        slim_encoder(pair, german_english())  # type: ignore[arg-type]
    both = separate_encoders(encoder("tiny"))
    both[0].sub_modules["query"][0].tokenizer.add_tokens(["<q>"])
    with pytest.raises(ValueError, match="share a vocabulary"):
        slim_encoder(both, german_english())
