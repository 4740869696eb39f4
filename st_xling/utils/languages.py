"""Languages: their codes, as specs, file names and columns spell them, and their names.

A code is a language of two or three letters, perhaps with a script and a region: ``de``, ``deu``, ``zh_Hant``,
``deu_Latn``, ``en-GB``, ``pt_BR``, ``zh-Hans-CN``. Data sets keep codes as they were given. Codes are compared by
language, in whatever spelling: ``deu_Latn``, ``de-AT`` and ``de`` are all German. Script and region count only where
they tell two codes of one language apart, see :func:`match_language` and :func:`distinct_codes`.
"""

from __future__ import annotations

import difflib
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

logger = logging.getLogger(__name__)

UNKNOWN = "und"
"""ISO 639-2 for "undetermined": the language of a side that neither caller nor file names."""

# Of ISO 15924, those in which text is published. Any four letters would take "de-en_test.tsv" for English in a script.
_SCRIPTS = (
    "Adlm Arab Armn Beng Bugi Cans Cher Cyrl Deva Ethi Geor Grek Gujr Guru Hang Hani Hans Hant Hebr Hira Jpan Java "
    "Kana Khmr Knda Kore Laoo Latn Mlym Mong Mtei Mymr Nkoo Olck Orya Sinh Sund Syrc Taml Telu Tfng Thaa Thai Tibt Yiii"
)
_SCRIPT = f"[-_](?i:{_SCRIPTS.replace(' ', '|')})"
# A hyphen also joins the languages of a pair, so that only capitals mark a region after it: "pt-BR-en", "de-en-GB".
_REGION = "(?:-[A-Z]{2}|_[A-Za-z]{2}|[-_][0-9]{3})"
_STRICT = re.compile(f"([a-z]{{2,3}})({_SCRIPT})?({_REGION})?")
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2})?")
# In file names a region is in capitals after an underscore, too: "de-en_test.tsv". A hyphen before it would take
# "built-in-to.tsv" for a pair. Some regions are known in small letters, as OPUS has them, before they are read as codes
# of languages: tw is Twi.
_OPUS = "zh_(?:cn|tw|hk|sg)|pt_br|en_(?:us|gb|ca|au|za)|es_(?:mx|ar|co|cr|ec|pr)|(?:fr|nl)_(?:be|ca)|de_(?:at|ch)|sv_fi"
_IN_NAME = f"(?:{_OPUS}|[a-z]{{2,3}}(?:{_SCRIPT})?(?:[-_](?:[A-Z]{{2}}|[0-9]{{3}}))?)"
_PAIR_IN_NAME = re.compile(f"(?:^|[._])({_IN_NAME})-({_IN_NAME})(?=[._]|$)")
# Joined by an underscore, where a hyphen is within one of the two: "zh-TW_en.tsv", "pt-br_en.tsv".
_HYPHENED = f"(?:{_OPUS.replace('_', '-')}|[a-z]{{2,3}}(?:-(?i:{_SCRIPTS.replace(' ', '|')}))?(?:-[A-Z]{{2}})?)"
_UNDERSCORE_IN_NAME = re.compile(f"(?:^|[.])(?=[^.]*-)({_HYPHENED})_({_HYPHENED})(?=[._]|$)")
_CAPITALS_IN_NAME = re.compile("(?:^|[._])([A-Z]{2,3})-([A-Z]{2,3})(?=[._]|$)")


def _read_rows(name: str) -> list[list[str]]:
    """Read a table of this package, without its head."""
    table = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines()[1:]]


# The names are not those of langcodes, which has other ones for 24 of these 281 languages ("Mandarin Chinese", Dari and
# Persian alike) and other Hub codes for 17, takes "the" for the name of a language, and needs 24 MB of data.

#: Every other code of a language, such as that of ISO 639-1, to LASER's code.
ALIASES: dict[str, str] = {}

#: LASER's code to the language's name in English.
LANGUAGE_NAMES: dict[str, str] = {}

# LASER's code → codes of two letters, the usual one first; languages without any are missing.
_TWO_LETTERS: dict[str, list[str]] = {}

# English name, case folded → usual code.
_ENGLISH_NAMES: dict[str, str] = {}

for _code, _two_letters, _other_codes, _name in _read_rows("languages.tsv"):
    _short_codes = _two_letters.split()
    ALIASES.update(dict.fromkeys([*_short_codes, *_other_codes.split()], _code))
    LANGUAGE_NAMES[_code] = _name
    _ENGLISH_NAMES[_name.casefold()] = _short_codes[0] if _short_codes else _code
    if _short_codes:
        _TWO_LETTERS[_code] = _short_codes

