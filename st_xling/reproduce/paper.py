"""A paper's tables as files describe them (``papers/*.yaml``): rows, columns, and the commands that they take.

==============  ======================================================================================================
``settings``    scale → name → text or list, which commands name in braces; they may name one another; under ``with``
                model → settings that stand where the tables start from it
``bases``       name → a command that trains; once, with seed 0, for all rows
``models``      the same, once for each seed
``evaluations`` name → a command that writes ``--json``; ``{row}`` is the row's model; ``python …`` is another program
``tables``      name → ``title``; ``rows``: label → a model, or ``{model: …, any: value}`` with values for the commands,
                or ``{run: …, evaluation: …}`` without a model of ours; ``columns``: label → ``{evaluation, value}``,
                the value a path in the JSON, or several, whose mean is taken, as it is over a list of the scale that
                only the path names; ``factor`` (100), ``decimals`` (1);
                ``paper``: row → column → the paper's own value; ``compare``: pairs of rows; ``picture``; ``note``;
                ``examples``: true where lists of ``evaluate reranking --examples`` are to stand below
==============  ======================================================================================================

A name in braces that is a list of the scale makes, in a label, one row or column of each element. A name of a model is
its folder, so that what a command needs is trained first. ``common.yaml`` holds the bases that all papers share, and
the settings ``bf16``, ``dtype`` and ``autocast``, options by which commands compute in bfloat16 where a scale does.
Commands run in the output folder; ``{data}`` is the folder of data.
"""

from __future__ import annotations

import fnmatch
import hashlib
import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from st_xling.utils.checks import check_choice
from st_xling.utils.devices import cpu_has_bfloat16

logger = logging.getLogger(__name__)

_FOLDER = resources.files("st_xling.reproduce") / "papers"
_COMMON = "common"
_NAME = re.compile(r"\{([\w-]+)\}")

SCALES = ("tiny", "small", "paper")
PRECISIONS = ("bf16", "fp32")

_FLOAT32 = {"bf16": "", "dtype": "--dtype float32", "autocast": ""}
"""Settings of a scale that computes in bfloat16, for float32."""


def paper_names() -> list[str]:
    """The papers whose tables are described."""
    names = sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir() if entry.name.endswith(".yaml"))
    return [name for name in names if name != _COMMON]


@dataclass(frozen=True)
class Step:
    """One command: a model that is trained, or an evaluation.

    Attributes:
        name: What a reader calls it, such as ``dap, seed 1``.
        words: Of the command, with ``{data}`` for the folder of data, and folders of other steps relative to the
            output folder.
        needs: Steps whose models it reads.
        seed: Of training; ``None`` for what has none.
    """

    name: str
    words: tuple[str, ...]
    needs: tuple[Step, ...] = ()
    seed: int | None = None

    @property
    def id(self) -> str:
        """Of its files: another command, or other models below it, make another step."""
        digest = hashlib.sha256(repr((self.words, self.seed)).encode()).hexdigest()[:8]
        return f"{re.sub(r'[^A-Za-z0-9]+', '-', self.name).strip('-')}-{digest}"

    @property
    def trains(self) -> bool:
        """Whether what comes out is a model; else it is the file of ``--json``."""
        return self.words[0] in ("train", "slim")

    @property
    def fine_tunes(self) -> bool:
        """Whether it trains a model only to evaluate it."""
        return self.words[0] == "transfer"

    @property
    def is_python(self) -> bool:
        """Whether it is another program than ``st-xling``."""
        return self.words[0] == "python"

    @property
    def folder(self) -> str:
        """Of the model, in the output folder."""
        return f"models/{self.id}"

    def command(self) -> list[str]:
        """All words, with those that say where results go."""
        words = list(self.words)
        if self.trains or self.fine_tunes:
            words += ["--seed", str(self.seed or 0), "--out", self.folder]
        return words if self.trains else [*words, "--json", f"results/{self.id}.json"]

    def closure(self) -> Iterator[Step]:
        """The step and all below it, those first that others need."""
        for need in self.needs:
            yield from need.closure()
        yield self


