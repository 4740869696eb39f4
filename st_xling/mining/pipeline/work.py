"""Shared steps of the commands that write pairs: keep the work, embed, write pairs as TSV, JSON lines or TMX, sign."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import torch

from st_xling._version import __version__
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import PairFilters, RejectedPair
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.mining.options import FAISS, EncodingOptions, SearchOptions
from st_xling.mining.search.approximate import CandidateIndex
from st_xling.mining.search.exact import Neighbors, check_k
from st_xling.mining.search.find import choose_method, find_neighbors
from st_xling.mining.text import TextSummary, tsv_line
from st_xling.mining.vectors import PrecomputedEmbeddings, VectorProviders, encoding_settings, model_names
from st_xling.utils.cosines import Embeddings
from st_xling.utils.file_endings import DOCUMENT_ENDINGS, endings_of
from st_xling.utils.options import PairFormat, check_choice
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder
from st_xling.utils.signature import sign
from st_xling.utils.text import DOCUMENT_COLUMNS, SCORED_COLUMNS, THRESHOLD, unpacked_ending

if TYPE_CHECKING:  # it loads sentence-transformers, which is slow to import
    from st_xling.mining.encoding import Encoder
    from st_xling.mining.pipeline.rescore import PairRescorer

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"

#: Endings of files that would be another format than their name says.
OTHER_FORMATS = (*endings_of("parquet", "csv", "json", "zip", "xlsx", "xml", "xliff", "po", "pdf"), *DOCUMENT_ENDINGS)

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Languages of source and target; ``None`` if one is unknown.
SideLanguages = tuple[str | None, str | None]

#: :func:`~st_xling.mining.find_neighbors` with the options of a run.
NeighborSearch = Callable[..., tuple[Neighbors, Neighbors]]

#: Ids of the source and of the target of a pair.
SidesIds = tuple[Sequence[str], Sequence[str]]


def resolve_format(format: PairFormat | None, out: Output) -> PairFormat:
    """Return the format, by the ending of ``out`` if ``None``; ``ValueError`` for the ending of another format."""
    if format is None:
        ending = unpacked_ending(out) if isinstance(out, (str, Path)) else ""
        if ending in OTHER_FORMATS:
            raise ValueError(
                f"pairs are written as TSV, JSON lines or TMX: got the name {out}; end it in .tsv, .jsonl or .tmx, or "
                "name the format (--format tsv)."
            )
        format = "tsv"
        for name in get_args(PairFormat):
            if ending in endings_of(name):
                format = name
    check_choice("format", format, PairFormat)
    return format


@dataclass(frozen=True, kw_only=True)
class Report:
    """Metrics of one run, to which each command adds its own.

    Attributes:
        pairs: Number of pairs that were written, or scored.
        rejected: Number of rejected pairs per reason code.
        best: Highest score of any pair, if none reaches the threshold.
        source_language: Language of the source, as named or identified; ``None`` if it is unknown.
        target_language: Language of the target.
        signature: Signature of the run.
    """

    pairs: int
    rejected: Mapping[str, int]
    best: float | None = None
    source_language: str | None = None
    target_language: str | None = None
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """Return the metrics for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "signature"}

    def lines(self) -> list[str]:
        """Describe the metrics, one a line: rejected pairs by reason, and the best score if no pair was good enough."""
        lines = [f"rejected: {counted(self.rejected)}"] if self.rejected else []
        if self.best is not None:
            lines.append(f"no pair reaches the threshold: the best score is {self.best:.4f}")
        return lines


def counted(numbers: Mapping[str, int]) -> str:
    """Describe numbers by reason."""
    return ", ".join(f"{count:,} {reason}" for reason, count in numbers.items())


def on_default_device(options: EncodingOptions) -> EncodingOptions:
    """Return the options with a device to embed and search on: by default a GPU if there is one."""
    if options.device:
        return options
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return replace(options, device=device)


def text_encoder(model: Any, options: EncodingOptions) -> Encoder | None:
    """Return the encoder of texts without embeddings; ``None`` without a model."""
    if model is None:
        return None
    from st_xling.mining.encoding import Encoder  # slow to import

    return Encoder(model, options)


