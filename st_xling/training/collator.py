"""Batches whose language columns reach the losses as ids instead of being read as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

LANGUAGE_SUFFIX = "_language"


@dataclass
class CrossLingualDataCollator(SentenceTransformerDataCollator):
    """The host's collator, with ``source_language`` beside ``source`` turned into a ``language`` feature.

    Args:
        languages: Language → id, as the loss counts them; ``None`` drops the language columns.
    """

    languages: dict[str, int] | None = field(default=None)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        if not features:
            return {}
        columns = [name.removesuffix(LANGUAGE_SUFFIX) for name in features[0] if name.endswith(LANGUAGE_SUFFIX)]
        columns = [name for name in columns if name in features[0]]
        told = {name: [row[name + LANGUAGE_SUFFIX] for row in features] for name in columns}
        dropped = {name + LANGUAGE_SUFFIX for name in columns}
        batch = super().__call__([{k: v for k, v in row.items() if k not in dropped} for row in features])
        if self.languages is not None:
            for name, values in told.items():
                # The trainer cuts a batch into columns by prefix: source_language arrives as source's "language".
                batch[name + LANGUAGE_SUFFIX] = torch.tensor([self._id(value) for value in values])
        return batch

    def _id(self, language: str) -> int:
        assert self.languages is not None
        if language not in self.languages:
            raise ValueError(
                f"the loss knows the languages {', '.join(self.languages)}: a row is in {language!r}; "
                "add it to the loss's languages=, or drop the rows."
            )
        return self.languages[language]
