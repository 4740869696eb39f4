"""Grown encoders: new pieces are read, and text without new characters is read exactly as before."""

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
    return [model.tokenizer.convert_ids_to_tokens(model.tokenizer(text)["input_ids"]) for text in texts]


def test_old_text_is_read_as_before_and_new_text_at_all(grown: tuple[Any, Growth], tmp_path: Path) -> None:
    """Whoever adds a language must not pay with the others: the same tokens, the same embeddings to the last bit, of a
    stock model."""
    before, growth = grown
    growth.model.save_pretrained(str(tmp_path))
    after: Any = SentenceTransformer(str(tmp_path), device="cpu")
    texts = [*MIXED, *(text for texts in phrases().values() for text in texts)]
    assert tokens(after, texts) == tokens(before, texts)
    np.testing.assert_array_equal(after.encode(texts), before.encode(texts))
    unread = {before.tokenizer.unk_token, *(f"<0x{number:02X}>" for number in range(256))}
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
    weights = [result.model[0].auto_model.get_input_embeddings().weight.detach() for result in (growth, again)]
    np.testing.assert_array_equal(*weights)


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
    table, old = (model[0].auto_model.get_input_embeddings().weight.detach() for model in (more.model, growth.model))
    piece = more.pieces[0]
    parts = growth.model.tokenizer.backend_tokenizer.model.tokenize(piece)
    mean = old[[part.id for part in parts]].mean(dim=0)
    expected = mean / mean.norm() * old.norm(dim=1).median()
    np.testing.assert_allclose(table[more.first_id], expected, rtol=1e-5)


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
    """Model 1 by its definition, a pair after the other."""
    sources, targets = [[1, 2], [1], [2, 3], [3, 3]], [[10, 20, 20], [10], [20, 30], [30]]
    probabilities = {(s, t): 1.0 for row, others in zip(sources, targets) for s in [-1, *row] for t in others}
    for _ in range(3):
        counts = dict.fromkeys(probabilities, 0.0)
        for row, others in zip(sources, targets):
            readers = {-1, *row}
            for t in others:
                total = sum(probabilities[s, t] for s in readers)
                for s in readers:
                    counts[s, t] += probabilities[s, t] / total
        sums = {s: sum(count for (other, _), count in counts.items() if other == s) for s, _ in counts}
        probabilities = {(s, t): count / sums[s] for (s, t), count in counts.items()}
    found = translation_weights(sources, targets, rounds=3)
    assert set(found) == {1, 2, 3}
    for source, (ids, weights) in found.items():
        assert weights.sum() == pytest.approx(1)
        for target, weight in zip(ids.tolist(), weights.tolist()):
            assert weight == pytest.approx(probabilities[source, target], rel=1e-9)


def test_rows_have_the_usual_length() -> None:
    """A mean of many rows is short: a short row would be read as next to nothing."""
    table = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    new = start_rows(table, [50, 51, 52], {50: [1, 2]}, {51: (np.array([3, 4]), np.array([0.25, 0.75]))})
    assert dict(new.origins) == {"parts": 1, "translations": 1, "mean": 1}
    np.testing.assert_allclose(new.rows.norm(dim=1), table.norm(dim=1).median(), rtol=1e-5)
    direction = 0.25 * table[3] + 0.75 * table[4]
    cosine = torch.cosine_similarity(new.rows[1], direction, dim=0)
    assert float(cosine) == pytest.approx(1, abs=1e-6)
