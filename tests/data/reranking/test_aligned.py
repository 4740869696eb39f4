"""Aligned pairs: what they hold, and what each fault is told as."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset

from st_xling.data.reranking.pairs import AlignedPairs
from st_xling.data.reranking.strategies import STRATEGIES
from st_xling.data.reranking.xpi import xpi_pairs
from tests.data.reranking.aligned_sentences import PASSAGES, QUERIES, by_hand, numbered


def test_rows_and_languages_can_be_picked() -> None:
    pairs = by_hand()
    assert pairs.languages == ("en", "zh", "ar", "th", "fr") and len(pairs) == 4
    picked = pairs.only(["th", "ar"]).select(np.array([3, 0]))
    assert picked.languages == ("th", "ar")
    assert picked.queries["th"] == ["อะไรสีแดง", "แมวนั่งที่ไหน"]
    assert picked.passages["ar"] == ["التفاح أحمر.", "القطة تجلس على السطح."]


def test_columns_of_data_sets_and_arrays_will_do() -> None:
    columns = Dataset.from_dict({"en": QUERIES["en"], "zh": QUERIES["zh"]})
    pairs = AlignedPairs(
        {code: columns[code] for code in ("en", "zh")},
        {code: tuple(PASSAGES[code]) for code in ("en", "zh")},
        np.array([1.0, 0.0, 1.0, 0.0]),
    )
    assert pairs.labels == [1, 0, 1, 0] and pairs.queries["zh"] == QUERIES["zh"]


def test_sides_of_unequal_length_name_language_and_lengths() -> None:
    with pytest.raises(ValueError, match=r"zh differ in length: 3 queries, 4 passages"):
        AlignedPairs(
            {"en": QUERIES["en"], "zh": QUERIES["zh"][:3]}, {"en": PASSAGES["en"], "zh": PASSAGES["zh"]}, [1] * 4
        )
    with pytest.raises(ValueError, match=r"zh has 3 pairs for 4 labels"):
        AlignedPairs(
            {"en": QUERIES["en"], "zh": QUERIES["zh"][:3]}, {"en": PASSAGES["en"], "zh": PASSAGES["zh"][:3]}, [1] * 4
        )


@pytest.mark.parametrize("label", [2, -1, 0.5, float("nan"), None, "1"])
def test_a_label_outside_0_and_1_names_its_rows(label: object) -> None:
    with pytest.raises(ValueError, match=r"labels must be 0 or 1: got .* in rows 1, 3"):
        AlignedPairs({"en": QUERIES["en"]}, {"en": PASSAGES["en"]}, [1, label, 0, label])  # type: ignore[list-item]


@pytest.mark.parametrize("blank", ["", " \u3000\n", None])
def test_a_blank_text_names_language_side_and_rows(blank: object) -> None:
    texts = [*PASSAGES["ar"][:2], blank, PASSAGES["ar"][3]]
    with pytest.raises(ValueError, match=r"passages in ar must all be texts that are not blank: rows 2 are not"):
        AlignedPairs({"ar": QUERIES["ar"]}, {"ar": texts}, [1] * 4)  # type: ignore[dict-item]


def test_many_faulty_rows_are_counted() -> None:
    with pytest.raises(ValueError, match=r"rows 0, 1, 2, 3, 4 and 7 more"):
        numbered(12, "en", labels=[7] * 12)


def test_sides_must_be_in_the_same_languages() -> None:
    with pytest.raises(ValueError, match="same languages: got en and zh"):
        AlignedPairs({"en": ["a"]}, {"zh": ["b"]}, [1])
    with pytest.raises(ValueError, match="got none and none"):
        AlignedPairs({}, {}, [])
    with pytest.raises(ValueError, match="expected languages out of en, zh: got de"):
        by_hand("en", "zh").only(["en", "de"])


@pytest.mark.parametrize("make", [*STRATEGIES.values(), xpi_pairs])
def test_what_mixes_languages_needs_two_and_rows(make: object) -> None:
    with pytest.raises(ValueError, match=r"at least 2 languages: got 1 \(zh\)"):
        make(by_hand("zh"))  # type: ignore[operator]
    with pytest.raises(ValueError, match="got none; check the files"):
        make(numbered(0, "en", "zh"))  # type: ignore[operator]
