"""Hard near-translations by category; what may not change; what holds of all."""

import pytest

from st_xling.data import HARD_CATEGORIES, hard_translations
from st_xling.data.phrasebook import phrase_sentences

# Sentence, kind, what it becomes: one of the texts of that kind.
CHANGED = [
    ("The train is late.", "negation", "The train is not late."),
    ("The train isn’t late.", "negation", "The train is late."),
    ("He did not go home.", "negation", "He did go home."),
    ("Everyone was there.", "negation", "No one was there."),
    ("She has seen it.", "negation", "She has not seen it."),
    ("This is an old house.", "antonym", "This is a new house."),
    ("They sold a new umbrella.", "antonym", "They sold an old umbrella."),
    ("A young man came.", "antonym", "An old man came."),
    ("He saw an unhappy child.", "antonym", "He saw a happy child."),
    ("It was a happy child.", "antonym", "It was an unhappy child."),
    ("She had a European passport.", "nationality", "She had an Indian passport."),
    ("They paid an 8 percent fee.", "number", "They paid a 5 percent fee."),
    ("We left because of rain.", "cause", "We left despite rain."),
    ("He came on Monday", "date", "He came on "),
    ("We spoke with Minister Okonjo about it.", "surname", "We spoke with Minister "),
    ("It is hot in Ouagadougou now.", "city", "It is hot in "),
    ("It happened in Germany.", "country", "It happened in "),
    ("I saw Barack Obama today.", "person", "I saw "),
]


@pytest.mark.parametrize(("sentence", "kind", "becomes"), CHANGED)
def test_one_place_changes(sentence: str, kind: str, becomes: str) -> None:
    """Where names and numbers are drawn, what stands around them stays."""
    texts = [hard.text for seed in range(4) for hard in hard_translations([sentence], seed=seed, most=9)]
    assert kind in {hard.kind for hard in hard_translations([sentence], most=9)}
    assert becomes in texts if becomes.endswith(".") else any(becomes in text for text in texts), texts


@pytest.mark.parametrize(
    "sentence",
    [
        "Not only that, at least once more, as long as we like",
        "I met Mark's dog, COVID-19, the F-16 and e-mail v2.0.1",
        "It's 1 or 0.",
        "",
    ],
)
def test_what_has_no_safe_change_stays(sentence: str) -> None:
    changed = {hard.kind for hard in hard_translations([sentence], most=9)}
    assert changed <= {"given"}, changed


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("In 1998 it rained.", lambda text: 1958 <= int(text[3:7]) <= 2013 and text[7:] == " it rained."),
        ("It costs 1,250.50 euros.", lambda text: text.endswith(".50 euros.") and text[10] == ","),
        ("On 14 dates.", lambda text: text[3:5].isdecimal() and 10 <= int(text[3:5]) <= 28),
    ],
)
def test_digits_keep_their_form(sentence: str, wanted: object) -> None:
    texts = [hard.text for seed in range(20) for hard in hard_translations([sentence], seed=seed)]
    assert len(set(texts)) > 5 and all(wanted(text) for text in texts)  # type: ignore[operator]


def test_of_all() -> None:
    """On the phrasebook: never a sentence of the text, never twice, few of each, the same again, whatever is beside."""
    sentences = phrase_sentences("en", size=150)
    hard = hard_translations(sentences, seed=3, most=2)
    texts = [translation.text for translation in hard]
    assert len(texts) > 100 and len(set(texts)) == len(texts) and not set(texts) & set(sentences)
    assert {translation.category for translation in hard} >= {"causality", "number"}
    for row in range(len(sentences)):
        categories = [translation.category for translation in hard if translation.index == row]
        assert all(categories.count(category) <= 2 for category in HARD_CATEGORIES)
    assert hard == hard_translations(sentences, seed=3, most=2)
    assert texts != [translation.text for translation in hard_translations(sentences, seed=4, most=2)]
    alone = {translation.text for translation in hard_translations(sentences[:1], seed=3, most=2)}
    assert {translation.text for translation in hard if translation.index == 0} <= alone
    assert hard_translations([]) == []
