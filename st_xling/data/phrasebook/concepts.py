"""The inventory of concepts: nouns with the adjectives they take, and times with the tenses they take.

Selection is listed, not guessed: a noun names its adjectives, as a verb (see ``verbs.py``) names its subjects and
objects, so that people read letters and dogs do not. The tests hold every lexicon against this inventory.
"""

from st_xling.data.phrasebook.tables import listed, words

PRONOUNS = listed("i you he she we they")
POSSESSORS = ("my", "your", "our")

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
ADJECTIVES = tuple(dict.fromkeys(adjective for listed in QUALITIES.values() for adjective in listed))
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
_TIMES = words("""
    past: yesterday last_week last_year this_morning last_night two_days_ago
    progressive: now at_the_moment
    habitual: every_day every_morning every_evening every_monday every_week
    future: tomorrow next_week next_year tonight day_after_tomorrow
    modal: today tomorrow tonight
""")
TIMES_OF = {tense: tuple(times.split()) for tense, times in _TIMES.items()}
TIMES = tuple(dict.fromkeys(time for times in TIMES_OF.values() for time in times))
FRONTED = frozenset(
    [
        "yesterday",
        "last_week",
        "this_morning",
        "two_days_ago",
        "now",
        "every_morning",
        "tomorrow",
        "next_week",
        "tonight",
    ]
)
