"""Model cards: ``card_template.md`` filled with what a model's folder holds, as the Hub reads it and as people do.

``training/run.json`` and ``results.json`` say what was recorded when it happened, ``card.json`` what the user says.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any, cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData, constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from sentence_transformers.base.model_card import BaseModelCardData
from sentence_transformers.cross_encoder.model_card import CrossEncoderModelCardData
from sentence_transformers.sentence_transformer.model_card import SentenceTransformerModelCardData

from st_xling._version import __version__
from st_xling.data.phrasebook_spec import is_phrasebook
from st_xling.evaluation.results import RESULTS_FILE, Column, KeptFigures, Row, read_kept_figures
from st_xling.hub import markdown
from st_xling.hub.files import published_files
from st_xling.hub.markdown import one_line
from st_xling.hub.model_kind import ModelKind, model_kind
from st_xling.hub.pictures import FOLDER as PICTURES
from st_xling.hub.pictures import draw_pictures
from st_xling.mining.published import PublishedThreshold, published_thresholds
from st_xling.utils.hub_requests import limited_requests
from st_xling.utils.io import check_shape, read_json_object, write_atomic, write_json
from st_xling.utils.languages import UNKNOWN as UNKNOWN_LANGUAGE
from st_xling.utils.languages import canonical_language, is_code, language_name

__all__ = ["CardOptions", "card_text", "check_card", "validate_online", "write_card"]

logger = logging.getLogger(__name__)

CARD, CARD_FILE, RUN_FILE = "README.md", "card.json", "training/run.json"
PHRASEBOOK_LICENCE = "apache-2.0"

_VERSION = 1  # of card.json
_TEMPLATE = Path(__file__).with_name("card_template.md")
_LICENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_.:-]+")
_LABEL = re.compile(r"([A-Za-z][\w-]*)=(?=[^=])")
_LANGUAGES = re.compile(r"(?:\w+:)?([a-z]{2,3})-([a-z]{2,3})(?:-\d+)?|(?:queries|others):([a-z]{2,3})(?:[-:].*)?")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_FILE = re.compile(r".*\.(?:tsv|csv|txt|jsonl?|parquet|arrow)(?:\.\w+)?")
#: Options that name text to train on → its role, which a retriever's data sets have before their names.
_ROLES = {"data": "queries", "parallel": "parallel", "others": "others", "mono": "mono", "xpi_data": "xpi"}

# What a card reads of each file; a file may hold more.
_CHANGES = {...: {"before": float, "after": float}}
_CARD_SHAPE = {
    "said": {"data_licenses": {...: str}, "languages": [str], "authors": [str], ...: str},
    "found": {"base_model": str, "data": {...: {"id": str, "license": str}}},
}
_RUN_SHAPE = {
    **dict.fromkeys(("model", "version", "command"), str),
    "processes": int,
    "tiny": dict,
    "data": {...: {"rows": int, "sha8": str}},
    "sources": [{"option": str, "spec": str, "names": [str]}],
    "recipe": {
        **dict.fromkeys(("name", "summary", "strategy"), str),
        **dict.fromkeys(("retrieval", "model", "training"), dict),
        "losses": {...: dict},
        "xpi": {"name": str},
    },
}
_LEAK_COUNTS = {"rows": int, "leaked": int}
_RESULTS_SHAPE = {
    "training": {
        "steps": int,
        "best_dev": float,
        "machine": {"versions": dict, "accelerators": [str], "memory_gib": float, "processor": str, "system": str},
    },
    "leak": {"sets": {...: {...: _LEAK_COUNTS}}, "train": {...: _LEAK_COUNTS}, "signature": str},
    "slim": {
        **dict.fromkeys(("source", "relation", "signature", "command"), str),
        "langs": [str],
        "report": {
            "size": _CHANGES,
            "parity": {...: {"texts": int, "unknown_share": dict, "retrieval": {...: _CHANGES}}},
        },
    },
}


@dataclass(frozen=True)
class CardOptions:
    """Words and facts that no file of the model holds. ``None`` leaves what an earlier call said.

    Attributes:
        title: Name of the model; otherwise made of what it does.
        repo_id: Where it lies on the Hub, ``owner/name``; usage and commands then name it.
        license: Of the model, as the Hub spells it: ``apache-2.0``, ``cc-by-4.0``, … or ``other``.
        license_name: With ``other``: its name.
        license_link: With ``other``: where to read it.
        data_licenses: Name of a training data set, as the card's table has it → its licence. Added to earlier ones.
        languages: Codes; otherwise those of the training data.
        base_model: Hub id of the model that training started from, where it was a folder.
        purpose: The sentence under the title.
        intended_use: Instead of the generated text; paragraphs separated by blank lines.
        limits: The same, of the limits.
        authors: Who made the model.
        citation: BibTeX of the model itself.

    An empty text, or an empty list, takes back what was said.
    """

    title: str | None = None
    repo_id: str | None = None
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None
    data_licenses: dict[str, str] = field(default_factory=dict)
    languages: tuple[str, ...] | None = None
    base_model: str | None = None
    purpose: str | None = None
    intended_use: str | None = None
    limits: str | None = None
    authors: tuple[str, ...] | None = None
    citation: str | None = None

    def __post_init__(self) -> None:
        for name in ("repo_id", "base_model"):
            try:
                validate_repo_id(getattr(self, name) or "owner/name")
            except HFValidationError as error:
                raise ValueError(f"{name} must be an id on the Hub, such as owner/name: {error}") from error
        for licence in filter(None, [self.license, *self.data_licenses.values()]):
            if not _LICENCE.fullmatch(licence):
                raise ValueError(
                    f"a licence is an identifier such as apache-2.0, cc-by-4.0, other or unknown: got {licence!r}."
                )
        if wrong := [code for code in self.languages or () if not is_code(code)]:
            raise ValueError(f"languages are codes such as de, deu or zh-CN: got {', '.join(map(repr, wrong))}.")

    def over(self, earlier: CardOptions) -> CardOptions:
        """These, and what ``earlier`` says where they are silent."""
        said = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(
            earlier, **{**said, "data_licenses": {**earlier.data_licenses, **self.data_licenses}}
        )

    def as_dict(self) -> dict[str, Any]:
        """What is said, for JSON."""
        said = {name: value for name, value in vars(self).items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


@dataclass(frozen=True)
class DataSource:
    """One training data set.

    Attributes:
        name: As the run's manifest has it.
        rows: So many were trained on; ``None`` where nobody knows.
        sha8: Fingerprint of the text.
        specs: What options of the command said of it; several where they were put together.
        hub_id: Of a data set of the Hub.
        licence: As the user says, as its own card says, that of the phrasebook, or ``"unknown"``.
    """

    name: str
    rows: int | None = None
    sha8: str | None = None
    specs: tuple[str, ...] = ()
    hub_id: str | None = None
    licence: str = "unknown"


@dataclass(frozen=True)
class Evaluation:
    """A saved result, and the words that a card has for it."""

    result: KeptFigures

    @property
    def title(self) -> str:
        return _TASKS[self.result.task][0]

    @property
    def task_type(self) -> str:
        """As the Hub names it."""
        return _TASKS[self.result.task][1]

    @property
    def note(self) -> str:
        return _TASKS[self.result.task][2].replace("{threshold}", self.result.parts.get("threshold", "unknown"))

    @property
    def data_title(self) -> str:
        name = self.result.data_name
        return {"tatoeba": "Tatoeba", "bucc": "BUCC"}.get(name, name)


_TRANSFER = "In %, of a copy of this encoder that was fine-tuned on one language and evaluated in all."
_TASKS = {
    "tatoeba": (
        "Translation retrieval",
        "sentence-similarity",
        "Accuracy in %: how often the nearest sentence is the translation.",
    ),
    "bucc": (
        "Bitext mining",
        "sentence-similarity",
        "Precision, recall and F1 in % of the pairs that score at least the threshold ({threshold}).",
    ),
    "xsim": (
        "Similarity search by margin (xsim)",
        "sentence-similarity",
        "Errors in %: how often the best match by margin is not the translation; lower is better.",
    ),
    "precision": (
        "Translation matching",
        "sentence-similarity",
        "How often the translation is among the N nearest sentences, in %, from the first language to the second (→) "
        "and back (←).",
    ),
    "reranking": (
        "Passage re-ranking",
        "text-ranking",
        "In %; of pairs of languages, the query's comes first and only candidates in the other are ranked. In "
        "brackets: bootstrap interval.",
    ),
    "retrieval": (
        "Passage retrieval",
        "text-retrieval",
        "In %, by language of the queries; of two codes the second is that of the passages.",
    ),
    "transfer-xnli": ("Zero-shot transfer: XNLI", "text-classification", _TRANSFER),
    "transfer-pawsx": ("Zero-shot transfer: PAWS-X", "text-classification", _TRANSFER),
    "transfer-pos": ("Zero-shot transfer: part-of-speech tagging", "token-classification", _TRANSFER),
    "transfer-panx": ("Zero-shot transfer: PAN-X", "token-classification", _TRANSFER),
}
_KINDS = {
    "encoder": "cross-lingual sentence encoder",
    "separate": "cross-lingual retriever with an encoder for queries and one for passages",
    "cross-encoder": "cross-lingual re-ranker (cross-encoder)",
    "classifier": "classifier of sentence pairs",
    "tagger": "tagger of words",
}


@dataclass(frozen=True)
class CardFacts:
    """A model's folder, read.

    Attributes:
        folder: The folder.
        kind: What the model is.
        options: What the user says.
        looked_up: ``base_model`` and ``data`` that are ids on the Hub, see :func:`_look_up`.
        run: ``training/run.json``, or empty.
        results: ``results.json``, or empty.
        evaluations: Saved results.
        thresholds: For mining, by pair of languages.
    """

    folder: Path
    kind: ModelKind
    options: CardOptions
    looked_up: Mapping[str, Any]
    run: Mapping[str, Any]
    results: Mapping[str, Any]
    evaluations: tuple[Evaluation, ...]
    thresholds: Mapping[str, PublishedThreshold]

    @property
    def recipe(self) -> dict[str, Any]:
        return dict(self.run.get("recipe") or {})

    @property
    def slim(self) -> Mapping[str, Any]:
        """What ``st-xling slim`` says of the cut, or empty."""
        return self.results.get("slim") or {}

    @property
    def is_retriever(self) -> bool:
        """Whether queries and passages are embedded each in their own way."""
        return self.kind.kind == "separate" or "retrieval" in self.recipe

    @property
    def compares_sentences(self) -> bool:
        """Whether it is a cross-encoder of pairs of sentences, rather than of query and passage."""
        return self.kind.kind == "cross-encoder" and self.recipe.get("strategy") == "xpi"

    @property
    def kind_words(self) -> str:
        """What the model is, in lower case."""
        if self.compares_sentences:
            return "cross-lingual paraphrase identifier (cross-encoder)"
        if self.is_retriever and self.kind.kind == "encoder":
            return "cross-lingual retriever with one encoder for queries and passages"
        return _KINDS[self.kind.kind]

    @property
    def title(self) -> str:
        """What the user calls the model, the name of its repository, or its kind with languages and recipe."""
        if self.options.title:
            return one_line(self.options.title)
        if self.options.repo_id:
            return self.options.repo_id.rpartition("/")[2]
        kind = self.kind_words.split(" with ")[0].split(" (")[0]
        recipe = f" ({one_line(self.recipe['name'])})" if self.recipe.get("name") else ""
        codes = f", {'-'.join(self.languages)}" if 0 < len(self.languages) <= 6 else ""
        return f"{kind[0].upper()}{kind[1:]}{codes}{recipe}"

    @property
    def base_model(self) -> str | None:
        """Hub id of what training, or the cut of the vocabulary, started from."""
        if self.options.base_model or not self.slim:
            return self.options.base_model or self.looked_up.get("base_model")
        return self.slim["source"] if "/" in self.slim["source"] else None

    @cached_property
    def sources(self) -> list[DataSource]:
        """What the model was trained on; a licence of another name is a source of its own."""
        data, licences, hub = self.run.get("data") or {}, self.options.data_licenses, self.looked_up.get("data") or {}
        sources = []
        for name, facts in data.items():
            specs = _specs_of(name, self.run)
            known = {
                PHRASEBOOK_LICENCE if is_phrasebook(_location(spec)) else hub.get(spec, {}).get("license", "unknown")
                for spec in specs
            }
            licence = licences.get(name) or (known.pop() if len(known) == 1 else "unknown")
            hub_id = hub[specs[0]]["id"] if len(specs) == 1 and specs[0] in hub else None
            sources.append(DataSource(name, facts.get("rows"), facts.get("sha8"), specs, hub_id, licence))
        return sources + [DataSource(name, licence=licence) for name, licence in licences.items() if name not in data]

    @property
    def only_phrasebook(self) -> bool:
        """Whether all training text was made by the grammar."""
        specs = [spec for source in self.sources for spec in source.specs]
        return bool(specs) and all(is_phrasebook(_location(spec)) for spec in specs)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Codes that the user says, or those that names of the training data and labels of its specs say."""
        if self.options.languages:
            return self.options.languages
        if self.slim:
            return tuple(self.slim["langs"])
        names = [source.name for source in self.sources]
        matches = [match for name in names if (match := _LANGUAGES.fullmatch(name))]
        codes = [code for match in matches for code in match.groups() if code]
        for _, spec, _ in _training_sources(self.run):
            label = _LABEL.match(spec)
            codes += [code for code in (label[1].split("-") if label else ()) if re.fullmatch(r"[a-z]{2,3}", code)]
        codes = [code for code in dict.fromkeys(codes) if code != UNKNOWN_LANGUAGE]
        return tuple(sorted(codes, key=lambda code: (code == "en", codes.index(code))))

    @property
    def commands(self) -> list[str]:
        """All that the card shows, as it shows them."""
        results = [evaluation.result.command for evaluation in self.evaluations]
        commands = [self.run.get("command"), self.slim.get("command"), *results]
        return [shown_command(command, self.options.repo_id) for command in commands if command]


