"""What a sentence says, before any language: small frozen trees of concepts, and the inventory they are built from.

Selection is listed, not guessed: a noun names its adjectives, a verb its subjects and objects, a tense its times, so
that people read letters and dogs do not. The tests hold every lexicon against this inventory.
"""

from dataclasses import dataclass
from importlib.resources import files

#: Count of a plural without a numeral ("the cats").
MANY = 0

PRONOUNS = ("i", "you", "he", "she", "we", "they")
POSSESSORS = ("my", "your", "our")
_PERSONS = {"i": 0, "you": 1, "he": 2, "she": 2, "we": 3, "they": 4}


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


def read_table(name: str) -> list[list[str]]:
    """The cells of a tab-separated file of this package; ``-`` is an empty cell, and ``#`` opens a comment."""
    text = (files(__package__) / "lexicons" / f"{name}.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return [["" if cell == "-" else cell for cell in row] for row in rows]


_GROUPS: dict[str, tuple[str, ...]] = {}
QUALITIES: dict[str, tuple[str, ...]] = {}  # noun -> the adjectives it takes
TIMES_OF: dict[str, tuple[str, ...]] = {}  # tense -> the times it takes
VERBS: dict[str, Verb] = {}


def _members(text: str) -> tuple[str, ...]:
    """The words of a cell; a word in capitals is a group."""
    return tuple(member for word in text.split() for member in (_GROUPS.get(word) or (word,)))


for _part, _name, *_cells in read_table("inventory"):
    if _part == "group":
        _GROUPS[_name] = _members(_cells[0])
    elif _part == "noun":
        QUALITIES |= dict.fromkeys(_name.split(), _members(_cells[0]))
        _GROUPS["NOUNS"] = tuple(QUALITIES)
    elif _part == "time":
        TIMES_OF[_name] = _members(_cells[0])
    else:
        VERBS[_name] = Verb(_cells[0], *map(_members, _cells[1:]))

NOUNS, KIN, PEOPLE, PLACES = (_GROUPS[name] for name in ("NOUNS", "KIN", "PEOPLE", "PLACES"))
MODALS = _GROUPS["MODALS"]
UNOWNED, FRONTED = frozenset(_GROUPS["UNOWNED"]), frozenset(_GROUPS["FRONTED"])
MOMENTS = _GROUPS["MOMENTS"]
STATES = (*_GROUPS["STATES"], "clean", "dirty", "hot", "cold")
COLOURS = (*_GROUPS["COLOURS"], "brown")
ADJECTIVES = tuple(dict.fromkeys(adjective for adjectives in QUALITIES.values() for adjective in adjectives))
TIMES = tuple(dict.fromkeys(time for times in TIMES_OF.values() for time in times))
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