@dataclass(frozen=True)
class Cell:
    """What stands in a row and column: for each seed the step, and where in its JSON the value is."""

    steps: tuple[Step, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper.

    Attributes:
        cells: Row → column → cell.
        paper: The paper's own values: row → column → value.
        compare: Pairs of rows whose difference is tested.
        picture: ``bars``, ``lines``, ``gain``, or ``""``.
        examples: Whether the lists of ``evaluate reranking --examples`` stand below, of the first column and seed.
        copy: A model's step and a picture in its folder, which is the whole table; or ``None``.
    """

    name: str
    title: str
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    factor: float = 100.0
    decimals: int = 1
    paper: dict[str, dict[str, float]] = field(default_factory=dict)
    compare: tuple[tuple[str, str], ...] = ()
    picture: str = ""
    note: str = ""
    examples: bool = False
    copy: tuple[tuple[Step, ...], str] | None = None

    def steps(self) -> list[Step]:
        """All that it takes, in an order in which it can be run."""
        # One seed after the other: what is stopped half-way has whole tables of the first.
        by_cell = [cell.steps for row in self.cells.values() for cell in row.values()]
        last = [step for one_seed in zip(*by_cell) for step in one_seed]
        last += self.copy[0] if self.copy else ()
        return list({step.id: step for end in last for step in end.closure()}.values())


@dataclass(frozen=True)
class Paper:
    """Tables of a paper at one scale; see :func:`load_paper`.

    Attributes:
        source: Name or file, as it was given.
        model: What they start from: a base of ours, a Hub id or a folder.
        float32: Whether they are computed in float32 where the scale would take bfloat16.
        tables: Those to be made.
        all_tables: All of the paper.
    """

    name: str
    source: str
    title: str
    scale: str
    model: str
    float32: bool
    seeds: tuple[int, ...]
    tables: dict[str, Table]
    all_tables: dict[str, Table]

    @property
    def file_name(self) -> str:
        """Of its files, without their endings."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", self.model_name)
        if self.model_name != self.model:  # two folders of one name are two models
            name += f"-{hashlib.sha256(self.model.encode()).hexdigest()[:4]}"
        name += "-fp32" if self.float32 else ""
        return "-".join([self.name, self.scale, name, "seeds" if self.seeds[1:] else "seed", *map(str, self.seeds)])

    @property
    def model_name(self) -> str:
        """Without the place of a folder on this machine."""
        return Path(self.model).name if Path(self.model).is_absolute() else self.model

    def steps(self) -> list[Step]:
        """All that the tables take, each once, in an order in which it can be run."""
        return list({step.id: step for table in self.tables.values() for step in table.steps()}.values())

    def shown(self, step: Step) -> str:
        """The step's command as a user types it in the output folder, without places on this machine."""
        words = [word.replace(self.model, self.model_name).replace("{data}", "DATA") for word in step.command()]
        return shlex.join(words if step.is_python else ["st-xling", *words])


def load_paper(
    name: str,
    tables: Sequence[str] = (),
    *,
    scale: str = "tiny",
    model: str | None = None,
    precision: str | None = None,
    seeds: Sequence[int] = (0,),
    rows: Sequence[str] = (),
) -> Paper:
    """Read what a paper's tables take.

    Args:
        name: One of :func:`paper_names`, or the path of such a file of one's own, ``.yaml``.
        tables: Names of tables; all without any.
        scale: ``tiny``: the phrasebook, seconds a step; ``small``: real text on two cores, minutes a step; ``paper``:
            the paper's own setting.
        model: In place of the scale's own: a Hub id, a folder, or the name of a base.
        precision: ``"bf16"``: as the scale has it, which may be float32; ``"fp32"``; ``None``: ``"fp32"`` on a machine
            without instructions for bfloat16, where it takes several times as long.
        seeds: One run each.
        rows: Labels of rows, perhaps with ``*``; all without any.

    Raises:
        ValueError: No such paper, table, scale or row (the message names those that are there), or a file in which
            something is missing.
    """
    check_choice("scale", scale, SCALES)
    if Path(name).suffix not in (".yaml", ".yml"):
        check_choice("paper", name, paper_names())
    content, common = _read(name), _read(_COMMON)
    check_choice("scale of this paper", scale, list(content["settings"]))
    for table in tables:
        check_choice("table", table, list(content["tables"]))
    settings = {**common["settings"][scale], **content["settings"][scale]}
    bases = {**common.get("bases", {}), **content.get("bases", {})}
    if model in bases:
        settings["model"] = f"{{{model}}}"
    elif model is not None:
        folder = Path(model)
        if not folder.is_dir() and (folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1):
            raise ValueError(
                f"--model must be a folder, a Hub id or one of {', '.join(bases)}: there is no folder {model}."
            )
        settings["model"] = str(folder.resolve()) if folder.is_dir() else model
    if precision is not None:
        check_choice("precision", precision, PRECISIONS)
    if "model" not in settings:
        raise ValueError(f"{name} has no setting model at scale {scale}; name it there, or by --model.")
    settings |= settings.pop("with", {}).get(settings["model"].strip("{}"), {})
    commands = (bases, content.get("models", {}), content.get("evaluations", {}), tuple(seeds))
    try:
        whole = _tables(content["tables"], _Reader(settings, *commands))
        float32 = False
        if (precision or _fastest()) == "fp32":
            single = _tables(content["tables"], _Reader({**settings, **_FLOAT32}, *commands))
            whole, float32 = single, single != whole
        if float32 and precision is None:
            logger.info("in float32: this processor has no instructions for bfloat16 (--precision bf16 all the same)")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{name} describes its tables wrongly: {type(error).__name__}: {error}") from error
    for table in tables:
        check_choice(f"table at scale {scale}", table, list(whole))
    found = {key: table for key, table in whole.items() if key in tables or not tables}
    if rows:
        labels = [label for table in found.values() for label in table.cells]
        for row in rows:
            if not fnmatch.filter(labels, row):
                check_choice("row", row, list(dict.fromkeys(labels)))
        found = {key: _only(table, rows) for key, table in found.items()}
        # A picture that a training makes has no rows; it is made where it was asked for by name.
        found = {key: table for key, table in found.items() if table.cells or (table.copy and key in tables)}
    start = settings["model"].strip("{}")
    return Paper(Path(name).stem, name, content["paper"], scale, start, float32, tuple(seeds), found, whole)


