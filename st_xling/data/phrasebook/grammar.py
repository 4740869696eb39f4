"""What the grammars share: lexicons, words tagged with what they say, sentences, and word alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from st_xling.data.phrasebook.meanings import Clause, NounPhrase

# Concept -> its forms, written in full rather than derived by rules.
Table = dict[str, tuple[str, ...]]

# A word and the meaning slots it realises, e.g. ("cats", ("main.subject.noun",)).
Word = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Phrase:
    """A rendered sentence.

    Args:
        text: The sentence.
        tokens: Its words; joined by spaces (in Chinese by nothing) they give ``text``.
        slots: For every token, the slots of the meaning that it realises; empty for punctuation and the like.
    """

    text: str
    tokens: tuple[str, ...]
    slots: tuple[tuple[str, ...], ...]


def read_table(name: str) -> list[list[str]]:
    """The cells of a tab-separated file of this package; ``-`` is an empty cell, and ``#`` opens a comment."""
    text = (files(__package__) / "lexicons" / f"{name}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return [["" if cell == "-" else cell for cell in row] for row in rows]


def lexicon(language: str, *parts: str) -> list[Any]:
    """Of each part (``noun``, ``verb``, …) the table: concept → forms, or its form where every concept has just one.

    The file of a language holds a concept a line: part, concept, forms; comments say what the forms of a part are.
    """
    tables: dict[str, Table] = {part: {} for part in parts}
    for part, concept, *forms in read_table(language):
        if part in tables:
            assert concept not in tables[part], f"{language}: {part} {concept} is listed twice"
            tables[part][concept] = tuple(forms)
    return [
        {concept: forms[0] for concept, forms in table.items()} if set(map(len, table.values())) == {1} else table
        for table in tables.values()
    ]


def tag(form: str, *slots: str) -> list[Word]:
    """Split a form at its spaces; every piece realises the same slots."""
    if " " not in form:
        return [(form, slots)] if form else []
    return [(piece, slots) for piece in form.split()]


def merge(words: list[Word], fuse: Callable[[str, str], str | None]) -> list[Word]:
    """Fuse neighbours (``de le`` to ``du``, ``le ami`` to ``l'ami``), from right to left, uniting their slots."""
    merged: list[Word] = []
    for text, slots in reversed(words):
        joined = fuse(text, merged[-1][0]) if merged else None
        if joined is None:
            merged.append((text, slots))
        else:
            merged[-1] = (joined, slots + merged[-1][1])
    merged.reverse()
    return merged


def contractions(pairs: Mapping[tuple[str, str], str]) -> Callable[[str, str], str | None]:
    """A ``fuse`` for :func:`merge` that replaces listed pairs of words."""
    return lambda left, right: pairs.get((left, right))


def sentence(words: list[Word], *, opening: str = "", closing: str = ".") -> Phrase:
    """Capitalise, punctuate and join words that are written with spaces between them."""
    tokens = [text for text, _ in words]
    tokens[0] = opening + tokens[0][0].upper() + tokens[0][1:]
    tokens[-1] += closing
    # French sets a space before its question mark; the mark is then a token of its own.
    slots = [slots for _, slots in words]
    if closing.startswith(" "):
        tokens[-1:] = tokens[-1].split(" ")
        slots.append(())
    return Phrase(" ".join(tokens), tuple(tokens), tuple(slots))


def comma(words: list[Word]) -> list[Word]:
    """The same words with a comma on the last."""
    text, slots = words[-1]
    return [*words[:-1], (text + ",", slots)]


def flatten(parts: Iterable[list[Word]]) -> list[Word]:
    """Concatenate the parts of a clause."""
    return [word for part in parts for word in part]


def complements(
    clause: Clause,
    slot: str,
    noun_phrase: Callable[[NounPhrase, str], list[Word]],
    *,
    place: str,
    object: str = "",
    recipient: str = "",
    very: str = "",
    quality: str = "",
) -> list[Word]:
    """What follows the verb where languages order it alike: quality, object, recipient, place, with prepositions."""
    words = tag(very if quality and clause.very else "", slot + "very") + tag(quality, slot + "quality")
    for role, preposition in (("object", object), ("recipient", recipient), ("place", place)):
        if phrase := getattr(clause, role):
            words += tag(preposition, f"{slot}{role}.case") + noun_phrase(phrase, f"{slot}{role}.")
    return words


def align(source: Phrase, target: Phrase) -> list[list[int]]:
    """Pair the tokens of two renderings of one meaning that realise the same slot.

    Args:
        source: One rendering.
        target: Another rendering of the same meaning.
    Returns:
        Pairs ``[source index, target index]``, sorted.
    """
    where: dict[str, list[int]] = {}
    for j, slots in enumerate(target.slots):
        for slot in slots:
            where.setdefault(slot, []).append(j)
    pairs = {(i, j) for i, slots in enumerate(source.slots) for slot in slots for j in where.get(slot, ())}
    return [[i, j] for i, j in sorted(pairs)]
