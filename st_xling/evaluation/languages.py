"""Languages of the Tatoeba test sets: codes as in LASER's ``data/tatoeba/v1`` file names, and the groups papers report.

Source:
    File list of facebookresearch/LASER, ``data/tatoeba/v1``; XTREME (Hu et al. 2020) for the 36; DAP (Li et al. 2023,
    section 4.4) for the 14 of XNLI and the 28 of the 36 that have 1000 pairs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from st_xling.utils.languages import ALIASES, canonical_language


def _codes(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_XNLI14 = _codes("ara bul cmn deu ell fra hin rus spa swh tha tur urd vie")
_FULL28 = _codes(
    "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jpn kor mar nld pes por rus spa tgl tur urd vie"
)
_XTREME36 = tuple(sorted(_FULL28 + _codes("jav kat kaz mal swh tam tel tha")))
_LASER112 = _codes(
    "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp "
    "ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat "
    "kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron "
    "rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue "
    "zsm"
)

#: Group name to its languages, in alphabetical order.
TATOEBA_GROUPS: dict[str, tuple[str, ...]] = {
    "xnli14": _XNLI14,
    "full28": _FULL28,
    "xtreme36": _XTREME36,
    "laser112": _LASER112,
}


def resolve_languages(names_or_group: str | Iterable[str]) -> tuple[str, ...]:
    """Three-letter codes for a group, a language, a comma-separated list of them, or an iterable of them.

    Args:
        names_or_group: ``"xtreme36"``, ``"de"``, ``"de,fra"``, ``["xnli14", "et"]``.
    Returns:
        Codes in the order given, each once.
    Raises:
        ValueError: On an empty list, English (the other side of every pair) or unknown names; all of them at once, each
            with the nearest known names.
    Example:
        >>> resolve_languages("de,sw,deu")
        ('deu', 'swh')
    """
    parts = names_or_group.split(",") if isinstance(names_or_group, str) else list(names_or_group)
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise ValueError("languages must name at least one language or group: got none; pass e.g. 'de' or 'xtreme36'.")
    codes: dict[str, None] = {}
    faults = []
    for name in names:
        members = TATOEBA_GROUPS.get(name.lower(), (canonical_language(name.lower()),))
        if set(members) <= set(_LASER112):
            codes.update(dict.fromkeys(members))
        else:
            faults.append(f"got {name!r}; {_advice(name.lower())}")
    if faults:
        raise ValueError(
            "languages must be Tatoeba codes such as 'deu' or 'de', or groups (" + ", ".join(TATOEBA_GROUPS) + "): "
            f"{' '.join(faults)}"
        )
    return tuple(codes)


def _advice(name: str) -> str:
    if name in ("en", "eng"):
        return "English is the other side of every pair: leave it out."
    close = difflib.get_close_matches(name, [*TATOEBA_GROUPS, *_LASER112, *ALIASES], n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "see TATOEBA_GROUPS['laser112']."
