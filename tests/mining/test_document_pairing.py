"""Which documents belong together, by the vectors of their sentences."""

from collections.abc import Sequence

import numpy as np
import pytest

from st_xling.mining import pair_by_sentences
from st_xling.mining.document_pairing import CANDIDATES, SCORED_SENTENCES, bimax

DIM = 64


def collection(count: int, sentences: int, seed: int) -> list[np.ndarray]:
    """Documents on eight subjects, whose sentences are near each other."""
    rng = np.random.default_rng(seed)
    subjects = rng.standard_normal((8, DIM))
    documents = []
    for number in range(count):
        documents.append(subjects[number % 8] + 3 * rng.standard_normal((sentences + number % 3, DIM)))
    return documents


def translations(documents: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Vectors of another language: all moved in one direction, with noise, and a sentence of each document lost."""
    rng = np.random.default_rng(seed)
    moved = 3 * rng.standard_normal(DIM)
    return [moved + document[1:] + 0.7 * rng.standard_normal((len(document) - 1, DIM)) for document in documents]


@pytest.mark.parametrize("count", [CANDIDATES, 60])
def test_shuffled_documents_find_each_other_and_the_rest_stay_alone(count: int) -> None:
    """A document without a translation was given the best of what was left; every sentence of that pair is wrong."""
    documents = collection(count, 12, seed=1)
    source = documents[: count - 5]
    shuffled = np.random.default_rng(2).permutation(np.arange(5, count))
    target = translations([documents[number] for number in shuffled], seed=3)
    pairs = pair_by_sentences(source, target)
    assert {(pair.source, shuffled[pair.target]) for pair in pairs} == {(row, row) for row in range(5, count - 5)}
    assert [pair.score for pair in pairs] == sorted((pair.score for pair in pairs), reverse=True)
    # Languages are interchangeable.
    mirrored = pair_by_sentences(target, source)
    assert {(pair.target, pair.source) for pair in mirrored} == {(pair.source, pair.target) for pair in pairs}
    # Those that are left of either side, too, if asked for.
    assert len(pair_by_sentences(source, target, min_lead=-1)) > count - 8


def test_the_score_is_the_mean_of_the_best_cosines() -> None:
    """By definition, in plain loops; and of long documents an average over some sentences, against all of the other."""
    rng = np.random.default_rng(0)
    source, target = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (rng.standard_normal((5, DIM)), rng.standard_normal((7, DIM)))
    )
    cosines = [[float(one @ other) for other in target] for one in source]
    forward = sum(map(max, cosines)) / 5
    backward = sum(map(max, zip(*cosines))) / 7
    assert bimax(source, target) == pytest.approx((forward + backward) / 2, rel=1e-9)
    long = np.repeat(source, SCORED_SENTENCES, axis=0)
    assert bimax(long, target) == pytest.approx((forward + backward) / 2, rel=1e-9)


def test_few_and_empty_documents() -> None:
    vectors = np.eye(4)
    assert pair_by_sentences([], [vectors]) == [] and pair_by_sentences([vectors[:0]], [vectors]) == []
    (pair,) = pair_by_sentences([vectors[:0], vectors], [vectors + 0.01])
    assert (pair.source, pair.target) == (1, 0) and pair.score == pytest.approx(pair.lead) == pytest.approx(1.0)
