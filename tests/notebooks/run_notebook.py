"""A notebook run from top to bottom, by the Python that runs the tests, whatever kernels the machine has."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

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


class ThisPython(AsyncKernelManager):
    """Starts this interpreter, not one that a kernel spec of the machine names."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
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


def run_notebook(path: Path, folder: Path, encoder: str | Path | None = None) -> Any:
    """The notebook with the outputs of a fresh run; the file is not written.

    Args:
        path: The notebook.
        folder: Where its cells run.
        encoder: Folder that is read as :data:`READY_MODEL`.
    Raises:
        nbclient.exceptions.CellExecutionError: With the cell that failed, and why.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        kernel_manager_class=ThisPython,
        timeout=SECONDS_A_CELL,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    with tempfile.TemporaryDirectory(prefix="ipython-") as settings:  # none of the user's own
        cache = {} if encoder is None else {"HF_HUB_CACHE": str(hub_cache(Path(settings) / "hub", encoder))}
        client.execute(env={**os.environ, **_ENVIRONMENT, **cache, "IPYTHONDIR": settings})
    return notebook
