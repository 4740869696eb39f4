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
                only the path names, and ``sentences``: true of an F1 of mined pairs, whose differences get an interval
                over test sentences, too; ``factor`` (100), ``decimals`` (1);
                ``paper``: row → column → the paper's own value; ``compare``: pairs of rows; ``note``;
                ``picture``: true where the points of ``principal_components`` are to be drawn, a panel a row;
                ``examples``: true where lists of ``evaluate reranking --examples`` are to stand below
==============  ======================================================================================================

A name in braces that is a list of the scale makes, in a label, one row or column of each element. A name of a model is
its folder, so that what a command needs is trained first. ``common.yaml`` holds the bases that all papers share, and
the settings ``bf16``, ``dtype`` and ``autocast``, options by which commands compute in bfloat16 where a scale does.
Commands run in the output folder; ``{data}`` is the folder of data.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from st_xling.reproduce.paper_files import read_common, read_paper
from st_xling.training.recipe_files import recipe_fingerprint
from st_xling.utils.options import check_choice
from st_xling.utils.signature import sha8

_NAME_IN_BRACES = re.compile(r"\{([\w-]+)\}")

SCALES = ("tiny", "small", "paper")

#: Settings of a scale that computes in bfloat16, for float32.
_FLOAT32 = {"bf16": "", "dtype": "--dtype float32", "autocast": ""}


@dataclass(frozen=True)
class Step:
    """One command: a model that is trained, or an evaluation.

    Attributes:
        name: Name for readers, such as ``dap, seed 1``.
        words: Words of the command, with ``{data}`` for the folder of data, and folders of other steps relative to the
            output folder.
        needs: Steps whose models it reads.
        seed: Seed of training; ``None`` for what has none.
    """

    name: str
    words: tuple[str, ...]
    needs: tuple[Step, ...] = ()
    seed: int | None = None

    @property
    def id(self) -> str:
        """Name of its files: another command, or other models below it, make another step."""
        digest = hashlib.sha256(repr((self.words, self.seed)).encode()).hexdigest()[:8]
        return f"{re.sub(r'[^A-Za-z0-9]+', '-', self.name).strip('-')}-{digest}"

    @property
    def trains(self) -> bool:
        """True if the result is a model, rather than the file of ``--json``."""
        return self.words[0] in ("train", "slim")

    @property
    def fine_tunes(self) -> bool:
        """True if it trains a model only to evaluate it."""
        return self.words[0] == "transfer"

    @property
    def takes_seed(self) -> bool:
        """True if the command draws random numbers: ``slim`` makes a model, but draws none."""
        return self.words[0] in ("train", "transfer")

    @property
    def is_python(self) -> bool:
        """True if it is another program than ``st-xling``."""
        return self.words[0] == "python"

    @property
    def reads_data(self) -> bool:
        """True if the command names the folder of data."""
        return any("{data}" in word for word in self.words)

    @property
    def folder(self) -> str:
        """Folder of the model, in the output folder."""
        return f"models/{self.id}"

    @property
    def result(self) -> str:
        """Path in the output folder that exists once the step is done."""
        return self.folder if self.trains else f"results/{self.id}.json"

    def command(self) -> list[str]:
        """Return all words, with those that name the output."""
        words = list(self.words)
        if self.takes_seed:
            words += ["--seed", str(self.seed or 0)]
        if self.trains or self.fine_tunes:
            words += ["--out", self.folder]
        if not self.trains:
            words += ["--json", self.result]
        return words

    def closure(self) -> Iterator[Step]:
        """Yield the step and all below it, those first that others need."""
        for need in self.needs:
            yield from need.closure()
        yield self