def read_facts(folder: str | Path, *, options: CardOptions | None = None) -> CardFacts:
    """Read a model's folder.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: What the user says now, over what ``card.json`` says.
    Raises:
        ValueError: No folder, no model in it, files of ours that are broken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"expected the folder of a model: there is no folder {folder}; give one, such as a copy.")
    kind = model_kind(folder)
    earlier, looked_up = _read_card_file(folder / CARD_FILE)
    run, results = read_json_object(folder / RUN_FILE), read_json_object(folder / RESULTS_FILE)
    check_shape(run, _RUN_SHAPE, folder / RUN_FILE)
    check_shape(results, _RESULTS_SHAPE, folder / RESULTS_FILE)
    return CardFacts(
        folder,
        kind,
        earlier if options is None else options.over(earlier),
        _look_up(run) if looked_up is None else looked_up,
        run,
        results,
        tuple(map(Evaluation, read_kept_figures(folder))),
        published_thresholds(folder),
    )


def write_card(folder: str | Path, *, options: CardOptions | None = None) -> Path:
    """Write the ``README.md`` of a model from what its folder holds; the same folder gives the same bytes.

    Pictures of the results are drawn into ``pictures/``; what ``options`` say is saved in ``card.json``, over what an
    earlier call said. A warning names words of commands that mean nothing on another machine.

    Args:
        folder: As ``st-xling train`` leaves it, or any that sentence-transformers saved.
        options: Words and facts of the user.
    Returns:
        The card.
    Raises:
        ValueError: No model there, files of ours that are broken, a data set of another name.
        OSError: When it cannot be written; the card that was there then stands.
    """
    facts = read_facts(folder, options=options)
    data = facts.run.get("data") or {}
    if wrong := [name for name in facts.options.data_licenses if data and name not in data]:
        raise ValueError(
            f"licences are given to data that were trained on: got {', '.join(wrong)}; there are {', '.join(data)}."
        )
    with _naming_broken_files(facts.folder):
        options_said = {"version": _VERSION, "said": facts.options.as_dict(), "found": dict(facts.looked_up)}
        write_json(facts.folder / CARD_FILE, options_said)
        draw_pictures(facts.folder, [(evaluation.title, evaluation.result) for evaluation in facts.evaluations])
        text = _render(facts)
    path = facts.folder / CARD
    write_atomic(path, text.encode("utf-8"))
    if places := absolute_paths(facts.commands):
        logger.warning("commands of %s name places on this machine: %s", path, ", ".join(places))
    return path


def card_text(folder: str | Path) -> str:
    """The card of a folder as it stands, without writing anything."""
    facts = read_facts(folder)
    with _naming_broken_files(facts.folder):
        return _render(facts)


def check_card(text: str, data: ModelCardData) -> None:
    """Read a card back by the Hub's own reader and compare.

    Raises:
        ValueError: If its metadata do not come back as they went in, or the reader would write another text.
    """
    card = ModelCard(text, ignore_metadata_errors=False)
    if card.data.to_dict() != data.to_dict():
        raise ValueError(f"the card's metadata do not read back as they are: got {card.data.to_dict()}.")
    if str(card) != text:
        raise ValueError("the card would change when the Hub's client saves it.")


def validate_online(path: str | Path) -> None:
    """Ask the Hub's validator, at ``HF_ENDPOINT``, about a card.

    Args:
        path: ``README.md`` of a model.
    Raises:
        ValueError: What the Hub has against it.
        OSError: When the Hub cannot be asked.
    """
    card = ModelCard.load(Path(path), ignore_metadata_errors=False)
    try:
        with limited_requests(total_s=60):
            card.validate()
    except ValueError as error:
        raise ValueError(f"{path}: the Hub says: {str(error).strip()}; mend it with st-xling card.") from error
    except Exception as error:  # the client's own error for a broken connection differs from version to version
        reason = (str(error).splitlines() or [""])[0]
        raise OSError(
            f"{path} was not validated: {constants.ENDPOINT} cannot be asked ({type(error).__name__}: {reason}); check "
            "the network, HF_ENDPOINT and HF_HUB_OFFLINE, or leave --validate out."
        ) from error


def shown_command(command: str, repo_id: str | None = None) -> str:
    """The command to paste: without what is the business of one machine and changes no result.

    These are ``--keep``, ``--json``, ``--cache``, ``--overwrite`` and ``--resume``, and of ``--out`` all but the last
    part of the path.

    Args:
        command: As it was typed.
        repo_id: Stands for the model of ``evaluate`` and ``transfer``, which comes after the task.
    Example:
        >>> shown_command("st-xling evaluate bucc my-encoder --data mining --json f.json --keep", "me/encoder")
        'st-xling evaluate bucc me/encoder --data mining'
    """
    try:
        words = shlex.split(command)
    except ValueError:  # quotes that nobody closed: not a command of ours
        return command
    shown: list[str] = []
    switches = {"--overwrite", "--resume"} | (set() if words[1:2] == ["slim"] else {"--keep"})
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if word == "--":
            shown += [word, *rest]
        elif len(flag) > 2 and ("--json".startswith(flag) or flag == "--cache"):  # argparse takes --js as well
            value = value if equals else next(rest, "")
        elif flag == "--out":
            shown += [flag, PurePath(value if equals else next(rest, "")).name or "model"]
        elif word not in switches:
            shown.append(word)
    if repo_id and shown[1:2] in (["evaluate"], ["transfer"]) and len(shown) > 3 and not shown[3].startswith("-"):
        shown[3] = repo_id
    return shlex.join(shown)


def absolute_paths(commands: Sequence[str]) -> list[str]:
    """Words of commands that name a place on one machine alone."""
    words: list[str] = []
    for command in commands:
        with contextlib.suppress(ValueError):
            words += shlex.split(command)
    parts = {word: word.replace(",", "=").split("=") for word in words}
    return [word for word in parts if any(part.startswith(("/", "~")) for part in parts[word])]


def card_metadata(facts: CardFacts) -> ModelCardData:
    """The YAML at the top: what sentence-transformers says of such a model, and results that leaderboards read."""
    st_data = _st_card_data(facts)
    results = [result for evaluation in facts.evaluations for result in eval_results(evaluation)]
    # In a model index's order: those of one data set together, under the names that the first gives it.
    groups: dict[tuple, list[EvalResult]] = {}
    for result in results:
        groups.setdefault(result.unique_identifier, []).append(result)
    results = [
        dataclasses.replace(result, task_name=group[0].task_name, dataset_name=group[0].dataset_name)
        for group in groups.values()
        for result in group
    ]
    options, base_model = facts.options, facts.base_model
    relation = facts.slim["relation"] if facts.slim else "adapter" if facts.kind.adapters else "finetune"
    said: dict[str, Any] = {
        "language": st_data.language or None,
        "license": st_data.license or None,
        "license_name": one_line(options.license_name) if options.license_name else None,
        "license_link": one_line(options.license_link) if options.license_link else None,
        "library_name": st_data.library_name,
        "pipeline_tag": st_data.pipeline_tag,
        "tags": st_data.tags,
        "base_model": base_model,
        "base_model_relation": str(relation) if base_model else None,
        "datasets": st_data.datasets or None,
        "metrics": list(dict.fromkeys(result.metric_type for result in results)) or None,
    }
    data = ModelCardData(**said, model_name=st_data.model_name if results else None, eval_results=results or None)
    # As dumped: what is said of the model first, its results last.
    data.__dict__ = {key: data.__dict__[key] for key in [*said, *(key for key in data.__dict__ if key not in said)]}
    return data


def eval_results(evaluation: Evaluation) -> list[EvalResult]:
    """Every value of a column that has a metric, with the signature among the metric's arguments.

    There, not among the data set's: a model index keeps those of the first value of a data set alone.
    """
    result = evaluation.result
    split = result.parts.get("split")
    return [
        EvalResult(
            task_type=evaluation.task_type,
            task_name=evaluation.title,
            dataset_type=one_line(result.data_name),
            dataset_name=one_line(f"{evaluation.data_title} ({row.label})"),
            dataset_config=one_line(row.label),
            dataset_split=one_line(split) if split else None,
            metric_type=column.metric,
            metric_name=one_line(column.name),
            metric_value=round(value, 6),
            metric_args={
                "signature": one_line(result.signature),
                **{name: argument for name, argument in row.arguments.items() if argument is not None},
            },
        )
        for row in result.rows or ()
        for column, value in zip(result.columns or (), row.values)
        if column.metric is not None and value is not None
    ]


def flat_recipe(recipe: Mapping[str, Any], stem: str = "") -> Iterator[tuple[str, str]]:
    """Every hyper-parameter: dotted name, as ``--set`` takes it, and value as JSON."""
    for key, value in recipe.items():
        if isinstance(value, Mapping) and value:
            yield from flat_recipe(value, f"{stem}{key}.")
        elif stem or key not in ("name", "summary"):
            yield f"{stem}{key}", json.dumps(value, ensure_ascii=False)


def _render(facts: CardFacts) -> str:
    data = card_metadata(facts)
    folder = facts.folder / PICTURES
    tasks = facts.kind.tasks[:2] if len(facts.kind.tasks) > 1 else facts.languages
    card = ModelCard.from_template(
        data,
        template_path=str(_TEMPLATE),
        facts=facts,
        language_names=_language_names,
        examples=_examples(tasks),
        files=_files(facts.folder),
        pictures={path.name for path in folder.iterdir()} if folder.is_dir() else (),
        costs=_costs(facts),
        versions=_versions(facts),
        st_xling_version=__version__,
        citations=_citations(facts),
        count=lambda number: "" if number is None else f"{number:,}",
        percent=lambda share: "–" if share is None else f"{100 * share:.1f}",
        cell=_cell,
        flat_recipe=flat_recipe,
        shown_command=shown_command,
        without_folders=partial(re.sub, r"(?<![^=,])[/~][^=,?]*/", "…/"),
        **{name: getattr(markdown, name) for name in ("plain", "code", "span", "fenced", "paragraphs")},
    )
    text = str(card).rstrip("\n") + "\n"
    check_card(text, data)
    return text


@contextlib.contextmanager
def _naming_broken_files(folder: Path) -> Iterator[None]:
    """For files whose parts are of the right kind, and do not make up a whole: say that this is where to look."""
    from jinja2 import TemplateError

    try:
        yield
    except (LookupError, TypeError, AttributeError, ArithmeticError, TemplateError) as error:
        raise ValueError(
            f"no card can be made of {folder}: results.json and training/run.json must be as st-xling wrote them "
            f"({type(error).__name__}: {error}); restore them."
        ) from error


def _read_card_file(path: Path) -> tuple[CardOptions, dict[str, Any] | None]:
    """What ``card.json`` says, and what was looked up for the first card; nothing without a file."""
    if not path.is_file():
        return CardOptions(), None
    try:
        content = read_json_object(path)
        check_shape(content, _CARD_SHAPE, path)
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']!r}")
        said = {key: tuple(value) if isinstance(value, list) else value for key, value in content["said"].items()}
        return CardOptions(**cast(dict[str, Any], said)), content.get("found")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must hold what st-xling card wrote (version {_VERSION}): {error}; repair or remove it."
        ) from error


def _training_sources(run: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Role, spec and names of the text that a model was trained on, not of that for evaluation."""
    sources = [(source["option"].lstrip("-").replace("-", "_"), source) for source in run.get("sources") or ()]
    return [(_ROLES[option], source["spec"], source["names"]) for option, source in sources if option in _ROLES]


