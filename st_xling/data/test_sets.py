"""Test sets of similarity search and bitext mining in their published layouts: Tatoeba as in LASER, and BUCC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.check import FaultLog
from st_xling.data.columns import Layout
from st_xling.data.formats import fixed_columns, moses_rows, pair_tables
from st_xling.data.hub_test_sets import where_to_get
from st_xling.data.pairs import COLUMNS, require_rows
from st_xling.data.sample import Sample
from st_xling.data.spec import parse_spec
from st_xling.utils.languages import pair_languages
from st_xling.utils.text import describe_missing, is_blank, plain_or_packed, unpacked_name

if TYPE_CHECKING:
    from datasets import Dataset


_FILE = re.compile(r"tatoeba\.([a-z]{3})-eng\.([a-z]{3})")


def read_tatoeba(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, Dataset]:
    """Read the Tatoeba v1 test sets of a folder.

    Args:
        folder: Where the files ``tatoeba.{code}-eng.{code}`` and ``tatoeba.{code}-eng.eng`` are.
        languages: Three-letter codes to read, in this order; else all that are there, in the alphabet's.
    Returns:
        A dataset for each code, with that language as source and English (``"eng"``) as target.
    Raises:
        FileNotFoundError: If there is no such folder, or it has no such file.
        ParallelTextError: For one-sided languages, unequal line counts and faulty lines of all languages together.
            There is no skipping: a test set without some lines is another test set.
        ValueError: If ``languages`` holds one that is not there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"expected a folder of tatoeba.xxx-eng.xxx files, but {folder} is none; check the path")
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(unpacked_name(path))
        if match and match[2] in (match[1], "eng"):
            found.setdefault(match[1], {}).setdefault(match[2], path)
    if not found:
        raise FileNotFoundError(f"expected tatoeba.xxx-eng.xxx files in {folder}, got none; check the path")
    languages = [languages] if isinstance(languages, str) else languages
    wanted = list(found) if languages is None else list(dict.fromkeys(languages))
    absent = [code for code in wanted if code not in found]
    if absent or not wanted:
        raise ValueError(
            f"expected three-letter codes out of {', '.join(found)}, got {', '.join(absent) or 'none'}; "
            f"add the files to {folder} or leave these out"
        )

    faults = FaultLog(can_skip=False)
    tables = {}
    for code in wanted:
        sides = found[code]
        for missing in {code, "eng"} - sides.keys():
            path = folder / f"tatoeba.{code}-eng.{missing}"
            faults.add_beyond_repair(next(iter(sides.values())), "one-sided", f"{path} is missing")
        if len(sides) == 2:
            files = (str(sides[code]), str(sides["eng"]))
            layout = Layout((0, 1), (code, "eng"), width=2)
            tables[code] = list(pair_tables(moses_rows(*files, faults), layout, files, faults, COLUMNS))
    faults.finalize()
    return {code: require_rows(_dataset(parts), f"{found[code][code]}") for code, parts in tables.items()}


def _dataset(tables: Sequence[Any]) -> Dataset:
    import pyarrow as pa
    from datasets import Dataset

    return Dataset(pa.concat_tables(tables).drop_columns(["line"])) if tables else Dataset.from_dict({})


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
        split: ``"training"``, ``"sample"`` or ``"test"``.
    """

    source_ids: list[str]
    source: list[str]
    target_ids: list[str]
    target: list[str]
    gold: list[tuple[str, str]] | None
    source_language: str
    target_language: str
    split: str


def read_bucc(folder_or_prefix: str | Path, pair: str = "de-en", split: str = "training") -> BuccCorpus:
    """Reads ``{pair}.{split}.{xx}``, ``.{yy}`` and, if there, ``.gold``; plain or packed.

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
    source_language, target_language = pair_languages(pair)
    if source_language is None or target_language is None or not split:
        raise ValueError(
            f"expected a folder with a pair like 'de-en' and a split, or a beginning of file names like "
            f"'de-en.training', got {folder_or_prefix} with pair {pair!r} and split {split!r}."
            f"{where_to_get(Path(folder_or_prefix).name)}"
        )

    faults = FaultLog(can_skip=False)
    source_path, target_path, gold_path = (
        plain_or_packed(folder / f"{pair}.{split}.{ending}") for ending in (source_language, target_language, "gold")
    )
    for path in (source_path, target_path):
        if not path.is_file():
            raise FileNotFoundError(describe_missing(path))
    source = _read_sentences(source_path, faults)
    target = _read_sentences(target_path, faults)
    gold = _read_gold(gold_path, source, target, faults) if gold_path.is_file() else None
    faults.finalize()
    source_columns, target_columns = ((list(side), list(side.values())) for side in (source, target))
    return BuccCorpus(*source_columns, *target_columns, gold, source_language, target_language, split)