class TableCell(NamedTuple):
    """A value of a table: for each seed the step, and the paths of the value in its JSON.

    Attributes:
        over_sentences: True if the value is an F1 of mined pairs, whose test sentences can be resampled.
    """

    steps: tuple[Step, ...]
    paths: tuple[str, ...]
    over_sentences: bool = False


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper.

    Attributes:
        cells: Row → column → cell.
        compare: Pairs of rows whose difference is tested.
        entry: The file's own entry, with the paper's values, ``factor``, ``decimals`` and ``examples``.
    """

    title: str
    note: str
    cells: dict[str, dict[str, TableCell]]
    compare: list[tuple[str, str]]
    entry: Mapping[str, Any]

    def steps(self) -> list[Step]:
        """Return all steps that it needs, in an order in which they can be run."""
        cells = itertools.chain.from_iterable(row.values() for row in self.cells.values())
        steps: list[Step] = []
        # One seed after the other: an interrupted run has whole tables of the first.
        for steps_of_seed in zip(*(cell.steps for cell in cells)):
            for step in steps_of_seed:
                steps += step.closure()
        return _distinct(steps)


@dataclass(frozen=True)
class Paper:
    """Tables of a paper at one scale; see :func:`load_paper`.

    Attributes:
        source: Name or file, as it was given.
        model: Model that they start from: a base of ours, a Hub id or a folder.
        float32: Whether they are computed in float32.
        changes: Settings that replace those of the scale, name → text.
        tables: The tables to make.
        all_tables: All tables of the paper.
    """

    name: str
    source: str
    title: str
    scale: str
    model: str
    float32: bool
    changes: Mapping[str, str]
    seeds: tuple[int, ...]
    tables: dict[str, Table]
    all_tables: dict[str, Table]

    @property
    def file_name(self) -> str:
        """Name of its files, without their endings."""
        model = re.sub(r"[^A-Za-z0-9]+", "-", self.model_name)
        precision = "-fp32" if self.float32 else ""
        changed = f"-set-{sha8(sorted(self.changes.items()))}" if self.changes else ""
        seeds = "seeds" if len(self.seeds) > 1 else "seed"
        return "-".join([self.name, self.scale, f"{model}{precision}{changed}", seeds, *map(str, self.seeds)])

    @property
    def model_name(self) -> str:
        """The model without its folder on this machine."""
        return Path(self.model).name if Path(self.model).is_absolute() else self.model

    def recipes(self) -> dict[str, str]:
        """Return the recipes that the steps train by, each with a fingerprint of its values.

        A command names its recipe only: the fingerprint tells a page that was made by other values of it.
        """
        names = {step.words[1] for step in self.steps() if step.words[0] == "train"}
        return {name: recipe_fingerprint(name) for name in sorted(names)}

    def steps(self) -> list[Step]:
        """Return all steps that the tables need, each once, in an order in which they can be run."""
        steps: list[Step] = []
        for table in self.tables.values():
            steps += table.steps()
        return _distinct(steps)

    def check_data(self, data: str | Path | None) -> None:
        """Raise ``ValueError`` if the steps read a folder of data and it is not there."""
        if not any(step.reads_data for step in self.steps()):
            return
        if data is None:
            raise ValueError("these tables are made from real text: name its folder (--data, or ST_XLING_DATA).")
        if not Path(data).is_dir():
            raise ValueError(f"--data must be a folder: there is none at {data}.")

    def shown(self, step: Step) -> str:
        """Return the step's command as a user types it in the output folder, without folders of this machine."""
        words = [word.replace(self.model, self.model_name).replace("{data}", "DATA") for word in step.command()]
        if not step.is_python:
            words = ["st-xling", *words]
        return shlex.join(words)


def base_names(paper: str) -> list[str]:
    """Return the names of models that tables of a paper start from, and that are made on the way, such as mlm."""
    return [*read_common()["bases"], *read_paper(paper).get("bases", {})]


def _distinct(steps: Iterable[Step]) -> list[Step]:
    return list({step.id: step for step in steps}.values())


