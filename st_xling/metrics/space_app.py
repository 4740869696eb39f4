"""``app.py`` of every metric's Space: the page, over the metric beside this file."""

from pathlib import Path

import evaluate

from st_xling.metrics.widget import page

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    [metric] = (path for path in folder.glob("*.py") if path.name not in ("app.py", "tests.py"))
    page(evaluate.load(str(metric)), folder).launch()
