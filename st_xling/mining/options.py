"""Options of search and of encoding, each stated and checked once; nothing here imports torch, which is slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from st_xling.utils.options import Engine, Margin, Retrieval, StoreDtype, check_choice, check_installed, check_number

#: Values of ``method``; ``auto`` chooses by the size of the corpora.
METHODS = ("exact", "approximate", "auto")

#: Begins a ``method`` that names a FAISS index.
FAISS = "faiss:"


def check_method(method: str) -> None:
    """Raise ``ValueError`` unless there is such a search, and what it needs is installed."""
    if method not in METHODS and not method.startswith(FAISS):
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, or {FAISS} and a factory string, such as "
            f"'{FAISS}IVF4096,Flat': got {method!r}; {METHODS[0]!r} is usual."
        )
    if method == "approximate" or method.startswith(FAISS):
        check_installed("faiss", f"method={method!r}", extra="faiss")


def check_neighbors(k: int) -> None:
    """Raise ``ValueError`` unless ``k`` is a number of neighbors."""
    if k < 1:
        raise ValueError(f"k must be at least 1: got k={k}; 4 is the usual choice.")


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How neighbors are searched, and how pairs are scored and chosen among them.

    Attributes:
        k: Number of neighbors of each sentence.
        margin: How a cosine is compared with those of the neighbors: ``"ratio"``, ``"distance"`` or ``"absolute"``; see
            :func:`~st_xling.mining.margin_scores`.
        retrieval: Which candidates are chosen: ``"max"``, ``"intersect"``, ``"forward"`` or ``"backward"``; see
            :func:`~st_xling.mining.mine`.
        method: ``"exact"``, ``"approximate"``, ``"faiss:FACTORY"`` or ``"auto"``; see
            :func:`~st_xling.mining.find_neighbors`.
        memory_mib: Limit on the memory of one block of the search, in MiB.

    Raises:
        ValueError: For an option out of range.

    Example:
        >>> SearchOptions(k=8, method="approximate")
        SearchOptions(k=8, margin='ratio', retrieval='max', method='approximate', memory_mib=256)
    """

    k: int = 4
    margin: Margin = "ratio"
    retrieval: Retrieval = "max"
    method: str = "exact"
    memory_mib: int = 256

    def __post_init__(self) -> None:
        check_neighbors(self.k)
        check_choice("margin", self.margin, Margin)
        check_choice("retrieval", self.retrieval, Retrieval)
        check_method(self.method)
        check_number("memory_mib", self.memory_mib, least=1)


@dataclass(frozen=True, kw_only=True)
class EncodingOptions:
    """How sentences are embedded, and where; a search that follows runs in the same place.

    Attributes:
        batch_size: Maximum number of sentences in a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``, with a scale a row.
        prompt: Text put before every sentence, such as ``"query: "``; by default the model's own prompt, if any.
        device: Device to embed and search on; by default a GPU if there is one.
        engine: ``"local"``, or ``"ray"`` for the workers of a Ray cluster, such as all GPUs of this machine; the result
            is the same.

    Raises:
        ValueError: For an option out of range, or if Ray is not installed.

    Example:
        >>> EncodingOptions(batch_size=64, dtype="float16", prompt="query: ")
        EncodingOptions(batch_size=64, dtype='float16', prompt='query: ', device=None, engine='local')
    """

    batch_size: int | None = None
    dtype: StoreDtype = "float32"
    prompt: str | None = None
    device: str | None = None
    engine: Engine = "local"

    def __post_init__(self) -> None:
        check_number("batch_size", self.batch_size, least=1)
        check_choice("dtype", self.dtype, StoreDtype)
        if self.engine != "local":
            from st_xling.mining.ray import check_engine  # it imports torch

            check_engine(self.engine)


@dataclass(frozen=True, kw_only=True)
class FirstStageOptions:
    """A static encoder that reads both texts first, so that only sentences that may have a translation are embedded.

    Attributes:
        model: The static encoder: a ``SentenceTransformer`` that reads much faster than the encoder, such as one that
            ``st-xling train static`` has trained, or the Hub id or folder of one. Or a list of several, such as two
            with vocabularies of different sizes, whose vectors are joined: together they miss fewer translations.
        recall: Share of the pairs that shall not be lost, as estimated from the static margins of the pairs that were
            mined; more sentences are embedded until it is reached.
        share: Share of the sentences to embed, in place of ``recall``.
        background: Share of the sentences that are embedded at random, 10,000 of a text at most, so that scores stay
            near what they are among all.
        seed: Seed of this choice.

    Raises:
        ValueError: For an option out of range.

    Example:
        >>> FirstStageOptions(model="my-static-encoder", recall=0.95).share is None
        True
    """

    model: Any
    recall: float = 0.98
    share: float | None = None
    background: float = 0.1
    seed: int = 0

    @property
    def models(self) -> list[Any]:
        """The static encoder, or encoders."""
        if isinstance(self.model, (list, tuple)):
            return list(self.model)
        return [self.model]

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("a first stage needs a static encoder: got an empty list of models.")
        shares = {"recall": self.recall, "share": self.share, "background": self.background}
        for name, value in shares.items():
            check_number(name, value, least=0)
            if value is not None and value > 1:
                raise ValueError(f"{name} of the first stage must be a share between 0 and 1: got {value}.")
        if self.share == 0:
            raise ValueError("share of the first stage must be above 0: got 0; leave it out, and recall decides.")
        check_number("seed", self.seed, least=0)
