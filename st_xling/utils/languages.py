"""Languages: their codes, as file names and columns spell them, and their names."""

from __future__ import annotations

import re
from pathlib import Path

UNKNOWN = "und"
"""ISO 639-2 for "undetermined": the language of a side that neither caller nor file names."""

# Two letters only: three would take "dev-de.tsv" for a pair. A hyphen before it would take "built-in-to.tsv" for one.
_PAIR_IN_NAME = re.compile(r"(?:^|[._])([a-z]{2})-([a-z]{2})(?=[._]|$)")
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_TWO_LETTER_CODE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")

# LASER's three-letter code, the codes of two letters, the English name.
_LANGUAGES = """
afr af Afrikaans, amh am Amharic, ang - Old English, ara ar Arabic, arg an Aragonese, arq - Algerian Arabic,
arz - Egyptian Arabic, asm as Assamese, ast - Asturian, awa - Awadhi, aze az Azerbaijani, bak ba Bashkir,
bel be Belarusian, ben bn Bengali, ber - Berber, bos bs Bosnian, bre br Breton, bul bg Bulgarian, cat ca Catalan,
cbk - Chavacano, ceb - Cebuano, ces cs Czech, cha ch Chamorro, cmn zh Chinese, cor kw Cornish, csb - Kashubian,
cym cy Welsh, dan da Danish, deu de German, dsb - Lower Sorbian, dtp - Kadazan Dusun, dzo dz Dzongkha, ell el Greek,
eng en English, epo eo Esperanto, est et Estonian, eus eu Basque, fao fo Faroese, fin fi Finnish, fra fr French,
fry fy West Frisian, gla gd Scottish Gaelic, gle ga Irish, glg gl Galician, gsw - Swiss German, guj gu Gujarati,
hat ht Haitian Creole, hau ha Hausa, heb he Hebrew, hin hi Hindi, hrv hr Croatian, hsb - Upper Sorbian,
hun hu Hungarian, hye hy Armenian, ibo ig Igbo, ido io Ido, ile ie Interlingue, ina ia Interlingua, ind id Indonesian,
isl is Icelandic, ita it Italian, jav jv Javanese, jpn ja Japanese, kab - Kabyle, kan kn Kannada, kat ka Georgian,
kaz kk Kazakh, khm km Khmer, kin rw Kinyarwanda, kir ky Kyrgyz, kor ko Korean, kur ku Kurdish, kzj - Coastal Kadazan,
lao lo Lao, lat la Latin, lfn - Lingua Franca Nova, lim li Limburgish, lin ln Lingala, lit lt Lithuanian,
ltz lb Luxembourgish, lug lg Ganda, lvs lv Latvian, mal ml Malayalam, mar mr Marathi, max - North Moluccan Malay,
mhr - Meadow Mari, mkd mk Macedonian, mlg mg Malagasy, mlt mt Maltese, mon mn Mongolian, mya my Burmese,
nds - Low German, nep ne Nepali, nld nl Dutch, nno nn Nynorsk, nob nb/no Norwegian, nov - Novial, oci oc Occitan,
ori or Odia, orm om Oromo, orv - Old East Slavic, pam - Pampanga, pan pa Punjabi, pes fa Persian, pms - Piedmontese,
pol pl Polish, por pt Portuguese, pus ps Pashto, que qu Quechua, ron ro Romanian, rus ru Russian, san sa Sanskrit,
sin si Sinhala, slk sk Slovak, slv sl Slovenian, sme se Northern Sami, sna sn Shona, som so Somali,
sot st Southern Sotho, spa es Spanish, sqi sq Albanian, srp sr Serbian, ssw ss Swati, swe sv Swedish, swg - Swabian,
swh sw Swahili, tam ta Tamil, tat tt Tatar, tel te Telugu, tgk tg Tajik, tgl tl Tagalog, tha th Thai, tuk tk Turkmen,
tur tr Turkish, tzl - Talossan, uig ug Uyghur, ukr uk Ukrainian, urd ur Urdu, uzb uz Uzbek, vie vi Vietnamese,
vol vo Volapük, war - Waray, wln wa Walloon, wuu - Wu Chinese, xho xh Xhosa, yid yi Yiddish, yor yo Yoruba,
yue - Cantonese, zsm ms Malay, zul zu Zulu
"""
_ENTRIES = [entry.strip().split(" ", 2) for entry in _LANGUAGES.split(",")]
_MACROLANGUAGES = dict(ekk="est", fas="pes", lav="lvs", msa="zsm", nor="nob", swa="swh", zho="cmn")

