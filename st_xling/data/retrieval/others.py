"""Text without translations, for the language contrastive loss."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from st_xling.data.faults import FaultLog, read_lines
from st_xling.data.pairs import require_rows
from st_xling.data.phrasebook_spec import is_phrasebook, parse_phrasebook
from st_xling.data.retrieval.passages import Passages
from st_xling.data.spec_options import SAMPLE_OPTIONS, Sample, free_name, read_options, split_options
from st_xling.utils.text import file_ending

if TYPE_CHECKING:
    from datasets import Dataset


def read_others(path: str | Path, *, language: str, skip_bad_lines: bool = False) -> Dataset:
    """Texts as a data set with the columns of parallel text, whose source and target are alike.

    Args:
        path: Passages in JSON lines (``.jsonl``, ``.jsonl.gz``), or any other file with a text a line; blank lines are
            left out; either with ``?size=…&seed=…`` for a sample of its texts. Or ``phrasebook?size=…&split=…&seed=…``,
            whose seed is 1 where it names none: other meanings than parallel text, whose seed is 0.
        language: Of the text.
        skip_bad_lines: Leave faulty lines out, with a warning.
    Raises:
        FileNotFoundError, ParallelTextError: As :class:`Passages`; lines that are not UTF-8.
        ValueError: A file without text; an unknown language or option of the phrasebook.
    """
    if is_phrasebook(str(path)):
        texts = _phrases(str(path), language)
        return _dataset(texts, language, str(path))
    place, query = split_options(str(path))
    sample = Sample.pop(read_options(query, SAMPLE_OPTIONS, spec=f"{language}={path}"), str(path))
    if file_ending(place) in (".jsonl", ".jsonl.gz"):
        texts = list(Passages(place, skip_bad_lines=skip_bad_lines))
    else:
        faults = FaultLog(skip_bad_lines=skip_bad_lines, what="text")
        texts = [line for line in read_lines(place, faults) if line is not None and line.strip()]
        faults.settle()
    return _dataset([texts[row] for row in sample.places(len(texts), str(path))], language, str(path))


def read_all_others(
    specs: Iterable[str], *, option: str = "--others", skip_bad_lines: bool = False
) -> dict[str, Dataset]:
    """Each of several ``XX=PATH``, by a name of its own; see :func:`read_others`.

    Raises:
        ValueError: A spec of another form, which is said to be of ``option``; as :func:`read_others`.
    """
    datasets: dict[str, Dataset] = {}
    for spec in specs:
        language, _, path = spec.partition("=")
        if not language or not path:
            raise ValueError(f"{option} takes XX=PATH: got {spec!r}.")
        name = free_name(f"{language}:{Path(path).name}", datasets)
        datasets[name] = read_others(path, language=language, skip_bad_lines=skip_bad_lines)
    return datasets


def _dataset(texts: list[str], language: str, where: str) -> Dataset:
    from datasets import Dataset

    codes = [language] * len(texts)
    columns = {"source": texts, "target": texts, "source_language": codes, "target_language": codes}
    return require_rows(Dataset.from_dict(columns), where)


def _phrases(spec: str, language: str) -> list[str]:
    from st_xling.data.phrasebook import draw_meanings, render
    from st_xling.data.specs import HELD_OUT_PHRASES, PHRASES_PER_LANGUAGE

    book = parse_phrasebook(spec)
    if book.languages:
        raise ValueError(f"expected {language}=phrasebook, one language a spec; got {language}={spec}.")
    sample = book.sample(split="train", train_size=PHRASES_PER_LANGUAGE, held_out_size=HELD_OUT_PHRASES, seed=1)
    return [render(meaning, language).text for meaning in draw_meanings(**sample)]
