"""The part of a text that shows its language, at the limits that were chosen on real text."""

import pytest

from st_xling.utils.identifiable import identifiable_part

# Text, expected language, and what is left: "=" for all of the text. Recorded at 7c27a47c.
PARTS = [
    # A text in Latin letters is taken for a widespread language from 20 characters on.
    ("The weather is nice", "kk", ""),
    ("The weather is so nice", "kk", "="),
    # A Korean title has ten Chinese characters at most, and no punctuation.
    ("大韓民國憲法第一條第", "ko", ""),
    ("大韓民國憲法第一條第一", "ko", "="),
    ("國家，民族", "ko", "="),
    # Code has a sign for two words, and more than one.
    ("x = read(fd)", "en", ""),
    ("He can read (fd, buf) now", "en", "="),
    ("one two three (four)", "en", ""),
    ("one two three four (five)", "en", "="),
    ("A*B", "en", "="),
    # Eight words are a name at most.
    ("Anna Maria Luisa Clara Berta Emma Lina Ida", "de", ""),
    ("Anna Maria Luisa Clara Berta Emma Lina Ida Ute", "de", "="),
    ("Johann Wolfgang von Goethe", "de", ""),
    ("Paris", "fr", "="),
    # Words in Latin letters are left out where there is one letter of the language for four of them.
    ("これは Windows です", "ja", "これは   です"),
    ("Linux guide とは", "ja", "Linux guide とは"),
    ("Linux user とは", "ja", "Linux user とは"),
    ("Linux abc とは", "ja", "    とは"),
    ("Linux abc とは、", "ja", "    とは、"),
]


@pytest.mark.parametrize(("text", "language", "part"), PARTS)
def test_parts_that_show_a_language(text: str, language: str, part: str) -> None:
    """No test failed when names had sixteen words at most, or a title in Chinese characters had twenty of them."""
    assert identifiable_part(text, language) == (text if part == "=" else part)


def test_the_first_400_characters_are_looked_at() -> None:
    """Recorded at 7c27a47c; no test failed when it was 100."""
    text = "Wort " * 90
    assert identifiable_part(text, "de") == text[:400]
