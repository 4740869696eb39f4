"""Chinese: classifiers, 的, aspect, time and place before the verb, reasons and moments before what they explain."""

from st_xling.data.phrasebook.grammar import Phrase, Word, flatten, lexicon, tag
from st_xling.data.phrasebook.meanings import COLOURS, FRONTED, KIN, MANY, PLACES, Clause, Meaning, NounPhrase

WORDS = lexicon("zh")

_PLACES, _COLOURS = frozenset(PLACES), frozenset(COLOURS)


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. 这三只黑色的猫."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    classifier, noun = WORDS.noun[phrase.head]
    determiner = slot + "determiner"
    words: list[Word] = []
    pointed = False
    described = WORDS.adjective[phrase.adjective][0] if phrase.adjective else ""
    if owner := WORDS.owner.get(phrase.determiner):
        # 我那只黑色的猫 rather than 我的黑色的猫; one's own family goes without 的.
        of = "那" if described.endswith("的") else "" if phrase.head in KIN and phrase.determiner != "our" else "的"
        words = tag(owner, determiner) + tag(of, determiner)
        pointed = of == "那" and phrase.count == 1
    elif phrase.count == MANY:
        words = [("这些" if phrase.determiner == "this" else "那些", (determiner, slot + "number"))]
    elif phrase.determiner == "this":
        words, pointed = [("这", (determiner,))], True
    # "The" station needs no pointing at, unless there are several to tell apart.
    elif phrase.determiner == "the" and (phrase.head not in _PLACES or phrase.adjective):
        words, pointed = [("那", (determiner,))], True
    if phrase.count > 1 or phrase.determiner == "a":
        words.append((WORDS.number.get(str(phrase.count), ""), (slot + "count",)))
        pointed = True
    if pointed:
        words.append((classifier, (slot + "classifier",)))
    words += tag(described, slot + "adjective")
    words.append((noun, (slot + "noun",)))
    return words


def _inside(place: NounPhrase, slot: str) -> list[Word]:
    return noun_phrase(place, slot + "place.") + tag(WORDS.at.get(place.head, "里"), slot + "place.case")


def _particles(clause: Clause, slot: str) -> list[Word]:
    tense, negation = slot + "tense", slot + "negation"
    if not clause.negated:
        return tag(WORDS.particle[clause.tense][0], tense)
    if clause.tense == "past":
        return [("没有", (negation, tense))]
    return [("不", (negation,)), (WORDS.particle[clause.tense][0], (tense,))]


def _quality(clause: Clause, slot: str, *, question: bool) -> list[Word]:
    """很累, 非常累, 不累, 会很累, 是红色的; plain in questions."""
    assert clause.quality
    quality = tag(WORDS.adjective[clause.quality][1], slot + "quality")
    if clause.quality in _COLOURS:
        return tag("是", slot + "verb") + quality
    negation = tag("不" if clause.negated else "", slot + "negation")
    future = tag("会" if clause.tense == "future" else "", slot + "tense")
    if clause.very:
        degree = tag("非常", slot + "very")
    else:
        degree = tag("" if clause.negated or question else "很", slot + "verb")
    return flatten((negation, future, degree, quality))


def _action(clause: Clause, slot: str, *, plain: bool) -> list[Word]:
    """Particle, place and verb with its objects filled in; ``plain`` leaves the aspect out."""
    verb, tense = slot + "verb", slot + "tense"
    forms = WORDS.verb[clause.predicate]
    template = forms[1] if clause.tense == "past" and not clause.negated and not plain else forms[0]
    within = clause.place if clause.object is None and "_" in template else None
    place: list[Word] = []
    if clause.place and within is None:
        place = _inside(clause.place, slot)
        # 正在 and 在 share one 在.
        if clause.tense != "progressive":
            place = tag("在", slot + "place.case") + place
    filler = clause.object or within
    words: list[Word] = []
    for piece in template.split():
        if piece == "_" and filler:
            words += noun_phrase(filler, slot + ("object." if clause.object else "place."))
        elif piece == "R" and clause.recipient:
            words += noun_phrase(clause.recipient, slot + "recipient.")
        else:
            words.append((piece, (tense if piece == "了" else verb,)))
    return ([] if plain else _particles(clause, slot)) + place + words


def clause_words(
    clause: Clause, slot: str, *, front: bool = False, plain: bool = False, question: bool = False
) -> list[Word]:
    """Render a clause; ``front`` puts its time before the subject."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    if clause.predicate == "exist":
        assert clause.place
        return flatten((_inside(clause.place, slot), tag("有", slot + "verb"), subject))
    time = tag(WORDS.time[clause.time], slot + "time") if clause.time else []
    if clause.subject.determiner == "a" and clause.subject.head not in WORDS.pronoun:
        # What is new cannot open a Chinese sentence; 有 brings it in.
        subject, front = [("有", ()), *subject], True
    if clause.predicate == "be":
        predicate = _quality(clause, slot, question=question)
    else:
        predicate = _action(clause, slot, plain=plain)
        forms = WORDS.verb[clause.predicate]
        if question and clause.tense == "past" and not clause.negated and forms[0] == forms[1]:
            # Stated, the past of an activity shows by its time alone; asked, it wants 了.
            predicate.append(("了", (slot + "tense",)))
    return flatten((time, subject, predicate) if front else (subject, time, predicate))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in Chinese."""
    front = meaning.main.time in FRONTED and not meaning.question
    line = clause_words(meaning.main, "main.", front=front, question=meaning.question)
    stop: list[Word] = [("。", ())]
    if meaning.question:
        line.append(("吗", ("question",)))
        stop = [("？", ())]
    if meaning.other:
        other = clause_words(meaning.other, "other.", plain=meaning.link == "when")
        pause: list[Word] = [("，", ())]
        if meaning.link == "because":
            line = flatten((tag("因为", "link"), other, pause, tag("所以", "link"), line))
        elif meaning.link == "when":
            line = flatten((other, tag("的 时候", "link"), pause, line))
        else:
            line += other
    line += stop
    tokens = tuple(text for text, _ in line)
    return Phrase("".join(tokens), tokens, tuple(slots for _, slots in line))
