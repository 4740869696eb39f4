"""Shared steps of the commands that write pairs: keep the work, embed, write pairs as TSV, JSON lines or TMX, sign."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import torch

from st_xling._version import __version__
from st_xling.mining.deduplication import UniqueSentences
from st_xling.mining.filters import PairFilters, RejectedPair
from st_xling.mining.mined_pairs import MinedPairs
from st_xling.mining.search.approximate import FAISS, CandidateIndex
from st_xling.mining.search.exact import check_k
from st_xling.mining.search.find import choose_method
from st_xling.mining.text import TextSummary, tsv_line
from st_xling.mining.vectors import PrecomputedEmbeddings, VectorMakers, encoding_settings, model_names
from st_xling.utils.cosines import Embeddings
from st_xling.utils.options import PairFormat, check_choice
from st_xling.utils.resumable import Output, ResumableFolder, deliver, work_folder
from st_xling.utils.signature import sign
from st_xling.utils.text import SCORED_COLUMNS, THRESHOLD, file_ending, unpacked_name

#: Name of the rejects in a work folder.
REJECTS = "rejects.jsonl"

#: Endings of files that would be another format than their name says.
OTHER_FORMATS = (".parquet", ".csv", ".json", ".zip", ".xlsx", ".xml", ".html")

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Languages = tuple[str | None, str | None]


def resolve_format(format: PairFormat | None, out: Output) -> PairFormat:
    """Return the format, by the ending of ``out`` if ``None``; ``ValueError`` for the ending of another format."""
    if format is None:
        ending = file_ending(unpacked_name(out)) if isinstance(out, (str, Path)) else ""
        if ending in OTHER_FORMATS:
            raise ValueError(
                f"pairs are written as TSV, JSON lines or TMX: got the name {out}; end it in .tsv, .jsonl or .tmx, or "
                "name the format (--format tsv)."
            )
        format = "jsonl" if ending in (".jsonl", ".ndjson") else "tmx" if ending == ".tmx" else "tsv"
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


def default_device() -> str:
    """Return the device to embed and search on: a GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


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
    makers: VectorMakers,
    *,
    k: int,
    method: str,
) -> dict[str, Any]:
    """Check texts, embeddings and search; returns what embeddings and search depend on.

    Args:
        command: Name of the command.
        texts: Distinct sentences, by side.
        summaries: Summaries of what is embedded, by name.
        makers: Providers of the vectors, by side.
        k: Number of neighbors.
        method: Method of the search.
    Raises:
        ValueError: If a store is damaged or of another text, FAISS cannot make the index for the vectors, or ``k`` is
            above the number of distinct sentences.
    """
    task: dict[str, Any] = {"command": command, "k": k}
    task |= {f"{name} text": summary.sha256 for name, summary in summaries.items()}
    for side, maker in makers.items():
        if method.startswith(FAISS) and maker.dim:
            CandidateIndex(method.removeprefix(FAISS), maker.dim)  # raises for one that FAISS cannot make
        if isinstance(maker, PrecomputedEmbeddings):
            maker.check(texts[side].text)
        task |= {f"{side} {name}": value for name, value in maker.settings.items()}
    sources, targets = map(len, texts.values())
    check_k(k, sources, targets, kind="distinct ")
    return task


def embed_distinct(
    texts: Mapping[str, UniqueSentences], makers: VectorMakers, folder: Path, *, method: str, progress: bool
) -> tuple[tuple[Embeddings, Embeddings], str]:
    """Embed the distinct sentences of both texts, and choose the method to search them by.

    Args:
        texts: Distinct sentences, by side.
        makers: Providers of their vectors, by side.
        folder: Folder of the stores.
        method: As for :func:`~st_xling.mining.find_neighbors`.
        progress: Show a progress bar on stderr.
    """
    source, target = (
        text.select(maker.rows)
        if isinstance(maker := makers[name], PrecomputedEmbeddings)
        else maker.encode_sentences(text, folder / name, place=text.place, progress=progress)
        for name, text in texts.items()
    )
    sizes = int(source.shape[0]), int(target.shape[0]), int(source.shape[1])
    return (source, target), choose_method(method, *sizes)


def search_name(method: str) -> str:
    """Return the name of the folder that a search is saved in; each method has its own."""
    return "search" if method == "exact" else f"search-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def sign_pairs(command: str, makers: VectorMakers, *parts: str) -> str:
    """Return the signature of pairs: the command, the model and its settings, and other parts."""
    settings = (f"{name}:{value}" for name, value in encoding_settings(makers).items())
    return sign(command, f"model:{model_names(makers)}", *settings, *parts)


