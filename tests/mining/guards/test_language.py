"""Wrong languages are recognised; short sentences, names and close relatives are not mistaken for one."""

import gzip

import pytest

from st_xling.mining.guards import GuardOptions, LanguageGuard, LanguageUnknown, PairGuards
from st_xling.utils.identify import _identifier, expected_labels, expected_odds
from tests.mining.guards.batches import candidates, verdicts

RIGHT = [
    ("de", "Der Hund schläft unter dem Tisch."),
    ("ar", "لا أعرف أين المفتاح."),
    ("th", "แมวดำตัวหนึ่งนั่งอยู่บนหลังคา"),
    ("zh", "我买了三本旧书。"),
    ("vi", "Tôi đã gặp cô ấy hôm qua."),
    ("es", "Mañana iré al mercado 🙂"),
    ("de", "Taxi!"),
    ("fr", "Barack Obama"),
    ("ru", "12345 + 7"),
    ("de", ""),
    ("de", "🙂"),
]


def test_right_language():
    for language, text in RIGHT:
        assert verdicts(LanguageGuard(language), (text, "whatever")) == [None], text


def test_wrong_language_on_either_side():
    french = "Les enfants mangent des pommes rouges dans le jardin."
    english = "The children are eating red apples in the garden."
    right, source, target = verdicts(LanguageGuard("fr", "en"), (french, english), (english, english), (french, french))
    assert right is None
    assert (source.value["side"], source.value["expected"], source.value["found"]) == ("source", "fr", "en")
    assert (target.value["side"], target.value["expected"], target.value["found"]) == ("target", "en", "fr")
    assert source.value["odds"] < source.limit == 0.1


def test_a_side_without_language_is_not_looked_at():
    guard = LanguageGuard(target_language="en")
    assert verdicts(guard, ("Les enfants mangent des pommes.", "The children are eating red apples.")) == [None]


def test_codes():
    labels = {
        **{"de": "de", "deu": "de", "de-AT": "de", "EN": "en", "eng": "en", "zh": "zh", "cmn": "zh", "zho": "zh"},
        **{"zh_Hant": "zh", "swh": "sw", "fa": "fa", "pes": "fa", "nb": "no", "ind": "id", "nep": "ne", "yue": "yue"},
    }
    assert {code: expected_labels(code)[0] for code in labels} == labels
    for code in ("xx", "zxx", "", "tlh"):
        with pytest.raises(LanguageUnknown, match="expected a language that py3langid knows"):
            LanguageGuard(code)
    for limit in (0, 1, -0.5, float("nan")):
        with pytest.raises(ValueError, match=r"language must lie in \(0, 1\)"):
            LanguageGuard("de", limit=limit)


def test_idle_sides_are_named(caplog):
    guards = PairGuards(GuardOptions(source_language="tlh"))
    assert guards.idle["language"] == "py3langid does not know 'tlh'; the language of the target side is not given"
    assert "py3langid does not know 'tlh'" in caplog.text
    assert guards.check(candidates(("nuqneH", "Where is the library of this town?")))[0].all()


def test_many_texts_are_told_apart_as_py3langid_tells_each(pairs):
    """The likeliest label, and the shares of every label: of texts of all lengths, in capitals, without any letter."""
    texts = [text for pair in [*RIGHT, *pairs] for text in pair] + [
        "ALL CAPITALS HERE",
        "e\u0301t\u00e9",
        "\ud800",
        "б" * 99,
    ]
    for language in ("de", "zh", "sr", "ms"):
        for text, (best, odds) in zip(texts, expected_odds(texts, [language] * len(texts)), strict=True):
            ranking = _identifier().rank(text[:100])
            shares, highest = dict(ranking), ranking[0][1]
            expected = sum(shares[label] for label in expected_labels(language)) / highest
            assert odds == pytest.approx(min(1.0, expected), rel=1e-3, abs=1e-6), text
            assert shares[best] == pytest.approx(highest, rel=1e-4)


@pytest.mark.parametrize("language", ["de", "zh"])
def test_true_pairs_of_real_data_are_kept(real_data, language):
    with gzip.open(real_data / "parallel" / f"{language}-en.dev.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][:300]
    guards = PairGuards(GuardOptions(source_language=language, target_language="en", hub=None))
    assert guards.check(candidates(*rows))[0].mean() >= 0.98
    swapped = PairGuards(GuardOptions(source_language="en", target_language=language, hub=None, numbers=False))
    assert swapped.check(candidates(*rows))[0].mean() <= 0.05
