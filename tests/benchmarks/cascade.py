"""What each stage of filtering removes from a noisy corpus, and at what cost, by scoring alone.

Text: ``parallel/de-en.tsv.gz`` of the folder that ``ST_XLING_DATA`` names; encoder: ``--model``, else
``ST_XLING_E5``. Half of the pairs are as they are, the other half get one defect each, in equal shares, drawn by
``--seed``:

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

``st-xling score`` filters it in several ways. The threshold of the margin is the best by F1 on every second line;
precision and recall, in the notes, are those on the other lines. Time is that of the whole call.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from st_xling.mining import FilterOptions, best_threshold, score_texts
from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel

SOUND, DEFECTS = "sound", ("misaligned", "truncated", "cut", "added", "wrong language", "numbers", "near copy", "noise")
OFF = FilterOptions(disable=["all"])


def noisy(run: Run, size: int, seed: int) -> tuple[list[tuple[str, str]], list[str], list[tuple[str, str]]]:
    """Pairs, the defect of each, and lines that are not among them."""
    draw, french = random.Random(seed), {english: other for other, english in parallel(run, "fr")}
    pairs = sorted({pair for pair in parallel(run, "de") if len(pair[1].split()) > 5})
    draw.shuffle(pairs)
    each = size // (2 * len(DEFECTS))
    fits = {
        "wrong language": lambda source, target: target in french,
        "numbers": lambda source, target: re.findall(r"\d", source) == re.findall(r"\d", target) != [],
    }
    corpus: list[tuple[tuple[str, str], str]] = []
    for defect in sorted(DEFECTS, key=lambda defect: defect not in fits):  # those that not every line can have, first
        fitting = [place for place, pair in enumerate(pairs) if defect not in fits or fits[defect](*pair)][:each]
        chosen = [pairs[place] for place in fitting]
        pairs = [pair for place, pair in enumerate(pairs) if place not in set(fitting)]
        for (source, target), (_, other) in zip(chosen, [*chosen[1:], *chosen[:1]]):
            if defect == "misaligned":
                target = other
            elif defect == "truncated":
                target = " ".join(target.split()[: max(1, len(target.split()) // 3)])
            elif defect == "cut":
                target = " ".join(target.split()[: -(len(target.split()) // 3)])
            elif defect == "added":
                target = " ".join([*target.split(), *other.split()[: -(-len(other.split()) // 2)]])
            elif defect == "wrong language":
                target = french[target]
            elif defect == "numbers":
                digit = draw.choice([match.start() for match in re.finditer(r"\d", target)])
                target = target[:digit] + str((int(target[digit]) + draw.randint(1, 8)) % 10) + target[digit + 1 :]
            elif defect == "near copy":
                target = source[:-1]
            else:
                words = draw.sample(target.split(), len(target.split()))
                letters = [draw.choice("etaoinshrdlu#~") if draw.random() < 0.2 else one for one in " ".join(words)]
                target = "".join(letters)
            corpus.append(((source, target), defect))
    corpus += [(pair, SOUND) for pair in pairs[: size - len(corpus)]]
    rest = pairs[size:]
    draw.shuffle(corpus)
    return [pair for pair, _ in corpus], [defect for _, defect in corpus], rest


def measure(
    run: Run,
    *,
    model: str | None = None,
    prompt: str = "query: ",
    size: int = 3000,
    seed: int = 0,
) -> Iterator[Ratio]:
    pairs, defects, rest = noisy(run, size, seed)
    if run.quick:
        from st_xling.models import tiny_encoder

        encoder = tiny_encoder([text for pair in rest for text in pair], vocabulary=500, hidden_size=32, layers=1)
    else:
        encoder = SentenceTransformer(encoder_folder(model), device="cpu")
    filters = FilterOptions(source_language="de", target_language="en")
    ways: dict[str, dict[str, Any]] = {
        "score alone": {"filters": OFF},
        "filters": {"filters": filters},
    }
    sound, tuned = np.array([defect == SOUND for defect in defects]), np.arange(len(pairs)) % 2 == 0
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "pairs.tsv"), Path(folder, "scored.tsv")
        path.write_text("".join(f"{one}\t{two}\n" for one, two in pairs), encoding="utf-8")
        for way, options in ways.items():
            seconds[way] = run.seconds(partial(score_texts, path, out, model=encoder, prompt=prompt, **options))
            scores = np.full(len(pairs), -np.inf)
            for line in out.read_text(encoding="utf-8").splitlines()[1:]:
                score, number, *_ = line.split("\t")
                scores[int(number) - 1] = float(score)
            chosen = tuned & np.isfinite(scores)
            threshold = best_threshold(scores[chosen], sound[chosen], int(sound[tuned].sum())).threshold
            found, truth = scores[~tuned] >= threshold, sound[~tuned]
            precision, recall = (found & truth).sum() / max(1, found.sum()), (found & truth).sum() / truth.sum()
            f1 = 2 * precision * recall / max(1e-9, precision + recall)
            if way == "score alone":
                f1_alone = f1
            note = f"P {precision:.3f}, R {recall:.3f}, F1 {f1:.3f}"
            yield Ratio(f"{way}: time", "score alone", seconds[way] / seconds["score alone"], note=note)
            if way != "score alone":
                yield Ratio(f"{way}: F1", "score alone", f1 / max(1e-9, f1_alone))


if __name__ == "__main__":
    main(measure, quick={"size": 120})
