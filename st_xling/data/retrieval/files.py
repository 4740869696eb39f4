"""Files of retrieval sets: passages, queries, qrels, and where the layouts of BEIR, Mr.TyDi and MIRACL keep them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.data.check import FaultLog, numbered_lines
from st_xling.data.formats import TEXT_KEYS, fixed_columns, json_objects, titled_text
from st_xling.data.hub_test_sets import where_to_get
from st_xling.utils.text import PACKED, unpacked_name

_IDS = ("_id", "docid", "id")
_CHUNK = 10_000


class Passages(Sequence[str]):
    """The texts of a corpus, in Arrow's memory.

    Args:
        records: Ids, no two alike, and texts.

    Attributes:
        ids: Id → row, in order.
        sha256: Hash of ids and texts.
    """

    def __init__(self, records: Iterable[tuple[str, str]]) -> None:
        import pyarrow as pa

        self.ids: dict[str, int] = {}
        digest, chunks, rows = hashlib.sha256(), [], iter(records)
        while chunk := list(islice(rows, _CHUNK)):
            for identity, text in chunk:
                self.ids[identity] = len(self.ids)
                digest.update(f"{identity}\t{text}\n".encode("utf-8", "surrogatepass"))
            chunks.append(pa.array([text for _, text in chunk], pa.large_string()))
        self.sha256 = digest.hexdigest()
        self._texts = pa.chunked_array(chunks, pa.large_string())

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            return self._texts.slice(start, max(0, stop - start)).to_pylist()
        return self._texts[range(len(self))[place]].as_py()

    def records(self) -> Iterator[tuple[str, str]]:
        """Yield ids and texts in order."""
        for start in range(0, len(self), _CHUNK):
            yield from zip(islice(self.ids, start, start + _CHUNK), self[start : start + _CHUNK])


def read_passages(paths: Iterable[str | Path], *, skip_bad_lines: bool = False) -> Passages:
    """Read a corpus of JSON lines: an id (``_id``, ``docid`` or ``id``) and a text (``text``, or ``contents`` as in
    Mr.TyDi's index), perhaps with a ``title``, which is put before the text, as BEIR does.

    Args:
        paths: Files, plain or packed, in the order of the corpus.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.
    Raises:
        FileNotFoundError: If a file is missing.
        ParallelTextError: For all faulty lines together: bad JSON, no id, no text, an id twice.
        ValueError: For a corpus without passages.
    """
    paths, faults, seen = list(paths), FaultLog(skip_bad_lines=skip_bad_lines, what="passages"), set[str]()

    def records() -> Iterator[tuple[str, str]]:
        for path in paths:
            for number, row in json_objects(path, faults):
                parsed = parse_passage(row)
                if parsed is None:
                    faults.add(path, number, "no id or text", f"expected {', '.join(_IDS)}; {' or '.join(TEXT_KEYS)}")
                elif parsed[0] in seen:
                    faults.add(path, number, "id twice", parsed[0])
                else:
                    seen.add(parsed[0])
                    yield parsed

    passages = Passages(records())
    faults.finalize()
    if not len(passages):
        raise ValueError(f"expected passages in {', '.join(map(str, paths))}: got none.")
    return passages


def parse_passage(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Id and text, title included, of one object; ``None`` where either is missing or blank."""
    identity = next((row[key] for key in _IDS if row.get(key) not in (None, "")), None)
    text = titled_text(row)
    if text is None or isinstance(identity, bool) or not isinstance(identity, (str, int)):
        return None
    return str(identity), text


Qrels = dict[str, dict[str, int]]
"""Query id → passage id → grade above 0."""

#: What is looked for, first come first served; ``{split}`` and ``{language}`` are filled in. Each may be packed.
CORPORA = (
    "corpus.jsonl",
    "collection/docs*.jsonl",
    "docs*.jsonl",
    "corpus/*.jsonl",
    "miracl-corpus-v*-{language}/docs*.jsonl",
)
QUERIES = (
    "queries.jsonl",
    "topic.{split}.tsv",
    "topics/topics.*-{language}-{split}.tsv",
    "miracl-v*-{language}/topics/topics.*-{language}-{split}.tsv",
)
QRELS = (
    "qrels/{split}.tsv",
    "qrels.tsv",
    "qrels.{split}.tsv",
    "qrels.{split}.txt",
    "qrels/qrels.*-{language}-{split}.tsv",
    "miracl-v*-{language}/qrels/qrels.*-{language}-{split}.tsv",
)
WITH_PASSAGES = ("{split}.jsonl",)

_BY_LANGUAGE = re.compile(r"queries\.([A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\.jsonl")
_NUMBERS = re.compile(r"(\d+)")
_GRADES = ("score", "grade", "rel", "relevance")
_QUERY_IDS = ("_id", "query_id", "id")
_QUERY_TEXTS = ("text", "query")


class RetrievalFiles(NamedTuple):
    """The files of one retrieval set.

    Attributes:
        corpus: Passages, in one file or several.
        queries: Language → queries.
        qrels: Judgments; ``None`` where ``with_passages`` has them.
        with_passages: Queries with their passages, in Mr.TyDi's form.
    """

    corpus: list[Path]
    queries: dict[str, Path]
    qrels: Path | None
    with_passages: Path | None = None


def find_retrieval_files(
    folder: str | Path, *, language: str, split: str = "test", corpus: str | Path | None = None
) -> RetrievalFiles:
    """The files of a folder.

    Args:
        folder: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` (BEIR); the same with ``queries.xx.jsonl``
            for each language of the queries; ``collection/docs.jsonl``, ``topic.test.tsv`` and ``qrels.test.txt``, or
            ``corpus.jsonl`` and ``test.jsonl`` (Mr.TyDi); ``topics/`` and ``qrels/`` (MIRACL), next to its corpus.
            Any file may be packed (``.gz``, ``.xz``, ``.bz2``, ``.zst``).
        language: Of the passages, and of queries whose file names none.
        split: Of queries and qrels.
        corpus: Another folder, or the file itself, that holds the passages.
    Raises:
        FileNotFoundError: The folder, or one of the three, is missing.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"expected a folder with passages, queries and qrels: {folder} is none.{where_to_get(folder.name)}"
        )
    place = folder if corpus is None else Path(corpus)
    names = {"split": split, "language": language}
    passages = [place] if place.is_file() else _first(place, CORPORA, names)
    if not passages:
        raise _missing("passages", place, CORPORA, names)
    by_language = {
        match[1]: path for path in sorted(folder.iterdir()) if (match := _BY_LANGUAGE.fullmatch(unpacked_name(path)))
    }
    # Files of one language each come before a file whose language is that of the passages.
    queries = _first(folder, QUERIES, names)
    qrels = _first(folder, QRELS, names)
    with_passages = [] if by_language or queries else _first(folder, WITH_PASSAGES, names)
    if not by_language and not queries and not with_passages:
        raise _missing(f"queries of split {split!r}", folder, ("queries.xx.jsonl", *QUERIES, *WITH_PASSAGES), names)
    if not qrels and not with_passages:
        raise _missing(f"qrels of split {split!r}", folder, QRELS, names)
    by_language = by_language or {language: (queries or with_passages)[0]}
    return RetrievalFiles(passages, by_language, *(next(iter(paths), None) for paths in (qrels, with_passages)))


def _first(folder: Path, patterns: Iterable[str], names: dict[str, str]) -> list[Path]:
    """The files of the first pattern that has any, in the order of the numbers in their names."""
    for pattern in patterns:
        for packing in ("", *PACKED):
            if paths := sorted(folder.glob(pattern.format(**names) + packing), key=_in_order):
                return paths
    return []


def _in_order(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(path.name)]


def _missing(what: str, folder: Path, patterns: Iterable[str], names: dict[str, str]) -> FileNotFoundError:
    looked = ", ".join(pattern.format(**names) for pattern in patterns)
    return FileNotFoundError(
        f"expected {what} in {folder}; looked for {looked} (each also packed: {', '.join(PACKED)}) and found none."
    )


def read_queries(path: str | Path, *, skip_bad_lines: bool = False) -> dict[str, str]:
    """Queries in the order of their file, by id.

    Args:
        path: ``id TAB text`` lines where the name holds ``.tsv``, else JSON lines with an id (``_id``, ``query_id`` or
            ``id``) and a text (``text`` or ``query``); either may be packed.
        skip_bad_lines: Leave faulty lines out, with a warning, instead of raising.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: no id, no text, an id twice with another text.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    queries: dict[str, str] = {}
    is_tsv = ".tsv" in Path(path).suffixes
    for number, row in fixed_columns(path, 2, faults) if is_tsv else json_objects(path, faults):
        identity, text = row if isinstance(row, list) else _query(row)
        _add(queries, identity, text, path, number, faults)
    faults.finalize()
    return queries


def read_queries_with_passages(
    path: str | Path, *, key: str = "positive_passages", skip_bad_lines: bool = False
) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]]]:
    """Queries with their passages: Mr.TyDi's form for training.

    A line is ``{"query_id": …, "query": …, "positive_passages": [{"docid": …, "title": …, "text": …}], …}``.

    Args:
        path: JSON lines, plain or packed.
        key: Of the passages: ``positive_passages``, or ``negative_passages``.
        skip_bad_lines: As :func:`read_queries`.
    Returns:
        Queries by id; and by query id the ids and texts of its passages.
    Raises:
        FileNotFoundError, ParallelTextError: As :func:`read_queries`.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries with passages")
    queries: dict[str, str] = {}
    passages: dict[str, list[tuple[str, str]]] = {}
    for number, row in json_objects(path, faults):
        listed = row.get(key)
        each_one = listed if isinstance(listed, list) else [None]
        parsed = [parse_passage(each) if isinstance(each, dict) else None for each in each_one]
        identity, text = _query(row)
        if None in parsed:
            faults.add(path, number, "no passages", f"expected {key}, each with a docid and a text")
        elif _add(queries, identity, text, path, number, faults):
            passages[identity] = [each for each in parsed if each is not None]
    faults.finalize()
    return queries, passages


def _query(row: Mapping[str, Any]) -> tuple[str, str]:
    identity = next((row[key] for key in _QUERY_IDS if isinstance(row.get(key), (str, int))), "")
    text = next((row[key] for key in _QUERY_TEXTS if isinstance(row.get(key), str)), "")
    return str(identity), text


def _add(queries: dict[str, str], identity: str, text: str, path: str | Path, number: int, faults: FaultLog) -> bool:
    if not identity.strip() or not text.strip():
        faults.add(path, number, "no id or text", "expected an id and a text that are not blank")
    elif queries.get(identity, text) != text:
        faults.add(path, number, "id twice", f"{identity}, with another text")
    else:
        queries[identity] = text
        return True
    return False


def read_qrels(path: str | Path, *, passages: Container[str] | None = None, skip_bad_lines: bool = False) -> Qrels:
    """Relevant passages of each query.

    Args:
        path: Four columns as TREC has them (query, iteration, passage, grade), divided by spaces or tabs; or three
            (query, passage, grade), divided by tabs, under BEIR's header or none. Perhaps packed.
        passages: Ids of the corpus, which the file may name; ``None``: any.
        skip_bad_lines: Leave faulty lines out, with a warning that counts them, instead of raising.
    Returns:
        Query id → passage id → grade, of the grades above 0 alone; a query that has grades and no relevant passage
        is there with none.
    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: wrong columns, two grades of one pair, and relevant passages
            that are not in the corpus, which are counted and listed.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="qrels")
    relevant: Qrels = {}
    for number, line in numbered_lines(path, faults):
        if not line.strip() or (number == 1 and line.split("\t")[-1].strip().lower() in _GRADES):
            continue
        judgment = _judgment(line)
        if judgment is None:
            faults.add(path, number, "wrong columns", f"expected query, 0, passage, whole number; got {line!r:.80}")
            continue
        query, name, grade = judgment
        grades = relevant.setdefault(query, {})
        if grade > 0 and passages is not None and name not in passages:
            faults.add(path, number, "unknown passage", f"{name} is not in the corpus")
        elif grades.get(name, grade) != grade:
            faults.add(path, number, "two grades", f"query {query}, passage {name}: {grades[name]} and {grade}")
        elif grade > 0:
            grades[name] = grade
    faults.finalize()
    return relevant


def _judgment(line: str) -> tuple[str, str, int] | None:
    cells = line.strip().split("\t")
    if len(cells) != 3:  # BEIR's ids may hold spaces, TREC's columns are divided by any
        cells = line.split()
        if len(cells) != 4:
            return None
        cells = [cells[0], *cells[2:]]
    try:
        grade = float(cells[2])
    except ValueError:
        return None
    return (cells[0].strip(), cells[1].strip(), int(grade)) if grade.is_integer() else None
