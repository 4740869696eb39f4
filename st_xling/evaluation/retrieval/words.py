"""What BM25 counts: words, and in scripts that put no spaces between words, pairs of characters."""

from __future__ import annotations

import re
import unicodedata

# Thai, Lao, Burmese, Khmer, kana, Han; and Hangul, which has spaces, but whose particles grow on to its words. Lucene's
# CJK analyser takes pairs of characters there, too.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_RUN = re.compile(rf"([{_UNSPACED}]+)|[^\s{_UNSPACED}]+")


class _WordCharacters(dict[int, int]):
    """A table for ``str.translate`` that looks each character up once: letters, marks and numbers stay."""

    def __missing__(self, code: int) -> int:
        kept = self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return kept


_WORD_CHARACTERS = _WordCharacters()


def words(text: str) -> list[str]:
    """The terms of a text, in order.

    Args:
        text: Any script; taken in compatibility form (NFKC) and without case.
    Example:
        >>> words("Wo liegt Hanoi?"), words("河内在哪里")
        (['wo', 'liegt', 'hanoi'], ['河内', '内在', '在哪', '哪里'])
    """
    terms: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).casefold().translate(_WORD_CHARACTERS)):
        run = match[0]
        if match[1] and len(run) > 1:
            terms += [run[place : place + 2] for place in range(len(run) - 1)]
        else:
            terms.append(run)
    return terms
