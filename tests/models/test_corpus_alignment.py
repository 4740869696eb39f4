"""Alignment by a corpus: the model by definition, what counts of other pairs change, and the edges."""

import math
from collections import defaultdict

import pytest
import torch

from st_xling.models import align
from st_xling.models.align import NO_PARTNER, ROUNDS, TEMPERATURE, link_by_corpus


def cosines(rows, columns, seed):
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.6 + 0.2


def chosen(sources, targets, similarities):
    """For each pair ``p(i | j)`` of source words i for each target word j, in loops."""
    kinds = len({word for words in targets for word in words})
    goes_with, alone = defaultdict(lambda: 1.0), defaultdict(lambda: 1.0)
    for _ in range(ROUNDS + 1):
        counts, of_source, nones, found = defaultdict(float), defaultdict(float), defaultdict(float), []
        for source, target, table in zip(sources, targets, similarities):
            own = [[0.0] * len(target) for _ in source]
            for j, word in enumerate(target):
                prior = [math.exp(table[i][j].item() / TEMPERATURE) for i in range(len(source))]
                share = [(1 - NO_PARTNER) * one / sum(prior) for one in prior]
                weight = [one * goes_with[v, word] for one, v in zip(share, source)]
                none = NO_PARTNER * alone[word]
                for i, v in enumerate(source):
                    own[i][j] = weight[i] / (sum(weight) + none)
                    counts[v, word] += own[i][j]
                    of_source[v] += own[i][j]
                nones[word] += none / (sum(weight) + none)
            found.append(own)
        goes_with = {pair: (count + 1 / kinds) / (of_source[pair[0]] + 1) for pair, count in counts.items()}
        alone = {word: (count + 1 / kinds) / (sum(nones.values()) + 1) for word, count in nones.items()}
    return found


def test_probabilities_are_the_definition(monkeypatch):
    sources = [["a", "b", "c"], ["b", "d"], ["a", "d", "b", "a"]]
    targets = [["x", "y"], ["y", "z", "x"], ["z", "x"]]
    tables = [cosines(len(s), len(t), seed) for seed, (s, t) in enumerate(zip(sources, targets))]
    seen = []
    monkeypatch.setattr(align, "_grown", lambda *both: seen.append(both))
    link_by_corpus(sources, targets, tables)
    turned = chosen(targets, sources, [table.T for table in tables])
    for (forward, backward), by_target, by_source in zip(seen, chosen(sources, targets, tables), turned, strict=True):
        assert forward.tolist() == [pytest.approx(row, rel=1e-5) for row in by_target]
        assert backward.T.tolist() == [pytest.approx(row, rel=1e-5) for row in by_source]


def test_a_word_said_by_two_keeps_both():
    sources = [["möchte", noun] for noun in "abcdefgh"]
    targets = [["want", "to", noun.upper()] for noun in "abcdefgh"]
    tables = [torch.tensor([[0.8, 0.45, 0.3], [0.3, 0.4, 0.8]])] * 8
    assert link_by_corpus(sources, targets, tables) == [[(0, 0), (0, 1), (1, 2)]] * 8


def test_a_large_corpus_is_counted_in_parts(monkeypatch):
    sources, targets = [["a", "b"], ["a", "c"], ["b", "c"]], [["x", "y"], ["x", "z"], ["y", "z"]]
    tables = [cosines(2, 2, seed) for seed in range(3)]
    whole = link_by_corpus(sources, targets, tables)
    monkeypatch.setattr(align, "WORD_PAIRS_AT_ONCE", 9)
    first, last = (link_by_corpus(sources[own], targets[own], tables[own]) for own in (slice(2), slice(2, None)))
    assert first + last == link_by_corpus(sources, targets, tables)
    monkeypatch.setattr(align, "WORD_PAIRS_AT_ONCE", 13)
    assert link_by_corpus(sources, targets, tables) == whole


def test_empty_sentences_and_words_that_were_not_read_have_no_links():
    table = torch.tensor([[0.9, 0.1], [torch.nan, torch.nan]])
    found = link_by_corpus([[], ["a", "b"], ["a"]], [["x"], ["x", "y"], []], [table[:0, :1], table, table[:1, :0]])
    assert found[0] == found[2] == [] and {i for i, _ in found[1]} == {0}
    assert link_by_corpus([], [], []) == [] and link_by_corpus([[]], [[]], [table[:0, :0]]) == [[]]


def test_other_pairs_set_right_what_a_pair_alone_gets_wrong():
    wrong, right = torch.tensor([[0.5, 0.6], [0.6, 0.5]]), torch.tensor([[0.8, 0.3], [0.3, 0.8]])
    assert link_by_corpus([["ja", "nein"]], [["yes", "no"]], [wrong]) == [[(0, 1), (1, 0)]]
    # Case and punctuation around a word do not make it another.
    sources, targets = [["ja", "nein"], *[["Ja", word] for word in "abcd"]], [["yes", "no"], *[["»Yes«", "no"]] * 4]
    sources += [["(nein)", word] for word in "efgh"]
    targets += [["no!", word] for word in "EFGH"]
    found = link_by_corpus(sources, targets, [wrong, *[right] * 8])
    assert found[0] == [(0, 0), (1, 1)] and found[5:] == [[(0, 0), (1, 1)]] * 4
