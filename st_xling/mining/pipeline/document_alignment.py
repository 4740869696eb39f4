"""Align documents with their translations, and write the pairs.

========  ======================================================================================================
format    content
========  ======================================================================================================
tsv       as of :func:`~st_xling.mining.mine_texts`; ids are line numbers, ``name:line`` if there are several documents;
          columns ``document`` and ``position`` tell where each pair comes from, see
          :class:`~st_xling.mining.pipeline.work.DocumentPlace`
jsonl     the same as JSON lines
tmx       TMX 1.4, for translation tools
vecalign  every group, also sentences without a partner: ``[0]:[0, 1]:0.16``, lines counted from 0 and the distance;
          of one document
========  ======================================================================================================
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from st_xling.data.pair_page import PairPage
from st_xling.mining.documents import (
    MAX_ROUNDS,
    DocumentSide,
    Means,
    SentenceGroup,
    Span,
    align_sides,
    check_max_size,
    single_spans,
    span_texts,
    spans_to_encode,
)
from st_xling.mining.encoding import Encoder
from st_xling.mining.filters import FilterOptions, PairFilters, identify_languages
from st_xling.mining.options import EncodingOptions
from st_xling.mining.pipeline.aligned_pairs import (
    BELOW,
    UNPAIRED,
    AlignedTexts,
    CheckedGroup,
    check_groups,
    check_merge_to,
    merge_groups,
)
from st_xling.mining.pipeline.document_lines import (
    SIDES,
    DocumentLines,
    count_sentences,
    read_document_lines,
    sample_sentences,
    split_documents,
)
from st_xling.mining.pipeline.work import (
    REJECTS,
    DocumentPlace,
    Report,
    SideLanguages,
    WritePair,
    WrittenPair,
    on_default_device,
    open_work,
    pair_writer,
    resolve_format,
    sign_pairs,
)
from st_xling.mining.text import summarize
from st_xling.mining.text_languages import check_text_languages, named_or_found
from st_xling.utils.io import atomic_writer, write_atomic
from st_xling.utils.options import AlignmentFormat, check_choice, check_number, helpful_arguments
from st_xling.utils.paths import check_outputs
from st_xling.utils.resumable import Output, work_path
from st_xling.utils.signature import name_of
from st_xling.utils.terminal import progress_bar

logger = logging.getLogger(__name__)

_PAIRS_FILE = "pairs"
_PAGE_FILE = "page.html"
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
        sides = ", ".join(f"{self.rows[side]:,} {side} sentences ({self.unpaired[side]:,} unpaired)" for side in SIDES)
        below = f", {self.below:,} below the minimum score" if self.below else ""
        return [f"{sides}: {self.groups:,} groups{below}", *super().lines()]


def pair_documents(source_dir: str | Path, target_dir: str | Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Find the documents of two folders that belong together, by name.

    Names are compared without what follows their first dot, and without a language at their end: ``news/1.txt`` and
    ``news/1.txt``, ``1.de.txt`` and ``1.en.txt``, ``1_de.gz`` and ``1_en.gz`` belong together.

    Returns:
        Pairs of files, and files without a partner.

    Raises:
        ValueError: If two files of a folder have the same name, or no file has a partner.
    """
    sources = _files_by_name(Path(source_dir))
    targets = _files_by_name(Path(target_dir))
    shared_names = [name for name in sources if name in targets]
    if not shared_names:
        some_names = [", ".join([*files][:3]) or "none" for files in (sources, targets)]
        raise ValueError(
            f"expected documents of the same names in {source_dir} and {target_dir}, such as 1.txt in both, or "
            f"1.de.txt and 1.en.txt; got {' and '.join(some_names)}."
        )
    without_partner = [file for name, file in sources.items() if name not in targets]
    without_partner += [file for name, file in targets.items() if name not in sources]
    return [(sources[name], targets[name]) for name in shared_names], without_partner


def _files_by_name(folder: Path) -> dict[str, str]:
    """Return the files of a folder by the names by which documents are paired."""
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
    return files