@contextmanager
def open_work(
    out: Output, work: str | Path | None, task: Mapping[str, Any], results: Mapping[str, Output | None]
) -> Iterator[ResumableFolder]:
    """Open the work folder of a command; if the block succeeds, deliver its results.

    The folder is then removed, unless the user named it.

    Args:
        out: Main result, by which the folder is named.
        work: Folder chosen by the user.
        task: What the work depends on.
        results: Destination of each result, by the name of its file in the folder; ``None`` if it is not wanted.

    Raises:
        ValueError: If the folder is of another task.
    """
    with work_folder(out, work, task) as folder:
        yield folder
        for name, wanted in results.items():
            if wanted is not None:
                deliver(folder.path / name, wanted)
        if work is None:
            folder.remove()


def search_task(
    command: str,
    texts: Mapping[str, UniqueSentences],
    summaries: Mapping[str, TextSummary],
    providers: VectorProviders,
    search: SearchOptions,
) -> dict[str, Any]:
    """Check texts, embeddings and search; returns what embeddings and search depend on.

    Args:
        command: Name of the command.
        texts: Distinct sentences, by side.
        summaries: Summaries of what is embedded, by name.
        providers: Providers of the vectors, by side.
        search: Options of the search.

    Raises:
        ValueError: If a store is damaged or of another text, FAISS cannot make the index for the vectors, or ``k`` is
            above the number of distinct sentences.
    """
    task: dict[str, Any] = {"command": command, "k": search.k}
    task |= {f"{name} text": summary.sha256 for name, summary in summaries.items()}
    for side, provider in providers.items():
        if search.method.startswith(FAISS) and provider.dim:
            CandidateIndex(search.method.removeprefix(FAISS), provider.dim)  # raises for one that FAISS cannot make
        if isinstance(provider, PrecomputedEmbeddings):
            provider.check(texts[side].text)
        task |= {f"{side} {name}": value for name, value in provider.settings.items()}
    sources, targets = map(len, texts.values())
    check_k(search.k, sources, targets, kind="distinct ")
    return task


def embed_distinct(
    texts: Mapping[str, UniqueSentences],
    providers: VectorProviders,
    folder: Path,
    search: SearchOptions,
    *,
    progress: bool,
) -> tuple[tuple[Embeddings, Embeddings], SearchOptions]:
    """Embed the distinct sentences of both texts, and choose the method to search them by.

    Args:
        texts: Distinct sentences, by side.
        providers: Providers of their vectors, by side.
        folder: Folder of the stores.
        search: Options of the search, whose method may be ``"auto"``.
        progress: Show a progress bar on stderr.

    Returns:
        The vectors of both texts, and the options with the method that was chosen.
    """
    embeddings: list[Embeddings] = []
    for side, text in texts.items():
        provider = providers[side]
        if isinstance(provider, PrecomputedEmbeddings):
            embeddings.append(text.select(provider.rows))
        else:
            store = provider.encode_sentences(text, folder / side, locate=text.place, progress=progress)
            embeddings.append(store)
    source, target = embeddings
    method = choose_method(search.method, int(source.shape[0]), int(target.shape[0]), int(source.shape[1]))
    return (source, target), replace(search, method=method)


def neighbor_search(search: SearchOptions, encoding: EncodingOptions, *, progress: bool) -> NeighborSearch:
    """Return :func:`~st_xling.mining.find_neighbors` with the options of a run but ``k``."""
    return partial(
        find_neighbors,
        method=search.method,
        engine=encoding.engine,
        device=encoding.device or "cpu",
        memory_mib=search.memory_mib,
        progress=progress,
    )


def search_name(method: str) -> str:
    """Return the name of the folder that a search is saved in; each method has another."""
    return "search" if method == "exact" else f"search-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def sign_pairs(command: str, providers: VectorProviders, *parts: str) -> str:
    """Return the signature of pairs: the command, the model and its settings, and other parts."""
    settings = (f"{name}:{value}" for name, value in encoding_settings(providers).items())
    return sign(command, f"model:{model_names(providers)}", *settings, *parts)


