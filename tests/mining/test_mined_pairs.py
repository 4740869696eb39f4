"""Mining end to end: every margin and retrieval against plain loops, symmetries, ties, thresholds and errors."""

import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from st_xling.mining import (
    MinedPairs,
    Neighbors,
    Xsim,
    align_texts,
    best_pairs,
    calibrate,
    encode,
    find_neighbors,
    margin_scores,
    mine,
    mine_texts,
    score_texts,
    xsim,
)
from tests import reference_mining as reference
from tests.reference_mining import MARGINS, RETRIEVALS


def parallel(pairs, distractors, seed, dim=6):
    """Noisy translations on a common direction, as encoders have them, with sentences that have no translation."""
    random = np.random.default_rng(seed)
    common = random.standard_normal((pairs, dim)) + 1
    source = np.vstack([common, random.standard_normal((distractors, dim)) + 1])
    target = np.vstack([common + 0.3 * random.standard_normal((pairs, dim)), random.standard_normal((3, dim)) + 1])
    return source, target


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize("k", [1, 4])
def test_equals_loops(margin, retrieval, k):
    source, target = parallel(12, 5, seed=k)
    found = list(mine(source, target, k=k, margin=margin, retrieval=retrieval))
    expected = reference.mine(source, target, k=k, margin=margin, retrieval=retrieval)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    # Cosines are reported in float32.
    assert [pair[0] for pair in found] == pytest.approx([pair[0] for pair in expected], abs=2e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.sampled_from(RETRIEVALS))
def test_swapping_languages_swaps_pairs_and_permuting_sentences_permutes_them(seed, margin, retrieval):
    source, target = parallel(8, 2, seed)
    one = set(list(mine(source, target, k=3, margin=margin, retrieval=retrieval)))
    back = {"forward": "backward", "backward": "forward"}.get(retrieval, retrieval)
    other = mine(target, source, k=3, margin=margin, retrieval=back)
    assert one == {(score, i, j) for score, j, i in list(other)}
    random = np.random.default_rng(seed)
    rows, columns = random.permutation(len(source)), random.permutation(len(target))
    other = mine(source[rows], target[columns], k=3, margin=margin, retrieval=retrieval)
    assert one == {(score, int(rows[i]), int(columns[j])) for score, i, j in list(other)}


def test_blank_texts_have_no_pair_and_rows_without_text_are_named(make_model):
    """An empty cell was paired with the sentence that nothing else wanted; ``None`` gave an AttributeError."""
    model, sources = make_model(), ["", "Der Hund schläft.", " \u200b", "Ich lese."]
    targets = ["I read.", "The dog is sleeping.", "\n"]
    for retrieval in RETRIEVALS:
        pairs = mine(sources, targets, model=model, k=2, retrieval=retrieval)
        expected = mine([sources[1], sources[3]], targets[:2], model=model, k=2, retrieval=retrieval)
        assert [(score, {0: 1, 1: 3}[i], j) for score, i, j in expected] == list(pairs) and len(pairs)
    with pytest.raises(ValueError, match=r"k=3 for 2 source"):
        mine(sources, targets, model=model, k=3)
    for rows, message in (
        (["Ich lese.", None], r"got None as target\[1\]; leave it out"),
        ([None, "Ich lese."], r"got None as target\[0\]"),
        ([float("nan"), "Ich lese."], r"got nan as target\[0\]"),
        (["Ich lese.", b"x"], r"got b'x' as target\[1\]"),
        (["Ich lese.", "\ud800"], r"target\[1\] has half of a surrogate pair"),
        (["", " "], "all 2 texts are blank"),
    ):
        with pytest.raises(ValueError, match=message):
            mine(sources, rows, model=model, k=1)


