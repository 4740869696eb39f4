"""Passages and their questions: relevance that is true, meanings that no other split has, the same in all languages."""

from __future__ import annotations

from functools import cache

import pytest

from st_xling.data.leak_key import text_hashes
from st_xling.data.phrasebook import LANGUAGES, parallel_phrases, phrase_passages, split_of
from st_xling.data.phrasebook.passages import PhrasePassages, _draw

SIZES = {"train": 400, "dev": 60, "test": 60}


@cache
def passages(split: str) -> PhrasePassages:
    return phrase_passages(LANGUAGES, split=split, size=SIZES[split])


def test_a_passage_reads_like_one() -> None:
    found = phrase_passages(["en", "zh"], split="test", size=2)
    assert found.ids == ["test-0-0", "test-0-1"]
    assert found.questions["en"][1] == "Did the driver write this letter?"
    assert found.passages["en"][1] == (
        "You say that these doctors are clever. The driver wrote this letter. There is a goat in the quiet hotel."
    )
    assert found.passages["zh"][1] == "你说这些医生很聪明。那位司机写了这封信。那家安静的酒店里有一只山羊。"


@pytest.mark.parametrize("split", SIZES)
def test_each_question_is_answered_by_its_own_passage_alone(split: str) -> None:
    drawn = _draw(split, SIZES[split], 0)
    stated: dict[str, list[int]] = {}
    for number, (_, sentences) in enumerate(drawn):
        for sentence in sentences:
            for clause in (sentence.main, sentence.other):
                if clause is not None:
                    stated.setdefault(clause.key, []).append(number)
    for number, (asked, sentences) in enumerate(drawn):
        assert stated[asked.main.key] == [number]
        assert 2 <= len(sentences) <= 4 and not any(sentence.question for sentence in sentences)
    answers = [next(s for s in sentences if s.main.key == asked.main.key) for asked, sentences in drawn]
    places = {sentences.index(answer) for (_, sentences), answer in zip(drawn, answers)}
    assert places >= {0, 1, 2}, "the answer must not always stand in one place"


@pytest.mark.parametrize("split", SIZES)
def test_all_meanings_are_of_the_split_and_read_unlike_in_every_language(split: str) -> None:
    for asked, sentences in _draw(split, SIZES[split], 0):
        assert {split_of(asked), *map(split_of, sentences)} == {split}
    found = passages(split)
    for language in LANGUAGES:
        texts = found.questions[language] + found.passages[language]
        assert len(set(text_hashes(texts).tolist())) == len(texts)


def test_no_text_of_a_split_is_in_another_nor_in_its_parallel_text() -> None:
    for language in ("de", "zh"):
        train = set(parallel_phrases(language, "en", size=3000)["source"]) | set(passages("train").questions[language])
        for split in ("dev", "test"):
            held = {*passages(split).questions[language], *passages(split).passages[language]}
            assert not held & train


def test_a_smaller_size_is_the_beginning_of_a_larger_one_and_seeds_differ() -> None:
    small, large = (phrase_passages(["de"], split="test", size=size) for size in (5, 20))
    assert large.passages["de"][:5] == small.passages["de"] and large.ids[:5] == small.ids
    other = phrase_passages(["de"], split="test", size=5, seed=1)
    assert not set(other.ids) & set(small.ids) and not set(other.passages["de"]) & set(small.passages["de"])


def test_the_same_meanings_whatever_the_languages() -> None:
    assert phrase_passages(["fr"], split="dev", size=60).passages["fr"] == passages("dev").passages["fr"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"split": "all"}, "split must be"),
        ({"size": 0}, "size must be at least 1"),
        ({"languages": ["ru"]}, "language must"),
    ],
)
def test_errors(options: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        phrase_passages(**{"languages": ["de"], **options})  # type: ignore[arg-type]
