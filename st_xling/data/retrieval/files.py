"""Passages, queries and qrels: of files in the layouts of BEIR, Mr.TyDi and MIRACL, and of data sets of the Hub."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from st_xling.data.check import FaultLog, broken_text, is_unicode, numbered_lines
from st_xling.data.formats import TEXT_KEYS, fixed_columns, is_id_header, json_objects, titled_text
from st_xling.data.locations import check_inside
from st_xling.data.test_sets import HUB_RETRIEVAL_SETS, where_to_get
from st_xling.utils.languages import match_language
from st_xling.utils.terminal import first_line
from st_xling.utils.text import PACKED, ParallelTextError, home_path, unpacked_name

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
        digest = hashlib.sha256()
        chunks = []
        remaining = iter(records)
        while chunk := list(islice(remaining, _CHUNK)):
            for identity, text in chunk:
                self.ids[identity] = len(self.ids)
                digest.update(f"{identity}\t{text}\n".encode("utf-8", "surrogatepass"))
            chunks.append(pa.array([text for _, text in chunk], pa.large_string()))
        self.sha256 = digest.hexdigest()
        self._texts = pa.chunked_array(chunks, pa.large_string())

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return self._texts.slice(start, max(0, stop - start)).to_pylist()
        return self._texts[range(len(self))[index]].as_py()


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
    paths = list(paths)
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="passages")
    seen: set[str] = set()

    def records() -> Iterator[tuple[str, str]]:
        for path in paths:
            for number, row in json_objects(path, faults):
                parsed = parse_passage(row)
                if parsed is None:
                    faults.add(path, number, "no id or text", f"expected {', '.join(_IDS)}; {' or '.join(TEXT_KEYS)}")
                elif broken := broken_text(dict(zip(("id", "text"), parsed))):
                    faults.add(path, number, "bad JSON", f"{broken} holds half a surrogate pair")
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


def parse_passage(row: Any) -> tuple[str, str] | None:
    """Return id and text, title included, of one object; ``None`` where either is missing or blank."""
    if not isinstance(row, Mapping):
        return None
    identity = next((row[key] for key in _IDS if row.get(key) not in (None, "")), None)
    text = titled_text(row)
    if text is None or isinstance(identity, bool) or not isinstance(identity, (str, int)):
        return None
    return str(identity), text


Qrels = dict[str, dict[str, int]]
"""Query id → passage id → grade above 0; a query that is judged, but has no relevant passage, has none."""

#: Patterns of files, of which the first that has any is read; ``{split}`` and ``{language}`` are filled in. Each may be
#: packed.
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

_BY_LANGUAGE = re.compile(r"queries\.([A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\.jsonl")
_NUMBERS = re.compile(r"(\d+)")
_GRADES = ("score", "grade", "rel", "relevance")
_QUERY_IDS = ("_id", "query_id", "id")
_QUERY_TEXTS = ("text", "query")


SetParts = tuple[Passages, dict[str, dict[str, str]], Qrels]
"""Passages; language → query id → text; qrels."""


def chosen_languages(query_languages: Iterable[str] | None, known: Iterable[str], where: str) -> list[str]:
    """Return the languages of queries asked for, by default all; raise ``ValueError`` if one is not there."""
    known_codes = list(known)
    codes = known_codes if query_languages is None else list(dict.fromkeys(query_languages))
    if absent := [code for code in codes if code not in known_codes]:
        raise ValueError(f"{where} has queries in {', '.join(known_codes)}: asked for {', '.join(absent)}.")
    return codes


def read_folder(
    folder: str | Path, language: str, query_languages: Iterable[str] | None, *, split: str, skip_bad_lines: bool
) -> SetParts:
    """Read the passages, queries and judgments of a folder.

    Args:
        folder: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/test.tsv`` (BEIR); the same with ``queries.xx.jsonl``
            for each language of the queries; ``collection/docs.jsonl``, ``topic.test.tsv`` and ``qrels.test.txt``, or
            ``corpus.jsonl`` and ``test.jsonl`` (Mr.TyDi); ``topics/`` and ``qrels/`` (MIRACL), next to its corpus.
            Any file may be packed (``.gz``, ``.xz``, ``.bz2``, ``.zst``).
        language: Language of the passages, and of queries whose file names none.
        query_languages: Languages of the queries to read; ``None`` for all.
        split: Split of queries and qrels.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.

    Raises:
        FileNotFoundError: If the folder, or one of the three, is missing.
        ParallelTextError: For faulty lines, a file's together.
        ValueError: For a corpus without passages, or a language in which there are no queries.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of a retrieval set, got {folder}.{where_to_get(folder.name)}")

    def find(*patterns: str, what: str | None = None) -> list[Path]:
        """Return the files of the first pattern that has any, in the order of the numbers in their names."""
        names = [pattern.format(split=split, language=language) for pattern in patterns]
        for name in names:
            for packing in ("", *PACKED):
                if paths := sorted(folder.glob(name + packing), key=_in_order):
                    return paths
        if what is None:
            return []
        raise FileNotFoundError(f"expected {what} in {folder}, plain or packed: {', '.join(names)}; found none.")

    corpus = find(*CORPORA, what="passages")
    # Files of one language each come before a file whose language is that of the passages.
    queries = {}
    for path in sorted(folder.iterdir()):
        if match := _BY_LANGUAGE.fullmatch(unpacked_name(path)):
            queries[match[1]] = path
    if not queries and (files := find(*QUERIES)):
        queries = {language: files[0]}
    if queries:
        qrels = find(*QRELS, what=f"qrels of split {split!r}")[0]
    else:
        queries_with_passages = find("{split}.jsonl", "queries.xx.jsonl", *QUERIES, what=f"queries of split {split!r}")[
            0
        ]
    codes = chosen_languages(query_languages, queries or [language], str(folder))
    passages = read_passages(corpus, skip_bad_lines=skip_bad_lines)
    if queries:
        texts = {code: read_queries(queries[code], skip_bad_lines=skip_bad_lines) for code in codes}
        return passages, texts, read_qrels(qrels, skip_bad_lines=skip_bad_lines)
    # Mr.TyDi's form, whose queries have their relevant passages with them.
    query_texts, positives = read_queries_with_passages(queries_with_passages, skip_bad_lines=skip_bad_lines)
    relevant = {query: dict.fromkeys(ids, 1) for query, ids in positives.items() if ids}
    return passages, {language: query_texts}, relevant


