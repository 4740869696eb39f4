"""What the benchmarks share: ratios, one command line, calls in turn, fresh processes, text, encoders."""

from __future__ import annotations

import argparse
import gzip
import inspect
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch

from st_xling._version import __version__
from st_xling.reproduce.step_cost import QUICK as QUICK
from st_xling.reproduce.step_cost import EncoderShape as EncoderShape
from st_xling.reproduce.step_cost import recipe_loss as recipe_loss
from st_xling.reproduce.step_cost import step as step
from st_xling.utils.io import write_json

PRELOADED = ["st_xling.training.encoder", "st_xling.mining", "transformers.models.bert.modeling_bert"]
"""What is part of every process, not of what is measured."""


class Skipped(Exception):
    """What a benchmark needs is not there; says what to do."""


@dataclass(frozen=True)
class Ratio:
    """What a benchmark yields.

    Attributes:
        what: Name of what is measured, without dots: results are found by dotted paths.
        peer: By what it is measured.
        values: Of each round, or one; none if it could not be measured.
        at_most: Target.
        at_least: Target.
    """

    what: str
    peer: str
    values: float | Sequence[float]
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As in JSON, with median, least and greatest value."""
        content: dict[str, Any] = {"peer": self.peer}
        rounds = self.values if isinstance(self.values, Sequence) else [self.values]
        values = [float(value) for value in rounds]
        if values:
            content |= {"value": median(values), "low": min(values), "high": max(values)}
        if self.at_most is not None:
            content["at_most"] = self.at_most
        if self.at_least is not None:
            content["at_least"] = self.at_least
        return content | {"note": self.note}


@dataclass
class Run:
    """How a benchmark is to be run.

    Attributes:
        quick: With toy sizes.
        clock: Seconds: the processor's, or those on the wall.
    """

    quick: bool
    rounds: int
    threads: int
    clock: Callable[[], float]

    def seconds(self, call: Callable[[], Any]) -> float:
        started = self.clock()
        call()
        return self.clock() - started

    def in_turn(self, calls: dict[str, Callable[[], Any]], *, warm_up: bool = True) -> dict[str, list[float]]:
        """Seconds of each call, round by round, so that other work on the machine meets all alike.

        Every second round goes backwards. The first one, which ``warm_up`` adds, does not count.
        """
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for number in range(-warm_up, self.rounds):
            for name in in_round(calls, number):
                spent = self.seconds(calls[name])
                if number >= 0:
                    seconds[name].append(spent)
            if number >= 0:
                log(f"round {number + 1}: " + ", ".join(f"{name} {spent[-1]:.3f} s" for name, spent in seconds.items()))
        return seconds


def in_round(names: Iterable[str], number: int) -> list[str]:
    """Return names in the order of a round: every second round goes backwards."""
    order = list(names)
    return order[::-1] if number % 2 else order


def main(measure: Callable[..., Iterable[Ratio]], *, rounds: int = 1, quick: dict[str, Any] | None = None) -> None:
    """The command line of a benchmark: the keywords of ``measure`` are its options.

    Args:
        measure: Takes a :class:`Run`, then keywords.
        rounds: If not ``--rounds``.
        quick: Other values of keywords with ``--quick``.
    """
    spec = sys.modules["__main__"].__spec__
    assert spec is not None
    parser = argparse.ArgumentParser(
        prog=f"python -m {spec.name}",
        description=sys.modules["__main__"].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    keywords = dict(inspect.signature(measure, eval_str=True).parameters)
    del keywords["run"]
    for parameter in keywords.values():
        add_option(parser, parameter)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true", help="processor time, as always with one thread")
    parser.add_argument("--quick", action="store_true", help="a toy: figures without meaning")
    parser.add_argument("--json", type=Path, help="also write the ratios here")
    if "--quick" in sys.argv:
        parser.set_defaults(**(quick or {}))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    by_processor = options.cpu_time or options.threads == 1
    clock = time.process_time if by_processor else time.perf_counter
    default_rounds = 1 if options.quick else rounds
    run = Run(options.quick, options.rounds or default_rounds, options.threads, clock)
    values = {name: getattr(options, name) for name in keywords}
    started = time.monotonic()
    ratios: dict[str, dict[str, Any]] = {}
    try:
        for ratio in measure(run, **values):
            assert "." not in ratio.what and ratio.what not in ratios, ratio.what
            ratios[ratio.what] = ratio.as_dict()
            print(describe(ratio.what, ratios[ratio.what], targets=not options.quick), flush=True)
    except Skipped as why:
        ratios["skipped"] = {"peer": "", "note": str(why)}
        print(f"skipped: {why}")
    if options.quick:
        print("Quick: toy sizes, which show that all run. THE FIGURES SAY NOTHING.")
    print(f"{options.threads} threads, {'processor' if by_processor else 'clock'} time, torch {torch.__version__}")
    command = [word for word in sys.argv[1:] if word not in ("--json", str(options.json))]
    seconds = round(time.monotonic() - started, 1)
    encoder = Path(os.environ.get("ST_XLING_E5", "")).name  # many figures depend on it
    content = {"version": __version__, "command": command, "encoder": encoder, "seconds": seconds}
    if options.json is not None:
        write_json(options.json, {**content, "ratios": ratios})


def add_option(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    """Add the option of a keyword of a benchmark: a flag, several values or one, by its default and type."""
    flag = f"--{parameter.name.replace('_', '-')}"
    default = parameter.default
    kind = parameter.annotation
    if kind is bool:
        parser.add_argument(flag, action="store_true")
    elif isinstance(default, tuple):
        kind = type(default[0]) if default else str
        parser.add_argument(flag, nargs="+", type=kind, default=default)
    else:
        kind = (get_args(kind) or (kind,))[0]  # int of int | None
        parser.add_argument(flag, type=kind, default=default)


def describe(what: str, ratio: Mapping[str, Any], *, targets: bool = True) -> str:
    """Describe a ratio in a line: what, its median with the range, by whom, target and note."""
    words = [f"{what} by {ratio['peer']}"]
    if "value" in ratio:
        value = f"{ratio['value']:.3g}"
        low = f"{ratio['low']:.3g}"
        high = f"{ratio['high']:.3g}"
        if low != high:
            value = f"{value} ({low}-{high})"
        words.append(value)
        for key, sign in (("at_most", 1), ("at_least", -1)):
            if targets and key in ratio:
                missed = sign * ratio["value"] > sign * ratio[key]
                words.append(f"{key.replace('_', ' ')} {ratio[key]:.3g}{', MISSED' if missed else ''}")
    if ratio["note"]:
        words.append(ratio["note"])
    return ": ".join(words)


def log(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def quotients(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Divide values by others, round by round."""
    return [value / other for value, other in zip(values, others)]


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a benchmark returns in a fresh process, for its memory."""
    if not Path("/proc/self/status").is_file():
        raise Skipped("memory is read from /proc, which Linux has")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # once, for all
    threads = (torch.get_num_threads(),)
    with ProcessPoolExecutor(1, mp_context=context, initializer=torch.set_num_threads, initargs=threads) as pool:
        return pool.submit(function, *arguments).result()


def resident() -> float:
    """MiB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def peak() -> float:
    """The most MiB that this process has held."""
    # Not getrusage: a child begins with its parent's peak, and this parent holds models.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    high_water_mark = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(high_water_mark.split()[1]) / 2**10