def _specs_of(name: str, run: Mapping[str, Any]) -> tuple[str, ...]:
    """The specs that a training data set was read from."""
    recipe = run.get("recipe") or {}
    if "strategy" in recipe:  # the stages of a cross-encoder are made of all their specs together
        before = recipe["strategy"] != "xpi" and name == (recipe.get("xpi") or {}).get("name")
        return tuple(spec for role, spec, _ in _training_sources(run) if (role == "xpi") == before)
    specs = []
    for role, spec, names in _training_sources(run):
        # Without names, several data sets of the role came from several specs, and are not told apart.
        unnamed = not names and (":" not in name or name.startswith(f"{role}:"))
        if unnamed or name in [*names, *(f"{role}:{part}" for part in names)]:
            specs.append(spec)
    return tuple(specs)


def _location(spec: str) -> str:
    """What a spec reads, without the label before ``=``."""
    return _LABEL.sub("", spec, count=1) if _LABEL.match(spec) else spec


def _look_up(run: Mapping[str, Any]) -> dict[str, Any]:
    """Which names of a run are ids of the Hub: whether ``a/b`` is one or a folder can be seen only where it was made.

    Returns:
        ``base_model``: where training started, or ``None``; ``data``: spec → its ``id``, and ``license`` where a cached
        card says it.
    """
    start = run.get("model")
    is_id = isinstance(start, str) and start not in ("tiny", "a loaded model") and _MODEL_ID.fullmatch(start)
    data = {}
    for _, spec, _ in _training_sources(run):
        location = _location(spec).partition("?")[0]
        path = Path(location).expanduser()
        files = path.exists() or _FILE.fullmatch(location) or any(path.parent.glob(f"{path.name}.*"))
        if _HUB_ID.fullmatch(location) and not files:
            licence = _cached_licence(location)
            data[spec] = {"id": location, **({"license": licence} if licence else {})}
    return {"base_model": start if is_id and not Path(str(start)).exists() else None, "data": data}


