"""Text written otherwise: by kind and language; what holds of all kinds."""

from __future__ import annotations

import unicodedata

import pytest

from st_xling.data import PERTURBATIONS, perturb

TEXTS = [
    "Well, we don't pay 3-2 (never)!",
    "Đường phố rất đẹp.",
    "这是一本旧书，对吗？",
    "สวัสดีครับ",
    "मेरे पास किताबें हैं।",
    "cafe\u0301 🙂",
    "",
]


@pytest.mark.parametrize(
    ("kind", "language", "text", "expected"),
    [
        ("punctuation", "en", TEXTS[0], "Well we don't pay 3-2 never"),
        ("punctuation", "en", "5% of AT&T's -3 degrees.", "5% of AT&T's -3 degrees"),
        ("punctuation", "zh", TEXTS[2], "这是一本旧书对吗"),
        ("punctuation", "zh", "今天很好", "今天很好。"),
        ("punctuation", "en", "No stop", "No stop."),
        ("digits", "en", "12500 of 3,000,000, 7 in 1998, v2.1, 0.5", "12,500 of 3000000, seven in 1998, v2.1, 0.5"),
        ("digits", "en", "3.142 of 1,234.567, 12 345, 5%", "3.142 of 1,234.567, 12345, 5%"),
        ("digits", "de", "3,142 von 3.142", "3,142 von 3142"),
        ("digits", "vi", "5 quyển sách", "5 quyển sách"),
        ("digits", "deu", "12500 Leute, 12 Tage", "12.500 Leute, zwölf Tage"),
        ("digits", "fr", "1 200 000 à 25000", "1200000 à 25\u202f000"),
        ("digits", "ru", "5 из 25000", "5 из 25\u202f000"),
        ("digits", "hi", "10 किताबें", "१० किताबें"),
        ("digits", "th", "๓ เล่ม", "3 เล่ม"),
        ("digits", "zh", "3本书", "３本书"),
        ("transliteration", "ru", "Щука, Ёж и Юля", "Shchuka, Ezh i Iulia"),
        ("transliteration", "el", "Καλημέρα, Αθήνα", "Kalimera, Athina"),
        ("transliteration", "vi", TEXTS[1], "Duong pho rat dep."),
        ("transliteration", "yor", "Ẹ́kọ́", "Eko"),
        ("transliteration", "de", "Straße 你", "Strasse 你"),
    ],
)
def test_by_kind(kind: str, language: str, text: str, expected: str) -> None:
    assert perturb([text], kind, language=language) == [expected]


def test_typos_and_casing() -> None:
    """A letter in ten goes wrong, with its marks, never a word's first; case goes one way or the other."""
    text = "Something happened yesterday evening in Kathmandu"
    for seed in range(20):
        (typo,) = perturb([text], "typos", seed=seed)
        assert typo != text and abs(len(typo) - len(text)) <= 5
        assert [word[0] for word in typo.split()] == [word[0] for word in text.split()]
        for other in perturb(TEXTS[3:5], "typos", seed=seed):
            assert unicodedata.category(other[0])[0] == "L" and other not in TEXTS
    cases = {perturb([text], "casing", seed=seed)[0] for seed in range(9)}
    assert cases == {text.lower(), text.upper()} and perturb(["今天"], "casing") == ["今天"]


@pytest.mark.parametrize("kind", PERTURBATIONS)
def test_of_all(kind: str) -> None:
    """The same again for a seed, one text each, NFC, each by itself; the empty one stays."""
    texts = TEXTS if kind != "transliteration" else [TEXTS[0], TEXTS[1], TEXTS[-1]]
    changed = perturb(texts, kind, seed=2)
    assert changed == perturb(texts, kind, seed=2) == [perturb([text], kind, seed=2)[0] for text in texts]
    assert changed[-1] == "" and all(unicodedata.is_normalized("NFC", text) for text in changed)
    assert perturb([], kind) == []


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="typos, casing, .* got 'noise'"):
        perturb(["a"], "noise")
    with pytest.raises(ValueError, match="Latin, Cyrillic and Greek letters: got mostly Thai"):
        perturb([TEXTS[3]], "transliteration")