def _tables(entries: Mapping[str, Any], reader: _Reader) -> dict[str, Table]:
    tables = {key: reader.table(key, entry) for key, entry in entries.items()}
    return {key: table for key, table in tables.items() if table.cells or table.copy}


def _fastest() -> str:
    import torch

    return "fp32" if cpu_has_bfloat16() is False and not torch.accelerator.is_available() else "bf16"


def _only(table: Table, rows: Sequence[str]) -> Table:
    chosen = {label for row in rows for label in fnmatch.filter(table.cells, row)}
    cells = {label: row for label, row in table.cells.items() if label in chosen}
    return replace(table, cells=cells, compare=tuple(pair for pair in table.compare if chosen.issuperset(pair)))


def _read(name: str) -> Any:
    own = Path(name)
    if own.suffix not in (".yaml", ".yml"):
        return yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    try:
        content = yaml.safe_load(own.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"cannot read the tables of {name}: {error}") from error
    missing = {"paper", "settings", "tables"} - (content.keys() if isinstance(content, dict) else set())
    if missing:
        raise ValueError(f"{name} describes no tables: {', '.join(sorted(missing))} is missing.")
    return content


@cache
def _split(command: str) -> tuple[str, ...]:
    return tuple(shlex.split(command))  # nearly all the time that reading takes; rows and columns share commands


