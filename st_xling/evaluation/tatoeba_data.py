"""Aligned text with English on one side: Tatoeba's languages and groups, what evaluators take, what specs name.

Source:
    File list of facebookresearch/LASER, ``data/tatoeba/v1``; XTREME (Hu et al. 2020) for the 36; DAP (Li et al. 2023,
    section 4.4) for the 14 of XNLI and the 28 of the 36 that have 1000 pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from st_xling.data.read import labeled_pairs
from st_xling.data.spec import phrasebook_name, split_spec
from st_xling.utils.languages import UNKNOWN, canonical_code, canonical_language, distinct_codes
from st_xling.utils.text import home_path

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

Pairs: TypeAlias = "Mapping[str, tuple[Sequence[str], Sequence[str]] | Dataset]"

_LASER112 = (
    "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp "
    "ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat "
    "kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron "
    "rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue zsm"
)
_FULL28 = (
    "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jpn kor mar nld pes por rus spa tgl tur urd vie"
)
_XNLI14 = "ara bul cmn deu ell fra hin rus spa swh tha tur urd vie"

#: Group name to its languages, in alphabetical order: three-letter codes, as in the files' names.
TATOEBA_GROUPS: dict[str, tuple[str, ...]] = {
    "xnli14": tuple(_XNLI14.split()),
    "full28": tuple(_FULL28.split()),
    "xtreme36": tuple(sorted(f"{_FULL28} jav kat kaz mal swh tam tel tha".split())),
    "laser112": tuple(_LASER112.split()),
}


def resolve_languages(names_or_group: str | Iterable[str]) -> tuple[str, ...]:
    """Three-letter codes for a group, a language, a comma-separated list of them, or an iterable of them.

    Args:
        names_or_group: ``"xtreme36"``, ``"de"``, ``"de,fra"``, ``["xnli14", "et"]``.
    Returns:
        Codes in the order given, each once.
    Raises:
        ValueError: On an empty list, English (the other side of every pair) or unknown names.
    Example:
        >>> resolve_languages("de,sw,deu")
        ('deu', 'swh')
    """
    parts = names_or_group.split(",") if isinstance(names_or_group, str) else list(names_or_group)
    names = [part.strip() for part in parts if part.strip()]
    if not names:
        raise ValueError("languages must name at least one language or group: got none; pass e.g. 'de' or 'xtreme36'.")
    codes: dict[str, None] = {}
    for name in names:
        members = TATOEBA_GROUPS.get(name.lower(), (canonical_language(name),))
        if not {*members} <= {*TATOEBA_GROUPS["laser112"]}:
            raise ValueError(
                f"languages must be Tatoeba codes such as 'deu' or 'de', or groups ({', '.join(TATOEBA_GROUPS)}): "
                f"got {name!r}; see TATOEBA_GROUPS['laser112']."
            )
        codes.update(dict.fromkeys(members))
    return tuple(codes)


def aligned_pairs(pairs: Pairs) -> dict[str, tuple[list[str], list[str]]]:
    """Return canonical code → two lists of equal length, in alphabetical order; all faults in one error."""
    aligned: dict[str, tuple[list[str], list[str]]] = {}
    languages, faults = distinct_codes(pairs), []
    for code, sides in pairs.items():
        if languages[code] in aligned:
            faults.append(f"{code} and another code both mean {languages[code]}; keep one.")
        if not isinstance(sides, (tuple, list)):
            sides = labeled_pairs({f"{code}-en": sides})[f"{code}-en"]
            sides = sides["source"], sides["target"]
        source, target = sides
        aligned[languages[code]] = (list(source), list(target))
        if not len(source) == len(target) > 0:
            faults.append(f"{code} has {len(source)} and {len(target)} texts; align them line by line.")
    if faults or not pairs:
        raise ValueError(f"pairs must hold aligned texts of at least one language: {' '.join(faults) or 'got none.'}")
    return dict(sorted(aligned.items()))


def count_repeats(pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]], name: str) -> dict[str, int]:
    """Count the sentences of each language, of both sides, that repeat an earlier one; a warning names them.

    A search finds only one of equal sentences, so no encoder is right for the others.

    Args:
        pairs: Language to aligned texts.
        name: Name of the data, for the warning.
    Returns:
        Language → repeated sentences, only where there are any.
    Example:
        >>> count_repeats({"deu": (["Ja.", "Nein.", "Ja."], ["Yes.", "No.", "Yes."]), "fra": (["Oui."], ["Yes."])}, "x")
        {'deu': 2}
    """
    counts = {code: sum(len(side) - len(set(side)) for side in sides) for code, sides in pairs.items()}
    repeats = {code: count for code, count in counts.items() if count}
    if repeats:
        listed = ", ".join(f"{code} {count:,}" for code, count in repeats.items())
        logger.warning("%s: repeated sentences, of which a search finds only one: %s", name, listed)
    return repeats


def english_columns(pairs: Mapping[str, tuple[list[str], list[str]]]) -> tuple[list[list[str]], list[str | None]]:
    """The texts of each language and their English, one after the other, and the language of each of these columns."""
    texts = [column for columns in pairs.values() for column in columns]
    return texts, [code for language in pairs for code in (language, "eng")]


def load_english_pairs(
    specs: Iterable[str | Path], languages: str | Iterable[str] | None = None, *, skip_bad_lines: bool = False
) -> tuple[dict[str, tuple[list[str], list[str]]], str]:
    """Read test text.

    Args:
        specs: Each a folder of ``tatoeba.xxx-eng.xxx`` files, or ``tatoeba``, which reads them from the Hub, or what
            :func:`~st_xling.data.load_data_specs` takes, such as ``de-en=test.tsv`` or ``phrasebook:de,fr``, of which
            the test split is read where it names none.
        languages: Group, code or several, as :func:`~st_xling.evaluation.resolve_languages`; all by default.
        skip_bad_lines: Drop faulty lines of pair files, with a warning; never those of a Tatoeba set.
    Returns:
        Three-letter code → texts in that language, and their English; and the name of the data, for a signature:
        ``tatoeba``, ``phrasebook-test``, or the files' names.
    Raises:
        ValueError: Text of two languages of which neither is English, or without known languages; a language that
            comes twice or is asked for and not there.
        FileNotFoundError, ValueError: As ``read_tatoeba`` and ``load_data_specs``.
    """
    from st_xling.data import load_data_specs

    given = [str(spec) for spec in specs]
    wanted = None if languages is None else resolve_languages(languages)
    pairs: dict[str, tuple[list[str], list[str]]] = {}
    for spec in given:
        if _is_tatoeba(spec):
            # One folder: its own reader picks the languages, and names those it lacks.
            more = _read_tatoeba(spec, wanted if len(given) == 1 else None)
        else:
            read = load_data_specs([spec], split="test", skip_bad_lines=skip_bad_lines)
            more = dict(_with_english(name, rows) for name, rows in read.items())
        known = set(map(canonical_code, pairs))
        if twice := [code for code in map(canonical_code, more) if code in known]:
            raise ValueError(f"expected one test set a language: got another for {', '.join(twice)} in {spec!r}.")
        pairs |= more
    pairs = {name: pairs[code] for code, name in distinct_codes(pairs).items()}
    if wanted is not None:
        if absent := [code for code in wanted if code not in map(canonical_language, pairs)]:
            raise ValueError(f"expected languages out of {', '.join(pairs)}: got {', '.join(absent)}; leave these out.")
        pairs = {code: pairs[code] for one in wanted for code in pairs if canonical_language(code) == one}
    if all(map(_is_tatoeba, given)):
        return pairs, "tatoeba"
    files = [Path(split_spec(spec).location).name for spec in given]
    return pairs, phrasebook_name(given, split="test") or "+".join(files)


def _is_tatoeba(spec: str) -> bool:
    path = home_path(spec)
    return any(path.glob("tatoeba.*-eng.*")) if path.is_dir() else spec == "tatoeba"


def _read_tatoeba(spec: str, languages: Sequence[str] | None) -> dict[str, tuple[list[str], list[str]]]:
    """The test sets of a folder or of the Hub."""
    from st_xling.data import load_pairs, read_tatoeba
    from st_xling.data.test_sets import hub_languages

    if home_path(spec).is_dir():
        sets = read_tatoeba(home_path(spec), languages)
    else:
        codes = languages or hub_languages("tatoeba")
        sets = {code: load_pairs("tatoeba", source_language=code, target_language="eng") for code in codes}
    return {code: (rows["source"][:], rows["target"][:]) for code, rows in sets.items()}


def _with_english(name: str, rows: Dataset) -> tuple[str, tuple[list[str], list[str]]]:
    """The other language's code, its texts and the English ones."""
    sides = [rows.unique(f"{side}_language") for side in ("source", "target")]
    shown = "-".join("/".join(codes) for codes in sides)
    codes = [codes[0] for codes in sides if len(codes) == 1]
    english = [canonical_language(code) == "eng" for code in codes]
    if len(codes) != 2 or UNKNOWN in codes or sum(english) != 1:
        raise ValueError(
            f"expected one language with English, named as in de-en=PATH: {name} is {shown}; other pairs are for "
            "st-xling evaluate precision."
        )
    first, second = rows["source"][:], rows["target"][:]
    return (codes[1], (second, first)) if english[0] else (codes[0], (first, second))
