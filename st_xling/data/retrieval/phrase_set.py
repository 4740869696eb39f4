"""A retrieval set of the phrasebook: questions, passages that answer them, in any of its languages."""

from __future__ import annotations

from collections.abc import Iterable

from st_xling.data.phrasebook_spec import PhrasebookSpec
from st_xling.data.retrieval.held_passages import HeldPassages
from st_xling.data.retrieval.retrieval_set import RetrievalSet

OPTIONS = ("size", "split", "seed", "queries")
"""What may follow ``xx=phrasebook?``."""


def phrase_set(
    book: PhrasebookSpec, language: str, *, split: str, query_languages: Iterable[str] | None = None
) -> RetrievalSet:
    """Passages in one language, with the same questions in one or several; see
    :func:`~st_xling.data.phrasebook.phrase_passages`.

    Sets of one split, size and seed in several languages say the same under the same ids, so that in a pool of them
    mixed each question has an equally relevant passage in each language.

    Args:
        book: Its ``size``, ``split``, ``seed`` and ``queries``.
        language: Of the passages.
        split: Where the book names none.
        query_languages: Where it names no ``queries``; by default that of the passages.
    Raises:
        ValueError: An unknown language or split.
    """
    from st_xling.data.phrasebook.corpora import HELD_OUT_PASSAGES, TRAINING_PASSAGES, phrase_passages

    asked = list(dict.fromkeys(book.options.get("queries") or query_languages or [language]))
    sample = book.sample(split=split, train_size=TRAINING_PASSAGES, held_out_size=HELD_OUT_PASSAGES)
    found = phrase_passages([language, *asked], **sample)
    return RetrievalSet(
        language=language,
        passages=HeldPassages(zip(found.ids, found.passages[language])),
        queries={code: dict(zip(found.ids, found.questions[code])) for code in asked},
        relevant={name: {name: 1} for name in found.ids},
        n_without_relevant=dict.fromkeys(asked, 0),
    )
