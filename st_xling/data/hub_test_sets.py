"""Test sets that are read from the Hub by name: ``--data de-en=ntrex``, ``--data tatoeba``, ``--data sw=miracl``.

They are mteb's copies, at fixed commits, kept in the cache of ``datasets``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from st_xling.utils.console import first_line
from st_xling.utils.languages import canonical_language, match_language


class HubTestSet(NamedTuple):
    """A test set on the Hub.

    Attributes:
        dataset: Its id.
        revision: Commit.
        license: License of the text.
        split: The split that is read, of test sets of translations.
    """

    dataset: str
    revision: str
    license: str
    split: str = "test"


HUB_TEST_SETS = {
    "tatoeba": HubTestSet("mteb/tatoeba-bitext-mining", "69e8f12da6e31d59addadda9a9c8a2e601a0e282", "CC BY 2.0"),
    "ntrex": HubTestSet("mteb/NTREXBitextMining", "66b8b27efc99658903127730575e9fa0cb9f075c", "CC BY-SA 4.0"),
    "flores": HubTestSet(
        "mteb/FloresBitextMining", "2144d16cc15edd22d4a9237d12bff5f31f5c07fc", "CC BY-SA 4.0", split="devtest"
    ),
}
"""Name → test set of translations. NTREX and FLORES have a column for each language, Tatoeba rows for each language
with English."""

HUB_RETRIEVAL_SETS = {
    "miracl": HubTestSet("mteb/MIRACLRetrieval", "9c09abc13478308c27598f350e31d8f06b9b5481", "CC BY-SA 4.0"),
    "mlqa": HubTestSet("mteb/MLQARetrieval", "5bef8b6e2601af974fb1a1cca03fd702229be4b6", "CC BY-SA 3.0"),
    "xquad": HubTestSet("mteb/XQuADRetrieval", "194842d6a49baddf6cd3f4d5130ab3c7756268d2", "CC BY-SA 4.0"),
}
"""Name → retrieval set, see :mod:`st_xling.data.retrieval.hub`."""

_ELSEWHERE = {
    "bucc": "BUCC's corpora with distractors are not on the Hub: download and unpack them from "
    "https://comparable.limsi.fr/bucc2018/bucc2018-task.html, and name the folder",
    "xquadr": "XQuAD-R's answer sentences are not on the Hub: download xquad-r/xx.json from "
    "https://github.com/google-research-datasets/lareqa, and name the file as xx=xx.json",
}


def where_to_get(name: str) -> str:
    """Return a sentence on where a test set can be downloaded that is not on the Hub, or an empty text."""
    name = re.sub(r"[^a-z]", "", name.lower())
    return f" {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""


def hub_languages(name: str) -> list[str]:
    """Return the languages of a test set, as it spells them; those of Tatoeba without English."""
    table = _table(name)
    if name != "tatoeba":
        return list(table.column_names)
    return [pair.removesuffix("-eng") for pair in table.unique("lang")]


def hub_pairs(name: str, source_language: str | None, target_language: str | None) -> Any:
    """Return the sentences of two languages as a ``Dataset`` with two columns, named by the codes that are given.

    Raises:
        ValueError: If the data set cannot be loaded, or does not have the languages.
    """
    wanted = [code for code in (source_language, target_language) if code]
    if len(wanted) != 2:
        raise ValueError(f"name the two languages, such as de-en={name}: got {' and '.join(wanted) or 'none'}.")
    table, known = _table(name), hub_languages(name)
    if name == "tatoeba":
        others = [code for code in wanted if canonical_language(code) != "eng"]
        found = match_language(others[0], known) if len(others) == 1 else None
        if found is not None:
            table = table.select([row for row, pair in enumerate(table["lang"]) if pair == f"{found}-eng"])
            english = next(code for code in wanted if code != others[0])
            return table.select_columns(["sentence1", "sentence2"]).rename_columns(
                {"sentence1": others[0], "sentence2": english}
            )
    else:
        columns = [match_language(code, known) for code in wanted]
        if all(columns) and columns[0] != columns[1]:
            return table.select_columns(columns).rename_columns(dict(zip(columns, wanted)))
    expected = "one language with English" if name == "tatoeba" else "two languages"
    raise ValueError(f"{name} has no pair {'-'.join(wanted)}: expected {expected} out of {', '.join(sorted(known))}.")


@cache
def _table(name: str) -> Any:
    from datasets import load_dataset

    chosen = HUB_TEST_SETS[name]
    try:
        return load_dataset(chosen.dataset, revision=chosen.revision, split=chosen.split)
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        raise ValueError(
            f"{name} is the data set {chosen.dataset} on the Hub, which could not be read: {type(error).__name__}: "
            f"{first_line(error)}. Connect once to fetch it (without HF_HUB_OFFLINE), or name a local folder or "
            f"file instead of {name}."
        ) from error
