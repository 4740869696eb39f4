"""How a tokenizer reads a language, next to others: pieces, unknown tokens, and whether new vocabulary is needed.

Many pieces make a text long and its tokens meaningless, yet a model can learn from them. An unknown token has nothing
to learn from: all words that become one are the same to the model.

Source: Ács 2019, "Exploring BERT's Vocabulary", for pieces a word (fertility); Petrov et al. 2023, "Language Model
Tokenizers Introduce Unfairness Between Languages", for the pieces of a text in relation to those of its translation.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from st_xling.models.align import split_words
from st_xling.utils.tables import format_table

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

#: Share of a text in unknown tokens from which new vocabulary is needed.
UNKNOWN_SHARE = 0.01

#: So many times as many pieces as in the other languages, in relation to the translation: new vocabulary is needed.
PIECES_RATIO = 2.5

#: Texts of a language that are looked at.
MOST_TEXTS = 2000

_TEXTS_AT_ONCE = 500


@dataclass(frozen=True)
class LanguageTokens:
    """How a tokenizer reads texts of a language.

    Attributes:
        language: Its code.
        texts: Number of texts.
        pieces_per_word: A character of a script without spaces, such as Thai or Chinese, counts as a word.
        pieces_per_translation: Pieces of the texts, for each piece of their translations.
        unknown_tokens: Share of the tokens that are the unknown one.
        unknown_text: Share of the characters, without spaces, in unknown tokens.
    """

    language: str
    texts: int
    pieces_per_word: float
    pieces_per_translation: float
    unknown_tokens: float
    unknown_text: float


@dataclass(frozen=True)
class TokenizationReport:
    """Result of :func:`compare_tokenization`.

    Attributes:
        language: Code of the new language.
        rows: How each language is read, the new one first.
        needs_pieces: Whether new vocabulary is needed.
        is_unknown: Whether that is so because the tokenizer cannot read the language, rather than in many pieces.
        reason: The same in a sentence, with the figure that decides it.

    Example:
        >>> report = TokenizationReport("am", [], True, True, "99.2 % of the text of am is unknown to the tokenizer")
        >>> report.needs_pieces and report.is_unknown
        True
    """

    language: str
    rows: Sequence[LanguageTokens]
    needs_pieces: bool
    is_unknown: bool
    reason: str

    def table(self) -> str:
        """Format the figures of all languages as plain text."""
        head = ["", "texts", "pieces a word", "pieces a translation's", "unknown tokens, %", "unknown text, %"]
        cells = []
        for row in self.rows:
            cells.append(
                [
                    row.language,
                    row.texts,
                    f"{row.pieces_per_word:.2f}",
                    f"{row.pieces_per_translation:.2f}",
                    100 * row.unknown_tokens,
                    100 * row.unknown_text,
                ]
            )
        return "\n".join([format_table(head, cells), "", self.reason])

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        rows = [asdict(row) for row in self.rows]
        return {
            "rows": rows,
            "needs_pieces": self.needs_pieces,
            "is_unknown": self.is_unknown,
            "reason": self.reason,
        }


def compare_tokenization(
    tokenizer: PreTrainedTokenizerFast,
    language: str,
    texts: Mapping[str, tuple[Sequence[str], Sequence[str]]],
) -> TokenizationReport:
    """Compare how a tokenizer reads a new language with how it reads others, and tell whether it needs new pieces.

    Args:
        tokenizer: A fast transformers tokenizer.
        language: Code of the new language.
        texts: Code of a language, among them the new one → its texts and their translations into a common language,
            row-aligned. Of each the first 2,000 are read.

    Raises:
        ValueError: No text of a language, or translations of another number.

    Example:
        >>> from st_xling.models import tiny_encoder
        >>> english = ["The dog is sleeping.", "I am reading."]
        >>> german = ["Der Hund schläft.", "Ich lese."]
        >>> tokenizer = tiny_encoder([*english, *german], vocabulary=200, hidden_size=16).tokenizer
        >>> amharic = ["ውሻው ተኝቷል።", "እያነበብኩ ነው።"]
        >>> report = compare_tokenization(tokenizer, "am", {"am": (amharic, english), "de": (german, english)})
        >>> report.needs_pieces, report.rows[0].unknown_text, report.rows[1].unknown_text
        (True, 1.0, 0.0)
    """
    others = [code for code in texts if code != language]
    rows: list[LanguageTokens] = []
    for code in [language, *others]:
        if code not in texts or not texts[code][0]:
            raise ValueError(f"text of every language is needed: got none of {code}.")
        rows.append(_read_language(tokenizer, code, *texts[code]))
    needs_pieces, reason = _decide(rows[0], rows[1:])
    is_unknown = rows[0].unknown_text >= UNKNOWN_SHARE
    return TokenizationReport(language, rows, needs_pieces, is_unknown, reason)


def _decide(new: LanguageTokens, others: Sequence[LanguageTokens]) -> tuple[bool, str]:
    """Decide whether a language needs new vocabulary, and say why."""
    if new.unknown_text >= UNKNOWN_SHARE:
        share = f"{100 * new.unknown_text:.1f} % of the text of {new.language} is unknown to the tokenizer"
        return True, f"New vocabulary is needed: {share}."
    usual = 1.0
    compared_with = "its translation"
    # Of a language that is unknown, too, the number of pieces says nothing.
    ratios = [row.pieces_per_translation for row in others if row.unknown_text < UNKNOWN_SHARE]
    if ratios:
        usual = statistics.median(ratios)
        compared_with = "the other languages"
    ratio = new.pieces_per_translation / usual
    if ratio >= PIECES_RATIO:
        return True, f"New vocabulary is needed: {new.language} has {ratio:.1f} times the pieces of {compared_with}."
    return False, (
        f"No new vocabulary is needed: the tokenizer reads {new.language}, in {ratio:.1f} times the pieces of "
        f"{compared_with}."
    )


def _read_language(
    tokenizer: PreTrainedTokenizerFast, code: str, texts: Sequence[str], translations: Sequence[str]
) -> LanguageTokens:
    if len(texts) != len(translations):
        raise ValueError(
            f"each text of {code} has one translation: got {len(texts):,} texts, {len(translations):,} of them."
        )
    read = list(itertools.islice(texts, MOST_TEXTS))
    translated = list(itertools.islice(translations, MOST_TEXTS))
    unknown_id = tokenizer.unk_token_id
    pieces = unknown_pieces = characters = unknown_characters = words = translation_pieces = 0
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    for start in range(0, len(read), _TEXTS_AT_ONCE):
        batch = read[start : start + _TEXTS_AT_ONCE]
        for text, encoding in zip(batch, backend.encode_batch(batch, add_special_tokens=False)):
            words += len(split_words(text))
            characters += len("".join(text.split()))
            pieces += len(encoding.ids)
            for token_id, (begin, end) in zip(encoding.ids, encoding.offsets):
                if token_id == unknown_id:
                    unknown_pieces += 1
                    unknown_characters += len("".join(text[begin:end].split()))
        others = translated[start : start + _TEXTS_AT_ONCE]
        translation_pieces += sum(len(row.ids) for row in backend.encode_batch(others, add_special_tokens=False))
    return LanguageTokens(
        language=code,
        texts=len(read),
        pieces_per_word=pieces / max(1, words),
        pieces_per_translation=pieces / max(1, translation_pieces),
        unknown_tokens=unknown_pieces / max(1, pieces),
        unknown_text=unknown_characters / max(1, characters),
    )
