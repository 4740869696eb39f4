"""Filters before or after the choice of pairs: precision and recall of mining translated documents.

Text: the documents of the folder that ``ST_XLING_DATA`` names, each mined as two texts without an order, with its
languages named and without a threshold. A pair is correct if its lines are in one gold group, and the gold groups of
one line a side are to be found; equal lines that belong together, which nobody wants to mine, do not count. Pairs are
not filtered; or both sentences of a rejected pair are free for other partners; or only those of a pair with a sentence
that is untranslated or in a wrong language, as st-xling mine does it. The same with a fifth of the lines left
untranslated a second time, next to their translations.

Also counts the true pairs that filters reject by mistake, each by the first filter that does: of the gold pairs of the
documents that are not equal, and of the dev pairs with English in ``parallel``.
"""

import gzip
import os
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.measure import Ratio, Run, data_folder, encoder_folder, log, main
from tests.benchmarks.thresholds import embed

K = 4
UNTRANSLATED = 0.2
WAYS = ("not filtered", "free all sentences", "free untranslated ones")


class Document(NamedTuple):
    """A document and its translation into English, both without duplicate lines.

    Attributes:
        name: Name of the document with its language.
        source: Lines of the translation.
        target: Lines in English.
        together: All pairs of lines of which each translates at least a part of the other.
        gold: Pairs of lines that translate each other and are not equal.
    """

    name: str
    source: list[str]
    target: list[str]
    together: set[tuple[str, str]]
    gold: set[tuple[str, str]]

    @property
    def language(self) -> str:
        return self.name.rsplit(".", 1)[1].replace("_", "-")


class Counts(NamedTuple):
    """Numbers of pairs.

    Attributes:
        pairs: Mined pairs, without equal lines that belong together.
        correct: Those whose lines are in one gold group.
        found: Gold pairs among them.
        gold: All gold pairs.
    """

    pairs: int = 0
    correct: int = 0
    found: int = 0
    gold: int = 0

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*map(sum, zip(self, other)))

    @property
    def precision(self) -> float:
        return self.correct / self.pairs

    @property
    def recall(self) -> float:
        return self.found / self.gold

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / (self.precision + self.recall)


def quick_document() -> Document:
    from st_xling.data.phrasebook import parallel_phrases

    phrases = parallel_phrases("de", size=120)
    pairs = {pair for pair in zip(phrases["source"], phrases["target"]) if pair[0] != pair[1]}
    source, target = zip(*sorted(pairs))
    return Document("phrasebook.de", list(dict.fromkeys(source)), list(dict.fromkeys(target)), pairs, pairs)


def read(folder: Path) -> Document:
    """Read the documents ``en`` and ``xx`` of a folder, and their groups from ``gold``."""
    from st_xling.evaluation.alignment import read_groups

    english = (folder / "en").read_text(encoding="utf-8").splitlines()
    translation = (folder / "xx").read_text(encoding="utf-8").splitlines()
    together = set()
    gold = set()
    for english_rows, translation_rows in read_groups(folder / "gold"):
        sources = [translation[row] for row in translation_rows]
        targets = [english[row] for row in english_rows]
        together.update(product(sources, targets))
        if len(sources) == len(targets) == 1 and sources != targets:
            gold.add((sources[0], targets[0]))
    return Document(folder.name, list(dict.fromkeys(translation)), list(dict.fromkeys(english)), together, gold)


def mine_each_way(
    document: Document, source_embeddings: np.ndarray, target_embeddings: np.ndarray
) -> dict[str, Counts]:
    """Mine a document not filtered, with all filters before the choice, and as mine does."""
    from st_xling.mining import FilterOptions, best_pairs, find_neighbors
    from st_xling.mining.filters import PairFilters

    languages = FilterOptions(source_language=document.language, target_language="en")
    filters = PairFilters(languages)
    passes = partial(filters.allowed, sources=document.source, targets=document.target)
    spent = partial(filters.spent, sources=document.source, targets=document.target)
    choose = partial(best_pairs, *find_neighbors(source_embeddings, target_embeddings, k=K))
    mined = (choose(), choose(allow=passes), choose(allow=partial(passes, freeing=True), spent=spent, keep=passes))
    equal = {pair for pair in document.together if pair[0] == pair[1]}
    counts = {}
    for way, pairs in zip(WAYS, mined):
        texts = {(document.source[source], document.target[target]) for _, source, target in pairs}
        texts -= equal
        counts[way] = Counts(
            pairs=len(texts),
            correct=len(texts & document.together),
            found=len(texts & document.gold),
            gold=len(document.gold),
        )
    return counts


