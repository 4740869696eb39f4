"""French: agreement in gender and number, adjectives before or after, elision, contraction, ne … pas."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    agreement,
    comma,
    complements,
    flatten,
    lexicon,
    linked,
    merge,
    sentence,
    tag,
    tags,
)
from st_xling.data.phrasebook.meanings import FRONTED, Clause, Meaning, NounPhrase

WORDS = lexicon("fr")
# Adjectives that stand before their noun.
PREPOSED = frozenset(("young", "aged", "big", "small", "new", "old", "beautiful"))
FUTURE = ("ai", "as", "a", "ons", "ont")
WAS = ("étais", "étais", "était", "étions", "étaient")

_VOWELS = frozenset("aeiouyhâàéèêîôûœ")


def _elide(left: str, right: str) -> str | None:
    """L'ami, j'achète, n'a, qu'il. Of the numerals none here elides: "les huit"."""
    return WORDS.elision[left] + right if left in WORDS.elision and right[0] in _VOWELS and right != "huit" else None


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "ce vieil homme", "mes trois chats noirs"."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    form = agreement(phrase, WORDS.noun)
    noun = WORDS.noun[phrase.head][1 + phrase.plural]
    before = after = ""
    if phrase.adjective:
        forms = WORDS.adjective[phrase.adjective]
        if phrase.adjective not in PREPOSED:
            after = forms[form]
        # Of a masculine before a vowel some have a form of their own: "vieil".
        elif noun[0] in _VOWELS and form == 0:
            before = forms[4 if len(forms) > 4 else 0]
        else:
            before = forms[form]
    vowel = (before or noun)[0] in _VOWELS
    determiner = WORDS.determiner[phrase.determiner][2 if phrase.plural else form + 3 * vowel]
    return tags(
        slot,
        ("count" if phrase.determiner == "a" else "determiner", determiner),
        ("count", WORDS.number.get(str(phrase.count), "")),
        ("adjective", before),
        ("noun", noun),
        ("adjective", after),
    )


def _verb(clause: Clause, slot: str) -> tuple[list[Word], list[Word]]:
    """The finite verb, and the participle or infinitive with any fixed complement."""
    tense, verb, name, person = slot + "tense", slot + "verb", clause.predicate, clause.subject.person
    forms, verbs = WORDS.verb[name], WORDS.verb
    complement = tag(forms[5], verb) if len(forms) > 5 else []
    if clause.tense == "future":
        return [(forms[3] + FUTURE[person], (verb, tense))], complement
    if clause.tense == "past" and name == "be":
        return [(WAS[person], (verb, tense))], complement
    if clause.tense == "past":
        auxiliary = "be" if forms[2] == "être" else "have"
        agreeing = ("", "e", "s", "es")[agreement(clause.subject, WORDS.noun) if auxiliary == "be" else 0]
        return [(verbs[auxiliary][0].split()[person], (tense,))], [(forms[1] + agreeing, (verb,)), *complement]
    if clause.tense in ("want", "can", "must"):
        return [(verbs[clause.tense][0].split()[person], (tense,))], [(forms[4], (verb,)), *complement]
    return [(forms[0].split()[person], (verb, tense))], complement


def clause_words(clause: Clause, slot: str, meaning: Meaning) -> list[Word]:
    """Render a clause, before elision and contraction."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    where = WORDS.to.get(clause.predicate, "")
    if clause.place and not where:
        where = WORDS.at[clause.place.head][clause.place.determiner != "the" or clause.place.adjective is not None]
    if clause.predicate == "exist":
        return flatten((tag("il y a", slot + "verb"), subject, complements(clause, slot, noun_phrase, place=where)))
    finite, verb = _verb(clause, slot)
    time = tag(WORDS.time.get(clause.time, ""), slot + "time")
    front = slot == "main." and not meaning.question and clause.time in FRONTED
    no, not_ = (tag(word if clause.negated else "", slot + "negation") for word in ("ne", "pas"))
    rest = complements(
        clause,
        slot,
        noun_phrase,
        object="à" if clause.predicate == "visit" else "",
        recipient="à",
        place=where,
        very="très",
        quality=WORDS.adjective[clause.quality][agreement(clause.subject, WORDS.noun)] if clause.quality else "",
    )
    return flatten((comma(time) if front else [], subject, no, finite, not_, verb, rest, [] if front else time))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in French."""
    question = tag("est-ce que" if meaning.question else "", "question")
    line = merge(question + linked(meaning, clause_words, WORDS.link), WORDS.contraction, _elide)
    return sentence(line, closing=" ?" if meaning.question else ".")
