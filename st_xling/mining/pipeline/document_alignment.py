"""Align documents with their translations, and write the pairs.

========  ======================================================================================================
format    content
========  ======================================================================================================
tsv       as of :func:`~st_xling.mining.mine_texts`; ids are line numbers, ``name:line`` if there are several documents
jsonl     the same as JSON lines
tmx       TMX 1.4, for translation tools
vecalign  every group, also sentences without a partner: ``[0]:[0, 1]:0.16``, lines counted from 0 and the distance;
          of one document
========  ======================================================================================================
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from st_xling.mining.documents import DocumentSide, align_sides, check_max_size, overlap_texts, split_sentences
from st_xling.mining.encoding import Encoder
from st_xling.mining.filters import FilterOptions, PairFilters, identify_languages
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    default_device,
    open_work,
    pair_writer,
    resolve_format,
    sign_pairs,
    write_checked,
)
from st_xling.mining.text import MiningText, TextWithIds, summarize
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.utils.identify import main_language
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import AlignmentFormat, StoreDtype, check_choice, check_number, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar
from st_xling.utils.text import ParallelTextError, is_blank

logger = logging.getLogger(__name__)

_SIDES = ("source", "target")
# A language at the end of a file's name, which is not part of the name that two documents share.
_LANGUAGE_TAG = re.compile(r"[._-][A-Za-z]{2,3}(?:[_-][A-Za-z]{2,4})?$")


@dataclass(frozen=True, kw_only=True)
class DocumentReport(Report):
    """Metrics of one run; ``rejected`` counts groups.

    Attributes:
        documents: Number of pairs of documents.
        rows: Number of sentences of each side, without blank lines.
        groups: Number of groups with sentences of both sides.
        unpaired: Number of sentences of each side without a partner.
        below: Number of groups below the minimum score.
    """

    documents: int
    rows: dict[str, int]
    groups: int
    unpaired: dict[str, int]
    below: int

    def lines(self) -> list[str]:
        """Describe the metrics, one a line."""
        sides = ", ".join(f"{self.rows[side]:,} {side} sentences ({self.unpaired[side]:,} unpaired)" for side in _SIDES)
        below = f", {self.below:,} below the minimum score" if self.below else ""
        return [f"{sides}: {self.groups:,} groups{below}", *super().lines()]


class _Document(NamedTuple):
    """A document of one side.

    Attributes:
        file: Its file.
        sha256: Hash of its lines.
        lines: Its lines, or its sentences if they are split, without white space at the ends; blank ones are empty.
    """

    file: str
    sha256: str
    lines: list[str]

    @property
    def texts(self) -> list[str]:
        """Lines that are not blank."""
        return list(filter(None, self.lines))

    def groups(self, groups: Sequence[Sequence[int]], several: bool) -> tuple[list[list[str]], list[str]]:
        """Return ids and texts of groups of lines; ids have the name of the file if there are several documents."""
        name = f"{Path(self.file).name}:" if several else ""
        ids = [[f"{name}{row + 1}" for row in rows] for rows in groups]
        return ids, [" ".join(self.lines[row] for row in rows) for rows in groups]


def pair_documents(source_dir: str | Path, target_dir: str | Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Find the documents of two folders that belong together, by name.

    Names are compared without what follows their first dot, and without a language at their end: ``news/1.txt`` and
    ``news/1.txt``, ``1.de.txt`` and ``1.en.txt``, ``1_de.gz`` and ``1_en.gz`` belong together.

    Returns:
        Pairs of files, and files without a partner.
    Raises:
        ValueError: If two files of a folder have the same name, or no file has a partner.
    """
    named: list[dict[str, str]] = []
    for folder in (Path(source_dir), Path(target_dir)):
        files: dict[str, str] = {}
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.name.startswith("."):
                continue
            relative = path.relative_to(folder)
            stem = _LANGUAGE_TAG.sub("", relative.name.split(".")[0])
            name = (relative.parent / stem).as_posix()
            if name in files:
                raise ValueError(f"{files[name]} and {path} have the same name, {name}: rename one.")
            files[name] = str(path)
        named.append(files)
    both = [name for name in named[0] if name in named[1]]
    if not both:
        raise ValueError(
            f"expected documents of the same names in {source_dir} and {target_dir}, such as 1.txt in both, or "
            f"1.de.txt and 1.en.txt; got {' and '.join(', '.join([*files][:3]) or 'none' for files in named)}."
        )
    alone = [file for files, other in (named, named[::-1]) for name, file in files.items() if name not in other]
    return [(named[0][name], named[1][name]) for name in both], alone


