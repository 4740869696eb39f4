"""Mining end to end: every margin and retrieval against plain loops, symmetries, ties, thresholds and errors."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import MARGINS, RETRIEVALS, best_threshold, correct_pairs, evaluate_pairs, mine
from tests import reference_mining as reference


def parallel(pairs, distractors, seed, dim=6):
    """Noisy translations on a common direction, as encoders have them, with sentences that have no translation."""
    random = np.random.default_rng(seed)
    common = random.standard_normal((pairs, dim)) + 1
    source = np.vstack([common, random.standard_normal((distractors, dim)) + 1])
    target = np.vstack([common + 0.3 * random.standard_normal((pairs, dim)), random.standard_normal((3, dim)) + 1])
    return source, target


def as_list(pairs):
    return list(zip(pairs.scores.tolist(), pairs.source_indices.tolist(), pairs.target_indices.tolist()))


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize("k", [1, 4])
def test_equals_loops(margin, retrieval, k):
    source, target = parallel(12, 5, seed=k)
    found = as_list(mine(source, target, k=k, margin=margin, retrieval=retrieval))
    expected = reference.mine(source, target, k=k, margin=margin, retrieval=retrieval)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    # Cosines are reported in float32.
    assert [pair[0] for pair in found] == pytest.approx([pair[0] for pair in expected], abs=2e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.sampled_from(RETRIEVALS), st.integers(1, 9))
def test_blocks_do_not_change_a_bit(seed, margin, retrieval, block):
    random = np.random.default_rng(seed)
    source, target = random.integers(0, 2, (9, 4)) + [[1, 0, 0, 0]], random.integers(0, 2, (7, 4)) + [[1, 0, 0, 0]]
    whole = as_list(mine(source, target, k=3, margin=margin, retrieval=retrieval))
    options = dict(margin=margin, retrieval=retrieval, block_rows=block, block_columns=block)
    assert as_list(mine(source, target, k=3, **options)) == whole
    assert whole == sorted(whole, key=lambda pair: (-pair[0], pair[1], pair[2]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.sampled_from(RETRIEVALS))
def test_swapping_languages_swaps_pairs(seed, margin, retrieval):
    source, target = parallel(8, 2, seed)
    swapped = {"forward": "backward", "backward": "forward"}.get(retrieval, retrieval)
    one = mine(source, target, k=3, margin=margin, retrieval=retrieval)
    other = mine(target, source, k=3, margin=margin, retrieval=swapped)
    assert set(as_list(one)) == {(score, i, j) for score, j, i in as_list(other)}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.sampled_from(RETRIEVALS))
def test_permuting_sentences_permutes_pairs(seed, margin, retrieval):
    source, target = parallel(8, 2, seed)
    random = np.random.default_rng(seed)
    rows, columns = random.permutation(len(source)), random.permutation(len(target))
    one = mine(source, target, k=3, margin=margin, retrieval=retrieval)
    other = mine(source[rows], target[columns], k=3, margin=margin, retrieval=retrieval)
    assert set(as_list(one)) == {(score, int(rows[i]), int(columns[j])) for score, i, j in as_list(other)}


def test_max_and_intersect_are_one_to_one_and_nested():
    source, target = parallel(30, 20, seed=3)
    maximal, both = mine(source, target), mine(source, target, retrieval="intersect")
    for pairs in (maximal, both):
        assert len(set(pairs.source_indices.tolist())) == len(set(pairs.target_indices.tolist())) == len(pairs)
    assert len(mine(source, target, retrieval="forward")) == len(source)
    assert len(mine(source, target, retrieval="backward")) == len(target)
    assert len(both) <= len(maximal)


def test_duplicates_compete_by_index():
    """Rows 0 and 1 are one sentence on either side: the first two meet, and (1, 1) is no candidate."""
    source, target = np.array([[1.0, 0], [1, 0], [0.6, 0.8]]), np.array([[1.0, 0], [1, 0], [0.6, 0.8]])
    found = mine(source, target, k=2, margin="absolute")
    assert as_list(found)[0] == (1.0, 0, 0)
    assert set(zip(found.source_indices.tolist(), found.target_indices.tolist())) == {(0, 0), (2, 2)}


def test_threshold_keeps_what_reaches_it():
    source, target = parallel(12, 5, seed=0)
    everything = mine(source, target)
    threshold = float(everything.scores[4])
    assert as_list(mine(source, target, threshold=threshold)) == as_list(everything)[:5]
    assert len(mine(source, target, threshold=float("inf"))) == 0


def test_opposite_neighbourhoods_are_not_mined():
    """Every cosine is negative, so no ratio means anything; the other margins still rank."""
    source, target = np.eye(3) + 0.1, -np.eye(3) - 0.1
    for retrieval in RETRIEVALS:
        assert len(mine(source, target, k=2, retrieval=retrieval)) == 0
    assert len(mine(source, target, k=2, margin="distance")) > 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    source, target = (torch.from_numpy(side).to(dtype) for side in parallel(12, 5, seed=0))
    found = mine(source, target)
    assert as_list(found) == as_list(mine(source.double().numpy(), target.double().numpy()))
    assert np.isfinite(found.scores).all()


def test_single_sentences():
    assert as_list(mine(np.ones((1, 3)), np.ones((1, 3)), k=1)) == [(1.0, 0, 0)]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"retrieval": "fwd"}, "forward, backward, intersect, max: got 'fwd'"),
        ({"margin": "cosine"}, "absolute, distance, ratio: got 'cosine'"),
        ({"threshold": float("nan")}, "threshold must be a number: got NaN"),
        ({"k": 3}, "k must be smaller than the corpus"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        mine(np.eye(2), np.eye(2), **{"k": 1, **options})


def word_beginnings(texts, dim=2048):
    """Counts of hashed five-letter word beginnings, rare ones heavier: names and numbers survive translation."""
    counts = np.full((len(texts), dim), 1e-3, dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            counts[row, zlib.crc32(word.strip('.,;:!?"„“()')[:5].encode()) % dim] += 1
    return counts / ((counts >= 1).sum(axis=0) + 1) ** 0.4


def read_bucc(folder, pair, split):
    sides = []
    for language in pair.split("-"):
        lines = (folder / f"{pair}.{split}.{language}").read_text(encoding="utf-8").split("\n")
        sides.append(dict(line.split("\t", 1) for line in lines if line))
    source, target = ({name: row for row, name in enumerate(side)} for side in sides)
    lines = (folder / f"{pair}.{split}.gold").read_text(encoding="utf-8").splitlines()
    gold = [(source[one], target[other]) for one, other in (line.split("\t") for line in lines)]
    return [word_beginnings(list(side.values())) for side in sides], gold


def test_real_text_by_shared_words():
    """German and English news, without any model: the threshold chosen on the training half serves the test half.

    Of 3372 x 3372 possible pairs 84 are gold; guessing would find none.
    """
    data = Path(os.environ.get("ST_XLING_DATA", Path(__file__).parents[2] / ".." / "shared" / "data"))
    folder = data / "mining" / "de-en"
    if not folder.is_dir():
        pytest.skip("no mining/de-en under ST_XLING_DATA or ../shared/data")
    embeddings, gold = read_bucc(folder, "de-en", "training")
    mined = mine(*embeddings)
    chosen = best_threshold(mined.scores, correct_pairs(mined, gold), len(gold))
    assert evaluate_pairs(mined, gold, chosen.threshold) == chosen
    embeddings, gold = read_bucc(folder, "de-en", "test")
    judged = evaluate_pairs(mine(*embeddings), gold, chosen.threshold)
    assert chosen.f1 > 0.1
    assert judged.f1 > 0.05