def with_untranslated(document: Document, seed: int) -> tuple[Document, list[int]]:
    """Add a fifth of the translated English lines to the translation; also returns their rows."""
    translated = {target for _, target in document.gold} - set(document.source)
    candidates = [row for row, line in enumerate(document.target) if line in translated]
    chosen = np.random.default_rng(seed).choice(candidates, int(len(candidates) * UNTRANSLATED), replace=False)
    rows = sorted(chosen.tolist())
    return document._replace(source=document.source + [document.target[row] for row in rows]), rows


def dev_pairs(folder: Path) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """Language and pairs of each dev set with English."""
    for path in sorted((folder / "parallel").glob("*-en.dev.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            fields = [line.rstrip("\n").split("\t") for line in lines]
        yield path.name.split("-")[0], {(pair[0], pair[1]) for pair in fields if pair[0] != pair[1]}


def print_rejected(label: str, language_pairs: list[tuple[str, set[tuple[str, str]]]]) -> None:
    """Print how many true pairs each filter rejects; one that several reject counts for the first."""
    from st_xling.mining import FilterOptions, MinedPairs
    from st_xling.mining.filters import FILTERS, PairFilters

    total = 0
    rejected = dict.fromkeys(FILTERS, 0)
    for language, pairs in language_pairs:
        sources, targets = zip(*sorted(pairs))
        rows = np.arange(len(pairs))
        filters = PairFilters(FilterOptions(source_language=language, target_language="en"))
        filters.allowed(MinedPairs(np.zeros(len(pairs)), rows, rows), sources, targets)
        total += len(pairs)
        for reason, number in filters.rejected.items():
            rejected[reason] += number
    shares = " | ".join(f"{number} ({number / total:.2%})" for number in rejected.values())
    print(f"| {label} | {total} | {shares} |")


def measure(
    run: Run, *, model: str | None = None, prompt: str = "query: ", vectors: str = "", seed: int = 0
) -> Iterator[Ratio]:
    from st_xling.mining.filters import FILTERS
    from st_xling.models import load_encoder, tiny_encoder

    if run.quick:
        documents = [quick_document()]
        encoder = tiny_encoder(documents[0].source + documents[0].target)
        rejected = {"phrasebook": [(documents[0].language, documents[0].gold)]}
    else:
        folder = data_folder()
        documents = [read(gold.parent) for gold in sorted((folder / "documents").glob("*/gold"))]
        encoder = load_encoder(encoder_folder(model))
        in_documents = [(document.language, document.gold) for document in documents]
        rejected = {"documents": in_documents, "dev pairs": list(dev_pairs(folder))}

    texts = ("documents", "with untranslated lines")
    totals = {key: Counts() for key in product(texts, WAYS)}
    for document in documents:
        source_file = Path(vectors, f"{document.name}.xx.npy") if vectors else None
        target_file = Path(vectors, f"{document.name}.en.npy") if vectors else None
        source = embed(encoder, document.source, prompt, source_file)
        target = embed(encoder, document.target, prompt, target_file)
        mixed, rows = with_untranslated(document, seed)
        counts = (
            mine_each_way(document, source, target),
            mine_each_way(mixed, np.concatenate([source, target[rows]]), target),
        )
        for text, ways in zip(texts, counts):
            for way, added in ways.items():
                totals[text, way] = totals[text, way].plus(added)
        log(f"{document.name}: {len(document.source)} and {len(document.target)} lines")

    print("| text | rejected pairs | precision | recall | F1 | pairs |\n| --- | --- | --- | --- | --- | --- |")
    for (text, way), total in totals.items():
        print(f"| {text} | {way} | {total.precision:.3f} | {total.recall:.3f} | {total.f1:.3f} | {total.pairs} |")
    print(f"\n| true pairs | number | {' | '.join(FILTERS)} |\n{'| --- ' * (2 + len(FILTERS))}|")
    for label, language_pairs in rejected.items():
        print_rejected(label, language_pairs)
    print()
    for text in texts:
        *others, today = WAYS
        for way in others:
            ratio = totals[text, today].f1 / totals[text, way].f1
            yield Ratio(f"{text}, {way}: F1 as mine filters", "its F1", ratio, at_least=0.99)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    main(measure, quick={"prompt": ""})
