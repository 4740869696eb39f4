"""Test sets in their published layouts (Tatoeba as in LASER, BUCC) and those that are read from the Hub by name.

``--data de-en=ntrex``, ``--data tatoeba`` and ``--data sw=miracl`` name mteb's copies, at fixed commits, kept in the
cache of ``datasets``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from st_xling.data.check import FaultLog
from st_xling.data.columns import Layout
from st_xling.data.formats import fixed_columns, moses_rows, pair_tables
from st_xling.data.pairs import COLUMNS, no_rows, require_rows
from st_xling.utils.languages import canonical_language, match_language, pair_languages
from st_xling.utils.terminal import first_line
from st_xling.utils.text import is_blank, plain_or_packed, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset

_TATOEBA_FILE = re.compile(r"tatoeba\.([a-z]{3})-eng\.([a-z]{3})")


def read_tatoeba(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, Dataset]:
    """Read the Tatoeba v1 test sets of a folder.

    Args:
        folder: Where the files ``tatoeba.{code}-eng.{code}`` and ``tatoeba.{code}-eng.eng`` are.
        languages: Three-letter codes to read, in this order; else all that are there, in the alphabet's.

    Returns:
        A dataset for each code, with that language as source and English (``"eng"``) as target.

    Raises:
        FileNotFoundError: If the folder has no such files, or a language has one of its two.
        ParallelTextError: For unequal line counts and faulty lines of all languages together. There is no skipping: a
            test set without some lines is another test set.
        ValueError: If ``languages`` holds one that is not there.
    """
    import pyarrow as pa
    from datasets import Dataset

    folder = Path(folder)
    matches = (_TATOEBA_FILE.fullmatch(unpacked_name(path)) for path in folder.glob("tatoeba.*-eng.*"))
    codes = sorted({match[1] for match in matches if match})
    if not codes:
        raise FileNotFoundError(f"expected tatoeba.xxx-eng.xxx files in {folder}, got none; check the path")
    chosen = codes if languages is None else languages
    absent = [code for code in chosen if code not in codes]
    if absent:
        raise ValueError(f"expected codes out of {', '.join(codes)}, got {', '.join(absent)}; add the files")

    faults = FaultLog(can_skip=False)
    tables: dict[str, list[Any]] = {}
    for code in chosen:
        source = str(plain_or_packed(folder / f"tatoeba.{code}-eng.{code}"))
        target = str(plain_or_packed(folder / f"tatoeba.{code}-eng.eng"))
        layout = Layout((0, 1), (code, "eng"), width=2)
        rows = moses_rows(source, target, faults)
        tables[code] = list(pair_tables(rows, layout, (source, target), faults, COLUMNS))
    faults.finalize()

    datasets = {}
    for code in chosen:
        where = f"{folder}/tatoeba.{code}-eng"
        if not tables[code]:
            raise no_rows(where)
        datasets[code] = require_rows(Dataset(pa.concat_tables(tables[code]).drop_columns(["line"])), where)
    return datasets


@dataclass(frozen=True)
class BuccCorpus:
    """Two corpora of which some pairs are translations. Duplicate sentences are kept.

    Attributes:
        source_ids: Id of each source sentence, unique.
        source: The source sentences, row-aligned with ``source_ids``.
        target_ids: Id of each target sentence, unique.
        target: The target sentences, row-aligned with ``target_ids``.
        gold: ``(source_id, target_id)`` of the translations, in the order of the file; ``None`` without a file of them.
        source_language: E.g. ``"de"``.
        target_language: E.g. ``"en"``.
    """

    source_ids: list[str]
    source: list[str]
    target_ids: list[str]
    target: list[str]
    gold: list[tuple[str, str]] | None
    source_language: str
    target_language: str


def read_bucc(folder_or_prefix: str | Path, pair: str = "de-en", split: str = "training") -> BuccCorpus:
    """Read ``{pair}.{split}.{xx}``, ``.{yy}`` and, if there, ``.gold``; plain or packed.

    Args:
        folder_or_prefix: The folder of the three files, or one above with a folder ``{pair}``; or the files' common
            beginning, e.g. ``bucc2018/zh-en.sample``, whose pair and split then count.
        pair: Source and target language, joined by a hyphen, as in the file names.
        split: As in the file names.

    Returns:
        The corpus, in the order of the files.

    Raises:
        ParallelTextError: For lines that are not two columns, duplicate ids, empty sentences, gold pairs of unknown ids
            and duplicate gold pairs, of all three files together. There is no skipping: it would change the task.
        FileNotFoundError: If a corpus is missing.
        ValueError: If ``pair`` is not two languages.
    """
    folder = Path(folder_or_prefix)
    if not folder.is_dir():
        pair, _, split = folder.name.partition(".")
        folder = folder.parent
    elif (folder / pair).is_dir():
        folder = folder / pair
    languages = pair_languages(pair)
    if None in languages or not split:
        raise ValueError(
            f"expected a folder with a pair like 'de-en' and a split, or a beginning of file names like "
            f"'de-en.training', got {folder_or_prefix} with pair {pair!r} and split {split!r}."
            f"{where_to_get(Path(folder_or_prefix).name)}"
        )

    source_language, target_language = map(str, languages)
    faults = FaultLog(can_skip=False)
    source = _read_sentences(plain_or_packed(folder / f"{pair}.{split}.{source_language}"), faults)
    target = _read_sentences(plain_or_packed(folder / f"{pair}.{split}.{target_language}"), faults)
    gold_path = plain_or_packed(folder / f"{pair}.{split}.gold")
    gold = _read_gold(gold_path, source, target, faults) if gold_path.is_file() else None
    faults.finalize()
    return BuccCorpus(
        source_ids=list(source),
        source=list(source.values()),
        target_ids=list(target),
        target=list(target.values()),
        gold=gold,
        source_language=source_language,
        target_language=target_language,
    )


def find_bucc(folder: str | Path, split: str = "test") -> dict[str, Path]:
    """Find the language pairs in a folder of BUCC's layout that have gold for a split.

    Args:
        folder: Folder of the files, or of folders of them.
        split: As in the file names.

    Returns:
        Pair → common beginning of its file names, as :func:`read_bucc` takes it.
    """
    prefixes = {}
    for gold in sorted(Path(folder).rglob(f"*-*.{split}.gold*")):
        pair = gold.name.partition(".")[0]
        prefixes[pair] = gold.with_name(f"{pair}.{split}")
    return prefixes


def gold_splits(folder: str | Path) -> list[str]:
    """Return the splits of which a folder of BUCC's layout has gold, in alphabetical order."""
    splits = set()
    for path in Path(folder).rglob("*-*.*.gold*"):
        parts = unpacked_name(path).split(".")  # pair, split, gold
        if len(parts) == 3 and parts[2] == "gold":
            splits.add(parts[1])
    return sorted(splits)