class DocumentPlace(NamedTuple):
    """Where a pair comes from.

    Attributes:
        document: Name of its document.
        position: Its number there, from 1. Pairs of numbers that follow each other are neighbors in the document.
    """

    document: str
    position: int


class WrittenPair(NamedTuple):
    """A pair as it is written.

    Attributes:
        score: Its score.
        ids: Ids of the source and of the target.
        texts: Texts of the source and of the target.
        margin: Margin score, of a pair whose score is that of a cross-encoder.
        place: Place in its document, of a pair of documents.
    """

    score: float
    ids: SidesIds
    texts: tuple[str, str]
    margin: float | None = None
    place: DocumentPlace | None = None


#: Writes a pair, see :func:`pair_writer`.
WritePair = Callable[[WrittenPair], None]


@contextmanager
def pair_writer(
    stream: IO[bytes],
    format: PairFormat,
    *,
    languages: SideLanguages = (None, None),
    margins: bool = False,
    places: bool = False,
    threshold: float | Literal["none"] | None = None,
) -> Iterator[WritePair]:
    """Yield a function that writes scored pairs to a binary stream, which stays open.

    A sentence has several ids if it occurs several times, or if the text is of several.

    Args:
        stream: The stream.
        format: ``"tsv"``, ``"jsonl"`` or ``"tmx"``; see :func:`~st_xling.mining.mine_texts`.
        languages: Languages of source and target, for TMX.
        margins: Whether each pair has a margin score.
        places: Whether each pair has a document and its position there.
        threshold: Threshold of mined pairs, ``"none"`` if all were kept, which the file then carries, so that it tells
            how it was cut after any copy, sort or division: a last column or key of each pair, or a property in the
            header of TMX. ``None`` for pairs that were not mined.

    Raises:
        ValueError: For an id with a comma in TSV.
    """
    written_threshold: float | None = None
    if threshold is not None:
        written_threshold = math.nan if threshold == "none" else float(threshold)
    lines = _FORMATS[format](languages, margins, places, written_threshold)

    def write_line(text: str) -> None:
        stream.write(text.encode("utf-8") + b"\n")

    def write(pair: WrittenPair) -> None:
        write_line(lines.pair(pair))

    for line in lines.header():
        write_line(line)
    yield write
    for line in lines.footer():
        write_line(line)


class _PairLines:
    """Lines of a file of scored pairs in one format.

    Args:
        languages: Languages of source and target.
        margins: Whether each pair has a margin score.
        places: Whether each pair has a document and its position there.
        threshold: Threshold of mined pairs, NaN if all were kept; ``None`` for pairs that were not mined.
    """

    def __init__(self, languages: SideLanguages, margins: bool, places: bool, threshold: float | None) -> None:
        self.languages = languages
        self.margins = margins
        self.places = places
        self.threshold = threshold

    def header(self) -> list[str]:
        return []

    def pair(self, pair: WrittenPair) -> str:
        raise NotImplementedError

    def footer(self) -> list[str]:
        return []


class _TsvLines(_PairLines):
    def header(self) -> list[str]:
        names = [*SCORED_COLUMNS]
        if self.margins:
            names.append("margin")
        if self.places:
            names += DOCUMENT_COLUMNS
        if self.threshold is not None:
            names.append(THRESHOLD)
        return ["\t".join(names)]

    def pair(self, pair: WrittenPair) -> str:
        for name in chain.from_iterable(pair.ids):
            if "," in name:
                raise ValueError(
                    f"ids must have no commas, which join ids in TSV: got {name!r}; write JSON lines (--format jsonl)."
                )
        cells = [repr(pair.score), *map(",".join, pair.ids), *pair.texts]
        if pair.margin is not None:
            cells.append(repr(pair.margin))
        if pair.place is not None:
            cells += map(str, pair.place)
        if self.threshold is not None:
            cells.append(repr(self.threshold))
        return tsv_line(cells)


