"""Publish a file of pairs as a data set on the Hub: Parquet, with a card that shows how the pairs were made."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.locations import find_source
from st_xling.data.sides import check_sides
from st_xling.evaluation.pictures import draw_scores, has_matplotlib
from st_xling.hub.card import code, fenced, plain
from st_xling.hub.push import check_repo_id, upload_folder
from st_xling.mining.text import tsv_cells
from st_xling.utils.file_endings import JSON_LINES_ENDINGS
from st_xling.utils.io import read_json_object, temporary_path
from st_xling.utils.languages import hub_language, language_name
from st_xling.utils.paths import without_folders, without_places
from st_xling.utils.text import is_scored_header, line_text, raw_lines, unpacked_ending

if TYPE_CHECKING:
    from datasets import Dataset

_SAMPLE_ROWS = 10
_PICTURE = "pictures/scores.png"


@dataclass(frozen=True)
class DatasetReport:
    """A data set that was published, or would be.

    Attributes:
        repo_id: Repository on the Hub.
        rows: Number of pairs.
        card: Text of the card.
        url: Address of the commit; ``None`` after a dry run.
    """

    repo_id: str
    rows: int
    card: str
    url: str | None = None


def push_dataset(
    pairs: str | Path,
    repo_id: str,
    *,
    source_language: str,
    target_language: str,
    license: str,
    results: str | Path | Mapping[str, Any] | None = None,
    private: bool | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    out: str | Path | None = None,
) -> DatasetReport:
    """Publish pairs as a data set that ``datasets.load_dataset`` and ``st-xling train --data`` read.

    The columns are ``source``, ``target``, ``source_language`` and ``target_language``; a file of ``st-xling mine``,
    ``score`` or ``align-documents`` also gives ``score``, and one of ``align-documents`` the ``document`` of each pair
    and its ``position`` there. The card has the number of pairs, ten of them drawn at
    random, a histogram of the scores, and the content of ``results``.

    Args:
        pairs: File of pairs, in any format that :func:`~st_xling.data.load_pairs` reads.
        repo_id: ``user/name``; created if it does not exist.
        source_language: Code of the source language, such as ``de``.
        target_language: Code of the target language.
        license: License of the pairs, as the Hub spells it, which checks it. There is no default: it depends on the
            texts.
        results: JSON that the command which made the pairs wrote with ``--json``, or its content: model, threshold,
            filters, signature.
        private: Whether a new repository is private; by default as the account is set up.
        overwrite: Replace a data set that is in the repository.
        dry_run: Only write the card, without asking the Hub.
        out: Folder for a copy of what is published, or would be: card, picture and data. It must not exist, or be
            empty.

    Raises:
        ValueError: For a file without pairs, languages that are swapped, results of another command, an ``out`` with
            files, or a repository that has files and may not be overwritten.
        HubError: If the Hub cannot be reached, refuses a request, or takes too long.
    """
    check_repo_id(repo_id)
    if out is not None and Path(out).exists() and (not Path(out).is_dir() or any(Path(out).iterdir())):
        raise ValueError(f"--out must be a new or empty folder: {out} has files; choose another, or remove it.")
    if results is None:
        command_results: Mapping[str, Any] = {}
    elif isinstance(results, (str, Path)):
        command_results = read_json_object(Path(results))
    else:
        command_results = results
    if results and not (command_results.get("signature") and _mining_results(command_results)):
        raise ValueError(
            f"results must be the JSON that st-xling mine, score or align-documents writes with --json: got {results}."
        )
    languages = (source_language, target_language)
    dataset = find_source(pairs, languages, default_ending=".tsv").read(False)
    check_sides({"-".join(languages): dataset})
    added_columns = _read_added_columns(Path(pairs))
    for name, values in added_columns.items():
        dataset = dataset.add_column(name, values)
    scores = added_columns.get("score")
    with tempfile.TemporaryDirectory(prefix="st-xling-") as temporary:
        folder = Path(temporary)
        (folder / "data").mkdir()
        if scores is not None:
            draw_scores(folder / _PICTURE, scores, _mining_results(command_results).get("threshold"))
        card = _card(dataset, repo_id, languages, license=license, results=command_results)
        if dry_run and out is None:
            return DatasetReport(repo_id, len(dataset), card)
        (folder / "README.md").write_text(card, encoding="utf-8")
        dataset.to_parquet(str(folder / "data" / "train-00000-of-00001.parquet"))
        if out is not None:
            _copy_folder(folder, Path(out))
        if dry_run:
            return DatasetReport(repo_id, len(dataset), card)
        url = upload_folder(
            folder,
            repo_id,
            repo_type="dataset",
            private=private,
            message=f"Push {len(dataset):,} pairs",
            delete_patterns=["data/*", _PICTURE],
            replace=overwrite,
        )
    return DatasetReport(repo_id, len(dataset), card, url)


def _copy_folder(folder: Path, out: Path) -> None:
    """Copy a folder to its place, whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(out)
    shutil.copytree(folder, temporary)
    temporary.replace(out)


