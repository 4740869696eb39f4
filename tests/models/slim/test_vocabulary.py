"""Which tokens stay, on vocabularies small enough to be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from st_xling.models.slim.prune import new_ids, prune_tokenizer
from st_xling.models.slim.vocabulary import Vocabulary, count_tokens, kept_tokens, token_ids


def fast(model: Any, **special: str) -> Any:
    core = Tokenizer(model)
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, **special)


def cut(tokenizer: Any, texts: list[str], *, requested: Iterable[int] = ()) -> Any:
    vocabulary = Vocabulary(tokenizer)
    counts, before_unknown = count_tokens(tokenizer, vocabulary, texts)
    kept = kept_tokens(vocabulary, counts, requested={*requested, *before_unknown})
    return prune_tokenizer(tokenizer, vocabulary, new_ids(vocabulary, kept, pinned=vocabulary.structural_ids()))


def test_all_ways_to_a_kept_piece_of_bpe_stay() -> None:
    """``abc`` can be made of ``a`` and ``bc`` and of ``ab`` and ``c``: both merges stay, though ``abc`` alone takes the
    first. Nothing that stays needs ``dd`` or ``abcd``."""
    vocab = {piece: number for number, piece in enumerate(["<unk>", *"abcdx", "ab", "bc", "abc", "dd", "abcd"])}
    merges = [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c"), ("d", "d"), ("abc", "d")]
    tokenizer = fast(models.BPE(vocab, merges, unk_token="<unk>"), unk_token="<unk>")
    after = cut(tokenizer, ["abc x"])
    assert set(after.get_vocab()) == {"<unk>", "a", "b", "c", "d", "x", "ab", "bc", "abc"}  # d: ASCII
    left = Vocabulary(after).model["merges"]
    assert [tuple(merge) for merge in left] == [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c")]
    for text in ("abc", "xabc", "ababc", "bcab"):
        assert after.tokenize(text) == tokenizer.tokenize(text)


def test_a_word_that_wordpiece_gave_up_stays_unknown() -> None:
    """``abc`` is ``ab`` and then nothing that begins with ``c``; without ``ab`` it would be ``a ##bc``."""
    vocab = {piece: number for number, piece in enumerate(["[UNK]", "a", "ab", "##bc", "##b", "z", "zz"])}
    tokenizer = fast(models.WordPiece(vocab, unk_token="[UNK]"), unk_token="[UNK]")
    assert tokenizer.tokenize("abc a") == ["[UNK]", "a"]
    after = cut(tokenizer, ["abc", "a", "zbc"], requested=[vocab["##bc"]])
    assert after.tokenize("abc a") == ["[UNK]", "a"] and "zz" not in after.get_vocab()


def test_both_forms_of_a_character_stay_in_wordpiece() -> None:
    """Greek, so that ASCII does not keep them anyway."""
    pieces = ["[UNK]", "λό", "##γο", "##ς", "λ", "ό", "γ", "ο", "##λ", "##ό", "##γ", "##ο", "ξ", "##ξ"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = fast(models.WordPiece(vocab, unk_token="[UNK]"), unk_token="[UNK]")
    after = cut(tokenizer, ["λόγος"])
    assert after.tokenize("γολος") == ["γ", "##ο", "##λ", "##ο", "##ς"]
    assert set(pieces) - set(after.get_vocab()) == {"ξ", "##ξ"}


def test_the_lowest_score_of_unigram_stays() -> None:
    """An unknown character costs ten more than the lowest score, -30: λμ νξ οπ for -24 against λμνξο and an unknown π
    for -41. With -8 as the lowest that would be -19."""
    vocab = [("<unk>", 0.0), ("λμ", -8.0), ("νξ", -8.0), ("οπ", -8.0), ("λμνξο", -1.0), ("low", -30.0), ("ρ", -9.0)]
    tokenizer = fast(models.Unigram(vocab, unk_id=0), unk_token="<unk>")
    assert tokenizer.tokenize("λμνξοπ") == ["λμ", "νξ", "οπ"]
    after = cut(tokenizer, ["λμνξοπ", "λμνξο"])
    assert after.tokenize("λμνξοπ") == ["λμ", "νξ", "οπ"]
    assert Vocabulary(after).model["vocab"] == [list(each) for each in vocab[:-1]]
    vocabulary = Vocabulary(tokenizer)
    without = prune_tokenizer(tokenizer, vocabulary, new_ids(vocabulary, [0, 1, 2, 3, 4]))
    assert without.tokenize("λμνξοπ") == ["λμνξο", "π"]  # what would have come


def test_pinned_ids_stay_and_the_rest_closes_up() -> None:
    vocab = {piece: number for number, piece in enumerate(["q", "r", "s", "[PAD]", "t", "[UNK]", "u", "[MASK]"])}
    tokenizer = fast(models.WordPiece(vocab, unk_token="[UNK]"), unk_token="[UNK]", pad_token="[PAD]")
    vocabulary = Vocabulary(tokenizer)
    ids = new_ids(vocabulary, [1, 3, 4, 5, 6], pinned=[3, 5, 7])
    assert ids == {1: 0, 3: 3, 4: 1, 5: 2, 6: 4}  # there is no place 5 any more
    after = prune_tokenizer(tokenizer, vocabulary, ids)
    assert after.get_vocab() == {"r": 0, "t": 1, "[UNK]": 2, "[PAD]": 3, "u": 4}
    assert after.pad_token_id == 3 and after.unk_token_id == 2


def test_counts_are_those_of_plain_tokenizing() -> None:
    vocab = {piece: number for number, piece in enumerate(["[UNK]", "a", "##a", "b"])}
    tokenizer = fast(models.WordPiece(vocab, unk_token="[UNK]"), unk_token="[UNK]")
    vocabulary = Vocabulary(tokenizer)
    texts = ["a aa b", "", "a"] * 700  # more than one batch
    counted, _ = count_tokens(tokenizer, vocabulary, iter(texts))
    assert counted.tolist() == [0, 2100, 700, 700]
    twice, _ = count_tokens(tokenizer, vocabulary, texts, prompts=["b "])
    assert twice.tolist() == [0, 4200, 1400, 2800]  # with those of the prompt
    assert token_ids(tokenizer, []) == []