@helpful_arguments
def align_texts(
    documents: Sequence[tuple[str | Path, str | Path]],
    out: Output,
    *,
    model: Any,
    max_size: int = 8,
    split: bool = False,
    min_score: float | None = None,
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    filters: FilterOptions | None = None,
    rejects: Output | None = None,
    format: AlignmentFormat | None = None,
    device: str | None = None,
    work: str | Path | None = None,
    progress: bool = False,
) -> DocumentReport:
    """Align documents with their translations, and write the pairs in the order of the documents.

    See :func:`~st_xling.mining.align_documents` for how one is aligned. All documents are embedded together. If there
    are several, their sentences stand for the random ones with which a score is compared.

    Embeddings are kept in ``work`` until the pairs are written. Repeat the same call to resume a killed one.

    Args:
        documents: Files of each document and its translation: UTF-8, a sentence or paragraph a line, also compressed.
            Blank lines mark paragraphs.
        out: File of the pairs, replaced if it exists; or a binary stream.
        model: Encoder: a ``SentenceTransformer``, or the Hub id or folder of one.
        max_size: Maximum number of sentences of both sides in a group; see ``align_documents``.
        split: Whether to split the lines into sentences, by :func:`~st_xling.mining.split_sentences`, in the languages
            of ``filters`` or those that are identified. Ids are then the numbers of sentences, where the end of a
            paragraph also counts.
        min_score: Minimum score of a pair; all are kept by default.
        batch_size: Maximum number of texts in a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``.
        prompt: Text put before every sentence, such as ``"query: "``.
        filters: Enabled filters; all by default. They and ``min_score``
            do not apply to the format ``"vecalign"``, which has whole documents.
        rejects: File for the pairs that filters reject, as JSON lines; or a binary stream.
        format: ``"tsv"``, ``"jsonl"``, ``"tmx"`` (with the languages of ``filters``, of the file names, or identified)
            or ``"vecalign"``; by default that of the ending of ``out``, otherwise TSV.
        device: Device to embed on; by default a GPU if there is one.
        work: Work folder, which is kept at the end, to try other options; by default ``OUT.work``, which is removed.
        progress: Show progress bars on stderr.
    Returns:
        Metrics and signature.
    Raises:
        ValueError: For options out of range, faulty text, several documents with ``format="vecalign"``, or a work
            folder of another task.
        OSError: For a full disk; the work is kept.
    """
    check_max_size(max_size)
    check_number("min_score", min_score)
    check_number("batch_size", batch_size, least=1)
    check_choice("format", format or "tsv", AlignmentFormat)
    if format == "vecalign" and len(documents) != 1:
        raise ValueError(f"the vecalign format is of one document: got {len(documents):,}; choose tsv or jsonl.")
    filters = filters or FilterOptions()
    if format != "vecalign":
        format = resolve_format(format, out)
    inputs = [name_of(model), *(str(file) for pair in documents for file in pair)]
    check_outputs({"out": out, "rejects": rejects}, inputs, folders={"work": work_path(out, work)})
    sides = [[_read_document(str(pair[side])) for pair in documents] for side in (0, 1)]
    task: dict[str, Any] = {"command": "align-documents", "max_size": max_size}
    if split:
        given = filters.source_language, filters.target_language
        task["split"] = [language or main_language(_sample(side)) for language, side in zip(given, sides)]
        for number, language in enumerate(task["split"]):
            known = None if language == UNKNOWN else language
            sides[number] = [one._replace(lines=split_sentences("\n".join(one.lines), known)) for one in sides[number]]
    named = filters.source_language, filters.target_language
    check_text_languages(filters, *map(_sample, sides))
    written_languages: tuple[str | None, str | None] = named
    if format == "tmx":
        written_languages = named_or_found(named, documents[0], [*map(_sample, sides)])
    filters = identify_languages(filters, *map(_sample, sides))
    languages = filters.source_language, filters.target_language
    if languages[0] is not None and languages[0] == languages[1]:
        logger.warning("both sides are in %s, as it seems: expected a translation", languages[0])
    encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device or default_device())
    encoders = encoder.in_languages(dict(zip(_SIDES, languages)))
    for name, side in zip(_SIDES, sides):
        task[f"{name} text"] = summarize(document.sha256 for document in side).sha256
        task |= {f"{name} {key}": value for key, value in encoders[name].settings.items()}
    rows = {name: sum(len(document.texts) for document in side) for name, side in zip(_SIDES, sides)}
    with open_work(out, work, task, {"pairs": out, REJECTS: rejects}) as folder:
        stores = [
            _Overlaps(side, encoders[name], folder.path / name, max_size, progress=progress)
            for name, side in zip(_SIDES, sides)
        ]
        # Sentences of all documents are more random than those of one.
        means = (None, None) if len(documents) == 1 else (stores[0].mean(), stores[1].mean())
        pair_filters = PairFilters(replace(filters, disable=["all"]) if format == "vecalign" else filters)
        counts, unpaired = Counter[str](), dict(rows)
        with ExitStack() as files:
            stream, log = (files.enter_context(atomic_writer(folder.path / name)) for name in ("pairs", REJECTS))
            write = None
            if format != "vecalign":
                write = files.enter_context(pair_writer(stream, format, languages=written_languages))
            for number in progress_bar(range(len(documents)), desc="aligning", unit="documents", show=progress):
                groups = align_sides(stores[0].side(number), stores[1].side(number), max_size=max_size, means=means)
                found = [group for group in groups if group.source and group.target]
                counts["groups"] += len(found)
                for name in _SIDES:
                    unpaired[name] -= sum(len(getattr(group, name)) for group in found)
                if write is None:
                    for group in groups:
                        distance = 1 - group.score if group.source and group.target else 0.0
                        stream.write(f"{list(group.source)}:{list(group.target)}:{distance:.6f}\n".encode())
                    counts["pairs"] += len(found)
                    continue
                kept = [group for group in found if min_score is None or group.score >= min_score]
                counts["below"] += len(found) - len(kept)
                places = [[getattr(group, name) for group in kept] for name in _SIDES]
                several = len(documents) > 1
                ids, texts = zip(*(side[number].groups(own, several) for side, own in zip(sides, places)))
                scores = np.array([group.score for group in kept])
                counts["pairs"] += write_checked(scores, ids, texts, pair_filters, write, log)
    return DocumentReport(
        documents=len(documents),
        rows=rows,
        groups=counts["groups"],
        unpaired=unpaired,
        below=counts["below"],
        rejected=dict(pair_filters.rejected),
        pairs=counts["pairs"],
        source_language=languages[0] or written_languages[0],
        target_language=languages[1] or written_languages[1],
        signature=sign_pairs(
            "align_documents",
            {**encoders},
            *(["split:yes"] if split else []),
            f"max_size:{max_size}",
            f"min_score:{'none' if min_score is None else f'{min_score:g}'}",
            f"filters:{pair_filters.signature}",
            *(f"{name}:{_names(side)}@{task[f'{name} text'][:8]}" for name, side in zip(_SIDES, sides)),
        ),
    )


