"""The Space: evaluate's own widget over the metric beside this file."""

from pathlib import Path

import evaluate
from evaluate.utils import launch_gradio_widget

if __name__ == "__main__":
    launch_gradio_widget(evaluate.load(str(Path(__file__).resolve().with_name("tatoeba.py"))))
