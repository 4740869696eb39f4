"""Vietnamese: classifiers, adjectives and demonstratives after the noun, tense in particles before the verb."""

from st_xling.data.phrasebook.grammar import (
    Phrase,
    Word,
    complements,
    flatten,
    lexicon,
    sentence,
    tag,
)
from st_xling.data.phrasebook.meanings import FRONTED, KIN, MANY, PLACES, Clause, Meaning, NounPhrase

NOUNS, ADJECTIVES, VERBS, TIMES, PARTICLES = lexicon("vi", "noun", "adjective", "verb", "time", "particle")
NUMBERS = ("", "một", "hai", "ba", "bốn", "năm", "sáu", "bảy", "tám", "chín")
PRONOUNS = {"i": "tôi", "you": "bạn", "he": "anh ấy", "she": "cô ấy", "we": "chúng tôi", "they": "họ"}
OWNERS = {"my": "tôi", "your": "bạn", "our": "chúng tôi"}

_MOTION = {"come_back": "từ", **dict.fromkeys(("go", "walk", "drive", "run"), "đến")}
_PLACES = frozenset(PLACES)


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "ba con mèo màu đen này"."""
    if phrase.head in PRONOUNS:
        return tag(PRONOUNS[phrase.head], slot + "noun")
    classifier, noun = NOUNS[phrase.head]
    if phrase.head in _PLACES and phrase.determiner == "the" and not phrase.adjective:
        classifier = ""  # To school and to market: "đến trường", "đến chợ".
    determiner = slot + "determiner"
    count: list[Word] = []
    if phrase.count == MANY:
        count = tag("những", slot + "number")
    elif phrase.count > 1 or phrase.determiner == "a":
        count = tag(NUMBERS[phrase.count], slot + "count")
    if phrase.determiner in OWNERS:
        # One's own family goes without "của".
        of = "" if phrase.head in KIN else "của "
        closing = tag(of + OWNERS[phrase.determiner], determiner)
    else:
        closing = tag("này" if phrase.determiner == "this" else "", determiner)
    return flatten((
        count,
        tag(classifier, slot + "classifier"),
        tag(noun, slot + "noun"),
        tag(ADJECTIVES[phrase.adjective][0] if phrase.adjective else "", slot + "adjective"),
        closing,
    ))  # fmt: skip


def _particles(clause: Clause, slot: str) -> list[Word]:
    if not clause.negated:
        return tag(PARTICLES[clause.tense][0], slot + "tense")
    pieces = PARTICLES[clause.tense][1].split()
    return [(piece, (slot + ("negation" if piece == "không" else "tense"),)) for piece in pieces]


def _predicate(clause: Clause, slot: str, *, plain: bool) -> list[Word]:
    if clause.quality is None:
        return ([] if plain else _particles(clause, slot)) + tag(VERBS[clause.predicate], slot + "verb")
    # Adjectives are verbs here: no copula, and no particle of the past.
    future = tag("sẽ" if clause.tense == "future" else "", slot + "tense")
    negation = tag("không" if clause.negated else "", slot + "negation")
    very = tag("rất" if clause.very else "", slot + "very")
    forms = ADJECTIVES[clause.quality]
    return future + negation + very + tag(forms[-1], slot + "quality", slot + "verb")


def clause_words(clause: Clause, slot: str, *, front: bool = False, plain: bool = False) -> list[Word]:
    """Render a clause; ``front`` puts its time first, ``plain`` leaves the particle of tense out."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    rest = complements(clause, slot, noun_phrase, recipient="cho", place=_MOTION.get(clause.predicate, "ở"))
    if clause.predicate == "exist":
        return flatten((tag("có", slot + "verb"), subject, rest))
    time = tag(TIMES[clause.time], slot + "time") if clause.time else []
    return flatten((time if front else [], subject, _predicate(clause, slot, plain=plain), rest, [] if front else time))


_LINKS = {"that": "rằng", "because": "vì", "when": "khi"}


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in Vietnamese."""
    main = meaning.main
    front = main.time in FRONTED or main.predicate == "be" or meaning.question
    line = clause_words(main, "main.", front=front)
    if meaning.question:
        line = tag("có phải", "question") + line + tag("không", "question")
    if meaning.other and meaning.link:
        embedded_front = meaning.other.predicate == "be"
        other = clause_words(meaning.other, "other.", front=embedded_front, plain=meaning.link == "when")
        line += tag(_LINKS[meaning.link], "link") + other
    return sentence(line, closing="?" if meaning.question else ".")