def _read_document(path: str) -> _Document:
    text = MiningText(path)
    try:
        sha256 = text.validate().sha256
    except TextWithIds as error:
        raise ParallelTextError(f"{error.fact}; take the sentences alone: cut -f2-.") from None
    return _Document(path, sha256, ["" if is_blank(line) else line.strip() for line in text])


def _sample(documents: Sequence[_Document]) -> list[str]:
    return [text for document in documents[:200] for text in document.texts[:200]]


def _names(documents: Sequence[_Document]) -> str:
    first = Path(documents[0].file).name
    return first if len(documents) == 1 else f"{first}+{len(documents) - 1}"


class _Overlaps:
    """Texts of the groups of all documents of a side, with their vectors in a store."""

    def __init__(
        self, documents: Sequence[_Document], encoder: Encoder, folder: Path, max_size: int, *, progress: bool
    ) -> None:
        self._documents, self._max_size = documents, max_size
        self._ends = [0, *accumulate(len(overlap_texts(document.lines, max_size)) for document in documents)]
        self._vectors: Any = np.empty((0, 0))
        if self._ends[-1]:
            self._vectors = encoder.encode_sentences(
                self, folder, place=lambda row: documents[bisect_right(self._ends, row) - 1].file, progress=progress
            )

    def __iter__(self) -> Iterator[str]:
        return (text for document in self._documents for text in overlap_texts(document.lines, self._max_size))

    def side(self, number: int) -> DocumentSide:
        """Return the vectors of a document."""
        start, stop = self._ends[number : number + 2]
        return DocumentSide.of(self._documents[number].lines, self._vectors[start:stop], self._max_size)

    def mean(self) -> np.ndarray | None:
        """Return the mean vector of all single sentences. *Shape:* ``(dim,)``"""
        counts = [len(document.texts) for document in self._documents]
        parts = (self._vectors[start : start + count] for start, count in zip(self._ends, counts) if count)
        total = sum(np.asarray(part, dtype=np.float64).sum(axis=0) for part in parts)
        return np.asarray(total / sum(counts), dtype=np.float32) if any(counts) else None
