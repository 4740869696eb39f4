"""Run the notebooks in order and keep their outputs in them: ``python -m tests.notebooks.keep_outputs [01 03 …]``.

Each runs in a temporary folder of its own, as in the tests; with numbers, only those are run. What reads a ready model
takes that in the folder ``ST_XLING_E5``, and is left as it is without.
"""

from __future__ import annotations

import base64
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from tests.notebooks.outputs import kept_outputs
from tests.notebooks.run_notebook import notebooks, reads_ready_model, run_notebook

COLOURS = 256
"""Of a kept picture: enough for a diagram or a color map, at half the size."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def clean(notebook: Any) -> Any:
    """The notebook with the outputs that are kept, and nothing of the machine or the time of the run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number:02}", nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = kept_outputs(cell.outputs)
            for output in cell.outputs:
                if png := output.get("data", {}).get("image/png"):
                    output.data["image/png"] = smaller(png)
    return notebook


def smaller(png: str) -> str:
    """The same picture, base64 as before, in a palette of :data:`COLOURS`."""
    before, after = base64.b64decode(png), io.BytesIO()
    Image.open(io.BytesIO(before)).convert("RGB").quantize(COLOURS).save(after, format="PNG", optimize=True)
    return base64.b64encode(min(before, after.getvalue(), key=len)).decode("ascii")


def main(numbers: list[str]) -> None:
    """Run and write the notebooks whose names begin with ``numbers``; without any, all."""
    encoder = os.environ.get("ST_XLING_E5")
    for path in notebooks():
        if numbers and not path.name.startswith(tuple(numbers)):
            continue
        if encoder is None and reads_ready_model(path):
            print(f"{path.name}: set ST_XLING_E5 to a folder of multilingual-e5-small")
            continue
        started = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="notebooks-") as folder:
            notebook = clean(run_notebook(path, Path(folder), encoder))
        beside = path.with_suffix(".ipynb.tmp")
        nbformat.write(notebook, beside)
        beside.replace(path)
        print(f"{path.name}: {time.perf_counter() - started:.0f} s, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
