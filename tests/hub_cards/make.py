"""``python -m tests.hub_cards.make``: write ``hub_cards/`` again."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def main() -> None:
    """Make the runs in a temporary folder, then put cards, pictures and list in place."""
    import torch

    from st_xling.utils.io import write_atomic
    from tests.hub_cards.listing import listing
    from tests.hub_cards.making import CARDS, WITH_PICTURES, as_committed, make_models
    from tests.hub_cards.runs import RUNS

    parser = argparse.ArgumentParser(prog="python -m tests.hub_cards.make", description=__doc__)
    parser.add_argument("--out", type=Path, default=CARDS, metavar="DIR", help="default: hub_cards/ of the repository")
    out = parser.parse_args().out.absolute()
    torch.set_num_threads(1)  # as equal bytes need it
    with tempfile.TemporaryDirectory(prefix="st-xling-") as made:
        texts = {f"{name}.md": as_committed(name, card) for name, card in make_models(Path(made)).items()}
        texts["README.md"] = listing(RUNS)
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("*.md"):
            if old.name not in texts:
                old.unlink()
        for name, text in texts.items():
            write_atomic(out / name, text.encode("utf-8"))
        shutil.rmtree(out / "pictures", ignore_errors=True)
        shutil.copytree(Path(made) / f"my-{WITH_PICTURES}" / "pictures", out / "pictures")


if __name__ == "__main__":
    main()
