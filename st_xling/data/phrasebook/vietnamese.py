"""Vietnamese: classifiers, adjectives and demonstratives after the noun, tense in particles before the verb."""

from st_xling.data.phrasebook.grammar import Phrase, Word, complements, flatten, lexicon, linked, sentence, tag, tags
from st_xling.data.phrasebook.meanings import FRONTED, KIN, MANY, PLACES, Clause, Meaning, NounPhrase

WORDS = lexicon("vi")

_PLACES = frozenset(PLACES)


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "ba con mèo màu đen này"."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    classifier, noun = WORDS.noun[phrase.head]
    if phrase.head in _PLACES and phrase.determiner == "the" and not phrase.adjective:
        classifier = ""  # To school and to market: "đến trường", "đến chợ".
    number = ("number", "những") if phrase.count == MANY else ("count", "")
    if phrase.count > 1 or (phrase.count == 1 and phrase.determiner == "a"):
        number = ("count", WORDS.number.get(str(phrase.count), ""))
    closing = "này" if phrase.determiner == "this" else ""
    if phrase.determiner in WORDS.owner:
        # One's own family goes without "của".
        closing = ("" if phrase.head in KIN else "của ") + WORDS.owner[phrase.determiner]
    adjective = WORDS.adjective[phrase.adjective][0] if phrase.adjective else ""
    return tags(
        slot, number, ("classifier", classifier), ("noun", noun), ("adjective", adjective), ("determiner", closing)
    )


def _particles(clause: Clause, slot: str) -> list[Word]:
    if not clause.negated:
        return tag(WORDS.particle[clause.tense][0], slot + "tense")
    pieces = WORDS.particle[clause.tense][1].split()
    return [(piece, (slot + ("negation" if piece == "không" else "tense"),)) for piece in pieces]


def clause_words(clause: Clause, slot: str, meaning: Meaning) -> list[Word]:
    """Render a clause; after "khi", when, the particle of tense is left out."""
    main = slot == "main."
    subject = noun_phrase(clause.subject, slot + "subject.")
    rest = complements(clause, slot, noun_phrase, recipient="cho", place=WORDS.to.get(clause.predicate, "ở"))
    if clause.predicate == "exist":
        return flatten((tag("có", slot + "verb"), subject, rest))
    if clause.quality is None:
        plain = not main and meaning.link == "when"
        verb = ([] if plain else _particles(clause, slot)) + tag(WORDS.verb[clause.predicate], slot + "verb")
    else:
        # Adjectives are verbs here: no copula, and no particle of the past.
        future = ("tense", "sẽ" if clause.tense == "future" else "")
        negation, very = ("negation", "không" if clause.negated else ""), ("very", "rất" if clause.very else "")
        quality = tag(WORDS.adjective[clause.quality][-1], slot + "quality", slot + "verb")
        verb = tags(slot, future, negation, very) + quality
    time = tag(WORDS.time.get(clause.time, ""), slot + "time")
    front = clause.predicate == "be" or (main and (meaning.question or clause.time in FRONTED))
    return flatten((time if front else [], subject, verb, rest, [] if front else time))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in Vietnamese."""
    main = clause_words(meaning.main, "main.", meaning)
    if meaning.question:
        main = tag("có phải", "question") + main + tag("không", "question")
    return sentence(linked(meaning, clause_words, WORDS.link, main=main), closing="?" if meaning.question else ".")