def test_sentences_and_what_pairs_are(make_model):
    model, sources, targets = make_model(), ["Der Hund schläft.", "Ich lese."], ["I read.", "The dog is sleeping."]
    pairs = mine(sources, targets, model=model, k=2)
    same = mine(model.encode(sources), model.encode(targets), k=2)
    assert list(pairs) == [pairs[row] for row in range(len(pairs))]
    np.testing.assert_allclose(pairs.scores, same.scores, atol=1e-5)
    prompted = mine(sources, targets, model=model, prompt="Ich lese: ", k=2)
    same = mine(*(model.encode(texts, prompt="Ich lese: ") for texts in (sources, targets)), k=2)
    np.testing.assert_allclose(prompted.scores, same.scores, atol=1e-5)
    assert not np.allclose(prompted.scores, pairs.scores, atol=1e-5)
    assert list(pairs[1:]) == list(pairs)[1:] and f"{len(pairs)} pairs" in repr(pairs)
    score, one, other = pairs[0]
    row = {"source": sources[one], "target": targets[other], "score": score}
    assert pairs.to_dataset(sources, targets)[0] == row
    with pytest.raises(ValueError, match="sentences with their encoder"):
        mine(sources, targets)


def test_duplicates_compete_by_index():
    """Rows 0 and 1 are one sentence on either side: the first two meet, and (1, 1) is no candidate."""
    source, target = np.array([[1.0, 0], [1, 0], [0.6, 0.8]]), np.array([[1.0, 0], [1, 0], [0.6, 0.8]])
    found = mine(source, target, k=2, margin="absolute")
    assert found[0] == (1.0, 0, 0)
    assert set(zip(found.source_indices.tolist(), found.target_indices.tolist())) == {(0, 0), (2, 2)}


def test_threshold_keeps_what_reaches_it():
    source, target = parallel(12, 5, seed=0)
    everything = mine(source, target)
    threshold = float(everything.scores[4])
    assert list(mine(source, target, threshold=threshold)) == list(everything)[:5]
    assert len(mine(source, target, threshold=float("inf"))) == 0


def test_opposite_neighborhoods_are_not_mined():
    """Every cosine is negative, so no ratio means anything; the other margins still rank."""
    source, target = np.eye(3) + 0.1, -np.eye(3) - 0.1
    for retrieval in RETRIEVALS:
        assert len(mine(source, target, k=2, retrieval=retrieval)) == 0
    assert len(mine(source, target, k=2, margin="distance")) > 0


