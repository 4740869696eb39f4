"""Codes of languages, and the odds of the expected one."""

import pytest

from st_xling.utils.identify import LanguageUnknown, _identifier, expected_labels, expected_odds, plain_letters


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
    found, odds = expected_odds(written, "ru")
    assert (found, odds) == expected_odds(plain, "ru") and found != "ru"


def test_odds_are_those_of_py3langid(pairs: list[tuple[str, str]]) -> None:
    """The likeliest label, and the shares of every label: of texts of all lengths, in capitals, without any letter."""
    texts = [text for pair in pairs for text in pair]
    texts += ["", "🙂", "12345 + 7", "แมวดำตัวหนึ่ง", "我买了三本旧书。", "ALL CAPITALS HERE", "\ud800", "б" * 99]
    for code in ("de", "zh", "sr", "ms"):
        for text in texts:
            best, odds = expected_odds(text, code)
            ranking = _identifier().rank(plain_letters(text[:100]))
            shares, highest = dict(ranking), ranking[0][1]
            expected = sum(shares[label] for label in expected_labels(code)) / highest
            assert odds == pytest.approx(min(1.0, expected), rel=1e-3, abs=1e-6), text
            assert shares[best] == pytest.approx(highest, rel=1e-4)
