"""The verbs: who does what to what, where and in which tenses."""

from dataclasses import dataclass

from st_xling.data.phrasebook.concepts import (
    ADULTS,
    ANIMALS,
    CHILDREN,
    DRINKS,
    FOOD,
    GIFTS,
    GOODS,
    KIN,
    NOUNS,
    PEOPLE,
    PLACES,
)
from st_xling.data.phrasebook.tables import listed


@dataclass(frozen=True)
class Verb:
    """How a verb combines.

    Args:
        frame: ``transitive``, ``ditransitive``, ``motion``, ``activity``, ``report``, ``be`` or ``exist``.
        tenses: The tenses in which it sounds natural.
        subjects: Nouns that may do it; people also bring the pronouns.
        objects: Nouns it may be done to.
        places: Where it may happen, for verbs that say so.
        atelic: Whether it has no end of its own, so that its past wants a time and a place around it.
    """

    frame: str
    tenses: tuple[str, ...]
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    atelic: bool = False


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
    "sleep": Verb(
        "activity",
        _ALL,
        (*_HUMAN, *ANIMALS),
        places=listed("hotel hospital park garden beach village"),
        atelic=True,
    ),
    "sing": Verb(
        "activity",
        _ALL,
        _HUMAN,
        places=listed("theatre school park garden beach restaurant village"),
        atelic=True,
    ),
    "dance": Verb(
        "activity",
        _ALL,
        _HUMAN,
        places=listed("theatre school park garden beach restaurant hotel village"),
        atelic=True,
    ),
    "work": Verb(
        "activity",
        _ALL,
        ADULTS,
        places=listed(
            "school library museum theatre market factory station airport hospital restaurant hotel garden kitchen "
            "village"
        ),
        atelic=True,
    ),
    "play": Verb(
        "activity",
        _ALL,
        (*CHILDREN, "dog", "cat", "monkey", "bear"),
        places=("park", "garden", "beach", "village"),
        atelic=True,
    ),
    "study": Verb("activity", _ALL, CHILDREN, places=listed("school library museum park garden kitchen"), atelic=True),
    "cook_meals": Verb(
        "activity",
        _ALL,
        _HUMAN,
        places=listed("kitchen restaurant hotel school hospital village"),
        atelic=True,
    ),
    "wait": Verb("activity", _ALL, _HUMAN, places=PLACES, atelic=True),
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
FRAMES = listed("transitive ditransitive motion activity report be exist")
VERBS_OF = {frame: tuple(name for name, verb in VERBS.items() if verb.frame == frame) for frame in FRAMES}
