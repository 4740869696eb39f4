"""What a sentence says, before any language: small frozen trees of concepts, and the inventory they are built from.

Selection is listed, not guessed: a noun names its adjectives, a verb its subjects and objects, a tense its times, so
that people read letters and dogs do not. The tests hold every lexicon against this inventory.
"""

from dataclasses import dataclass

#: Count of a plural without a numeral ("the cats").
MANY = 0


def listed(text: str) -> tuple[str, ...]:
    """The words of a line."""
    return tuple(text.split())


PRONOUNS = listed("i you he she we they")
POSSESSORS = ("my", "your", "our")
_PERSONS = {"i": 0, "you": 1, "he": 2, "she": 2, "we": 3, "they": 4}

_COLOURS = "red blue green yellow white black"
_STATES = "tired nervous happy sad angry"
_ADULT = "young aged kind clever famous rich lazy strong polite " + _STATES
_CHILD = "clever lazy polite strong kind " + _STATES
_BEAST = "big small white black brown aged clever strong tired"
_GOODS = "new old expensive cheap beautiful"

# Every noun with the adjectives that may stand before it or be said of it.
_SELECTION = {
    "teacher doctor farmer cook nurse driver painter tourist man woman friend neighbour": _ADULT,
    "student child boy girl": _CHILD,
    "mother father grandmother grandfather uncle aunt": "clever kind polite strong famous " + _STATES,
    "dog cat horse rabbit goat bird pig duck": _BEAST,
    "cow monkey elephant bear": "big small aged clever strong tired brown",
    "book": "new old thick expensive cheap beautiful",
    "newspaper": "new old thick",
    "letter": "old beautiful",
    "bag umbrella hat": f"{_GOODS} {_COLOURS} big small clean dirty",
    "shirt": f"{_GOODS} {_COLOURS} clean dirty",
    "cup table chair": f"{_GOODS} white black brown big small clean dirty",
    "bicycle car": f"{_GOODS} {_COLOURS} clean dirty",
    "pencil phone": "new old red blue green yellow white black",
    "key": "new old small",
    "painting": _GOODS,
    "camera clock lamp": f"{_GOODS} white black",
    "flower": "red blue yellow white beautiful",
    "box": f"{_COLOURS} big small heavy new old",
    "window door": "big small new old clean dirty",
    "house": f"{_GOODS} white yellow big small",
    "apple": "red green yellow fresh sweet ripe delicious big small",
    "pear tomato banana": "green yellow fresh sweet ripe delicious big small",
    "orange carrot": "fresh sweet delicious big small",
    "egg": "fresh big small white brown",
    "cake sandwich": "fresh delicious big small",
    "coffee tea": "hot cold sweet",
    "juice": "cold sweet fresh",
    "school library museum theatre": "big small new old modern quiet famous",
    "market factory station airport": "big small new old modern",
    "hospital restaurant hotel": "big small new old modern quiet clean",
    "park garden": "big small new quiet beautiful",
    "village beach": "small big quiet beautiful",
    "kitchen": "big small new old modern clean dirty",
}
QUALITIES = {noun: tuple(adjectives.split()) for nouns, adjectives in _SELECTION.items() for noun in nouns.split()}
NOUNS = tuple(QUALITIES)
ADJECTIVES = tuple(dict.fromkeys(adjective for adjectives in QUALITIES.values() for adjective in adjectives))
STATES = (*_STATES.split(), "clean", "dirty", "hot", "cold")
COLOURS = (*_COLOURS.split(), "brown")

KIN = listed("mother father grandmother grandfather uncle aunt")
CHILDREN = ("student", "child", "boy", "girl")
ADULTS = listed("teacher doctor farmer cook nurse driver painter tourist man woman friend neighbour")
PEOPLE = (*ADULTS, *CHILDREN)
ANIMALS = listed("dog cat horse rabbit goat bird pig duck cow monkey elephant bear")
# Of these nobody says "my": it would sound odd, or mean something else.
UNOWNED = frozenset(listed("farmer painter tourist man woman boy girl monkey elephant bear"))
PLACES = NOUNS[NOUNS.index("school") :]
FOOD = listed("apple pear tomato banana orange carrot egg cake sandwich")
DRINKS = ("coffee", "tea", "juice")
GOODS = listed(
    "book newspaper pencil bag umbrella shirt hat cup table chair bicycle car painting camera clock phone flower "
    "box lamp"
)
GIFTS = listed("book letter newspaper pencil umbrella shirt hat cup painting camera clock phone flower lamp key")

