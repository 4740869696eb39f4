"""What a model is called, and what it is for, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from st_xling.hub.card.escaping import one_line
from st_xling.hub.card.facts import CardFacts
from st_xling.utils.languages import canonical_language

_NAMES = (
    "afr:Afrikaans ara:Arabic ben:Bengali bul:Bulgarian ces:Czech cmn:Chinese dan:Danish deu:German ell:Greek "
    "eng:English en:English est:Estonian eus:Basque fin:Finnish fra:French heb:Hebrew hin:Hindi hun:Hungarian "
    "ind:Indonesian ita:Italian jav:Javanese jpn:Japanese kat:Georgian kaz:Kazakh khm:Khmer kor:Korean lvs:Latvian "
    "lit:Lithuanian mal:Malayalam mar:Marathi nld:Dutch nob:Norwegian pes:Persian pol:Polish por:Portuguese "
    "ron:Romanian rus:Russian slk:Slovak slv:Slovenian spa:Spanish srp:Serbian swe:Swedish swh:Swahili tam:Tamil "
    "tel:Telugu tgl:Tagalog tha:Thai tur:Turkish ukr:Ukrainian urd:Urdu vie:Vietnamese"
)
LANGUAGE_NAMES = dict(entry.split(":") for entry in _NAMES.split())

KINDS = {
    "encoder": "cross-lingual sentence encoder",
    "separate": "cross-lingual retriever with an encoder for queries and one for passages",
    "cross-encoder": "cross-lingual re-ranker (cross-encoder)",
    "paraphrase": "cross-lingual paraphrase identifier (cross-encoder)",
    "classifier": "classifier of sentence pairs",
    "tagger": "tagger of words",
}


def title(facts: CardFacts) -> str:
    """What the user calls the model, the name of its repository, or its kind with languages and recipe."""
    if facts.options.title:
        return one_line(facts.options.title)
    if facts.options.repo_id:
        return facts.options.repo_id.rpartition("/")[2]
    kind = kind_words(facts).split(" with ")[0].split(" (")[0]
    recipe = f" ({one_line(facts.recipe['name'])})" if facts.recipe.get("name") else ""
    codes = f", {'-'.join(facts.languages)}" if 0 < len(facts.languages) <= 6 else ""
    return f"{kind[0].upper()}{kind[1:]}{codes}{recipe}"


def kind_words(facts: CardFacts) -> str:
    """What the model is, in lower case."""
    shared = facts.is_retriever and facts.kind.kind == "encoder"
    if shared:
        return "cross-lingual retriever with one encoder for queries and passages"
    return KINDS["paraphrase" if facts.is_paraphrase_identifier else facts.kind.kind]


def purpose(facts: CardFacts) -> str:
    """One sentence, unescaped."""
    if facts.options.purpose:
        return facts.options.purpose
    languages = language_names(facts.languages)
    of = f" of {languages}" if languages else ""
    size = f"{facts.kind.dimension}-dimensional " if facts.kind.dimension else ""
    whatever = "" if len(facts.languages) == 1 else ", whatever their languages"
    return {
        "encoder": f"Turns queries and passages{of} into {size}vectors, so that a query lies close to the passages "
        f"that answer it{whatever}."
        if facts.is_retriever
        else f"Turns sentences{of} into {size}vectors, so that translations lie close together.",
        "separate": f"Turns queries and passages{of} into {size}vectors by an encoder each, so that a query lies close "
        f"to the passages that answer it{whatever}.",
        "cross-encoder": _cross_encoder(facts, languages),
        "classifier": "Labels pairs of sentences; fine-tuned on one language and judged in others.",
        "tagger": "Labels the words of sentences; fine-tuned on one language and judged in others.",
    }[facts.kind.kind]


def _cross_encoder(facts: CardFacts, languages: str) -> str:
    within = f", in {languages}" if languages else ""
    if facts.is_paraphrase_identifier:
        return f"Scores whether two sentences{within and within + ','} mean the same."
    return f"Scores how well a passage answers a query{within}, to put in order what a search has found."


def language_names(codes: Sequence[str]) -> str:
    """``German, French and English``; empty without codes."""
    names = [LANGUAGE_NAMES.get(canonical_language(code), code) for code in codes]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else ""