def data_folder() -> Path:
    """Where ``ST_XLING_DATA`` says that real text is."""
    folder = Path(os.environ.get("ST_XLING_DATA", "/"))
    if not (folder / "parallel").is_dir():
        raise Skipped("set ST_XLING_DATA to the folder of the data, which has parallel/xx-en.tsv.gz")
    return folder


def parallel(run: Run, language: str, rows: int | None = None) -> list[tuple[str, str]]:
    """The first pairs of a language and English, of the real text; in a quick run the phrasebook's."""
    if run.quick:
        from st_xling.data.phrasebook import LANGUAGES, parallel_phrases

        if language not in LANGUAGES:
            language = "vi"
        phrases = parallel_phrases(language, size=rows or 400)
        return list(zip(phrases["source"], phrases["target"]))
    with gzip.open(data_folder() / "parallel" / f"{language}-en.tsv.gz", "rt", encoding="utf-8") as lines:
        pairs = [line.rstrip("\n").split("\t") for line in islice(lines, rows)]
    return [(pair[0], pair[1]) for pair in pairs if all(pair[:2])]


def encoder_folder(model: str | None) -> str:
    """An encoder of real size: ``--model``, else that of ``ST_XLING_E5``."""
    folder = model or os.environ.get("ST_XLING_E5")
    if not folder:
        raise Skipped("set ST_XLING_E5 to a folder of multilingual-e5-small, or name an encoder (--model)")
    return folder
