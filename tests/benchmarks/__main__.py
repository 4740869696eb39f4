"""Run benchmarks, each in a separate process.

    python -m tests.benchmarks --quick
    python -m tests.benchmarks mining losses --out results

A benchmark that lacks something (an encoder in ST_XLING_E5, text in ST_XLING_DATA) is skipped; one that fails does not
stop the others. python -m tests.benchmarks.NAME --help shows the options of a benchmark.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from st_xling.training.run import machine_facts

FOLDER = Path(__file__).parent
NO_BENCHMARKS = ("__init__", "__main__", "aligner_peers", "measure", "train_build")
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NO_BENCHMARKS)


def main() -> int:
    """Run the command line; the status is 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--out", type=Path, help="folder for the ratios as JSON")
    options, passed_on = parser.parse_known_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"NAME must be one of {', '.join(NAMES)}: got {', '.join(unknown)}")
    print("; ".join(f"{name}: {fact}" for name, fact in machine_facts().items()), flush=True)
    failed = []
    for name in options.names or NAMES:
        command = [sys.executable, "-m", f"tests.benchmarks.{name}", *passed_on]
        if options.out:
            command += ["--json", str(options.out / f"{name}.json")]
        if subprocess.run(command).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
