"""Re-ranking with a cross-encoder: ``PairScorer`` by ``CrossEncoder.predict``, pairs a second.

32 rows at a time; passages of 150 tokens, or of about XQuAD's spread (log-normal, median 150 tokens, sigma 0.5). The
encoder that ``ST_XLING_E5`` names reads sentences of ``ST_XLING_DATA`` under a new head.

- uniform: passages of one length;
- one language: pairs of English alone, in one call, where sentence-transformers' sorting by characters does well;
- languages: passages in six languages, in one call: a character is a token of Chinese and a quarter of one of English;
- pools: the same a query at a time, 24 candidates each.

The tokens in the notes are those computed, padding included, theirs by ours: they need no clock.
"""

import logging
import random
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel, quotients

LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")
Pairs = list[tuple[str, str]]


def make_pairs(
    model: Any, sentences: dict[str, list[str]], languages: tuple[str, ...], sigma: float, sizes: tuple[int, int, int]
) -> Pairs:
    """Make pairs, pool after pool; a passage has as many tokens in each language.

    Args:
        model: Its tokenizer counts tokens.
        sentences: Language → sentences that passages consist of.
        languages: Languages that are drawn.
        sigma: Spread of the passages' lengths.
        sizes: Number of pools, candidates of each, and median tokens of a passage.
    """
    pools, candidates, median = sizes
    chooser = random.Random(0)
    tokens = {text: len(model.tokenizer.tokenize(text)) for text in chain.from_iterable(sentences.values())}
    pairs: Pairs = []
    for _ in range(pools):
        query = chooser.choice(sentences[chooser.choice(languages)])
        for _ in range(candidates):
            min_tokens = median * np.exp(chooser.gauss(0, sigma))
            language = chooser.choice(languages)
            parts: list[str] = []
            while sum(tokens[text] for text in parts) < min_tokens:
                parts.append(chooser.choice(sentences[language]))
            space = "" if language == "zh" else " "
            pairs.append((query, space.join(parts)))
    return pairs


def computed_tokens(model: Any, call: Callable[[], Any]) -> int:
    """Count the tokens that the model reads during a call, padding included."""
    count = 0

    def add(_: Any, arguments: Any) -> None:
        nonlocal count
        count += arguments[0]["input_ids"].numel()

    hook = model[0].register_forward_pre_hook(add)
    call()
    hook.remove()
    return count


def measure(run: Run, *, pools: int = 8, pool: int = 24, tokens: int = 150) -> Iterator[Ratio]:
    """``pool``: candidates of a query; ``tokens``: median tokens of a passage."""
    from st_xling.models import tiny_encoder
    from st_xling.models.cross_encoders import cross_encoder
    from st_xling.models.pair_scorer import PairScorer

    logging.getLogger("st_xling").setLevel(logging.ERROR)  # cut passages are no news here
    sizes = (pools, pool, tokens)
    sentences: dict[str, list[str]] = {}
    for language in LANGUAGES[1:]:
        pairs_of_language = parallel(run, language, 1500)
        sentences[language] = [text for text, _ in pairs_of_language]
        if language == "de":
            sentences["en"] = [english for _, english in pairs_of_language]
    encoder: Any
    if run.quick:
        encoder = tiny_encoder(chain.from_iterable(sentences.values()), max_length=64, hidden_size=32)
    else:
        encoder = encoder_folder(None)
    model: Any = cross_encoder(encoder, device="cpu")
    english = make_pairs(model, sentences, ("en",), 0.5, sizes)
    mixed = make_pairs(model, sentences, LANGUAGES, 0.5, sizes)
    kinds = {
        "uniform": [make_pairs(model, sentences, ("en",), 0.0, sizes)],
        "one language": [english],
        "languages": [mixed],
        "pools": [mixed[start : start + pool] for start in range(0, len(mixed), pool)],
    }
    at_least = {"uniform": 1.0, "languages": 1.5, "pools": 1.5}
    for name, calls in kinds.items():
        scores: dict[str, np.ndarray] = {}

        def theirs() -> None:
            parts = [model.predict(pairs, batch_size=32, show_progress_bar=False) for pairs in calls]  # noqa: B023
            scores["theirs"] = np.concatenate(parts)  # noqa: B023

        def ours() -> None:
            scores["ours"] = np.concatenate([PairScorer(model).score(pairs) for pairs in calls])  # noqa: B023

        seconds = run.in_turn({"predict": theirs, "ours": ours})
        computed = computed_tokens(model, theirs) / computed_tokens(model, ours)
        note = f"{computed:.2f}x the tokens; scores apart by {np.abs(scores['theirs'] - scores['ours']).max():.0e}"
        faster = quotients(seconds["predict"], seconds["ours"])
        yield Ratio(f"{name}: speed", "CrossEncoder.predict", faster, at_least=at_least.get(name), note=note)


if __name__ == "__main__":
    main(measure, rounds=3, quick={"pools": 3, "pool": 8, "tokens": 20})
