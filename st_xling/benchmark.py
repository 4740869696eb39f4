"""Every benchmark of the source in one run: each in a process of its own, and one table of their ratios."""

from __future__ import annotations

import ast
import difflib
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.reproduce.run import why_it_failed
from st_xling.utils.devices import cpu_has_bfloat16
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.tables import format_table

logger = logging.getLogger(__name__)

#: Where a checkout has them. A wheel has none: they are no part of the package.
FOLDER = Path(__file__).parents[1] / "tests" / "benchmarks"


def benchmarks() -> dict[str, str]:
    """Name of each benchmark → what it measures, in a line.

    Raises:
        ValueError: The package was installed without its source.
    """
    if not (FOLDER / "measure.py").is_file():
        raise ValueError(
            f"the benchmarks belong to the source, not to the installed package: there is no {FOLDER}. Get the "
            f"project's repository at version {__version__}, run pip install -e . in it, and repeat the command."
        )
    modules = sorted(path for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "measure"))
    docs = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in modules}
    return {name: doc.partition("\n")[0].replace("`", "") for name, doc in docs.items()}


def run_benchmarks(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    threads: int = 1,
    rounds: int | None = None,
    options: Mapping[str, str | None] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Run benchmarks, one after the other, each in a process of its own; one that fails does not stop the others.

    Args:
        names: Of :func:`benchmarks`; all without any.
        quick: Toy sizes, a few seconds each: shows that all run; the figures say nothing.
        threads: Of each process; with one, times are those of the processor, which wait for no other program.
        rounds: Of each, in place of its own number.
        options: More options of the benchmarks that are named; ``None`` as the value of a flag.
        out: Folder for ``NAME.json`` and ``NAME.log``; what it has of the same version and options is not run again.
        overwrite: Run again all the same.
    Returns:
        ``machine``, ``quick``, ``encoder`` (the name in ``ST_XLING_E5``), and under ``benchmarks``, for each,
        ``seconds``, ``command`` and ``ratios``: by name ``peer``, ``value`` (the median over rounds), ``low``,
        ``high``, ``at_most`` or ``at_least`` (the target) and ``note``. One that failed has ``failed``, the reason.
    Raises:
        ValueError: No benchmark has such a name; or as :func:`benchmarks`.
    """
    for option, number in (("threads", threads), ("rounds", rounds)):
        if number is not None and number < 1:
            raise ValueError(f"{option} must be at least 1: got {number}.")
    known = benchmarks()
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"they are {', '.join(known)}."
            raise ValueError(f"no benchmark is called {name!r}: {hint}")
    words = ["--threads", str(threads), *(["--quick"] if quick else []), *(["--rounds", str(rounds)] if rounds else [])]
    machine = _machine(threads)
    for key, value in (options or {}).items():
        if key in ("threads", "rounds", "quick", "json", "cpu-time"):
            raise ValueError(f"{key} is no option of one benchmark: give --{key} itself, or leave it out.")
        words += [f"--{key}", *([] if value is None else [_absolute(value)])]
    results = {}
    with tempfile.TemporaryDirectory() if out is None else nullcontext(out) as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(names or known, 1):
            logger.info("%d/%d %s", number, len(names or known), name)
            results[name] = _run(name, words, Path(folder).resolve(), machine, overwrite=overwrite)
            if "failed" in results[name]:
                logger.info("failed: %s", results[name]["failed"])
    return {"machine": machine, "quick": quick, "encoder": encoder_name(), "benchmarks": results}


def encoder_name() -> str:
    """Of the encoder that ``ST_XLING_E5`` names, on which many figures depend."""
    return Path(os.environ.get("ST_XLING_E5", "")).name


def _run(name: str, words: list[str], folder: Path, machine: dict[str, Any], *, overwrite: bool) -> dict[str, Any]:
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    done = read_json_object(result) if result.is_file() and not overwrite else {}
    same = {"command": words, "version": __version__, "encoder": encoder_name(), "machine": machine}
    # What was skipped may have all it needs by now.
    if done and same.items() <= done.items() and "skipped" not in done["ratios"]:
        return done
    new = folder / f".{name}.json"  # what stands stays until there is another
    new.unlink(missing_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(machine["threads"])}
    environment |= {
        name: _absolute(os.environ[name]) for name in ("ST_XLING_DATA", "ST_XLING_E5") if name in os.environ
    }
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *words, "--json", str(new)]
    started = time.monotonic()
    with log.open("wb") as stream:
        status = subprocess.run(
            command, cwd=FOLDER.parents[1], env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        ).returncode
    if status == 0 and new.is_file():
        content = {**read_json_object(new), "machine": machine}
        new.unlink()
        write_json(result, content)
        return content
    return {"failed": why_it_failed(log, status), "seconds": round(time.monotonic() - started, 1)}


def _absolute(value: str) -> str:
    """The same file or folder from the folder of the source, where benchmarks run."""
    return str(Path(value).resolve()) if value and Path(value).exists() else value


def _machine(threads: int) -> dict[str, Any]:
    from st_xling.training.saving import machine_facts

    facts = {**machine_facts(), "threads": threads}
    for name in ("faiss-cpu", "faiss-gpu", "faiss"):
        with suppress(metadata.PackageNotFoundError):
            facts["versions"]["faiss"] = metadata.version(name)
    bfloat16 = cpu_has_bfloat16()
    return facts if bfloat16 is None else {**facts, "bfloat16": bfloat16}


def benchmark_table(content: Mapping[str, Any]) -> str:
    """What :func:`run_benchmarks` returns, for a reader: the machine, then all ratios."""
    machine = content["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    parts = [
        machine.get("processor", "unknown processor"),
        f"{machine['cores']} cores, {machine['threads']} of them used",
        *([f"{'with' if machine['bfloat16'] else 'without'} bfloat16"] if "bfloat16" in machine else []),
        f"{machine['memory_gib']:g} GiB",
        ", ".join(machine.get("accelerators", [])) or "no accelerator",
    ]
    head = [f"{', '.join(parts)}; {versions}; st-xling {__version__}", ""]
    if content["encoder"]:
        head[0] += f"; encoder {content['encoder']}"
    if content["quick"]:
        head.insert(1, "Quick: toy sizes, which show that all run. THE FIGURES SAY NOTHING.")
    results = {name: result.get("ratios") or result["failed"] for name, result in content["benchmarks"].items()}
    return "\n".join([*head, ratio_table(results, targets=not content["quick"])])


def ratio_table(results: Mapping[str, Mapping[str, Mapping[str, Any]] | str], *, targets: bool = True) -> str:
    """Ratios by benchmark, or the reason why it has none."""
    rows = [["benchmark", "what", "by", "ratio", "target", ""]]
    for name, ratios in results.items():
        if isinstance(ratios, str):
            rows.append([name, "FAILED", "", "", "", ratios])
            continue
        for what, one in ratios.items():
            target = _target(one) if targets else ""
            rows.append([name if one is next(iter(ratios.values())) else "", what, one["peer"]])
            rows[-1] += [_value(one), target, one.get("note", "")]
    # Filled up, so that all columns stand to the left: most are text.
    widths = [max(map(len, column)) for column in zip(*rows)]
    filled = [[cell.ljust(width) for cell, width in zip(row, widths)] for row in rows]
    return format_table(filled[0], filled[1:])


def _value(one: Mapping[str, Any]) -> str:
    if "value" not in one:
        return ""
    value, low, high = (f"{one[key]:.3g}" for key in ("value", "low", "high"))
    return value if low == high else f"{value} ({low}-{high})"


def _target(one: Mapping[str, Any]) -> str:
    for key, sign in (("at_most", 1), ("at_least", -1)):
        if key in one and "value" in one:
            met = sign * one["value"] <= sign * one[key]
            return f"{key.replace('_', ' ')} {one[key]:.3g}{'' if met else ', MISSED'}"
    return ""
