"""Align documents with their translations, and write the pairs.

========  ======================================================================================================
format    content
========  ======================================================================================================
tsv       as of :func:`~st_xling.mining.mine_texts`; ids are line numbers, ``name:line`` if there are several documents
jsonl     the same as JSON lines
tmx       TMX 1.4, for translators' tools
vecalign  every group, also sentences without a partner: ``[0]:[0, 1]:0.16``, lines counted from 0 and the distance;
          of one document
========  ======================================================================================================
"""

from __future__ import annotations

import html
import logging
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from st_xling.mining.deduplication import write_sentences
from st_xling.mining.documents import (
    DocumentSide,
    SentenceGroup,
    align_sides,
    check_max_size,
    overlap_texts,
    paragraph_marks,
    renumber,
    split_overlaps,
    split_sentences,
)
from st_xling.mining.encoding import Encoder
from st_xling.mining.filters import CandidateBatch, FilterOptions, PairFilters, identify_languages
from st_xling.mining.mine import MinedPairs
from st_xling.mining.pipeline.work import (
    REJECTS,
    Report,
    default_device,
    open_work,
    outcome_lines,
    pair_writer,
    resolve_format,
    sign_pairs,
)
from st_xling.mining.text import hash_sentences, read_rows, validate_text
from st_xling.utils.console import progress_bar
from st_xling.utils.identify import main_language
from st_xling.utils.io import atomic_writer
from st_xling.utils.languages import UNKNOWN
from st_xling.utils.options import AlignmentFormat, Errors, StoreDtype, check_choice
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.signature import name_of
from st_xling.utils.text import ParallelTextError

logger = logging.getLogger(__name__)

