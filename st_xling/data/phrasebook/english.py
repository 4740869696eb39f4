"""English: do-support, a/an, progressive aspect, place before time."""

from st_xling.data.phrasebook.grammar import Phrase, Word, complements, flatten, lexicon, linked, sentence, tag, tags
from st_xling.data.phrasebook.meanings import FRONTED, Clause, Meaning, NounPhrase

WORDS = lexicon("en")

_FORMS_OF_BE = {"i": ("am", "was"), "he": ("is", "was"), "she": ("is", "was")}
_FUSED = {"want to": "wants to", "have to": "has to"}


def noun_phrase(phrase: NounPhrase, slot: str) -> list[Word]:
    """Render a noun phrase, e.g. "these three old books"."""
    if phrase.head in WORDS.pronoun:
        return tag(WORDS.pronoun[phrase.head], slot + "noun")
    plural = phrase.count != 1
    noun = WORDS.noun[phrase.head][plural]
    adjective = WORDS.adjective.get(phrase.adjective, "")
    determiner = phrase.determiner
    if determiner == "this" and plural:
        determiner = "these"
    elif determiner == "a":
        determiner = "" if plural else "an" if (adjective or noun)[0] in "aeiou" else "a"
    # The article "a" says the count, as 一 and một do.
    article = ("count" if phrase.determiner == "a" else "determiner", determiner)
    return tags(
        slot, article, ("count", WORDS.number.get(str(phrase.count), "")), ("adjective", adjective), ("noun", noun)
    )


def _verb(clause: Clause) -> tuple[str, str, str]:
    """Auxiliary (or nothing), what follows it of the tense, and the form of the verb; all affirmative."""
    head, plural = clause.subject.head, clause.subject.count != 1
    third = (head not in WORDS.pronoun and not plural) or head in ("he", "she")
    present, past = _FORMS_OF_BE.get(head, ("is", "was") if third else ("are", "were"))
    if clause.predicate == "be":
        return {"past": (past, "", ""), "present": (present, "", ""), "future": ("will", "", "be")}[clause.tense]
    base, _, _, progressive = WORDS.verb[clause.predicate]
    do = "does" if third else "do"
    return {
        "past": ("did", "", base),
        "present": (do, "", base),
        "habitual": (do, "", base),
        "progressive": (present, "", progressive),
        "future": ("will", "", base),
        "want": (do, "want to", base),
        "can": ("can", "", base),
        "must": (do, "have to", base),
    }[clause.tense]


def _predicate(clause: Clause, slot: str, *, inverted: bool) -> tuple[list[Word], list[Word]]:
    """The auxiliary to put before an inverted subject, and the rest of the verb."""
    auxiliary, modal, form = _verb(clause)
    tense, verb = slot + "tense", slot + "verb"
    finite: tuple[str, ...] = (tense,)
    if clause.predicate == "be" and clause.tense != "future":
        finite = (tense, verb)
    if clause.negated:
        finite = (*finite, slot + "negation")
        auxiliary = WORDS.negated[auxiliary]
    elif not inverted and auxiliary in ("do", "does", "did"):
        third = auxiliary == "does"
        if modal:
            return [], tag(_FUSED[modal] if third else modal, tense) + tag(form, verb)
        forms = WORDS.verb[clause.predicate]
        return [], tag(forms[2] if auxiliary == "did" else forms[third], verb, tense)
    rest = tag(modal, tense) + tag(form, verb)
    return (tag(auxiliary, *finite), rest) if inverted else ([], tag(auxiliary, *finite) + rest)


def clause_words(clause: Clause, slot: str, meaning: Meaning) -> list[Word]:
    """Render a clause without its punctuation."""
    subject = noun_phrase(clause.subject, slot + "subject.")
    place = WORDS.to.get(clause.predicate) or (WORDS.at[clause.place.head] if clause.place else "")
    if clause.predicate == "exist":
        verb = tag("there is" if clause.subject.count == 1 else "there are", slot + "verb")
        return flatten((verb, subject, complements(clause, slot, noun_phrase, place=place)))
    main = slot == "main."
    auxiliary, verb = _predicate(clause, slot, inverted=main and meaning.question)
    time = tag(WORDS.time.get(clause.time, ""), slot + "time")
    front = main and not meaning.question and clause.time in FRONTED
    quality = WORDS.adjective.get(clause.quality, "")
    rest = complements(clause, slot, noun_phrase, recipient="to", place=place, very="very", quality=quality)
    return flatten((time if front else [], auxiliary, subject, verb, rest, [] if front else time))


def render(meaning: Meaning) -> Phrase:
    """Render a meaning in English."""
    return sentence(linked(meaning, clause_words, WORDS.link), closing="?" if meaning.question else ".")