# Times by tense. The fronted ones open a stated main clause in the European languages and in Vietnamese.
TIMES_OF = {
    "past": listed("yesterday last_week last_year this_morning last_night two_days_ago"),
    "progressive": listed("now at_the_moment"),
    "habitual": listed("every_day every_morning every_evening every_monday every_week"),
    "future": listed("tomorrow next_week next_year tonight day_after_tomorrow"),
    "modal": listed("today tomorrow tonight"),
}
TIMES = tuple(dict.fromkeys(time for times in TIMES_OF.values() for time in times))
FRONTED = frozenset(
    listed("yesterday last_week this_morning two_days_ago now every_morning tomorrow next_week tonight")
)


@dataclass(frozen=True)
class Verb:
    """How a verb combines.

    Args:
        frame: ``transitive``, ``ditransitive``, ``motion``, ``activity``, ``report``, ``be`` or ``exist``.
        tenses: The tenses in which it sounds natural.
        subjects: Nouns that may do it; people also bring the pronouns.
        objects: Nouns it may be done to.
        places: Where it may happen. An activity with places has no end of its own, so that its past wants a time
            and a place around it.
    """

    frame: str
    tenses: tuple[str, ...]
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


MODALS = ("want", "can", "must")
_ALL = ("past", "progressive", "habitual", "future", *MODALS)
_EVENT = ("past", "habitual", "future", *MODALS)
_HUMAN = (*PEOPLE, *KIN)
_REPAIRABLE = listed("bicycle car clock phone lamp chair camera umbrella door window")


def _transitive(
    objects: tuple[str, ...],
    tenses: tuple[str, ...] = _ALL,
    subjects: tuple[str, ...] = _HUMAN,
    places: tuple[str, ...] = (),
) -> Verb:
    return Verb("transitive", tenses, subjects, objects, places)


def _activity(places: str, subjects: tuple[str, ...] = _HUMAN) -> Verb:
    return Verb("activity", _ALL, subjects, places=listed(places))


VERBS = {
    "buy": _transitive((*GOODS, *FOOD, *DRINKS), places=("market", "village", "station", "airport")),
    "sell": _transitive((*GOODS, "house")),
    "eat": _transitive(FOOD),
    "drink": _transitive(DRINKS),
    "read": _transitive(("book", "letter", "newspaper")),
    "write": _transitive(("book", "letter")),
    "look_for": _transitive((*GOODS, "key", "letter", "dog", "cat", "horse", *CHILDREN[1:]), places=PLACES),
    "find": _transitive((*GOODS, "key", "letter"), ("past", "future", "can"), places=PLACES),
    "lose": _transitive(listed("key umbrella hat bag phone camera pencil letter book"), ("past",)),
    "see": _transitive(
        (*PEOPLE, *ANIMALS, "house", "painting", "car"), ("past", "future", "want", "can"), PEOPLE, places=PLACES
    ),
    "wash": _transitive(listed("car cup bicycle apple tomato pear carrot")),
    "carry": _transitive(listed("bag box table chair lamp painting clock")),
    "repair": _transitive(_REPAIRABLE),
    "draw": _transitive((*ANIMALS, "house", "flower", "car", "bicycle")),
    "open": _transitive(("window", "door", "box", "bag"), _EVENT),
    "close": _transitive(("window", "door", "box"), _EVENT),
    "visit": _transitive((*PEOPLE, *KIN)),
    "visit_place": _transitive(("museum", "village", "school", "library", "factory")),
    "clean": _transitive(("kitchen", "restaurant", "library", "school", "hotel")),
    "invite": _transitive((*PEOPLE, *KIN), _EVENT),
    "call": _transitive((*PEOPLE, *KIN)),
    "help": _transitive((*PEOPLE, *KIN)),
    "greet": _transitive((*PEOPLE, *KIN), ("past", "habitual", "future", "want", "must")),
    "watch": _transitive(ANIMALS),
    "chase": _transitive(ANIMALS, ("past", "progressive", "habitual"), listed("dog cat bear horse pig goat")),
    "feed_on": _transitive(listed("apple pear banana carrot tomato egg"), _ALL[:4], ANIMALS),
    "give": Verb("ditransitive", _EVENT, _HUMAN, GIFTS),
    "send": Verb("ditransitive", _EVENT, _HUMAN, GIFTS),
    "bring": Verb("ditransitive", _EVENT, _HUMAN, GIFTS),
    "sell_to": Verb("ditransitive", _EVENT, _HUMAN, GOODS),
    "go": Verb("motion", _EVENT, _HUMAN),
    "walk": Verb("motion", _ALL, _HUMAN),
    "drive": Verb("motion", _ALL, ADULTS),
    "run": Verb("motion", ("past", "habitual", "future"), (*PEOPLE, "dog", "cat", "horse", "rabbit", "goat", "pig")),
    "come_back": Verb("motion", ("past", "future"), _HUMAN),
    "sleep": _activity("hotel hospital park garden beach village", (*_HUMAN, *ANIMALS)),
    "sing": _activity("theatre school park garden beach restaurant village"),
    "dance": _activity("theatre school park garden beach restaurant hotel village"),
    "work": _activity(
        "school library museum theatre market factory station airport hospital restaurant hotel garden kitchen village",
        ADULTS,
    ),
    "play": _activity("park garden beach village", (*CHILDREN, "dog", "cat", "monkey", "bear")),
    "study": _activity("school library museum park garden kitchen", CHILDREN),
    "cook_meals": _activity("kitchen restaurant hotel school hospital village"),
    "wait": _activity(" ".join(PLACES)),
    "laugh": Verb("activity", ("past", "progressive"), _HUMAN),
    "cry": Verb("activity", ("past", "progressive"), _HUMAN),
    "arrive": Verb("activity", ("past", "future"), _HUMAN),
    "say": Verb("report", ("present",), _HUMAN),
    "think": Verb("report", ("present",), _HUMAN),
    "know": Verb("report", ("present",), _HUMAN),
    "believe": Verb("report", ("present",), _HUMAN),
    "be": Verb("be", ("past", "present", "future"), NOUNS),
    "exist": Verb("exist", ("present",), (*PEOPLE, *ANIMALS, "bicycle", "table", "chair", "lamp", "clock", "box")),
}
VERBS_OF = {
    frame: tuple(name for name, verb in VERBS.items() if verb.frame == frame)
    for frame in dict.fromkeys(verb.frame for verb in VERBS.values())
}