@pytest.mark.parametrize(
    "options, message",
    [
        ({"retrieval": "fwd"}, "max, intersect, forward, backward: got 'fwd'"),
        ({"margin": "cosine"}, "ratio, distance, absolute: got 'cosine'"),
        ({"k": 3}, "k must be smaller than the corpus"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        mine(np.eye(2), np.eye(2), **{"k": 1, **options})


def tied(sources: int, targets: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of which many agree, so that there are ties, and one part negative."""
    random = np.random.default_rng(seed)
    return tuple(random.integers(-1, 3, (rows, 4)) + np.array([2, 0, 0, 0.5]) for rows in (sources, targets))


def best_allowed(
    forward: Neighbors, backward: Neighbors, forbidden: set[tuple[int, int]], margin: str, retrieval: str
) -> list[tuple[float, int, int]]:
    """All candidates that are allowed and have a score; each sentence's best of its own list; then the retrieval.

    Of "max", what a sentence gets in place of a better candidate that is forbidden must be the best of both.
    """

    def score(source: int, target: int, cosine: float) -> float:
        means = (forward.means[source], backward.means[target])
        return float(margin_scores(cosine, *means, margin=margin))

    def best(own: Neighbors, turned: bool) -> tuple[set[tuple[float, int, int]], set[tuple[float, int, int]]]:
        chosen = set()
        in_place_of_others = set()
        for row, (others, cosines) in enumerate(zip(own.indices.tolist(), own.similarities.tolist())):
            candidates = []
            for other, cosine in zip(others, cosines):
                pair = (other, row) if turned else (row, other)
                if (value := score(*pair, cosine)) > -np.inf:
                    candidates.append((-value, other, pair))
            allowed = [candidate for candidate in candidates if candidate[2] not in forbidden]
            if allowed:
                value, _, pair = min(allowed)
                chosen.add((-value, *pair))
                if min(allowed) != min(candidates):
                    in_place_of_others.add((-value, *pair))
        return chosen, in_place_of_others

    from_source, next_from_source = best(forward, False)
    from_target, next_from_target = best(backward, True)
    mutual = from_source & from_target
    together = {
        "forward": from_source,
        "backward": from_target,
        "intersect": mutual,
        "max": (from_source - next_from_source) | (from_target - next_from_target) | mutual,
    }[retrieval]
    ordered = sorted(together, key=lambda pair: (-pair[0], *pair[1:]))
    if retrieval != "max":
        return ordered
    kept: list[tuple[float, int, int]] = []
    for pair in ordered:
        if all(pair[1] != other[1] and pair[2] != other[2] for other in kept):
            kept.append(pair)
    return kept


@pytest.mark.parametrize("retrieval", RETRIEVALS)
@pytest.mark.parametrize(("margin", "share"), [("ratio", 0.3), ("distance", 0.7), ("ratio", 1.0), ("absolute", 0.0)])
def test_best_allowed_pairs_by_definition(retrieval: str, margin: str, share: float) -> None:
    for seed in range(8):
        forward, backward = find_neighbors(*tied(13, 17, seed), k=4)
        random = np.random.default_rng(seed)
        forbidden = {pair for pair in product(range(13), range(17)) if random.random() < share}
        asked: list[tuple[int, int]] = []

        def allow(pairs: MinedPairs, forbidden=forbidden, asked=asked) -> np.ndarray:
            some = list(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist()))
            asked.extend(some)
            return np.array([pair not in forbidden for pair in some], dtype=bool)

        found = best_pairs(forward, backward, allow=allow, margin=margin, retrieval=retrieval)
        assert list(found) == best_allowed(forward, backward, forbidden, margin, retrieval)
        assert len(asked) == len(set(asked))


@pytest.mark.parametrize("retrieval", RETRIEVALS)
def test_spent_sentences_are_nobodys_partners(retrieval: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An English line in a German text, free of its copy, took a wrong partner: in manuals 28 times of 28.

    The result is as if all pairs with spent sentences were forbidden, whatever the number of rows looked at together.
    """
    for seed in range(8):
        both = find_neighbors(*tied(13, 17, seed), k=4)
        random = np.random.default_rng(seed)
        forbidden = {pair for pair in product(range(13), range(17)) if random.random() < 0.3}
        found = []
        for rows_at_once in (2048, 3):
            monkeypatch.setattr("st_xling.mining.mined_pairs._ROWS_AT_ONCE", rows_at_once)
            spent_sources: set[int] = set()
            spent_targets: set[int] = set()
            asked: list[tuple[int, int]] = []

            def allow(pairs: MinedPairs, forbidden=forbidden, asked=asked) -> np.ndarray:
                some = list(zip(pairs.source_indices.tolist(), pairs.target_indices.tolist()))
                asked.extend(some)
                return np.array([pair not in forbidden for pair in some], dtype=bool)

            def spent(pairs: MinedPairs, spent_sources=spent_sources, spent_targets=spent_targets) -> Any:
                source_is_spent = pairs.source_indices % 3 == 0
                target_is_spent = pairs.target_indices % 5 == 0
                spent_sources.update(pairs.source_indices[source_is_spent].tolist())
                spent_targets.update(pairs.target_indices[target_is_spent].tolist())
                return source_is_spent, target_is_spent

            found.append(list(best_pairs(*both, allow=allow, spent=spent, retrieval=retrieval)))
            assert len(asked) == len(set(asked))
        assert spent_sources or spent_targets
        nobodys = {
            pair for pair in product(range(13), range(17)) if {pair[0]} & spent_sources or {pair[1]} & spent_targets
        }
        assert found[0] == found[1] == best_allowed(*both, forbidden | nobodys, "ratio", retrieval)


def test_swapping_languages_swaps_pairs_where_sentences_are_spent() -> None:
    """The sources were asked first, and hid pairs of spent ones from the targets: de-en and en-de found other pairs.

    In each of these draws they did.
    """
    for seed in (15, 19, 35, 38, 52, 56):
        random = np.random.default_rng(seed)
        forward, backward = find_neighbors(*map(random.standard_normal, ((12, 6), (15, 6))), k=4)
        is_allowed = random.random((12, 15)) >= 0.35
        is_spent = (random.random(12) < 0.4, random.random(15) < 0.4)

        def allow(pairs: MinedPairs, is_allowed=is_allowed) -> np.ndarray:
            return is_allowed[pairs.source_indices, pairs.target_indices]

        def allow_swapped(pairs: MinedPairs, is_allowed=is_allowed) -> np.ndarray:
            return is_allowed[pairs.target_indices, pairs.source_indices]

        def spent(pairs: MinedPairs, is_spent=is_spent) -> tuple[np.ndarray, np.ndarray]:
            return is_spent[0][pairs.source_indices], is_spent[1][pairs.target_indices]

        def spent_swapped(pairs: MinedPairs, is_spent=is_spent) -> tuple[np.ndarray, np.ndarray]:
            return is_spent[1][pairs.source_indices], is_spent[0][pairs.target_indices]

        pairs = best_pairs(forward, backward, allow=allow, spent=spent)
        swapped = best_pairs(backward, forward, allow=allow_swapped, spent=spent_swapped)
        assert len(pairs) and {pair[1:] for pair in pairs} == {(source, target) for _, target, source in swapped}


@pytest.mark.parametrize("retrieval", RETRIEVALS)
def test_a_removed_pair_leaves_its_sentences_alone(retrieval: str) -> None:
    """What ``keep`` removes was chosen before: nothing else changes, whatever the number of pairs asked at once."""
    random = np.random.default_rng(0)
    for rows in (13, 3000):
        source = random.standard_normal((rows, 8))
        target = source + 0.8 * random.standard_normal((rows, 8))
        both = find_neighbors(source, target, k=4)

        def odd(pairs: MinedPairs) -> np.ndarray:
            return pairs.source_indices % 2 == 1

        chosen = best_pairs(*both, retrieval=retrieval)
        kept = best_pairs(*both, retrieval=retrieval, keep=odd)
        assert 0 < len(kept) < len(chosen)
        assert list(kept) == [pair for pair in chosen if pair[1] % 2 == 1]


@pytest.mark.parametrize(("other", "expected"), [([0.8, 0.5], [(0, 0)]), ([0.3, 1], [(0, 0), (1, 2)])])
def test_a_forbidden_best_match_leaves_no_wrong_one(other: list[float], expected: list[tuple[int, int]]) -> None:
    """An untranslated line, free of its copy, took what was left: in manuals, 3 of 55 pairs, all of them wrong.

    Source 1 is a copy of target 1. Target 2 is its translation if they are each other's best, otherwise nobody's.
    """
    source = np.array([[1, 0.1], [0.1, 1]])
    target = np.array([[1, 0.2], [0.1, 1], other])

    def translated(pairs: MinedPairs) -> np.ndarray:
        return (pairs.source_indices != 1) | (pairs.target_indices != 1)

    pairs = best_pairs(*find_neighbors(source, target, k=2), allow=translated, margin="absolute")
    assert sorted((source, target) for _, source, target in pairs) == expected


def test_pairs_below_the_threshold_are_not_asked_about() -> None:
    lowest = []

    def allow(pairs: MinedPairs) -> np.ndarray:
        lowest.append(pairs.scores.min())
        return np.zeros(len(pairs), dtype=bool)

    found = best_pairs(*find_neighbors(*tied(40, 30, 3), k=3), allow=allow, threshold=1.01)
    assert len(found) == 0 and min(lowest) >= 1.01


def test_bytes_a_sentence(peak_growth) -> None:
    """Beyond their neighbors: what lets ten million sentences a side fit, whatever the share of mutual pairs."""
    rows, k, random = 100_000, 4, np.random.default_rng(0)
    for mutual in (0.0, 0.9):
        partners = random.permutation(rows)
        both = []
        for near in (partners, np.argsort(partners)):
            indices = random.integers(0, rows, (rows, k))
            indices[:, 0] = np.where(random.random(rows) < mutual, near, indices[:, 0])
            both.append(Neighbors(np.tile(np.float32([0.9, 0.5, 0.4, 0.3]), (rows, 1)), indices))
        assert peak_growth(lambda both=both: best_pairs(*both)) < 2 * rows * 84


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(MARGINS), st.integers(1, 5), st.integers(5, 15))
def test_xsim_equals_loops(seed, margin, k, rows):
    random = np.random.default_rng(seed)
    source = random.standard_normal((rows, 6)) + 0.5
    target = source + 1.2 * random.standard_normal((rows, 6))
    assert xsim(source, target, k=k, margin=margin) == Xsim(
        reference.xsim_errors(source, target, k=k, margin=margin), rows
    )


def test_xsim_of_repeated_sentences_and_without_a_meaningful_ratio():
    """Rows 0 and 2 are one sentence: the first is found for both, an error by index."""
    rows = np.eye(3)[[0, 1, 0]] + 0.1
    assert xsim(rows, rows, k=2, margin="absolute") == Xsim(1, 3)
    assert xsim(np.eye(3) + 0.1, -np.eye(3) - 0.1, k=2) == Xsim(3, 3)
    with pytest.raises(ValueError, match="row-aligned: got 3 and 2 rows"):
        xsim(np.eye(3), np.eye(2, 3), k=1)


LIGHT = """
import sys, st_xling.mining as mining
mining.{}
heavy = ("st_xling.training", "st_xling.losses", "st_xling.reranking", "st_xling.evaluation", {})
assert not [name for name in sys.modules if name.startswith(heavy)]
"""


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("mine", "'st_xling.models', 'sentence_transformers', 'transformers'"),
        pytest.param(
            "mine_texts", "'st_xling.models.cross_encoders', 'st_xling.models.pair_scorer'", marks=pytest.mark.slow
        ),
    ],
)
def test_importing_is_light(name: str, models: str) -> None:
    """Mining vectors loads no model code at all; mining text none of training, losses or cross-encoders."""
    subprocess.run([sys.executable, "-c", LIGHT.format(name, models)], check=True, timeout=120)


def test_arguments_that_are_not_known_or_not_named():
    """Python names neither the nearest keyword of ``treshold=`` nor what to pass instead of a third positional one."""
    with pytest.raises(TypeError, match=r"mine\(\) has no argument 'treshold'; did you mean 'threshold'"):
        mine(np.eye(3), np.eye(3), treshold=1)
    with pytest.raises(TypeError, match=r"mine\(\) takes source, target; pass other arguments by name, .* model="):
        mine("my-encoder", ["a"], ["b"])
    for function in (mine_texts, score_texts, align_texts, encode, calibrate):
        with pytest.raises(TypeError, match=rf"{function.__name__}\(\) has no argument 'bach_size'"):
            function("a", "b", "c", bach_size=1)


def test_numbers_that_are_none_are_refused_before_anything_is_read(tmp_path):
    """A threshold that is not a number kept no pair, without a word: no score is above it."""
    with pytest.raises(ValueError, match="threshold must be a finite number: got nan"):
        mine(np.eye(3), np.eye(3), k=1, threshold=float("nan"))
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="threshold must be a finite number"):
            mine_texts("absent.de", "absent.en", tmp_path / "out", threshold=number)
        with pytest.raises(ValueError, match="threshold must be a finite number"):
            score_texts("absent.tsv", tmp_path / "out", threshold=number)
        with pytest.raises(ValueError, match="min_score must be a finite number"):
            align_texts([("absent.de", "absent.en")], tmp_path / "out", model="absent", min_score=number)
    with pytest.raises(ValueError, match="target_precision must be at least"):
        mine_texts("absent.de", "absent.en", tmp_path / "out", target_precision=-1.0)
    with pytest.raises(ValueError, match="seed must be at least 0: got -1"):
        calibrate(np.eye(3), np.eye(3), np.eye(4), np.eye(4), seed=-1)