class _Reader:
    """Fills in one scale's settings."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        bases: Mapping[str, str],
        models: Mapping[str, str],
        evaluations: Mapping[str, str],
        seeds: tuple[int, ...],
    ) -> None:
        self.settings, self.bases, self.models, self.evaluations = settings, bases, models, evaluations
        self.seeds = seeds

    def table(self, name: str, entry: Mapping[str, Any]) -> Table:
        title = self._fill(entry["title"], {}, 0)[0]
        note = " ".join(self._fill(entry.get("note", ""), {}, 0)[0].split())
        if "copy" in entry:
            steps = tuple(self._model(entry["copy"]["model"], {}, seed) for seed in self.seeds[:1])
            return Table(name, title, copy=(steps, entry["copy"]["file"]), note=note)
        cells: dict[str, dict[str, Cell]] = {}
        for row, row_values, row_entry in self._expanded(entry["rows"]):
            row_entry = {"model": row_entry} if isinstance(row_entry, str) else row_entry
            own = {
                key: self._fill(str(value), row_values, 0)[0]
                for key, value in row_entry.items()
                if key not in ("model", "run", "evaluation")
            }
            for column, column_values, column_entry in self._expanded(entry["columns"]):
                if isinstance(column_entry, str):
                    column_entry = {"evaluation": column_entry, "value": column}
                values = {**column_values, **row_values, **own}
                values |= {key: each for key, each in column_entry.items() if key not in ("evaluation", "value")}
                cells.setdefault(row, {})[column] = self._cell(row, row_entry, column_entry, values)
        lost = {label for pair in entry.get("compare", ()) for label in pair if "{" not in label} - cells.keys()
        if lost and cells:
            raise ValueError(f"table {name} compares rows that it has not: {', '.join(sorted(lost))}")
        compare = [[self._fill(label, {}, 0)[0] for label in pair] for pair in entry.get("compare", ())]
        return Table(
            name,
            title,
            cells,
            entry.get("factor", 100.0),
            entry.get("decimals", 1),
            entry.get("paper", {}),
            tuple((first, second) for first, second in compare if {first, second} <= cells.keys()),
            entry.get("picture", ""),
            note,
            entry.get("examples", False),
        )

    def _cell(self, label: str, row: Mapping[str, Any], column: Mapping[str, Any], values: Mapping[str, Any]) -> Cell:
        name = row.get("evaluation", column["evaluation"])
        paths = column["value"] if isinstance(column["value"], list) else [column["value"]]
        steps = []
        for seed in self.seeds:
            model, needs = (row["run"], ()) if "run" in row else self._fill(f"{{{row['model']}}}", values, seed)
            check_choice(f"evaluation of {label!r}", name, self.evaluations)
            words, more = self._fill(self.evaluations[name], {**values, "row": model}, seed)
            own_seed = seed if words.startswith("transfer") else None
            # Of what is shared by all seeds the command is the same, and so is the step.
            of = row.get("model", label)
            called = f"{name} of {values.get(of, of)}{self._shown(values, self.evaluations[name] + self._all(row))}"
            if own_seed is not None or any(need.seed is not None for need in needs):
                called += f", seed {seed}"
            steps.append(Step(called, _split(words), (*needs, *more), own_seed))
        # A list that the label does not name: the mean over its elements.
        known = {_NAME.sub(lambda name: str(values.get(name[1], name[0])), path): None for path in paths}
        return Cell(tuple(steps), tuple(path for path, _, _ in self._expanded(known)))

    def _all(self, row: Mapping[str, Any]) -> str:
        return self.models.get(row.get("model", ""), "")

    def _model(self, name: str, values: Mapping[str, Any], seed: int) -> Step:
        """The step that trains a model."""
        is_base = name in self.bases
        words, needs = self._fill((self.bases if is_base else self.models)[name], values, 0 if is_base else seed)
        called = f"{name}{self._shown(values, self.models.get(name, ''))}" + ("" if is_base else f", seed {seed}")
        return Step(called, _split(words), needs, None if is_base else seed)

    def _fill(self, text: str, values: Mapping[str, Any], seed: int) -> tuple[str, tuple[Step, ...]]:
        """The text without names in braces, and the steps whose folders it names; ``{data}`` stays."""
        needs: dict[str, Step] = {}

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name == "data":
                return match[0]
            if name in values:
                return str(values[name])
            if name in self.settings:
                setting = self.settings[name]
                whole = " ".join(map(str, setting)) if isinstance(setting, list) else str(setting)
                filled, more = self._fill(whole, values, seed)
                needs.update({step.id: step for step in more})
                return filled
            if name not in self.bases and name not in self.models:
                raise ValueError(f"{{{name}}} of {text!r} is no setting of the scale, no model and no value of the row")
            step = self._model(name, values, seed)
            needs[step.id] = step
            return step.folder

        return _NAME.sub(value, text), tuple(needs.values())

    def _shown(self, values: Mapping[str, Any], template: str) -> str:
        """The values that a command names, itself or by a setting, for the step's name."""

        def names(text: Any) -> Iterator[str]:
            for name in _NAME.findall(str(text)):
                yield name
                if name not in values:
                    yield from names(self.settings.get(name, ""))

        return "".join(
            f" {name}={values[name]}" for name in dict.fromkeys(names(template)) if name in {*values} - {"row"}
        )

    def _expanded(self, entries: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """Label, values and entry of each row or column; a list of the scale in a label makes several."""
        for label, entry in entries.items():
            lists = [name for name in _NAME.findall(label) if isinstance(self.settings.get(name), list)]
            if not lists:
                yield self._fill(label, {}, 0)[0], {}, entry
                continue
            for element in self.settings[lists[0]]:
                yield self._fill(label, {lists[0]: element}, 0)[0], {lists[0]: element}, entry