def load_paper(
    name: str,
    tables: Sequence[str] = (),
    *,
    scale: str = "tiny",
    model: str | None = None,
    precision: str | None = None,
    seeds: Sequence[int] = (0,),
    rows: Sequence[str] = (),
    changes: Mapping[str, str] | None = None,
) -> Paper:
    """Read what a paper's tables need.

    Args:
        name: One of :func:`~st_xling.reproduce.paper_files.paper_names`, or the path of such a file of one's own.
        tables: Names of tables; all by default.
        scale: ``tiny``: the phrasebook, seconds a step; ``small``: real text on two cores, minutes a step; ``paper``:
            the paper's own setting.
        model: Replaces that of the scale: a Hub id, a folder, or the name of a base.
        precision: ``"bf16"``: as the scale has it, which may be float32; ``"fp32"``; by default ``"fp32"`` on a machine
            where bfloat16 is not clearly faster, see :func:`~st_xling.utils.precision.prefers_bfloat16`.
        seeds: Seeds, a run each.
        rows: Labels of rows, perhaps with ``*``; all by default.
        changes: Settings that replace those of the scale, name → text, which may name others in braces.

    Raises:
        ValueError: No such paper, table, scale, setting or row; the message names the known ones. A file of another
            form.
    """
    content = read_paper(name)
    common = read_common()
    check_choice("scale of this paper", scale, list(content["settings"]))
    settings = {**common["settings"][scale], **content["settings"][scale]}
    bases = {**common["bases"], **content.get("bases", {})}
    if model in bases:
        settings["model"] = f"{{{model}}}"
    elif model is not None:
        settings["model"] = str(Path(model).resolve()) if Path(model).is_dir() else model
    start = settings["model"].strip("{}")
    settings |= settings.pop("with", {}).get(start, {})
    changes = dict(changes or {})
    for setting in changes:
        texts = [name for name, value in settings.items() if not isinstance(value, list) and name != "model"]
        check_choice(f"setting at scale {scale}", setting, texts)
    settings |= changes
    reader = _TableReader(settings, bases, content.get("models", {}), content["evaluations"], tuple(seeds))

    # The names of tables and rows are checked before torch is imported, to measure which precision is faster.
    for table in tables:
        check_choice(f"table at scale {scale}", table, list(content["tables"]))
    labels: list[str] = []
    with contextlib.suppress(RecursionError):  # named below
        for key, entry in content["tables"].items():
            if key in tables or not tables:
                labels += reader.labels(entry)
        _check_rows(rows, labels)

    float32 = (precision or _faster_precision()) == "fp32"
    if float32:
        reader = replace(reader, settings={**settings, **_FLOAT32})
    try:
        read = {key: reader.table(entry) for key, entry in content["tables"].items()}
    except RecursionError:
        raise ValueError(f"{name}: a setting or model must not name itself, directly or by others.") from None
    all_tables = {key: table for key, table in read.items() if table.cells}
    for table in tables:
        check_choice(f"table at scale {scale}", table, list(all_tables))
    chosen = {key: table for key, table in all_tables.items() if key in tables or not tables}
    _check_rows(rows, itertools.chain.from_iterable(table.cells for table in chosen.values()))
    if rows:
        chosen = {key: _with_rows(table, rows) for key, table in chosen.items()}
        chosen = {key: table for key, table in chosen.items() if table.cells}
    return Paper(
        name=Path(name).stem,
        source=name,
        title=content["paper"],
        scale=scale,
        model=start,
        float32=float32,
        changes=changes,
        seeds=tuple(seeds),
        tables=chosen,
        all_tables=all_tables,
    )


def _check_rows(rows: Sequence[str], labels: Iterable[str]) -> None:
    """Raise ``ValueError`` for a row, or a pattern of rows, that none of the labels fits."""
    distinct = list(dict.fromkeys(labels))
    for row in rows:
        if not fnmatch.filter(distinct, row):
            check_choice("row", row, distinct)


def _faster_precision() -> str:
    import torch

    from st_xling.utils.precision import prefers_bfloat16

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    device = "cpu" if accelerator is None else accelerator.type
    return "bf16" if prefers_bfloat16(device) else "fp32"


def _with_rows(table: Table, rows: Sequence[str]) -> Table:
    """Return a table with the rows that fit a label or pattern, in their order."""
    labels = set(itertools.chain.from_iterable(fnmatch.filter(table.cells, row) for row in rows))
    cells = {label: row for label, row in table.cells.items() if label in labels}
    return replace(table, cells=cells, compare=[pair for pair in table.compare if labels.issuperset(pair)])


@cache
def _split_command(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))  # nearly all the time that reading takes; rows and columns share commands
    except ValueError as error:
        raise ValueError(f"{error} in the command {command!r}.") from error


class _Expanded(NamedTuple):
    """A row or column of a file; where its label names a list of the scale, of one element of the list."""

    label: str
    values: dict[str, Any]
    entry: Any


