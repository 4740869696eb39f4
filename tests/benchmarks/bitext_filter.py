"""A trained filter of translations on a noisy corpus, alone and after the margin and the rules.

Text: the lines of ``parallel/de-en.tsv.gz``, in the folder that ``ST_XLING_DATA`` names, after the first ``--skip``
ones, which a filter may be trained on. Half of the pairs are as they are; the others have one defect each, in equal
shares, drawn by ``--seed``:

==============  ========================================================================
misaligned      the target of another pair
truncated       the target's first third
cut             the target without its last third
added           the target, and the first half of another
wrong language  the right translation, in French
numbers         another digit in the target
near copy       the source in place of the target, without its last character
noise           the target's words in any order, a fifth of their letters others
==============  ========================================================================

Each way of filtering is a call of ``st-xling score``'s function. The threshold of the margin is the best by F1 on every
second line, that of the filter is the one it was saved with; precision and recall are those on the other lines. Pairs a
second are of the stage alone, by the clock of the run: the encoder, the rules, or the filter.
"""

import random
import re
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.measure import Ratio, Run, encoder_folder, log, main, parallel
from tests.benchmarks.thresholds import embed

SOUND = "sound"
DEFECTS = ("misaligned", "truncated", "cut", "added", "wrong language", "numbers", "near copy", "noise")
LETTERS = "etaoinshrdlu#~"


class Pair(NamedTuple):
    """A pair of the noisy corpus, with its defect or ``"sound"``."""

    source: str
    target: str
    defect: str