def _cached_licence(hub_id: str) -> str | None:
    """What the data set's own card says, if reading the data set has brought it here."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.repocard import metadata_load

    path = try_to_load_from_cache(hub_id, CARD, repo_type="dataset")
    if not isinstance(path, str):
        return None
    with contextlib.suppress(Exception):  # the card of a data set is not ours to check
        said = (metadata_load(path) or {}).get("license")
        licence = said[0] if isinstance(said, list) and len(said) == 1 else said
        return licence if isinstance(licence, str) and _LICENCE.fullmatch(licence) else None
    return None


def _st_card_data(facts: CardFacts) -> BaseModelCardData:
    """What sentence-transformers would say of such a model: library, task, tags, losses with their citations."""
    kind = SentenceTransformerModelCardData if facts.kind.is_encoder else CrossEncoderModelCardData
    data = kind(
        language=list(facts.languages),
        license=facts.options.license,
        model_name=facts.title,
        model_id=facts.options.repo_id,
        local_files_only=True,
        generate_widget_examples=False,
    )
    if facts.kind.kind == "classifier":
        data.tags, data.pipeline_tag = ["sentence-transformers"], "text-classification"
    elif facts.kind.kind == "tagger":
        data.tags, data.pipeline_tag, data.library_name = [], "token-classification", "transformers"
    elif facts.kind.kind == "cross-encoder":
        data.pipeline_tag = "text-ranking"
    data.base_model = facts.base_model
    data.datasets = list(dict.fromkeys(source.hub_id for source in facts.sources if source.hub_id))
    tags = ["st-xling", "cross-lingual"]
    if name := facts.recipe.get("name"):
        tags.append(f"recipe:{_NOT_IN_TAGS.sub('-', one_line(name)).strip('-')}")
    if rows := [source.rows for source in facts.sources if source.rows]:
        tags.append(f"dataset_size:{sum(rows)}")
    data.add_tags(tags)
    data.set_losses(_losses(facts.recipe))
    return data


def _losses(recipe: Mapping[str, Any]) -> list[Any]:
    """A module of each class of loss that a recipe names; unbuilt: they have class and citation, and no more."""
    from sentence_transformers.cross_encoder import losses as st_losses

    from st_xling import losses

    names = [name for name, options in (recipe.get("losses") or {}).items() if (options or {}).get("weight") != 0]
    names += ["siamese_contrastive"] if "adapter" in recipe else []
    module: Any = losses
    if "strategy" in recipe:  # a cross-encoder, by losses of sentence-transformers
        module = st_losses
        names = [(stage.get("loss") or {}).get("name") or "" for stage in (recipe.get("xpi"), recipe) if stage]
    classes = {name.lower(): getattr(module, name) for name in dir(module) if name.endswith("Loss")}
    full = dict.fromkeys(("tlm", "mlm"), "translation_language_modeling")
    keys = dict.fromkeys(f"{full.get(name, name).replace('_', '')}loss" for name in names)
    return [classes[key].__new__(classes[key]) for key in keys if key in classes]


_XPR_CITATION = """
@article{chen2020crosslingual,
    title = {Cross-Lingual Passage Re-Ranking With Alignment Augmented Multilingual BERT},
    author = {Chen, Dongmei and Zhang, Sheng and Zhang, Xin and Yang, Kaijing},
    journal = {IEEE Access},
    year = {2020},
    doi = {10.1109/ACCESS.2020.3041605},
}
"""


def _citations(facts: CardFacts) -> dict[str, str]:
    """Title → BibTeX of the model, of its losses as sentence-transformers gathers them, and of its recipe."""
    own = {facts.title: facts.options.citation} if facts.options.citation else {}
    recipe = {"XPI and XPR": _XPR_CITATION} if "strategy" in facts.recipe else {}
    return {**own, **_st_card_data(facts).citations, **recipe}


def _files(folder: Path) -> dict[str, str]:
    """The files that are published; without sizes, since the card is one of them."""
    try:
        return {CARD: "this card", **{file.path: file.what for file in published_files(folder)}}
    except ValueError as error:
        logger.info("the card has no table of files: %s", error)
        return {}


def _versions(facts: CardFacts) -> list[str]:
    machine = (facts.results.get("training") or {}).get("machine") or {}
    versions = machine.get("versions") or {"sentence-transformers": facts.kind.library_version}
    versions = {"st-xling": facts.run.get("version"), **versions}
    return [f"{name} {version}" for name, version in versions.items() if version]


def _costs(facts: CardFacts) -> list[tuple[str, str]]:
    """What the training took, and on which machine."""
    training = facts.results.get("training") or {}
    machine, rows = training.get("machine") or {}, []
    seconds = training.get("seconds")
    if isinstance(seconds, (int, float)):
        rows.append(("time", _duration(seconds)))
    elif isinstance(seconds, Mapping):
        rows += [(f"time of {name}", _duration(value)) for name, value in seconds.items()]
    if training.get("steps"):
        rows.append(("steps", f"{training['steps']:,}"))
    if (best := training.get("best_dev")) is not None:
        rows.append(("best development score", f"{100 * best:.1f} %"))
    if machine.get("accelerators"):
        rows.append(("accelerators", ", ".join(machine["accelerators"])))
    if machine.get("processor"):
        cores = f" ({machine['cores']} cores, {machine.get('threads', '?')} threads used)" if "cores" in machine else ""
        rows.append(("processor", f"{machine['processor']}{cores}"))
    if machine.get("memory_gib"):
        rows.append(("memory", f"{machine['memory_gib']:g} GiB"))
    if machine.get("system"):
        rows.append(("system", machine["system"]))
    return rows


def _duration(seconds: float) -> str:
    """``51 s``, ``12 min``, ``3.4 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _cell(row: Row, place: int, column: Column) -> str:
    """A value of the table of results, with its interval."""
    value = row.values[place]
    if value is None:
        return "–"
    if not column.percent:
        return f"{value:,.0f}" if float(value).is_integer() and abs(value) >= 1 else f"{value:.4f}"
    interval = " ({:.1f}–{:.1f})".format(*(100 * end for end in row.intervals[place])) if row.intervals else ""
    return f"{100 * value:.1f}{interval}"


