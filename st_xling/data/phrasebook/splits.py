"""Which meanings belong to train, dev and test: decided by a hash of the meaning alone, never by the seed."""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random

from st_xling.data.phrasebook.meanings import Meaning
from st_xling.data.phrasebook.sampler import draw_meaning

SPLITS = ("train", "dev", "test")


def split_of(meaning: Meaning) -> str:
    """The split of a meaning: 80 % train, 10 % dev, 10 % test.

    Args:
        meaning: Any meaning.
    Returns:
        One of :data:`SPLITS`; the same in every process, whatever the seed it was drawn with.
    """
    return _split_of_key(meaning.key)


def _split_of_key(key: str) -> str:
    tenth = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") % 10
    return "train" if tenth < 8 else "dev" if tenth == 8 else "test"


def _stream(split: str, seed: int, distinct: bool) -> Iterator[Meaning]:
    rng = Random(f"phrasebook:{split}:{seed}")
    seen: set[str] = set()
    while True:
        meaning = draw_meaning(rng)
        key = meaning.key
        if key in seen or _split_of_key(key) != split:
            continue
        if distinct:
            seen.add(key)
        yield meaning


def check_size(size: int) -> None:
    """Raise a ``ValueError`` if ``size`` is below 1."""
    if size < 1:
        raise ValueError(f"size must be at least 1: got size={size}; ask for one sentence or more.")


def check_split(split: str) -> None:
    """Raise a ``ValueError`` unless ``split`` is one of :data:`SPLITS`."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}: got {split!r}; choose one of them.")


def draw_meanings(split: str = "train", size: int = 1000, seed: int = 0, *, distinct: bool = True) -> list[Meaning]:
    """Draw meanings of one split.

    Args:
        split: ``train``, ``dev`` or ``test``.
        size: How many; a smaller draw with the same seed is a prefix of a larger one.
        seed: Any integer.
        distinct: Whether no meaning may come twice.
    Returns:
        The meanings, in the order drawn.
    Raises:
        ValueError: If the split is unknown or ``size`` is below 1.
    """
    check_split(split)
    check_size(size)
    stream = _stream(split, seed, distinct)
    return [next(stream) for _ in range(size)]
