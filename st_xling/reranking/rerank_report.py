"""What re-ranking did: figures, and what they depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.mining.stores.manifest import ModelIdentity
from st_xling.reranking.text_records import TextRecords


@dataclass(frozen=True)
class RerankReport:
    """Figures of a call of :func:`~st_xling.reranking.rerank_files.rerank_texts`.

    Attributes:
        queries: Given.
        passages: Lines written.
        without_candidates: Queries that had none, and have no lines.
        long_queries: Queries that leave the model no room for a passage, and have no lines.
        cut_passages: Pairs whose passage was cut to the model's length.
        signature: What the result depends on.
    """

    queries: int
    passages: int
    without_candidates: int
    long_queries: int
    cut_passages: int
    signature: str

    @classmethod
    def of(
        cls,
        counts: Mapping[str, int],
        model: ModelIdentity,
        *,
        queries: TextRecords,
        passages: TextRecords,
        candidates: str,
        top_k: int | None,
    ) -> RerankReport:
        """Figures by name, and a signature of what the files hold."""
        files = [f"{each.what}:{Path(each.path).name}@{each.sha256[:8]}" for each in (queries, passages)]
        words = ["rerank", f"model:{model}", *files, f"candidates:{candidates}", f"top_k:{top_k or 'all'}"]
        names = ("queries", "passages", "without_candidates", "long_queries", "cut_passages")
        return cls(**{name: counts[name] for name in names}, signature="|".join([*words, f"st-xling:{__version__}"]))

    def as_dict(self) -> dict[str, Any]:
        """The figures, without the signature."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """For people: what was left out and cut, where there is any."""
        told = {
            "queries without candidates, left out": self.without_candidates,
            "queries too long for the model, left out": self.long_queries,
            "passages cut to the model's length": self.cut_passages,
        }
        return [f"{count:,} {what}" for what, count in told.items() if count]
