"""Retrieval sets of the Hub, in the layout of BEIR and mteb: configurations for passages, queries and judgments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from st_xling.data.check import FaultLog
from st_xling.data.hub_test_sets import HUB_RETRIEVAL_SETS
from st_xling.data.retrieval.files import Passages, Qrels, parse_passage
from st_xling.utils.console import first_line
from st_xling.utils.languages import match_language


def load_hub_retrieval_set(
    location: str,
    *,
    language: str,
    query_language: str,
    name: str | None = None,
    split: str = "test",
    skip_bad_lines: bool = False,
) -> tuple[Passages, dict[str, str], Qrels]:
    """Load passages, queries and judgments of a data set.

    Args:
        location: A name of :data:`~st_xling.data.hub_test_sets.HUB_RETRIEVAL_SETS`, or the id of a data set.
        language: Language of the passages.
        query_language: Language of the queries.
        name: What is before ``-corpus``, ``-queries`` and ``-qrels`` in the names of the configurations. By default the
            language of the passages, or that of the queries and that of the passages (``eng-deu``), if they are there.
        split: Split of the judgments, and of the rest where it is divided too.
        skip_bad_lines: Skip faulty rows, with a warning, instead of raising.
    Returns:
        Passages; query id → text; query id → passage id → grade above 0.
    Raises:
        ValueError: If the data set cannot be loaded, or has no such configuration or split.
        ParallelTextError: For rows without id or text, and for judgments of unknown passages.
    """
    import datasets

    known = HUB_RETRIEVAL_SETS.get(location)
    repo, revision = (known.dataset, known.revision) if known else (location, None)
    tables: dict[str, Any] = {}
    try:
        configs = datasets.get_dataset_config_names(repo, revision=revision)
        prefix = _prefix(configs, name, language, query_language)
        # Sets of one language may have the judgments in the default configuration.
        qrels = next((one for one in (f"{prefix}qrels", "default") if one in configs), "qrels")
        for part, config in (("corpus", f"{prefix}corpus"), ("queries", f"{prefix}queries"), ("qrels", qrels)):
            splits = datasets.get_dataset_split_names(repo, config, revision=revision)
            tables[part] = datasets.load_dataset(
                repo, config, split=splits[0] if len(splits) == 1 else split, revision=revision
            )
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        raise ValueError(
            f"{location} is no folder, and as a data set of the Hub, with configurations corpus, queries and qrels, it "
            f"could not be read: {type(error).__name__}: {first_line(error)}. Check the spelling, ?name= and "
            "?split=, and the network (HF_HUB_OFFLINE)."
        ) from error
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="retrieval sets")

    def records(part: str) -> Iterator[tuple[str, str]]:
        for number, row in enumerate(tables[part], 1):
            if parsed := parse_passage(row):
                yield parsed
            else:
                faults.add(f"{location}/{part}", number, "no id or text", "expected _id and text")

    passages, queries = Passages(records("corpus")), dict(records("queries"))
    relevant: Qrels = {}
    for number, row in enumerate(tables["qrels"], 1):
        if (passage := str(row["corpus-id"])) not in passages.ids:
            faults.add(f"{location}/qrels", number, "unknown passage", passage)
        elif row["score"] > 0:
            relevant.setdefault(str(row["query-id"]), {})[passage] = int(row["score"])
    faults.finalize()
    return passages, queries, relevant


def _prefix(configs: Sequence[str], name: str | None, language: str, query_language: str) -> str:
    """Return what is before ``corpus`` in the names of the configurations of some languages."""
    known = [config.removesuffix("-corpus") for config in configs if config.endswith("-corpus")]
    if name is None and not known:
        return ""
    if name is None:
        pairs = [one.split("-") for one in known if one.count("-") == 1]
        wanted = [
            "-".join(pair)
            for pair in pairs
            if match_language(query_language, pair[:1]) and match_language(language, pair[1:])
        ]
        name = match_language(language, known) or (wanted[0] if len(wanted) == 1 else None)
    if name not in known:
        raise ValueError(f"configurations of {', '.join(known) or 'no language'}: choose one by ?name=.")
    return f"{name}-"