def _in_order(path: Path) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in _NUMBERS.split(path.name)]


def read_queries(path: str | Path, *, skip_bad_lines: bool = False) -> dict[str, str]:
    """Read the queries of a file, by id, in its order.

    Args:
        path: ``id TAB text`` lines where the name holds ``.tsv``, else JSON lines with an id (``_id``, ``query_id`` or
            ``id``) and a text (``text`` or ``query``); either may be packed.
        skip_bad_lines: Skip faulty lines, with a warning, instead of raising.

    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: no id, no text, an id twice with another text.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries")
    queries = {identity: text for _, identity, text, _ in _query_rows(path, faults)}
    faults.finalize()
    return queries


def _query_rows(path: str | Path, faults: FaultLog) -> Iterator[tuple[int, str, str, Any]]:
    """Yield line, id, text and cells of each query."""
    texts: dict[str, str] = {}
    is_tsv = ".tsv" in Path(path).suffixes
    for number, row in fixed_columns(path, 2, faults) if is_tsv else json_objects(path, faults):
        if isinstance(row, list):
            identity, text = row
            if number == 1 and is_id_header(row):
                continue
        else:
            identity = str(next((row[key] for key in _QUERY_IDS if isinstance(row.get(key), (str, int))), ""))
            text = next((row[key] for key in _QUERY_TEXTS if isinstance(row.get(key), str)), "")
        if not identity.strip() or not text.strip():
            faults.add(path, number, "no id or text", "expected an id and a text that are not blank")
        elif broken := broken_text({"id": identity, "text": text}):
            faults.add(path, number, "bad JSON", f"{broken} holds half a surrogate pair")
        elif texts.setdefault(identity, text) != text:
            faults.add(path, number, "id twice", f"{identity}, with another text")
        else:
            yield number, identity, text, row


def read_queries_with_passages(
    path: str | Path, *, skip_bad_lines: bool = False
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Read queries with their passages: Mr.TyDi's form for training.

    A line is ``{"query_id": …, "query": …, "positive_passages": [{"docid": …, "title": …, "text": …}], …}``.

    Args:
        path: JSON lines, plain or packed.
        skip_bad_lines: As :func:`read_queries`.

    Returns:
        Queries by id; by query id, its positive passages (id → text).

    Raises:
        FileNotFoundError, ParallelTextError: As :func:`read_queries`.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="queries with passages")
    queries: dict[str, str] = {}
    passages: dict[str, dict[str, str]] = {}
    for number, identity, text, row in _query_rows(path, faults):
        positives = row.get("positive_passages")
        parsed = [parse_passage(passage) for passage in positives] if isinstance(positives, list) else [None]
        if None in parsed:
            faults.add(path, number, "no passages", "expected a list of passages, each with a docid and a text")
        elif not all(is_unicode(text) for _, text in filter(None, parsed)):
            faults.add(path, number, "bad JSON", "a passage holds half a surrogate pair")
        else:
            queries[identity] = text
            passages[identity] = dict(filter(None, parsed))
    faults.finalize()
    return queries, passages


def read_qrels(path: str | Path, *, skip_bad_lines: bool = False) -> Qrels:
    """Read the relevant passages of each query.

    Args:
        path: Four columns as TREC has them (query, iteration, passage, grade), divided by spaces or tabs; or three
            (query, passage, grade), divided by tabs, under BEIR's header or none. Perhaps packed.
        skip_bad_lines: Skip faulty lines, with a warning that counts them, instead of raising.

    Returns:
        Query id → passage id → grade, of the grades above 0 alone. As trec_eval counts, a query whose grades are all 0
        is there, with no passage: whatever is found for it is wrong.

    Raises:
        FileNotFoundError: If there is no such file.
        ParallelTextError: For all faulty lines together: wrong columns, and two grades of one pair.
    """
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="qrels")
    relevant: Qrels = {}
    for number, line in numbered_lines(path, faults):
        if not line.strip() or (number == 1 and line.split("\t")[-1].strip().lower() in _GRADES):
            continue
        judgment = _parse_judgment(line)
        if judgment is None:
            faults.add(path, number, "wrong columns", f"expected query, 0, passage, whole number; got {line!r:.80}")
            continue
        query, name, grade = judgment
        grades = relevant.setdefault(query, {})
        if grade <= 0:
            continue
        first_grade = grades.setdefault(name, grade)
        if first_grade != grade:
            faults.add(path, number, "two grades", f"query {query}, passage {name}: {first_grade} and {grade}")
    faults.finalize()
    return relevant


def _parse_judgment(line: str) -> tuple[str, str, int] | None:
    """Return query, passage and grade; ``None`` for a line of another form."""
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
    if not grade.is_integer():
        return None
    return cells[0].strip(), cells[1].strip(), int(grade)


def load_hub_retrieval_set(
    location: str, language: str, query_language: str, *, name: str | None, split: str, skip_bad_lines: bool
) -> SetParts:
    """Load passages, queries and judgments of a data set.

    Args:
        location: A name of :data:`~st_xling.data.test_sets.HUB_RETRIEVAL_SETS`, or the id of a data set.
        language: Language of the passages.
        query_language: Language of the queries.
        name: What is before ``-corpus``, ``-queries`` and ``-qrels`` in the names of the configurations. By default the
            language of the passages, or that of the queries and that of the passages (``eng-deu``), if they are there.
        split: Split of the judgments, and of the rest where it is divided too.
        skip_bad_lines: Skip faulty rows, with a warning, instead of raising.

    Raises:
        ValueError: If the data set cannot be loaded, or has no such configuration or split.
        ParallelTextError: For rows without id or text, or an id twice with another text.
    """
    import datasets

    repo = location
    revision = None
    if published := HUB_RETRIEVAL_SETS.get(location):
        repo = published.dataset
        revision = published.revision
    try:
        tables = []
        configs = datasets.get_dataset_config_names(repo, revision=revision)
        for config in _part_configs(configs, name, language, query_language):
            splits = datasets.get_dataset_split_names(repo, config, revision=revision)
            config_split = splits[0] if len(splits) == 1 else split
            tables.append(datasets.load_dataset(repo, config, split=config_split, revision=revision))
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        raise ValueError(
            f"{location} is no folder, and as a data set of the Hub, with configurations corpus, queries and qrels, it "
            f"could not be read: {type(error).__name__}: {first_line(error)}. Check the spelling, ?name= and "
            "?split=, and the network (HF_HUB_OFFLINE)."
        ) from error
    return _set_of_tables(tables, location, query_language, skip_bad_lines=skip_bad_lines)


def is_downloaded_set(folder: Path) -> bool:
    """Return whether a folder is a retrieval set of the Hub that was downloaded, with the configurations in its card.

    Where the folder also has qrels as :func:`read_folder` reads them, it is read as files.
    """
    from huggingface_hub import metadata_load

    card = folder / "README.md"
    if not card.is_file() or any(folder.glob("qrels*.tsv")) or any(folder.glob("qrels/*.tsv")):
        return False
    configs = (metadata_load(card) or {}).get("configs")
    if not isinstance(configs, list):
        return False
    names = [config.get("config_name") for config in configs if isinstance(config, Mapping)]
    return any(str(name).endswith("corpus") for name in names)


def load_downloaded_set(
    location: str, language: str, query_language: str, *, name: str | None, split: str, skip_bad_lines: bool
) -> SetParts:
    """Load passages, queries and judgments of a data set of the Hub that was downloaded into a folder.

    The files themselves are read, not what ``datasets`` cached of earlier ones.

    Args, Raises: As in :func:`load_hub_retrieval_set`; the data are Parquet or JSON lines.
    """
    import datasets

    folder = home_path(location)
    tables = []
    try:
        configs = datasets.get_dataset_config_names(str(folder))
        for config in _part_configs(configs, name, language, query_language):
            files = datasets.load_dataset_builder(str(folder), config).config.data_files or {}
            chosen = files[next(iter(files)) if len(files) == 1 else split]
            tables.append(_rows_of_files(folder, list(map(Path, chosen))))
    except (ParallelTextError, ValueError):
        raise
    except Exception as error:  # see load_hub_retrieval_set
        raise ValueError(
            f"{folder}: expected a data set of the Hub with configurations corpus, queries and qrels, and split "
            f"{split!r}: {type(error).__name__}: {first_line(error)}. Check ?name= and ?split=."
        ) from error
    return _set_of_tables(tables, location, query_language, skip_bad_lines=skip_bad_lines)


def _rows_of_files(folder: Path, files: Sequence[Path]) -> Iterator[Any]:
    """Yield the rows of Parquet files or JSON lines inside a folder."""
    import pyarrow.parquet as pq

    check_inside(folder, files)
    if unknown := [file for file in files if not file.name.endswith((".parquet", ".jsonl", ".json"))]:
        raise ValueError(f"{folder}: expected Parquet or JSON lines, got {unknown[0].name}.")

    def rows() -> Iterator[Any]:
        for file in files:
            if file.suffix == ".parquet":
                for batch in pq.ParquetFile(file).iter_batches():
                    yield from batch.to_pylist()
            else:
                faults = FaultLog(skip_bad_lines=False, what="rows")
                for _, row in json_objects(file, faults):
                    yield row
                faults.finalize()

    return rows()


def _part_configs(configs: Sequence[str], name: str | None, language: str, query_language: str) -> list[str]:
    """Return the configurations of passages, queries and judgments."""
    prefix = _config_prefix(configs, name, language, query_language)
    # Sets of one language may have the judgments in the default configuration.
    candidates = [f"{prefix}qrels", "default"]
    qrels = next((config for config in candidates if config in configs), "qrels")
    return [f"{prefix}corpus", f"{prefix}queries", qrels]


def _set_of_tables(
    tables: Sequence[Iterable[Any]], location: str, query_language: str, *, skip_bad_lines: bool
) -> SetParts:
    """Check the rows of passages, queries and judgments."""
    faults = FaultLog(skip_bad_lines=skip_bad_lines, what="retrieval sets")

    def records(table: Iterable[Any], part: str) -> Iterator[tuple[str, str]]:
        seen: dict[str, int] = {}  # a row that is repeated as it is does no harm
        for number, row in enumerate(table, 1):
            parsed = parse_passage(row)
            if parsed is None:
                faults.add(f"{location}/{part}", number, "no id or text", "expected _id and text")
            elif parsed[0] not in seen:
                seen[parsed[0]] = hash(parsed)
                yield parsed
            elif seen[parsed[0]] != hash(parsed):
                faults.add(f"{location}/{part}", number, "id twice", f"{parsed[0]}, with another text")

    corpus_rows, query_rows, judgments = tables
    passages = Passages(records(corpus_rows, "corpus"))
    queries = dict(records(query_rows, "queries"))
    faults.finalize()
    relevant: Qrels = {}
    for row in judgments:
        grades = relevant.setdefault(str(row["query-id"]), {})
        if row["score"] > 0:
            grades[str(row["corpus-id"])] = int(row["score"])
    return passages, {query_language: queries}, relevant


def _config_prefix(configs: Iterable[str], name: str | None, language: str, query_language: str) -> str:
    """Return what is before ``corpus`` in the names of the configurations of some languages."""
    prefixes = [config.removesuffix("-corpus") for config in configs if config.endswith("-corpus")]
    if name is None and not prefixes:
        return ""
    fitting = []
    for prefix in prefixes:
        codes = prefix.split("-")  # one language is that of both; of two the queries' comes first
        if len(codes) < 3 and match_language(query_language, codes[:1]) and match_language(language, codes[-1:]):
            fitting.append(prefix)
    if not name and len(fitting) == 1:
        name = fitting[0]
    if name not in prefixes:
        raise ValueError(f"configurations of {', '.join(prefixes) or 'no language'}: choose one by ?name=.")
    return f"{name}-"