_CHINESE_SCRIPTS = {"CN": "Hans", "SG": "Hans", "MY": "Hans", "TW": "Hant", "HK": "Hant", "MO": "Hant"}

# Codes of ISO 639-2 for bibliographies. Files have them, but what is typed should be the usual code.
_BIBLIOGRAPHIC = (
    "alb", "arm", "baq", "bur", "chi", "cze", "dut", "fre", "geo", "ger", "gre", "ice", "mac", "mao", "may", "per",
    "rum", "slo", "tib", "wel",
)  # fmt: skip

# Names that speakers have for their language, and usual English names besides those of the table.
_OTHER_NAMES = {
    "deutsch": "de",
    "english": "en",
    "français": "fr",
    "francais": "fr",
    "español": "es",
    "espanol": "es",
    "castellano": "es",
    "português": "pt",
    "portugues": "pt",
    "italiano": "it",
    "nederlands": "nl",
    "polski": "pl",
    "svenska": "sv",
    "norsk": "no",
    "dansk": "da",
    "suomi": "fi",
    "čeština": "cs",
    "türkçe": "tr",
    "magyar": "hu",
    "română": "ro",
    "русский": "ru",
    "українська": "uk",
    "ελληνικά": "el",
    "العربية": "ar",
    "עברית": "he",
    "فارسی": "fa",
    "हिन्दी": "hi",
    "ไทย": "th",
    "tiếng việt": "vi",
    "中文": "zh",
    "日本語": "ja",
    "한국어": "ko",
    "mandarin": "zh",
    "farsi": "fa",
    "flemish": "nl",
    "castilian": "es",
    "bangla": "bn",
    "brazilian": "pt_BR",
    "simplified chinese": "zh_Hans",
    "traditional chinese": "zh_Hant",
    "zh-chs": "zh_Hans",
    "zh-cht": "zh_Hant",
    "allemand": "de",
    "alemán": "de",
    "tedesco": "de",
    "anglais": "en",
    "inglés": "en",
    "inglese": "en",
    "französisch": "fr",
    "francés": "fr",
    "francese": "fr",
    "spanisch": "es",
    "espagnol": "es",
    "italienisch": "it",
    "italien": "it",
    "russisch": "ru",
    "russe": "ru",
    "chinesisch": "zh",
    "chinois": "zh",
    "japanisch": "ja",
    "japonais": "ja",
    "日语": "ja",
    "日文": "ja",
    "汉语": "zh",
    "漢語": "zh",
    "英语": "en",
    "英文": "en",
    "德语": "de",
}

# Codes of languages that no country has, and of languages that are hardly written with a region of another of them.
_NO_COUNTRIES = frozenset(["cs", "da", "el", "en", "fa", "he", "hi", "ja", "ko", "uk", "ur", "vi", "zh"])
_LARGE = frozenset(["de", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "ro", "ru", "tr"])

# Codes of countries that are often taken for those of their languages, and are no codes of languages.
_COUNTRIES = {
    "jp": "ja",
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "gr": "el",
    "ua": "uk",
    "vn": "vi",
    "us": "en",
    "gb": "en",
}


def canonical_language(code: str) -> str:
    """Return LASER's code for a language, without script and region; an unknown code is returned as it is.

    Example:
        >>> [canonical_language(code) for code in ("de", "deu_Latn", "zh-Hant-TW", "pt_BR", "zh-vi")]
        ['deu', 'deu', 'cmn', 'por', 'zh-vi']
    """
    match = _STRICT.fullmatch(code.strip())
    language = match[1] if match else code.strip()
    lower = language.lower()
    if lower in ALIASES:
        return ALIASES[lower]
    return lower if lower in LANGUAGE_NAMES else language


def canonical_code(code: str) -> str:
    """Return one spelling of a whole code: LASER's for the language, then script and region.

    Example:
        >>> canonical_code("zh-hant_tw"), canonical_code("deu")
        ('cmn_Hant_TW', 'deu')
    """
    match = _STRICT.fullmatch(code.strip())
    _, script, region = match.groups() if match else ("", None, None)
    tags = [canonical_language(code)]
    if script:
        tags.append(script[1:].capitalize())
    if region:
        tags.append(region[1:].upper())
    return "_".join(tags)


