"""What ``score_text_pairs`` saves: ``python -m tests.benchmarks.reranking``.

Pairs a second against ``CrossEncoder.predict`` (32 rows at a time) on the same pairs, in one process: a cross-encoder
of BERT-small's shape (4 layers of 512, random weights, 512 tokens) over phrasebook text, in passages of 150 tokens or
of about XQuAD's spread (log-normal, median 150 tokens, sigma 0.5):

- uniform: passages of one length (target: at least 1.0x);
- one language: pairs of English alone, in one call, where sentence-transformers' sorting by characters does well;
- languages: passages in six languages, in one call: a character is a token of Chinese and a quarter of one of English
  (target: at least 1.5x);
- pools: the same a query at a time, 24 candidates each (target: at least 1.5x).

Ours is timed between two calls of ST', a ratio a round. The column of tokens needs no clock: tokens computed,
padding included, host's by ours. ``--quick`` runs a toy, to see that all is well.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
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


def cross_encoder(size: Size, sentences: dict[str, list[str]]) -> Any:
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
    from st_xling.models.pair_scorer import text_ids

    chooser = random.Random(0)
    tokens = {
        text: len(ids) for texts in sentences.values() for text, ids in zip(texts, text_ids(model.tokenizer, texts))
    }
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

    def host() -> np.ndarray:
        return np.concatenate([model.predict(pairs, batch_size=32, show_progress_bar=False) for pairs in calls])

    def ours() -> np.ndarray:
        return np.concatenate([score_text_pairs(model, pairs) for pairs in calls])

    apart = np.abs(host() - ours()).max()  # warms up, too
    wall, processor = list[float](), list[float]()
    for number in range(rounds):
        spent = []
        for call in (host, ours, host):
            started = time.perf_counter(), time.process_time()
            call()
            spent.append((time.perf_counter() - started[0], time.process_time() - started[1]))
        for ratios, (before, own, after) in zip((wall, processor), zip(*spent)):
            ratios.append((before + after) / (2 * own))
        print(f"  {name}, round {number + 1}: host {spent[0][0]:.1f} s, ours {spent[1][0]:.1f} s", file=sys.stderr)
    tokens = computed_tokens(model, host) / computed_tokens(model, ours)
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
    from st_xling.data.phrasebook import parallel_phrases

    size = QUICK if arguments.quick else Size()
    if arguments.pools:
        size = replace(size, pools=arguments.pools)
    texts = {language: parallel_phrases(language, "en", size=1500) for language in LANGUAGES[1:]}
    sentences = {language: list(data["source"]) for language, data in texts.items()}
    sentences["en"] = list(texts["de"]["target"])
    model = cross_encoder(size, sentences)
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
