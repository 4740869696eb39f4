"""Re-ranking with a cross-encoder: ``PairScorer`` by ``CrossEncoder.predict``, pairs a second.

32 rows at a time; passages of 150 tokens, or of about XQuAD's spread (log-normal, median 150 tokens, sigma 0.5). Where
``ST_XLING_E5`` names a folder of multilingual-e5-small (MiniLM-L12-H384's shape) and ``ST_XLING_DATA`` real text, that
encoder under a new head reads real sentences; otherwise a cross-encoder of BERT-small's shape (4 layers of 512, random
weights) the phrasebook's.

- uniform: passages of one length;
- one language: pairs of English alone, in one call, where sentence-transformers' sorting by characters does well;
- languages: passages in six languages, in one call: a character is a token of Chinese and a quarter of one of English;
- pools: the same a query at a time, 24 candidates each.

The tokens in the notes are those computed, padding included, theirs by ours: they need no clock.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tests.benchmarks.measure import Ratio, Run, main, parallel, quotients

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


def measure(run: Run, *, pools: int | None = None) -> Iterator[Ratio]:
    from st_xling.models.cross_encoder import cross_encoder
    from st_xling.models.pair_scorer import PairScorer

    logging.getLogger("st_xling").setLevel(logging.ERROR)  # cut passages are no news here
    size = QUICK if run.quick else Size()
    size = replace(size, pools=pools or size.pools)
    folder = os.environ.get("ST_XLING_E5")
    real = bool(folder and os.environ.get("ST_XLING_DATA")) and not run.quick
    texts = {language: parallel(replace(run, quick=not real), language, 1500) for language in LANGUAGES[1:]}
    sentences = {language: [pair[0] for pair in pairs] for language, pairs in texts.items()}
    sentences["en"] = [pair[1] for pair in texts["de"]]
    model: Any = cross_encoder(folder, head="pooler", device="cpu") if real else random_cross_encoder(size, sentences)
    one, together = (make_pairs(size, model, sentences, languages, 0.5) for languages in (("en",), LANGUAGES))
    kinds = {
        "uniform": [make_pairs(size, model, sentences, ("en",), 0.0)],
        "one language": [one],
        "languages": [together],
        "pools": [together[start : start + size.pool] for start in range(0, len(together), size.pool)],
    }
    at_least = {"uniform": 1.0, "languages": 1.5, "pools": 1.5}
    for name, calls in kinds.items():
        scores: dict[str, np.ndarray] = {}

        def theirs() -> None:
            found = [model.predict(pairs, batch_size=32, show_progress_bar=False) for pairs in calls]  # noqa: B023
            scores["theirs"] = np.concatenate(found)  # noqa: B023

        def ours() -> None:
            scores["ours"] = np.concatenate([PairScorer(model).score(pairs) for pairs in calls])  # noqa: B023

        seconds = run.in_turn({"predict": theirs, "ours": ours})
        tokens = computed_tokens(model, theirs) / computed_tokens(model, ours)
        note = f"{tokens:.2f}x the tokens; scores apart by {np.abs(scores['theirs'] - scores['ours']).max():.0e}"
        faster = quotients(seconds["predict"], seconds["ours"])
        yield Ratio(f"{name}: speed", "CrossEncoder.predict", faster, at_least=at_least.get(name), note=note)


if __name__ == "__main__":
    main(measure, rounds=3)