def distinct_codes(codes: Iterable[str]) -> dict[str, str]:
    """Map each code to its language, and to the whole code where several codes are of one language.

    Example:
        >>> distinct_codes(["deu_Latn", "zho_Hans", "zho_Hant"])
        {'deu_Latn': 'deu', 'zho_Hans': 'cmn_Hans', 'zho_Hant': 'cmn_Hant'}
    """
    full_codes = {code: canonical_code(code) for code in codes}
    codes_per_language = Counter(map(canonical_language, set(full_codes.values())))
    distinct = {}
    for code, full_code in full_codes.items():
        language = canonical_language(full_code)
        distinct[code] = full_code if codes_per_language[language] > 1 else language
    return distinct


def match_language(code: str, known: Iterable[str]) -> str | None:
    """Return the known code that means the same: the same whole code, else the only one of the same language.

    Of several codes of the language, the only one whose script and region fit those of ``code``.

    Example:
        >>> match_language("zh", ["en", "zh_Hant"]), match_language("zh_Hant", ["zh_Hans", "zho_Hant"])
        ('zh_Hant', 'zho_Hant')
        >>> match_language("zh_Hant", ["zh-CN", "zh-TW"]), match_language("pt-BR", ["pt", "pt-PT"])
        ('zh-TW', 'pt')
        >>> match_language("zh", ["zh_Hans", "zh_Hant"]) is None
        True
    """
    known_codes = list(known)
    if code in known_codes:
        return code
    for known_code in known_codes:
        if canonical_code(known_code) == canonical_code(code):
            return known_code
    candidates = [known_code for known_code in known_codes if is_code(known_code)]
    candidates = [known_code for known_code in candidates if base_language(known_code) == base_language(code)]
    # First those whose script and region are no other ones, then those whose script is no other one.
    for tags in (2, 1):
        wanted = _script_and_region(code)[:tags]
        fitting = [variant for variant in candidates if _fits(_script_and_region(variant)[:tags], wanted)]
        if fitting and len(set(map(canonical_code, candidates))) > 1:
            candidates = fitting
    is_unique = len(set(map(canonical_code, candidates))) == 1
    return candidates[0] if is_unique else None


def may_be_language(code: str | None, wanted: str | None) -> bool:
    """Return whether a text of a language may be in the one that is wanted: any may where one of them is not known.

    Example:
        >>> may_be_language("de-AT", "de"), may_be_language("fr", "de"), may_be_language(None, "de")
        (True, False, True)
    """
    return code is None or wanted is None or match_language(wanted, [code]) is not None


def _fits(tags: Iterable[str | None], others: Iterable[str | None]) -> bool:
    """Return whether no script or region is another one: one that is not named may be any."""
    return all(None in (tag, other) or tag == other for tag, other in zip(tags, others))


def _script_and_region(code: str) -> tuple[str | None, str | None]:
    """Return the script and the region of a code, where it has them; Chinese has a script for each region."""
    _, *tags = re.split("[-_]", code.strip())
    script = next((tag.capitalize() for tag in tags if len(tag) == 4), None)
    region = next((tag.upper() for tag in tags if len(tag) < 4), None)
    if script is None and region is not None and base_language(code) == "cmn":
        script = _CHINESE_SCRIPTS.get(region)
    return script, region


def base_language(code: str) -> str:
    """Return LASER's code for the language of what is known to be a code, also of ``pt-br``."""
    return canonical_language(re.split("[-_]", code.strip())[0])


def language_name(code: str) -> str:
    """Return a language's name in English; an unknown code is returned as it is.

    Example:
        >>> language_name("de"), language_name("zho"), language_name("xx")
        ('German', 'Chinese', 'xx')
    """
    return LANGUAGE_NAMES.get(canonical_language(code), code)


def hub_language(code: str) -> str:
    """Return the code of a language in the Hub's cards: two letters where it has them, else three, without country.

    Codes that ISO 639-1 has withdrawn, such as ``iw`` for Hebrew, are replaced by those that are valid today.

    Example:
        >>> hub_language("deu"), hub_language("zh-CN"), hub_language("yue"), hub_language("iw")
        ('de', 'zh', 'yue', 'he')
    """
    language = re.split("[-_]", code.strip().lower())[0]
    canonical = canonical_language(language)
    two_letters = _TWO_LETTERS.get(canonical)
    if two_letters is None:
        # Two letters that are known, but not valid: "sh" of Serbo-Croatian has no successor of two letters.
        return canonical if len(language) == 2 else language
    return language if language in two_letters else two_letters[0]