# "The book is old.", its question, and "It is raining."
_EXAMPLES = {
    "deu": ("Das Buch ist alt.", "Wie alt ist das Buch?", "Es regnet."),
    "fra": ("Le livre est vieux.", "De quand date le livre ?", "Il pleut."),
    "spa": ("El libro es viejo.", "¿De cuándo es el libro?", "Está lloviendo."),
    "rus": ("Книга старая.", "Сколько лет книге?", "Идёт дождь."),
    "vie": ("Quyển sách này cũ.", "Quyển sách này bao nhiêu tuổi?", "Trời đang mưa."),
    "cmn": ("这本书很旧。", "这本书有多旧？", "正在下雨。"),
    "eng": ("The book is old.", "How old is the book?", "It is raining."),
}


def _examples(languages: Sequence[str]) -> list[dict[str, str]]:
    """Texts in a language of the model, and in another one of it, if it can be English: in English where nothing
    better is known."""
    codes = [code for code in map(canonical_language, languages) if code in _EXAMPLES]
    first = codes[0] if codes else "eng"
    others = [code for code in codes if code != first]
    second = "eng" if "eng" in others or not others else others[0]
    return [dict(zip(("text", "question", "other"), _EXAMPLES[code])) for code in (first, second)]


def _language_names(codes: Sequence[str]) -> str:
    """``German, French and English``; empty without codes."""
    names = [language_name(code) for code in codes]
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1] if names else ""
