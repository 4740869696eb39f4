"""Find which documents of two folders belong together by what they say, where their names do not tell."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from st_xling.mining.document_pairing import LEAD, pair_by_sentences
from st_xling.mining.encoding import Encoder
from st_xling.mining.filters import FilterOptions, identify_languages
from st_xling.mining.options import EncodingOptions
from st_xling.mining.pipeline.document_lines import (
    SIDES,
    DocumentLines,
    read_document_lines,
    sample_sentences,
    split_documents,
)
from st_xling.mining.pipeline.work import on_default_device
from st_xling.mining.text import summarize
from st_xling.utils.options import check_number, helpful_arguments
from st_xling.utils.resumable import work_folder


class MatchedDocuments(NamedTuple):
    """A document and its translation.

    Attributes:
        source: File of the document.
        target: File of its translation.
        score: How much of either is in the other: 1 for the same, about 0 for any two.
        lead: How much the score is above that of other candidates.
    """

    source: str
    target: str
    score: float
    lead: float


@dataclass(frozen=True)
class DocumentMatches:
    """Documents that belong together, and those without a partner.

    Attributes:
        pairs: Pairs, in the order of the source documents.
        without_partner: Files of both sides without a partner.
    """

    pairs: list[MatchedDocuments]
    without_partner: list[str]

    @property
    def files(self) -> list[tuple[str, str]]:
        """Files of each pair, as :func:`~st_xling.mining.align_texts` takes them."""
        return [(pair.source, pair.target) for pair in self.pairs]

    def as_dict(self) -> dict[str, Any]:
        """Return the pairs and the files without a partner, for JSON."""
        return {"pairs": [pair._asdict() for pair in self.pairs], "without_partner": self.without_partner}


def folder_files(folder: str | Path) -> list[str]:
    """Return the documents of a folder and of the folders in it, sorted; not those whose names begin with a dot.

    Raises:
        ValueError: If there is none.
    """
    files = [str(path) for path in sorted(Path(folder).rglob("*")) if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise ValueError(f"expected a folder of documents: {folder} has no files.")
    return files


@helpful_arguments
def match_documents(
    sources: Sequence[str | Path],
    targets: Sequence[str | Path],
    *,
    model: Any,
    split: bool = False,
    min_lead: float = LEAD,
    encoding: EncodingOptions = EncodingOptions(),
    filters: FilterOptions | None = None,
    work: str | Path | None = None,
    progress: bool = False,
) -> DocumentMatches:
    """Find the documents of two collections that are translations of each other, one to one.

    See :mod:`st_xling.mining.document_pairing` for how. Every sentence is embedded once. Repeat the same call with a
    work folder to resume a killed one.

    Args:
        sources: Files of documents, as :func:`~st_xling.mining.align_texts` reads them.
        targets: Files of documents in another language, in any order.
        model: Encoder: a ``SentenceTransformer``, or the Hub id or folder of one.
        split: Whether to split the lines of text files into sentences, as ``align_texts`` does.
        min_lead: Minimum lead of a pair over other candidates, unless its score is certain; -1 pairs as many documents
            as it can.
        encoding: How the sentences are embedded.
        filters: Their languages are those of the documents; by default they are identified.
        work: Folder for the embeddings, which is kept; by default a temporary one.
        progress: Show progress bars on stderr.

    Raises:
        ValueError: For faulty text, documents without sentences on one side, or a work folder of another task.

    Example:
        >>> matches = match_documents(["a.de", "b.de"], ["1.en", "2.en"], model="my-encoder")  # doctest: +SKIP
        >>> matches.files  # doctest: +SKIP
        [("a.de", "2.en"), ("b.de", "1.en")]
    """
    check_number("min_lead", min_lead)
    filters = filters or FilterOptions()
    named_languages = (filters.source_language, filters.target_language)
    sides = {
        "source": [read_document_lines(str(file)) for file in sources],
        "target": [read_document_lines(str(file)) for file in targets],
    }
    task: dict[str, Any] = {"command": "match-documents"}
    split_documents(sides, named_languages, every_text=split, task=task)
    samples = (sample_sentences(sides["source"]), sample_sentences(sides["target"]))
    for side, sample, files in zip(SIDES, samples, (sources, targets)):
        if not sample:
            raise ValueError(f"expected {side} documents with text: got {len(files):,} blank ones.")
    filters = identify_languages(filters, *samples)
    encoder = Encoder(model, on_default_device(encoding))
    encoders = encoder.in_languages(dict(zip(SIDES, (filters.source_language, filters.target_language))))
    for side, documents in sides.items():
        task[f"{side} text"] = summarize(document.sha256 for document in documents).sha256
        task |= {f"{side} {key}": value for key, value in encoders[side].settings.items()}

    with work_folder("", work, task) as folder:
        vectors = [
            _SentenceVectors(documents, encoders[side], folder.path / side, progress=progress)
            for side, documents in sides.items()
        ]
        pairs = pair_by_sentences(*vectors, min_lead=min_lead)
    if not pairs:
        raise ValueError(
            f"no documents of {len(sources):,} and {len(targets):,} belong together, as it seems: check that they are "
            "translations, and the model; documents of the same names are paired by their names."
        )
    matched = [
        MatchedDocuments(str(sources[pair.source]), str(targets[pair.target]), pair.score, pair.lead)
        for pair in sorted(pairs, key=lambda pair: pair.source)
    ]
    with_partner = {file for pair in matched for file in (pair.source, pair.target)}
    without_partner = [str(file) for file in (*sources, *targets) if str(file) not in with_partner]
    return DocumentMatches(matched, without_partner)


class _SentenceVectors(Sequence[np.ndarray]):
    """Vectors of the sentences of each document of a side, in a store."""

    def __init__(self, documents: Sequence[DocumentLines], encoder: Encoder, folder: Path, *, progress: bool) -> None:
        self._documents = documents
        # Row at which each document begins, and the number of all rows.
        self._starts = [0, *accumulate(len(document.texts) for document in documents)]
        sentences = _Sentences(documents)
        self._vectors = encoder.encode_sentences(sentences, folder, locate=self._file_of, progress=progress)

    def _file_of(self, row: int) -> str:
        return self._documents[bisect_right(self._starts, row) - 1].file

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, number: Any) -> Any:
        return self._vectors[self._starts[number] : self._starts[number + 1]]


class _Sentences:
    """All sentences of some documents, which can be iterated over more than once."""

    def __init__(self, documents: Sequence[DocumentLines]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[str]:
        for document in self._documents:
            yield from document.texts
