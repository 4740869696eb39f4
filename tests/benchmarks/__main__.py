"""Run benchmarks, each in a process of its own, and print one table of their ratios.

    python -m tests.benchmarks --quick
    python -m tests.benchmarks mining losses --json ratios.json

A benchmark that lacks something (an encoder in ST_XLING_E5, text in ST_XLING_DATA) says so in its row; one that fails
does not stop the others. python -m tests.benchmarks.NAME --help shows the options of a benchmark.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from contextlib import nullcontext, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from st_xling._version import __version__
from st_xling.reproduce.run import why_it_failed
from st_xling.training.run import machine_facts
from st_xling.utils.io import read_json_object, write_json
from st_xling.utils.options import cpu_has_bfloat16
from tests.benchmarks.measure import encoder_name, log, ratio_table

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Name of each benchmark → the first line of its docstring."""
    modules = sorted(path for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "__main__", "measure"))
    docs = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in modules}
    return {name: doc.partition("\n")[0].replace("`", "") for name, doc in docs.items()}


def run(name: str, words: list[str], folder: Path) -> dict[str, Any]:
    """Run a benchmark; its results, or under ``failed`` the reason why it has none.

    Args:
        name: Of the benchmark.
        words: Its options.
        folder: Folder for ``NAME.json`` and ``NAME.log``.
    """
    result, log_file = folder / f"{name}.json", folder / f"{name}.log"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *words, "--json", str(result)]
    with log_file.open("wb") as stream:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream).returncode
    return {"failed": why_it_failed(log_file, status)} if status else read_json_object(result)


def machine(threads: int) -> dict[str, Any]:
    """Description of this machine, with versions."""
    facts = {**machine_facts(), "threads": threads, "bfloat16": cpu_has_bfloat16(), "st-xling": __version__}
    for name in ("faiss-cpu", "faiss-gpu", "faiss"):
        with suppress(metadata.PackageNotFoundError):
            facts["versions"]["faiss"] = metadata.version(name)
    return {**facts, "encoder": encoder_name()}


def main() -> int:
    """Run the command line; the status is 1 if a benchmark failed."""
    known = benchmarks()
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        epilog="benchmarks:\n" + "\n".join(f"  {name:<20}{what}" for name, what in known.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="toy sizes: figures without meaning")
    parser.add_argument("--threads", type=int, default=1, help="of each; with one, times are the processor's")
    parser.add_argument("--rounds", type=int, help="of each; a ratio is their median (default: each benchmark's own)")
    parser.add_argument("--out", type=Path, help="folder for results and logs")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"NAME must be one of {', '.join(known)}: got {', '.join(unknown)}")
    words = ["--threads", str(options.threads)]
    words += ["--quick"] if options.quick else []
    words += ["--rounds", str(options.rounds)] if options.rounds else []
    facts, results = machine(options.threads), {}
    with tempfile.TemporaryDirectory() if options.out is None else nullcontext(options.out) as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(names := options.names or list(known), 1):
            log(f"{number}/{len(names)} {name}")
            results[name] = run(name, words, Path(folder))
    print("; ".join(f"{name}: {fact}" for name, fact in facts.items()))
    if options.quick:
        print("Quick: toy sizes, which show that all run. THE FIGURES SAY NOTHING.")
    rows = {name: result.get("ratios") or result["failed"] for name, result in results.items()}
    print(f"\n{ratio_table(rows, targets=not options.quick)}")
    if options.json is not None:
        write_json(options.json, {"machine": facts, "quick": options.quick, "benchmarks": results})
    return int(any("failed" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
