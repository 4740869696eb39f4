"""Language codes, as file names and columns spell them."""

from __future__ import annotations

import re
from pathlib import Path

UNKNOWN = "und"
"""ISO 639-2 for "undetermined": the language of a side that neither caller nor file names."""

# Two letters only: three would take "dev-de.tsv" for a pair. A hyphen before it would take "built-in-to.tsv" for one.
_PAIR_IN_NAME = re.compile(r"(?:^|[._])([a-z]{2})-([a-z]{2})(?=[._]|$)")
_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_TWO_LETTER_CODE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")

_SPELLINGS = (
    "af:afr am:amh ar:ara az:aze be:bel bg:bul bn:ben br:bre bs:bos ca:cat ch:cha cs:ces cy:cym da:dan de:deu "
    "el:ell en:eng eo:epo es:spa et:est eu:eus fa:pes fi:fin fo:fao fr:fra fy:fry ga:gle gd:gla gl:glg he:heb hi:hin "
    "hr:hrv hu:hun hy:hye ia:ina id:ind ie:ile io:ido is:isl it:ita ja:jpn jv:jav ka:kat kk:kaz km:khm ko:kor "
    "ku:kur kw:cor la:lat lt:lit lv:lvs mk:mkd ml:mal mn:mon mr:mar ms:zsm nb:nob nl:nld nn:nno no:nob oc:oci "
    "pl:pol pt:por ro:ron ru:rus sk:slk sl:slv sq:sqi sr:srp sv:swe sw:swh ta:tam te:tel th:tha tk:tuk tl:tgl "
    "tr:tur tt:tat ug:uig uk:ukr ur:urd uz:uzb vi:vie xh:xho yi:yid zh:cmn "
    "ekk:est fas:pes lav:lvs msa:zsm nor:nob swa:swh zho:cmn"
)

#: ISO 639-1, and the macrolanguage codes under which some data sets file the same language, to LASER's code.
ALIASES = dict(pair.split(":") for pair in _SPELLINGS.split())


def canonical_language(code: str) -> str:
    """LASER's code for a language: ``"de"`` and ``"deu"`` give ``"deu"``; an unknown code comes back as it is."""
    return ALIASES.get(code.strip().lower(), code.strip())


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
