"""The Space's page, over the metric beside this file."""

from pathlib import Path

import evaluate

from st_xling.metrics.widget import page

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    page(evaluate.load(str(folder / "xpr_ranking.py")), folder).launch()