#: ISO 639-1, and the macrolanguage codes under which some data sets file the same language, to LASER's code.
ALIASES = {two: code for code, twos, _ in _ENTRIES for two in twos.split("/") if two != "-"} | _MACROLANGUAGES

_TWO_LETTERS = {code: twos.partition("/")[0] for code, twos, _ in _ENTRIES if twos != "-"}

#: LASER's code to the language's name in English.
LANGUAGE_NAMES = {code: name for code, _, name in _ENTRIES}


def canonical_language(code: str) -> str:
    """LASER's code for a language: ``"de"`` and ``"deu"`` give ``"deu"``; an unknown code comes back as it is."""
    return ALIASES.get(code.strip().lower(), code.strip())


def language_name(code: str) -> str:
    """A language's name in English; an unknown code comes back as it is.

    Example:
        >>> language_name("de"), language_name("zho"), language_name("xx")
        ('German', 'Chinese', 'xx')
    """
    return LANGUAGE_NAMES.get(canonical_language(code), code)


def hub_language(code: str) -> str:
    """As the Hub's cards spell a language: in two letters where it has them, else three, without script or country.

    Example:
        >>> hub_language("deu"), hub_language("zh-CN"), hub_language("yue")
        ('de', 'zh', 'yue')
    """
    language = re.split("[-_]", code.strip().lower())[0]
    return language if len(language) == 2 else _TWO_LETTERS.get(canonical_language(language), language)


def pair_in_name(path: str | Path) -> tuple[str | None, str | None]:
    """The two languages of a file name such as ``de-en.dev.tsv.gz``; ``(None, None)`` if it names none."""
    match = _PAIR_IN_NAME.search(Path(path).name)
    return (match[1], match[2]) if match else (None, None)


def pair_languages(pair: str) -> tuple[str | None, str | None]:
    """The two languages of a name such as ``"zh-vi"``; ``(None, None)`` where it is no such name."""
    source, _, target = pair.partition("-")
    return (source, target) if source and target and "-" not in target else (None, None)


def is_code(text: str) -> bool:
    """Whether ``text`` is spelled like a language code: ``de``, ``deu``, ``zh-CN``, ``sr_Latn``."""
    return _CODE.fullmatch(text) is not None


def is_two_letter_code(text: str) -> bool:
    """Whether ``text`` is spelled like a language code of two letters: ``de``, ``zh-CN``."""
    return _TWO_LETTER_CODE.fullmatch(text) is not None


def resolve_pair(
    path: str | Path, source_language: str | None, target_language: str | None, *, swapped_on_purpose: bool = False
) -> tuple[str | None, str | None]:
    """The languages asked for, else those of the file name, side by side.

    Raises:
        ValueError: If the file name has the asked languages the other way round, unless ``swapped_on_purpose``: the
            labels would be wrong on every row.
    """
    named = pair_in_name(path)
    source, target = source_language or named[0], target_language or named[1]
    asked_for = source_language is not None or target_language is not None
    reversed_name = named[0] is not None and named[0] != named[1] and (source == named[1] or target == named[0])
    if asked_for and reversed_name and not swapped_on_purpose:
        raise ValueError(
            f"expected {named[0]}-{named[1]}, as the name of {path} says, got {source}-{target}; "
            "swap the languages, or pass columns=(1, 0) to swap the sides"
        )
    return source, target
