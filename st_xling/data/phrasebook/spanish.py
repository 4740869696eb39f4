"""Spanish: agreement, dropped pronouns, personal a, al and del, ser and estar, the doubled dative le or les."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    complements,
    contractions,
    flatten,
    lexicon,
    merge,
    sentence,
    tag,
)
from st_xling.data.phrasebook.meanings import FRONTED, KIN, PEOPLE, Clause, Meaning, NounPhrase

NOUNS, ADJECTIVES, VERBS, TIMES, DETERMINERS, PAST = lexicon(
    "es", "noun", "adjective", "verb", "time", "determiner", "past"
)
FUTURE = ("é", "ás", "á", "emos", "án")
_MOTION = {"come_back": "de", "go": "a", **dict.fromkeys(("walk", "drive", "run"), "hasta")}
NUMBERS = ("", "", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve")
# The verb says the other persons; "he" and "she" need saying.
PRONOUNS = {"i": "", "you": "", "he": "él", "she": "ella", "we": "", "they": "ellos"}

_PEOPLE = frozenset((*PEOPLE, *KIN))
_AL_DEL = contractions({("a", "el"): "al", ("de", "el"): "del"})


def _feminine(phrase: NounPhrase) -> bool:
    return phrase.head == "she" or (phrase.head in NOUNS and NOUNS[phrase.head][0] == "f")


def _agreeing(adjective: str, phrase: NounPhrase) -> str:
    return ADJECTIVES[adjective][_feminine(phrase) + 2 * phrase.plural]


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "estos tres libros viejos"; dropped pronouns are empty."""
    if phrase.head in PRONOUNS:
        return tag(PRONOUNS[phrase.head], slot + "noun")
    determiner = DETERMINERS[phrase.determiner][_feminine(phrase) + 2 * phrase.plural]
    return flatten((
        tag(determiner, slot + ("count" if phrase.determiner == "a" else "determiner")),
        tag(NUMBERS[phrase.count], slot + "count"),
        tag(NOUNS[phrase.head][1 + phrase.plural], slot + "noun"),
        tag(_agreeing(phrase.adjective, phrase) if phrase.adjective else "", slot + "adjective"),
    ))  # fmt: skip


def _verb(clause: Clause, slot: str) -> list[Word]:
    """The verb group; with a dropped subject its finite word says the subject too."""
    subject, name = clause.subject, clause.predicate
    person = subject.person
    finite: tuple[str, ...] = (slot + "tense",)
    if subject.head in PRONOUNS and not PRONOUNS[subject.head]:
        finite = (slot + "tense", slot + "subject.noun")
    verb = slot + "verb"
    if clause.quality:
        name = ADJECTIVES[clause.quality][4]
    forms = VERBS[name]
    if clause.tense == "future":
        return [(forms[2] + FUTURE[person], (verb, *finite))]
    if clause.tense == "past":
        return [(PAST[name].split()[person], (verb, *finite))]
    if clause.tense == "progressive":
        return [(VERBS["estar"][0].split()[person], finite), (forms[1], (verb,))]
    if clause.tense in ("want", "can", "must"):
        that = tag("que" if clause.tense == "must" else "", slot + "tense")
        return [(VERBS[clause.tense][0].split()[person], finite), *that, (forms[3], (verb,))]
    return [(forms[0].split()[person], (verb, *finite))]


def clause_words(clause: Clause, slot: str, *, fronting: bool = True) -> list[Word]:
    """Render a clause, before contraction."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    where = _MOTION.get(clause.predicate, "en")
    if clause.predicate == "exist":
        return flatten((tag("hay", slot + "verb"), subject, complements(clause, slot, noun_phrase, place=where)))
    time = tag(TIMES[clause.time], slot + "time") if clause.time else []
    front = bool(time) and clause.time in FRONTED and fronting
    before = tag("no" if clause.negated else "", slot + "negation")
    if clause.recipient:
        before += tag("les" if clause.recipient.plural else "le", slot + "recipient.case")
    personal = clause.object and (clause.object.head in _PEOPLE or clause.predicate == "chase")
    rest = complements(
        clause,
        slot,
        noun_phrase,
        object="a" if personal else "",
        recipient="a",
        place=where,
        very="muy",
        quality=_agreeing(clause.quality, clause.subject) if clause.quality else "",
    )
    return flatten((time if front else [], subject, before, _verb(clause, slot), rest, [] if front else time))


_LINKS = {"that": "que", "because": "porque", "when": "cuando"}


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in Spanish."""
    line = clause_words(meaning.main, "main.", fronting=not meaning.question)
    if meaning.other and meaning.link:
        line += tag(_LINKS[meaning.link], "link") + clause_words(meaning.other, "other.", fronting=False)
    opening, closing = ("¿", "?") if meaning.question else ("", ".")
    return sentence(merge(line, _AL_DEL), opening=opening, closing=closing)