_LONG_GAP = 10
_LOW_SCORE = 0.3
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
        gaps: Passages of ten sentences and more without a partner: file, first and last line.
        split: Whether lines were split into sentences, which are then counted instead of lines.
    """

    documents: int
    rows: dict[str, int]
    groups: int
    unpaired: dict[str, int]
    below: int
    gaps: Sequence[tuple[str, int, int]]
    split: bool

    def lines(self) -> list[str]:
        """Describe the metrics, one a line."""
        sides = ", ".join(f"{self.rows[side]:,} {side} sentences ({self.unpaired[side]:,} unpaired)" for side in _SIDES)
        below = f", {self.below:,} below the minimum score" if self.below else ""
        unit = "sentences" if self.split else "lines"
        gaps = [f"no translation: {file}, {unit} {first:,} to {last:,}" for file, first, last in self.gaps[:5]]
        more = [f"… and {len(self.gaps) - 5:,} more such passages"] if len(self.gaps) > 5 else []
        return [f"{sides}: {self.groups:,} groups{below}", *gaps, *more, *outcome_lines(self.rejected, None)]


class _Document(NamedTuple):
    """A document of one side.

    Attributes:
        file: Its file.
        sha256: Hash of its lines.
        lines: Its lines, or its sentences if they are split, without white space at the ends.
        rows: Rows of the lines that are not blank.
        marks: Whether a blank one is before each of them.
    """

    file: str
    sha256: str
    lines: list[str]
    rows: list[int]
    marks: list[bool]

    @property
    def texts(self) -> list[str]:
        """Lines that are not blank."""
        return [self.lines[row] for row in self.rows]

    def pairs(self, groups: Sequence[SentenceGroup], side: int, several: bool) -> tuple[list[list[str]], list[str]]:
        """Return ids and text of one side of some groups."""
        name = f"{Path(self.file).name}:" if several else ""
        ids = [[f"{name}{row + 1}" for row in (group.source, group.target)[side]] for group in groups]
        return ids, [" ".join(self.lines[row] for row in (group.source, group.target)[side]) for group in groups]


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


def read_document_list(path: str | Path) -> list[tuple[str, str]]:
    """Read pairs of file names, separated by a tab, a pair a line; relative ones are relative to the file.

    Raises:
        ParallelTextError: For a line of another number of names, or a missing file; names file and line.
    """
    pairs: list[tuple[str, str]] = []
    for row in read_rows(path):
        if not row.sentence.strip():
            continue
        files = [str(Path(path).parent / name.strip()) for name in row.sentence.split("\t")]
        if len(files) != 2:
            raise ParallelTextError(f"{path}:{row.line}: expected two file names and a tab between, got {len(files)}.")
        if missing := [file for file in files if not Path(file).is_file()]:
            raise ParallelTextError(f"{path}:{row.line}: there is no file {missing[0]}.")
        pairs.append((files[0], files[1]))
    if not pairs:
        raise ParallelTextError(f"{path}: expected two file names a line, with a tab between, got none.")
    return pairs


def align_texts(
    documents: Sequence[tuple[str | Path, str | Path]],
    out: Output,
    *,
    model: Any,
    max_size: int = 8,
    split: bool = False,
    min_score: float | None = None,
    errors: Errors = "strict",
    batch_size: int | None = None,
    dtype: StoreDtype = "float32",
    prompt: str | None = None,
    filters: FilterOptions | None = None,
    rejects: str | Path | None = None,
    format: AlignmentFormat | None = None,
    html_page: str | Path | None = None,
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
        errors: ``"strict"`` or ``"replace"``, for bytes that are not UTF-8.
        batch_size: Maximum number of texts in a batch; by default as many as suit the device.
        dtype: Type in which embeddings are stored: ``"float32"``, ``"float16"`` or ``"int8"``.
        prompt: Text put before every sentence, such as ``"query: "``.
        filters: Enabled filters; all by default. They and ``min_score``
            do not apply to the format ``"vecalign"``, which has whole documents.
        rejects: File for the pairs that filters reject, as JSON lines.
        format: ``"tsv"``, ``"jsonl"``, ``"tmx"`` (needs the languages of ``filters``) or ``"vecalign"``; by default
            that of the ending of ``out``, otherwise TSV.
        html_page: File for a page that shows both texts next to each other.
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
    check_choice("format", format or "tsv", AlignmentFormat)
    if format == "vecalign" and len(documents) != 1:
        raise ValueError(f"the vecalign format is of one document: got {len(documents):,}; choose tsv or jsonl.")
    filters = filters or FilterOptions()
    if format != "vecalign":
        format = resolve_format(format, out, (filters.source_language, filters.target_language))
    inputs = [name_of(model), *(str(file) for pair in documents for file in pair)]
    outputs = {"out": out, "rejects": rejects, "html": html_page}
    check_outputs(outputs, inputs, folders={"work": work_path(out, work)})
    sides = [[_read_document(str(pair[side]), errors) for pair in documents] for side in (0, 1)]
    if split:
        given = (filters.source_language, filters.target_language)
        spoken = [language or main_language(_sample(side)) for language, side in zip(given, sides)]
        sides = [[_split(document, language) for document in side] for language, side in zip(spoken, sides)]
    filters = identify_languages(filters, *map(_sample, sides))
    languages = filters.source_language, filters.target_language
    if languages[0] is not None and languages[0] == languages[1]:
        logger.warning("both sides are in %s, as it seems: expected a translation", languages[0])
    encoder = Encoder(model, batch_size=batch_size, dtype=dtype, prompt=prompt, device=device or default_device())
    encoders = encoder.in_languages(dict(zip(_SIDES, languages)))
    task: dict[str, Any] = {"command": "align-documents", "max_size": max_size}
    if split:
        task["split"] = spoken
    for name, side in zip(_SIDES, sides):
        task[f"{name} text"] = hash_sentences(document.sha256 for document in side)
        task |= {f"{name} {key}": value for key, value in encoders[name].settings.items()}
    with open_work(out, work, task, {"pairs": out, REJECTS: rejects, "page.html": html_page}) as folder:
        stores = [
            _Overlaps(side, encoders[name], folder.path / name, max_size, progress=progress)
            for name, side in zip(_SIDES, sides)
        ]
        # Sentences of all documents are more random than those of one.
        means = None if len(documents) == 1 else (stores[0].mean(), stores[1].mean())
        pair_filters = PairFilters(replace(filters, disable=["all"]) if format == "vecalign" else filters)
        counts, unpaired = Counter[str](), dict.fromkeys(_SIDES, 0)
        gaps: list[tuple[str, int, int]] = []
        with ExitStack() as files:
            stream, log, page = (
                files.enter_context(atomic_writer(folder.path / name)) for name in ("pairs", REJECTS, "page.html")
            )
            write = None
            if format != "vecalign":
                write = files.enter_context(pair_writer(stream, format, languages=languages))
            page.write(_PAGE.encode())
            for number in progress_bar(range(len(documents)), desc="aligning", unit="documents", show=progress):
                pair = sides[0][number], sides[1][number]
                aligned = align_sides(stores[0].side(number), stores[1].side(number), max_size=max_size, means=means)
                groups = renumber(aligned, pair[0].rows, pair[1].rows)
                _write_table(page, pair, groups)
                alone = [group for group in groups if not (group.source and group.target)]
                for name, document in zip(_SIDES, pair):
                    rows = [row for group in alone for row in getattr(group, name)]
                    unpaired[name] += len(rows)
                    gaps += [(document.file, *gap) for gap in _long_gaps(rows, document.rows)]
                found = [group for group in groups if group.source and group.target]
                counts["groups"] += len(found)
                if write is None:
                    for group in groups:
                        distance = 1 - group.score if group.source and group.target else 0.0
                        stream.write(f"{list(group.source)}:{list(group.target)}:{distance:.6f}\n".encode())
                    counts["pairs"] += len(found)
                    continue
                kept = [group for group in found if min_score is None or group.score >= min_score]
                counts["below"] += len(found) - len(kept)
                ids, texts = zip(
                    *(document.pairs(kept, side, len(documents) > 1) for side, document in enumerate(pair))
                )
                places = np.arange(len(kept))
                mined = MinedPairs(np.array([group.score for group in kept]), places, places)
                allowed, rejected = pair_filters.check(CandidateBatch(mined, *texts))
                for one in rejected:
                    log.write(one.as_json(ids[0][one.source_index], ids[1][one.target_index]))
                for place in np.flatnonzero(allowed).tolist():
                    write(kept[place].score, (ids[0][place], ids[1][place]), (texts[0][place], texts[1][place]), None)
                counts["pairs"] += int(allowed.sum())
            page.write(b"</table>\n</body>\n</html>\n")
    return DocumentReport(
        documents=len(documents),
        rows={name: sum(len(document.rows) for document in side) for name, side in zip(_SIDES, sides)},
        groups=counts["groups"],
        unpaired=unpaired,
        below=counts["below"],
        rejected=dict(pair_filters.rejected),
        pairs=counts["pairs"],
        gaps=gaps,
        split=split,
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


def _read_document(path: str, errors: Errors) -> _Document:
    summary = validate_text(path, errors=errors, blank="keep")
    lines = [row.sentence.strip() for row in read_rows(path, errors=errors)]
    return _Document(path, summary.sha256, lines, *paragraph_marks(lines))


def _sample(documents: Sequence[_Document]) -> list[str]:
    return [text for document in documents[:200] for text in document.texts[:200]]


def _split(document: _Document, language: str) -> _Document:
    """Return the document with a sentence a line, and its texts by the rows of these."""
    text = "\n".join("\n" * mark + line for mark, line in zip(document.marks, document.texts))
    sentences = split_sentences(text, None if language == UNKNOWN else language)
    return _Document(document.file, document.sha256, sentences, *paragraph_marks(sentences))


def _names(documents: Sequence[_Document]) -> str:
    first = Path(documents[0].file).name
    return first if len(documents) == 1 else f"{first}+{len(documents) - 1}"


def _long_gaps(rows: Sequence[int], lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last line, counted from 1, of long runs of neighboring lines without a partner."""
    place = {row: number for number, row in enumerate(lines)}
    rows = sorted(rows)
    start = 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or place[rows[stop]] != place[rows[stop - 1]] + 1:
            if stop - start >= _LONG_GAP:
                yield rows[start] + 1, rows[stop - 1] + 1
            start = stop


