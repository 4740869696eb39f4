"""Random meanings that a speaker could want to say, in a grammar that six languages share, dealt to three splits.

The restrictions here are the ones that keep every rendering both natural and distinct: Chinese wants definite subjects
unless it opens with 有, denied clauses take definite objects, an adjective in the past needs a time to show it.
"""

from hashlib import blake2b
from random import Random

from st_xling.data.phrasebook.meanings import (
    COLOURS,
    KIN,
    MANY,
    MODALS,
    MOMENTS,
    PEOPLE,
    PLACES,
    POSSESSORS,
    PRONOUNS,
    QUALITIES,
    STATES,
    TIMES_OF,
    UNOWNED,
    VERBS,
    VERBS_OF,
    Clause,
    Meaning,
    NounPhrase,
)

SPLITS = ("train", "dev", "test")

_KIN, _PLACES, _PEOPLE = frozenset(KIN), frozenset(PLACES), frozenset((*PEOPLE, *KIN))
_COPULAR = tuple(noun for noun in QUALITIES if noun not in KIN)
# Verbs grouped by frame, drawn in proportion to how much they combine.
_ACTIONS = (*VERBS_OF["transitive"], *VERBS_OF["ditransitive"] * 2, *VERBS_OF["motion"] * 2, *VERBS_OF["activity"])
_EVENTS = tuple(verb for verb in _ACTIONS if "past" in VERBS[verb].tenses)


def _definite(rng: Random, noun: str, *, adjective: float, plural: bool = True) -> NounPhrase:
    """The, this, these, these three, my, my three …; kin are always somebody's."""
    if noun in _KIN:
        return NounPhrase(noun, rng.choice(POSSESSORS))
    quality = rng.choice(QUALITIES[noun]) if rng.random() < adjective else None
    draw = rng.random()
    if not plural:
        return NounPhrase(noun, "the" if draw < 0.6 else "this", 1, quality)
    if noun == "friend" or (draw >= 0.75 and noun not in UNOWNED):
        determiner = rng.choice(POSSESSORS)
    else:
        determiner = "the" if draw < 0.45 else "this"
    draw = rng.random()
    if draw < 0.6:
        count = 1
    elif determiner == "the" or (determiner == "this" and draw < 0.8):
        count = MANY
    elif determiner == "this" or draw < 0.75:
        count = rng.randint(2, 9)
    else:
        count = 1
    return NounPhrase(noun, determiner, count, quality)


def _indefinite(rng: Random, noun: str, *, adjective: float) -> NounPhrase:
    """A cat, three cats."""
    quality = rng.choice(QUALITIES[noun]) if rng.random() < adjective else None
    return NounPhrase(noun, "a", 1 if rng.random() < 0.6 else rng.randint(2, 9), quality)


def _subject(rng: Random, nouns: tuple[str, ...], *, adjective: float, indefinite: float, pronoun: float) -> NounPhrase:
    noun = rng.choice(nouns)
    if noun in _PEOPLE and rng.random() < pronoun:
        return NounPhrase(rng.choice(PRONOUNS))
    if noun not in _KIN and rng.random() < indefinite:
        return _indefinite(rng, noun, adjective=adjective)
    return _definite(rng, noun, adjective=adjective)


def _object(rng: Random, verb: str, subject: str, *, definite: bool, adjective: float) -> NounPhrase:
    noun = rng.choice([noun for noun in VERBS[verb].objects if noun != subject])
    if noun in _PLACES:
        return _definite(rng, noun, adjective=adjective, plural=False)
    if noun not in _KIN and not definite and rng.random() < 0.6:
        return _indefinite(rng, noun, adjective=adjective)
    return _definite(rng, noun, adjective=adjective)


