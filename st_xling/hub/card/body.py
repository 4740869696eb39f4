"""The text of a card, section by section."""

from __future__ import annotations

import logging

from st_xling._version import __version__
from st_xling.hub.card.advice import intended_use_section, limits_section
from st_xling.hub.card.escaping import code, fenced, paragraphs, plain, table
from st_xling.hub.card.facts import CardFacts
from st_xling.hub.card.losses import recipe_citations
from st_xling.hub.card.metadata import host_card_data
from st_xling.hub.card.result_section import result_section
from st_xling.hub.card.slim_section import slim_section
from st_xling.hub.card.titles import kind_words, language_names, purpose, title
from st_xling.hub.card.training_section import training_section
from st_xling.hub.card.usage import usage_section

logger = logging.getLogger(__name__)


def card_body(facts: CardFacts) -> str:
    """Everything under the metadata; ends with a newline."""
    sections = [
        f"# {plain(title(facts))}",
        paragraphs(purpose(facts)),
        _shape(facts),
        usage_section(facts),
        slim_section(facts.slim),
        result_section(facts),
        training_section(facts),
        intended_use_section(facts),
        limits_section(facts),
        _files(facts),
        _versions(facts),
        _citations(facts),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _shape(facts: CardFacts) -> str:
    kind, options = facts.kind, facts.options
    lines = [("Kind", kind_words(facts))]
    if facts.languages:
        codes = ", ".join(facts.languages)
        lines.append(("Languages", plain(f"{language_names(facts.languages)} ({codes})")))
    if kind.dimension:
        lines.append(("Vectors", f"{kind.dimension:,} dimensions, compared by {plain(kind.similarity or 'cosine')}"))
    if kind.max_tokens:
        lines.append(("Longest text", f"{kind.max_tokens:,} tokens"))
    if facts.base_model:
        lines.append(("Base model", f"[{plain(facts.base_model)}](https://huggingface.co/{facts.base_model})"))
    if options.license:
        lines.append(("Licence", plain(options.license_name or options.license)))
    if options.authors:
        lines.append(("Authors", plain(", ".join(options.authors))))
    return "\n".join(f"- **{name}:** {value}" for name, value in lines)


def _files(facts: CardFacts) -> str:
    """The files that are published; without sizes, since the card is one of them."""
    from st_xling.hub.files import published_files

    try:
        found = [(file.path, file.what) for file in published_files(facts.folder)]
    except ValueError as error:
        logger.info("the card has no table of files: %s", error)
        return ""
    rows = dict([("README.md", "this card"), *found])
    return "## Files\n\n" + table(["file", "what it is"], [[code(path), plain(what)] for path, what in rows.items()])


def _versions(facts: CardFacts) -> str:
    machine = (facts.results.get("training") or {}).get("machine") or {}
    versions = {"st-xling": facts.run.get("version")} if facts.run else {}
    versions |= machine.get("versions") or {"sentence-transformers": facts.kind.library_version}
    told = [f"{name} {version}" for name, version in versions.items() if version]
    made = f"Trained with {plain(', '.join(told))}. " if facts.run and told else ""
    return f"## Versions\n\n{made}Card by st-xling {__version__}."


def _citations(facts: CardFacts) -> str:
    """BibTeX of the model, of its losses as the host gathers them, and of its recipe."""
    own = {title(facts): facts.options.citation} if facts.options.citation else {}
    parts = ["## Citations"]
    for name, entry in {**own, **host_card_data(facts).citations, **recipe_citations(facts.recipe)}.items():
        if entry and entry.strip():
            parts += [f"### {plain(name)}", fenced(entry.strip(), "bibtex")]
    return "\n\n".join(parts)
