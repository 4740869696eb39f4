"""The phrasebook as a retriever's sources: English sentences ask for their German ones, beside parallel text."""

from typing import Any

from st_xling.data.pairs import COLUMNS
from st_xling.data.phrasebook import parallel_phrases
from st_xling.models import tiny_encoder
from st_xling.training.retriever import RetrievalSources


def phrases(source: str, size: int, *, seed: int = 0, split: str = "train") -> Any:
    return parallel_phrases(source, "en", size=size, seed=seed, split=split).select_columns(list(COLUMNS))


def phrase_sources(*, queries: int = 96, parallel: int = 160, others: int = 70) -> RetrievalSources:
    """Three sources of different sizes; the others are French."""
    query_pairs = phrases("de", queries)
    columns = {"source": query_pairs["target"][:], "target": query_pairs["source"][:]}
    columns |= {"source_language": ["en"] * queries, "target_language": ["de"] * queries}
    aligned = (
        {"de-en": phrases("de", parallel, seed=1), "zh-en": phrases("zh", parallel // 2, seed=2)} if parallel else {}
    )
    french = phrases("fr", others, seed=3).map(lambda row: {"target": row["source"]}) if others else None
    return RetrievalSources(
        {"en": type(query_pairs).from_dict(columns)}, aligned, {} if french is None else {"fr": french}
    )


def small_encoder(sources: RetrievalSources, **options: Any) -> Any:
    data = [part for role in (sources.queries, sources.parallel, sources.others) for part in role.values()]
    texts = [text for part in data for side in ("source", "target") for text in part[side][:]]
    settings = {"vocabulary": 600, "hidden_size": 32, "layers": 2, "dropout": 0.0, "max_length": 64, **options}
    return tiny_encoder(texts, **settings).to("cpu")
