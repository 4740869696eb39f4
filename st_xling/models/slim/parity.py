"""Two encoders on the same text: do they compute the same? And the rows of a stream on which that is checked."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.stats import binomtest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Router

from st_xling.models.encode import encode
from st_xling.models.slim.vocabulary import token_ids
from st_xling.utils.nearest import retrieval_accuracy

Item = TypeVar("Item")
Pairs = Mapping[str, tuple[Sequence[str], Sequence[str]]]
Encode = Callable[[Any, list[str]], np.ndarray]

SAME = 0.9999
"""A cosine from which two embeddings count as the same."""

CHECKED = 100
"""Texts of the same tokens that both encoders encode, before it is believed that all such have the same embeddings."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Change:
    """One number of both encoders."""

    before: float
    after: float


@dataclass(frozen=True)
class Parity:
    """How two encoders agree on some text.

    Attributes:
        texts: Distinct texts.
        cosine_mean: Of a text's two embeddings, over all texts and, of separate encoders, over both.
        cosine_min: The least of them.
        same_share: Share of those of 0.9999 or more.
        same_at_least: The same of all such text, with 95 % confidence: the lower end of the interval of Clopper and
            Pearson (1934) for as many texts, drawn at random.
        largest_difference: Of any number in an embedding.
        same_tokens_share: Share of texts that are cut into the same tokens.
        tokens_per_text: Special tokens not counted.
        unknown_share: Of tokens that stand for what no piece spells.
        retrieval: Pair of languages → accuracies (P@1) of finding the target (``forward``) and the source (``back``).
    """

    texts: int
    cosine_mean: float
    cosine_min: float
    same_share: float
    same_at_least: float
    largest_difference: float
    same_tokens_share: float
    tokens_per_text: Change
    unknown_share: Change
    retrieval: dict[str, dict[str, Change]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{round(self.same_share * self.texts):,} of {self.texts:,} texts embed the same: at least "
            f"{100 * self.same_at_least:.1f} % with {100 * CONFIDENCE:.0f} % confidence"
        )


def parity(
    before: SentenceTransformer,
    after: SentenceTransformer,
    texts: Sequence[str] = (),
    *,
    pairs: Pairs | None = None,
    batch_size: int | None = None,
    show_progress_bar: bool = False,
) -> Parity:
    """Compare an encoder with the one that it was made from.

    Where only the vocabulary was cut, a text of the same tokens has the same embedding, since all weights are the same.
    So both encode the texts whose tokens changed, and :data:`CHECKED` others; if these do not all come out the same, it
    is another model, and both encode everything.

    Args:
        before: The source.
        after: What was made of it.
        texts: Text of any language.
        pairs: Name → translations, row by row; compared as well, and evaluated by translation retrieval.
        batch_size: Most texts of a batch; by default as many as suit the device.
        show_progress_bar: Whether to show one while encoding.

    Raises:
        ValueError: No text at all; embeddings of different widths, or that are zero or not finite.
    """
    pairs = pairs or {}
    distinct = list(dict.fromkeys([*texts, *(text for columns in pairs.values() for side in columns for text in side)]))
    if not distinct:
        raise ValueError("text is needed to compare encoders: got none.")
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
    per_text, unknown = zip(*(_token_figures(each.tokenizer, distinct) for each in (before, after)))
    # Alone and behind each prompt, whose end may change how a text begins.
    prompts = ["", *filter(None, before.prompts.values())]
    same_tokens = np.all([_same(before.tokenizer, after.tokenizer, [p + t for t in distinct]) for p in prompts], axis=0)

    compared = []
    # Separate encoders are two, of which plain text goes through that of documents.
    for role in ("query", "text") if isinstance(before[0], Router) else ("text",):
        encode_role: Encode = partial(encode, role=role, **options)
        compared.append(_both(encode_role, before, after, distinct, same_tokens))
    old, new, _ = compared[-1]
    cosines = np.stack([each[2] for each in compared])
    difference = max(float(np.abs(was[text] - became[text]).max()) for was, became, _ in compared for text in became)
    retrieval = {}
    if missing := [text for columns in pairs.values() for side in columns for text in side if text not in old]:
        old |= dict(zip(missing, encode_role(before, missing)))
    for name, columns in pairs.items():
        was, became = (
            retrieval_accuracy(*(np.stack([table[text] for text in side]) for side in columns))
            for table in (old, {**old, **new})
        )
        retrieval[name] = {"forward": Change(was[0], became[0]), "back": Change(was[1], became[1])}
    same = cosines >= SAME
    same_texts = int(same.all(axis=0).sum())
    interval = binomtest(same_texts, len(distinct)).proportion_ci(CONFIDENCE, method="exact")
    return Parity(
        texts=len(distinct),
        cosine_mean=float(cosines.mean()),
        cosine_min=float(cosines.min()),
        same_share=float(same.mean()),
        same_at_least=float(interval.low),
        largest_difference=difference,
        same_tokens_share=float(same_tokens.mean()),
        tokens_per_text=Change(*per_text),
        unknown_share=Change(*unknown),
        retrieval=retrieval,
    )


