"""Hard near-translations by language and category; what may not change; what holds of all."""

from __future__ import annotations

import unicodedata

import pytest

from st_xling.data import HARD_CATEGORIES, hard_languages, hard_translations
from st_xling.data.hard_translations import _lexicon
from st_xling.data.phrasebook import LANGUAGES, parallel_phrases

# Language, sentence, kind, what it becomes: one of the texts of that kind.
CHANGED = [
    ("en", "The train is late.", "negation", "The train is not late."),
    ("en", "The train isn’t late.", "negation", "The train is late."),
    ("en", "He did not go home.", "negation", "He did go home."),
    ("en", "Everyone was there.", "negation", "No one was there."),
    ("en", "She has seen it.", "negation", "She has not seen it."),
    ("en", "This is an old house.", "antonym", "This is a new house."),
    ("en", "They sold a new umbrella.", "antonym", "They sold an old umbrella."),
    ("en", "A young man came.", "antonym", "An old man came."),
    ("en", "He saw an unhappy child.", "antonym", "He saw a happy child."),
    ("en", "It was a happy child.", "antonym", "It was an unhappy child."),
    ("en", "She had a European passport.", "nationality", "She had an Indian passport."),
    ("en", "They paid an 8 percent fee.", "number", "They paid a 5 percent fee."),
    ("en", "We left because of rain.", "cause", "We left despite rain."),
    ("en", "He came on Monday", "date", "He came on "),
    ("en", "We spoke with Minister Okonjo about it.", "surname", "We spoke with Minister "),
    ("en", "It is hot in Ouagadougou now.", "city", "It is hot in "),
    ("en", "It happened in Germany.", "country", "It happened in "),
    ("en", "I saw Barack Obama today.", "person", "I saw "),
    ("de", "Das ist ein Buch.", "negation", "Das ist kein Buch."),
    ("de", "Er kommt nicht nach Hause.", "negation", "Er kommt nach Hause."),
    ("de", "Der kleine Hund schläft.", "antonym", "Der große Hund schläft."),
    ("de", "Wir bleiben, weil es regnet.", "cause", "Wir bleiben, obwohl es regnet."),
    ("de", "Angela Merkel sprach.", "surname", "Angela "),
    ("fr", "Le train est en retard.", "negation", "Le train n'est pas en retard."),
    ("fr", "Il ne dort pas.", "negation", "Il dort."),
    ("fr", "Elle a une petite maison.", "antonym", "Elle a une grande maison."),
    ("fr", "Il habite à Toulon depuis deux ans.", "city", "Il habite à "),
    ("es", "No quiero dormir.", "negation", "Quiero dormir."),
    ("es", "El tren es rápido.", "negation", "El tren no es rápido."),
    ("es", "Salimos porque llueve.", "cause", "Salimos aunque llueve."),
    ("vi", "Tôi có thể đến.", "negation", "Tôi không thể đến."),
    ("vi", "Con chó lớn ngủ.", "antonym", "Con chó nhỏ ngủ."),
    ("vi", "Hà Nội rất đẹp.", "city", " rất đẹp."),
    ("zh", "这是一本书。", "negation", "这不是一本书。"),
    ("zh", "因为下雨，我们回家。", "cause", "虽然下雨，我们回家。"),
    ("zh", "他有三个苹果。", "number", "个苹果。"),
    ("zh", "他住在美国。", "country", "他住在"),
]


@pytest.mark.parametrize(("language", "sentence", "kind", "becomes"), CHANGED)
def test_one_place_changes(language: str, sentence: str, kind: str, becomes: str) -> None:
    """Where names and numbers are drawn, what stands around them stays."""
    texts = [hard.text for seed in range(4) for hard in hard_translations([sentence], language, seed=seed, most=9)]
    kinds = {hard.kind for hard in hard_translations([sentence], language, most=9)}
    whole = becomes[-1] in ".。" and becomes[0] != " " and becomes != "个苹果。"
    assert kind in kinds
    assert becomes in texts if whole else any(becomes in text for text in texts), texts


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "Not only that, at least once more, as long as we like"),
        ("en", "I met Mark's dog, COVID-19, the F-16 and e-mail v2.0.1"),
        ("en", "It's 1 or 0."),
        ("de", "Nicht nur das, noch einmal ein paar Worte"),
        ("fr", "L'homme d'abord, tout le monde"),
        ("zh", "还是，尤其是进出口，二十个"),
        ("vi", "Có lẽ ông ấy là ai"),
        ("en", ""),
        ("zh", " … "),
    ],
)
def test_what_has_no_safe_change_stays(language: str, sentence: str) -> None:
    changed = {hard.kind for hard in hard_translations([sentence], language, most=9)}
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_of_all(language: str) -> None:
    """On the phrasebook: never a sentence of the text, never twice, few of each, the same again, whatever is beside."""
    sentences = parallel_phrases(language, "de" if language == "en" else "en", size=150)["source"][:]
    hard = hard_translations(sentences, language, seed=3, most=2)
    texts = [each.text for each in hard]
    assert len(texts) > 100 and len(set(texts)) == len(texts) and not set(texts) & set(sentences)
    assert {each.category for each in hard} >= {"causality", "number"}
    for row in range(len(sentences)):
        own = [each.category for each in hard if each.index == row]
        assert all(own.count(category) <= 2 for category in HARD_CATEGORIES)
    assert hard == hard_translations(sentences, language, seed=3, most=2)
    assert texts != [each.text for each in hard_translations(sentences, language, seed=4, most=2)]
    alone = {each.text for each in hard_translations(sentences[:1], language, seed=3, most=2)}
    assert {each.text for each in hard if each.index == 0} <= alone
    # Other forms of the same letters are the same sentence.
    decomposed = [unicodedata.normalize("NFD", text) for text in sentences]
    assert [each.text for each in hard_translations(decomposed, language, seed=3, most=2)] == texts


@pytest.mark.parametrize("language", hard_languages())
def test_lexicons(language: str) -> None:
    """No word becomes itself, and keys are NFC."""
    lexicon = _lexicon(language)
    for swaps in lexicon.swaps.values():
        assert all(word != other and unicodedata.is_normalized("NFC", word + other) for word, other, _ in swaps)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="de, en, es, fr, vi, zh: got 'ru'"):
        hard_translations(["Да."], "ru")
    with pytest.raises(ValueError, match="at least 1: got 0"):
        hard_translations(["Yes."], most=0)
    assert hard_translations([], "eng") == [] and hard_translations(["Das ist ein Buch."], "deu")
