"""The texts of evaluation sets, for checks that only read them: pairs, Tatoeba folders, BUCC corpora, plain text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.check import FaultLog
from st_xling.data.language_texts import text_rows
from st_xling.data.read import load_data_specs
from st_xling.data.retrieval.retrieval_set import load_retrieval_specs
from st_xling.data.spec import parse_spec, split_spec, unique_name
from st_xling.data.test_sets import read_bucc, read_tatoeba
from st_xling.utils.text import file_ending, home_path, plain_or_packed, unpacked_name

if TYPE_CHECKING:
    from st_xling.data.leak import Texts


def load_evaluation_specs(specs: Iterable[str], *, skip_bad_lines: bool = False) -> dict[str, Texts]:
    """Load the texts of all evaluation sets that the specs name.

    Args:
        specs: Each a folder of ``tatoeba.xxx-eng.xxx`` files; a prefix of BUCC files (``zh-en.test``, next to
            ``zh-en.test.gold``), or a folder of such; ``xx=DIR`` or ``xx=phrasebook``, a retrieval set, of which the
            queries are read; a ``.txt`` file (also packed), one sentence a line, or ``xx=FILE``, text of one language;
            or what ``--data`` takes. Of a phrasebook the test split is read where the spec names none.
        skip_bad_lines: Drop faulty lines of pair files, with a warning, instead of raising.
    Returns:
        Name → pairs, or sentences of one language. Each side of a BUCC set is one of its own, as are its gold pairs.
    Raises:
        ValueError: For a malformed spec, or faulty lines; as ``load_data_specs``, ``read_tatoeba`` and ``read_bucc``.
        FileNotFoundError: If nothing is there.
    """
    loaded: dict[str, Texts] = {}
    for spec in specs:
        parts = split_spec(spec)
        path, is_named = home_path(parts.location), len(parts.languages) == 1
        found: dict[str, Any]
        if path.is_dir() and any(path.glob("tatoeba.*-eng.*")):
            found = {f"tatoeba {code}": pairs for code, pairs in read_tatoeba(path).items()}
        elif golds := _gold_files(path):
            found = {name: texts for gold in golds for name, texts in _bucc(gold).items()}
        elif is_named and (parts.is_phrasebook or path.is_dir()):
            (retrieval,) = load_retrieval_specs([spec])
            found = {
                f"{retrieval.language}, queries {code}": list(queries.values())
                for code, queries in retrieval.queries.items()
            }
        elif path.is_file() and not parts.languages[1:] and (is_named or file_ending(unpacked_name(path)) == ".txt"):
            faults = FaultLog(can_skip=False, what="text")
            sentences = [text for _, row in text_rows(path, faults) for text in row]
            faults.finalize()
            if not sentences:
                raise ValueError(f"{path} has no sentences; leave it out.")
            places = parse_spec(spec, {}).sample.places(len(sentences), spec)
            found = {Path(unpacked_name(path)).stem: [sentences[place] for place in places]}
        else:
            found = load_data_specs([spec], split="test", skip_bad_lines=skip_bad_lines)
        for name, texts in found.items():
            loaded[unique_name(name, loaded)] = texts
    return loaded


def _gold_files(path: Path) -> list[Path]:
    """Return the gold files of a folder, or the one of a prefix."""
    if path.is_dir():
        return sorted(gold for gold in path.rglob("*-*.gold*") if unpacked_name(gold).endswith(".gold"))
    gold = plain_or_packed(path.with_name(f"{path.name}.gold"))
    return [gold] if gold.is_file() else []


def _bucc(gold: Path) -> dict[str, Texts]:
    prefix = unpacked_name(gold).removesuffix(".gold")
    corpus = read_bucc(gold.with_name(prefix))
    texts: dict[str, Texts] = {
        f"{prefix} {corpus.source_language}": corpus.source,
        f"{prefix} {corpus.target_language}": corpus.target,
    }
    if corpus.gold:
        source, target = dict(zip(corpus.source_ids, corpus.source)), dict(zip(corpus.target_ids, corpus.target))
        texts[f"{prefix} gold"] = ([source[one] for one, _ in corpus.gold], [target[other] for _, other in corpus.gold])
    return texts
