"""Codes and names of languages: one table for all who need them."""

import re

import pytest

from st_xling.evaluation.tatoeba import TATOEBA_GROUPS
from st_xling.utils.languages import (
    ALIASES,
    LANGUAGE_NAMES,
    canonical_code,
    canonical_language,
    check_language_code,
    distinct_codes,
    hub_language,
    is_code,
    is_evident_code,
    language_name,
    match_language,
    pair_in_name,
    pair_languages,
    resolve_pair,
)


def test_the_table_is_whole() -> None:
    assert all(re.fullmatch("[a-z]{3}", code) for code in LANGUAGE_NAMES)
    assert all(re.fullmatch("[a-z]{2,3}", alias) for alias in ALIASES)
    assert set(ALIASES.values()) | set(TATOEBA_GROUPS["laser112"]) <= LANGUAGE_NAMES.keys()
    assert not ALIASES.keys() & ALIASES.values()  # a code is spelled in one way once it is canonical
    assert len(set(LANGUAGE_NAMES.values())) == len(LANGUAGE_NAMES)


def test_codes_and_names() -> None:
    german, chinese = ("deu", "German"), ("cmn", "Chinese")
    codes = {" EN ": ("eng", "English"), "deu_Latn": german, "zh-Hant-TW": chinese, "es-419": ("spa", "Spanish")}
    codes |= {code: (code, code) for code in ("quz", "zh-vi", "de_test")}
    for code, (expected, name) in codes.items():
        assert canonical_language(code) == canonical_language(expected) == expected
        assert language_name(code) == name


def test_codes_of_the_language_identifier() -> None:
    from st_xling.utils.identify import _identifier

    known = {canonical_language(label) for label in _identifier().labels if len(label) == 2}
    assert known <= LANGUAGE_NAMES.keys()


def test_every_code_of_two_letters_has_its_three() -> None:
    """FLORES-200's ``sun_Latn`` and ISO 639-1's ``su`` were two languages: prompts and models of one did not match."""
    pairs = "snd sd nya ny tsn tn tso ts tir ti mri mi bod bo ewe ee twi tw wol wo bam bm run rn sag sg smo sm kon kg"
    pairs += " kik ki fij fj grn gn aka ak kas ks srd sc sun su roh rm kal kl oss os che ce chv cv div dv ton to ful ff"
    codes = iter(pairs.split())
    for three, two in zip(codes, codes, strict=True):
        assert match_language(f"{three}_Latn", [two, "en"]) == two
        assert match_language(two, ["en", f"{three}_Latn"]) == f"{three}_Latn"
        assert language_name(two) == language_name(three) != three
        assert hub_language(f"{three}_Latn") == two
    assert language_name("su") == "Sundanese"
    withdrawn = ["iw", "in", "ji", "jw", "mo", "sh"]
    assert sum(len(alias) == 2 for alias in ALIASES) == 183 + len(withdrawn)  # all that ISO 639-1 has
    # A macrolanguage is not its smaller members: FLORES-200 has Persian and Dari, Kurdish twice, Akan and Twi.
    for one, other in (("pes", "prs"), ("kmr", "ckb"), ("aka", "twi"), ("azj", "azb"), ("quy", "que"), ("zh", "yue")):
        assert match_language(f"{one}_Arab", [other]) is None
        assert language_name(one) != language_name(other)


def test_withdrawn_codes_stay_out_of_cards() -> None:
    """A card of ``iw-en`` named a language that the Hub does not know any more."""
    withdrawn = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "sh": "hbs", "IW": "he", "in_ID": "id"}
    valid = {"no": "no", "nb": "nb", "nor": "nb", "tl": "tl", "fil": "tl", "xx": "xx", "tlh": "tlh", "hbs": "hbs"}
    for code, expected in (withdrawn | valid).items():
        assert hub_language(code) == expected
    assert match_language("iw", ["he_Hebr", "en"]) == "he_Hebr"


def test_whole_codes() -> None:
    for spellings in (("de", "deu", " DE "), ("zh_Hant", "zho-Hant", "zh_hant"), ("pt-BR", "pt_br", "por_BR")):
        assert len(set(map(canonical_code, spellings))) == 1
    assert len(set(map(canonical_code, ["zh", "zh_Hans", "zh_Hant", "zh-Hant-TW", "zh-TW"]))) == 5
    assert distinct_codes(["de_AT", "fr"]) == {"de_AT": "deu", "fr": "fra"}
    assert distinct_codes(["pt_BR", "pt-PT", "de"]) == {"pt_BR": "por_BR", "pt-PT": "por_PT", "de": "deu"}
    assert distinct_codes(["de", "deu"]) == {"de": "deu", "deu": "deu"}  # one language twice: for the caller to refuse


def test_the_known_code_of_a_language() -> None:
    assert match_language("de", ["fr", "deu_Latn"]) == "deu_Latn" and match_language("en-us", ["de", "en"]) == "en"
    assert match_language("zh", ["zh_Hans", "zh_Hant"]) is None
    assert match_language("zho_Hant", ["zh_Hans", "zh_Hant"]) == "zh_Hant"
    assert match_language("is", ["is_correct", "label"]) is None


