"""Alignment by a corpus: the model by definition, what counts of other pairs change, and the edges."""

import math
from collections import defaultdict

import pytest
import torch

from st_xling.models import align
from st_xling.models.align import NO_PARTNER, ROUNDS, TEMPERATURE, link_by_corpus


def cosines(rows, columns, seed):
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.6 + 0.2


def choice_probabilities(sources, targets, similarities):
    """For each pair ``p(i | j)`` of source words i for each target word j, in loops."""
    type_count = len({word for words in targets for word in words})
    goes_with = defaultdict(lambda: 1.0)
    without_partner = defaultdict(lambda: 1.0)
    for _ in range(ROUNDS + 1):
        counts = defaultdict(float)
        of_source = defaultdict(float)
        nones = defaultdict(float)
        probabilities = []
        for source, target, table in zip(sources, targets, similarities):
            matrix = [[0.0] * len(target) for _ in source]
            for j, word in enumerate(target):
                priors = [math.exp(table[i][j].item() / TEMPERATURE) for i in range(len(source))]
                shares = [(1 - NO_PARTNER) * prior / sum(priors) for prior in priors]
                weights = [share * goes_with[v, word] for share, v in zip(shares, source)]
                none = NO_PARTNER * without_partner[word]
                for i, v in enumerate(source):
                    matrix[i][j] = weights[i] / (sum(weights) + none)
                    counts[v, word] += matrix[i][j]
                    of_source[v] += matrix[i][j]
                nones[word] += none / (sum(weights) + none)
            probabilities.append(matrix)
        goes_with = {pair: (count + 1 / type_count) / (of_source[pair[0]] + 1) for pair, count in counts.items()}
        total = sum(nones.values())
        without_partner = {word: (count + 1 / type_count) / (total + 1) for word, count in nones.items()}
    return probabilities


def test_probabilities_are_the_definition(monkeypatch):
    sources = [["a", "b", "c"], ["b", "d"], ["a", "d", "b", "a"]]
    targets = [["x", "y"], ["y", "z", "x"], ["z", "x"]]
    tables = [cosines(len(s), len(t), seed) for seed, (s, t) in enumerate(zip(sources, targets))]
    results = []
    monkeypatch.setattr(align, "_grow_links", lambda *directions: results.append(directions))
    link_by_corpus(sources, targets, tables)
    by_targets = choice_probabilities(sources, targets, tables)
    by_sources = choice_probabilities(targets, sources, [table.T for table in tables])
    for (forward, backward), by_target, by_source in zip(results, by_targets, by_sources, strict=True):
        assert forward.tolist() == [pytest.approx(row, rel=1e-5) for row in by_target]
        assert backward.T.tolist() == [pytest.approx(row, rel=1e-5) for row in by_source]


def test_a_word_said_by_two_keeps_both():
    sources = [["möchte", noun] for noun in "abcdefgh"]
    targets = [["want", "to", noun.upper()] for noun in "abcdefgh"]
    tables = [torch.tensor([[0.8, 0.45, 0.3], [0.3, 0.4, 0.8]])] * 8
    assert link_by_corpus(sources, targets, tables) == [[(0, 0), (0, 1), (1, 2)]] * 8


def test_a_large_corpus_is_counted_in_parts(monkeypatch):
    sources = [["a", "b"], ["a", "c"], ["b", "c"]]
    targets = [["x", "y"], ["x", "z"], ["y", "z"]]
    tables = [cosines(2, 2, seed) for seed in range(3)]
    at_once = link_by_corpus(sources, targets, tables)
    monkeypatch.setattr(align, "WORD_PAIRS_AT_ONCE", 9)
    first = link_by_corpus(sources[:2], targets[:2], tables[:2])
    last = link_by_corpus(sources[2:], targets[2:], tables[2:])
    assert first + last == link_by_corpus(sources, targets, tables)
    monkeypatch.setattr(align, "WORD_PAIRS_AT_ONCE", 13)
    assert link_by_corpus(sources, targets, tables) == at_once


def test_empty_sentences_and_words_that_were_not_read_have_no_links():
    table = torch.tensor([[0.9, 0.1], [torch.nan, torch.nan]])
    tables = [table[:0, :1], table, table[:1, :0]]
    links = link_by_corpus([[], ["a", "b"], ["a"]], [["x"], ["x", "y"], []], tables)
    assert links[0] == links[2] == [] and {i for i, _ in links[1]} == {0}
    assert link_by_corpus([], [], []) == [] and link_by_corpus([[]], [[]], [table[:0, :0]]) == [[]]


def test_other_pairs_set_right_what_a_pair_alone_gets_wrong():
    wrong = torch.tensor([[0.5, 0.6], [0.6, 0.5]])
    right = torch.tensor([[0.8, 0.3], [0.3, 0.8]])
    assert link_by_corpus([["ja", "nein"]], [["yes", "no"]], [wrong]) == [[(0, 1), (1, 0)]]
    # Case and punctuation around a word do not make it another.
    sources = [["ja", "nein"], *[["Ja", word] for word in "abcd"]]
    targets = [["yes", "no"], *[["»Yes«", "no"]] * 4]
    sources += [["(nein)", word] for word in "efgh"]
    targets += [["no!", word] for word in "EFGH"]
    links = link_by_corpus(sources, targets, [wrong, *[right] * 8])
    assert links[0] == [(0, 0), (1, 1)] and links[5:] == [[(0, 0), (1, 1)]] * 4