def _read_sentences(path: Path, faults: FaultLog) -> dict[str, str]:
    """Read the sentences by id; faulty lines keep their id, so that the gold is not blamed for them too."""
    sentences: dict[str, str] = {}
    for number, (identifier, sentence) in fixed_columns(path, 2, faults):
        if identifier in sentences:
            faults.add(path, number, "duplicate id", identifier)
        elif not identifier.strip():
            faults.add(path, number, "empty side", "id")
        elif is_blank(sentence):
            faults.add(path, number, "empty side", "sentence")
        sentences.setdefault(identifier, sentence)
    if not sentences and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected sentences with ids")
    return sentences


def _read_gold(path: Path, source: dict[str, str], target: dict[str, str], faults: FaultLog) -> list[tuple[str, str]]:
    gold: dict[tuple[str, str], None] = {}
    for number, (source_id, target_id) in fixed_columns(path, 2, faults):
        if source_id not in source or target_id not in target:
            faults.add(path, number, "unknown id", f"{source_id} {target_id}")
        elif (source_id, target_id) in gold:
            faults.add(path, number, "duplicate pair", f"{source_id} {target_id}")
        gold[source_id, target_id] = None
    if not gold and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected pairs of ids; without gold, remove the file")
    return list(gold)


class HubTestSet(NamedTuple):
    """Test set on the Hub.

    Attributes:
        dataset: Its id.
        revision: Commit.
        split: The split that is read, of test sets of translations.
    """

    dataset: str
    revision: str
    split: str = "test"


