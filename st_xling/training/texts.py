"""One look at all training text: how much is cut off, and which tokens a side uses."""

from __future__ import annotations

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
    """

    texts: int = 0
    truncated: int = 0
    longest: int = 0
    token_ids: set[int] = field(default_factory=set)

    def __add__(self, other: TextReport) -> TextReport:
        return TextReport(
            self.texts + other.texts,
            self.truncated + other.truncated,
            max(self.longest, other.longest),
            self.token_ids | other.token_ids,
        )


def report_texts(
    tokenizer: Any,
    texts: Iterable[str],
    *,
    max_length: int | None,
    description: str = "reading",
    progress: bool = False,
) -> TextReport:
    """Tokenise every text once.

    Args:
        tokenizer: A transformers tokenizer.
        texts: Sentences.
        max_length: Tokens a text is cut to, special tokens included; ``None``: never cut.
        description: Of the progress bar.
        progress: Show a bar on stderr.
    """
    report = TextReport()
    texts = list(texts)
    for start in tqdm(range(0, len(texts), BATCH_TEXTS), desc=description, disable=not progress, leave=False):
        report = report + _batch(tokenizer, texts[start : start + BATCH_TEXTS], max_length)
    return report


def _batch(tokenizer: Any, texts: Sequence[str], max_length: int | None) -> TextReport:
    rows = tokenizer(list(texts), truncation=False, padding=False, verbose=False, return_attention_mask=False)
    report = TextReport(texts=len(texts))
    for ids in rows["input_ids"]:
        report.longest = max(report.longest, len(ids))
        if max_length is not None and len(ids) > max_length:
            report.truncated += 1
            report.token_ids.update(ids[: max_length - 1])
            report.token_ids.add(ids[-1])  # truncation keeps the closing special token
        else:
            report.token_ids.update(ids)
    return report
