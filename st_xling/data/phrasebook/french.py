"""French: agreement in gender and number, adjectives before or after, elision, contraction, ne … pas."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    comma,
    complements,
    flatten,
    lexicon,
    merge,
    sentence,
    tag,
)
from st_xling.data.phrasebook.meanings import FRONTED, Clause, Meaning, NounPhrase

NOUNS, ADJECTIVES, VERBS, TIMES, AT, DETERMINERS = lexicon(
    "fr", "noun", "adjective", "verb", "time", "at", "determiner"
)
# Adjectives that stand before their noun.
PREPOSED = frozenset(("young", "aged", "big", "small", "new", "old", "beautiful"))
FUTURE = ("ai", "as", "a", "ons", "ont")
WAS = ("étais", "étais", "était", "étions", "étaient")
NUMBERS = ("", "", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf")
PRONOUNS = {"i": "je", "you": "tu", "he": "il", "she": "elle", "we": "nous", "they": "ils"}

_MOTION = {"come_back": "de", "run": "jusqu'à", **dict.fromkeys(("go", "walk", "drive"), "à")}
_VOWELS = frozenset("aeiouyhâàéèêîôûœ")
_ELIDED = {"le": "l'", "la": "l'", "je": "j'", "ne": "n'", "que": "qu'", "de": "d'"}
_CONTRACTED = {
    ("à", "le"): "au", ("à", "les"): "aux", ("jusqu'à", "le"): "jusqu'au", ("jusqu'à", "les"): "jusqu'aux",
    ("de", "le"): "du", ("de", "les"): "des",
}  # fmt: skip


def _fuse(left: str, right: str) -> str | None:
    """L'ami, j'achète, n'a, qu'il; au, aux, du. Of the numerals none here elides: "les huit"."""
    if left in _ELIDED and right[0] in _VOWELS and right != "huit":
        return _ELIDED[left] + right
    return _CONTRACTED.get((left, right))


def _feminine(phrase: NounPhrase) -> bool:
    return phrase.head == "she" or (phrase.head in NOUNS and NOUNS[phrase.head][0] == "f")


def _agreeing(adjective: str, phrase: NounPhrase) -> str:
    return ADJECTIVES[adjective][_feminine(phrase) + 2 * phrase.plural]


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "ce vieil homme", "mes trois chats noirs"."""
    if phrase.head in PRONOUNS:
        return [(PRONOUNS[phrase.head], (slot + "noun",))]
    plural, feminine = phrase.plural, _feminine(phrase)
    noun = NOUNS[phrase.head][1 + plural]
    before = after = ""
    if phrase.adjective in PREPOSED and phrase.adjective:
        before = _agreeing(phrase.adjective, phrase)
        if noun[0] in _VOWELS and not plural and not feminine:
            before = ADJECTIVES[phrase.adjective][-1] if len(ADJECTIVES[phrase.adjective]) > 4 else before
    elif phrase.adjective:
        after = _agreeing(phrase.adjective, phrase)
    vowel = (before or noun)[0] in _VOWELS
    forms = DETERMINERS[phrase.determiner]
    determiner = forms[2] if plural else forms[feminine + 3 * vowel]
    return flatten((
        tag(determiner, slot + ("count" if phrase.determiner == "a" else "determiner")),
        tag(NUMBERS[phrase.count], slot + "count"),
        tag(before, slot + "adjective"),
        tag(noun, slot + "noun"),
        tag(after, slot + "adjective"),
    ))  # fmt: skip


def _verb(clause: Clause, slot: str) -> tuple[list[Word], list[Word]]:
    """The finite verb, and the participle or infinitive with any fixed complement."""
    tense, verb, name, person = slot + "tense", slot + "verb", clause.predicate, clause.subject.person
    forms = VERBS[name]
    complement = tag(forms[5], verb) if len(forms) > 5 else []
    if clause.tense == "future":
        return [(forms[3] + FUTURE[person], (verb, tense))], complement
    if clause.tense == "past" and name == "be":
        return [(WAS[person], (verb, tense))], complement
    if clause.tense == "past":
        participle, auxiliary = forms[1], "have"
        if forms[2] == "être":
            auxiliary = "be"
            participle += "e" * _feminine(clause.subject) + "s" * clause.subject.plural
        return [(VERBS[auxiliary][0].split()[person], (tense,))], [(participle, (verb,)), *complement]
    if clause.tense in ("want", "can", "must"):
        return [(VERBS[clause.tense][0].split()[person], (tense,))], [(forms[4], (verb,)), *complement]
    return [(forms[0].split()[person], (verb, tense))], complement


def _preposition(clause: Clause) -> str:
    if clause.place is None or clause.predicate in _MOTION:
        return _MOTION.get(clause.predicate, "")
    return AT[clause.place.head][clause.place.determiner != "the" or clause.place.adjective is not None]


def clause_words(clause: Clause, slot: str, *, fronting: bool = True) -> list[Word]:
    """Render a clause, before elision and contraction."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    if clause.predicate == "exist":
        place = complements(clause, slot, noun_phrase, place=_preposition(clause))
        return flatten((tag("il y a", slot + "verb"), subject, place))
    finite, verb = _verb(clause, slot)
    time = tag(TIMES[clause.time], slot + "time") if clause.time else []
    front = bool(time) and clause.time in FRONTED and fronting
    no, not_ = (tag(word if clause.negated else "", slot + "negation") for word in ("ne", "pas"))
    rest = complements(
        clause,
        slot,
        noun_phrase,
        object="à" if clause.predicate == "visit" else "",
        recipient="à",
        place=_preposition(clause),
        very="très",
        quality=_agreeing(clause.quality, clause.subject) if clause.quality else "",
    )
    opening = comma(time) if front else []
    return flatten((opening, subject, no, finite, not_, verb, rest, [] if front else time))


_LINKS = {"that": "que", "because": "parce que", "when": "quand"}


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in French."""
    line = clause_words(meaning.main, "main.", fronting=not meaning.question)
    if meaning.question:
        line = tag("est-ce que", "question") + line
    if meaning.other and meaning.link:
        line += tag(_LINKS[meaning.link], "link") + clause_words(meaning.other, "other.", fronting=False)
    return sentence(merge(line, _fuse), closing=" ?" if meaning.question else ".")