HUB_TEST_SETS = {
    "tatoeba": HubTestSet("mteb/tatoeba-bitext-mining", "69e8f12da6e31d59addadda9a9c8a2e601a0e282"),
    "ntrex": HubTestSet("mteb/NTREXBitextMining", "66b8b27efc99658903127730575e9fa0cb9f075c"),
    "flores": HubTestSet("mteb/FloresBitextMining", "2144d16cc15edd22d4a9237d12bff5f31f5c07fc", split="devtest"),
}
"""Name → test set of translations. NTREX and FLORES have a column for each language, Tatoeba rows for each language
with English."""

HUB_RETRIEVAL_SETS = {
    "miracl": HubTestSet("mteb/MIRACLRetrieval", "9c09abc13478308c27598f350e31d8f06b9b5481"),
    "mlqa": HubTestSet("mteb/MLQARetrieval", "5bef8b6e2601af974fb1a1cca03fd702229be4b6"),
    "xquad": HubTestSet("mteb/XQuADRetrieval", "194842d6a49baddf6cd3f4d5130ab3c7756268d2"),
}
"""Name → retrieval set, see :mod:`st_xling.data.retrieval.files`."""

_ELSEWHERE = {
    "bucc": "BUCC's corpora with distractors are not on the Hub: download and unpack them from "
    "https://comparable.limsi.fr/bucc2018/bucc2018-task.html, and name the folder",
    "xquadr": "XQuAD-R's answer sentences are not on the Hub: download xquad-r/xx.json from "
    "https://github.com/google-research-datasets/lareqa, and name the file as xx=xx.json",
}


def where_to_get(name: str) -> str:
    """Return where to download a test set that is not on the Hub, as a sentence; an empty text for other names."""
    name = re.sub(r"[^a-z]", "", name.lower())
    return f" {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""


def hub_languages(name: str) -> list[str]:
    """Return the languages of a test set, as it spells them; those of Tatoeba without English."""
    table = _load_hub_table(name)
    if name != "tatoeba":
        return list(table.column_names)
    return [pair.removesuffix("-eng") for pair in table.unique("lang")]


def hub_pairs(name: str, source_language: str | None, target_language: str | None) -> Any:
    """Return the sentences of two languages as a ``Dataset`` with two columns, named by the codes that are given.

    Raises:
        ValueError: If the data set cannot be loaded, or does not have the languages.
    """
    languages = [code for code in (source_language, target_language) if code]
    if len(languages) != 2:
        raise ValueError(f"name the two languages, such as de-en={name}: got {' and '.join(languages) or 'none'}.")
    table = _load_hub_table(name)
    spellings = hub_languages(name)
    if name == "tatoeba":
        pairs = _tatoeba_pairs(table, languages, spellings)
        expected = "one language with English"
    else:
        pairs = None
        expected = "two languages"
        columns = [match_language(code, spellings) for code in languages]
        if all(columns) and columns[0] != columns[1]:
            pairs = table.select_columns(columns).rename_columns(dict(zip(columns, languages)))
    if pairs is None:
        raise ValueError(
            f"{name} has no pair {'-'.join(languages)}: expected {expected} out of {', '.join(sorted(spellings))}."
        )
    return pairs


def _tatoeba_pairs(table: Any, languages: Sequence[str], spellings: Sequence[str]) -> Any:
    """Return the rows of one language with English; ``None`` if the test set does not have it.

    Args:
        table: The test set, with a row for each pair of all languages.
        languages: The two languages, one of them English.
        spellings: Languages of the test set, as it spells them.
    """
    others = [code for code in languages if canonical_language(code) != "eng"]
    if len(others) != 1:
        return None
    other = others[0]
    spelling = match_language(other, spellings)
    if spelling is None:
        return None
    english = next(code for code in languages if code != other)
    rows = [row for row, pair in enumerate(table["lang"]) if pair == f"{spelling}-eng"]
    table = table.select(rows).select_columns(["sentence1", "sentence2"])
    return table.rename_columns({"sentence1": other, "sentence2": english})


@cache
def _load_hub_table(name: str) -> Any:
    from datasets import load_dataset

    test_set = HUB_TEST_SETS[name]
    try:
        return load_dataset(test_set.dataset, revision=test_set.revision, split=test_set.split)
    except Exception as error:  # datasets raises a dozen unrelated kinds; each is kept as the cause
        raise ValueError(
            f"{name} is the data set {test_set.dataset} on the Hub, which could not be read: {type(error).__name__}: "
            f"{first_line(error)}. Connect once to fetch it (without HF_HUB_OFFLINE), or name a local folder or "
            f"file instead of {name}."
        ) from error