def _action(
    rng: Random,
    *,
    verbs: tuple[str, ...] = _ACTIONS,
    tense: str | None = None,
    timed: bool = True,
    short: bool = False,
    indefinite: float = 0.0,
    negation: float = 0.15,
) -> Clause:
    """A clause in which something is done.

    Args:
        rng: Source of chance.
        verbs: The verbs to choose from.
        tense: A tense to impose; by default any that the verb takes.
        timed: Whether the clause may name a time.
        short: Whether to save adjectives and adjuncts, in sentences of two clauses.
        indefinite: How often the subject is "a dog" or "three dogs".
        negation: How often the clause is denied.
    """
    name = rng.choice(verbs)
    verb = VERBS[name]
    tense = tense or rng.choice(verb.tenses)
    adjective = 0.12 if short else 0.35
    if tense not in ("past", "progressive"):
        indefinite = 0.0
    negated = tense in ("past", "future", "want", "can") and rng.random() < negation
    if negated and verb.frame == "ditransitive":
        negated = False
    subject = _subject(
        rng, verb.subjects, adjective=adjective / 2, indefinite=0.0 if negated else indefinite, pronoun=0.4
    )
    target = recipient = place = None
    if verb.frame == "transitive":
        target = _object(rng, name, subject.head, definite=negated, adjective=adjective)
    elif verb.frame == "ditransitive":
        target = _indefinite(rng, rng.choice(verb.objects), adjective=adjective)
        recipient = _definite(rng, rng.choice([n for n in (*PEOPLE, *KIN) if n != subject.head]), adjective=0.1)
    elif verb.frame == "motion":
        place = _definite(rng, rng.choice(PLACES), adjective=adjective, plural=False)
    elif verb.places and not negated:
        place = _definite(rng, rng.choice(verb.places), adjective=adjective / 2, plural=False)
    if target and verb.places and not (negated or short) and rng.random() < 0.25:
        place = _definite(rng, rng.choice(verb.places), adjective=0.1, plural=False)
    time = None
    # The past of an atelic verb shows in Chinese only by its time, and a habit anywhere; "you cried" is too bare.
    must = tense == "habitual" or (verb.frame == "activity" and (place is None or tense == "past"))
    if timed and (must or rng.random() < 0.45):
        time = rng.choice(TIMES_OF["modal" if tense in MODALS else tense])
    return Clause(subject, name, tense, target, recipient, place, time, negated=negated)


def _state(rng: Random, *, tense: str | None = None, timed: bool = True, asked: bool = False) -> Clause:
    """A clause that says how someone or something is."""
    noun = rng.choice(KIN if rng.random() < 0.1 else _COPULAR)
    # "New" is said before nouns only: in French it would turn into another word.
    quality = rng.choice([quality for quality in QUALITIES[noun] if quality != "new"])
    passing = quality in STATES
    if tense is None:
        tense = rng.choice(("past", "present", "future")) if passing and timed else "present"
    very = not asked and quality not in COLOURS and rng.random() < 0.3
    if noun in _PEOPLE and rng.random() < 0.35:
        subject = NounPhrase(rng.choice(PRONOUNS))
    elif noun in _PLACES:
        subject = NounPhrase(noun, "this")
    else:
        # A colour or a size said of "the red box" would contradict or repeat it: no adjective on the subject.
        subject = _definite(rng, noun, adjective=0.0)
        if tense == "present" and subject.determiner == "the" and not very:
            subject = NounPhrase(noun, "this", subject.count)
    negated = not (very or asked) and quality not in COLOURS and rng.random() < 0.2
    time = rng.choice(TIMES_OF[tense]) if timed and tense != "present" else None
    if timed and tense == "present" and passing and rng.random() < 0.3:
        time = "today"
    return Clause(subject, "be", tense, time=time, quality=quality, very=very, negated=negated)


def _report(rng: Random) -> Clause:
    subject = _subject(rng, VERBS["say"].subjects, adjective=0.05, indefinite=0.0, pronoun=0.6)
    return Clause(subject, rng.choice(VERBS_OF["report"]), "present")


def _reason(rng: Random, tense: str) -> Clause:
    """Why: a passing state, or after a past event another one."""
    if tense != "past" or rng.random() < 0.5:
        while True:
            state = _state(rng, tense="past" if tense == "past" else "present", timed=False)
            if state.quality in STATES:
                return state
    return _action(rng, verbs=MOMENTS, tense="past", timed=False, short=True)


