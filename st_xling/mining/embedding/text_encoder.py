"""An encoder that makes stores of sentences in a work folder."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from st_xling.mining.stores.manifest import ModelIdentity
from st_xling.mining.stores.store import EmbeddingStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EncodeOptions:
    """How sentences are embedded.

    Attributes:
        batch_size: Sentences of a batch.
        dtype: Type that is kept: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        prompt: Put before every sentence.
        device: Where to embed; by default a GPU where there is one.
        engine: What embeds, ``"local"`` or ``"ray"``: the same vectors.
    """

    batch_size: int = 128
    dtype: str = "float32"
    prompt: str | None = None
    device: str | None = None
    engine: str = "local"


class Encoder:
    """An encoder that makes stores in a work folder, both sides' with the same settings.

    Args:
        model: Hub id or folder, or a :class:`~sentence_transformers.SentenceTransformer`.
        options: How it embeds.
    Raises:
        ValueError: If nothing can be loaded at that name.

    Attributes:
        identity: Which encoder it is.
    """

    def __init__(self, model: Any, options: EncodeOptions) -> None:
        from st_xling.mining.embedding.model_identity import model_identity
        from st_xling.models import load_encoder

        name = model if isinstance(model, str) else None
        self.model = model if name is None else load_encoder(name, device=options.device)
        self.name = name or type(model).__name__
        self.options = options
        self.identity: ModelIdentity = model_identity(self.model, name)

    @property
    def settings(self) -> dict[str, Any]:
        """What the vectors depend on."""
        options = self.options
        return {
            "model": self.identity.fingerprint,
            "dtype": options.dtype,
            "prompt": options.prompt,
            "batch size": options.batch_size,
        }

    def encode(
        self, sentences: Path, out: Path, *, place: Callable[[int], str], progress: bool = False
    ) -> EmbeddingStore:
        """A store of the sentences in a file of ``{"text": …}`` lines; one that was left half-written is gone on with.

        Args:
            sentences: The file.
            out: The store. Where it is whole but damaged, it is written again.
            place: Says where a sentence comes from, for errors.
            progress: Show a bar on stderr.
        """
        from st_xling.mining.embedding.encode import encode

        options = self.options
        again = partial(
            encode,
            self.model,
            sentences,
            out,
            format="jsonl",
            dtype=options.dtype,
            prompt=options.prompt,
            batch_size=options.batch_size,
            engine=options.engine,
            device=options.device,
            place=place,
            progress=progress,
        )
        store = again()
        try:
            store.verify()
        except ValueError as error:
            logger.warning("%s It is made again.", error)
            store = again(overwrite=True)
        return store
