"""One meaning, six languages."""

from st_xling.data.phrasebook import chinese, english, french, german, spanish, vietnamese
from st_xling.data.phrasebook.meanings import Meaning
from st_xling.data.phrasebook.surface import Phrase

_RENDERERS = {
    "en": english.render,
    "de": german.render,
    "fr": french.render,
    "es": spanish.render,
    "vi": vietnamese.render,
    "zh": chinese.render,
}
LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")


def check_language(language: str) -> None:
    """Raise a ``ValueError`` that lists the languages unless ``language`` is one of them."""
    if language not in _RENDERERS:
        near = language.lower()[:2]
        hint = f"did you mean {near!r}?" if near in _RENDERERS else "use one of these ISO 639-1 codes."
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}: got {language!r}; {hint}")


def render(meaning: Meaning, language: str) -> Phrase:
    """Say a meaning in a language.

    Args:
        meaning: What to say.
        language: One of :data:`LANGUAGES`.
    Returns:
        The sentence, its tokens, and for each token the slots of the meaning that it realises.
    Raises:
        ValueError: If the language is unknown.
    Example:
        >>> from st_xling.data.phrasebook import Clause, Meaning, NounPhrase, render
        >>> render(Meaning(Clause(NounPhrase("cat", "this", 3), "sleep", "progressive")), "zh").text
        '这三只猫正在睡觉。'
    """
    check_language(language)
    return _RENDERERS[language](meaning)
