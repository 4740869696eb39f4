"""Re-ranking with a cross-encoder: ``PairScorer`` by ``CrossEncoder.predict``, pairs a second.

32 rows at a time; passages of 150 tokens, or of about XQuAD's spread (log-normal, median 150 tokens, sigma 0.5). The
encoder that ``ST_XLING_E5`` names reads sentences of ``ST_XLING_DATA`` under a new head.

- uniform: passages of one length;
- one language: pairs of English alone, in one call, where sentence-transformers' sorting by characters does well;
- languages: passages in six languages, in one call: a character is a token of Chinese and a quarter of one of English;
- pools: the same a query at a time, 24 candidates each.

The tokens in the notes are those computed, padding included, theirs by ours: they need no clock.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel, quotients

LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Size:
    """How much is scored.

    Attributes:
        pool: Candidates of a query.
        tokens: Median of a passage's.
    """

    pools: int = 8
    pool: int = 24
    tokens: int = 150


QUICK = Size(pools=3, pool=8, tokens=20)


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
    from st_xling.models import tiny_encoder
    from st_xling.models.cross_encoder import cross_encoder
    from st_xling.models.pair_scorer import PairScorer

    logging.getLogger("st_xling").setLevel(logging.ERROR)  # cut passages are no news here
    size = QUICK if run.quick else Size()
    size = replace(size, pools=pools or size.pools)
    texts = {language: parallel(run, language, 1500) for language in LANGUAGES[1:]}
    sentences = {language: [pair[0] for pair in pairs] for language, pairs in texts.items()}
    sentences["en"] = [pair[1] for pair in texts["de"]]
    if run.quick:
        start: Any = tiny_encoder([text for some in sentences.values() for text in some], max_length=64, hidden_size=32)
    else:
        start = encoder_folder(None)
    model: Any = cross_encoder(start, device="cpu")
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
