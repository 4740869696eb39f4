"""``--seeds 0,1,2``: the same training once for each seed, and the mean of what came out."""

from __future__ import annotations

import argparse
import copy
import shlex
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from st_xling.cli.options import Options, write_results
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.tables import format_table

#: Results that say how a run went on this machine, not what came of it.
_NOT_RESULTS = {"machine", "seconds", "steps", "leak", "encoded", "rows", "pairs", "training_seconds"}


#: For a command that trains into ``--out`` and takes ``--seed``.
SEEDS = Options(
    """
--seeds NUMBERS  train once with each of these, such as 0,1,2, into DIR/seed-0 and so on; means and deviations of the
                 results go into DIR/seeds.json
"""
)


def run_seeds(arguments: argparse.Namespace, run: Callable[[argparse.Namespace], None]) -> None:
    """Run a command once for each of its seeds, then print and keep the mean and deviation of every result.

    With ``--resume`` each run goes on from its last checkpoint, if it has one.

    Args:
        arguments: Of the command line, with ``seeds``.
        run: The command, for one seed.
    Raises:
        ValueError: ``--seed`` as well, or a folder that one of the runs may not write, before the first is trained.
    """
    from st_xling.training.run_folder import RunFolder
    from st_xling.utils import distributed

    if arguments.seed is not None:
        raise ValueError(f"--seeds names all seeds: got --seed {arguments.seed} as well; leave it out.")
    distributed.init_distributed()
    folders = {seed: arguments.out / f"seed-{seed}" for seed in arguments.seeds}
    options = {"resume": arguments.resume, "overwrite": arguments.overwrite}

    def check() -> None:
        for folder in folders.values():
            RunFolder(folder, **options).check()

    distributed.run_on_main(check)
    for seed, folder in folders.items():
        one = copy.copy(arguments)
        one.seed, one.out, one.json, one.seeds = seed, folder, None, None
        one.command_line = _command(arguments.command_line, folder, seed)
        run(one)
    if distributed.is_main():
        summary = summarise({seed: read_json_object(folder / "results.json") for seed, folder in folders.items()})
        write_json(arguments.out / "seeds.json", summary)
        print(_table(summary))
        write_results(arguments, summary)


def summarise(results: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Mean, sample standard deviation and values of each number that the results of all runs have.

    Args:
        results: Seed → ``results.json`` of its run.
    Example:
        >>> summarise({0: {"training": {"best_dev": 0.5}}, 1: {"training": {"best_dev": 0.7}}})["results"]
        {'training.best_dev': {'mean': 0.6, 'sd': 0.1414, 'values': [0.5, 0.7]}}
    """
    numbers = [dict(_numbers(content)) for content in results.values()]
    shared = [name for name in numbers[0] if all(name in part for part in numbers)]
    values_of = {name: [part[name] for part in numbers] for name in shared}
    return {
        "seeds": list(results),
        "results": {
            name: {
                "mean": round(statistics.fmean(values), 6),
                "sd": round(statistics.stdev(values), 4) if len(values) > 1 else None,
                "values": values,
            }
            for name, values in values_of.items()
        },
    }


def _numbers(content: Any, name: str = "") -> Iterator[tuple[str, float]]:
    parts: Any = content.items() if isinstance(content, dict) else ()
    parts = enumerate(content) if isinstance(content, list) else parts
    for key, part in parts:
        if key in _NOT_RESULTS:
            continue
        where = f"{name}.{key}".lstrip(".")
        if isinstance(part, (int, float)) and not isinstance(part, bool):
            yield where, part
        else:
            yield from _numbers(part, where)


def _table(summary: dict[str, Any]) -> str:
    rows = [[name, entry["mean"], entry["sd"]] for name, entry in summary["results"].items()]
    seeds = ", ".join(map(str, summary["seeds"]))
    return f"seeds {seeds}: mean and standard deviation\n{format_table(['result', 'mean', 'sd'], rows, decimals=4)}"


def _command(command_line: str, folder: Path, seed: int) -> str:
    """The command that gives one of the runs by itself."""
    remaining, words = [], iter(shlex.split(command_line))
    for word in words:
        name, equals, _ = word.partition("=")
        if name in ("--seeds", "--out", "--json"):
            if not equals:
                next(words, None)
        elif word not in ("--resume", "--overwrite"):
            remaining.append(word)
    return shlex.join([*remaining, "--seed", str(seed), "--out", str(folder)])