def _both(
    encode: Encode, before: SentenceTransformer, after: SentenceTransformer, texts: list[str], same_tokens: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Embeddings of those texts that both encode, and the cosines of all. *Shape:* ``(texts,)``"""
    equal = np.flatnonzero(same_tokens)
    checked = equal[:: max(1, -(-len(equal) // CHECKED))]
    for rows in (np.union1d(np.flatnonzero(~same_tokens), checked), np.arange(len(texts))):
        chosen = [texts[row] for row in rows]
        old, new = encode(before, chosen), encode(after, chosen)
        if old.shape != new.shape:
            raise ValueError(f"embeddings of one width are needed: got {old.shape[1]} and {new.shape[1]}.")
        cosines = np.ones(len(texts))
        cosines[rows] = _cosines(old, new)
        if (cosines[checked] >= SAME).all():
            break
    return dict(zip(chosen, old)), dict(zip(chosen, new)), cosines


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of rows, in float64. *Shape:* ``(texts, dim)`` twice → ``(texts,)``"""
    left, right = left.astype(np.float64), right.astype(np.float64)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise ValueError("embeddings must be finite and not zero: got some that are not; look at the model's weights.")
    return (left * right).sum(axis=1) / lengths


def _same(before: Any, after: Any, texts: list[str]) -> np.ndarray:
    """Whether a text is cut into the same tokens. *Shape:* ``(texts,)``"""
    rows = zip(token_ids(before, texts), token_ids(after, texts))
    return np.array([before.convert_ids_to_tokens(a) == after.convert_ids_to_tokens(b) for a, b in rows])


def _token_figures(tokenizer: Any, texts: list[str]) -> tuple[float, float]:
    """Tokens a text, and the share of them that stand for what no piece spells."""
    numbers = [number for row in token_ids(tokenizer, texts) for number in row]
    return len(numbers) / len(texts), numbers.count(tokenizer.unk_token_id) / max(1, len(numbers))


def set_apart(
    rows: Iterable[Item], hold_out: float, held: list[Item], *, seed: int = 0, most: int = 1000
) -> Iterator[Item]:
    """Pass rows on, but for some.

    Args:
        rows: Of a length that need not be known.
        hold_out: The share of them to keep out, no more than ``most`` rows; or, from 1 on, their number.
        held: Where they go; complete once all others have been passed on.
        seed: Of the draw.
        most: Rows that a share may amount to.
    """
    if not (0 <= hold_out < 1 or (hold_out >= 1 and float(hold_out).is_integer())):
        raise ValueError(
            f"hold_out must be a share in [0, 1) or a whole number of rows: got {hold_out:g}; 0.05 is usual."
        )
    draw = random.Random(seed)
    share, places = (hold_out, most) if hold_out < 1 else (1.0, int(hold_out))
    drawn = 0
    for row in rows:
        if draw.random() < share:
            drawn += 1
            if len(held) < places:
                held.append(row)
                continue
            place = draw.randrange(drawn)
            if place < places:  # the one that it replaces is passed on in its stead
                held[place], row = row, held[place]
        yield row


def sampled(rows: Iterable[Item], size: int, sample: list[Item], *, seed: int = 0) -> Iterator[Item]:
    """Pass all rows on, and put ``size`` of them, each as likely as any other, into ``sample``."""
    draw = random.Random(seed)
    for number, row in enumerate(rows, 1):
        if len(sample) < size:
            sample.append(row)
        elif (place := draw.randrange(number)) < size:
            sample[place] = row
        yield row
