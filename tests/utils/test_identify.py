"""Codes of languages, and the odds of the expected one."""

import pytest

from st_xling.utils.identify import (
    LanguageUnknown,
    _identifier,
    expected_labels,
    expected_odds,
    main_language,
    plain_letters,
)


def test_language_codes() -> None:
    """A code whose language py3langid has under another one, such as ``quy`` under ``qu``, was not identified."""
    labels = {
        **{"de": "de", "deu": "de", "de-AT": "de", "EN": "en", "eng": "en", "zh": "zh", "cmn": "zh", "zho": "zh"},
        **{"zh_Hant": "zh", "swh": "sw", "fa": "fa", "pes": "fa", "nb": "no", "ind": "id", "nep": "ne", "yue": "yue"},
        **{"fil": "tl", "tgl": "tl", "iw": "he", "arb": "ar", "apc": "ar", "zsm": "ms", "zlm": "ms", "prs": "fa"},
        **{"azj": "az", "khk": "mn", "lvs": "lv", "ekk": "et", "uzn": "uz", "ory": "or", "npi": "ne", "plt": "mg"},
        **{"kmr": "ku", "ckb": "ku", "als": "sq", "ger": "de", "chi": "zh", "in": "id", "no": "no", "sh": "sr"},
        **{"quy_Latn": "qu", "quz": "qu", "ff": "fuv", "ful": "fuv", "fuv_Latn": "fuv", "gn": "gug", "grn_Latn": "gug"},
        **{"prs_Arab": "fa", "hyw": "hy", "swc": "sw", "acq_Arab": "ar", "bik": "bcl", "ki": "kik", "mo": "ro"},
    }
    assert {code: expected_labels(code)[0] for code in labels} == labels
    for code in ("xx", "zxx", "", "tlh"):
        with pytest.raises(LanguageUnknown, match="expected a language that py3langid knows"):
            expected_labels(code)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם", "בראשית ברא אלהים את השמים"),
        ("مُحَمَّدٌ كَتَبَ الدَّرْسَ", "محمد كتب الدرس"),
        ("Ｔｈｅ ｃｈｉｌｄｒｅｎ ａｒｅ ｅａｔｉｎｇ", "The children are eating"),
    ],
)
def test_odds_do_not_depend_on_points_and_forms(written: str, plain: str) -> None:
    """Of a language that is not the one found, whose odds the whole ranking gives."""
    likeliest, odds = expected_odds(written, "ru")
    assert (likeliest, odds) == expected_odds(plain, "ru") and likeliest != "ru"


def test_odds_are_those_of_py3langid(pairs: list[tuple[str, str]]) -> None:
    """The likeliest label, and the shares of every label: of texts of all lengths, in capitals, without any letter."""
    texts = [text for pair in pairs for text in pair]
    texts += ["", "🙂", "12345 + 7", "แมวดำตัวหนึ่ง", "我买了三本旧书。", "ALL CAPITALS HERE", "\ud800", "б" * 99]
    for code in ("de", "zh", "sr", "ms"):
        for text in texts:
            best, odds = expected_odds(text, code)
            ranking = _identifier().rank(plain_letters(text[:100]))
            shares = dict(ranking)
            highest = ranking[0][1]
            expected = sum(shares[label] for label in expected_labels(code)) / highest
            assert odds == pytest.approx(min(1.0, expected), rel=1e-3, abs=1e-6), text
            assert shares[best] == pytest.approx(highest, rel=1e-4)


GERMAN = "Der alte Mann geht am Abend mit seinem Hund am Fluss entlang und denkt an die Tage seiner Kindheit im"
ENGLISH = " mountains where everybody knew him and where the winters were longer than the summers of these days."

# Text, expected language, the one that is found, and the odds. Recorded at 7c27a47c with py3langid 0.4.0.
ODDS = [
    ("Grazie mille", "de", "it", 0.0380293600),
    ("Taxi!", "fr", "gl", 0.2610538771),
    ("Добрый день", "uk", "ru", 0.0057345746),
    ("Guten Tag", "nl", "de", 0.1334947791),
    ("God morgen", "sv", "no", 0.4751680312),
    ("你好", "ja", "yue", 0.0027173433),
    ("Hyvää", "et", "fi", 0.0034746518),
    ("Wir sehen uns morgen", "da", "de", 0.0006421566),
    # 100 characters are read: of the first 101, and of what comes after them.
    (GERMAN, "nl", "de", 1.588623710e-07),
    (GERMAN + ENGLISH, "nl", "de", 1.588623710e-07),
    # Points, other forms and other widths are read as plain letters.
    ("שָׁלוֹם לְכֻלָּם", "ar", "he", 2.854629e-09),
    ("Ｇｕｔｅｎ Ｔａｇ", "nl", "de", 0.1334947791),
]


@pytest.mark.parametrize(("text", "language", "label", "odds"), ODDS)
def test_odds_as_recorded(text: str, language: str, label: str, odds: float) -> None:
    """No test failed when 200 characters were read, or when raw text was ranked instead of its letters."""
    likeliest, value = expected_odds(text, language)
    assert likeliest == label
    assert value == pytest.approx(odds, rel=1e-3)


@pytest.mark.parametrize(
    ("german", "english", "share", "label"),
    [(6, 5, 0.5, "de"), (5, 5, 0.5, "und"), (4, 1, 0.8, "und"), (5, 1, 0.8, "de"), (5, 6, 0.5, "en")],
)
def test_the_main_language_has_more_than_its_share(german: int, english: int, share: float, label: str) -> None:
    """Recorded at 7c27a47c: half of the sentences are not enough by default, nor four of five for four fifths."""
    texts = ["Das Buch ist alt."] * german + ["The house is very old."] * english
    assert main_language(texts, share=share) == label
    if share == 0.5:
        assert main_language(texts) == label


def test_two_hundred_sentences_are_looked_at() -> None:
    """Recorded at 7c27a47c: no test failed when twenty of a text were.

    All of 199 are looked at, of which 100 are German; every second one of 200 is; every tenth one would be English.
    """
    texts = ["Das Buch ist alt."] * 199
    texts[1::2] = ["The house is very old."] * 99
    assert main_language(texts) == "de"
    assert main_language([*texts, "The house is very old."]) == "de"
    tenths = ["Das Buch ist alt."] * 199
    tenths[::10] = ["The house is very old."] * 20
    assert main_language(tenths) == "de"
