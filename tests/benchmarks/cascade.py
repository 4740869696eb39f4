"""What each stage removes from a noisy corpus, and at what cost: ``python -m tests.benchmarks.cascade --model E5``.

Text: ``parallel/de-en.tsv.gz`` of the folder that ``ST_XLING_DATA`` names. Half of the pairs are as they are, the other
half get one defect each, in equal shares, drawn by ``--seed``:

==============  ========================================================================
misaligned      the target of another pair
truncated       the target's first third
wrong language  the right translation, in French
numbers         another digit in the target
near copy       the source in place of the target, without its last character
noise           the target's words in any order, a fifth of their letters others
==============  ========================================================================

``st-xling score`` filters it in several ways. The threshold of the margin is the best by F1 on every second line;
precision and recall are those on the other lines. Time is that of the processor, of the whole call.

``--static MODEL`` names static embeddings for the prefilter; without it they are made from the encoder, a vector for
each of the commonest words of other lines of both languages, less their mean, rare words weighing more.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from st_xling.mining import GuardOptions, best_threshold, score_texts
from st_xling.mining.guards import REASONS

SOUND, DEFECTS = "sound", ("misaligned", "truncated", "wrong language", "numbers", "near copy", "noise")
OFF = GuardOptions().with_flags(off=["all"])


def read(pair: str) -> list[tuple[str, str]]:
    path = Path(os.environ.get("ST_XLING_DATA", "../shared/data")) / "parallel" / f"{pair}.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        source, target = zip(*(line.rstrip("\n").split("\t")[:2] for line in lines))
    return list(zip(source, target))


def noisy(size: int, seed: int) -> tuple[list[tuple[str, str]], list[str], list[tuple[str, str]]]:
    """Pairs, the defect of each, and lines that are not among them."""
    draw, french = random.Random(seed), {english: other for other, english in read("fr-en")}
    pairs = sorted({pair for pair in read("de-en") if len(pair[1].split()) > 5})
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
        for (source, target), (_, other) in zip(chosen, [*chosen[1:], chosen[0]]):
            if defect == "misaligned":
                target = other
            elif defect == "truncated":
                target = " ".join(target.split()[: max(1, len(target.split()) // 3)])
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


def static_of(encoder: SentenceTransformer, lines: list[tuple[str, str]], words: int, prompt: str) -> Any:
    """Static embeddings that an encoder gives to single words."""
    counts = [Counter(word for pair in lines for word in re.findall(r"\w+", pair[side].lower())) for side in (0, 1)]
    common = dict.fromkeys(word for count in counts for word, _ in count.most_common(words))
    vectors = encoder.encode([prompt + word for word in common], batch_size=256)
    shares = np.array([max(count[word] / count.total() for count in counts) for word in common])
    vectors = (vectors - vectors.mean(axis=0)) * (1e-3 / (1e-3 + shares))[:, None]
    places = {"[UNK]": 0, **{word: place for place, word in enumerate(common, 1)}}
    tokenizer = Tokenizer(WordLevel(places, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    weights = np.concatenate([np.zeros((1, vectors.shape[1])), vectors]).astype(np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="encoder of the margin")
    parser.add_argument("--prompt", default="query: ")
    parser.add_argument("--static", help="static embeddings; made from the encoder without them")
    parser.add_argument("--words", type=int, default=8000, help="of each language that have a static embedding")
    parser.add_argument("--limit", type=float, help="of the prefilter (default: loses 2 %% of other, sound pairs)")
    parser.add_argument("--size", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    pairs, defects, rest = noisy(arguments.size, arguments.seed)
    encoder = SentenceTransformer(arguments.model, device="cpu")
    static = arguments.static or static_of(encoder, rest, arguments.words, arguments.prompt)
    languages = {"source_language": "de", "target_language": "en"}
    guards, limit = GuardOptions(**languages), arguments.limit
    if limit is None:
        model = SentenceTransformer(static, device="cpu") if isinstance(static, str) else static
        one, other = (model.encode([pair[side] for pair in rest[:3000]], normalize_embeddings=True) for side in (0, 1))
        limit = float(np.quantile((one * other).sum(axis=1), 0.02))
    with_static = {"prefilter_model": static, "prefilter": limit, **languages}
    others = [reason for reason in REASONS if reason != "prefilter"]
    lone = GuardOptions(**with_static).with_flags(off=others)
    ways: dict[str, dict[str, Any]] = {
        "score alone": {"guards": OFF},
        "guards, after the score": {"guards": guards},
        "guards first": {"guards": guards, "guards_first": True},
        "prefilter first": {"guards": lone, "guards_first": True},
        "guards and prefilter first": {"guards": GuardOptions(**with_static), "guards_first": True},
    }
    sound, rows = np.array([defect == SOUND for defect in defects]), np.arange(len(pairs))
    removed: dict[str, np.ndarray] = {}
    print(f"prefilter: turns down below {limit:.3f}")
    print("| stages | precision | recall | F1 | processor time | embedded |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path, out, rejects = (Path(folder) / name for name in ("pairs.tsv", "scored.tsv", "rejects.jsonl"))
        path.write_text("".join(f"{one}\t{two}\t{row}\n" for row, (one, two) in enumerate(pairs)), encoding="utf-8")
        seconds: dict[str, float] = {}
        for way, options in ways.items():
            started = time.process_time()
            report = score_texts(path, out, model=encoder, prompt=arguments.prompt, rejects=rejects, **options)
            seconds[way] = time.process_time() - started
            scores = np.full(len(pairs), -np.inf)
            for line in out.read_text(encoding="utf-8").splitlines():
                score, *_, row = line.split("\t")
                scores[int(row)] = float(score)
            reasons = {"": np.zeros(len(pairs), dtype=bool)}
            for line in rejects.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                of_reason = reasons.setdefault(record["reason"], np.zeros(len(pairs), dtype=bool))
                of_reason[int(record["source_ids"][0]) - 1] = True
            tuned, kept = rows % 2 == 0, np.isfinite(scores)
            chosen = tuned & kept
            threshold = best_threshold(scores[chosen], sound[chosen], int(sound[tuned].sum())).threshold
            found, truth = scores[~tuned] >= threshold, sound[~tuned]
            precision, recall = (found & truth).sum() / found.sum(), (found & truth).sum() / truth.sum()
            f1 = 2 * precision * recall / (precision + recall)
            early = sum(report.rejected.values()) if options.get("guards_first") else 0
            print(
                f"| {way} | {precision:.3f} | {recall:.3f} | {f1:.3f} | {seconds[way]:.1f} s, "
                f"{seconds[way] / seconds['score alone']:.2f}x | {1 - early / len(pairs):.0%} |"
            )
            if way == "score alone":
                removed["score alone"] = scores < threshold
            if way in ("guards, after the score", "prefilter first"):
                removed |= {reason: places for reason, places in reasons.items() if reason}
            if way == "guards and prefilter first":
                removed["all stages"] = scores < threshold
                print("\nof each kind removed by", *removed, sep=" | ")
                for kind in (SOUND, *DEFECTS):
                    of_kind = np.array([defect == kind for defect in defects])
                    print(
                        f"| {kind} |", " | ".join(f"{places[of_kind].mean():.0%}" for places in removed.values()), "|"
                    )
                times = {name: stage["seconds"] for name, stage in report.stages.items()}
                print("\nseconds by stage, clock:", ", ".join(f"{name} {took:.2f}" for name, took in times.items()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
