"""Split a document into sentences: sentencex, and what it lacks for some languages.

sentencex knows the abbreviations of many languages. It does not end a sentence at a full stop of scripts that put no
space after it where a digit follows (``。3``), nor at the marks of Khmer and Tibetan, and it has few abbreviations of
Romance and Slavic languages. Sentences that it joins are split here; those that it splits are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from st_xling.utils.languages import hub_language
from st_xling.utils.options import require

# Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese have no spaces between words.
_NO_SPACES = r"[\u0e00-\u109f\u1780-\u17ff\u3000-\u9fff\uff00-\uff60]"
_LINE_END_WITHOUT_SPACE = re.compile(rf"(?<={_NO_SPACES})\s*\n\s*(?={_NO_SPACES})")

_PARAGRAPH_END = re.compile(r"\n(?:\s*\n)+")
_HYPHENATED_WORD = re.compile(r"(\w*[^\W\d_])-[ \t]*\n\s*([^\W\d_]\w*)")

# Ends of sentences after which sentencex does not split. A closing quotation mark after them is left to sentencex:
# what follows may be who said it.
_ENDS = re.compile(
    r"(?<=[。！？｡])(?=\d)"  # 今天很冷。3个人来了。
    r"|(?<=[។៕])\s*(?=\w)"  # Khmer
    r"|(?<=[།༎༔])\s+(?=[^\s།༎༔])"  # Tibetan, where a mark stands before a space
)
# In Chinese an ellipsis ends a sentence, unless somebody hesitates after a character or two: 我……我不知道。
_CHINESE_ELLIPSIS = re.compile(r"(?<=\w{3}……)(?=\w{3})")

# Abbreviations after which no sentence ends, by language: sentencex has the others.
_BEFORE_WORDS = {
    "es": "d dña",
    "fr": "m mm mme mmes mlle mlles me mgr dr drs pr st ste bd cie c.-à-d env av apr",
    "it": "a.c d.c",
    "nl": "dhr mevr mw",
    "pl": "p dr inż mgr ul św",
    "pt": "av d",
    "ro": "dl dna d-na str ex",
    "ru": "им т.е др н.э св",
    "sv": "t.ex",
    "tr": "sn bkz örn",
}
# Abbreviations that end no sentence before a number: "fig. 3", "janv. 1990".
_BEFORE_NUMBERS = {
    "de": "jan feb febr apr aug sept okt nov dez",
    "el": "σ σελ αρ κεφ",
    "en": "approx eq vol vols",
    "es": "aprox ene feb abr ago sept oct nov dic",
    "fr": "janv févr avr juil sept oct nov déc no nos ch chap réf min max art fig p pp vol",
    "hu": "kb",
    "it": "pag n sett gen febbr apr ott nov dic",
    "nl": "jan febr apr aug sept okt nov dec",
    "pl": "nr str art ok godz rys",
    "pt": "pág n cap vol jan fev abr ago set out nov dez",
    "ro": "pag",
    "ru": "гл рис янв февр апр авг сент окт нояб дек",
    "sv": "kap",
    "uk": "рис",
}
_LAST_WORD = re.compile(r"([\w.-]*\w)\.$")
_LAST_LETTER = re.compile(r"(?:^|[\s.(-])(?!\d)(\w)\.$")


def split_sentences(text: str, language: str | None = None) -> list[str]:
    """Split a document into sentences, with an empty one between paragraphs, as
    :func:`~st_xling.mining.align_documents` takes them.

    Paragraphs have blank lines between them, so that wrapped lines are joined; without any, each line is one. A word
    that is hyphenated at the end of a line is joined, also across the blank lines of a page break.

    Args:
        text: The document.
        language: Its language, whose abbreviations are known; English by default.

    Raises:
        ValueError: If sentencex, which splits, is not installed.

    Example:
        >>> split_sentences("Dr. Weiß kam. Sie\\nblieb.\\n\\nEs war spät.", "de")
        ['Dr. Weiß kam.', 'Sie blieb.', '', 'Es war spät.']
    """
    segment = require("sentencex", "splitting sentences", extra="split").segment
    language = hub_language(language or "en")
    sentences: list[str] = []
    for paragraph in _paragraphs(text):
        if sentences:
            sentences.append("")
        sentences += _join_abbreviations(segment(language, paragraph), language)
    return sentences


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a document, each in one line."""
    text = "\n".join(text.strip().splitlines())
    text = _HYPHENATED_WORD.sub(lambda match: _joined(match, text), text)
    lines = text.split("\n")
    are_wrapped = any(not line.strip() for line in lines)
    paragraphs = []
    for paragraph in _PARAGRAPH_END.split(text) if are_wrapped else lines:
        unwrapped = _LINE_END_WITHOUT_SPACE.sub("", paragraph)
        paragraphs.append(" ".join(unwrapped.split()))
    return paragraphs


def _joined(match: re.Match[str], text: str) -> str:
    """Return the word that the end of a line cuts in two, with its hyphen if the document has it so elsewhere.

    A capital or a number does not continue a word, and a hyphen before a space may stand for the rest of a word.
    """
    beginning, end = match.groups()
    if not end[0].islower():
        return match.group()
    hyphenated = f"{beginning}-{end}"
    return hyphenated if hyphenated in text else beginning + end


def _join_abbreviations(segments: Iterable[str], language: str) -> list[str]:
    """Join what is split after an abbreviation or an initial, and split what is not split after a sentence."""
    before_words = _BEFORE_WORDS.get(language, "").split()
    before_numbers = _BEFORE_NUMBERS.get(language, "").split()
    joined: list[str] = []
    for segment in map(str.strip, segments):
        if not segment:
            continue
        last_word = _LAST_WORD.search(joined[-1]) if joined else None
        abbreviation = last_word.group(1).lower() if last_word else ""
        goes_on = abbreviation in before_words or (abbreviation in before_numbers and segment[0].isdigit())
        # A day before an abbreviated month, as in "3. Jan."
        goes_on |= abbreviation.isdigit() and segment.split(".")[0].lower() in before_numbers
        last_letter = _LAST_LETTER.search(joined[-1]) if joined else None
        initial = last_letter is not None and last_letter.group(1).isupper()
        if goes_on or (initial and segment[0].isupper()):
            joined[-1] += f" {segment}"
        elif initial and segment[0] == "-":  # av. J.-C.
            joined[-1] += segment
        else:
            joined.append(segment)
    sentences: list[str] = []
    for text in joined:
        for sentence in _ENDS.split(text):
            sentences += _CHINESE_ELLIPSIS.split(sentence) if language == "zh" else [sentence]
    return sentences
