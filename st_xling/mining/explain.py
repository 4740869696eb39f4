"""Which words of a pair have no partner in the other sentence, and why: by token states, numbers and spelling."""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from st_xling.data.specs import parse_data_spec
from st_xling.mining.guards.numbers import NumbersGuard, leftovers, quantities
from st_xling.mining.guards.predicates import weighted_length
from st_xling.models.align import default_layer, split_words, word_similarities, word_spans
from st_xling.models.view import model_options
from st_xling.utils.identify import LanguageUnknown, expected_odds
from st_xling.utils.options import checked
from st_xling.utils.signature import sha8, sign
from st_xling.utils.text import file_ending, raw_lines, unpacked_name

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

#: Why a word is marked → what it means.
REASONS = {
    "missing": "a word of the source that the target lacks",
    "added": "a word of the target that the source lacks",
    "number": "a number that the other sentence does not have",
    "untranslated": "copied from the other sentence, in whose language it is",
}

#: Of a content word and its nearest word. In real pairs of German, French and Chinese with English, a word put into
#: one side, multilingual-e5-small marks 45 % of these words at a precision of 61 %, and 1.5 % of the words of sound
#: pairs (in as many others 46, 58 and 1.9 %); 0.2 marks 59 % at 48 %, and 3.2 %: more, and more that are sound.
THRESHOLD = 0.15

# Latin letters from which a word is taken for one of content, as a Chinese character is: four. Of the content words of
# Universal Dependencies' PUD in English, German, French, Spanish and Turkish 93 to 96 % are so long, of the others 14
# to 42 %; kana and Thai, which are split into characters, never are.
_LETTERS = 3.5
# Odds of the own language against the other's below which a copied word is in the other's.
_FOREIGN = 0.1
_ANSI = {"missing": 31, "added": 34, "number": 35, "untranslated": 33}


class ExplainedWord(NamedTuple):
    """A word of a pair.

    Attributes:
        text: As it is written.
        content: Whether it is one that a translation should have: a number, a Chinese character, an abbreviation in
            capitals, or a word of four letters or more. Others are not marked for want of a partner.
        similarity: To the nearest word of the other sentence; NaN beyond the model's length.
        nearest: That word's position; ``None`` without one.
        reason: Why it is marked, of :data:`REASONS`; ``None``: it has a partner, or needs none.
    """

    text: str
    content: bool
    similarity: float
    nearest: int | None
    reason: str | None


