"""Languages of texts to mine or align: those named for them, in their file names, or identified; and ids in the text.

What is surely wrong is an error before a model is loaded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from st_xling.data.formats import language_ending
from st_xling.data.sides import LEAST_CHARS
from st_xling.mining.filters import FilterOptions, language
from st_xling.utils.identifiable import identifiable_part
from st_xling.utils.identify import LanguageUnknown, expected_labels, main_language
from st_xling.utils.languages import LANGUAGE_NAMES, UNKNOWN, base_language, is_code
from st_xling.utils.text import text_name

logger = logging.getLogger(__name__)

_SIDES = ("source", "target")

# Fewest sentences by which a language is identified, fewest of each of two texts that are swapped, and most that are
# looked at.
_FEWEST = 10
_FEWEST_SWAPPED = 4
_MOST = 200

# Share of them that must be in it.
_SHARE = 0.8

# Fewest longer texts by which a language is identified that a format needs, and that a line names.
_FEWEST_TELLING = 3

# Share of sentences that the language filter rejects where nothing useful would be left.
_HOPELESS = 0.9

_TAG = re.compile(r"[._-]([A-Za-z]{2,3}(?:[_-][A-Za-z]{2,4})?)$")


class WrongLanguage(ValueError):
    """A text is in another language than named for it; the command ends with status 1, as nothing would be found."""

    exit_status = 1


def check_text_languages(filters: FilterOptions, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raise if texts are surely in other languages than named, and warn if one side seems to be.

    It is an error if the two languages are swapped, or if the language filter would reject nearly all sentences.
    Languages that py3langid does not know pass, and so do texts of a few sentences: fewer than ten, or four of each if
    they are swapped.

    Args:
        filters: The languages named for both texts, and the filters that will run.
        sources: Source text, of which sentences at equal distances are looked at.
        targets: Target text.

    Raises:
        WrongLanguage: Naming for each side what it looks like, and what was named.
    """
    named = filters.source_language, filters.target_language
    samples = _sample_sentences(sources), _sample_sentences(targets)
    seeming = [_other_language(sample, code, _FEWEST_SWAPPED) for sample, code in zip(samples, named)]
    if _are_swapped(seeming, named):
        facts = _describe_languages(seeming, named)
        raise WrongLanguage(f"0 pairs: {facts}. Swap the two languages or the two texts, or name no languages.")
    others = [_other_language(sample, code) for sample, code in zip(samples, named)]
    if not any(others):
        return
    facts = _describe_languages(others, named)
    limit = filters.enabled.get("language")
    for side, other, code, sample in zip(_SIDES, others, named, samples):
        if other is None or limit is None:
            continue
        rejected = language(sample, sample, limit, (code, None))
        share = sum(value is not None for value in rejected) / len(sample)
        if share >= _HOPELESS:
            raise WrongLanguage(
                f"0 pairs: {facts}; the language filter would reject {share:.0%} of the {side} text. Correct "
                f"--{side}-language, or leave it out."
            )
    logger.warning("%s", facts)


def _describe_languages(others: Sequence[str | None], named: Sequence[str | None]) -> str:
    """Return a line about the sides that are in another language than named."""
    sides = zip(_SIDES, others, named)
    return "; ".join(f"the {side} looks like {other}, you said {code}" for side, other, code in sides if other)


def _are_swapped(identified: Sequence[str | None], named: Sequence[str | None]) -> bool:
    """Return whether each text is in the language that was named for the other."""
    source, target = named
    if source is None or target is None:
        return False
    try:
        return identified[0] in expected_labels(target) and identified[1] in expected_labels(source)
    except LanguageUnknown:
        return False


def _sample_sentences(texts: Sequence[str]) -> list[str]:
    """Return sentences at equal distances that are not blank."""
    rows = range(0, len(texts), 1 + len(texts) // _MOST)
    sentences = [texts[row] for row in rows]
    return [sentence for sentence in sentences if sentence.strip()]


def _other_language(sample: Sequence[str], code: str | None, fewest: int = _FEWEST) -> str | None:
    """Return the language of most sentences, if it is not the expected one and enough of them tell theirs.

    ``None`` if no language is expected, or py3langid does not know it.
    """
    if code is None:
        return None
    try:
        labels = expected_labels(code)
    except LanguageUnknown:
        return None
    # Punjabi in Arabic letters would be taken for Urdu.
    parts = [identifiable_part(text, code) for text in sample]
    telling = [part for part in parts if part]
    if len(telling) < fewest:
        return None
    label = main_language(telling, share=_SHARE)
    return None if label in (UNKNOWN, *labels) else label


def language_in_name(path: str | Path) -> str | None:
    """Return the known language in the name of a text, or of the folder that it is in; ``None`` if there is none.

    Example:
        >>> [language_in_name(name) for name in ("report.de.txt", "book.fr.gz", "1_en.txt", "news/th/1.txt", "a.txt")]
        ['de', 'fr', 'en', 'th', None]
    """
    name = text_name(path)
    tag = _TAG.search(name)
    candidates = [language_ending(path), tag and tag[1], Path(path).parent.name]
    for code in candidates:
        if code and is_code(code) and base_language(code) in LANGUAGE_NAMES:
            return code
    return None


def named_or_found(
    named: Sequence[str | None], files: Sequence[str | Path | None], texts: Sequence[Sequence[str]]
) -> tuple[str, str]:
    """Return the languages of both texts for a format that names them: as given, of the file name, or identified.

    A line says where languages come from that were not given.

    Args:
        named: Languages of source and target, ``None`` where none was given.
        files: Files of both texts; ``None`` for a text without a file of its own.
        texts: Both texts.

    Raises:
        ValueError: If a language is neither given, nor in the name, nor identified.
    """
    languages: list[str] = []
    notes: list[str] = []
    for side, named_language, file, text in zip(_SIDES, named, files, texts):
        if named_language is not None:
            languages.append(named_language)
            continue
        code = None if file is None else language_in_name(file)
        origin = "" if file is None else f"of the name {Path(file).name}"
        if code is None:
            # Short texts of plain letters are identified by chance.
            telling = [part for part in _sample_sentences(text) if len(part) >= LEAST_CHARS or not part.isascii()]
            code = main_language(telling, share=_SHARE) if len(telling) >= _FEWEST_TELLING else UNKNOWN
            origin = "identified"
        if code == UNKNOWN:
            tells = "the text does not tell"
            if file is not None:
                tells = f"neither the name {Path(file).name} nor the text tells"
            raise ValueError(
                f"TMX names the languages of its texts: set {side}_language (--{side}-language); {tells} which it is."
            )
        languages.append(code)
        notes.append(f"{side} {code} ({origin})")
    if languages[0] == languages[1]:
        raise ValueError(
            f"TMX needs two languages: got {languages[0]} for both texts; set --source-language and --target-language."
        )
    if notes:
        logger.info("languages of the TMX file: %s; if not, set --source-language, --target-language", ", ".join(notes))
    return languages[0], languages[1]
