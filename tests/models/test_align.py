"""Word alignment: links by definition, words of every script, layers, and bad input."""

import pytest
import torch
import torch.nn.functional as F

from st_xling.models import align_words, split_words, word_similarities
from st_xling.models.align import Pieces, link_words, piece_similarities, read_pieces, word_spans


def pieces(number: int, words: int, seed: int) -> Pieces:
    """Random states of pieces, each of a word, some words with several."""
    states = torch.randn(number, 6, generator=torch.Generator().manual_seed(seed))
    belongs = torch.arange(number) * words // number == torch.arange(words)[:, None]
    return Pieces({1: states}, belongs / belongs.sum(dim=1, keepdim=True).clamp(min=1))


def cosine(x: torch.Tensor, y: torch.Tensor) -> float:
    return float(F.cosine_similarity(x, y, dim=0))


def by_loops(source: Pieces, target: Pieces) -> list[list[float]]:
    """Mean of the cosines of two pieces and of their words, whose states are the means of their pieces."""
    source_words = word_states(source)
    target_words = word_states(target)
    table = []
    for x, v in zip(source.states[1], source_words):
        table.append([(cosine(x, y) + cosine(v, w)) / 2 for y, w in zip(target.states[1], target_words)])
    return table


def word_states(side: Pieces) -> list[torch.Tensor]:
    """For each piece the mean state of the pieces of its word."""
    return [side.states[1][share > 0].mean(dim=0) for share in side.shares.T @ side.shares]


def mutual(table: list[list[float]]) -> set[tuple[int, int]]:
    best = [max(range(len(row)), key=row.__getitem__) for row in table]
    back = [max(range(len(table)), key=lambda i: table[i][j]) for j in range(len(table[0]))]
    return {(i, j) for i, j in enumerate(best) if back[j] == i and table[i][j] > 0}


@pytest.mark.parametrize("seed", range(4))
def test_links_are_the_definition(seed):
    source = pieces(7 + seed % 3, 4, seed)
    target = pieces(6 + seed % 4, 5, 100 + seed)
    similarities = by_loops(source, target)
    torch.testing.assert_close(piece_similarities(source, target, 1), torch.tensor(similarities))

    words = [side.shares.argmax(dim=0).tolist() for side in (source, target)]
    nearest = mutual([[(1 + value) / 2 for value in row] for row in similarities])
    links = link_words(source, target, 1, method="intersection")
    assert links == sorted({(words[0][i], words[1][j]) for i, j in nearest})
    table = [[-1.0] * 5 for _ in range(4)]
    for p, i in enumerate(words[0]):
        for q, j in enumerate(words[1]):
            table[i][j] = max(table[i][j], (1 + similarities[p][q]) / 2)
    first = mutual(table)
    rows = {i for i, _ in first}
    columns = {j for _, j in first}
    for i, row in enumerate(table):
        for j in range(len(row)):
            if i in rows and j in columns:
                row[j] = 0.0
            elif i in rows or j in columns:
                row[j] *= 0.9
    assert link_words(source, target, 1) == sorted(first | mutual(table))


def test_a_word_without_pieces_and_an_empty_sentence_have_no_links():
    source = pieces(3, 2, 0)
    target = pieces(3, 3, 1)
    none = Pieces({1: torch.empty(0, 6)}, torch.empty(2, 0))
    source = source._replace(shares=torch.cat([source.shares[:1], torch.zeros(1, 3), source.shares[1:]]))
    assert {i for i, _ in link_words(source, target, 1)} <= {0, 2}
    assert link_words(source, none, 1) == link_words(none, target, 1) == []


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


@pytest.mark.parametrize("text", ["Der Hund schläft, 你好。", "我买了三本旧书。", "cafe\u0301 🙂"])
def test_a_sentence_is_cut_as_the_encoder_knows_it(make_model, text):
    """A word has the pieces that share a character with it, of the text as it is."""
    model = make_model()
    spans = model.tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    words = split_words(text)
    [actual] = read_pieces(model, [text], [2])
    expected = []
    for begin, end in word_spans(text, words):
        expected.append([bool(set(range(begin, end)) & set(range(*span))) for span in spans])
    kept = [row for row in zip(*expected) if any(row)]
    assert [tuple(row) for row in (actual.shares > 0).T.tolist()] == kept
    (similarities,) = word_similarities(model, [text], [text], layer=2)
    covered = torch.tensor([any(in_word) for in_word in expected])
    torch.testing.assert_close(similarities.diagonal(), torch.where(covered, 1.0, torch.nan), equal_nan=True)


@pytest.mark.parametrize("method", ["itermax", "corpus"])
def test_batches_and_lengths_do_not_change_links(method, make_model, caplog):
    model = make_model(max_length=8)
    sources = ["Der Hund schläft.", "", "Ich lese ein sehr langes Buch über sehr viele Hunde und Katzen.", "Ja"]
    targets = ["The dog is sleeping.", "nothing", "I read a very long book about a great many dogs and cats.", "Yes"]
    one_at_a_time = align_words(model, sources, targets, method=method, batch_size=1)
    assert one_at_a_time == align_words(model, sources, targets, method=method, batch_size=4)
    assert one_at_a_time[1] == [] and one_at_a_time[2]
    # Eight tokens with CLS and SEP hold six words at most.
    assert max(i for i, _ in one_at_a_time[2]) < 6
    assert "4 of 8 sentences are longer than the model's maximum of 8 tokens" in caplog.text


def test_what_is_refused(make_model):
    for options, fact in (({"targets": ["a", "b"]}, "1.*2"), ({"layer": 3}, "1 to 2.*3"), ({"method": "both"}, "both")):
        with pytest.raises(ValueError, match=fact):
            align_words(make_model(), ["a"], **{"targets": ["a"], **options})
