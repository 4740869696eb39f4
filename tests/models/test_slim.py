"""Slim encoders: the same pieces and embeddings on their text, for every kind of tokenizer; which tokens stay."""

import copy
import gzip
import json
from itertools import islice
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
from transformers import PreTrainedTokenizerFast

from st_xling.data import load_pairs
from st_xling.mining import mine
from st_xling.models import load_encoder
from st_xling.models.slim import parity
from st_xling.models.vocabulary import Vocabulary, count_tokens, model_size, slim_encoder
from st_xling.training.retriever import separate_encoders
from tests import reference
from tests.models.slim_encoders import KINDS, encoder, everything, german_english, over, phrases

UNSEEN = ["Die Häuser sehen größer aus, 1987!", "zebra QXZ@st_xling", "naïve café 🙂 我买了三本旧书。", ""]


@pytest.fixture(scope="module", params=KINDS)
def cut(request: pytest.FixtureRequest) -> tuple[SentenceTransformer, SentenceTransformer]:
    before = encoder(request.param)
    return before, slim_encoder(before, german_english())


def tokens(model: Any, texts: list[str]) -> list[list[str]]:
    return [model.tokenizer.convert_ids_to_tokens(model.tokenizer(text)["input_ids"]) for text in texts]


def same(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def test_what_is_saved_is_a_stock_model_with_the_same_embeddings(cut: tuple[Any, Any], tmp_path: Path) -> None:
    before, result = cut
    result.save_pretrained(str(tmp_path))
    loaded = SentenceTransformer(str(tmp_path), device="cpu")
    texts = german_english()
    assert tokens(loaded, texts) == tokens(before, texts) and tokens(loaded, UNSEEN) == tokens(result, UNSEEN)
    same(loaded.encode(texts), before.encode(texts))
    same(loaded.encode(UNSEEN), result.encode(UNSEEN))
    assert type(loaded.tokenizer) is type(before.tokenizer) and len(loaded.tokenizer) < len(before.tokenizer)
    assert loaded[0].auto_model.config.vocab_size == len(loaded.tokenizer) and model_size(loaded) == model_size(result)
    assert set(loaded.tokenizer.get_added_vocab()) == set(before.tokenizer.get_added_vocab())
    encoder = loaded[0].auto_model
    table = result[0].auto_model.get_input_embeddings()
    assert table.padding_idx == loaded.tokenizer.pad_token_id == encoder.config.pad_token_id
    old = before.tokenizer
    rows = before[0].auto_model.get_input_embeddings()
    assert loaded.tokenizer.special_tokens_map == old.special_tokens_map
    for token in old.all_special_tokens:
        ids = loaded.tokenizer.convert_tokens_to_ids(token), old.convert_tokens_to_ids(token)
        assert torch.equal(table.weight[ids[0]], rows.weight[ids[1]])
    sides = []
    names = []
    for tokenizer in (old, loaded.tokenizer):
        side = tokenizer(["Der Hund"], ["the dog"], padding="max_length", max_length=12)
        sides.append(side)
        names.append(tokenizer.convert_ids_to_tokens(side["input_ids"][0]))
    assert names[0] == names[1]  # the template of a cross-encoder, too
    modules = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_of_kept_tokens_is_cut_as_before(kind: str) -> None:
    """Whatever the order of its words and parts of words; and unseen words of seen letters are not unknown."""
    texts = german_english()[:60]
    before = encoder(kind)
    after = slim_encoder(before, texts)
    unknown = before.tokenizer.unk_token
    kept = set(after.tokenizer.get_vocab())
    words = sorted({word for text in texts for word in text.split()})

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(st.sampled_from(words), st.integers(1, 12), st.sampled_from(["", " "])), max_size=8))
    def check(parts: list[tuple[str, int, str]]) -> None:
        text = "".join(word[:end] + gap for word, end, gap in parts)
        pieces = tokens(before, [text])
        if set(pieces[0]) <= kept and unknown not in pieces[0]:
            assert tokens(after, [text]) == pieces

    check()
    letters = sorted({letter for text in texts for letter in text if letter.isalpha()})
    new = [f"{a}{b}{c}" for a, b, c in zip(letters, letters[7:] + letters[:7], letters[::-1])]
    lost = [[unknown in pieces for pieces in tokens(model, new)] for model in (before, after)]
    assert lost[1] == lost[0] and not all(lost[0])
    if kind.startswith("byte"):
        read = after.tokenizer("我买🙂")["input_ids"]
        assert after.tokenizer.decode(read, skip_special_tokens=True).strip() == "我买🙂"