def pair_in_name(path: str | Path) -> tuple[str | None, str | None]:
    """Return the two languages in a file name; ``(None, None)`` if it has none.

    Example:
        >>> pair_in_name("de-en.dev.tsv.gz"), pair_in_name("news_zh_CN-en.tsv"), pair_in_name("DE-EN.tsv")
        (('de', 'en'), ('zh_CN', 'en'), ('de', 'en'))
    """
    # Three letters and capitals must be known languages, or "dev-de.tsv" and "US-UK.tsv" would be pairs.
    name = Path(path).name
    patterns = (_UNDERSCORE_IN_NAME, _PAIR_IN_NAME)
    for pattern in patterns:
        for match in pattern.finditer(name):
            source, target = match.groups()
            if _is_known_in_name(source) and _is_known_in_name(target):
                return source, target
    for match in _CAPITALS_IN_NAME.finditer(name):
        source, target = match[1].lower(), match[2].lower()
        if _has_name(source) and _has_name(target):
            return source, target
    return None, None


def _is_known_in_name(code: str) -> bool:
    return is_evident_code(code) or _has_name(code)


def _has_name(code: str) -> bool:
    return language_name(code) != code


def split_pair(pair: str) -> tuple[str, str] | None:
    """Split two language codes joined by a hyphen; ``None`` for anything else.

    After a hyphen a region is in capitals: there is one reading at most.

    Example:
        >>> split_pair("zh-Hans-CN-en"), split_pair("de-en-GB"), split_pair("pt-br-en")
        (('zh-Hans-CN', 'en'), ('de', 'en-GB'), None)
    """
    for hyphen in re.finditer("-", pair):
        source = pair[: hyphen.start()]
        target = pair[hyphen.end() :]
        if is_strict_code(source) and is_strict_code(target):
            return source, target
    return None


def pair_languages(pair: str) -> tuple[str | None, str | None]:
    """Return the two languages of a name such as ``"zh-vi"``; ``(None, None)`` if it is no such name."""
    if codes := split_pair(pair):
        return codes
    source, _, target = pair.partition("-")
    if source and target and "-" not in target:
        return source, target
    return None, None


def check_language_code(code: str, where: str) -> None:
    """Raise ``ValueError`` for what is no code of a language, with the code that was probably meant.

    A code of three letters that the table lacks may be of ISO 639-3, which has thousands: it passes, and a line says
    that text in it is not checked.

    Args:
        code: What a user typed: ``de``, ``deu_Latn``, ``pt-BR``; ``und`` stands for an unknown language.
        where: Option or spec that has it, for the message.

    Example:
        >>> check_language_code("german", "--source-language")
        Traceback (most recent call last):
        ...
        ValueError: --source-language names no known language: got 'german'; did you mean 'de'?
    """
    language = re.split("[-_]", code)[0]
    if _is_pair(code):
        raise ValueError(f"{where} names one language: got {code!r}; a region has capitals, as in en-GB.")
    is_usual = is_code(code) and language not in _BIBLIOGRAPHIC
    if code == UNKNOWN or (is_usual and canonical_language(language) in LANGUAGE_NAMES):
        return
    if is_usual and len(language) == 3:
        logger.info("%s: the language %r is not known here; text in it is not checked", where, code)
        return
    meant = _meant_language(code)
    advice = f"did you mean {meant!r}?" if meant else "write a code of ISO 639, such as de, deu, zh_Hant or pt-BR."
    raise ValueError(f"{where} names no known language: got {code!r}; {advice}")


def check_languages(pairs: Iterable[tuple[str, str]], name: str) -> None:
    """Raise ``ValueError`` if a pair of languages is one known language twice; ``name`` is where it comes from."""
    for source, target in pairs:
        if source != UNKNOWN and canonical_code(source) == canonical_code(target):
            raise ValueError(f"{name}: expected two languages, got {source}-{target}; name them, as in de-en=PATH")


def _is_pair(code: str) -> bool:
    """Return whether a code is two languages, such as ``de-en``, and not one with a region, such as ``ko-kr``."""
    language, _, other = code.partition("-")
    return language != other and (other in _NO_COUNTRIES or {language, other} <= _LARGE)


