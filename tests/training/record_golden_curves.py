"""``python -m tests.training.record_golden_curves``: record the loss curves of ``golden_curves.json`` again.

Recorded numbers stand for what training did before a change, so they are not recorded anew to make a test pass: a curve
is recorded again when its losses shall change, alone and with the reason, as in

    python -m tests.training.record_golden_curves "CrossLingualTrainer, TR + RTL" --note "heads learn alone first"

To record another commit, copy ``golden_curves.py`` and this file into a worktree of it, and run it there with
``--into`` and the path of the file that shall have the curves.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any


def main() -> None:
    """Make the runs and write their curves, each with the commit that it is of."""
    from tests.training.golden_curves import NAMES, RECORDED, loss_curve

    parser = argparse.ArgumentParser(
        prog="python -m tests.training.record_golden_curves",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="curves to record (default: all)")
    parser.add_argument("--note", help="why these curves differ from those of an earlier commit")
    parser.add_argument("--into", type=Path, default=RECORDED, help=f"file to write (default: {RECORDED.name})")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in NAMES]:
        parser.error(f"no run has the name {unknown[0]!r}; there are: {'; '.join(NAMES)}")

    content: dict[str, Any] = {"commits": {}, "curves": {}}
    if arguments.into.is_file():
        content = json.loads(arguments.into.read_text(encoding="utf-8"))
    commit = _commit()
    content["commits"][commit] = _versions()
    for name in arguments.names or NAMES:
        with tempfile.TemporaryDirectory(prefix="st-xling-") as folder:
            curve = loss_curve(name, Path(folder))
        about = {"commit": commit}
        if arguments.note:
            about["note"] = arguments.note
        rounded = {part: [round(value, 7) for value in values] for part, values in curve.items()}
        content["curves"][name] = {**about, "losses": rounded}
    ordered = {name: content["curves"][name] for name in NAMES if name in content["curves"]}
    used = {entry["commit"] for entry in ordered.values()}
    commits = {name: versions for name, versions in content["commits"].items() if name in used}
    _write(arguments.into, commits, ordered)


def _commit() -> str:
    """Return the commit of the code that trains, with ``-dirty`` if files of it have changed."""
    import st_xling

    describe = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    folder = Path(st_xling.__file__).parent
    return subprocess.run(describe, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def _versions() -> dict[str, str]:
    import torch

    libraries = ("torch", "transformers", "sentence-transformers", "tokenizers", "peft", "numpy")
    versions = {name: version(name) for name in libraries}
    return {"python": platform.python_version(), **versions, "cpu": torch.backends.cpu.get_cpu_capability()}


def _write(path: Path, commits: dict[str, Any], curves: dict[str, Any]) -> None:
    """Write the file with the numbers of a loss on one line, so that a change of one curve is a change of its lines."""
    entries = []
    for name, entry in curves.items():
        losses = ",\n".join(f"    {json.dumps(part)}: {json.dumps(values)}" for part, values in entry["losses"].items())
        about = "".join(f"   {json.dumps(key)}: {json.dumps(entry[key])},\n" for key in entry if key != "losses")
        entries.append(f'  {json.dumps(name)}: {{\n{about}   "losses": {{\n{losses}\n   }}\n  }}')
    head = {
        "about": "Losses of 20 steps, as logged: read by test_golden_curves.py",
        "command": "python -m tests.training.record_golden_curves",
    }
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in {**head, "commits": commits}.items()]
    parts.append(' "curves": {\n' + ",\n".join(entries) + "\n }")
    temporary = path.with_suffix(".tmp")
    temporary.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
