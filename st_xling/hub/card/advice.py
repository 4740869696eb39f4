"""Intended use and limits: what can be said of a model by its kind, unless the user says it."""

from __future__ import annotations

from st_xling.hub.card.escaping import paragraphs, plain
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.titles import language_names

_USES = {
    "encoder": "Search, mining of parallel text, deduplication and clustering across languages. A pair of texts is "
    "compared by the {similarity} of its vectors.",
    "separate": "Search across languages: `encode_query` for what is asked, `encode_document` for what is searched.",
    "cross-encoder": "Putting the first hundred or so hits of a search in order. It reads query and passage together, "
    "so it is too slow to search with.",
    "paraphrase": "Telling pairs of sentences that mean the same from others, and a start for training re-rankers. "
    "It reads both sentences together, so it is too slow to search with.",
    "classifier": "Comparing encoders by zero-shot transfer; labels of pairs in the languages that it was judged in.",
    "tagger": "Comparing encoders by zero-shot transfer; labels of words in the languages that it was judged in.",
}


def intended_use_section(facts: CardFacts) -> str:
    """The user's words, or ours."""
    said = facts.options.intended_use
    kind = "separate" if facts.is_retriever else "paraphrase" if facts.is_paraphrase_identifier else facts.kind.kind
    use = _USES[kind].format(
        similarity={"cosine": "cosine", "dot": "dot product"}.get(facts.kind.similarity or "", facts.kind.similarity)
    )
    return f"## Intended use\n\n{paragraphs(said) if said else use}"


def limits_section(facts: CardFacts) -> str:
    """The user's words, or a list of what follows from the facts."""
    if facts.options.limits:
        return f"## Limits\n\n{paragraphs(facts.options.limits)}"
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in _limits(facts))


def _limits(facts: CardFacts) -> list[str]:
    limits = []
    if facts.slim:
        limits.append(
            f"The vocabulary holds what text in {plain(language_names(facts.languages))} uses; other text falls into "
            "more, or unknown, tokens."
        )
    elif facts.languages:
        limits.append(
            f"Trained on {plain(language_names(facts.languages))}; other languages come out worse, unless the results "
            "say otherwise."
        )
    if facts.kind.max_tokens:
        limits.append(f"Texts are cut after {facts.kind.max_tokens:,} tokens.")
    if any(source.licence == "unknown" for source in facts.sources):
        limits.append("The licence of some of the training data is not known; look at the table of data before use.")
    if facts.run.get("model") == "tiny":
        limits.append("The encoder is small, and knows only the text that it was trained on.")
    if _only_phrases(facts):
        limits.append(
            "Its training text was made by a small grammar: its figures show that the parts work together, not what an "
            "encoder does on real text."
        )
    if facts.thresholds:
        limits.append(
            "Thresholds for mining hold for text, margin and neighbourhood like those that they were found on."
        )
    if facts.kind.is_encoder or facts.kind.kind == "cross-encoder":
        began = "" if facts.run.get("model") == "tiny" else ", and of the model that it started from,"
        limits.append(
            "Scores tell likeness, not truth: numbers, names and negation are easily missed. Biases of the training "
            f"text{began} remain."
        )
    return limits


def _only_phrases(facts: CardFacts) -> bool:
    return bool(facts.sources) and all("phrasebook" in " ".join(source.specs) for source in facts.sources)