def find_bucc(folder: str | Path, split: str = "test") -> dict[str, Path]:
    """Find the language pairs in a folder of BUCC's layout that have gold for a split.

    Args:
        folder: Of the files, or of folders of them; options behind it, as ``?size=5000``, are ignored.
        split: As in the file names.
    Returns:
        Pair → common beginning of its file names, as :func:`read_bucc` takes it.
    """
    golds = sorted(Path(str(folder).partition("?")[0]).rglob(f"*-*.{split}.gold*"))
    return {pair: gold.with_name(f"{pair}.{split}") for gold in golds for pair in [gold.name.partition(".")[0]]}


def read_bucc_spec(spec: str, pair: str, split: str) -> BuccCorpus:
    """Read a folder as :func:`read_bucc`, or with ``?size=5000&seed=0`` a sample of it, see :func:`sample_bucc`."""
    parsed = parse_spec(spec, {}, languages=0, forms="FOLDER or FOLDER?size=5000&seed=0")
    corpus = read_bucc(parsed.location, pair, split)
    return corpus if parsed.sample.size is None else sample_bucc(corpus, parsed.sample.size, seed=parsed.sample.seed)


def sample_bucc(corpus: BuccCorpus, size: int, *, seed: int = 0) -> BuccCorpus:
    """A smaller mining set, in which translations are as rare as in the whole.

    Source sentences are drawn at random. Target sentences are reduced by the same share: the translations of those
    source sentences stay, and others are drawn at random. Two independent draws would lose most gold pairs.

    Args:
        corpus: With gold.
        size: Source sentences to keep; all, with a warning, where there are no more.
        seed: Of the draw.
    Raises:
        ValueError: A size below 1, no gold, or none of the drawn sentences in it.
    """
    if size < 1 or corpus.gold is None:
        raise ValueError(f"a sample of a mining set needs gold and a size of 1 or more: got size={size}.")
    where = f"{corpus.source_language}-{corpus.target_language}.{corpus.split}"
    rows = Sample(size, seed).places(len(corpus.source), where)
    if len(rows) == len(corpus.source):
        return corpus
    drawn_ids = {corpus.source_ids[row] for row in rows}
    gold = [pair for pair in corpus.gold if pair[0] in drawn_ids]
    if not gold:
        raise ValueError(f"{where}: of {len(rows)} sentences drawn, none has a translation in the gold; take more.")
    translations, in_any = {target for _, target in gold}, {target for _, target in corpus.gold}
    others = [row for row, name in enumerate(corpus.target_ids) if name not in in_any]
    # A target whose source was not drawn leaves with it; it must not come back as a distractor of a source that stays.
    share = len(rows) / len(corpus.source)
    drawn = Sample(max(1, round(share * len(others))), seed).places(len(others), where) if others else []
    wanted = {others[place] for place in drawn}
    columns = [row for row, name in enumerate(corpus.target_ids) if row in wanted or name in translations]
    return replace(
        corpus,
        source_ids=[corpus.source_ids[row] for row in rows],
        source=[corpus.source[row] for row in rows],
        target_ids=[corpus.target_ids[row] for row in columns],
        target=[corpus.target[row] for row in columns],
        gold=gold,
    )


def _read_sentences(path: Path, faults: FaultLog) -> dict[str, str]:
    """Sentences by id; faulty lines keep their id, so that the gold is not blamed for them too."""
    sentences: dict[str, str] = {}
    for number, (identifier, sentence) in fixed_columns(path, 2, faults):
        if identifier in sentences:
            faults.add(path, number, "duplicate id", identifier)
        elif not identifier.strip() or is_blank(sentence):
            faults.add(path, number, "empty side", "id" if not identifier.strip() else "sentence")
        sentences.setdefault(identifier, sentence)
    if not sentences and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected sentences with ids")
    return sentences


def _read_gold(path: Path, source: dict[str, str], target: dict[str, str], faults: FaultLog) -> list[tuple[str, str]]:
    gold: dict[tuple[str, str], None] = {}
    for number, (source_id, target_id) in fixed_columns(path, 2, faults):
        unknown = [
            f"{side} {identifier}"
            for side, identifier, known in (("source", source_id, source), ("target", target_id, target))
            if identifier not in known
        ]
        if unknown:
            faults.add(path, number, "unknown id", ", ".join(unknown))
        elif (source_id, target_id) in gold:
            faults.add(path, number, "duplicate pair", f"{source_id} {target_id}")
        gold[source_id, target_id] = None
    if not gold and not faults.faults:
        faults.add_beyond_repair(path, "no rows", "expected pairs of ids; without gold, remove the file")
    return list(gold)
