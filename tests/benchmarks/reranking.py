"""What ``score_text_pairs`` saves: ``python -m tests.benchmarks.reranking``.

Pairs a second against ``CrossEncoder.predict`` (32 rows at a time) on the same pairs, in one process: passages of 150
tokens, or of about XQuAD's spread (log-normal, median 150 tokens, sigma 0.5). Where ``ST_XLING_E5`` names a folder of
multilingual-e5-small (MiniLM-L12-H384's shape) and ``ST_XLING_DATA`` real text, that encoder under a new head reads
real sentences; otherwise a cross-encoder of BERT-small's shape (4 layers of 512, random weights) the phrasebook's.

- uniform: passages of one length (target: at least 1.0x);
- one language: pairs of English alone, in one call, where sentence-transformers' sorting by characters does well;
- languages: passages in six languages, in one call: a character is a token of Chinese and a quarter of one of English
  (target: at least 1.5x);
- pools: the same a query at a time, 24 candidates each (target: at least 1.5x).

Ours is timed between two calls of theirs, a ratio a round. The column of tokens needs no clock: tokens computed,
padding included, theirs by ours. ``--quick`` runs a toy, to see that all is well.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.benchmarks.measure import spread

LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Size:
    """How much is scored, by what.

    Attributes:
        pool: Candidates of a query.
        tokens: Median of a passage's.
    """

    layers: int = 4
    hidden: int = 512
    max_length: int = 512
    pools: int = 8
    pool: int = 24
    tokens: int = 150


QUICK = Size(layers=1, hidden=32, max_length=64, pools=3, pool=8, tokens=20)


def real_sentences(folder: Path) -> dict[str, list[str]]:
    """Of each language some of the parallel text's."""
    sentences = {}
    for language in LANGUAGES[1:]:
        with gzip.open(folder / "parallel" / f"{language}-en.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in islice(file, 1500)]
        sentences |= {language: [row[0] for row in rows], "en": [row[1] for row in rows]}
    return sentences


def random_cross_encoder(size: Size, sentences: dict[str, list[str]]) -> Any:
    """Random weights under a tokenizer of the sentences."""
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification
    from transformers.utils.logging import disable_progress_bar

    from st_xling.models.tiny import train_tokenizer

    disable_progress_bar()
    tokenizer = train_tokenizer([text for texts in sentences.values() for text in texts], vocabulary=8000)
    tokenizer.model_max_length = size.max_length
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=4 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=max(1, size.hidden // 64),
        max_position_embeddings=size.max_length,
        num_labels=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return CrossEncoder(folder, device="cpu")


def make_pairs(
    size: Size, model: Any, sentences: dict[str, list[str]], languages: tuple[str, ...], sigma: float
) -> Pairs:
    """Pools one after another; passages of about so many tokens, whatever their language, spread by ``sigma``."""
    chooser = random.Random(0)
    tokens = {text: len(model.tokenizer.tokenize(text)) for texts in sentences.values() for text in texts}
    pairs: Pairs = []
    for _ in range(size.pools):
        query = chooser.choice(sentences[chooser.choice(languages)])
        for _ in range(size.pool):
            wanted, words = size.tokens * np.exp(chooser.gauss(0, sigma)), list[str]()
            language = chooser.choice(languages)
            while sum(tokens[text] for text in words) < wanted:
                words.append(chooser.choice(sentences[language]))
            pairs.append((query, ("" if language == "zh" else " ").join(words)))
    return pairs


def computed_tokens(model: Any, call: Callable[[], Any]) -> int:
    """Tokens that the model was given during a call, padding included."""
    count = 0

    def add(_: Any, arguments: Any) -> None:
        nonlocal count
        count += arguments[0]["input_ids"].numel()

    hook = model[0].register_forward_pre_hook(add)
    call()
    hook.remove()
    return count


def compare(name: str, model: Any, calls: list[Pairs], rounds: int) -> None:
    """Print the ratios of one kind of pairs."""
    from st_xling.models.pair_scorer import score_text_pairs

    def theirs() -> np.ndarray:
        return np.concatenate([model.predict(pairs, batch_size=32, show_progress_bar=False) for pairs in calls])

    def ours() -> np.ndarray:
        return np.concatenate([score_text_pairs(model, pairs) for pairs in calls])

    apart = np.abs(theirs() - ours()).max()  # warms up, too
    wall, processor = list[float](), list[float]()
    for number in range(rounds):
        spent = []
        for call in (theirs, ours, theirs):
            started = time.perf_counter(), time.process_time()
            call()
            spent.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        for ratios, (before, own, after) in zip((wall, processor), zip(*spent)):
            ratios.append((before + after) / (2 * own))
        print(f"  {name}, round {number + 1}: theirs {spent[0][0]:.1f} s, ours {spent[1][0]:.1f} s", file=sys.stderr)
    tokens = computed_tokens(model, theirs) / computed_tokens(model, ours)
    print(f"{name:<14}{spread(wall):<20}{spread(processor):<20}{tokens:.2f}    {apart:.0e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="default: torch's")
    parser.add_argument("--pools", type=int, help="queries of each set (default: 8)")
    parser.add_argument("--quick", action="store_true", help="a toy size: figures without meaning")
    arguments = parser.parse_args()
    logging.getLogger("st_xling").setLevel(logging.ERROR)  # cut passages are no news here
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    size = QUICK if arguments.quick else Size()
    if arguments.pools:
        size = replace(size, pools=arguments.pools)
    folder, real = os.environ.get("ST_XLING_E5"), os.environ.get("ST_XLING_DATA")
    if folder and real and not arguments.quick:
        from st_xling.models.cross_encoder import cross_encoder

        sentences = real_sentences(Path(real))
        model: Any = cross_encoder(folder, head="pooler", device="cpu")
        size = replace(size, layers=model.config.num_hidden_layers, hidden=model.config.hidden_size)
    else:
        from st_xling.data.phrasebook import parallel_phrases

        texts = {language: parallel_phrases(language, "en", size=1500) for language in LANGUAGES[1:]}
        sentences = {language: list(data["source"]) for language, data in texts.items()}
        sentences["en"] = list(texts["de"]["target"])
        model = random_cross_encoder(size, sentences)
    print(f"{'':<14}{'wall':<20}{'processor':<20}tokens  scores apart")
    one, all_at_once = (
        make_pairs(size, model, sentences, ("en",), 0.5),
        make_pairs(size, model, sentences, LANGUAGES, 0.5),
    )
    pools = [all_at_once[start : start + size.pool] for start in range(0, len(all_at_once), size.pool)]
    for name, calls in (
        ("uniform", [make_pairs(size, model, sentences, ("en",), 0.0)]),
        ("one language", [one]),
        ("languages", [all_at_once]),
        ("pools", pools),
    ):
        compare(name, model, calls, 2 if arguments.quick else arguments.rounds)
    print(f"{size}, {torch.get_num_threads()} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()
