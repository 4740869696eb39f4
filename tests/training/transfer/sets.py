"""Small sets of the three tasks, parallel over three scripts, of which a small encoder can learn something."""

import itertools
from pathlib import Path
from typing import Any

from st_xling.models import tiny_encoder

# Noun, verb, place; the n-th word of each language means the same.
WORDS = {
    language: [part.split() for part in words.split("|")]
    for language, words in {
        "en": "cat dog bird child teacher|sleeps eats sings reads waits|here there outside",
        "ar": "قطة كلب طائر طفل معلم|ينام يأكل يغني يقرأ ينتظر|هنا هناك خارجا",
        "th": "แมว สุนัข นก เด็ก ครู|นอน กิน ร้องเพลง อ่าน รอ|ที่นี่ ที่นั่น ข้างนอก",
    }.items()
}
MEANINGS = list(itertools.product(range(5), range(5), range(3)))[::2]


def phrase(language: str, meaning: tuple[int, ...]) -> list[str]:
    return [words[number] for words, number in zip(WORDS[language], meaning)]


def pair_lines(language: str, labels: tuple[str, ...]) -> list[str]:
    """A pair each: the same again, another verb, another noun; labels in that order, as far as there are any."""
    lines = []
    for noun, verb, adverb in MEANINGS:
        others = [(noun, verb, adverb), (noun, (verb + 1) % 5, adverb), ((noun + 1) % 5, verb, adverb)]
        first = " ".join(phrase(language, (noun, verb, adverb)))
        lines += [f"{first}\t{' '.join(phrase(language, other))}\t{label}" for label, other in zip(labels, others)]
    return lines


def treebank(language: str) -> list[str]:
    lines = []
    for meaning in MEANINGS:
        for number, (form, tag) in enumerate(zip(phrase(language, meaning), ("NOUN", "VERB", "ADV")), 1):
            lines.append("\t".join([str(number), form, "_", tag, "_", "_", "0" if number == 2 else "2", "_", "_", "_"]))
        lines.append("")
    return lines


LABELS = {"xnli": ("entailment", "contradiction", "neutral"), "pawsx": ("1", "0")}


def write_set(folder: Path, task: str) -> dict[str, Path]:
    """Language → file."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for language in WORDS:
        lines = treebank(language) if task == "pos" else pair_lines(language, LABELS[task])
        paths[language] = folder / (f"{language}.conllu" if task == "pos" else f"dev-{language}.tsv")
        paths[language].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def write_encoder(folder: Path, *, max_length: int = 24, architecture: Any = "bert") -> str:
    """A ``SentenceTransformer`` folder, as our recipes save it."""
    texts = [" ".join(phrase(language, meaning)) for language in WORDS for meaning in MEANINGS]
    options: dict[str, Any] = {"vocabulary": 200, "layers": 2, "hidden_size": 32, "heads": 2, "dropout": 0.1}
    tiny_encoder(texts, max_length=max_length, architecture=architecture, **options).save_pretrained(str(folder))
    return str(folder)
