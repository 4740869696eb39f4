"""Guard ``length_ratio``: one side says much more than the other."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from st_xling.mining.guards.candidates import CandidateBatch, Verdict
from st_xling.mining.guards.letters import REMEMBERED

#: Latin letters that one character of a dense script stands for. Least squares over a thousand translations each gives
#: 3.7 for a Chinese character, 4.4 for a Japanese one, 1.7 for kana and 2.7 for a Hangul syllable.
HAN, KANA, HANGUL = 3.5, 1.7, 2.5

_HAN = re.compile("[\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]+")
_FIRST_DENSE = re.compile("[\u1100-\u11ff\u2e80-\U0003ffff]")


@lru_cache(maxsize=REMEMBERED)
def weighted_length(text: str) -> float:
    """Length of a text in Latin letters: characters of its NFC form, those of dense scripts counted several times.

    The scale follows the characters, not a named language, so that mixed lines ("我用 Python 写") need no special case.
    Other scripts need none: their translations into English are between 0.9 and 1.2 times as long.
    """
    if text.isascii():
        return float(len(text))
    text = unicodedata.normalize("NFC", text)
    length = float(len(text))
    if _FIRST_DENSE.search(text):
        for pattern, weight in ((_HAN, HAN), (_KANA, KANA), (_HANGUL, HANGUL)):
            length += (weight - 1) * sum(map(len, pattern.findall(text)))
    return length


@dataclass(frozen=True)
class LengthRatioGuard:
    r"""Turns down a pair of very different lengths.

    .. math:: \mathrm{ratio}(x, y) = \frac{\max(|x|, |y|) + c}{\min(|x|, |y|) + c}

    with lengths by :func:`weighted_length`. The constant :math:`c` makes short sentences lenient: "Да." and "Yes, of
    course." pass, the same ratio over a hundred characters does not.

    Args:
        limit: Turn down above this ratio, above 1.
        slack_chars: The constant :math:`c`, in weighted characters, 0 or more.
    Source:
        Gale and Church 1993 for characters as the measure of length; the additive constant stands in for their
        variance, which grows with length.
    """

    limit: float = 2.5
    slack_chars: float = 15.0
    reason: ClassVar[str] = "length_ratio"

    def __post_init__(self) -> None:
        if not self.limit > 1:
            raise ValueError(f"length_ratio must be above 1: got {self.limit}; 2.5 is the usual choice.")
        if not self.slack_chars >= 0:
            raise ValueError(f"slack_chars must be 0 or more: got {self.slack_chars}; 15 is the usual choice.")

    def ratio(self, source: str, target: str) -> float:
        """The ratio of two texts, 1 or more; infinite when one is empty and there is no slack."""
        short, long = sorted((weighted_length(source) + self.slack_chars, weighted_length(target) + self.slack_chars))
        if short == 0:
            return 1.0 if long == 0 else float("inf")
        return long / short

    def check(self, batch: CandidateBatch) -> list[Verdict | None]:
        ratios = map(self.ratio, batch.sources, batch.targets)
        return [Verdict(round(ratio, 3), self.limit) if ratio > self.limit else None for ratio in ratios]