@dataclass(frozen=True)
class _TableReader:
    """Settings of one scale, and the templates of commands that they fill."""

    settings: Mapping[str, Any]
    bases: Mapping[str, str]
    models: Mapping[str, str]
    evaluations: Mapping[str, str]
    seeds: tuple[int, ...]

    def labels(self, entry: Mapping[str, Any]) -> list[str]:
        """Return the labels of the rows of a table."""
        return [row.label for row in self._expand(entry["rows"])]

    def table(self, entry: Mapping[str, Any]) -> Table:
        """Return a table of a file with the steps of its cells."""
        cells: dict[str, dict[str, TableCell]] = {}
        for row in self._expand(entry["rows"]):
            row_entry = {"model": row.entry} if isinstance(row.entry, str) else row.entry
            row_settings = {}
            for key, value in row_entry.items():
                if key not in ("model", "run", "evaluation"):
                    row_settings[key] = self._fill(str(value), row.values)
            for column in self._expand(entry["columns"]):
                column_entry = column.entry
                if isinstance(column_entry, str):
                    column_entry = {"evaluation": column_entry, "value": column.label}
                values = {**column.values, **row.values, **row_settings}
                for key, value in column_entry.items():
                    if key not in ("evaluation", "value", "sentences"):
                        values[key] = value
                cell = self._cell(row.label, row_entry, column_entry, values)
                cells.setdefault(row.label, {})[column.label] = cell

        compare = []
        for first, second in entry.get("compare", ()):
            pair = (self._fill(first, {}), self._fill(second, {}))
            if cells.keys() >= set(pair):
                compare.append(pair)
        note = " ".join(self._fill(entry.get("note", ""), {}).split())
        return Table(self._fill(entry["title"], {}), note, cells, compare, entry)

    def _cell(
        self, label: str, row: Mapping[str, Any], column: Mapping[str, Any], values: Mapping[str, Any]
    ) -> TableCell:
        evaluation = row.get("evaluation", column["evaluation"])
        check_choice(f"evaluation of {label!r}", evaluation, self.evaluations)
        evaluated = row["run"] if "run" in row else f"{{{row['model']}}}"
        template = self.evaluations[evaluation].replace("{row}", evaluated)
        model = row.get("model", label)
        step_name = f"{evaluation} of {values.get(model, model)}"
        draws = template.startswith("transfer")
        steps = []
        for seed in self.seeds:
            command_seed = seed if draws else None
            steps.append(self._step(step_name, template, values, seed, command_seed))

        paths = column["value"] if isinstance(column["value"], list) else [column["value"]]
        filled = [_NAME_IN_BRACES.sub(lambda match: str(values.get(match[1], match[0])), path) for path in paths]
        # A list that the label does not name: the mean over its elements.
        expanded = self._expand(dict.fromkeys(filled))
        labels = tuple(path.label for path in expanded)
        return TableCell(tuple(steps), labels, over_sentences=bool(column.get("sentences")))

    def _step(self, name: str, template: str, values: Mapping[str, Any], seed: int, command_seed: int | None) -> Step:
        """Return the step of a command, which needs those that train the models it names.

        Args:
            name: Name of the step, without a seed.
            template: The command.
            values: Values that it is filled with.
            seed: Seed of the models that it names.
            command_seed: Seed of the command itself; ``None`` for what has none.
        """
        needs: dict[str, Step] = {}
        words = _split_command(self._fill(template, values, seed, needs))
        # The command of what all seeds share is the same, and so is the step.
        depends_on_seed = command_seed is not None or any(need.seed is not None for need in needs.values())
        if depends_on_seed:
            name = f"{name}, seed {seed}"
        return Step(name, words, tuple(needs.values()), command_seed)

    def _fill(
        self, template: str, values: Mapping[str, Any], seed: int = 0, needs: dict[str, Step] | None = None
    ) -> str:
        """Fill in settings, values, and folders of models, whose steps are added to ``needs``; ``{data}`` stays."""

        def replacement(match: re.Match[str]) -> str:
            name = match[1]
            if name == "data":
                return match[0]
            if name in values:
                return str(values[name])
            if name in self.settings:
                setting = self.settings[name]
                text = " ".join(map(str, setting)) if isinstance(setting, list) else str(setting)
                return self._fill(text, values, seed, needs)
            check_choice(f"name in {template!r}", name, [*self.settings, *values, *self.bases, *self.models])
            if name in self.bases:  # trained once, for all
                step = self._step(name, self.bases[name], {}, 0, None)
            else:
                step = self._step(name, self.models[name], values, seed, seed)
            if needs is not None:
                needs[step.id] = step
            return step.folder

        return _NAME_IN_BRACES.sub(replacement, template)

    def _expand(self, entries: Mapping[str, Any]) -> Iterator[_Expanded]:
        """Yield each row or column; a list of the scale in a label makes several."""
        for label, entry in entries.items():
            lists = [name for name in _NAME_IN_BRACES.findall(label) if isinstance(self.settings.get(name), list)]
            if not lists:
                yield _Expanded(self._fill(label, {}), {}, entry)
                continue
            for element in self.settings[lists[0]]:
                values = {lists[0]: element}
                yield _Expanded(self._fill(label, values), values, entry)
