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
from typing import Any

import numpy as np

from tests.benchmarks.measure import Ratio, Run, encoder_folder, main, parallel, quotients

LANGUAGES = ("en", "de", "fr", "es", "vi", "zh")
Pairs = list[tuple[str, str]]


def make_pairs(
    model: Any, sentences: dict[str, list[str]], languages: tuple[str, ...], sigma: float, sizes: tuple[int, int, int]
) -> Pairs:
    """Pairs one after another, of so many pools and candidates; passages of about so many tokens, spread by ``sigma``.

    A passage has as many tokens in each language.
    """
    pools, candidates, median = sizes
    chooser = random.Random(0)
    tokens = {text: len(model.tokenizer.tokenize(text)) for texts in sentences.values() for text in texts}
    pairs: Pairs = []
    for _ in range(pools):
        query = chooser.choice(sentences[chooser.choice(languages)])
        for _ in range(candidates):
            wanted, words = median * np.exp(chooser.gauss(0, sigma)), list[str]()
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


def measure(run: Run, *, pools: int = 8, pool: int = 24, tokens: int = 150) -> Iterator[Ratio]:
    """``pool``: candidates of a query; ``tokens``: median of a passage's."""
    from st_xling.models import tiny_encoder
    from st_xling.models.cross_encoders import cross_encoder
    from st_xling.models.pair_scorer import PairScorer

    logging.getLogger("st_xling").setLevel(logging.ERROR)  # cut passages are no news here
    sizes = (pools, pool, tokens)
    texts = {language: parallel(run, language, 1500) for language in LANGUAGES[1:]}
    sentences = {language: [pair[0] for pair in pairs] for language, pairs in texts.items()}
    sentences["en"] = [pair[1] for pair in texts["de"]]
    if run.quick:
        start: Any = tiny_encoder([text for some in sentences.values() for text in some], max_length=64, hidden_size=32)
    else:
        start = encoder_folder(None)
    model: Any = cross_encoder(start, device="cpu")
    one, together = (make_pairs(model, sentences, languages, 0.5, sizes) for languages in (("en",), LANGUAGES))
    kinds = {
        "uniform": [make_pairs(model, sentences, ("en",), 0.0, sizes)],
        "one language": [one],
        "languages": [together],
        "pools": [together[start : start + pool] for start in range(0, len(together), pool)],
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
        computed = computed_tokens(model, theirs) / computed_tokens(model, ours)
        note = f"{computed:.2f}x the tokens; scores apart by {np.abs(scores['theirs'] - scores['ours']).max():.0e}"
        faster = quotients(seconds["predict"], seconds["ours"])
        yield Ratio(f"{name}: speed", "CrossEncoder.predict", faster, at_least=at_least.get(name), note=note)


if __name__ == "__main__":
    main(measure, rounds=3, quick={"pools": 3, "pool": 8, "tokens": 20})