class _JsonLines(_PairLines):
    def pair(self, pair: WrittenPair) -> str:
        source_ids, target_ids = pair.ids
        source, target = pair.texts
        record: dict[str, Any] = {
            "score": pair.score if math.isfinite(pair.score) else None,
            "source_ids": source_ids,
            "target_ids": target_ids,
            "source": source,
            "target": target,
        }
        if pair.margin is not None:
            record["margin"] = pair.margin
        if pair.place is not None:
            record |= zip(DOCUMENT_COLUMNS, pair.place)
        if self.threshold is not None:
            record["threshold"] = None if math.isnan(self.threshold) else self.threshold
        return json.dumps(record, ensure_ascii=False)


class _TmxLines(_PairLines):
    def header(self) -> list[str]:
        source_language = quoteattr(str(self.languages[0]))
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">',
            f'<header creationtool="st-xling" creationtoolversion="{__version__}" segtype="sentence" '
            f'o-tmf="st-xling" adminlang="en" srclang={source_language} datatype="plaintext">',
        ]
        if self.threshold is not None:
            lines.append(f'<prop type="{THRESHOLD}">{self.threshold!r}</prop>')
        return [*lines, "</header>\n<body>"]

    def pair(self, pair: WrittenPair) -> str:
        properties = f'<prop type="score">{pair.score!r}</prop>'
        if pair.place is not None:
            for name, value in zip(DOCUMENT_COLUMNS, pair.place):
                properties += f'<prop type="{name}">{escape(_NOT_XML.sub("", str(value)))}</prop>'
        variants = ""
        for language, text in zip(self.languages, pair.texts):
            segment = escape(_NOT_XML.sub("", text))
            variants += f"<tuv xml:lang={quoteattr(str(language))}><seg>{segment}</seg></tuv>"
        return f"<tu>{properties}{variants}</tu>"

    def footer(self) -> list[str]:
        return ["</body>\n</tmx>"]


_FORMATS: dict[PairFormat, type[_PairLines]] = {"tsv": _TsvLines, "jsonl": _JsonLines, "tmx": _TmxLines}


def write_checked(
    scores: np.ndarray,
    ids: tuple[Sequence[list[str]], Sequence[list[str]]],
    texts: tuple[Sequence[str], Sequence[str]],
    filters: PairFilters,
    write: WritePair,
    log: IO[bytes],
    rescorer: PairRescorer | None = None,
) -> int:
    """Write the pairs that pass the filters, and the rejected ones to a log; returns the number of written pairs.

    Args:
        scores: Scores of the pairs; one without a finite score is written without a check.
        ids: Ids of both sides of each pair.
        texts: Texts of both sides.
        filters: The filters.
        write: Function of :func:`pair_writer`.
        log: Stream for the rejected pairs, as JSON lines.
        rescorer: Scores the pairs that pass again, and rejects others; their scores are then margins.
    """
    source_ids, target_ids = ids
    sources, targets = texts

    def on_reject(pair: RejectedPair) -> None:
        log.write(pair.as_json(source_ids[pair.source_index], target_ids[pair.target_index]))

    allowed = np.ones(len(scores), dtype=bool)
    scored = np.flatnonzero(np.isfinite(scores))
    allowed[scored] = filters.allowed(MinedPairs(scores[scored], scored, scored), sources, targets, on_reject)
    rows = np.flatnonzero(allowed).tolist()
    if rescorer is None:
        for row in rows:
            ids_of_row = (source_ids[row], target_ids[row])
            write(WrittenPair(float(scores[row]), ids_of_row, (sources[row], targets[row])))
        return len(rows)
    kept = 0
    new_scores, reasons = rescorer.scores([(sources[row], targets[row]) for row in rows])
    for row, score, reason in zip(rows, new_scores.tolist(), reasons):
        ids_of_row = (source_ids[row], target_ids[row])
        margin = float(scores[row])
        if reason is None:
            kept += 1
            write(WrittenPair(score, ids_of_row, (sources[row], targets[row]), margin))
        else:
            value = None if reason == "too_long" else score
            on_reject(RejectedPair(reason, value, margin, row, row, sources[row], targets[row]))
    return kept