@helpful_arguments
def align_texts(
    documents: Sequence[tuple[str | Path, str | Path]],
    out: Output,
    *,
    model: Any,
    max_size: int = 8,
    split: bool = False,
    min_score: float | None = None,
    merge_to: int | None = None,
    encoding: EncodingOptions = EncodingOptions(),
    filters: FilterOptions | None = None,
    rejects: Output | None = None,
    html: Output | None = None,
    format: AlignmentFormat | None = None,
    work: str | Path | None = None,
    progress: bool = False,
) -> DocumentReport:
    """Align documents with their translations, and write the pairs in the order of the documents.

    See :func:`~st_xling.mining.align_documents` for how one is aligned. All documents are embedded together. If there
    are several, their sentences stand for the random ones with which a score is compared.

    Embeddings are kept in ``work`` until the pairs are written. Repeat the same call to resume a killed one.

    Args:
        documents: Files of each document and its translation: UTF-8, a sentence or paragraph a line, also compressed,
            where blank lines mark paragraphs; or EPUB, DOCX, ODT or HTML, which are split into sentences; or subtitles
            (SRT, VTT), whose times are ids.
        out: File of the pairs, replaced if it exists; or a binary stream.
        model: Encoder: a ``SentenceTransformer``, or the Hub id or folder of one.
        max_size: Maximum number of sentences of both sides in a group; see ``align_documents``.
        split: Whether to split the lines into sentences, by :func:`~st_xling.mining.split_sentences`, in the languages
            of ``filters`` or those that are identified. Ids are then the numbers of sentences, where the end of a
            paragraph also counts.
        min_score: Minimum score of a pair; all are kept by default.
        merge_to: Join neighboring pairs to longer ones, of at most so many characters on either side; by default none
            are joined. The score is then the lowest of the joined pairs. A sentence without a partner, or a pair that
            is not kept, ends a longer pair.
        encoding: How the sentences are embedded.
        filters: Enabled filters; all by default. They, ``min_score`` and ``merge_to`` do not apply to the format
            ``"vecalign"``, which has whole documents.
        rejects: File for the pairs that filters reject, as JSON lines; or a binary stream.
        html: File for a page that shows both texts side by side, as aligned; or a binary stream. See
            :class:`~st_xling.data.pair_page.PairPage`.
        format: ``"tsv"``, ``"jsonl"``, ``"tmx"`` (with the languages of ``filters``, of the file names, or identified)
            or ``"vecalign"``; by default that of the ending of ``out``, otherwise TSV.
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
    check_merge_to(merge_to)
    check_choice("format", format or "tsv", AlignmentFormat)
    if format == "vecalign" and len(documents) != 1:
        raise ValueError(f"the vecalign format is of one document: got {len(documents):,}; choose tsv or jsonl.")
    if format != "vecalign":
        format = resolve_format(format, out)
    inputs = [name_of(model)]
    for source_file, target_file in documents:
        inputs += [str(source_file), str(target_file)]
    check_outputs({"out": out, "rejects": rejects, "html": html}, inputs, folders={"work": work_path(out, work)})

    # Read all documents, and raise for all that can be known to be wrong before anything is embedded.
    filters = filters or FilterOptions()
    named_languages = (filters.source_language, filters.target_language)
    sides = {
        "source": [read_document_lines(str(source_file)) for source_file, _ in documents],
        "target": [read_document_lines(str(target_file)) for _, target_file in documents],
    }
    task: dict[str, Any] = {"command": "align-documents", "max_size": max_size}
    has_split = split_documents(sides, named_languages, every_text=split, task=task)
    samples = (sample_sentences(sides["source"]), sample_sentences(sides["target"]))
    check_text_languages(filters, *samples)
    written_languages: SideLanguages = named_languages
    if format == "tmx":
        written_languages = named_or_found(named_languages, documents[0], samples)
    filters = identify_languages(filters, *samples)
    languages = (filters.source_language, filters.target_language)
    if languages[0] is not None and languages[0] == languages[1]:
        logger.warning("both sides are in %s, as it seems: expected a translation", languages[0])
    encoder = Encoder(model, on_default_device(encoding))
    encoders = encoder.in_languages(dict(zip(sides, languages)))
    for side, side_documents in sides.items():
        task[f"{side} text"] = summarize(document.sha256 for document in side_documents).sha256
        task |= {f"{side} {key}": value for key, value in encoders[side].settings.items()}

    if format == "vecalign":
        filters = replace(filters, disable=["all"])
        min_score = merge_to = None
    pair_filters = PairFilters(filters)
    min_score_text = "none" if min_score is None else f"{min_score:g}"
    signature = sign_pairs(
        "align_documents",
        {**encoders},
        *(["split:yes"] if has_split else []),
        f"max_size:{max_size}",
        f"min_score:{min_score_text}",
        *([] if merge_to is None else [f"merge_to:{merge_to}"]),
        f"filters:{pair_filters.signature}",
        *(f"{side}:{_name(side_documents)}@{task[f'{side} text'][:8]}" for side, side_documents in sides.items()),
    )
    known_languages = (languages[0] or written_languages[0], languages[1] or written_languages[1])
    page = None
    if html is not None:
        page = PairPage(" – ".join(_name(side_documents) for side_documents in sides.values()), known_languages)
        page.signature = signature
    with open_work(out, work, task, {_PAIRS_FILE: out, REJECTS: rejects, _PAGE_FILE: html}) as folder:
        encoded = {
            side: _EncodedDocuments(side_documents, encoders[side], folder.path / side, max_size, progress=progress)
            for side, side_documents in sides.items()
        }
        means: Means = (None, None)
        if len(documents) > 1:
            # Sentences of all documents are more random than those of one.
            means = (encoded["source"].mean(), encoded["target"].mean())
        _encode_groups(encoded, len(documents), max_size, means, progress=progress)
        aligned = _align(encoded, len(documents), max_size, means, progress=progress)
        with atomic_writer(folder.path / _PAIRS_FILE) as stream, atomic_writer(folder.path / REJECTS) as log:
            documents_of_groups = _check_documents(aligned, sides, min_score, merge_to, pair_filters, log)
            if format == "vecalign":
                counts = _write_vecalign(documents_of_groups, stream, page)
            else:
                with pair_writer(stream, format, languages=written_languages, places=True) as write:
                    counts = _write_pairs(documents_of_groups, write, page)
        if page is not None:
            write_atomic(folder.path / _PAGE_FILE, page.render().encode())
    return _report(sides, counts, dict(pair_filters.rejected), known_languages, signature)


def _report(
    sides: Mapping[str, Sequence[DocumentLines]],
    counts: _Counts,
    rejected: dict[str, int],
    languages: SideLanguages,
    signature: str,
) -> DocumentReport:
    """Return the metrics of a run.

    Args:
        sides: The documents, by side.
        counts: Counts of groups and pairs.
        rejected: Number of groups that filters rejected, per reason.
        languages: Languages of source and target.
        signature: Signature of the run.
    """
    rows = {side: count_sentences(side_documents) for side, side_documents in sides.items()}
    return DocumentReport(
        documents=len(sides["source"]),
        rows=rows,
        groups=counts.groups,
        unpaired={side: rows[side] - counts.paired[side] for side in sides},
        below=counts.below,
        rejected=rejected,
        pairs=counts.pairs,
        source_language=languages[0],
        target_language=languages[1],
        signature=signature,
    )


def _encode_groups(
    encoded: Mapping[str, _EncodedDocuments], documents: int, max_size: int, means: Means, *, progress: bool
) -> None:
    """Encode the groups of several sentences that may be needed, in rounds of all documents together."""
    unfinished: Sequence[int] = range(documents)
    for _ in range(MAX_ROUNDS):
        wanted: dict[str, dict[int, list[Span]]] = {side: {} for side in encoded}
        for number in progress_bar(unfinished, desc="aligning", unit="documents", show=progress):
            source = encoded["source"].side(number)
            target = encoded["target"].side(number)
            for side, spans in zip(encoded, spans_to_encode(source, target, max_size=max_size, means=means)):
                if spans:
                    wanted[side][number] = spans
        unfinished = sorted({*wanted["source"], *wanted["target"]})
        if not unfinished:
            return
        for side, side_documents in encoded.items():
            side_documents.encode(wanted[side], progress=progress)


def _align(
    encoded: Mapping[str, _EncodedDocuments], documents: int, max_size: int, means: Means, *, progress: bool
) -> Iterator[list[SentenceGroup]]:
    """Yield the groups of each document and its translation."""
    for number in progress_bar(range(documents), desc="aligning", unit="documents", show=progress):
        source = encoded["source"].side(number)
        target = encoded["target"].side(number)
        yield align_sides(source, target, max_size=max_size, means=means)


class _AlignedDocument(NamedTuple):
    """A document with its translation, as they are written.

    Attributes:
        name: Name of the document.
        texts: Lines of both.
        groups: Groups of the alignment, in order.
        written: Groups as they are written: those of the alignment, or longer ones.
    """

    name: str
    texts: AlignedTexts
    groups: list[CheckedGroup]
    written: list[CheckedGroup]


def _check_documents(
    aligned: Iterable[Sequence[SentenceGroup]],
    sides: Mapping[str, Sequence[DocumentLines]],
    min_score: float | None,
    merge_to: int | None,
    filters: PairFilters,
    log: IO[bytes],
) -> Iterator[_AlignedDocument]:
    """Yield the documents with their groups, checked, and joined where that is wanted.

    Args:
        aligned: Groups of each document.
        sides: The documents, by side.
        min_score: Minimum score of a group.
        merge_to: Maximum number of characters of joined groups; ``None`` to join none.
        filters: Enabled filters.
        log: Stream for rejected pairs.
    """
    names = _document_names(sides["source"])
    for name, groups, source, target in zip(names, aligned, sides["source"], sides["target"]):
        prefixes = ("", "")
        if len(names) > 1:
            prefixes = (f"{Path(source.file).name}:", f"{Path(target.file).name}:")
        texts = AlignedTexts(source.lines, target.lines, prefixes, (source.ids, target.ids))
        checked = check_groups(groups, texts, min_score=min_score, filters=filters, log=log)
        written = checked
        if merge_to is not None:
            written = merge_groups(checked, texts, merge_to)
        yield _AlignedDocument(name, texts, checked, written)


def _document_names(documents: Sequence[DocumentLines]) -> list[str]:
    """Return the names of documents: of one its file name, of several their paths below the folder of all."""
    files = [document.file for document in documents]
    if len(files) == 1:
        return [Path(files[0]).name]
    paths = [Path(file).absolute() for file in files]
    folder = os.path.commonpath([path.parent for path in paths])
    return [path.relative_to(folder).as_posix() for path in paths]


@dataclass
class _Counts:
    """Counts of one run.

    Attributes:
        groups: Groups with sentences of both sides.
        paired: Sentences in these groups, by side.
        below: Groups below the minimum score.
        pairs: Pairs that were written.
    """

    groups: int = 0
    paired: Counter[str] = field(default_factory=Counter)
    below: int = 0
    pairs: int = 0

    def add(self, groups: Sequence[CheckedGroup]) -> None:
        """Count the groups of a document."""
        for group in groups:
            if group.problem != UNPAIRED:
                self.groups += 1
                self.paired["source"] += len(group.source)
                self.paired["target"] += len(group.target)
            self.below += group.problem == BELOW


def _write_vecalign(documents: Iterable[_AlignedDocument], stream: IO[bytes], page: PairPage | None) -> _Counts:
    """Write all groups of each document, also sentences without a partner."""
    counts = _Counts()
    for document in documents:
        counts.add(document.groups)
        for group in document.groups:
            distance = 0.0 if group.problem == UNPAIRED else 1 - group.score
            stream.write(f"{list(group.source)}:{list(group.target)}:{distance:.6f}\n".encode())
        if page is not None:
            page.add(document.name, map(document.texts.page_group, document.groups))
    counts.pairs = counts.groups
    return counts


def _write_pairs(documents: Iterable[_AlignedDocument], write: WritePair, page: PairPage | None) -> _Counts:
    """Write the pairs of each document, with their place in it."""
    counts = _Counts()
    for document in documents:
        counts.add(document.groups)
        for position, group in enumerate(document.written, 1):
            if group.problem is None:
                texts = document.texts
                place = DocumentPlace(document.name, position)
                write(WrittenPair(group.score, texts.ids(group), texts.texts(group), place=place))
                counts.pairs += 1
        if page is not None:
            page.add(document.name, map(document.texts.page_group, document.written))
    return counts


def _name(documents: Sequence[DocumentLines]) -> str:
    """Return the name of the documents of a side in the signature."""
    first = Path(documents[0].file).name
    return first if len(documents) == 1 else f"{first}+{len(documents) - 1}"


class _EncodedDocuments:
    """All documents of a side with the vectors of their sentences, and of more and more of their groups.

    The vectors of each round of encoding are in a store. Equal texts of a round are encoded once.
    """

    def __init__(
        self, documents: Sequence[DocumentLines], encoder: Encoder, folder: Path, max_size: int, *, progress: bool
    ) -> None:
        self._documents = documents
        self._encoder = encoder
        self._folder = folder
        self._max_size = max_size
        # Vectors of each round; by document: its groups, and the rows of their vectors in each round.
        self._rounds: list[Any] = []
        self._spans: list[list[Span]] = [[] for _ in documents]
        self._span_rows: list[list[tuple[int, list[int]]]] = [[] for _ in documents]
        # Row at which each document begins, and the number of all rows; the row of the vector of each sentence.
        self._starts = [0, *accumulate(len(document.texts) for document in documents)]
        singles = {number: single_spans(document.lines) for number, document in enumerate(documents)}
        self._sentence_rows = np.array(self._encode_round(singles, progress=progress), dtype=np.int64)

    def encode(self, spans_by_document: Mapping[int, Sequence[Span]], *, progress: bool) -> None:
        """Encode groups of several sentences.

        Args:
            spans_by_document: The groups of some documents.
            progress: Show a progress bar on stderr.
        """
        rows = iter(self._encode_round(spans_by_document, progress=progress))
        for number, spans in spans_by_document.items():
            self._spans[number] += spans
            self._span_rows[number].append((len(self._rounds) - 1, list(islice(rows, len(spans)))))

    def _encode_round(self, spans_by_document: Mapping[int, Sequence[Span]], *, progress: bool) -> list[int]:
        """Encode groups into a store, and return the row of each."""
        row_of_text: dict[str, int] = {}
        rows: list[int] = []
        files: list[str] = []  # of each text, for errors
        for number, spans in spans_by_document.items():
            document = self._documents[number]
            for text in span_texts(document.lines, spans):
                rows.append(row_of_text.setdefault(text, len(row_of_text)))
                if len(files) < len(row_of_text):
                    files.append(document.file)
        if rows:
            folder = self._folder / str(len(self._rounds))
            texts = list(row_of_text)
            self._rounds.append(
                self._encoder.encode_sentences(texts, folder, locate=files.__getitem__, progress=progress)
            )
        return rows

    def _sentence_vectors(self, number: int) -> np.ndarray:
        """Return the vectors of the sentences of a document. *Shape:* ``(sentences, dim)``"""
        start, stop = self._starts[number : number + 2]
        if start == stop:
            return np.empty((0, 0))
        return np.asarray(self._rounds[0][self._sentence_rows[start:stop]])

    def side(self, number: int) -> DocumentSide:
        """Return a document with the vectors that are encoded."""
        sentence_vectors = self._sentence_vectors(number)
        span_vectors = sentence_vectors[:0]
        for encoding_round, rows in self._span_rows[number]:
            span_vectors = np.concatenate([span_vectors, self._rounds[encoding_round][np.array(rows)]])
        lines = self._documents[number].lines
        return DocumentSide.partly_encoded(lines, sentence_vectors, self._spans[number], span_vectors, self._max_size)

    def mean(self) -> np.ndarray | None:
        """Return the mean vector of all sentences. *Shape:* ``(dim,)``"""
        total = np.float64(0)
        for number in range(len(self._documents)):
            if self._documents[number].texts:
                total = total + np.asarray(self._sentence_vectors(number), dtype=np.float64).sum(axis=0)
        sentences = self._starts[-1]
        return np.asarray(total / sentences, dtype=np.float32) if sentences else None