@contextmanager
def pair_writer(
    stream: IO[bytes],
    format: PairFormat,
    *,
    languages: Languages = (None, None),
    margins: bool = False,
    threshold: float | Literal["none"] | None = None,
) -> Iterator[Callable[..., None]]:
    """Yield a function that writes scored pairs to a binary stream, which stays open.

    Its arguments are the score, ids and texts of both sides, and the margin score if the score is a cross-encoder's. A
    sentence has several ids if it occurs several times, or if the text is of several.

    Args:
        stream: The stream.
        format: ``"tsv"``, ``"jsonl"`` or ``"tmx"``; see :func:`~st_xling.mining.mine_texts`.
        languages: Languages of source and target, for TMX.
        margins: Whether each pair has a margin score.
        threshold: Threshold of mined pairs, ``"none"`` if all were kept, which the file then carries, so that it tells
            how it was cut after any copy, sort or division: a last column or key of each pair, or a property in the
            header of TMX. ``None`` for pairs that were not mined.
    Raises:
        ValueError: For an id with a comma in TSV.
    """

    has_threshold = threshold is not None
    number = math.nan if threshold in (None, "none") else float(str(threshold))

    def line(text: str) -> None:
        stream.write(text.encode("utf-8") + b"\n")

    def write(
        score: float, ids: tuple[Sequence[str], Sequence[str]], texts: tuple[str, str], margin: float | None = None
    ) -> None:
        if format == "jsonl":
            record: dict[str, Any] = {"score": score if math.isfinite(score) else None}
            record |= {"source_ids": ids[0], "target_ids": ids[1], "source": texts[0], "target": texts[1]}
            if margin is not None:
                record["margin"] = margin
            if has_threshold:
                record["threshold"] = None if math.isnan(number) else number
            line(json.dumps(record, ensure_ascii=False))
            return
        if format == "tmx":
            sides = "".join(
                f"<tuv xml:lang={quoteattr(str(language))}><seg>{escape(_NOT_XML.sub('', text))}</seg></tuv>"
                for language, text in zip(languages, texts)
            )
            line(f'<tu><prop type="score">{score!r}</prop>{sides}</tu>')
            return
        if name := next((name for side in ids for name in side if "," in name), None):
            raise ValueError(
                f"ids must have no commas, which join ids in TSV: got {name!r}; write JSON lines (--format jsonl)."
            )
        cells = [repr(score), *map(",".join, ids), *texts]
        if margin is not None:
            cells.append(repr(margin))
        if has_threshold:
            cells.append(repr(number))
        line(tsv_line(cells))

    if format == "tsv":
        names = [*SCORED_COLUMNS]
        if margins:
            names.append("margin")
        if has_threshold:
            names.append(THRESHOLD)
        line("\t".join(names))
    elif format == "tmx":
        line('<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">')
        line(
            f'<header creationtool="st-xling" creationtoolversion="{__version__}" segtype="sentence" '
            f'o-tmf="st-xling" adminlang="en" srclang={quoteattr(str(languages[0]))} datatype="plaintext">'
        )
        if has_threshold:
            line(f'<prop type="{THRESHOLD}">{number!r}</prop>')
        line("</header>\n<body>")
    yield write
    if format == "tmx":
        line("</body>\n</tmx>")


def write_checked(
    scores: np.ndarray,
    ids: Sequence[Sequence[list[str]]],
    texts: Sequence[Sequence[str]],
    filters: PairFilters,
    write: Callable[..., None],
    log: IO[bytes],
) -> int:
    """Write the pairs that pass the filters, and the rejected ones to a log; returns the number of written pairs.

    Args:
        scores: Scores of the pairs; one without a finite score is written without a check.
        ids: Ids of both sides of each pair.
        texts: Texts of both sides.
        filters: The filters.
        write: Function of :func:`pair_writer`.
        log: Stream for the rejected pairs, as JSON lines.
    """

    def on_reject(pair: RejectedPair) -> None:
        log.write(pair.as_json(ids[0][pair.source_index], ids[1][pair.target_index]))

    allowed = np.ones(len(scores), dtype=bool)
    scored = np.flatnonzero(np.isfinite(scores))
    allowed[scored] = filters.allowed(MinedPairs(scores[scored], scored, scored), texts[0], texts[1], on_reject)
    for row in np.flatnonzero(allowed).tolist():
        write(float(scores[row]), (ids[0][row], ids[1][row]), (texts[0][row], texts[1][row]))
    return int(allowed.sum())
