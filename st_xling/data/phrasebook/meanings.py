"""What a sentence says, before any language: small frozen trees of concepts."""

from dataclasses import dataclass

#: Count of a plural without a numeral ("the cats").
MANY = 0


@dataclass(frozen=True)
class NounPhrase:
    """A person, animal, thing or place.

    Args:
        head: A noun of :data:`~.concepts.NOUNS`, or a pronoun of :data:`~.concepts.PRONOUNS`.
        determiner: ``the``, ``this``, ``a``, ``my``, ``your`` or ``our``. Ignored for pronouns. With a count above one,
            ``a`` is the bare numeral ("three cats").
        count: 1, a numeral from 2 to 9, or :data:`MANY`.
        adjective: An adjective of :data:`~.concepts.ADJECTIVES`, or None.
    """

    head: str
    determiner: str = "the"
    count: int = 1
    adjective: str | None = None

    @property
    def key(self) -> str:
        """Canonical text of this phrase."""
        return f"{self.head}/{self.determiner}/{self.count}/{self.adjective or ''}"


@dataclass(frozen=True)
class Clause:
    """Someone does something, or is somehow, at some time.

    Args:
        subject: Who. For ``exist``, what there is.
        predicate: A verb of :data:`~.concepts.VERBS`; for ``be``, see ``quality``.
        tense: ``past``, ``progressive``, ``habitual``, ``future``, or a modal, ``want``, ``can`` or ``must``; for
            ``be``, ``past``, ``present`` or ``future``; for ``exist`` and the verbs of saying, ``present``.
        object: What is acted upon.
        recipient: To whom.
        place: Where, where to, or where from; the verb decides.
        time: A time of :data:`~.concepts.TIMES`.
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