def test_prompts_are_read_before_every_text() -> None:
    """Byte-level pieces have the blank in them: ``ĠDer`` after a prompt, ``Der`` without."""
    before = encoder("byte-level")
    texts = [text.split()[0] for text in german_english()]
    plain = slim_encoder(before, texts)
    before.prompts = {"query": "query: ", "document": ""}
    after = slim_encoder(before, texts)
    prompted = [f"query: {text}" for text in texts]
    assert tokens(after, prompted) == tokens(before, prompted) != tokens(plain, prompted)


def test_faults_are_named() -> None:
    tiny = encoder("tiny")
    text = german_english()
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    other, adapted = (copy.deepcopy(tiny) for _ in range(2))
    other.tokenizer._tokenizer = words
    adapted.add_adapter(LoraConfig(r=2, target_modules=["query"]))
    cases: list[tuple[Any, list[str], int, str]] = [
        (tiny, ["", "  "], 1, "text is needed: got none"),
        (tiny, [*tiny.tokenizer.get_vocab(), *(part for texts in phrases().values() for part in texts)], 1, "nothing"),
        (static, ["a"], 1, "a transformer with word embeddings is needed.*StaticEmbedding"),
        (other, ["a"], 1, "WordPiece, Unigram, BPE .* got WordLevel"),
        (adapted, text, 1, "merge them first"),
        (separate_encoders(encoder("tiny")), text, 1, "a transformer with word embeddings is needed.*Router"),
    ]
    for model, texts, count, message in cases:
        with pytest.raises(ValueError, match=message):
            slim_encoder(model, texts, min_count=count)


def test_the_lowest_score_of_unigram_stays() -> None:
    """An unknown character costs ten more than the lowest score, -30: λμ νξ οπ for -24 against λμνξο and an unknown π
    for -41. With -8 as the lowest that would be -19."""
    vocab = [("<unk>", 0.0), ("λμ", -8.0), ("νξ", -8.0), ("οπ", -8.0), ("λμνξο", -1.0), ("low", -30.0), ("ρ", -9.0)]
    core = Tokenizer(models.Unigram(vocab, unk_id=0))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", pad_token="<unk>")
    after = slim_encoder(over(tokenizer), ["λμνξοπ", "λμνξο"]).tokenizer
    assert after.tokenize("λμνξοπ") == tokenizer.tokenize("λμνξοπ") == ["λμ", "νξ", "οπ"]
    assert Vocabulary(after).model["vocab"] == [list(entry) for entry in vocab[:-1]]


def test_parity_is_what_plain_loops_find() -> None:
    before = encoder("tiny")
    both = before, slim_encoder(before, german_english(), min_count=4)
    assert len(both[1].tokenizer) < len(slim_encoder(before, german_english()).tokenizer)
    texts = ["Übrigens: Äpfel!", *phrases()["de"][:40], *phrases()["en"][:40]]
    comparison = parity(*both, [*texts, texts[1]])
    old, new = (model.encode(texts).astype(float).tolist() for model in both)
    cosines = [reference.cosine(x, y) for x, y in zip(old, new)]
    assert comparison["texts"] == len(texts)
    assert comparison["cosine_mean"] == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    assert comparison["cosine_min"] == pytest.approx(min(cosines), abs=1e-6) and comparison["cosine_min"] < 0.9999
    assert comparison["same_share"] == sum(cosine >= 0.9999 for cosine in cosines) / len(cosines)


def test_a_slim_model_keeps_the_type_of_its_weights() -> None:
    before: Any = encoder("unigram").to(torch.bfloat16)
    every, often = (slim_encoder(before, german_english(), min_count=count) for count in (1, 5))
    assert len(often.tokenizer) < len(every.tokenizer)
    assert {part.dtype for part in often.parameters()} == {torch.bfloat16}


