"""Training pairs of a filter of translations: labels, kinds, directions."""

import random
from typing import Any

import pytest

from st_xling.data.phrasebook import parallel_phrases
from st_xling.data.reranking.filter_pairs import HARD_KINDS, filter_pairs_from_parallel, hard_pair

PAIR = ("Er kaufte 17 alte Bücher in der Stadt.", "He bought 17 old books in the town.")


@pytest.mark.parametrize("kind", [kind for kind in HARD_KINDS if kind != "entity"])
def test_a_hard_pair_of_each_kind(kind: str) -> None:
    def draw(codes: tuple[str, str], texts: tuple[str, str]) -> Any:
        return hard_pair(texts, codes, [kind], neighbor="It is raining again.", rng=random.Random(0))

    source, target = draw(("de", "en"), PAIR)
    assert source == PAIR[0] and target != PAIR[1]
    expected = {
        "number": lambda: "17" not in target,
        "causality": lambda: "17" in target and len(target.split()) >= 7,
        "cut": lambda: PAIR[1].startswith(target),
        "added": lambda: target == f"{PAIR[1]} It is",
        "copy": lambda: target == PAIR[0][:-1],
    }
    assert expected[kind]()
    # The English side is changed, whichever it is; of two other languages neither.
    turned = draw(("en", "de"), PAIR[::-1])
    if kind in ("number", "causality"):
        assert turned == (target, PAIR[0]) and draw(("de", "fr"), PAIR) is None


def test_labels_and_directions() -> None:
    """Each row has its translation, another row's sentence, and a hard pair, in either direction; the seed decides."""
    phrases = parallel_phrases("de", "en", size=80, seed=3)
    rows = filter_pairs_from_parallel({"de-en": phrases}, seed=1)
    true = set(zip(phrases["source"], phrases["target"]))
    positives = hard = reversed_rows = 0
    for row in rows:
        pair = (row["query"], row["passage"])
        if row["query_language"] == "en":
            reversed_rows += 1
            pair = pair[::-1]
        assert (pair in true) == (row["label"] == 1)
        positives += row["label"] == 1
        hard += row["label"] == 0
    assert positives == 80 and 80 < hard <= 160 and 60 < reversed_rows < len(rows) - 60
    again = filter_pairs_from_parallel({"de-en": phrases}, seed=1)
    assert again.to_dict() == rows.to_dict() != filter_pairs_from_parallel({"de-en": phrases}, seed=2).to_dict()
    assert len(filter_pairs_from_parallel({"de-en": phrases}, hard=[])) == 160
    with pytest.raises(ValueError, match="hard .*'numbers'; did you mean 'number'"):
        filter_pairs_from_parallel({"de-en": phrases}, hard=["numbers"])
    with pytest.raises(ValueError, match="hard must be a list.*got 'number'"):
        filter_pairs_from_parallel({"de-en": phrases}, hard="number")
