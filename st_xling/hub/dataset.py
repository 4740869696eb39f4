"""Publish a file of pairs as a data set on the Hub: Parquet, with a card that shows how the pairs were made."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_xling.data.read import load_pairs
from st_xling.evaluation.pictures import draw_scores
from st_xling.hub.card_facts import check_license
from st_xling.hub.markdown import code, fenced, plain
from st_xling.hub.push import check_repo_id, upload_folder
from st_xling.mining.text import json_object, tsv_cells
from st_xling.utils.io import read_json_object
from st_xling.utils.languages import hub_language, language_name
from st_xling.utils.paths import without_places
from st_xling.utils.text import SCORED_COLUMNS, describe_missing, is_scored_header, line_text, raw_lines

if TYPE_CHECKING:
    from datasets import Dataset

_SHOWN = 10
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
) -> DatasetReport:
    """Publish pairs as a data set that ``datasets.load_dataset`` and ``st-xling train --data`` read.

    The columns are ``source``, ``target``, ``source_language`` and ``target_language``; a file of ``st-xling mine``,
    ``score`` or ``align-documents`` also gives ``score``, ``source_id`` and ``target_id``. The card has the number of
    pairs, ten of them drawn at random, a histogram of the scores, and the content of ``results``.

    Args:
        pairs: File of pairs, in any format that :func:`~st_xling.data.load_pairs` reads.
        repo_id: ``user/name``; created if it does not exist.
        source_language: Code of the source language, such as ``de``.
        target_language: Code of the target language.
        license: License of the pairs, as the Hub spells it. It depends on the texts, so there is no default.
        results: JSON that the command which made the pairs wrote with ``--json``, or its content: model, threshold,
            filters, signature.
        private: Whether a new repository is private; by default as the account is set up.
        overwrite: Replace a data set that is in the repository.
        dry_run: Only write the card, without asking the Hub.
    Raises:
        ValueError: For a file without pairs, an unknown license, results of another command, or a repository that has
            files and may not be overwritten.
        HubError: If the Hub cannot be reached, refuses a request, or the time limit is reached.
    """
    check_repo_id(repo_id)
    check_license(license)
    made_by = _read_results(Path(results)) if isinstance(results, (str, Path)) else results or {}
    languages = (source_language, target_language)
    with tempfile.TemporaryDirectory(prefix="st-xling-") as place:
        dataset = _dataset(Path(pairs), languages, cache=f"{place}/cache")
        folder = Path(place) / "dataset"
        (folder / "data").mkdir(parents=True)
        if "score" in dataset.column_names:
            draw_scores(folder / _PICTURE, dataset["score"][:], _facts(made_by).get("threshold"))
        card = _card(dataset, repo_id, languages, license=license, made_by=made_by)
        if dry_run:
            return DatasetReport(repo_id, len(dataset), card)
        (folder / "README.md").write_text(card, encoding="utf-8")
        dataset.to_parquet(str(folder / "data" / "train-00000-of-00001.parquet"))
        url = upload_folder(
            folder,
            repo_id,
            repo_type="dataset",
            private=private,
            message=f"Push {len(dataset):,} pairs",
            delete_patterns=["data/*", "pictures/*"],
            replace=overwrite,
        )
    return DatasetReport(repo_id, len(dataset), card, url)


def _read_results(path: Path) -> dict[str, Any]:
    """Read what ``--json`` of ``mine``, ``score`` or ``align-documents`` wrote; ``ValueError`` for other content."""
    if not path.is_file():
        raise ValueError(f"results: {describe_missing(path)}")
    content = read_json_object(path)
    if not (content.get("signature") and _facts(content)):
        raise ValueError(
            f"{path} is not the JSON that st-xling mine, score or align-documents writes with --json; give that file, "
            "or leave the option out."
        )
    return content


def _facts(results: Mapping[str, Any]) -> Any:
    return next((results[name] for name in ("mine", "score", "align-documents") if name in results), {})


def _dataset(path: Path, languages: tuple[str, str], *, cache: str) -> Dataset:
    """Read the pairs into a memory-mapped data set."""
    from datasets import Dataset, Features, Value
    from datasets.exceptions import DatasetGenerationError

    codes = dict(zip(("source_language", "target_language"), languages))
    if _is_scored(path):
        features = {name: Value("float64" if name == "score" else "string") for name in (*SCORED_COLUMNS, *codes)}
        kwargs = {"path": path, "codes": codes}
        try:
            dataset = Dataset.from_generator(
                _scored_rows, gen_kwargs=kwargs, features=Features(features), cache_dir=cache
            )
        except DatasetGenerationError as error:
            raise error.__cause__ or error from None
    else:
        dataset = load_pairs(path, source_language=languages[0], target_language=languages[1])
    if not len(dataset):
        raise ValueError(f"expected at least one pair, got none in {path}.")
    return dataset


def _is_scored(path: Path) -> bool:
    """Return whether a file begins like one that ``mine``, ``score`` or ``align-documents`` wrote."""
    if not path.is_file():
        raise ValueError(describe_missing(path))
    first = line_text(next(iter(raw_lines(path)), b"")).decode("utf-8", "replace")
    try:
        return {"score", "source_ids", "source", "target"} <= json_object(first).keys()
    except ValueError:
        return is_scored_header(tsv_cells(first))


def _scored_rows(path: Path, codes: dict[str, str]) -> Iterator[dict[str, Any]]:
    for number, raw in enumerate(raw_lines(path), 1):
        line = line_text(raw).decode("utf-8")
        values: list[Any]
        try:
            if line.startswith("{"):
                row = json.loads(line)
                ids = (",".join(row[name]) for name in ("source_ids", "target_ids"))
                values = [row["score"], *ids, row["source"], row["target"]]
            elif number > 1:
                score, *others = tsv_cells(line)[: len(SCORED_COLUMNS)]
                values = [float(score), *others]
            else:
                continue
            yield {**dict(zip(SCORED_COLUMNS, values, strict=True)), **codes}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a line of scored pairs ({error}); write the file again.") from None


def _card(
    dataset: Dataset, repo_id: str, languages: tuple[str, str], *, license: str, made_by: Mapping[str, Any]
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
        configs=[{"config_name": "default", "data_files": [{"split": "train", "path": "data/*.parquet"}]}],
    )
    drawn = sorted(random.Random(0).sample(range(len(dataset)), min(_SHOWN, len(dataset))))
    rows = dataset.select(drawn)
    has_scores = "score" in dataset.column_names
    columns = [*(["score"] if has_scores else []), "source", "target"]
    table = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    table += [f"| {' | '.join(_cell(row[name]) for name in columns)} |" for row in rows]
    use = f'from datasets import load_dataset\n\npairs = load_dataset("{repo_id}", split="train")'
    train = f"st-xling train tr --model intfloat/multilingual-e5-small --data {repo_id} --out my-encoder"
    parts = [
        f"---\n{data.to_yaml()}\n---",
        f"# {names[0]}–{names[1]} sentence pairs",
        f"{len(dataset):,} pairs of sentences in {names[0]} (`source`) and {names[1]} (`target`).",
        *_provenance(made_by),
        *([f"![Histogram of the scores]({_PICTURE})"] if has_scores else []),
        "## Pairs drawn at random\n\n" + "\n".join(table),
        f"## Use\n\n{fenced(use, 'python')}\n\n{fenced(train, 'bash')}",
    ]
    return "\n\n".join(parts) + "\n"


def _provenance(results: Mapping[str, Any]) -> list[str]:
    """Sections on how the pairs were made."""
    if not results:
        return []
    facts, signature = _facts(results), without_places(results["signature"])
    fields = dict(part.partition(":")[::2] for part in signature.split("|")[1:])
    rows = [("model", fields.get("model"))]
    if (threshold := facts.get("threshold", fields.get("threshold", fields.get("min_score")))) is not None:
        note = f" ({facts['threshold_note']})" if facts.get("threshold_note") else ""
        rows.append(("threshold", f"{threshold}{note}"))
    rows += [("filters", fields.get("filters"))]
    rows += [(f"rejected by {name}", f"{count:,}") for name, count in (facts.get("rejected") or {}).items()]
    table = "\n".join(f"| {plain(name)} | {code(value)} |" for name, value in rows if value is not None)
    parts = [f"## How they were made\n\n| | |\n| --- | --- |\n{table}"]
    if results.get("command"):
        parts.append(fenced(str(results["command"]), "bash"))
    return [*parts, f"Signature:\n\n{fenced(signature, 'text')}"]


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else plain(value or "")