def test_variants_of_a_language_are_told_apart() -> None:
    """``zh_Hant`` found neither of zh-Hans-CN and zh-Hant-TW, and every pair was left out without a word."""
    for known in (["zh-Hans-CN", "zh-Hant-TW"], ["zh-CN", "zh-TW"], ["zh_cn", "zh_tw"], ["zho_Hans", "zho_Hant"]):
        assert match_language("zh_Hant", ["en", *known]) == known[1]
        assert match_language("zh-TW", ["en", *known]) == known[1]
        assert match_language("zh", ["en", *known]) is None
    assert match_language("pt-BR", ["pt", "pt-PT"]) == "pt"
    assert match_language("sr_Latn", ["sr-Cyrl-RS", "sr-Latn-RS"]) == "sr-Latn-RS"
    assert match_language("zh-Hant-HK", ["zh-Hans-CN", "zh-Hant-TW"]) == "zh-Hant-TW"
    assert match_language("zh_Hant", ["zh-Hant-TW", "zh-Hant-HK"]) is None
    assert match_language("de-AT", ["de-CH", "de-DE"]) is None


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("deu_Latn-eng_Latn.tsv", ("deu_Latn", "eng_Latn")),
        ("zh-Hans-CN-zh-Hant-TW", ("zh-Hans-CN", "zh-Hant-TW")),
        ("de-en_test.tsv", ("de", "en")),
        ("OpenSubtitles.pt_br-zh_tw.tsv.gz", ("pt_br", "zh_tw")),
        ("DE-EN.dev.tsv", ("de", "en")),
        ("zh-TW_en.tsv", ("zh-TW", "en")),
        ("zh-tw_en.tsv", ("zh-tw", "en")),
        ("news.en_zh-Hant.tsv.gz", ("en", "zh-Hant")),
        ("de-en_fr.tsv", ("de", "en")),
    ],
)
def test_pairs_in_file_names(name: str, pair: tuple[str, str]) -> None:
    assert pair_in_name(f"some-dir/it-fr.d/{name}") == pair


def test_other_hyphens_in_file_names() -> None:
    for name in ("dev-de.tsv", "built-in-to.tsv", "pt-br-en.tsv", "de-en-v2.tsv", "US-UK.tsv"):
        assert pair_in_name(f"some-dir/it-fr.d/{name}") == (None, None)


def test_languages_of_a_name_and_those_asked_for() -> None:
    assert resolve_pair("zh_CN-en.tsv", None, None) == ("zh_CN", "en")
    assert resolve_pair("zh_CN-en.tsv", "zh", None) == ("zh", "en")
    for asked in (("en", "zh"), ("eng_Latn", None), (None, "zh_CN")):
        with pytest.raises(ValueError, match="expected zh_CN-en, as in the name"):
            resolve_pair("zh_CN-en.tsv", *asked)
    assert pair_languages("pt-BR-en") == ("pt-BR", "en") and pair_languages("pt-br-en") == (None, None)


def test_spelling() -> None:
    assert all(map(is_code, ["de", "deu", "zh-cn", "sr_Latn", "zh-Hans-CN", "pt_BR", "es-419"]))
    assert not any(map(is_code, ["", "d", "text", "de-", "de-en-fr", "German", "de.en"]))
    assert all(map(is_evident_code, ["de", "zh-CN", "deu_Latn"]))
    assert not any(map(is_evident_code, ["src", "ref", "deu", "src_text"]))


@pytest.mark.parametrize(
    "code",
    [
        *("de", "deu", "deu_Latn", "pt-BR", "pt_br", "pt-br", "zh_Hant", "zh-Hans-CN", "zh-tw", "en-GB", "iw", "und"),
        *("de-de", "ko-kr", "hi-in", "sv-se", "ca-es", "en-us"),
    ],
)
def test_codes_that_are_known(code: str) -> None:
    check_language_code(code, "--source-language")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("german", "de"), ("German", "de"), ("Deutsch", "de"), ("日本語", "ja"), ("germn", "de"), ("DE", "de")),
        *(("ger", "de"), ("fre", "fr"), ("chi", "zh"), ("EN-us", "en-US"), ("ZH_hant", "zh-Hant"), ("pt-BRA", "pt")),
        *(("German_Germany", "de"), ("English (US)", "en"), ("Brazilian Portuguese", "pt_BR"), ("de_DE.UTF-8", "de")),
        *(("Traditional Chinese", "zh_Hant"), ("Mandarin Chinese", "zh"), ("zh-CHS", "zh_Hans"), ("日语", "ja")),
        *(("jp", "ja"), ("cz", "cs"), ("cn", "zh"), ("ua", "uk"), ("JP", "ja"), ("allemand", "de"), ("inglés", "en")),
    ],
)
def test_a_language_that_is_named_otherwise(written: str, meant: str) -> None:
    """``--source-language german`` and ``ger-en=`` were taken as they are, and switched the language filter off."""
    with pytest.raises(
        ValueError, match=f"--language names no known language: got '{re.escape(written)}'; did you mean '{meant}'"
    ):
        check_language_code(written, "--language")


@pytest.mark.parametrize("written", ["de-en", "zh-en", "en-ja", "de-fr"])
def test_two_languages_are_not_one(written: str) -> None:
    """``--source-language de-en`` was German in a region EN."""
    with pytest.raises(ValueError, match=f"names one language: got '{written}'"):
        check_language_code(written, "--source-language")


@pytest.mark.parametrize("written", ["xx", "zz", "klingon", "", "d", "x1"])
def test_what_names_no_language(written: str) -> None:
    with pytest.raises(ValueError, match=f"got '{written}'; write a code of ISO 639"):
        check_language_code(written, "--language")


def test_a_code_of_three_letters_may_be_a_language_that_we_do_not_know(caplog: pytest.LogCaptureFixture) -> None:
    """ISO 639-3 has thousands: Livvi text can be trained on and mined, and the language of that side is not checked."""
    with caplog.at_level("INFO"):
        check_language_code("olo", "olo-en=pairs.tsv")
    assert caplog.messages == ["olo-en=pairs.tsv: the language 'olo' is not known here; text in it is not checked"]