def noisy_corpus(run: Run, size: int, skip: int, seed: int) -> list[Pair]:
    """Return sound and damaged pairs, shuffled."""
    draw = random.Random(seed)
    french = {english: other for other, english in parallel(run, "fr")}
    pairs = sorted({pair for pair in parallel(run, "de")[skip:] if len(pair[1].split()) > 5})
    draw.shuffle(pairs)

    def fits(defect: str, pair: tuple[str, str]) -> bool:
        if defect == "wrong language":
            return pair[1] in french
        digits = [re.findall(r"[0-9]", text) for text in pair]
        return defect != "numbers" or digits[0] == digits[1] != []

    corpus: list[Pair] = []
    # Defects that not every pair can have come first.
    for defect in sorted(DEFECTS, key=lambda name: name not in ("wrong language", "numbers")):
        chosen = [pair for pair in pairs if fits(defect, pair)][: size // (2 * len(DEFECTS))]
        taken = set(chosen)
        pairs = [pair for pair in pairs if pair not in taken]
        for (source, target), (_, other) in zip(chosen, [*chosen[1:], *chosen[:1]]):
            damaged = french[target] if defect == "wrong language" else damage(source, target, other, defect, draw)
            corpus.append(Pair(source, damaged, defect))
    corpus += [Pair(*pair, SOUND) for pair in pairs[: size - len(corpus)]]
    draw.shuffle(corpus)
    return corpus


def damage(source: str, target: str, other: str, defect: str, draw: random.Random) -> str:
    """Return the target with a defect; ``other`` is the target of another pair."""
    words = target.split()
    third = len(words) // 3
    if defect == "misaligned":
        return other
    if defect == "truncated":
        return " ".join(words[: max(1, third)])
    if defect == "cut":
        return " ".join(words[:-third])
    if defect == "added":
        other_words = other.split()
        half = -(-len(other_words) // 2)
        return " ".join([*words, *other_words[:half]])
    if defect == "numbers":
        position = draw.choice([match.start() for match in re.finditer(r"[0-9]", target)])
        digit = (int(target[position]) + draw.randint(1, 8)) % 10
        return f"{target[:position]}{digit}{target[position + 1 :]}"
    if defect == "near copy":
        return source[:-1]
    shuffled = " ".join(draw.sample(words, len(words)))
    letters = [draw.choice(LETTERS) if draw.random() < 0.2 else letter for letter in shuffled]
    return "".join(letters)


class Outcome(NamedTuple):
    """Precision, recall and F1 on the lines that no threshold was chosen on, and the pairs that are kept."""

    precision: float
    recall: float
    f1: float
    kept: np.ndarray


def judge(kept: np.ndarray, corpus: list[Pair]) -> Outcome:
    """Compare the kept pairs with the sound ones, on every second line."""
    tested = np.arange(len(corpus)) % 2 == 1
    sound = np.array([pair.defect == SOUND for pair in corpus])
    right = int((kept & sound & tested).sum())
    precision = right / max(1, int((kept & tested).sum()))
    recall = right / int((sound & tested).sum())
    return Outcome(precision, recall, 2 * precision * recall / max(1e-9, precision + recall), kept)


def margins_of(path: Path, out: Path, rows: int, **options: Any) -> np.ndarray:
    """Score a corpus; the margin of each pair that is written, minus infinity of the others. *Shape:* ``(rows,)``"""
    from st_xling.mining import score_texts

    score_texts(path, out, **options)
    column = 5 if "rescore" in options else 0
    margins = np.full(rows, -np.inf)
    for line in out.read_text(encoding="utf-8").splitlines()[1:]:
        cells = line.split("\t")
        margins[int(cells[1]) - 1] = float(cells[column])
    return margins


def at_best_margin(margins: np.ndarray, corpus: list[Pair]) -> np.ndarray:
    """Return the pairs at the threshold of the best F1 on the even lines."""
    from st_xling.mining import best_threshold

    sound = np.array([pair.defect == SOUND for pair in corpus])
    even = np.arange(len(corpus)) % 2 == 0
    chosen = even & np.isfinite(margins)
    threshold = best_threshold(margins[chosen], sound[chosen], int(sound[even].sum())).threshold
    return margins >= threshold


def measure(
    run: Run,
    *,
    model: str | None = None,
    prompt: str = "query: ",
    filter_model: str = "",
    size: int = 1600,
    skip: int = 20000,
    vectors: str = "",
    seed: int = 0,
) -> Iterator[Ratio]:
    from st_xling.mining import FilterOptions, MinedPairs
    from st_xling.mining.filters import PairFilters
    from st_xling.mining.pipeline.rescore import load_reranker
    from st_xling.models import load_encoder, tiny_encoder
    from st_xling.models.cross_encoders import tiny_cross_encoder
    from st_xling.models.pair_scorer import PairScorer

    corpus = noisy_corpus(run, size, skip, seed)
    texts = [*chain.from_iterable((pair.source, pair.target) for pair in corpus)]
    encoder = tiny_encoder(texts, hidden_size=32, layers=1) if run.quick else load_encoder(encoder_folder(model))
    cross_encoder: Any = filter_model
    if run.quick or not filter_model:
        cross_encoder = tiny_cross_encoder(texts, hidden_size=32, layers=1)
        log("no --filter-model: one of random weights")

    sides = ([pair.source for pair in corpus], [pair.target for pair in corpus])
    saved = [Path(vectors, f"{side}-{size}-{seed}.npy") if vectors else None for side in ("source", "target")]
    embeddings: list[np.ndarray] = []

    def embed_sides() -> None:
        for side, path in zip(sides, saved):
            embeddings.append(embed(encoder, side, prompt, path))

    seconds = {"encoder": run.seconds(embed_sides)}
    rules = FilterOptions(source_language="de", target_language="en")
    rows = np.arange(len(corpus))
    pairs = MinedPairs(np.zeros(len(corpus)), rows, rows)
    seconds["rules"] = run.seconds(lambda: PairFilters(rules).allowed(pairs, *sides))
    scorer = PairScorer(load_reranker(cross_encoder)[0], long_queries="lowest")
    seconds["filter"] = run.seconds(lambda: scorer.score(list(zip(*sides)), raw=True))

    given = {"source_embeddings": embeddings[0], "target_embeddings": embeddings[1]}
    off = FilterOptions(disable=["all"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pairs.tsv")
        path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in corpus), encoding="utf-8")
        out = Path(folder, "scored.tsv")
        margins = margins_of(path, out, len(corpus), **given, filters=off)
        ruled = margins_of(path, out, len(corpus), **given, filters=rules)
        rescored = margins_of(path, out, len(corpus), **given, filters=off, rescore=cross_encoder)
        both = margins_of(path, out, len(corpus), **given, filters=rules, rescore=cross_encoder)
    ways = {
        "margin": at_best_margin(margins, corpus),
        "margin and rules": at_best_margin(ruled, corpus),
        "filter": np.isfinite(rescored),
        "rules and filter": np.isfinite(both),
        "margin, rules and filter": at_best_margin(both, corpus),
    }
    outcomes = {way: judge(kept, corpus) for way, kept in ways.items()}
    print("| way | precision | recall | F1 |\n| --- | --- | --- | --- |")
    for way, outcome in outcomes.items():
        print(f"| {way} | {outcome.precision:.3f} | {outcome.recall:.3f} | {outcome.f1:.3f} |")
    print(f"\n| kept, % | {' | '.join(ways)} |\n{'| --- ' * (1 + len(ways))}|")
    for defect in (SOUND, *DEFECTS):
        of_defect = np.array([pair.defect == defect for pair in corpus])
        shares = " | ".join(f"{kept[of_defect].mean():.0%}" for kept in ways.values())
        print(f"| {defect} | {shares} |")
    print()
    for stage, spent in seconds.items():
        print(f"{stage}: {len(corpus) / max(spent, 1e-9):.0f} pairs a second")
    for way in ("filter", "rules and filter", "margin, rules and filter"):
        ratio = outcomes[way].f1 / max(1e-9, outcomes["margin and rules"].f1)
        yield Ratio(f"{way}: F1", "that of margin and rules", ratio)


if __name__ == "__main__":
    main(measure, quick={"size": 160, "skip": 0, "prompt": ""})
