"""What the grammars share: lexicons, words tagged with what they say, sentences, and word alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from st_xling.data.phrasebook.meanings import Clause, Meaning, NounPhrase, read_table

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


def lexicon(language: str) -> SimpleNamespace:
    """The parts of a lexicon (``noun``, ``verb``, …): of each, concept → forms, or its form where all have just one.

    The file of a language holds a concept a line: part, concept, forms; comments say what the forms of a part are.
    """
    parts: dict[str, dict[str, Any]] = {}
    for part, concept, *forms in read_table(language):
        assert concept not in parts.setdefault(part, {}), f"{language}: {part} {concept} is listed twice"
        parts[part][concept] = tuple(forms)
    for table in parts.values():
        if set(map(len, table.values())) == {1}:
            table.update((concept, forms[0]) for concept, forms in table.items())
    return SimpleNamespace(**parts)


def tag(form: str, *slots: str) -> list[Word]:
    """Split a form at its spaces; every piece realises the same slots."""
    if " " not in form:
        return [(form, slots)] if form else []
    return [(piece, slots) for piece in form.split()]


def tags(slot: str, *parts: tuple[str, str]) -> list[Word]:
    """The forms of a phrase in a row, each after the part that it says: ``("determiner", "the"), ("noun", "cat")``."""
    return [word for part, form in parts for word in tag(form, slot + part)]


def agreement(phrase: NounPhrase, nouns: Mapping[str, Sequence[str]]) -> int:
    """Place of the form that agrees: masculine, feminine, masculine plural, feminine plural."""
    feminine = phrase.head == "she" or (phrase.head in nouns and nouns[phrase.head][0] == "f")
    return feminine + 2 * phrase.plural


def linked(
    meaning: Meaning,
    clause_words: Callable[[Clause, str, Meaning], list[Word]],
    links: Mapping[str, str],
    *,
    main: list[Word] | None = None,
    pause: bool = False,
) -> list[Word]:
    """The main clause, or ``main`` in its place, and a subordinate one behind its conjunction, perhaps a comma."""
    line = clause_words(meaning.main, "main.", meaning) if main is None else main
    if meaning.other and meaning.link:
        other = tag(links[meaning.link], "link") + clause_words(meaning.other, "other.", meaning)
        line = (comma(line) if pause else line) + other
    return line


def merge(
    words: list[Word],
    contracted: Mapping[str, str],
    elide: Callable[[str, str], str | None] = lambda left, right: None,
) -> list[Word]:
    """Fuse neighbours (``de le`` to ``du``, ``le ami`` to ``l'ami``), from right to left, uniting their slots."""
    merged: list[Word] = []
    for text, slots in reversed(words):
        after = merged[-1][0] if merged else ""
        joined = contracted.get(f"{text} {after}") or (elide(text, after) if merged else None)
        if joined is None:
            merged.append((text, slots))
        else:
            merged[-1] = (joined, slots + merged[-1][1])
    merged.reverse()
    return merged


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