@dataclass(frozen=True)
class NounPhrase:
    """A person, animal, thing or place.

    Args:
        head: A noun of :data:`NOUNS`, or a pronoun of :data:`PRONOUNS`.
        determiner: ``the``, ``this``, ``a``, ``my``, ``your`` or ``our``. Ignored for pronouns. With a count above one,
            ``a`` is the bare numeral ("three cats").
        count: 1, a numeral from 2 to 9, or :data:`MANY`.
        adjective: An adjective of :data:`ADJECTIVES`, or None.
    """

    head: str
    determiner: str = "the"
    count: int = 1
    adjective: str | None = None

    @property
    def plural(self) -> bool:
        """Whether the verb, or an adjective said of it, takes a plural."""
        return self.head in ("we", "they") if self.head in PRONOUNS else self.count != 1

    @property
    def person(self) -> int:
        """Place among the forms of a Romance verb: 0 for "I", then "you", "he" or "she", "we" and "they"."""
        return _PERSONS.get(self.head, 4 if self.plural else 2)

    @property
    def key(self) -> str:
        """Canonical text of this phrase."""
        return f"{self.head}/{self.determiner}/{self.count}/{self.adjective or ''}"


@dataclass(frozen=True)
class Clause:
    """Someone does something, or is somehow, at some time.

    Args:
        subject: Who. For ``exist``, what there is.
        predicate: A verb of :data:`VERBS`; for ``be``, see ``quality``.
        tense: ``past``, ``progressive``, ``habitual``, ``future``, or a modal, ``want``, ``can`` or ``must``; for
            ``be``, ``past``, ``present`` or ``future``; for ``exist`` and the verbs of saying, ``present``.
        object: What is acted upon.
        recipient: To whom.
        place: Where, where to, or where from; the verb decides.
        time: A time of :data:`TIMES`.
        quality: The adjective said of the subject, with ``be``.
        very: Whether the quality is intensified.
        negated: Whether the clause is denied.
    """

    subject: NounPhrase
    predicate: str
    tense: str
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    place: NounPhrase | None = None
    time: str | None = None
    quality: str | None = None
    very: bool = False
    negated: bool = False

    @property
    def key(self) -> str:
        """Canonical text of this clause."""
        phrases = self.subject.key
        for phrase in (self.object, self.recipient, self.place):
            phrases += "," + phrase.key if phrase else ","
        flags = f"{self.time or ''},{self.quality or ''},{self.very:d}{self.negated:d}"
        return f"{self.predicate},{self.tense},{phrases},{flags}"


@dataclass(frozen=True)
class Meaning:
    """One sentence: a clause, asked or stated, alone or linked with another.

    Args:
        main: The main clause.
        question: Whether it is asked (yes or no).
        link: ``because``, ``when`` or ``that``; None for a single clause.
        other: The subordinate clause, present exactly if ``link`` is.
    """

    main: Clause
    question: bool = False
    link: str | None = None
    other: Clause | None = None

    @property
    def key(self) -> str:
        """Canonical text: equal for equal meanings, in every process and version of Python."""
        tail = f";{self.link}({self.other.key})" if self.other else ""
        return f"{'?' if self.question else '.'}({self.main.key}){tail}"