def _past_event(rng: Random, verbs: tuple[str, ...], negation: float) -> Clause:
    """What happened, for sentences with "when"; never of "you", whose German preterite is bookish."""
    while True:
        clause = _action(rng, verbs=verbs, tense="past", timed=False, short=True, negation=negation)
        if clause.subject.head != "you":
            return clause


def _existence(rng: Random) -> Clause:
    noun = rng.choice(VERBS["exist"].subjects)
    place = _definite(rng, rng.choice(PLACES), adjective=0.25, plural=False)
    return Clause(_indefinite(rng, noun, adjective=0.4), "exist", "present", place=place)


def draw_meaning(rng: Random) -> Meaning:
    """Draw one meaning.

    Args:
        rng: Source of chance; equal states give equal meanings.
    Returns:
        A meaning within the grammar that every language renders.
    """
    kind = rng.random()
    if kind < 0.38:
        return Meaning(_action(rng, indefinite=0.2))
    if kind < 0.48:
        return Meaning(_state(rng))
    if kind < 0.58:
        return Meaning(_action(rng, negation=0.0), question=True)
    if kind < 0.62:
        return Meaning(_state(rng, asked=True), question=True)
    if kind < 0.78:
        other = _state(rng) if rng.random() < 0.3 else _action(rng, short=True)
        return Meaning(_report(rng), link="that", other=other)
    if kind < 0.88:
        main = _action(rng, short=True)
        return Meaning(main, link="because", other=_reason(rng, main.tense))
    if kind < 0.95:
        main = _past_event(rng, _EVENTS, 0.15)
        return Meaning(main, link="when", other=_past_event(rng, MOMENTS, 0.0))
    return Meaning(_existence(rng))


def draw_question(rng: Random) -> Meaning:
    """Draw a yes-or-no question whose statement, the same clause not asked, is a meaning as well.

    Args:
        rng: Source of chance; equal states give equal meanings.
    """
    clause = _action(rng, negation=0.0) if rng.random() < 0.7 else _state(rng, asked=True)
    return Meaning(clause, question=True)


def split_of(meaning: Meaning) -> str:
    """The split of a meaning: 80 % train, 10 % dev, 10 % test, by a hash of the meaning alone, never by the seed.

    Args:
        meaning: Any meaning.
    Returns:
        One of :data:`SPLITS`; the same in every process, whatever the seed it was drawn with.
    """
    return _split_of_key(meaning.key)


def _split_of_key(key: str) -> str:
    tenth = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") % 10
    return "train" if tenth < 8 else "dev" if tenth == 8 else "test"


def check_size(size: int) -> None:
    """Raise a ``ValueError`` if ``size`` is below 1."""
    if size < 1:
        raise ValueError(f"size must be at least 1: got size={size}; ask for one sentence or more.")


def check_split(split: str) -> None:
    """Raise a ``ValueError`` unless ``split`` is one of :data:`SPLITS`."""
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}: got {split!r}; choose one of them.")


def draw_meanings(split: str = "train", size: int = 1000, seed: int = 0, *, distinct: bool = True) -> list[Meaning]:
    """Draw meanings of one split.

    Args:
        split: ``train``, ``dev`` or ``test``.
        size: How many; a smaller draw with the same seed is a prefix of a larger one.
        seed: Any integer.
        distinct: Whether no meaning may come twice.
    Returns:
        The meanings, in the order drawn.
    Raises:
        ValueError: If the split is unknown or ``size`` is below 1.
    """
    check_split(split)
    check_size(size)
    rng = Random(f"phrasebook:{split}:{seed}")
    seen: set[str] = set()
    meanings: list[Meaning] = []
    while len(meanings) < size:
        meaning = draw_meaning(rng)
        key = meaning.key
        if _split_of_key(key) == split and key not in seen:
            meanings.append(meaning)
            if distinct:
                seen.add(key)
    return meanings
