"""Python lines that use a model with sentence-transformers alone."""

from __future__ import annotations

from st_xling.hub.card.escaping import fenced
from st_xling.hub.card.facts import CardFacts
from st_xling.utils.languages import canonical_language

#: Stands for a model that is not on the Hub.
PLACE = "path/to/this/folder"

# "The book is old.", its question, and "It is raining."
_BOOKS = {
    "deu": ("Das Buch ist alt.", "Wie alt ist das Buch?", "Es regnet."),
    "fra": ("Le livre est vieux.", "De quand date le livre ?", "Il pleut."),
    "spa": ("El libro es viejo.", "¿De cuándo es el libro?", "Está lloviendo."),
    "rus": ("Книга старая.", "Сколько лет книге?", "Идёт дождь."),
    "vie": ("Quyển sách này cũ.", "Quyển sách này bao nhiêu tuổi?", "Trời đang mưa."),
    "cmn": ("这本书很旧。", "这本书有多旧？", "正在下雨。"),
    "eng": ("The book is old.", "How old is the book?", "It is raining."),
}


def usage_section(facts: CardFacts) -> str:
    """Install and use."""
    lines = {
        "encoder": _retriever if facts.is_retriever else _encoder,
        "separate": _retriever,
        "cross-encoder": _cross_encoder,
        "classifier": _classifier,
        "tagger": _tagger,
    }[facts.kind.kind](facts)
    library = "transformers" if facts.kind.kind == "tagger" else "sentence-transformers"
    version = f">={facts.kind.library_version}" if facts.kind.library_version else ""
    packages = [f"'{library}{version}'" if version else library, *(["peft"] if facts.kind.adapters else [])]
    needs = f"It needs {library}{' and PEFT' if facts.kind.adapters else ''} alone."
    install = fenced(f"pip install -U {' '.join(packages)}", "bash")
    return "\n\n".join(["## Use", needs, install, fenced("\n".join(lines), "python")])


def _model(facts: CardFacts) -> str:
    return facts.options.repo_id or PLACE


def _examples(facts: CardFacts) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Texts in a language of the model, and in another one of it, if it can be English: in English where nothing
    better is known."""
    codes = [canonical_language(code) for code in facts.languages if canonical_language(code) in _BOOKS]
    first = codes[0] if codes else "eng"
    others = [code for code in codes if code != first]
    return _BOOKS[first], _BOOKS["eng" if "eng" in others or not others else others[0]]


def _encoder(facts: CardFacts) -> list[str]:
    (own, *_), (other, _, rain) = _examples(facts)
    load = [
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("{_model(facts)}")',
    ]
    if len(facts.kind.languages) > 1:
        # A mean of its own for each language, that of all where encode is not told which.
        first, second = facts.kind.languages[:2]
        own, other = (_BOOKS.get(canonical_language(code), _BOOKS["eng"])[0] for code in (first, second))
        return [
            *load,
            f'source = model.encode(["{own}"], task="{first}")  # without task: centred by the mean of all languages',
            f'target = model.encode(["{other}"], task="{second}")',
            "print(model.similarity(source, target))",
        ]
    return [
        *load,
        f'vectors = model.encode(["{own}", "{other}", "{rain}"])',
        "print(model.similarity(vectors, vectors))",
    ]


def _retriever(facts: CardFacts) -> list[str]:
    (_, question, _), (other, _, rain) = _examples(facts)
    return [
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("{_model(facts)}")',
        f'queries = model.encode_query(["{question}"])',
        f'passages = model.encode_document(["{other}", "{rain}"])',
        "print(model.similarity(queries, passages))",
    ]


def _cross_encoder(facts: CardFacts) -> list[str]:
    (own, question, _), (other, _, rain) = _examples(facts)
    if facts.recipe.get("strategy") == "xpi":
        pairs = f'[("{own}", "{other}"), ("{own}", "{rain}")]'
        call = [f"print(model.predict({pairs}))"]
    else:
        call = [
            f'passages = ["{rain}", "{other}"]',
            f'for found in model.rank("{question}", passages):',
            '    print(found["score"], passages[found["corpus_id"]])',
        ]
    return [
        "from sentence_transformers import CrossEncoder",
        "",
        f'model = CrossEncoder("{_model(facts)}")',
        *call,
    ]


def _classifier(facts: CardFacts) -> list[str]:
    (own, *_), (other, *_) = _examples(facts)
    return [
        "from sentence_transformers import CrossEncoder",
        "",
        f'model = CrossEncoder("{_model(facts)}")',
        f'print(model.predict([("{own}", "{other}")]))',
    ]


def _tagger(facts: CardFacts) -> list[str]:
    return [
        "from transformers import pipeline",
        "",
        f'tag = pipeline("token-classification", model="{_model(facts)}")',
        'print(tag("The book is old."))',
    ]
