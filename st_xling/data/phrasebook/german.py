"""German: case and gender on determiners and adjectives, the finite verb second, first or last, nicht in its field."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    comma,
    contractions,
    flatten,
    lexicon,
    merge,
    sentence,
    tag,
)
from st_xling.data.phrasebook.meanings import FRONTED, Clause, Meaning, NounPhrase

NOUNS, ADJECTIVES, VERBS, TIMES = lexicon("de", "noun", "adjective", "verb", "time")
# Where things happen at a place; "in" for those not listed.
AT = {"market": "auf", "station": "an", "airport": "an", "beach": "an"}
NUMBERS = ("", "", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
PRONOUNS = {"i": "ich", "you": "du", "he": "er", "she": "sie", "we": "wir", "they": "sie"}
POSSESSIVES = {"my": "mein", "your": "dein", "our": "unser"}

_CASES = ("nominative", "accusative", "dative")
_COLUMNS = "mfnp"
# Rows are cases; columns masculine, feminine, neuter, plural.
_DEFINITE = ("der die das die", "den die das die", "dem der dem den")
_THIS = ("dieser diese dieses diese", "diesen diese dieses diese", "diesem dieser diesem diesen")
_EIN = ("- e - e", "en e - e", "em er em en")
_WEAK = ("e e e en", "en e e en", "en en en en")
_MIXED = ("er e es en", "en e es en", "en en en en")
_STRONG_PLURAL = ("e", "e", "en")
_CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("von", "dem"): "vom", ("zu", "dem"): "zum", ("zu", "der"): "zur",
}  # fmt: skip


def _cell(rows: tuple[str, ...], case: int, column: int) -> str:
    return rows[case].split()[column].replace("-", "")


def noun_phrase(phrase: NounPhrase, slot: str, case: str) -> list[Word]:
    """Render a noun phrase in a case, e.g. "diesen drei alten Büchern"."""
    if phrase.head in PRONOUNS:
        return [(PRONOUNS[phrase.head], (slot + "noun",))]
    gender, nominative, oblique, plural, dative_plural = NOUNS[phrase.head]
    row, many = _CASES.index(case), phrase.count != 1
    column = 3 if many else _COLUMNS.index(gender)
    noun = (dative_plural if row == 2 else plural) if many else (oblique if row else nominative)
    role = "determiner"
    endings: tuple[str, ...] = _WEAK
    if phrase.determiner == "the":
        determiner = _cell(_DEFINITE, row, column)
    elif phrase.determiner == "this":
        determiner = _cell(_THIS, row, column)
    elif phrase.determiner in POSSESSIVES:
        determiner, endings = POSSESSIVES[phrase.determiner] + _cell(_EIN, row, column), _MIXED
    elif many:
        determiner, endings = "", ()
    else:
        determiner, endings, role = "ein" + _cell(_EIN, row, column), _MIXED, "count"
    adjective = ""
    if phrase.adjective:
        ending = _cell(endings, row, column) if endings else _STRONG_PLURAL[row]
        adjective = ADJECTIVES[phrase.adjective][1] + ending
    return flatten((
        tag(determiner, slot + role),
        tag(NUMBERS[phrase.count], slot + "count"),
        tag(adjective, slot + "adjective"),
        tag(noun, slot + "noun"),
    ))  # fmt: skip


def _conjugate(verb: str, subject: NounPhrase) -> str:
    forms = VERBS[verb]
    if subject.plural:
        return "sind" if verb == "be" else forms[0]
    return forms[1 if subject.head == "i" else 2 if subject.head == "you" else 3]


def _preterite(verb: str, subject: NounPhrase) -> str:
    form = VERBS[verb][6]
    if subject.head == "you":
        return form + "st"
    if subject.plural:
        return form + ("n" if form.endswith("e") else "en")
    return form


def _particle(verb: str) -> str:
    return VERBS[verb][7] if len(VERBS[verb]) > 7 else ""


def _verb(clause: Clause, slot: str, *, narrated: bool) -> tuple[list[Word], list[Word]]:
    """The finite verb and the closing bracket: particle, participle or infinitive."""
    tense, verb, name = slot + "tense", slot + "verb", clause.predicate
    infinitive, participle = VERBS[name][0], VERBS[name][4]
    particle = _particle(name)
    if clause.tense == "past" and (narrated or name == "be"):
        return [(_preterite(name, clause.subject), (verb, tense))], tag(particle, verb)
    if clause.tense == "past":
        auxiliary = "have" if VERBS[name][5] == "haben" else "be"
        return [(_conjugate(auxiliary, clause.subject), (tense,))], [(particle + participle, (verb,))]
    if clause.tense in ("future", "want", "can", "must"):
        return [(_conjugate(clause.tense, clause.subject), (tense,))], [(particle + infinitive, (verb,))]
    return [(_conjugate(name, clause.subject), (verb, tense))], tag(particle, verb)


def _place(clause: Clause, slot: str) -> list[Word]:
    if clause.place is None:
        return []
    if clause.predicate == "come_back":
        preposition = "von" if clause.place.head in AT else "aus"
    elif clause.predicate in ("go", "walk", "drive", "run"):
        preposition = "zu"
    else:
        preposition = AT.get(clause.place.head, "in")
    on_foot = tag("zu Fuß" if clause.predicate == "walk" else "", slot + "verb")
    return on_foot + tag(preposition, slot + "place.case") + noun_phrase(clause.place, slot + "place.", "dative")


def _middle(clause: Clause, slot: str, *, timed: bool) -> list[Word]:
    """The field between the brackets: time, recipient, object and place, with nicht among them."""
    time = tag(TIMES[clause.time], slot + "time") if clause.time and timed else []
    recipient = noun_phrase(clause.recipient, slot + "recipient.", "dative") if clause.recipient else []
    target: list[Word] = []
    if clause.object:
        case = "dative" if clause.predicate == "help" else "accusative"
        target = noun_phrase(clause.object, slot + "object.", case)
    negation = tag("nicht" if clause.negated else "", slot + "negation")
    quality: list[Word] = []
    if clause.quality:
        quality = tag("sehr" if clause.very else "", slot + "very")
        quality += tag(ADJECTIVES[clause.quality][0], slot + "quality")
    # What is new comes late: an indefinite object follows the place, a definite one precedes it.
    known = clause.negated or clause.object is None or clause.object.determiner != "a"
    place = _place(clause, slot)
    if known:
        return flatten((time, recipient, target, negation, place, quality))
    return flatten((time, recipient, place, target))


def clause_words(clause: Clause, slot: str, *, order: str = "second", narrated: bool = False) -> list[Word]:
    """Render a clause.

    Args:
        clause: What to say.
        slot: Prefix of its slots.
        order: Where the finite verb stands: ``second``, ``first`` (questions) or ``last`` (subordinate clauses).
        narrated: Whether the past is the preterite, as after "als".
    """
    if clause.predicate == "exist":
        there = noun_phrase(clause.subject, slot + "subject.", "accusative")
        return flatten((_place(clause, slot), tag("gibt es", slot + "verb"), there))
    subject = noun_phrase(clause.subject, slot + "subject.", "nominative")
    finite, bracket = _verb(clause, slot, narrated=narrated)
    front = order == "second" and clause.time in FRONTED
    middle = _middle(clause, slot, timed=not front)
    if order == "last":
        # A separated particle joins its verb again: "anruft", "aufmachte".
        particle = _particle(clause.predicate)
        if bracket and (narrated or (clause.tense != "past" and bracket[0][0] == particle)):
            bracket, finite = [], [(bracket[0][0] + finite[0][0], finite[0][1])]
        return flatten((subject, middle, bracket, finite))
    if order == "first":
        return flatten((finite, subject, middle, bracket))
    if front and clause.time:
        return flatten((tag(TIMES[clause.time], slot + "time"), finite, subject, middle, bracket))
    return flatten((subject, finite, middle, bracket))


_LINKS = {"that": "dass", "because": "weil", "when": "als"}


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in German."""
    narrated = meaning.link == "when"
    line = clause_words(meaning.main, "main.", order="first" if meaning.question else "second", narrated=narrated)
    if meaning.other and meaning.link:
        other = clause_words(meaning.other, "other.", order="last", narrated=narrated)
        line = comma(line) + tag(_LINKS[meaning.link], "link") + other
    fused = merge(line, contractions(_CONTRACTIONS))
    return sentence(fused, closing="?" if meaning.question else ".")
