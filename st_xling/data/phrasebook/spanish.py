"""Spanish: agreement, dropped pronouns, personal a, al and del, ser and estar, the doubled dative le or les."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    agreement,
    complements,
    flatten,
    lexicon,
    linked,
    merge,
    sentence,
    tag,
    tags,
)
from st_xling.data.phrasebook.meanings import FRONTED, KIN, PEOPLE, Clause, Meaning, NounPhrase

WORDS = lexicon("es")
FUTURE = ("é", "ás", "á", "emos", "án")

_PEOPLE = frozenset((*PEOPLE, *KIN))


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "estos tres libros viejos"; dropped pronouns are empty."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    form = agreement(phrase, WORDS.noun)
    return tags(
        slot,
        ("count" if phrase.determiner == "a" else "determiner", WORDS.determiner[phrase.determiner][form]),
        ("count", WORDS.number.get(str(phrase.count), "")),
        ("noun", WORDS.noun[phrase.head][1 + phrase.plural]),
        ("adjective", WORDS.adjective[phrase.adjective][form] if phrase.adjective else ""),
    )


def _verb(clause: Clause, slot: str) -> list[Word]:
    """The verb group; with a dropped subject its finite word says the subject too."""
    person, verb = clause.subject.person, slot + "verb"
    finite: tuple[str, ...] = (slot + "tense",)
    if WORDS.pronoun.get(clause.subject.head) == "":
        finite = (slot + "tense", slot + "subject.noun")
    name = WORDS.adjective[clause.quality][4] if clause.quality else clause.predicate
    forms = WORDS.verb[name]
    if clause.tense == "future":
        return [(forms[2] + FUTURE[person], (verb, *finite))]
    if clause.tense == "past":
        return [(WORDS.past[name].split()[person], (verb, *finite))]
    if clause.tense == "progressive":
        return [(WORDS.verb["estar"][0].split()[person], finite), (forms[1], (verb,))]
    if clause.tense in ("want", "can", "must"):
        that = tag("que" if clause.tense == "must" else "", slot + "tense")
        return [(WORDS.verb[clause.tense][0].split()[person], finite), *that, (forms[3], (verb,))]
    return [(forms[0].split()[person], (verb, *finite))]


def clause_words(clause: Clause, slot: str, meaning: Meaning) -> list[Word]:
    """Render a clause, before contraction."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    where = WORDS.to.get(clause.predicate, "en")
    if clause.predicate == "exist":
        return flatten((tag("hay", slot + "verb"), subject, complements(clause, slot, noun_phrase, place=where)))
    time = tag(WORDS.time.get(clause.time, ""), slot + "time")
    front = slot == "main." and not meaning.question and clause.time in FRONTED
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
        quality=WORDS.adjective[clause.quality][agreement(clause.subject, WORDS.noun)] if clause.quality else "",
    )
    return flatten((time if front else [], subject, before, _verb(clause, slot), rest, [] if front else time))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in Spanish."""
    opening, closing = ("¿", "?") if meaning.question else ("", ".")
    return sentence(
        merge(linked(meaning, clause_words, WORDS.link), WORDS.contraction), opening=opening, closing=closing
    )
