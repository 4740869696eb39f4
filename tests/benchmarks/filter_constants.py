"""Constants of the filters: letters that a dense character counts as, and wrong languages that are found.

Text: the pairs with English in ``parallel`` (the dev sets) and the Tatoeba test sets in ``tatoeba``, both of the folder
that ``ST_XLING_DATA`` names.

- Letters of English per character of Chinese, Japanese and Korean, by least squares over the dev pairs.
- Languages: sentences of Tatoeba whose expected language is right, and those where it is that of another test set.
"""

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, main

DENSE = {"han": "[\u3400-\u9fff]", "kana": "[\u3041-\u30ff]", "hangul": "[\uac00-\ud7ff]"}


def dev_sets(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Language → its dev pairs with English."""
    sets = {}
    for path in sorted((folder / "parallel").glob("*-en.dev.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        sets[path.name.split("-")[0]] = [(row[0], row[1]) for row in rows if row[0] != row[1]]
    return sets


def quick_sets() -> dict[str, list[tuple[str, str]]]:
    from st_xling.data.phrasebook import parallel_phrases

    sets = {}
    for language in ("de", "zh"):
        phrases = parallel_phrases(language, size=120)
        sets[language] = list(zip(phrases["source"], phrases["target"]))
    return sets


def letters_per_character(sets: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, dict[str, float]]:
    """Language → script → letters of English per character, other characters apart, by least squares."""
    letters_by_language = {}
    for language in ("zh", "ja", "ko"):
        pairs = sets.get(language)
        if not pairs:
            continue
        texts = [text for text, _ in pairs]
        lengths = np.array([len(text) for text in texts], float)

        # A script of at most 5 % of the characters is not fitted, but counted with the other characters.
        counts = {}
        for script, pattern in DENSE.items():
            column = np.array([len(re.findall(pattern, text)) for text in texts], float)
            if column.sum() > 0.05 * lengths.sum():
                counts[script] = column
        other_characters = lengths - sum(counts.values())
        columns = np.array([*counts.values(), other_characters]).T
        english_letters = np.array([len(english) for _, english in pairs], float)
        weights = np.linalg.lstsq(columns, english_letters, rcond=None)[0]
        letters_by_language[language] = dict(zip(counts, weights.tolist()))
    return letters_by_language


def tatoeba_sets(folder: Path) -> dict[str, list[str]]:
    """Language → its sentences in the Tatoeba test sets, of those that the filter knows."""
    from st_xling.utils.identify import LanguageUnknown, expected_labels

    sets = {}
    for path in sorted((folder / "tatoeba").glob("tatoeba.*-eng.*")):
        language = path.suffix[1:]
        if language == "eng":
            continue
        try:
            expected_labels(language)
        except LanguageUnknown:
            continue
        sets[language] = path.read_text(encoding="utf-8").splitlines()
    return sets


def rejected_languages(sets: Mapping[str, Sequence[str]]) -> tuple[int, int, int, int]:
    """Sentences whose language is right, those of them that are rejected; the same of wrong languages.

    Each language is taken for the next of the alphabet that does not count as the same.
    """
    from st_xling.mining.filters import FILTERS, language
    from st_xling.utils.identify import expected_labels

    limit = FILTERS["language"].limit
    assert limit is not None
    right = kept_out = wrong = recognized = 0
    names = list(sets)
    for number, name in enumerate(names):
        texts = sets[name]
        kept_out += sum(value is not None for value in language(texts, texts, limit, (name, None)))
        right += len(texts)
        others = [*names[number + 1 :], *names[:number]]
        other = next((code for code in others if not set(expected_labels(code)) & set(expected_labels(name))), None)
        if other is not None:
            recognized += sum(value is not None for value in language(texts, texts, limit, (other, None)))
            wrong += len(texts)
    return right, kept_out, wrong, recognized


def measure(run: Run) -> Iterator[Ratio]:
    if run.quick:
        sets = quick_sets()
        languages = {}
        for language, pairs in sets.items():
            languages[language] = [source for source, _ in pairs]
    else:
        sets = dev_sets(data_folder())
        languages = tatoeba_sets(data_folder())
    for language, weights in letters_per_character(sets).items():
        shown = ", ".join(f"{weight:.2f} a character of {script}" for script, weight in weights.items())
        print(f"{language}, {len(sets[language])} pairs, letters of English: {shown}")
    right, kept_out, wrong, recognized = rejected_languages(languages)
    print(
        f"languages: {len(languages)}; {kept_out} of {right} rejected in their own, {recognized} of {wrong} in another"
    )
    yield Ratio("sentences rejected in their own language", "sentences", kept_out / right, at_most=0.005)
    if wrong:
        yield Ratio("sentences rejected in another language", "sentences", recognized / wrong, at_least=0.9)


if __name__ == "__main__":
    main(measure)
