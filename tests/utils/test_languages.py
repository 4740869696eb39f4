"""Codes and names of languages: one table for all who need them."""

import re

import pytest

from st_xling.evaluation.tatoeba_data import TATOEBA_GROUPS
from st_xling.utils.languages import ALIASES, LANGUAGE_NAMES, canonical_language, language_name


def test_the_table_is_whole() -> None:
    assert all(re.fullmatch("[a-z]{3}", code) for code in LANGUAGE_NAMES)
    assert all(re.fullmatch("[a-z]{2,3}", alias) for alias in ALIASES)
    assert set(ALIASES.values()) | set(TATOEBA_GROUPS["laser112"]) <= LANGUAGE_NAMES.keys()
    assert not ALIASES.keys() & ALIASES.values()  # a code is spelled in one way once it is canonical
    assert len(set(LANGUAGE_NAMES.values())) == len(LANGUAGE_NAMES)


@pytest.mark.parametrize(
    "code, expected, name",
    [
        ("de", "deu", "German"),
        (" EN ", "eng", "English"),
        ("nb", "nob", "Norwegian"),
        ("no", "nob", "Norwegian"),
        ("fas", "pes", "Persian"),
        ("zho", "cmn", "Chinese"),
        ("gu", "guj", "Gujarati"),
        ("ht", "hat", "Haitian Creole"),
        ("quz", "quz", "quz"),
    ],
)
def test_codes_and_names(code: str, expected: str, name: str) -> None:
    assert canonical_language(code) == canonical_language(expected) == expected
    assert language_name(code) == name


def test_codes_of_the_language_identifier() -> None:
    from st_xling.utils.identify import _identifier

    known = {canonical_language(label) for label in _identifier().labels if len(label) == 2}
    assert known <= LANGUAGE_NAMES.keys()