def _mining_results(results: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what ``mine``, ``score`` or ``align-documents`` wrote under its name; empty for other commands."""
    for command in ("mine", "score", "align-documents"):
        if command in results:
            return results[command]
    return {}


def _read_added_columns(path: Path) -> dict[str, list[Any]]:
    """Return what a file has besides the texts: the scores of ``mine``, ``score`` or ``align-documents``, and places.

    Returns:
        Values by name: ``score``, and ``document`` and ``position`` where the file has them; none of another file.
    """
    if not path.is_file():
        return {}
    lines = (line_text(raw).decode("utf-8") for raw in raw_lines(path))
    first = next(lines, "")
    names = tsv_cells(first)
    readers: dict[str, Callable[[str], Any]] = {"score": float, "document": str, "position": int}
    columns: dict[str, list[Any]] = {}
    if is_scored_header(names):
        columns = {name: [] for name in readers if name in names}
        for line in lines:
            cells = tsv_cells(line)
            for name, values in columns.items():
                values.append(readers[name](cells[names.index(name)]))
    elif unpacked_ending(path) in JSON_LINES_ENDINGS:
        keys = json.loads(first)
        columns = {name: [] for name in readers if "score" in keys and name in keys}
        for line in chain((first,), lines):
            row = json.loads(line)
            for name, values in columns.items():
                values.append(row[name])
    return columns


def _card(
    dataset: Dataset, repo_id: str, languages: tuple[str, str], *, license: str, results: Mapping[str, Any]
) -> str:
    """Write the card of a data set of pairs, with the metadata that the Hub reads."""
    from huggingface_hub import DatasetCardData

    names = [language_name(code) for code in languages]
    data = DatasetCardData(
        language=list(dict.fromkeys(map(hub_language, languages))),
        license=license,
        task_categories=["translation", "sentence-similarity"],
        pretty_name=f"{names[0]}–{names[1]} sentence pairs",
        tags=["parallel-text", "sentence-transformers", "st-xling"],
    )
    has_scores = "score" in dataset.column_names
    columns = ["score", "source", "target"] if has_scores else ["source", "target"]
    sample = sorted(random.Random(0).sample(range(len(dataset)), min(_SAMPLE_ROWS, len(dataset))))
    table = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for row in dataset.select(sample):
        cells = [_table_cell(row[name]) for name in columns]
        table.append(f"| {' | '.join(cells)} |")
    use = f'from datasets import load_dataset\n\npairs = load_dataset("{repo_id}", split="train")'
    train = (
        f"st-xling train tr --model intfloat/multilingual-e5-small --prompt 'query: ' --data {repo_id} --out my-encoder"
    )
    sections = [
        f"---\n{data.to_yaml()}\n---",
        f"# {names[0]}–{names[1]} sentence pairs",
        f"{len(dataset):,} pairs of sentences in {names[0]} (`source`) and {names[1]} (`target`).",
        *_provenance(results),
    ]
    if has_scores and has_matplotlib():
        sections.append(f"![Histogram of the scores]({_PICTURE})")
    sections.append("## Pairs drawn at random\n\n" + "\n".join(table))
    sections.append(f"## Use\n\n{fenced(use, 'python')}\n\n{fenced(train, 'bash')}")
    return "\n\n".join(sections) + "\n"


def _provenance(results: Mapping[str, Any]) -> list[str]:
    """Return the sections on how the pairs were made."""
    if not results:
        return []
    mining = _mining_results(results)
    signature = without_places(results["signature"])
    fields = dict(field.partition(":")[::2] for field in signature.split("|")[1:])
    rows = [("model", fields.get("model"))]
    threshold = mining.get("threshold", fields.get("threshold", fields.get("min_score")))
    if threshold is not None:
        note = f" ({mining['threshold_note']})" if mining.get("threshold_note") else ""
        rows.append(("threshold", f"{threshold}{note}"))
    rows.append(("filters", fields.get("filters")))
    rows += [(f"rejected by {name}", f"{count:,}") for name, count in (mining.get("rejected") or {}).items()]
    table = "\n".join(f"| {plain(name)} | {code(value)} |" for name, value in rows if value is not None)
    sections = [f"## How they were made\n\n| | |\n| --- | --- |\n{table}"]
    if results.get("command"):
        sections.append(fenced(without_folders(str(results["command"])), "bash"))
    sections.append(f"Signature:\n\n{fenced(signature, 'text')}")
    return sections


def _table_cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else plain(value or "")
