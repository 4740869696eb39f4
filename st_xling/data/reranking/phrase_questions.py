"""The phrasebook's questions and passages, in several languages, to train and to test cross-encoders on."""

from __future__ import annotations

from collections.abc import Mapping

from st_xling.data.phrasebook_spec import is_phrasebook, parse_phrasebook
from st_xling.data.reranking.question_answering import QuestionAnswering

PASSAGES_PER_ARTICLE = 5
"""As many as an article of XQuAD has; articles are what is dealt to training and held-out parts."""


def phrase_questions(books: Mapping[str, str], *, split: str) -> QuestionAnswering:
    """The same questions and passages in every language, each question about one passage.

    Args:
        books: Language → ``phrasebook``, perhaps with ``?size=600&split=test&seed=0``, the same for each language.
        split: Where they name none.
    Raises:
        ValueError: Languages that do not ask for the same; unknown languages, splits and options.
    """
    from st_xling.data.phrasebook.corpora import HELD_OUT_PASSAGES, TRAINING_PASSAGES, phrase_passages

    asked = {}
    for language, book in books.items():
        spec = parse_phrasebook(book, spec=f"{language}={book}")
        if spec.languages:
            raise ValueError(f"expected {language}=phrasebook, one language a spec; got {language}={book}.")
        asked[language] = spec.sample(split=split, train_size=TRAINING_PASSAGES, held_out_size=HELD_OUT_PASSAGES)
    sample, *others = asked.values()
    if any(other != sample for other in others):
        got = ", ".join(f"{language}={book}" for language, book in books.items())
        raise ValueError(f"the same questions in every language take the same ?size, split and seed: got {got}.")
    found = phrase_passages(books, **sample)
    rows = range(len(found.ids))
    articles = [row // PASSAGES_PER_ARTICLE for row in rows]
    return QuestionAnswering(
        questions=found.questions,
        passages=found.passages,
        question_ids=found.ids,
        question_passages=list(rows),
        passage_ids=found.ids,
        passage_articles=articles,
        articles=[f"article {number}" for number in range(articles[-1] + 1)],
    )


def are_phrasebooks(places: Mapping[str, object]) -> bool:
    """Whether every language's place is the phrasebook; a ``ValueError`` if only some are."""
    named = [language for language, place in places.items() if is_phrasebook(str(place))]
    if named and len(named) < len(places):
        raise ValueError(
            f"expected the phrasebook in every language or in none: got it in {', '.join(named)} out of "
            f"{', '.join(places)}; its questions are in no file."
        )
    return bool(named)
