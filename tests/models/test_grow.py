"""Grown encoders: new pieces are read, and text without new characters is read exactly as before."""

from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from st_xling.models.grow import Growth, grow_vocabulary
from st_xling.models.new_rows import start_rows, translation_weights
from st_xling.models.vocabulary import slim_encoder
from tests.models.slim_encoders import encoder, german_english, phrases

AMHARIC = ["ውሻው ተኝቷል።", "እያነበብኩ ነው።", "ውሻው እያነበበ ነው።", "Tomው ተኝቷል?"] * 4
IN_ENGLISH = ["The dog is sleeping.", "I am reading.", "The dog is reading.", "Is Tom sleeping?"] * 4
MIXED = ["Der Hund, der Hund!", "naïve café 🙂 1987", "", "zebra QXZ@st_xling"]


@pytest.fixture(scope="module", params=["unigram", "wordpiece", "byte-fallback"])
def grown(request: pytest.FixtureRequest) -> tuple[SentenceTransformer, Growth]:
    before = encoder(request.param)
    return before, grow_vocabulary(before, AMHARIC, translations=IN_ENGLISH, pieces=60, min_count=1)


def tokens(model: Any, texts: list[str]) -> list[list[str]]:
    ids = [model.tokenizer(text)["input_ids"] for text in texts]
    return [model.tokenizer.convert_ids_to_tokens(ids_of_text) for ids_of_text in ids]


def embedding_rows(model: Any) -> torch.Tensor:
    return model[0].auto_model.get_input_embeddings().weight.detach()


def test_old_text_is_read_as_before_and_new_text_at_all(grown: tuple[Any, Growth], tmp_path: Path) -> None:
    """Whoever adds a language must not pay with the others: the same tokens, the same embeddings to the last bit, of a
    stock model."""
    before, growth = grown
    growth.model.save_pretrained(str(tmp_path))
    after: Any = SentenceTransformer(str(tmp_path), device="cpu")
    old_texts = [*MIXED, *chain.from_iterable(phrases().values())]
    assert tokens(after, old_texts) == tokens(before, old_texts)
    np.testing.assert_array_equal(after.encode(old_texts), before.encode(old_texts))

    bytes_as_pieces = [f"<0x{number:02X}>" for number in range(256)]
    unread = {before.tokenizer.unk_token, *bytes_as_pieces}
    assert not any(unread.isdisjoint(pieces) for pieces in tokens(before, AMHARIC))
    assert all(unread.isdisjoint(pieces) for pieces in tokens(after, AMHARIC))

    ids = after.tokenizer.convert_tokens_to_ids(list(growth.pieces))
    assert ids == list(range(growth.first_id, growth.first_id + len(growth.pieces)))
    assert len(after.tokenizer) == len(before.tokenizer) + len(growth.pieces)
    table = after[0].auto_model.get_input_embeddings()
    assert table.num_embeddings == len(after.tokenizer) == after[0].auto_model.config.vocab_size
    assert after.tokenizer.special_tokens_map == before.tokenizer.special_tokens_map
    assert growth.origins["translations"] > 0


def test_the_same_text_gives_the_same_pieces(grown: tuple[Any, Growth]) -> None:
    """The Unigram trainer numbers its pieces anew each time: rows would be others' after a second start."""
    before, growth = grown
    again = grow_vocabulary(before, AMHARIC, translations=IN_ENGLISH, pieces=60, min_count=1)
    assert again.pieces == growth.pieces
    np.testing.assert_array_equal(embedding_rows(again.model), embedding_rows(growth.model))


def test_what_slim_cut_out_can_be_added_again() -> None:
    """Of characters that old text lacks, pieces may be new, too, even if the tokenizer spells them: these start as the
    mean of the rows of their parts."""
    before: Any = slim_encoder(encoder("unigram"), german_english())
    chinese = phrases()["zh"]
    growth = grow_vocabulary(before, chinese, pieces=330)
    assert growth.origins["parts"] == 0
    assert "<unk>" in tokens(before, chinese)[0]
    assert "<unk>" not in tokens(growth.model, chinese)[0]
    more = grow_vocabulary(growth.model, chinese, pieces=700, old_texts=german_english(), min_count=1)
    assert more.origins["parts"] == len(more.pieces) > 0
    assert tokens(more.model, german_english()) == tokens(before, german_english())

    old_rows = embedding_rows(growth.model)
    parts = growth.model.tokenizer.backend_tokenizer.model.tokenize(more.pieces[0])
    mean = old_rows[[part.id for part in parts]].mean(dim=0)
    expected = mean / mean.norm() * old_rows.norm(dim=1).median()
    np.testing.assert_allclose(embedding_rows(more.model)[more.first_id], expected, rtol=1e-5)


def test_faults_are_named() -> None:
    unigram = encoder("unigram")
    for model, texts, options, message in (
        (encoder("byte-level"), AMHARIC, {}, "reads every script by its bytes"),
        (unigram, german_english(), {}, "characters that are new to the model is needed: got 300 texts"),
        (unigram, AMHARIC, {"pieces": 4}, "more than the 13 new characters of the text: got 4"),
        (unigram, AMHARIC, {"translations": ["a"]}, "got 16 texts, 1 of them"),
    ):
        with pytest.raises(ValueError, match=message):
            grow_vocabulary(model, texts, **options)


def test_translations_are_those_of_plain_loops() -> None:
    """Model 1 by its definition, a pair after the other; -1 is the empty word, which every sentence has."""
    sources = [[1, 2], [1], [2, 3], [3, 3]]
    targets = [[10, 20, 20], [10], [20, 30], [30]]
    pairs = list(zip(sources, targets))
    probabilities: dict[tuple[int, int], float] = {}
    for source, target in pairs:
        for word in (-1, *source):
            for translation in target:
                probabilities[word, translation] = 1.0

    for _ in range(3):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in pairs:
            words = {-1, *source}
            for translation in target:
                total = sum(probabilities[word, translation] for word in words)
                for word in words:
                    counts[word, translation] += probabilities[word, translation] / total
        sums: dict[int, float] = defaultdict(float)
        for (word, _), count in counts.items():
            sums[word] += count
        probabilities = {key: count / sums[key[0]] for key, count in counts.items()}

    found = translation_weights(sources, targets, rounds=3)
    assert set(found) == {1, 2, 3}
    for word, (ids, weights) in found.items():
        assert weights.sum() == pytest.approx(1)
        for translation, weight in zip(ids.tolist(), weights.tolist()):
            assert weight == pytest.approx(probabilities[word, translation], rel=1e-9)


def test_rows_have_the_usual_length() -> None:
    """A mean of many rows is short: a short row would be read as next to nothing."""
    table = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    parts = {50: [1, 2]}
    translations = {51: (np.array([3, 4]), np.array([0.25, 0.75]))}
    new = start_rows(table, [50, 51, 52], parts, translations)
    assert dict(new.origins) == {"parts": 1, "translations": 1, "mean": 1}
    np.testing.assert_allclose(new.rows.norm(dim=1), table.norm(dim=1).median(), rtol=1e-5)
    direction = 0.25 * table[3] + 0.75 * table[4]
    cosine = torch.cosine_similarity(new.rows[1], direction, dim=0)
    assert float(cosine) == pytest.approx(1, abs=1e-6)
