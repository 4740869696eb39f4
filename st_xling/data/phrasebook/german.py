"""German: case and gender on determiners and adjectives, the finite verb second, first or last, nicht in its field."""

from st_xling.data.phrasebook.grammar import Phrase, Word, flatten, lexicon, linked, merge, sentence, tag, tags
from st_xling.data.phrasebook.meanings import FRONTED, Clause, Meaning, NounPhrase

WORDS = lexicon("de")

_CASES = ("nominative", "accusative", "dative")


def noun_phrase(phrase: NounPhrase, slot: str, case: str) -> list[Word]:
    """Render a noun phrase in a case, e.g. "diesen drei alten Büchern"."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    gender, nominative, oblique, plural, dative_plural = WORDS.noun[phrase.head]
    row, many = _CASES.index(case), phrase.count != 1
    noun = (dative_plural if row == 2 else plural) if many else (oblique if row else nominative)
    cell = 4 * row + (3 if many else "mfn".index(gender))
    if phrase.determiner in ("the", "this"):
        determiner, declension = WORDS.ending[phrase.determiner][cell], "weak"
    elif phrase.determiner not in WORDS.owner and many:
        determiner, declension = "", "strong"
    else:
        determiner = WORDS.owner.get(phrase.determiner, "ein") + WORDS.ending["ein"][cell]
        declension = "mixed"
    adjective = WORDS.adjective[phrase.adjective][1] + WORDS.ending[declension][cell] if phrase.adjective else ""
    article = ("count" if phrase.determiner == "a" else "determiner", determiner)
    return tags(
        slot, article, ("count", WORDS.number.get(str(phrase.count), "")), ("adjective", adjective), ("noun", noun)
    )


def _conjugate(verb: str, subject: NounPhrase) -> str:
    forms = WORDS.verb[verb]
    if subject.plural:
        return "sind" if verb == "be" else forms[0]
    return forms[1 if subject.head == "i" else 2 if subject.head == "you" else 3]


def _preterite(verb: str, subject: NounPhrase) -> str:
    form = WORDS.verb[verb][6]
    if subject.head == "you":
        return form + "st"
    if subject.plural:
        return form + ("n" if form.endswith("e") else "en")
    return form


def _particle(verb: str) -> str:
    return WORDS.verb[verb][7] if len(WORDS.verb[verb]) > 7 else ""


def _verb(clause: Clause, slot: str, *, narrated: bool) -> tuple[list[Word], list[Word]]:
    """The finite verb and the closing bracket: particle, participle or infinitive."""
    tense, verb, name = slot + "tense", slot + "verb", clause.predicate
    forms, particle = WORDS.verb[name], _particle(name)
    if clause.tense == "past" and (narrated or name == "be"):
        return [(_preterite(name, clause.subject), (verb, tense))], tag(particle, verb)
    if clause.tense == "past":
        auxiliary = "have" if forms[5] == "haben" else "be"
        return [(_conjugate(auxiliary, clause.subject), (tense,))], [(particle + forms[4], (verb,))]
    if clause.tense in ("future", "want", "can", "must"):
        return [(_conjugate(clause.tense, clause.subject), (tense,))], [(particle + forms[0], (verb,))]
    return [(_conjugate(name, clause.subject), (verb, tense))], tag(particle, verb)


def _place(clause: Clause, slot: str) -> list[Word]:
    if clause.place is None:
        return []
    if clause.predicate == "come_back":
        preposition = "von" if clause.place.head in WORDS.at else "aus"
    elif clause.predicate in ("go", "walk", "drive", "run"):
        preposition = "zu"
    else:
        preposition = WORDS.at.get(clause.place.head, "in")
    on_foot = tag("zu Fuß" if clause.predicate == "walk" else "", slot + "verb")
    return on_foot + tag(preposition, slot + "place.case") + noun_phrase(clause.place, slot + "place.", "dative")


def _middle(clause: Clause, slot: str, *, timed: bool) -> list[Word]:
    """The field between the brackets: time, recipient, object and place, with nicht among them."""
    time = tag(WORDS.time.get(clause.time, "") if timed else "", slot + "time")
    recipient = noun_phrase(clause.recipient, slot + "recipient.", "dative") if clause.recipient else []
    target: list[Word] = []
    if clause.object:
        case = "dative" if clause.predicate == "help" else "accusative"
        target = noun_phrase(clause.object, slot + "object.", case)
    place = _place(clause, slot)
    # What is new comes late: an indefinite object follows the place, a definite one precedes it.
    if not clause.negated and clause.object is not None and clause.object.determiner == "a":
        return flatten((time, recipient, place, target))
    negation = tag("nicht" if clause.negated else "", slot + "negation")
    very = "sehr" if clause.very and clause.quality else ""
    quality = WORDS.adjective[clause.quality][0] if clause.quality else ""
    return flatten((time, recipient, target, negation, place, tags(slot, ("very", very), ("quality", quality))))


def clause_words(clause: Clause, slot: str, meaning: Meaning) -> list[Word]:
    """Render a clause: the finite verb is last in a subordinate one, first in a question, else second."""
    narrated = meaning.link == "when"  # the past is then the preterite
    if clause.predicate == "exist":
        there = noun_phrase(clause.subject, slot + "subject.", "accusative")
        return flatten((_place(clause, slot), tag("gibt es", slot + "verb"), there))
    subject = noun_phrase(clause.subject, slot + "subject.", "nominative")
    finite, bracket = _verb(clause, slot, narrated=narrated)
    last, first = slot != "main.", meaning.question
    front = not last and not first and clause.time in FRONTED
    middle = _middle(clause, slot, timed=not front)
    if last:
        # A separated particle joins its verb again: "anruft", "aufmachte".
        particle = _particle(clause.predicate)
        if bracket and (narrated or (clause.tense != "past" and bracket[0][0] == particle)):
            bracket, finite = [], [(bracket[0][0] + finite[0][0], finite[0][1])]
        return flatten((subject, middle, bracket, finite))
    if first:
        return flatten((finite, subject, middle, bracket))
    if front and clause.time:
        return flatten((tag(WORDS.time[clause.time], slot + "time"), finite, subject, middle, bracket))
    return flatten((subject, finite, middle, bracket))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in German."""
    line = merge(linked(meaning, clause_words, WORDS.link, pause=True), WORDS.contraction)
    return sentence(line, closing="?" if meaning.question else ".")