@dataclass(frozen=True)
class PairExplanation:
    """The words of a pair of sentences. A notebook shows it with the marks in colour.

    Attributes:
        source: Text.
        target: Text.
        source_words: In order.
        target_words: In order.
    """

    source: str
    target: str
    source_words: list[ExplainedWord] = field(repr=False)
    target_words: list[ExplainedWord] = field(repr=False)

    @property
    def marked(self) -> list[ExplainedWord]:
        """Words of both sentences that have a reason."""
        return [word for word in (*self.source_words, *self.target_words) if word.reason]

    @property
    def shares(self) -> tuple[float, float]:
        """Of the content words of source and target those with a partner; 1 where there are none."""
        sides = [[word for word in words if word.content] for words in (self.source_words, self.target_words)]
        source, target = (1 - sum(bool(word.reason) for word in words) / max(1, len(words)) for words in sides)
        return source, target

    @property
    def weakest(self) -> ExplainedWord | None:
        """The content word that is least like any word of the other sentence; ``None`` without content words."""
        words = [word for word in (*self.source_words, *self.target_words) if word.content and word.nearest is not None]
        return min(words, key=lambda word: word.similarity, default=None)

    def summary(self) -> str:
        """Shares of words with a partner, and the weakest word, on one line."""
        line = "words with a partner: source {:.0%}, target {:.0%}".format(*self.shares)
        return line if self.weakest is None else f"{line}; weakest: {self.weakest.text} ({self.weakest.similarity:.2f})"

    def lines(self, *, colours: bool = False) -> list[str]:
        """Source and target, in which marks stand as ``[word|reason]``.

        Args:
            colours: In colours of a terminal instead.
        """

        def shown(text: str, reason: str | None) -> str:
            if reason is None:
                return text
            return f"\x1b[1;4;{_ANSI[reason]}m{text}\x1b[0m" if colours else f"[{text}|{reason}]"

        return ["".join(shown(text, reason) for text, reason in pieces) for pieces in self._pieces()]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: both texts, the shares, and each marked word with its side and position."""
        marks = [
            {
                "side": side,
                "position": place,
                "text": word.text,
                "reason": word.reason,
                "nearest": None if word.nearest is None else other[word.nearest].text,
                "similarity": None if word.nearest is None else round(word.similarity, 4),
            }
            for side, words, other in (
                ("source", self.source_words, self.target_words),
                ("target", self.target_words, self.source_words),
            )
            for place, word in enumerate(words)
            if word.reason
        ]
        shares = dict(zip(("source_share", "target_share"), self.shares))
        return {"source": self.source, "target": self.target, **shares, "marks": marks}

    def _repr_html_(self) -> str:
        return f"<style>{_STYLE}</style><div class=xling>{self._html()}</div>"

    def _html(self) -> str:
        def shown(text: str, reason: str | None) -> str:
            text = html.escape(text)
            return text if reason is None else f"<mark class={reason}>{text}<small>{reason}</small></mark>"

        texts = ("".join(shown(text, reason) for text, reason in pieces) for pieces in self._pieces())
        return "".join(f"<p dir=auto>{text}</p>" for text in texts) + f"<footer>{html.escape(self.summary())}</footer>"

    def _pieces(self) -> Iterator[list[tuple[str, str | None]]]:
        """Both texts in pieces, neighbouring words of one reason together, with the reason of each."""
        for text, words in ((self.source, self.source_words), (self.target, self.target_words)):
            spans = word_spans(text, [word.text for word in words])
            pieces: list[tuple[str, str | None]] = []
            end = 0
            for reason, run in groupby(range(len(words)), key=lambda place: words[place].reason):
                places = list(run)
                begin, after = spans[places[0]][0], end
                end = spans[places[-1]][1]
                pieces += [(text[after:begin], None), (text[begin:end], reason)]
            yield [piece for piece in (*pieces, (text[end:], None)) if piece[0]]


@dataclass(frozen=True)
class ExplainReport:
    """Explanations of pairs.

    Attributes:
        pairs: In order.
        layer: Whose token states were compared.
        threshold: Similarity from which two words are partners.
        signature: What marks depend on besides the model.
    """

    pairs: list[PairExplanation]
    layer: int
    threshold: float
    signature: str

    @property
    def words(self) -> dict[str, int]:
        """Marked words, by reason."""
        counts = Counter(word.reason for pair in self.pairs for word in pair.marked)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}

    def summary(self) -> str:
        """How many pairs and words are marked, and why."""
        words = ", ".join(f"{count:,} {reason}" for reason, count in self.words.items())
        marked = sum(bool(pair.marked) for pair in self.pairs)
        return f"{marked:,} of {len(self.pairs):,} pairs with marks" + (f"; words: {words}" if words else "")

    def chosen(self, *, worst: int | None = None, every: bool = False) -> list[tuple[int, PairExplanation]]:
        """Pairs with marks, by their number, counted from 1.

        Args:
            worst: At most so many, those with the smallest share of words with a partner, smallest first.
            every: Those without marks, too.
        """
        rows = [(number, pair) for number, pair in enumerate(self.pairs, 1) if every or pair.marked]
        return rows if worst is None else sorted(rows, key=lambda row: min(row[1].shares))[:worst]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "layer": self.layer,
            "threshold": self.threshold,
            "words": self.words,
            "pairs": [pair.as_dict() for pair in self.pairs],
        }

    def page(self, *, title: str = "Words without a partner", **choice: Any) -> str:
        """A page of HTML that needs nothing else, for any width, light and dark.

        Args:
            title: Its heading.
            choice: Of :meth:`chosen`.
        """
        legend = "".join(f"<li><mark class={reason}>{reason}</mark> {text}" for reason, text in REASONS.items())
        rows = "".join(f"<section><b>{number:,}</b>{pair._html()}</section>" for number, pair in self.chosen(**choice))
        return (
            "<!doctype html><html lang=en style='color-scheme:light dark'><meta charset=utf-8>"
            "<meta name=viewport content='width=device-width'>"
            f"<title>{html.escape(title)}</title><style>{_STYLE}</style><body class=xling><h1>{html.escape(title)}</h1>"
            f"<p>{html.escape(self.summary())}</p><ul>{legend}</ul>{rows}<footer>{html.escape(self.signature)}</footer>"
        )


_STYLE = """
.xling{font:1rem/1.7 system-ui,sans-serif;overflow-wrap:anywhere}
body.xling{max-width:50rem;margin:auto;padding:1rem}
.xling h1{font-size:1.4rem}.xling ul{list-style:none;padding:0}.xling p{margin:.2rem 0}
.xling section{border-top:1px solid #8886;padding:.6rem 0}
.xling footer,.xling b{font-size:.8rem;font-weight:400;opacity:.75}
.xling mark{--hue:0;background:hsl(var(--hue) 80% 50%/.22);color:inherit;
border-bottom:2px solid hsl(var(--hue) 70% 45%);border-radius:.2rem;padding:0 .15rem}
.xling mark.added{--hue:215}.xling mark.number{--hue:285}.xling mark.untranslated{--hue:38}
.xling mark small{font-size:.65rem;margin-left:.3rem;opacity:.8}
"""


@checked
def explain_pairs(
    model: SentenceTransformer,
    sources: Sequence[str | Sequence[str]],
    targets: Sequence[str | Sequence[str]],
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    layer: int | None = None,
    threshold: float = THRESHOLD,
    name: str = "pairs",
    batch_size: int = 32,
    show_progress_bar: bool = False,
) -> ExplainReport:
    """Mark the words of each pair that have no partner in the other sentence, with the reason.

    ``number``: the digits of the pair contradict each other, as :class:`~st_xling.mining.guards.NumbersGuard` reads
    them, and the other sentence does not have this number. ``untranslated``: the word stands in both sentences, and
    here in a script that is not the sentence's; or, where both languages are named, with a word beside it or alone it
    is surely of the other language. Names, which are capitalised, and cognates pass. ``missing`` and ``added``: a
    content word of source or target that is not like any word of the other sentence.

    Args:
        model: An encoder with a fast tokenizer.
        sources: Sentences, split by :func:`~st_xling.models.split_words`; or lists of their words.
        targets: Their translations, the same.
        source_language: Code of the sources' language.
        target_language: Code of the targets' language.
        layer: Whose token states are compared, counted from 1; default: as :func:`~st_xling.models.align_words`.
        threshold: Similarity to a word of the other sentence from which a content word has a partner, in (0, 1).
        name: Of the data, for the signature.
        batch_size: Most pairs that are encoded together.
        show_progress_bar: Show one on stderr.

    Raises:
        ValueError: As :func:`~st_xling.models.align_words`; a threshold outside (0, 1).

    Example:
        >>> from st_xling.mining import explain_pairs
        >>> from st_xling.models import tiny_encoder
        >>> sources, targets = ["Das Haus hat 3 Türen."], ["The house has 4 doors."]
        >>> model = tiny_encoder(sources + targets, vocabulary=100, hidden_size=16)
        >>> [word.text for word in explain_pairs(model, sources, targets).pairs[0].marked if word.reason == "number"]
        ['3', '4']
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must lie in (0, 1): got {threshold}; {THRESHOLD} is the usual choice.")
    layer = default_layer(model) if layer is None else layer
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
    cosines = word_similarities(model, sources, targets, layer=layer, **options)
    words = [
        [split_words(text) if isinstance(text, str) else list(text) for text in some] for some in (sources, targets)
    ]
    foreign = _foreign_words(words[0], words[1], (source_language, target_language))
    pairs = []
    for row, (source, target, table) in enumerate(zip(*words, cosines)):
        similarities = _standing_out(table.numpy())
        one, other = (text if isinstance(text, str) else " ".join(text) for text in (sources[row], targets[row]))
        numbers = quantities(one), quantities(other)
        wrong = NumbersGuard().verdict(*numbers) is not None
        sides = []
        for side, (lacks, texts, rows) in enumerate(
            (("missing", source, similarities), ("added", target, similarities.T))
        ):
            explained = []
            for place, text in enumerate(texts):
                content, similarity, nearest = is_content(text), float("nan"), None
                if not np.isnan(rows[place]).all():
                    nearest = int(np.nanargmax(rows[place]))
                    similarity = float(rows[place, nearest])
                reason = None
                if wrong and leftovers(quantities(text), numbers[1 - side])[0]:
                    reason = "number"
                elif (row, side, place) in foreign:
                    reason = "untranslated"
                elif content and (similarity < threshold or not rows.shape[1]):
                    reason = lacks
                explained.append(ExplainedWord(text, content, similarity, nearest, reason))
            sides.append(explained)
        pairs.append(PairExplanation(one, other, *sides))
    data = f"{name}@{sha8([list(sources), list(targets)])}"
    languages = [code or "und" for code in (source_language, target_language)]
    signature = sign(
        "explain", languages=languages, layers=[layer], threshold=threshold, data=data, model=model_options(model)
    )
    return ExplainReport(pairs, layer, threshold, signature)


def is_content(word: str) -> bool:
    """Whether a translation should have a partner of it, see :class:`ExplainedWord`; by its form alone.

    Example:
        >>> [word for word in ["The", "house", "of", "3", "EU", "车", "-"] if is_content(word)]
        ['house', '3', 'EU', '车']
    """
    letters = "".join(character for character in word if unicodedata.category(character)[0] in "LM")
    long = weighted_length(letters) >= _LETTERS
    return long or any(map(str.isdigit, word)) or (len(letters) > 1 and word.isupper())


def _standing_out(cosines: np.ndarray) -> np.ndarray:
    """Cosines above those of words that are no partners, as a share of what is possible above these.

    Between token states all cosines are high, how high depends on encoder, layer and languages: what is no largest one
    of its row and column says so. *Shape:* ``(source words, target words)``
    """
    known = np.nan_to_num(cosines, nan=-np.inf)
    others = np.isfinite(known) & (cosines.size > 1)
    for axis in (0, 1):
        if cosines.size and cosines.shape[axis] > 1:
            others &= known < known.max(axis=axis, keepdims=True)
    usual = float(cosines[others].mean()) if others.any() else 0.0
    return (cosines - usual) / (1 - usual)


def _script(letter: str) -> str:
    """Of a letter; those that Chinese and Japanese share are one."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA") else name


def _foreign_words(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], languages: tuple[str | None, str | None]
) -> set[tuple[int, int, int]]:
    """Row, side and position of the words that are copied from the other sentence and in its language."""
    found: set[tuple[int, int, int]] = set()
    asked: list[tuple[str, list[tuple[int, int, int]]]] = []
    for row, pair in enumerate(zip(sources, targets)):
        folded = [[word.casefold() for word in words] for words in pair]
        common = {word for word in set(folded[0]) & set(folded[1]) if any(map(str.isalpha, word))}
        for side, words in enumerate(pair) if common else ():
            scripts = Counter(
                _script(letter)
                for word, key in zip(words, folded[side])
                for letter in word
                if key not in common and letter.isalpha()
            )
            own = scripts.most_common(1)[0][0] if scripts else None
            kinds = [_script(next(filter(str.isalpha, word))) if word in common else None for word in folded[side]]
            for script, run in groupby(range(len(words)), key=kinds.__getitem__):
                places = list(run)
                text = " ".join(words[place] for place in places)
                if script is None or own is None:
                    continue
                marks = [(row, side, place) for place in places]
                # In other scripts names, terms and code keep Latin letters; all else is written in the own script.
                if script != own and (script != "LATIN" or (text.islower() and len(places) > 1)):
                    found.update(marks)
                elif script == own and any(word.islower() for word in text.split()) and len(text) > _LETTERS:
                    asked.append((text, marks))
    try:
        if asked and languages[0] and languages[1]:
            odds = [expected_odds([text for text, _ in asked], [code or ""] * len(asked)) for code in languages]
            for place, (_, marks) in enumerate(asked):
                side = marks[0][1]
                if odds[side][place][1] < _FOREIGN * odds[1 - side][place][1]:
                    found.update(marks)
    except LanguageUnknown as error:
        logger.warning("copied words are told apart by script alone: %s", error)
    return found


def with_text_columns(spec: str) -> str:
    """A data spec that names the columns of the sentences, if its file is one that ``mine`` or ``score`` wrote: behind
    a score, and in what ``mine`` wrote behind the ids of both; others as they are."""
    parsed = parse_data_spec(spec)
    path = Path(parsed.location) if isinstance(parsed.location, str) else Path()
    if not path.is_file() or file_ending(unpacked_name(path)) != ".tsv" or "columns" in parsed.options:
        return spec
    rows = [line.decode("utf-8", "replace").split("\t") for line in islice(raw_lines(path), 100)]
    if not rows or not all(len(row) > 2 and re.fullmatch(r"-?(\d+\.\d+(e[-+]\d+)?|inf)", row[0]) for row in rows):
        return spec
    ids = all(len(row) > 4 and re.fullmatch("[!-~]+", row[1] + row[2]) for row in rows)
    return f"{spec}{'&' if parsed.options else '?'}columns={'3,4' if ids else '1,2'}"
