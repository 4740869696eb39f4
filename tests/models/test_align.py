"""Word alignment: links by definition, words of every script, layers, and bad input."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from st_xling.models import align_words, split_words, word_similarities
from st_xling.models.align import link_words, word_spans, word_states
from st_xling.models.backbone import backbone


def states(words: int, seed: int) -> torch.Tensor:
    return torch.randn(words, 6, generator=torch.Generator().manual_seed(seed))


def mutual(table: list[list[float]]) -> set[tuple[int, int]]:
    best = [max(range(len(row)), key=row.__getitem__) for row in table]
    back = [max(range(len(table)), key=lambda i: table[i][j]) for j in range(len(table[0]))]
    return {(i, j) for i, j in enumerate(best) if back[j] == i and table[i][j] > 0}


@pytest.mark.parametrize("seed", range(8))
def test_links_are_the_definition(seed):
    source, target = states(5 + seed % 3, seed), states(4 + seed % 4, 100 + seed)
    table = [[(1 + F.cosine_similarity(x, y, dim=0).item()) / 2 for y in target] for x in source]
    first = mutual(table)
    assert set(link_words(source, target, method="intersection")) == first
    rows, columns = {i for i, _ in first}, {j for _, j in first}
    for i, row in enumerate(table):
        for j in range(len(row)):
            row[j] *= 0.0 if i in rows and j in columns else 0.9 if i in rows or j in columns else 1.0
    links = link_words(source, target)
    assert set(links) == first | mutual(table) and links == sorted(links)


def test_a_word_without_tokens_and_an_empty_sentence_have_no_links():
    source, target = states(3, 0), states(3, 1)
    source[1] = 0.0
    assert all(i != 1 for i, _ in link_words(source, target))
    assert link_words(source, target[:0]) == link_words(source[:0], target) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Er kam, sah – und siegte.", "Er kam , sah – und siegte ."),
        ("l'homme, aujourd’hui", "l'homme , aujourd’hui"),
        ("well-known (twenty-two) -5 €", "well-known ( twenty-two ) - 5 €"),
        ("Er sagte 'ja', dogs' tails", "Er sagte ' ja ' , dogs ' tails"),
        ("他说 hello，走了", "他 说 hello ， 走 了"),
        ("ฉันกิน", "ฉั น กิ น"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
        (" \t", ""),
    ],
)
def test_words_of_every_script(text, words):
    assert split_words(text) == words.split()


def test_states_are_means_over_a_words_pieces_at_a_layer(make_model):
    model = make_model()
    words = ["Der", "Hund", "schläft"]
    features = model.tokenizer([words], is_split_into_words=True, return_tensors="pt")
    for layer in (1, 2):
        hidden = backbone(model).model(**features, output_hidden_states=True).hidden_states[layer][0]
        own = word_states(model, [words], [layer])[0][layer]
        for place in range(3):
            pieces = [at for at, word in enumerate(features.word_ids(0)) if word == place]
            torch.testing.assert_close(own[place], hidden[pieces].mean(dim=0))


@pytest.mark.parametrize("text", ["Der Hund schläft, 你好。", "我买了三本旧书。", "cafe\u0301 🙂"])
def test_a_sentence_is_cut_as_the_encoder_knows_it(make_model, text):
    """A word has the mean of the tokens that share a character with it, of the text as it is."""
    model = make_model()
    features = model.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    spans = features.pop("offset_mapping")[0].tolist()
    hidden = backbone(model).model(**features, output_hidden_states=True).hidden_states[2][0]
    words = split_words(text)
    states = word_states(model, [text], [2])[0][2]
    for state, (begin, end) in zip(states, word_spans(text, words), strict=True):
        own = [row for row, span in enumerate(spans) if set(range(begin, end)) & set(range(*span))]
        torch.testing.assert_close(state, hidden[own].mean(dim=0) if own else torch.zeros(16))
    (cosines,) = word_similarities(model, [text], [text], layer=2)
    torch.testing.assert_close(cosines.diagonal(), torch.where(states.any(dim=1), 1.0, torch.nan), equal_nan=True)


@pytest.mark.parametrize("method", ["itermax", "corpus"])
def test_batches_and_lengths_do_not_change_links(method, make_model, caplog):
    model = make_model(max_length=8)
    sources = ["Der Hund schläft.", "", "Ich lese ein sehr langes Buch über sehr viele Hunde und Katzen.", "Ja"]
    targets = ["The dog is sleeping.", "nothing", "I read a very long book about a great many dogs and cats.", "Yes"]
    one = align_words(model, sources, targets, method=method, batch_size=1)
    assert one == align_words(model, sources, targets, method=method, batch_size=4)
    assert one[1] == [] and one[2]
    # Eight tokens with CLS and SEP hold six words at most.
    assert max(i for i, _ in one[2]) < 6
    assert "4 of 8 sentences are longer than the model's maximum of 8 tokens" in caplog.text


@pytest.mark.parametrize(
    ("targets", "options", "fact"),
    [
        (["a", "b"], {}, "1.*2"),
        (["a"], {"layer": 3}, "1..2.*3"),
        (["a"], {"method": "both"}, "itermax.*both"),
        (["a"], {"batch_size": -1}, "-1"),
    ],
)
def test_bad_input(make_model, targets, options, fact):
    with pytest.raises(ValueError, match=fact):
        align_words(make_model(), ["a"], targets, **options)
