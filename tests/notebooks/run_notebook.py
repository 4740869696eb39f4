"""Run notebooks by the Python that runs the tests; ``python -m tests.notebooks.run_notebook [01 03 …]`` keeps outputs.

Each runs in a temporary folder of its own; with numbers, only those are run. What reads a ready model takes that in the
folder ``ST_XLING_E5``, and is left as it is without.
"""

import base64
import io
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

READY_MODEL = "intfloat/multilingual-e5-small"
"""As a user of the Hub names it; here a local folder is read in its place."""

SECONDS_A_CELL = 240
"""A cell that takes longer has gone wrong."""

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "OMP_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}

FEWER = 20
"""Divides numbers of steps where a notebook is only tested."""

# max_steps=80, "arguments.max_steps": 80, --eval-steps 20
_STEPS = re.compile(r'(?<=steps)("?(?:=|: | ))(\d+)\b')

COLOURS = 256
"""Of a kept picture: enough for a diagram or a color map, at half the size."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

# What a viewer without the kernel cannot show.
_WIDGET = "application/vnd.jupyter.widget-view+json"


class ThisPython(AsyncKernelManager):
    """Starts this interpreter, not one that a kernel spec of the machine names."""

    python = sys.executable

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(
            argv=[self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="Python 3",
            language="python",
        )


def notebooks() -> list[Path]:
    """All of them, in their order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def reads_ready_model(path: Path) -> bool:
    """Whether a notebook loads :data:`READY_MODEL`."""
    cells = nbformat.read(path, as_version=4).cells
    return any(READY_MODEL in cell.source for cell in cells if cell.cell_type == "code")


def hub_cache(folder: Path, encoder: str | Path) -> Path:
    """A cache of the Hub in which :data:`READY_MODEL` is the local ``encoder``, so that its name loads offline."""
    repository = folder / f"models--{READY_MODEL.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40, encoding="ascii")
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir()
    snapshot.symlink_to(Path(encoder).resolve(), target_is_directory=True)
    return folder


def run_notebook(
    path: Path,
    folder: Path,
    encoder: str | Path | None = None,
    *,
    python: str = sys.executable,
    few_steps: bool = False,
) -> Any:
    """The notebook with the outputs of a fresh run; the file is not written.

    Args:
        path: The notebook.
        folder: Where its cells run.
        encoder: Folder that is read as :data:`READY_MODEL`.
        python: Interpreter of its kernel; with an ``encoder`` a fresh one, which reads where the Hub's cache is.
        few_steps: Train for a :data:`FEWER`-th of the steps: the cells run, and little is learned.

    Raises:
        nbclient.exceptions.CellExecutionError: With the cell that failed, and why.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
            cell.execution_count = None
            if few_steps:
                cell.source = _STEPS.sub(_fewer, cell.source)
    client = NotebookClient(
        notebook,
        kernel_manager_class=type("GivenPython", (ThisPython,), {"python": python}),
        timeout=SECONDS_A_CELL,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    with tempfile.TemporaryDirectory(prefix="ipython-") as settings:  # not the user's
        environment = {**os.environ, **_ENVIRONMENT, "IPYTHONDIR": settings}
        if encoder is not None:
            environment["HF_HUB_CACHE"] = str(hub_cache(Path(settings) / "hub", encoder))
        client.execute(env=environment)
    return notebook


def _fewer(steps: re.Match[str]) -> str:
    return f"{steps[1]}{max(1, int(steps[2]) // FEWER)}"


def kept_outputs(outputs: list[Any]) -> list[Any]:
    """Return outputs without what differs from run to run or is of no use later: stderr (warnings, progress), widgets.

    Adjacent pieces of stdout are joined; lines of a shell command's terminal, which end in ``\\r\\n``, end in ``\\n``.
    """
    kept: list[Any] = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            text = output.text.replace("\r\n", "\n")
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += text
                continue
            output = nbformat.from_dict({**output, "text": text})
        elif _WIDGET in output.get("data", {}):
            continue
        kept.append(nbformat.from_dict(output))
    return kept


def kinds(outputs: list[Any]) -> list[str]:
    """Of each output that is kept: ``stdout``, or the richest of its forms, such as ``image/png``."""
    names = []
    for output in kept_outputs(outputs):
        if output.output_type == "stream":
            names.append(output.name)
        else:
            names.append(_richest_form(output.get("data", {})))
    return names


def printed(notebook: Any) -> str:
    """All that the cells of a notebook printed, and their results as text."""
    parts = []
    for cell in notebook.cells:
        for output in kept_outputs(cell.get("outputs", [])):
            if output.output_type == "stream":
                parts.append(output.text)
            parts += [text for form, text in output.get("data", {}).items() if form in ("text/plain", "text/markdown")]
    return "\n".join(parts)


def pictures(notebook: Any) -> list[str]:
    """The PNGs of a notebook, in base64."""
    images: list[str] = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                images.append(data["image/png"])
    return images


def _richest_form(data: Any) -> str:
    return next((form for form in ("image/png", "text/markdown", "text/html") if form in data), "text/plain")


def clean(notebook: Any) -> Any:
    """The notebook with the outputs that are kept, and nothing of the machine or the time of the run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = kept_outputs(cell.outputs)
            for output in cell.outputs:
                if png := output.get("data", {}).get("image/png"):
                    output.data["image/png"] = smaller(png)
    return notebook


def smaller(png: str) -> str:
    """Return a picture, in base64 as before, in a palette of :data:`COLOURS` if that makes it smaller."""
    before = base64.b64decode(png)
    image = Image.open(io.BytesIO(before)).convert("RGB").quantize(COLOURS)
    after = io.BytesIO()
    image.save(after, format="PNG", optimize=True)
    smallest = min(before, after.getvalue(), key=len)
    return base64.b64encode(smallest).decode("ascii")


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
