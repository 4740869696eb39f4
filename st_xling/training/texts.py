"""One look at all training text: how much is cut off, and which tokens a side uses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tqdm.auto import tqdm

BATCH_TEXTS = 10_000


@dataclass
class TextReport:
    """What a tokenizer makes of some texts.

    Attributes:
        texts: Texts looked at.
        truncated: Of these, longer than the limit.
        longest: Tokens of the longest text, special tokens included.
        token_ids: Ids that occur within the limit.
        longest_text: The first text of that length.
    """

    texts: int = 0
    truncated: int = 0
    longest: int = 0
    token_ids: set[int] = field(default_factory=set)
    longest_text: str = ""

    def __add__(self, other: TextReport) -> TextReport:
        both = TextReport(self.texts, self.truncated, self.longest, set(self.token_ids), self.longest_text)
        both.include(other)
        return both

    def include(self, other: TextReport) -> None:
        """Count the texts of ``other`` too."""
        self.texts += other.texts
        self.truncated += other.truncated
        if other.longest > self.longest:
            self.longest, self.longest_text = other.longest, other.longest_text
        self.token_ids |= other.token_ids


def report_texts(
    tokenizer: Any,
    texts: Iterable[str],
    *,
    max_length: int | None,
    description: str = "reading",
    progress: bool = False,
    total: int | None = None,
) -> TextReport:
    """Tokenise every text once, ten thousand in memory at a time.

    Args:
        tokenizer: A transformers tokenizer.
        texts: Sentences.
        max_length: Tokens a text is cut to, special tokens included; ``None``: never cut.
        description: Of the progress bar.
        progress: Show a bar on stderr.
        total: How many texts there are, for the bar.
    """
    report, iterator = TextReport(), iter(texts)
    with tqdm(total=total, desc=description, disable=not progress, leave=False) as bar:
        while batch := list(itertools.islice(iterator, BATCH_TEXTS)):
            report.include(_batch(tokenizer, batch, max_length))
            bar.update(len(batch))
    return report


def _batch(tokenizer: Any, texts: Sequence[str], max_length: int | None) -> TextReport:
    rows = tokenizer(list(texts), truncation=False, padding=False, verbose=False, return_attention_mask=False)
    report = TextReport(texts=len(texts))
    for text, ids in zip(texts, rows["input_ids"]):
        if len(ids) > report.longest:
            report.longest, report.longest_text = len(ids), text
        if max_length is not None and len(ids) > max_length:
            report.truncated += 1
            report.token_ids.update(ids[: max_length - 1])
            report.token_ids.add(ids[-1])  # truncation keeps the closing special token
        else:
            report.token_ids.update(ids)
    return report