def meant_pair(name: str) -> str | None:
    """Return the codes that were meant by the name of one language or two; ``None`` if it names none.

    Example:
        >>> meant_pair("german-english"), meant_pair("DE"), meant_pair("my-file")
        ('de-en', 'de', None)
    """
    codes: list[str] = []
    for part in name.split("-"):
        is_known = is_code(part) and base_language(part) in LANGUAGE_NAMES
        code = part if is_known else _meant_language(part)
        if code is None:
            return None
        codes.append(code)
    return "-".join(codes) if len(codes) <= 2 else None


@lru_cache(maxsize=1)
def _local_names() -> dict[str, str]:
    """Return names of languages in other languages than English, case folded, with their codes."""
    local_names: dict[str, str] = {}
    for code, *names in _read_rows("language_names.tsv"):
        local_names.update(dict.fromkeys(names, code))
    return local_names


def named_language(name: str) -> str | None:
    """Return the short code of the language that has this name, in English or in another language.

    Example:
        >>> named_language("German"), named_language("alemán"), named_language("Немецкий"), named_language("Satz")
        ('de', 'de', 'de', None)
    """
    folded = unicodedata.normalize("NFC", name.strip().casefold())
    english = _ENGLISH_NAMES.get(folded) or _OTHER_NAMES.get(folded)
    return english or _local_names().get(folded)


def _meant_language(text: str) -> str | None:
    """Return the code of a language that is named otherwise: by its name, in capitals, by a bibliographic code."""
    lower = text.strip().casefold()
    if code := named_language(text):
        return code
    names = _ENGLISH_NAMES | _OTHER_NAMES
    language, *tags = re.split("[-_]", lower)
    if canonical_language(language) in LANGUAGE_NAMES:
        spelled_tags = [tag.upper() if len(tag) == 2 else tag.title() for tag in tags]
        full_code = "-".join([short_code(language), *spelled_tags])
        return full_code if is_strict_code(full_code) else short_code(language)
    # A locale (German_Germany.1252), or a name with more words (Brazilian Portuguese, English (US)).
    words = [word for word in re.split(r"[\W_]+", lower) if word in names]
    if words:
        return names[words[0]]
    if language in _COUNTRIES:
        return _COUNTRIES[language]
    close = difflib.get_close_matches(lower, names, n=1, cutoff=0.8)
    return names[close[0]] if close else None


def short_code(code: str) -> str:
    """Return a language's code of two letters, if it has one, without script and region.

    Example:
        >>> short_code("deu"), short_code("ger"), short_code("yue")
        ('de', 'de', 'yue')
    """
    language = canonical_language(code)
    return _TWO_LETTERS[language][0] if language in _TWO_LETTERS else language


def is_strict_code(text: str) -> bool:
    """Return whether ``text`` is a language code whose region, after a hyphen, is in capitals: not ``pt-br``."""
    return _STRICT.fullmatch(text) is not None


def is_code(text: str) -> bool:
    """Return whether ``text`` is spelled like a language code: ``de``, ``deu``, ``zh-cn``, ``zh-Hans-CN``."""
    return is_strict_code(text) or _CODE.fullmatch(text) is not None


def is_evident_code(text: str) -> bool:
    """Return whether ``text`` can hardly be another word: a code of two letters, or one with a script.

    Three letters alone prove nothing: ``src`` and ``ref`` have them too.
    """
    match = _STRICT.fullmatch(text)
    has_script = match is not None and match[2] is not None
    has_two_letters = is_code(text) and not text[2:3].isalpha()
    return has_two_letters or has_script


def resolve_pair(
    path: str | Path, source_language: str | None, target_language: str | None, *, swapped_on_purpose: bool = False
) -> tuple[str | None, str | None]:
    """Return the source and target language: the arguments, else those of the file name.

    Raises:
        ValueError: If the file name has the two languages in reverse order, unless ``swapped_on_purpose``: the labels
            would be wrong on every row.
    """
    named = pair_in_name(path)
    source = source_language or named[0]
    target = target_language or named[1]
    is_given = source_language is not None or target_language is not None
    known = list(filter(None, named))
    matches = [code and match_language(code, known) for code in (source, target)]
    is_reversed = len(set(known)) == 2 and (matches[0] == known[1] or matches[1] == known[0])
    if is_given and is_reversed and not swapped_on_purpose:
        raise ValueError(
            f"expected {named[0]}-{named[1]}, as in the name of {path}, got {source}-{target}; "
            "swap the languages, or pass columns=(1, 0) to swap the sides"
        )
    return source, target