class _Overlaps:
    """Vectors of the groups of all documents of a side, in a store."""

    def __init__(
        self, documents: Sequence[_Document], encoder: Encoder, folder: Path, max_size: int, *, progress: bool
    ) -> None:
        self._documents, self._max_size = documents, max_size
        counts = [len(overlap_texts(document.texts, max_size)) for document in documents]
        self._ends = [0, *accumulate(counts)]
        folder.mkdir(exist_ok=True)
        texts = (text for document in documents for text in overlap_texts(document.texts, max_size))
        write_sentences(texts, folder / "sentences.jsonl")
        self._store: Any = None
        if self._ends[-1]:
            self._store = encoder.encode_sentences(
                folder / "sentences.jsonl", folder / "store", place=self._place, progress=progress
            )

    def side(self, number: int) -> DocumentSide:
        """Return the vectors of a document."""
        document, (start, stop) = self._documents[number], self._ends[number : number + 2]
        lengths = np.array([len(text) for text in document.texts], dtype=int)
        vectors = split_overlaps(self._store[start:stop], len(lengths), self._max_size) if stop > start else []
        return DocumentSide(vectors, lengths, np.array(document.marks, dtype=bool))

    def mean(self) -> np.ndarray | None:
        """Return the mean vector of all single sentences. *Shape:* ``(dim,)``"""
        total, rows = 0.0, 0
        for start, document in zip(self._ends, self._documents):
            if count := len(document.texts):
                total = total + np.asarray(self._store[start : start + count], dtype=np.float64).sum(axis=0)
                rows += count
        return np.asarray(total / rows, dtype=np.float32) if rows else None

    def _place(self, row: int) -> str:
        number = bisect_right(self._ends, row) - 1
        return self._documents[number].file


_PAGE = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<title>Aligned documents</title>
<style>
body {font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em}
table {border-collapse: collapse; table-layout: fixed; width: 100%}
td {border-top: 1px solid #ddd; padding: .4em .8em; vertical-align: top}
td:nth-child(2) {text-align: center; width: 3em}
.alone {background: #fff3cd} .low {background: #fde2e1}
sup {color: #888}
</style>
</head>
<body>
<table>
"""


def _write_table(page: IO[bytes], pair: tuple[_Document, _Document], groups: Sequence[SentenceGroup]) -> None:
    """Write both documents next to each other, a group a row."""
    heads = (f"<th>{html.escape(Path(document.file).name)}</th>" for document in pair)
    page.write("<tr>{}<th></th>{}</tr>\n".format(*heads).encode())
    for number, group in enumerate(groups):
        alone = not (group.source and group.target)
        kind = "alone" if alone else "low" if group.score < _LOW_SCORE else "pair"
        source, target = (
            " ".join(f"<sup>{row + 1}</sup> {html.escape(document.lines[row])}" for row in rows)
            for document, rows in zip(pair, (group.source, group.target))
        )
        score = "" if alone else f"{group.score:.2f}"
        cells = f'<td>{source}</td><td><a href="#{number}">{score}</a></td><td>{target}</td>'
        page.write(f'<tr id="{number}" class="{kind}">{cells}</tr>\n'.encode())