def test_the_source_stays_as_it_was() -> None:
    before = encoder("unigram")
    texts = everything()
    size = model_size(before)
    vectors = before.encode(texts)
    written = Vocabulary(before.tokenizer).model
    slim_encoder(before, german_english())
    assert model_size(before) == size and Vocabulary(before.tokenizer).model == written
    np.testing.assert_array_equal(before.encode(texts), vectors)


def by_spaces(model: Any, unknown: str) -> PreTrainedTokenizerFast:
    core = Tokenizer(model)
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, unk_token=unknown, pad_token=unknown)


def test_all_ways_to_a_kept_piece_of_bpe_stay() -> None:
    """``abc`` can be made of ``a`` and ``bc`` and of ``ab`` and ``c``: both merges stay, though ``abc`` alone takes the
    first. Nothing that stays needs ``dd`` or ``abcd``."""
    vocab = {piece: number for number, piece in enumerate(["<unk>", *"abcdx", "ab", "bc", "abc", "dd", "abcd"])}
    merges = [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c"), ("d", "d"), ("abc", "d")]
    tokenizer = by_spaces(models.BPE(vocab, merges, unk_token="<unk>"), "<unk>")
    after = slim_encoder(over(tokenizer), ["abc x"]).tokenizer
    assert set(after.get_vocab()) == {"<unk>", "a", "b", "c", "d", "x", "ab", "bc", "abc"}  # d: ASCII
    assert [tuple(merge) for merge in Vocabulary(after).model["merges"]] == merges[:4]
    for text in ("abc", "xabc", "ababc", "bcab"):
        assert after.tokenize(text) == tokenizer.tokenize(text)


def test_both_forms_of_a_character_stay_in_wordpiece() -> None:
    """Greek, so that ASCII does not keep them anyway."""
    pieces = ["[UNK]", "λό", "##γο", "##ς", "λ", "ό", "γ", "ο", "##λ", "##ό", "##γ", "##ο", "ξ", "##ξ"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    after = slim_encoder(over(by_spaces(models.WordPiece(vocab, unk_token="[UNK]"), "[UNK]")), ["λόγος"]).tokenizer
    assert after.tokenize("γολος") == ["γ", "##ο", "##λ", "##ο", "##ς"]
    assert set(pieces) - set(after.get_vocab()) == {"ξ", "##ξ"}


def test_counts_are_those_of_plain_tokenizing() -> None:
    vocab = {piece: number for number, piece in enumerate(["[UNK]", "a", "##a", "b"])}
    tokenizer = by_spaces(models.WordPiece(vocab, unk_token="[UNK]"), "[UNK]")
    texts = ["a aa b", "", "a"] * 700  # more than one batch
    assert count_tokens(tokenizer, iter(texts)).tolist() == [0, 2100, 700, 700]
    assert count_tokens(tokenizer, texts, prompts=["b "]).tolist() == [0, 4200, 1400, 2800]


@pytest.mark.slow
def test_a_real_encoder_mines_the_same_pairs(real_data: Path, real_encoder: str) -> None:
    """Of sentences that were not counted, some of which are cut into other tokens."""
    with gzip.open(real_data / "parallel" / "de-en.tsv.gz", "rt", encoding="utf-8") as lines:
        texts = [side for line in islice(lines, 2000) for side in line.rstrip("\n").split("\t")[:2]]
    before = load_encoder(real_encoder, device="cpu")
    after = slim_encoder(before, texts)
    assert len(before.tokenizer) > 250_000 > 25_000 > len(after.tokenizer)
    assert (after.prompts, after.default_prompt_name) == (before.prompts, before.default_prompt_name)
    pairs = load_pairs(real_data / "parallel" / "de-en.dev.tsv.gz")
    mined = []
    for model in (before, after):
        vectors = [model.encode(pairs[side][:40], prompt_name="query") for side in ("source", "target")]
        pairs = mine(*vectors)
        mined.append(set(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist())))
    assert len(mined[0] & mined[1]) >= 0.95 * len(mined[0]) > 30
